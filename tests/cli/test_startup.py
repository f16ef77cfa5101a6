"""The command line imports no more than it needs: most of the time of a small release is start-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"
RUN = """
import sys
from odkanon.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
print(*sys.modules)
"""


ENDS = """
import atexit, sys, threading, time
sys.argv[0] = "odkanon"
from odkanon.cli import program
atexit.register(print, "the end")
{}
program()
"""
LATE = "threading.Thread(target=lambda: (time.sleep(0.5), print('late'))).start()"


def ended(more: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ENDS.format(more), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def imported(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_needs_none_of_the_libraries_that_do_the_work() -> None:
    assert not {"numpy", "pyarrow", "duckdb", "h3ronpy"} & imported("anonymize", "--help")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_release_needs_neither_pandas_nor_spark_nor_a_plotting_library(engine: str, tmp_path: Path) -> None:
    given = ["anonymize", str(GOLDEN / "tiny/od.csv"), "-o", str(tmp_path / "out"), "--k", "4", "--engine", engine]
    assert not {"pandas", "pyspark", "matplotlib", "shapely", "h5py"} & imported(*given)
    assert (tmp_path / "out/release.json").is_file()


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["anonymise"], 2), (["audit", "nowhere"], 2)])
def test_what_is_to_happen_at_the_end_happens_and_the_exit_code_stays(arguments: list[str], code: int) -> None:
    done = ended("", *arguments)
    assert done.returncode == code
    assert done.stdout.endswith("the end\n")  # it was flushed, though nothing else of Python was taken down
    assert bool(done.stderr) == bool(code)


def test_threads_are_waited_for() -> None:
    done = ended(LATE, "--version")
    *said, end = done.stdout.splitlines()
    assert (done.returncode, end) == (0, "the end")
    assert "late" in said


def test_whoever_measures_the_program_sees_its_end() -> None:
    command = [sys.executable, "-m", "cProfile", "-m", "odkanon", "--version"]
    assert "function calls" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
@pytest.mark.parametrize("words", [["--version"], ["audit", "nothing", "--json"]])
def test_output_that_cannot_be_written_is_no_success(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "odkanon", *words], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes output")
@pytest.mark.parametrize(("how", "code"), [("--version >&-", 0), ("audit nothing --json >&- 2>&-", 2)])
def test_nobody_listens(how: str, code: int) -> None:
    done = subprocess.run(f"'{sys.executable}' -m odkanon {how}", shell=True, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (code, b"")


def test_a_document_that_nobody_reads(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "odkanon", "audit", "nothing", "--json"]
    done = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
