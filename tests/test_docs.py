"""The code in the README and in docs/ runs from the top, in an empty folder: Python blocks and ``odkanon`` commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from cli.runner import odkanon
from odkanon.read.tables.open import write_csv
from odkanon.sample.survey import make_survey

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    if not blocks:
        pytest.skip("no code on this page")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for language, code in blocks:
        if language == "python":
            exec(compile(code, page.name, "exec"), names)
            continue
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["odkanon"]:
                done = odkanon(*words[1:], cwd=tmp_path)
                assert done.returncode == 0, (line, done.stderr)
                if words[1] == "sample":
                    make_smaller()


def make_smaller() -> None:
    """Leave part of the sample, wherever a page has it written: the commands are the point here, not the data."""
    survey = make_survey().slice(0, 4_000)
    if Path("survey.csv").exists():
        write_csv(survey, Path("survey.csv"))
    if Path("survey.parquet").exists():
        pyarrow.parquet.write_table(survey, "survey.parquet")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("tutorial-*.md")), ids=lambda page: page.name)
def test_tutorials_are_notebooks(page: Path) -> None:
    jupytext = pytest.importorskip("jupytext")
    cells = jupytext.read(page).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert code == [block.rstrip() for language, block in BLOCK.findall(page.read_text(encoding="utf-8")) if language]
    assert cells[0].source.startswith("# Tutorial")


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    methods = (tmp_path / "site" / "methods.html").read_text(encoding="utf-8")
    assert "<math" in methods
    assert "arithmatex" not in methods
