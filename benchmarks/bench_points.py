"""GNSS points to trips, against one DuckDB sort of the same file under the same memory limit.

    python benchmarks/bench_points.py --points 20000000

Prints the least processor time of each in a process of its own, their ratio, and the most memory that the trips took.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odkanon.read.points.segmentation import MEMORY

BATCH = 1_000_000
PERSONS = 20_000
SORT = f"""
import duckdb, sys
connection = duckdb.connect(config={{"memory_limit": "{MEMORY}", "temp_directory": sys.argv[2]}})
connection.execute("SET enable_progress_bar = false")
connection.execute("SET preserve_insertion_order = false")
source = f"SELECT * FROM '{{sys.argv[1]}}' ORDER BY person, time"
connection.execute(f"COPY ({{source}}) TO '{{sys.argv[3]}}' (FORMAT parquet)")
"""


def make_points(count: int, path: Path) -> None:
    """Write points of many persons, shuffled within slices of four hours as a server would see them."""
    rng = np.random.default_rng(1)
    names = pa.array([f"{10 + number // 2500}_{1000 + number}" for number in range(PERSONS)])
    fields = [("person", pa.string()), ("time", pa.timestamp("us")), ("lat", pa.float64()), ("lon", pa.float64())]
    with pq.ParquetWriter(path, pa.schema(fields)) as writer:
        for batch, first in enumerate(range(0, count, BATCH)):
            size = min(BATCH, count - first)
            second = batch * 14_400 + rng.integers(0, 14_400, size)
            columns = {
                "person": names.take(pa.array(rng.integers(0, PERSONS, size))),
                "time": np.datetime64("2022-11-01", "us") + second.astype("timedelta64[s]"),
                "lat": (48 + rng.random(size)).round(6),
                "lon": (2 + rng.random(size)).round(6),
            }
            writer.write_table(pa.table(columns))


def measure(*command: str) -> tuple[float, float]:
    """Return the processor time of a process, and the most memory in GiB that it has taken."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description="GNSS points to trips, against one DuckDB sort of the same file.")
    parser.add_argument("--points", type=float, default=2e7)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        points, trips, ordered = (Path(folder) / f"{name}.parquet" for name in ("points", "trips", "ordered"))
        make_points(int(options.points), points)
        sort, cut = [], []
        for _ in range(options.rounds):
            sort.append(measure("-c", SORT, str(points), str(Path(folder) / "sort"), str(ordered)))
            cut.append(measure("-m", "odkanon", "trips", str(points), "-o", str(trips), "--force"))
        seconds = {"sort": min(took for took, _ in sort), "trips": min(took for took, _ in cut)}
        result = {
            "points": int(options.points),
            "trips": pq.read_metadata(trips).num_rows,
            "seconds": {name: round(took, 2) for name, took in seconds.items()},
            "in_sorts": round(seconds["trips"] / seconds["sort"], 2),
            "peak_gib": round(max(peak for _, peak in cut), 2),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
