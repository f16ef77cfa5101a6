"""The built page, for every test that needs one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from web.once import load, one_at_a_time

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def page_built() -> Path:
    """The built page, up to date with its sources."""
    script = ROOT / "scripts" / "build_web.py"
    with one_at_a_time("page"):
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the report page cannot be built here: {done.stderr.strip()[-300:]}")
    page: Path = load(script).PAGE
    return page
