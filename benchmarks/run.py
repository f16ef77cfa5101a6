"""Every benchmark, one after the other: ``make bench``. Keeps a JSON of the run, and draws cost against size.

Parts: (a) ODkAnon beside the naive version and a plain group-by, (b) cost against size and (d) memory, (c) peers from
PyPI where they are installed, then each method, GNSS points and releases onto other zones. Numbers to compare are
ratios within one run; see docs/benchmarks.md. Nothing is installed: peers and matplotlib are used where they are there.
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
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from draw import draw_cost

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
    """Run a benchmark in a process of its own, and return what it prints; None if it fails, which it tells itself."""
    print(f"{name} {' '.join(arguments)}", file=sys.stderr, flush=True)
    command = [sys.executable, str(HERE / name), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes", default="1e4,1e5,1e6,1e7", help="trips of part (b); add 1e8 for a run that takes 10 GB of disk"
    )
    parser.add_argument("--points", default="2e7", help="GNSS points")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where generated trips go")
    parser.add_argument("--json", type=Path, default=Path("build/bench/run.json"), help="where the result is kept")
    parser.add_argument("--picture", type=Path, default=Path("build/bench/cost.png"), help=".png or .svg")
    options = parser.parse_args()
    result = {
        "machine": machine(),
        "odkanon": script("bench_odkanon.py"),
        "scale": script("bench_scale.py", "--sizes", options.sizes, "--folder", str(options.folder)),
        "methods": script("bench_methods.py"),
        "peers": script("bench_peers.py"),
        "points": script("bench_points.py", "--points", options.points),
        "onto": script("bench_onto.py"),
    }
    print(json.dumps(result, indent=2))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n")
    if find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed", file=sys.stderr)
    elif result["scale"] is not None:
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        draw_cost(result["scale"], options.picture)
    failed = [name for name, found in result.items() if found is None]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
