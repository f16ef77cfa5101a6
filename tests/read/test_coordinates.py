"""Reasons to turn coordinates away, told quickly where there are none."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest

from odkanon.read.coordinates import coordinate_checks
from odkanon.read.tables.open_table import open_table
from odkanon.read.tables.table import RowCheck
from odkanon.read.trip_checks import compile_rows

TEXTS = [None, "", "x", "48,8", "nan", "inf", "-inf", "1e400", "0", "-0.0", "48.8", "-90", "90.1", "-180", "181", " 7 "]
NUMBERS = [None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 48.8, -90.0, 90.1, 180.0, -180.1]


@pytest.mark.parametrize("degrees", [True, False])
@pytest.mark.parametrize("values", [TEXTS, NUMBERS], ids=["text", "numbers"])
def test_what_is_quickly_told_to_be_fine_has_no_reason(values: list[object], degrees: bool) -> None:
    lat, lon = zip(*product(values, values), strict=True)
    table = open_table(pa.table({"lat": list(lat), "lon": list(lon)}))
    checks = coordinate_checks(["lat"], ["lon"], degrees=degrees)
    late = RowCheck("late", '"lon" IS NOT NULL')

    def reasons(checks: list[RowCheck]) -> list[int]:
        sql = compile_rows(table, {}, [*checks, late], where=None, identity=None).reason
        return [number for (number,) in table.connection.execute(f"SELECT {sql} FROM {table.scan}").fetchall()]

    slowly = reasons([replace(check, unless=None) for check in checks])
    assert reasons(checks) == slowly
    assert {0, len(checks) + 1} & set(slowly) == {len(checks) + 1}
