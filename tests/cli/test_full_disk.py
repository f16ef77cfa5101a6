"""A disk that is full in the middle of a file: the earlier file of that name is still there, whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.here import run
from odkanon.core import sql as tables
from odkanon.errors import InputError
from odkanon.sample.survey import make_survey
from odkanon.study import method_comparison


def half(number: int) -> Callable[..., None]:
    """Return what writes half a file, whose path is one of its arguments, and then finds the disk full."""

    def write(*arguments: Any, **options: Any) -> None:
        Path(arguments[number]).write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return write


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "trips.csv"
    tables.write_csv(make_survey().slice(0, 1500), path)
    run("anonymize", path, "-o", path.with_name("release"), "--resolution", 7)
    return path


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("report {release} --picture {out}/new.png --force", "new.png"),
        ("compare {trips} --resolution 6 --k 5 --methods oigh -o {out}/new.png --force", "new.png"),
        ("compare {trips} --resolution 6 --k 5 --methods oigh -o {out}/new.png --force", "new.csv"),
        ("explain {release} --trips {trips} --resolution 7 -o {out}/new.html --force", "new.csv"),
        ("compare {trips} --resolution 6 --methods oigh -o {out} --force", "tables.csv"),
    ],
)
def test_the_earlier_file_stays(
    tmp_path: Path, trips: Path, command: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / written).write_text("earlier")
    (tmp_path / "runs.jsonl").write_text("")
    if written.endswith(".png"):
        monkeypatch.setattr(pytest.importorskip("matplotlib.figure").Figure, "savefig", half(1))
    else:
        for module in (tables, method_comparison):  # imported before, so that none keeps the patched function
            monkeypatch.setattr(module, "write_csv", half(1))
    words = command.format(release=trips.with_name("release"), trips=trips, out=tmp_path).split()
    with pytest.raises(InputError, match="no disk space left"):
        run(*words)
    assert (tmp_path / written).read_text() == "earlier"
    assert not list(tmp_path.glob(".*"))
