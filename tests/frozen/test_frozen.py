"""The text files of many commands are the same bytes as when their digests were taken.

Whoever changes bytes on purpose runs ``scripts/frozen_bytes.py . --digests tests/frozen/digests.json`` and says why in
the commit. Parquet files, pages and pictures depend on the versions of libraries; the script compares those between two
checkouts.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from frozen.cases import SMALL, lines, quick

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.mark.parametrize("all_of_them", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_text_files_have_not_changed(all_of_them: bool, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("frozen_bytes", ROOT / "scripts/frozen_bytes.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    commands = lines(SMALL) if all_of_them else quick(lines(SMALL))
    codes = script.run_cases(ROOT, tmp_path, commands)
    expected = json.loads((HERE / "digests.json").read_text(encoding="utf-8"))
    files = script.digests(tmp_path, text_only=True)
    assert len(files) > 30
    assert files == {name: expected["files"].get(name) for name in (expected["files"] if all_of_them else files)}
    assert {command: code for command, code in codes.items() if code} == {
        command: code for command, code in expected["exit_codes"].items() if command in commands
    }
