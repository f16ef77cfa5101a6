"""The code in the README and in docs/ runs from the top, in an empty folder: Python blocks and ``odkanon`` commands.

That it runs is the point here, not the data: the sample is cut short, but where a page says what comes of all of it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.here import run
from odkanon import ReleaseWarning, make_survey
from odkanon.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TRIPS = 4_000
ON_ALL_OF_IT = ("differences.md",)
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name not in ON_ALL_OF_IT:
        cut_short(monkeypatch)
    run_code(page, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_code_runs_on_the_whole_sample(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_code(page, tmp_path, monkeypatch)


def run_code(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run what a page says, in a folder."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    warnings.simplefilter("ignore", ReleaseWarning)  # as they are explained on the page; pytest restores the filters
    for language, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(code, page.name, "exec"), names)
            continue
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["odkanon"]:
                assert run(*words[1:]) == 0, line


WRITTEN = re.compile(r"`(odkanon [a-z][^`]*)`|^(?: {4}|[\w./=|' -]*)?\b(odkanon (?!import)[a-z][^\n`]*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_written_exists(page: Path) -> None:
    """Also those that are not run, since their files are made up."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for inline, line in WRITTEN.findall(text):
        _, name, *words = (inline or line.partition(" #")[0]).split()
        assert name in commands, inline or line
        options = {option for each in commands[name].params for option in (*each.opts, *each.secondary_opts)}
        named = {word for word in words if re.fullmatch("--?[a-z][a-z-]*", word)}
        assert named <= options | {"--help", "--help-all"}, f"{inline or line}: no {named - options}"


def cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the first trips of the sample, wherever it is made."""
    whole = make_survey
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "odkanon" and vars(module).get("make_survey") is whole:
            monkeypatch.setattr(module, "make_survey", lambda seed=2025: whole(seed).slice(0, TRIPS))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_test_that_a_proof_names_exists_and_runs() -> None:
    named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8"))
    assert len(named) > 12
    for path, name in named:
        assert (ROOT / path).exists(), path
        if name:
            before, found, _ = (ROOT / path).read_text(encoding="utf-8").partition(f"def {name}(")
            assert found, name
            assert "slow" not in before.rpartition("\n\n")[2], f"{name} does not run with the others"


def test_names_in_the_glossary_are_in_the_code() -> None:
    rows = re.findall(r"^\| \*\*.*\|$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[3])}
    source = sorted((ROOT / "src" / "odkanon").rglob("*.py"))
    text = "\n".join(f"{path.stem}\n{path.parent.name}\n{path.read_text(encoding='utf-8')}" for path in source)
    words = set(re.findall(r"[\w-]+", text))
    options = {f"--{word.replace('_', '-')}" for word in words}
    assert len(rows) >= 40
    assert names <= words | options, f"renamed? bring docs/glossary.md up to date: {sorted(names - words - options)}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("tutorial-*.md")), ids=lambda page: page.name)
def test_tutorials_are_notebooks(page: Path) -> None:
    jupytext = pytest.importorskip("jupytext")
    cells = jupytext.read(page).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert code == [block.rstrip() for language, block in BLOCK.findall(page.read_text(encoding="utf-8")) if language]
    assert cells[0].source.startswith("# Tutorial")


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "ODKANON_DOCS_OUTPUT": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    methods = (tmp_path / "site" / "methods.html").read_text(encoding="utf-8")
    assert "<math" in methods
    assert "arithmatex" not in methods


def test_a_tutorial_shows_what_its_code_shows() -> None:
    pytest.importorskip("mkdocs")
    from docs_outputs import insert_outputs, run_blocks

    page, shown = run_blocks(
        "# T\n\n```python\nx = 1 < 2\nprint('a & b')\n```\n\n```python\nx\n```\n\n```python\ny = x\n```\n"
    )
    assert shown == ["<pre>a &amp; b\n</pre>", "<pre>True</pre>"]
    assert page.count("@@output-") == 2
    assert insert_outputs("<p>@@output-1@@</p>", shown) == '<div class="output"><pre>True</pre></div>'


def test_the_readme_names_both_commands_at_its_top() -> None:
    top = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:15]
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for target in ("demo", "test"):
        assert any(line.startswith(f"make {target} ") for line in top)
        assert target in targets
