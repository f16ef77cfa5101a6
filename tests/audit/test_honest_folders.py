"""Folders as they are found: honest ones are clean, whatever their numbers, and what was put in or changed is said."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cli.runner import odkanon, output
from odkanon import InputError, Rule, audit_releases, read_hierarchy, read_matrix
from odkanon.methods.method_registry import anonymize
from worlds.people import Trip, crowd, release, write


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release with its recipe beside it."""
    path = write([Trip(who, 0, 8) for who in crowd(30)], tmp_path / "trips.parquet")
    release(path, tmp_path / "release", Rule(trips=10))
    return tmp_path / "release"


def files(folder: Path) -> list[str]:
    report = audit_releases([folder])
    return [f"{each.severity}: {each.message}" for each in report.findings if each.check == "files"]


def test_a_threshold_that_comes_from_the_data_agrees_with_the_recipe(tmp_path: Path) -> None:
    rows = pa.table({"origin": list("aabbccd"), "destination": list("abbcacd"), "trips": [30] * 7})
    rows = rows.append_column("weight", pa.array([151.0, 173.0, 190.0, 111.0, 127.0, 131.0, 177.0]))
    od = read_matrix(rows, hierarchy=read_hierarchy(pa.table({"zone": list("abcd")})), engine="memory")
    rule = Rule.protect("population", k=10, of=od)
    made = anonymize(od, rule).save(tmp_path / "release")
    about = json.loads((made / "release.json").read_text())
    assert about["rule"]["weight"] < float(rule.thresholds["weight"])
    assert files(made) == []
    about["rule"]["weight"] *= 0.5
    (made / "release.json").write_text(json.dumps(about))
    assert any("disagree on rule, weight" in each for each in files(made))


@pytest.mark.parametrize("code", ["'s-Gravenhage", "=1+1", "''x", "-5", "@a", "plain"])
def test_codes_that_begin_like_formulas_agree_in_both_tables(tmp_path: Path, code: str) -> None:
    rows = pa.table({"origin": [code, "Delft"], "destination": ["Delft", code], "trips": [30, 40]})
    od = read_matrix(rows, hierarchy=read_hierarchy(pa.table({"zone": ["Delft", code]})), engine="memory")
    assert files(anonymize(od, Rule(trips=10)).save(tmp_path / "release")) == []


def test_what_does_not_belong_there_is_found(folder: Path) -> None:
    assert files(folder) == []
    table(folder / "input.csv", "person\nAnna\n")
    (folder / "more").mkdir()
    assert [each.partition(" is no part")[0] for each in files(folder)] == ["finding: input.csv", "finding: more"]


def test_changed_files_are_found_by_the_recipe(folder: Path) -> None:
    package, page = folder / "datapackage.json", folder / "report.html"
    package.write_text(package.read_text().replace("description", "prescription"))
    assert [each.partition(" was changed")[0] for each in files(folder)] == ["finding: datapackage.json"]
    if page.exists():
        page.write_text(page.read_text() + "<p>more")
        assert [each.partition(" was changed")[0] for each in files(folder)][-1] == "note: report.html"


def rule_findings(path: Path, **asked: Any) -> list[str]:
    report = audit_releases([path], **asked)
    return [each.message for each in report.findings if each.check == "rule"]


@pytest.mark.parametrize(("trips", "below"), [("9.6", True), ("", True), ("inf", True), ("10.0", False)])
def test_trips_of_bare_tables_are_never_rounded_up(tmp_path: Path, trips: str, below: bool) -> None:
    path = table(tmp_path / "flows.csv", f"origin,destination,trips\nA,B,25\nB,A,{trips}\n")
    assert any("1 flows are below your rule" in each for each in rule_findings(path, k=10)) == below


@pytest.mark.parametrize("line", ["B,A,7,x", "B,A", "B,A,ten"])
def test_an_unreadable_line_of_a_bare_table_is_reported(tmp_path: Path, line: str) -> None:
    path = table(tmp_path / "flows.csv", f"origin,destination,trips\nA,B,25\n{line}\n")
    with pytest.raises(InputError, match=r"line 3 of flows\.csv"):
        audit_releases([path], k=10)


@pytest.mark.parametrize(("column", "value"), [("persons", "9.5"), ("weight", "nan"), ("weight", "inf")])
def test_other_numbers_of_bare_tables_are_finite(tmp_path: Path, column: str, value: str) -> None:
    path = table(tmp_path / "flows.csv", f"origin,destination,trips,{column}\nA,B,25,{value}\n")
    assert any("below your rule" in each for each in rule_findings(path, least={column: 10}))


def test_a_report_replaces_an_earlier_one_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    report, trips = tmp_path / "audit.json", table(tmp_path / "trips.csv", "precious\n")
    for _ in range(2):
        assert odkanon("audit", folder, "-o", report).returncode == 0
    assert "exists already" in output(odkanon("audit", folder, "-o", trips))
    assert trips.read_text() == "precious\n"
    assert odkanon("audit", folder, "-o", trips, "--force").returncode == 0
    assert json.loads(trips.read_text())["clean"]
    assert "is to be published" in output(odkanon("audit", folder, "-o", folder / "audit.json"))
    assert files(folder) == []


def test_flows_are_held_against_the_rule_of_the_recipe(tmp_path: Path) -> None:
    """What is told of a weight that comes from the data may be less than the rule, and its k may not be told at all."""
    path = write([Trip(who, 0, 8) for who in crowd(30)], tmp_path / "trips.parquet")
    release(path, tmp_path / "release", Rule(weight=12, mean_weight=Fraction(1)))
    recipe = tmp_path / "release.recipe.json"
    content = json.loads(recipe.read_text())
    assert content["about"]["rule"]["k"] == 12
    assert "k" not in json.loads((tmp_path / "release/release.json").read_text())["rule"]
    assert rule_findings(tmp_path / "release") == []
    content["about"]["rule"]["weight"] = 31.0
    recipe.write_text(json.dumps(content))
    assert any("1 flows are below the rule of 31 weight" in each for each in rule_findings(tmp_path / "release"))
