"""Many attributes of many values: two small groups whose numbers are the same in 64 bits are no row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.runner import odkanon
from worlds.many_values import many_values, overstated


@pytest.mark.parametrize(
    ("attributes", "values", "engine"),
    [
        pytest.param(7, 512, "duckdb", marks=pytest.mark.slow),
        (6, 999, "memory"),
        (7, 512, "memory"),
        pytest.param(6, 999, "duckdb", marks=pytest.mark.slow),
    ],
)
def test_no_row_lists_more_trips_than_it_has(tmp_path: Path, attributes: int, values: int, engine: str) -> None:
    trips, release = many_values(tmp_path / "trips.parquet", attributes, values), tmp_path / "release"
    by = [word for at in range(attributes) for word in ("--by", f"a{at}")]
    made = odkanon("anonymize", trips, "-o", release, *by, "--engine", engine, "--json")
    assert made.returncode == 0, made.stderr
    assert overstated(trips, release) == []
    assert json.loads((release / "release.json").read_text(encoding="utf-8"))["published"]["trips"] > 500
