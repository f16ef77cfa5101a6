"""How often `anonymize` crosses from one folder of the package into another: a reader of a trace jumps as often."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

import odkanon

SOURCE = Path(odkanon.__file__).parent
MOST_CROSSINGS = 708 // 3
"""Calls that change the folder, for 4,000 trips of persons and ODkAnon; it was over 708 before folders were layers."""


def folder_of(file: str) -> str | None:
    path = Path(file)
    return path.parent.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else None


def crossings(trips: object) -> int:
    folders: dict[str, str | None] = {}
    stack: list[str | None] = [None]
    found = 0

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal found
        if event == "call":
            file = frame.f_code.co_filename
            if file not in folders:
                folders[file] = folder_of(file)
            folder, before = folders[file], stack[-1]
            found += folder is not None and before is not None and folder != before
            stack.append(before if folder is None else folder)
        elif event == "return" and len(stack) > 1:
            stack.pop()

    sys.setprofile(watch)
    try:
        odkanon.anonymize(trips, resolution=8, method="odkanon")
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.filterwarnings("ignore::odkanon.errors.ReleaseWarning")
def test_anonymize_seldom_crosses_folders() -> None:
    trips = odkanon.make_survey().slice(0, 4_000)
    crossings(trips)  # the first run also fills what is kept between runs
    assert 0 < crossings(trips) <= MOST_CROSSINGS
