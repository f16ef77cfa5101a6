"""Run the same commands from two checkouts in one environment and compare every byte that they write.

``frozen_bytes.py BEFORE AFTER [INPUT ...]`` takes two checkouts and, if given, further inputs. Recipes are compared by
their keys, since they hold times and paths; everything else byte for byte, and exit codes. ``--digests FILE`` writes
the digests of the text files of the small cases instead, for ``tests/frozen``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from frozen.cases import GIVEN, GOLDEN, LARGE, SMALL, lines  # noqa: E402

BINARY = re.compile(rb'"[0-9a-f]{64}"|"bytes": \d+|sha256:[0-9a-f]{64}')
"""Digests and sizes of Parquet files and pages, which change with versions of libraries."""

SECONDS = re.compile(
    rb'(?<="seconds": )[\d.e-]+'  # JSON
    rb"|(?<=,)0\.\d{12,}(?=,[\d.]+,\d+,)"  # tables.csv, before the smallest class
    rb"|(?<=[|&] )[\d.,]+(?= (?:\||\\\\)$)",  # the last cell of a row in Markdown and LaTeX
    re.MULTILINE,
)
"""Measured times."""

TEXT = {".csv", ".json", ".geojson", ".txt"}
CASES = ("tiny", "turin-3k", "few-destinations", "paris-28k")


def run_cases(checkout: Path, folder: Path, commands: Iterable[str]) -> dict[str, int]:
    """Run commands one after the other with the code of a checkout; return the exit code of each."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "COLUMNS": "200"}
    codes = {}
    for command in commands:
        words = [sys.executable, "-m", "odkanon", *shlex.split(command)]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False)
        codes[command] = done.returncode
    return codes


def _is_exact(path: Path) -> bool:
    """Return whether a file is text that is the same with all libraries and on all machines.

    Estimates are sums of floating-point numbers, and what a recipe counts of data on disk depends on the memory.
    """
    return path.suffix in TEXT and path.name != "matrix.csv" and not path.name.endswith("-duckdb.recipe.json")


def digests(folder: Path, *, text_only: bool = False) -> dict[str, str]:
    """Return a digest for each file below a folder; of a recipe, that of its keys."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "gnss" not in path.parts and (not text_only or _is_exact(path)):
            content = path.read_bytes()
            if path.name == "evidence.json" or path.parent.name == "compared":
                content = SECONDS.sub(b"", content)
            if path.name.endswith(".recipe.json"):
                content = json.dumps(_keys(json.loads(content))).encode()
            elif text_only and path.suffix == ".json":
                content = BINARY.sub(b"", content)
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    return found


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _keys(each) for key, each in sorted(value.items())}
    return [_keys(value[0])] if isinstance(value, list) and value else None


def all_commands(inputs: Iterable[Path], *, small: bool) -> list[str]:
    """Return every command to run."""
    golden = [line for case in CASES for line in lines(GOLDEN, case=case, golden=ROOT / "tests/golden")]
    given = [line for number, path in enumerate(inputs) for line in lines(GIVEN, number=number, path=path.resolve())]
    return lines(SMALL) if small else [*lines(SMALL), *golden, *given, *lines(LARGE)]


def main() -> int:
    """Compare two checkouts, or write the digests of one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkouts", nargs="+", type=Path, help="two checkouts, then further inputs")
    parser.add_argument("--small", action="store_true", help="leave out Spark, golden cases and evidence")
    parser.add_argument("--digests", type=Path, help="write the digests of the first checkout's text files here")
    asked = parser.parse_args()
    if asked.digests:
        with TemporaryDirectory() as folder:
            codes = run_cases(asked.checkouts[0].resolve(), Path(folder), lines(SMALL))
            failed = {command: code for command, code in codes.items() if code}
            found = {"exit_codes": failed, "files": digests(Path(folder), text_only=True)}
            asked.digests.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0
    before, after, *inputs = asked.checkouts
    commands = all_commands(inputs, small=asked.small)
    with TemporaryDirectory() as first, TemporaryDirectory() as second, ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(run_cases, checkout.resolve(), Path(folder), commands)
            for checkout, folder in ((before, first), (after, second))
        ]
        results = [run.result() for run in runs]
        files = [digests(Path(folder)) for folder in (first, second)]
    unlike = [
        f"exit code of {command}: {results[0][command]}, {results[1][command]}"
        for command in commands
        if results[0][command] != results[1][command]
    ]
    unlike += [name for name in sorted(files[0].keys() | files[1].keys()) if files[0].get(name) != files[1].get(name)]
    refused = sum(code != 0 for code in results[0].values())
    print(f"{len(commands)} commands ({refused} not 0), {len(files[0])} files; {len(unlike)} differ")
    print("\n".join(unlike))
    return int(bool(unlike))


if __name__ == "__main__":
    sys.exit(main())
