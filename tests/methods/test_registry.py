"""Each method is described once: what the docs, the command line and the tables say of it comes from there."""

from __future__ import annotations

import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

from odkanon.errors import InputError
from odkanon.methods import METHODS
from odkanon.methods.method_registry import describe_methods, find_method, words_for
from odkanon.study.experiment import PAPER_ROWS, all_rows, find_row, method_rows

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
    assert set(METHODS) | set(PAPER_ROWS) <= set(method_rows())
    assert find_row("odkanon-published").title == "ODkAnon (published)"
    assert find_row("treecut").title == "Tree cuts"
    assert not find_row("oigh-no-budget").takes_budget
    assert not find_row("mondrian").takes_budget
    assert {find_row(row).method for row in all_rows()} == set(METHODS)
    assert not find_row("cascade").takes_budget


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="treecut"):
        find_method("tree-cut")


def test_a_tenth_may_be_suppressed_unless_one_says_otherwise() -> None:
    budgets = {
        name: parameters["budget"].default
        for name, method in METHODS.items()
        if "budget" in (parameters := signature(method.function).parameters)
    }
    assert {name: budget for name, budget in budgets.items() if budget != 0.1} == {"cascade": None}
