"""Times with and without an offset from UTC are told apart, however they are written."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from odkanon.read.tables.open import open_table
from odkanon.read.tables.times import TimeColumn
from worlds.tries import tries

WRITTEN = st.lists(
    st.sampled_from(
        ["2024-01-05", "T", " ", "08", ":", ":30", ":05", ".25", "+", "-", "01", "00", "Z", "z", "utc", "\n"]
    ),
    max_size=10,
).map("".join)
OFFSET = re.compile(r"(?is)^([^\n]*:\d{2}(\.\d+)?)\s*(Z|UTC|GMT|[+-]\d{2}(:?\d{2})?)\Z")


@given(st.lists(WRITTEN, min_size=1, max_size=200))
@example(["2024-01-05 08:30:05", "2024-01-05 08:30+01:00", "2024-01-05 08:30:05+01:00", "08:30:05Z", "08:30:05-0100"])
@tries(20)
def test_an_offset_is_seen_wherever_there_is_one(written: list[str]) -> None:
    table = open_table(pa.table({"t": [*written, None]}))
    zoned = table.fetch({"zoned": TimeColumn(table, "t").zoned}).column("zoned").to_pylist()
    assert zoned == [OFFSET.match(text) is not None for text in written] + [False]
