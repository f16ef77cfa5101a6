"""The command line imports no more than it needs: most of the time of a small release is start-up."""

from __future__ import annotations

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
