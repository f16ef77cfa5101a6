"""Runs the command as a user would, in a process of its own.

Starting Python and importing what the command needs takes longer than most of what the tests ask of it. So the
processes come from one that has imported it already; tests about starting itself use `started` (or a shell).
"""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from pkgutil import walk_packages
from subprocess import CompletedProcess
from typing import Any

import odkanon as odkanon_package
from odkanon import read_recipe
from odkanon.errors import UNEXPECTED

IMPORTED = [
    "duckdb",
    "encodings.utf_8_sig",
    "importlib.resources.readers",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "scipy.sparse",
    "typer._adapters",
    "typer.rich_utils",
    *(module.name for module in walk_packages(odkanon_package.__path__, "odkanon.") if "__main__" not in module.name),
    "tests.cli.warm",
]
"""What is imported before a command is run: all of the package, and what libraries import when they need it."""

SECONDS = 300


def started(*arguments: object, cwd: Path | None = None) -> CompletedProcess[str]:
    """Start Python anew and run the command in it."""
    command = [sys.executable, "-m", "odkanon", *map(str, arguments)]
    return _without_traceback(
        subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=SECONDS, check=False)
    )


def odkanon(*arguments: object, cwd: Path | None = None) -> CompletedProcess[str]:
    """Run the command in a process that has imported it already, where the system can copy processes."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return started(*arguments, cwd=cwd)
    words = list(map(str, arguments))
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(IMPORTED)
    with tempfile.TemporaryDirectory() as folder:
        written = [Path(folder, name) for name in ("stdout", "stderr")]
        process = processes.Process(target=_command, args=(words, cwd or Path.cwd(), dict(os.environ), written))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(words, SECONDS)
        said = [path.read_text(encoding="utf-8") for path in written]
    return _without_traceback(CompletedProcess(words, process.exitcode, *said))


def _command(words: list[str], cwd: Path, environment: dict[str, str], written: list[Path]) -> None:
    """Be the command: in this folder and environment, with nothing to read and files to write to."""
    from odkanon.cli import program

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path in enumerate(written, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "w"), encoding="utf-8") for number in (1, 2))
    sys.argv[:] = ["odkanon", *words]
    try:
        program()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _without_traceback(done: CompletedProcess[str]) -> CompletedProcess[str]:
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    assert UNEXPECTED not in done.stderr, done.stderr
    return done


def output(done: CompletedProcess[str]) -> str:
    """Return all that was printed, without the line breaks of the terminal's width."""
    return " ".join((done.stdout + done.stderr).replace("│", " ").split())


def told(folder: Path) -> dict[str, Any]:
    """Return all that the recipe beside a release says about it."""
    recipe = read_recipe(folder)
    assert recipe is not None
    about: dict[str, Any] = recipe["about"]
    return about
