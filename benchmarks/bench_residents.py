"""Residents by place and attributes: the shape of a public thread about sdcTable (sdcTools/UserSupport 146).

There, 650,000 aggregated rows of 3,000 places in three tiers x 10 x 2 x 75 x 10 values were not protected after 48
hours, or needed more than 100 GB. Here the same shape is drawn at random, and published with every file.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

ROWS, PLACES, VALUES = 650_000, 3_000, {"v2": 10, "v3": 2, "v4": 75, "v5": 10}
HIERARCHY = {"municipality": 1, "district": 15, "county": 150}


def draw(rows: int, seed: int = 0) -> pa.Table:
    """Return distinct combinations with their number of residents; few places and values have most of them."""
    random = np.random.default_rng(seed)
    sizes = [PLACES, *VALUES.values()]
    shares = [random.lognormal(0, 1.2, PLACES), *(1 / np.arange(1, size + 1) for size in VALUES.values())]
    key = np.zeros(0, dtype=np.int64)
    while len(key) < rows:
        more = [random.choice(size, rows, p=share / share.sum()) for size, share in zip(sizes, shares, strict=True)]
        key = np.unique(np.concatenate([key, np.ravel_multi_index(more, sizes)]))
    codes = np.unravel_index(random.permutation(key)[:rows], sizes)
    names = [np.char.add(letter, code.astype(np.str_)) for letter, code in zip("mabcd", codes, strict=True)]
    residents = random.geometric(0.25, rows)
    return pa.table(dict(zip(["home", *VALUES], names, strict=True)) | {"residents": residents})


def zones() -> pa.Table:
    """Return the three tiers of places."""
    numbers = np.arange(PLACES)
    return pa.table({name: np.char.add(name[0], (numbers // of).astype(np.str_)) for name, of in HIERARCHY.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=ROWS)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pyarrow.parquet.write_table(draw(int(options.rows)), folder / "residents.parquet")
        pyarrow.parquet.write_table(zones(), folder / "zones.parquet")
        for engine in ("memory", "duckdb"):
            command = [sys.executable, "-m", "odkanon", "anonymize", str(folder / "residents.parquet"), "--quiet"]
            command += ["--place", "home", "--unit", "residents", "--hierarchy", str(folder / "zones.parquet")]
            command += [word for value in VALUES for word in ("--by", value)]
            begin = time.perf_counter()
            subprocess.run([*command, "--engine", engine, "-o", str(folder / engine / "table")], check=True)
            seconds = time.perf_counter() - begin
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            about = json.loads((folder / engine / "table" / "release.json").read_text())["published"]
            results.append({"engine": engine, "seconds": round(seconds, 1), "MiB at most": peak >> 10, **about})
        same = all(
            path.read_bytes() == (folder / "duckdb" / "table" / path.name).read_bytes()
            for path in (folder / "memory" / "table").iterdir()
        )
    print(json.dumps({"rows": int(options.rows), "runs": results, "same bytes": same}, indent=2))


if __name__ == "__main__":
    main()
