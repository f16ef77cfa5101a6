"""Doors that a file beside the data, a curious neighbour on the machine or an accident could open."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import webbrowser
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import numpy as np
import pytest

from cli.runner import output, started
from odkanon import Rule
from odkanon.core.system import HOME, start_python
from odkanon.engine.sql.cell_workers import _workers
from odkanon.explore import open_in_browser
from odkanon.explore.worker_process import WorkerProcess
from odkanon.methods.method_registry import anonymize
from worlds.matrices import golden_od

TRAPPED = ("numpy", "pyarrow", "duckdb", "h3ronpy", "odkanon", "json")


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, and with files that leave a mark when they are imported; work is done inside it."""
    for name in TRAPPED:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'a').write('{name} ')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sprung"


def test_the_trap_springs_for_a_child_that_is_not_isolated(trap: Path) -> None:
    subprocess.run([sys.executable, "-c", "import numpy"], check=True, env={**os.environ, "PYTHONPATH": HOME})
    assert trap.read_text() == "numpy "


def test_helpers_import_nothing_from_the_folder_of_the_data(trap: Path) -> None:
    with _workers(1) as pool:
        pool[0].ask([np.array([48.85])] * 4, 10)
        assert pool[0].answer()[0].dtype == np.int64
    assert not trap.exists()


def test_the_explorer_s_worker_imports_nothing_from_the_folder_of_the_data(trap: Path) -> None:
    od, rule = golden_od("tiny"), Rule(trips=5)
    worker = WorkerProcess()
    release = worker.run(anonymize, od, rule, method="oigh")
    worker.stop()
    assert release.classes.trips.tolist() == anonymize(od, rule, method="oigh").classes.trips.tolist()
    assert not trap.exists()


def test_the_command_imports_nothing_from_the_folder_of_the_data(trap: Path, tmp_path: Path) -> None:
    (tmp_path / "json.py").unlink()  # Python itself looks here before any line of ours runs
    (tmp_path / "odkanon.py").unlink()
    done = started("export", "nothing", "--to", "omx", "-o", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert not trap.exists()


def test_children_find_the_package_wherever_this_process_found_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HOME)
    monkeypatch.setattr(sys, "path", ["", *(entry for entry in sys.path if entry != HOME)])
    child = start_python("import odkanon; print(odkanon.__file__)")
    with child:
        assert child.communicate()[0].decode().strip().startswith(HOME)
    assert child.returncode == 0


def test_the_browser_s_command_line_does_not_tell_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def look(url: str) -> bool:
        told.append(url)
        page = Path(url2pathname(urlparse(url).path))
        assert "http://127.0.0.1:1234/secret/" in page.read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        return True

    monkeypatch.setattr(webbrowser, "open", look)
    with open_in_browser("http://127.0.0.1:1234/secret/"):
        assert "secret" not in told[0]
    assert not Path(url2pathname(urlparse(told[0]).path)).parent.exists()


CRASH = """
import sys
from odkanon import cli
from odkanon.publish.export import formats

def crash(*args, **kwargs):
    persons = ["Ada Lovelace", 48.8566]
    raise ZeroDivisionError

formats.export_release = crash
sys.argv = ["odkanon", "export", "x", "--to", "omx", "-o", "y"]
cli.main()
"""


def test_a_traceback_prints_no_values() -> None:
    environment = {**os.environ, "PYTHONPATH": HOME, "COLUMNS": "200"}
    done = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, env=environment, check=False)
    assert "this was not expected: ZeroDivisionError at odkanon.cli.export:" in done.stderr
    assert done.returncode == 2, "1 would say that something was refused"
    assert "Traceback" not in done.stderr
    assert "Ada" not in done.stderr + done.stdout
    environment["ODKANON_TRACEBACK"] = "1"
    done = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, env=environment, check=False)
    assert "line " in done.stderr
    assert "Ada" not in done.stderr + done.stdout
    from odkanon.cli import app

    # Versions of typer before 0.23 print values unless told not to.
    assert not app.pretty_exceptions_show_locals
    assert not app.pretty_exceptions_enable


def test_exports_without_an_extra_say_what_to_install(tmp_path: Path) -> None:
    anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "pyogrio.py").write_text("raise ModuleNotFoundError('no pyogrio', name='pyogrio')\n")
    command = [sys.executable, "-m", "odkanon", "export", "release", "--to", "gpkg", "-o", "out.gpkg"]
    environment = {**os.environ, "PYTHONPATH": f"{hidden}{os.pathsep}{HOME}"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 2, done
    assert "pip install 'odkanon[geo]'" in output(done)
    assert "Traceback" not in output(done)
