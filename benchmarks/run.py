"""Every benchmark, one after the other: ``make bench``. Prints JSON, and draws cost against size.

Parts: (a) ODkAnon beside the naive version and a plain group-by, (b) cost against size and (d) memory, (c) peers from
PyPI where they are installed. Numbers to compare are ratios within one run; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def machine() -> dict[str, Any]:
    names = ("odkanon", "duckdb", "numpy", "pyarrow", "h3ronpy", "pyspark", "anonypy", "anjana", "pycanon")
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform(), **found}


def script(name: str, *arguments: str) -> Any:
    """Run a benchmark of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, str(HERE / name), *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        return done.stdout.splitlines()


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw cost against size, both as logarithms, where matplotlib is installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(figsize=(6, 4))
    sizes = [row["trips"] for row in result["rows"]]
    for name, label in (("release", "trips to saved release"), ("cells", "one group-by into OD pairs")):
        axes.loglog(sizes, [row[name]["cpu"] for row in result["rows"]], marker="o", label=label)
    axes.set_xlabel("trips")
    axes.set_ylabel("processor seconds")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1e4,1e5,1e6,1e7", help="trips of part (b); 1e8 takes 10 GB of disk")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--picture", type=Path, default=None)
    options = parser.parse_args()
    result = {
        "machine": machine(),
        "odkanon": script("bench_odkanon.py"),
        "scale": script("bench_scale.py", "--sizes", options.sizes, "--folder", str(options.folder)),
        "peers": script("bench_methods.py"),
    }
    if options.picture is not None:
        draw(result["scale"], options.picture)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
