"""Who is one person to the audit, sign by sign."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest

from odkanon.audit.counting.counted_measures import person_sql
from odkanon.core.sql import connect
from odkanon.read.person_ids import contributor_text

BLOCKS = [(0x20, 0x300), (0x600, 0x700), (0x900, 0xA00), (0x2000, 0x2070), (0x2200, 0x2220), (0x3000, 0x3040)]
BLOCKS += [(0x3100, 0x3200), (0xFF00, 0xFFF0)]
SIGNS = [chr(code) for first, end in BLOCKS for code in range(first, end)]


def persons(*ids: str | None) -> list[str | None]:
    """Return whom the audit takes these ids for."""
    connection = connect()
    connection.register("ids", pa.table({"number": range(len(ids)), "id": pa.array(ids, pa.string())}))
    return [row[0] for row in connection.sql(f"SELECT {person_sql('id')} FROM ids ORDER BY number").fetchall()]


def test_digits_of_other_scripts_are_digits() -> None:
    for first in (0x660, 0x6F0, 0x966, 0xFF10):
        digits = [chr(first + at) for at in range(10)]
        assert [unicodedata.decimal(digit) for digit in digits] == list(range(10))
        assert persons(*(f"1{digit}" for digit in digits)) == [f"1{at}" for at in range(10)]


def test_wide_signs_are_those_of_common_width_and_dashes_are_dashes() -> None:
    wide = [chr(code) for code in range(0xFF01, 0xFF5F)]
    assert persons(*(f"x{sign}y" for sign in wide)) == persons(*(f"x{chr(ord(sign) - 0xFEE0)}y" for sign in wide))
    assert persons(*(f"x{dash}y" for dash in "\u2010\u2011\u2012\u2013\u2212")) == ["x-y"] * 5


@pytest.mark.parametrize("frame", ["x{}y", "{}", "1{}2"])
def test_every_sign_is_what_it_is_to_the_reader(frame: str) -> None:
    """Where they differed, a good release would have findings, or a bad one none."""
    connection = connect()
    connection.register("ids", pa.table({"id": [frame.format(sign) for sign in SIGNS]}))
    differing = f"SELECT id FROM ids WHERE ({contributor_text('id')}) IS DISTINCT FROM ({person_sql('id')})"
    assert connection.sql(differing).fetchall() == []


def test_signs_beside_those_that_are_alike_stay_apart() -> None:
    """Brackets of two shapes look alike to nobody, though one is a wide form of the other."""
    assert len(set(persons("x\uff5f", "x\u2985", "x\uff60", "x\u2986"))) == 4
