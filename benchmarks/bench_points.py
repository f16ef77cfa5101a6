"""GNSS points to trips, against one DuckDB sort of the same file under the same memory limit.

    python benchmarks/bench_points.py --points 20000000

Prints seconds and peak memory of both, each in a process of its own, in turn, and the ratio of the best of each.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odkanon.points import MEMORY

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
    """Return the seconds of a process, and the most memory in GiB that any process has taken so far."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description="GNSS points to trips, against one DuckDB sort of the same file.")
    parser.add_argument("--points", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        points, trips, ordered = (Path(folder) / f"{name}.parquet" for name in ("points", "trips", "ordered"))
        make_points(options.points, points)
        sort, cut = [], []
        for _ in range(options.rounds):
            sort.append(measure("-c", SORT, str(points), str(Path(folder) / "sort"), str(ordered)))
            cut.append(measure("-m", "odkanon", "trips", str(points), "-o", str(trips), "--force"))
            print(
                f"sort {sort[-1][0]:6.1f} s   trips {cut[-1][0]:6.1f} s   peak so far {cut[-1][1]:.2f} GiB", flush=True
            )
        ratio = min(seconds for seconds, _ in cut) / min(seconds for seconds, _ in sort)
        print(f"{options.points:,} points to {pq.read_metadata(trips).num_rows:,} trips: {ratio:.2f} times one sort")


if __name__ == "__main__":
    main()
