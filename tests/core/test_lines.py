"""Files that we write have the same bytes on every system: one place writes text, and it does not turn line ends."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from odkanon.core.atomic_write import write_text

SOURCE = Path(__file__).parents[2] / "src" / "odkanon"


def test_lines_end_alike_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "linesep", "\r\n")
    write_text(tmp_path / "lines.txt", "one\ntwo\n")
    assert (tmp_path / "lines.txt").read_bytes() == b"one\ntwo\n"
    with io.open(tmp_path / "naive.txt", "w", newline="\r\n") as file:  # noqa: UP020 - what Windows does by itself
        file.write("one\n")
    assert (tmp_path / "naive.txt").read_bytes() != b"one\n"


def test_no_other_place_writes_text() -> None:
    writes = re.compile(r"\.write_text\(|open\([^)]*[\"'][wa]t?[\"'](?![^)]*newline)")
    # A shell script, which only runs where lines end in \n; and parts of a zip archive, which are bytes.
    scripts = {"spark/backend.py", "export/plain_table.py"}
    for path in SOURCE.rglob("*.py"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("...")]
        found = [line for line in lines if writes.search(line)]
        if path.name != "atomic_write.py" and "/".join(path.parts[-2:]) not in scripts:
            assert not found, (path.name, found)
