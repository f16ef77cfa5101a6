"""DuckDB refuses to talk of progress in a notebook that cannot draw a bar; reading goes on."""

from __future__ import annotations

import subprocess
import sys

IN_A_NOTEBOOK = """
import duckdb, sys
real = duckdb.DuckDBPyConnection
class Refusing:
    def __init__(self, inner): self._inner = inner
    def execute(self, sql, *more):
        if "progress_bar" in sql:
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
        return self._inner.execute(sql, *more)
    def __getattr__(self, name): return getattr(self._inner, name)
connect = duckdb.connect
duckdb.connect = lambda *given, **named: Refusing(connect(*given, **named))
import pyarrow as pa
from odkanon import points_to_trips, read_trips
minutes = [f"2022-11-14 08:{minute:02d}:00" for minute in (0, 2, 4, 20, 22)]
points = pa.table({"person": ["a"] * 5, "time": minutes, "lat": [48.8] * 5, "lon": [2.3] * 5})
trips, _ = points_to_trips(points)
print(len(read_trips(trips)))
"""


def test_reading_goes_on_where_no_bar_can_be_drawn() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_NOTEBOOK], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2", done.stderr
