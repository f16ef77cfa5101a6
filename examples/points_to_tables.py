"""From raw GNSS points to the paper's tables, in three commands.

Without FOLDER, the synthetic sample survey takes the place of NetMob25, whose data are restricted:

    python examples/points_to_tables.py -o tables
    python examples/points_to_tables.py path/to/netmob25 -o tables
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def odkanon(*arguments: object) -> None:
    """Run a command as on a terminal, and stop if it fails."""
    told = [str(argument) for argument in arguments]
    print("$ odkanon", *told, flush=True)
    subprocess.run([sys.executable, "-m", "odkanon", *told], check=True)


def main() -> None:
    """Make points if there are none, then trips, then tables."""
    parser = argparse.ArgumentParser(description="From raw GNSS points to the paper's tables.")
    parser.add_argument("folder", nargs="?", type=Path, help="NetMob25 folder; by default the sample survey")
    parser.add_argument("-o", "--output", type=Path, default=Path("tables"), help="folder for trips and tables")
    parser.add_argument("--quick", action="store_true", help="ODkAnon on the whole survey only, without segments")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    folder, trips = options.folder, options.output / "trips.parquet"
    if folder is None:
        folder = options.output / "survey"
        odkanon("sample", "--as", "netmob25", "-o", folder, "--force")
    odkanon("trips", folder, "--layout", "netmob25", "-o", trips, "--force")
    scope = ["--methods", "odkanon"] if options.quick else ["--all-segments"]
    odkanon("compare", trips, "-o", options.output / "tables", "--within", "paris-centre", *scope)


if __name__ == "__main__":
    main()
