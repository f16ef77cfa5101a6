"""Releases of many rows onto thousands of zones, against writing full matrices of that shape.

    python benchmarks/bench_onto.py --trips 3000000 --across 71

Each export goes to OMX in a process of its own, from the folder of the release to the file. Beside it, two full
matrices of random numbers (as there are of trips and weight) are written as OMX: what the file alone costs. Prints
processor time, its ratio to that, and the most memory that the export took.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from bench_points import measure

WRITE = """
import sys
from pathlib import Path
import numpy as np
from odkanon.publish.export.omx import write_matrices
size = int(sys.argv[2])
ends = np.repeat(np.arange(size), size), np.tile(np.arange(size), size)
random = np.random.default_rng(1)
cores = {name: np.rint(random.lognormal(-5, 2, size * size) * 1e6) / 1e6 for name in ("trips", "weight")}
if sys.argv[3] == "write":
    write_matrices(Path(sys.argv[1]), size, ends, cores, {"zone": np.arange(size)})
"""
"""Without the last argument it does the same but for the writing, so that the difference is the writing."""
RUNS = {"cascade": (10, 1), "odkanon": (3, 1), "mondrian": (3, 5)}
"""For each method k, and what part of the trips it gets, so that each has a hundred thousand rows and more."""


def squares(across: int) -> dict[str, Any]:
    """Return so many times so many squares over the sample's city as GeoJSON."""
    xs, ys = np.linspace(2.0, 2.8, across + 1).tolist(), np.linspace(48.6, 49.1, across + 1).tolist()
    corners = [(i, j) for i in range(across) for j in range(across)]
    rings = [[(xs[i + a], ys[j + b]) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))] for i, j in corners]
    features = [
        {"type": "Feature", "properties": {"CODE": code + 1}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for code, ring in enumerate(rings)
    ]
    return {"type": "FeatureCollection", "features": features}


def main() -> None:
    parser = argparse.ArgumentParser(description="Releases onto thousands of zones, against writing full matrices.")
    parser.add_argument("--trips", type=float, default=3e6)
    parser.add_argument("--across", type=int, default=71, help="squares along each side")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "zones.geojson").write_text(json.dumps(squares(options.across)))
        size = str(options.across**2 + 1)
        made, written = (measure("-c", WRITE, str(folder / "full.omx"), size, how)[0] for how in ("make", "write"))
        found = {}
        for method, (k, part) in RUNS.items():
            trips = folder / f"trips-{part}"
            if not trips.exists():
                odkanon("sample", "--trips", int(options.trips) // part, "-o", trips)
            how = ["--method", method, "--k", str(k), "--engine", "duckdb", "--quiet"]
            odkanon("anonymize", trips, "-o", folder / method, *how)
            onto = ["--onto", folder / "zones.geojson", "--id", "CODE", "--to", "omx", "-o", folder / f"{method}.omx"]
            command = ["-m", "odkanon", "export", folder / method, *onto]
            took, peak = measure(*map(str, command))
            found[method] = {
                "rows": pq.read_metadata(folder / method / "classes.parquet").num_rows,
                "seconds": round(took, 1),
                "in_writes": round(took / (written - made), 2),
                "peak_gib": round(peak, 2),
            }
        print(json.dumps({"zones": options.across**2, "write_seconds": round(written - made, 1), **found}, indent=2))


def odkanon(*arguments: str | Path | int) -> None:
    """Run a command of the program."""
    command = [sys.executable, "-m", "odkanon", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
