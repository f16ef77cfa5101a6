"""What the command line meets outside: consoles, missing packages, environments that are not on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.runner import odkanon
from odkanon.cli.demo import command_name

BLOCKED = "import sys; sys.modules['{}'] = None; sys.argv[0] = 'odkanon'; from odkanon.cli import main; main()"
TRIPS = "start_lat,start_lon,end_lat,end_lon\n" + "48.85,2.35,48.86,2.34\n" * 12


def test_a_path_that_the_console_cannot_encode(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text(TRIPS)
    command = [sys.executable, "-m", "odkanon", "anonymize", "trips.csv", "-o", "données-東京", "--k", "5"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"donn\\xe9es" in done.stdout
    assert (tmp_path / "données-東京" / "release.json").is_file()


def test_comparing_k_without_matplotlib_says_so_before_it_works(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text(TRIPS)
    command = [sys.executable, "-c", BLOCKED.format("matplotlib"), "compare", "trips.csv", "-o", "cost.png"]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "odkanon[plot]" in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["trips.csv"]


def test_exports_without_an_extra_are_no_refusal_for_privacy(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text(TRIPS)
    assert odkanon("anonymize", "trips.csv", "-o", "release", "--k", 5, cwd=tmp_path).returncode == 0
    command = [sys.executable, "-c", BLOCKED.format("pyogrio"), "export", "release", "--to", "gpkg", "-o", "out.gpkg"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "odkanon[geo]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_names_a_command_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = odkanon("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = done.stdout.replace("\n", " ").partition("your own trips: ")[2].partition(" anonymize")[0].strip()
    assert shutil.which(command.split()[0], path=None) or (tmp_path / command.split()[0]).is_file()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert command_name() == f"{sys.executable} -m odkanon"
    beside = tmp_path / ".venv" / "bin" / ("odkanon.exe" if os.name == "nt" else "odkanon")
    beside.parent.mkdir(parents=True)
    beside.touch()
    assert command_name() == str(beside.relative_to(tmp_path))
