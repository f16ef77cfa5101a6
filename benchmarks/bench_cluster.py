"""A Spark cluster on this machine beside DuckDB, and what a driver needs for many places.

python benchmarks/bench_cluster.py [--sizes 2e5,2e6] [--workers 1,2,4]
python benchmarks/bench_cluster.py --leaves 1e7

Each worker has one core; with more workers than cores they share them. Times are of the whole command, in seconds of a
clock, and `in_duckdb` is how many times as long as with DuckDB. `--leaves` runs DuckDB on as many trips that begin and
end in so many different cells, and again on trips between few: what the first takes more is for the places.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

FEW = 100_000
MEMORY_LIMIT = "4GiB"


def timed(source: Path, target: Path, *more: str) -> dict[str, float]:
    """Return the seconds of a command by the clock, and the memory of its largest process."""
    command = [sys.executable, "-m", "odkanon", "anonymize", str(source), "-o", str(target), *more]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT / "src")}
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(said.decode())
    cpu = used.ru_utime + used.ru_stime
    return {"wall": time.monotonic() - begin, "cpu": cpu, "gib": used.ru_maxrss / 2**20}


def clusters(sizes: list[int], workers: list[int], folder: Path) -> list[dict[str, Any]]:
    """Run every size in DuckDB and on every cluster; files have to be the same."""
    from odkanon.sample.crowd import write_crowd
    from outside.standalone import standalone

    rows = []
    for size in sizes:
        source, reference = write_crowd(size, folder / f"crowd-{size}"), folder / f"duckdb-{size}"
        row: dict[str, Any] = {"trips": size, "duckdb": timed(source, reference, "--engine", "duckdb")}
        for many in workers:
            logs, target = folder / f"cluster-{size}-{many}", folder / f"spark-{size}-{many}"
            logs.mkdir()
            with standalone(logs, many, memory="2g") as cluster:
                spent = timed(source, target, "--spark-master", cluster.master)
            same = all(
                (target / name).read_bytes() == (reference / name).read_bytes()
                for name in ("classes.csv", "zones.geojson")
            )
            row[f"spark-{many}"] = {**spent, "in_duckdb": spent["wall"] / row["duckdb"]["wall"], "same": same}
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def places(leaves: int, folder: Path) -> dict[str, Any]:
    """Return what a run takes on trips between many places, and on as many trips between few."""
    rows: dict[str, Any] = {"leaves": leaves}
    for name, side in (("many", 20.0), ("few", 20.0 * (FEW / leaves) ** 0.5 / 10)):
        source = write_scattered(leaves, side, folder / f"{name}.parquet")
        rows[name] = timed(source, folder / name, "--engine", "duckdb", "--memory-limit", MEMORY_LIMIT)
    rows["gib_for_places"] = rows["many"]["gib"] - rows["few"]["gib"]
    return rows


def write_scattered(trips: int, side: float, path: Path) -> Path:
    """Write trips whose ends lie anywhere in a square of degrees in Europe."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    south_west = {"start_lat": 40.0, "start_lon": 0.0, "end_lat": 40.0, "end_lon": 0.0}
    columns = {name: low + side * random.random(trips) for name, low in south_west.items()}
    pq.write_table(pa.table(columns), path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2e5,2e6")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--leaves", type=float)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if options.leaves:
            found: Any = places(int(options.leaves), Path(made))
        else:
            asked = [int(float(size)) for size in options.sizes.split(",")]
            found = clusters(asked, [int(each) for each in options.workers.split(",")], Path(made))
    print(json.dumps(found, indent=2))
