"""Cost against size: from a dataset of generated trips to a saved release, beside one group-by of the same files.

Each run is a process of its own, so that its processor time and its peak of memory are its own too. Two group-bys are
the measure: ``cells`` puts the trips on H3 cells and counts pairs, as any route to OD pairs must; ``grid`` rounds
coordinates to a thousandth of a degree, which DuckDB does without leaving its own code.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

LIMIT = "7GiB"
"""What ODkAnon is told to use, so that the process stays within 8 GiB."""


def release(source: str, target: str, engine: str, method: str) -> dict[str, Any]:
    from odkanon import Rule, read_trips
    from odkanon.engine.dispatch import load, parse_bytes
    from odkanon.methods.method_registry import anonymize
    from odkanon.read.input_spec import InputSpec
    from odkanon.read.od_matrix import build_od

    if engine == "memory":
        od: Any = build_od(read_trips(source))
    else:
        od = load(InputSpec(source), engine="duckdb", memory_limit=parse_bytes(LIMIT))
    made = anonymize(od, Rule(trips=10), method=method)
    made.save(Path(target) / "release")
    zones = [len(made.origins), len(made.destinations)]
    return {"pairs": od.summary.pairs, "classes": len(made.classes), "zones": zones}


def group_by(source: str, target: str, how: str) -> dict[str, Any]:
    import pyarrow as pa

    from odkanon.engine.duckdb.backend import DuckDb
    from odkanon.engine.sql.cell_workers import Placement, place_batches, worker_count
    from odkanon.read.tables.datasets import dataset_files
    from odkanon.read.tables.open_table import open_table
    from odkanon.zoning.point_location import CellFinder

    backend = DuckDb(memory_limit=7 * 2**30, scratch=Path(target))
    files = ", ".join(f"'{file}'" for file in dataset_files(source) or [Path(source)])
    if how == "grid":
        ends = [f"round({end}_{axis}, 3) AS {end}_{axis}" for end in ("start", "end") for axis in ("lat", "lon")]
        counted = "count(*) AS trips, sum(weight) AS weight"
        sql = f"SELECT {', '.join(ends)}, {counted} FROM read_parquet([{files}]) GROUP BY 1, 2, 3, 4"
        return {"pairs": backend.materialise("pairs", sql)}
    table = open_table(source)
    columns = "start_lat, start_lon, end_lat, end_lon, CAST(weight * 1e9 AS BIGINT) AS weight, 0 AS reason"
    trips = table.connection.execute(f"SELECT count(*) FROM {table.scan}").fetchall()[0][0]
    reader = table.connection.sql(f"SELECT {columns} FROM {table.scan}").to_arrow_reader(500_000)
    placement = Placement(CellFinder(10))
    batches = place_batches(reader, placement, worker_count(trips))
    sample = placement(pa.RecordBatch.from_pylist([], schema=reader.schema))
    backend.connection.register("trips", pa.RecordBatchReader.from_batches(sample.schema, batches))
    rows = backend.materialise(
        "pairs", "SELECT origin, destination, count(*) AS trips, sum(weight) AS weight FROM trips GROUP BY 1, 2"
    )
    return {"pairs": rows}


def resident(process: int) -> int:
    """Return the bytes that a process and its children hold."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if str(process) in (fields["Pid"].strip(), fields["PPid"].strip()) and "VmRSS" in fields:
            total += int(fields["VmRSS"].split()[0]) * 1024
    return total


def work(job: str, source: str, how: str) -> None:
    """Do one job in this process, and print what it took."""
    peak = 0

    def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, resident(os.getpid()))
            time.sleep(0.2)

    threading.Thread(target=watch, daemon=True).start()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as target:
        found = group_by(source, target, how) if job == "group-by" else release(source, target, how, job)
    wall = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(part.ru_utime + part.ru_stime for part in used)
    print(json.dumps({**found, "wall": round(wall, 2), "cpu": round(cpu, 2), "gib": round(peak / 2**30, 2)}))


def measured(job: str, source: Path, how: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--work", job, str(source), how]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def fit(rows: list[dict[str, Any]]) -> dict[str, float] | None:
    """Return the least-squares line of processor time against size, both as logarithms.

    Start-up outweighs the work on small inputs, so the line is that of a million trips and more; where there are not
    two such sizes, of the two largest.
    """
    large = [row for row in rows if row["trips"] >= 10**6]
    large = large if len(large) > 1 else rows[-2:]
    if len(large) < 2:
        return None
    x, y = ([math.log10(value) for value in values] for values in zip(*map(_size_and_cost, large), strict=True))
    slope, intercept = statistics.linear_regression(x, y)
    return {"slope": round(slope, 3), "intercept": round(intercept, 3), "from": large[0]["trips"]}


def _size_and_cost(row: dict[str, Any]) -> tuple[int, float]:
    return row["trips"], row["release"]["cpu"]


def run(sizes: list[int], folder: Path, *, engine: str = "duckdb") -> dict[str, Any]:
    """Measure every size; datasets that are not there yet are generated and removed again."""
    from odkanon.sample.crowd import write_crowd

    rows: list[dict[str, Any]] = []
    for size in sorted(sizes):
        source = folder / f"crowd-{size}"
        generated = not source.exists()
        if generated:
            write_crowd(size, source)
        row: dict[str, Any] = {
            "trips": size,
            "release": measured("odkanon", source, engine),
            "cascade": measured("cascade", source, engine),
            "cells": measured("group-by", source, "cells"),
            "grid": measured("group-by", source, "grid"),
        }
        for plain in ("cells", "grid"):
            row[f"cpu_in_group_bys_by_{plain}"] = round(row["release"]["cpu"] / row[plain]["cpu"], 2)
            row[f"wall_in_group_bys_by_{plain}"] = round(row["release"]["wall"] / row[plain]["wall"], 2)
        row["cascade_in_group_bys_by_cells"] = round(row["cascade"]["cpu"] / row["cells"]["cpu"], 2)
        row["cascade_in_odkanons"] = round(row["cascade"]["cpu"] / row["release"]["cpu"], 2)
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
        if generated:
            shutil.rmtree(source)
    return {"engine": engine, "rows": rows, "fit": fit(rows)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", nargs=3)
    parser.add_argument("--sizes", default="1e4,1e5,1e6,1e7")
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    if options.work:
        work(*options.work)
    else:
        sizes = [int(float(size)) for size in options.sizes.split(",")]
        print(json.dumps(run(sizes, options.folder, engine=options.engine), indent=2))
