"""Times with and without an offset from UTC are told apart, however they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odkanon import InputSpec, Rule, audit_releases, read_trips
from odkanon.audit import TripsSource
from odkanon.engine.dispatch import load
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od
from odkanon.read.tables.open_table import open_table
from odkanon.read.tables.time_formats import TimeColumn
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


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("evening", ["2024-01-02 08:00:00 pm", "2024-01-02T08:00:00 PM"])
def test_eight_in_the_evening_is_not_eight_in_the_morning(tmp_path: Path, evening: str, engine: Any) -> None:
    """DuckDB passes over a word after a time; where times are written in several ways, pm was one."""
    times = ["2024-01-02 07:00:00", "2024-01-02 08:00:00", evening]
    lines = [f"48.85,2.35,48.86,2.36,p{at},{time}" for at, time in enumerate(times)]
    path = tmp_path / "trips.csv"
    path.write_text("\n".join(["start_lat,start_lon,end_lat,end_lon,person,start_time", *lines]) + "\n")
    assert load(InputSpec(path, where="hour == 8"), engine=engine).summary.trips == 1
    source = load(InputSpec(path), engine=engine).summary.source
    assert source.rejected["whose start_time cannot be read"].rows == 1
    release = anonymize(build_od(read_trips(path)), Rule(trips=2)).save(tmp_path / "release")
    assert [each.check for each in audit_releases([release], trips=TripsSource(path)).findings] == ["dominance"]
