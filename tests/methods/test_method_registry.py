"""Each method is described once: what the docs, the command line and the tables say of it comes from there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow.parquet as pq
import pytest

from odkanon import Method, Release, Rule, make_survey, register_method
from odkanon.errors import InputError, InvalidValueError, UnsafeReleaseError
from odkanon.methods import METHODS
from odkanon.methods.method_registry import anonymize, counting_methods, describe_methods, words_for
from odkanon.study.experiment import PAPER_ROWS, all_rows, find_row, method_rows
from worlds.towns import people, town

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_docs_says_what_the_list_says() -> None:
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    table = text.partition("| name | method |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\| `.*\|$", table, re.M)]
    assert [row[0].strip("`") for row in rows] == list(METHODS)
    for row in rows:
        method = METHODS[row[0].strip("`")]
        assert row[1:3] == [method.title, method.hint]
        assert row[4].startswith("no" if method.overlaps else "yes")
        assert (row[5] == "up to the budget") == method.takes_budget


def test_every_method_can_be_called_and_told_apart() -> None:
    for method in METHODS.values():
        assert callable(method.function)
        assert f"{method.name} ({method.hint}" in describe_methods()
        assert words_for(method.name) == {"title": method.title, "hint": method.hint}
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
    assert words_for("zones") == {"title": "zones", "hint": ""}


def test_the_list_loads_without_numpy() -> None:
    code = "import sys, odkanon.methods.method_registry; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_method_is_a_row_of_the_tables() -> None:
    assert set(counting_methods()) | set(PAPER_ROWS) <= set(method_rows())
    assert find_row("odkanon-published").title == "ODkAnon (published)"
    assert find_row("treecut").title == "Tree cuts"
    assert not find_row("oigh-no-budget").takes_budget
    assert not find_row("mondrian").takes_budget
    assert {find_row(row).method for row in all_rows()} == set(counting_methods())
    assert not find_row("cascade").takes_budget


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="treecut"):
        METHODS["tree-cut"]


def test_a_tenth_may_be_suppressed_unless_one_says_otherwise() -> None:
    budgets = {
        name: parameters["budget"].default
        for name, method in METHODS.items()
        if "budget" in (parameters := signature(method.function).parameters)
    }
    assert {name: budget for name, budget in budgets.items() if budget != 0.1} == {"cascade": None}


def every_cell(od: Any, rule: Rule, *, budget: float = 0.5, level: int = 0) -> Release:
    """A method of somebody else: the zones of one level."""
    labels = (tree.labels(level)[tree.codes[level]] for tree in (od.origins, od.destinations))
    return Release.from_labels(od, rule, *labels, budget=budget, parameters={"budget": budget, "secret": 1})


@pytest.fixture
def registered() -> Iterator[Method]:
    yield register_method(every_cell, hint="all cells")
    METHODS.unregister("every-cell")


def small() -> Any:
    return town(("a1", "b1", people(30)), ("a2", "b2", people(20)), ("b1", "a1", people(5))).od


def test_a_registered_function_is_a_method_like_any_other(registered: Method, tmp_path: Path) -> None:
    assert METHODS["every-cell"] is registered
    assert registered.title == "every-cell"
    assert registered.options == ("budget", "level", "substeps")
    assert registered.takes_budget
    assert "every-cell (all cells)" in describe_methods()
    release = anonymize(small(), Rule(trips=10), method="every-cell", level=0)
    assert release.method == "every-cell"
    assert release.classes.trips.tolist() == [30]  # the five trips below the rule take the smallest class along
    saved = json.loads((release.save(tmp_path / "release") / "release.json").read_text(encoding="utf-8"))
    assert saved["parameters"] == {"budget": 0.5}  # no more than the options of the method
    with pytest.raises(InputError, match=r"has no option 'levels' \(did you mean 'level'"):
        anonymize(small(), Rule(trips=10), method="every-cell", levels=1)


def test_a_decorator_and_a_description_register_alike() -> None:
    made = register_method(name="by-decorator", title="By decorator", overlaps=True)(every_cell)
    assert (made.name, made.title, made.overlaps, made.function) == ("by-decorator", "By decorator", True, every_cell)
    described = register_method(Method("described", "Described", "", f"{__name__}:every_cell", on_tree=False))
    assert described.function is every_cell
    assert described.options == ("budget", "level")
    for name in ("by-decorator", "described"):
        assert name in METHODS
        METHODS.unregister(name)


def positional(od: Any, rule: Rule, level: int = 0) -> Release:
    return every_cell(od, rule, level=level)


def without_default(od: Any, rule: Rule, *, level: int) -> Release:
    return every_cell(od, rule, level=level)


def named_substeps(od: Any, rule: Rule, *, substeps: int = 0) -> Release:
    return every_cell(od, rule, level=substeps)


@pytest.mark.parametrize("function", [positional, without_default, named_substeps])
def test_options_are_keywords_with_defaults(function: Any) -> None:
    with pytest.raises(InputError, match="must be a keyword with a default"):
        register_method(function)


@pytest.mark.parametrize("name", ["Mine", "my method", "-mine", "mine/", "mine--two"])
def test_a_name_can_be_typed_and_be_a_folder(name: str) -> None:
    with pytest.raises(InvalidValueError, match="the name of a method must be lower-case letters"):
        register_method(every_cell, name=name)


def test_ours_cannot_be_replaced() -> None:
    with pytest.raises(InvalidValueError, match="there is a method 'odkanon' already"):
        register_method(every_cell, name="odkanon")


def test_a_method_cannot_lower_the_rule() -> None:
    register_method(lambda od, rule: every_cell(od, Rule(trips=1)), name="careless")
    try:
        with pytest.raises(UnsafeReleaseError, match="careless made a release under"):
            anonymize(small(), Rule(trips=10), method="careless")
    finally:
        METHODS.unregister("careless")


def test_an_installed_package_adds_a_method_to_the_command_line(tmp_path: Path) -> None:
    package, data = tmp_path / "package", tmp_path / "data"
    info = package / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    data.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[odkanon.methods]\nby-root = mine:by_root\n", encoding="utf-8")
    code = """
    import odkanon

    @odkanon.register_method(title="By root", hint="one zone for all")
    def by_root(od, rule, *, budget=0.1):
        labels = (tree.labels(tree.top)[tree.codes[tree.top]] for tree in (od.origins, od.destinations))
        return odkanon.Release.from_labels(od, rule, *labels, budget=budget)
    """
    (package / "mine.py").write_text(dedent(code), encoding="utf-8")
    pq.write_table(make_survey().slice(0, 500), data / "trips.parquet")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "odkanon", "anonymize", "trips.parquet", "--method", "by-root", "-o", "release"]
    done = subprocess.run(command, cwd=data, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    saved = json.loads((data / "release" / "release.json").read_text(encoding="utf-8"))
    assert (saved["method"], saved["published"]["classes"]) == ("by-root", 1)
