"""Many attributes of many values: two small groups whose numbers are the same in 64 bits are no row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
    command = [sys.executable, "-m", "odkanon", "anonymize", str(trips), "-o", str(release), *by, "--engine", engine]
    made = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert overstated(trips, release) == []
    assert json.loads((release / "release.json").read_text(encoding="utf-8"))["published"]["trips"] > 500
