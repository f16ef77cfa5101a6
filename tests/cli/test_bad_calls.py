"""A table of calls that go wrong, each with the exact message: ``bad_calls.txt``.

A message names what was wrong, repeats the value, and says what helps. After a change on purpose, read the new table:
``python tests/cli/test_bad_calls.py`` writes it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shlex
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from cli.here import run
from odkanon import OdkanonError, make_survey
from odkanon.cli import _with_option
from odkanon.core.sql import write_csv

TABLE = Path(__file__).with_name("bad_calls.txt")


def write_files(folder: Path) -> None:
    """Write what the calls read."""
    table = make_survey().slice(0, 300)
    write_csv(table, folder / "trips.csv")
    header, *lines = (folder / "trips.csv").read_text().splitlines()
    texts = {
        "empty.csv": "",
        "header.csv": header + "\n",
        "three.csv": "\n".join([header, *lines[:3]]) + "\n",
        "zeros.csv": "start_lat,start_lon,end_lat,end_lon\n" + "0,0,0,0\n" * 20,
        "two-dates.csv": "start_time,start_lat,start_lon,end_lat,end_lon\n"
        + "03/04/2024 08:00,48.85,2.35,48.86,2.36\n2024-04-05 08:00,48.85,2.35,48.86,2.36\n" * 10,
        "floats.csv": "origin,destination,trips\n" + "1.0,2.0,12\n2.5,1.0,12\n",
        "unnamed.csv": "a,b,c\n1,2,3\n",
        "zones.csv": "zone,town\n1,T\n2,T\n",
        "policy.toml": "[rule]\ntrips = 10\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "taken").mkdir()
    (folder / "taken" / "letter.txt").write_text("Dear all,\n", encoding="utf-8")


def read_table() -> list[tuple[str, str]]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [(call.removeprefix("$ odkanon "), said) for call, said in zip(lines[::2], lines[1::2], strict=True)]


def message(call: str) -> str:
    """Return what a call says before it ends."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = run(*shlex.split(call))
        except OdkanonError as error:
            return f"error: {_with_option(str(error), error.option)}"
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            return f"usage: {error.format_message()}"
        return f"ended with {code}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calls")
    write_files(path)
    return path


def test_there_are_some_sixty() -> None:
    assert len({call for call, _ in read_table()}) >= 60


@pytest.mark.parametrize(("call", "said"), read_table(), ids=lambda text: text[:60])
def test_each_says_exactly_this(call: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    assert message(call) == said
    assert sorted(path.name for path in folder.iterdir()) == before, "nothing is written"


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    calls = [call for call, _ in read_table()]
    with TemporaryDirectory() as place:
        os.chdir(place)
        write_files(Path(place))
        table = []
        for each in calls:
            table.append(f"$ odkanon {each}\n{message(each)}\n")
            shutil.rmtree("r", ignore_errors=True)
    TABLE.write_text("".join(table), encoding="utf-8")
