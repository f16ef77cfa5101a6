"""The text files of many commands are the same bytes as when their digests were taken.

Whoever changes bytes on purpose runs ``scripts/frozen_bytes.py . --digests tests/frozen/digests.json`` and says why in
the commit. Parquet files, pages and pictures depend on the versions of libraries; the script compares those between two
checkouts.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from frozen.cases import SMALL, lines

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def test_text_files_have_not_changed(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("frozen_bytes", ROOT / "scripts/frozen_bytes.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    codes = script.run_cases(ROOT, tmp_path, lines(SMALL))
    expected = json.loads((HERE / "digests.json").read_text(encoding="utf-8"))
    assert script.digests(tmp_path, text_only=True) == expected["files"]
    assert {command: code for command, code in codes.items() if code} == expected["exit_codes"]
