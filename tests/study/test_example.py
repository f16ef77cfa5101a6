"""The script in examples/ leads from raw points to tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odkanon.sample.gnss_points import write_netmob25
from odkanon.sample.survey import make_survey

SCRIPT = Path(__file__).parents[2] / "examples" / "points_to_tables.py"


@pytest.mark.slow
def test_from_points_to_tables(tmp_path: Path) -> None:
    write_netmob25(make_survey().slice(0, 8_000), tmp_path / "survey")
    command = [sys.executable, str(SCRIPT), "survey", "-o", "out", "--quick"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "8,000 trips" in done.stdout
    assert "ODkAnon" in (tmp_path / "out" / "tables" / "tables.md").read_text(encoding="utf-8")
