"""The audit of releases whose flows lie in each other."""

from __future__ import annotations

from pathlib import Path

import h3
import pyarrow.parquet
import pytest

from audit.tamper import read_rows, sign_again, write_rows
from odkanon import Rule, make_survey, read_trips
from odkanon.audit import TripsSource, audit_releases
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import AXES
from odkanon.read.od_matrix import build_od
from worlds.matrices import random_world
from worlds.people import findings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    od = random_world(7, records=400, fan=5, levels=3, people=200)
    release = anonymize(od, Rule(trips=8, persons=6), method="cascade")
    assert len(release.classes) > 10
    return release.save(tmp_path / "release")


def test_nested_flows_are_no_finding(folder: Path) -> None:
    report = audit_releases([folder])
    assert [each.message for each in findings(report)] == []


def inside(zone: str, other: str) -> bool:
    if "world" in (zone, other) or h3.get_resolution(zone) <= h3.get_resolution(other):
        return False
    return bool(h3.cell_to_parent(zone, h3.get_resolution(other)) == other)


def holds(zone: str, cell: str) -> bool:
    return zone == "world" or h3.cell_to_parent(cell, h3.get_resolution(zone)) == zone


def fineness(row: dict[str, str]) -> int:
    return sum(-1 if row[end] == "world" else h3.get_resolution(row[end]) for end in AXES)


@pytest.mark.parametrize("rule", [Rule(trips=5), Rule(trips=5, persons=5)])
def test_persons_of_rows_are_counted_from_the_trips(rule: Rule, tmp_path: Path) -> None:
    """Without caps every trip is in its finest row, so that whoever is in a row is known."""
    survey = make_survey().slice(0, 1_000)
    pyarrow.parquet.write_table(survey, tmp_path / "survey.parquet")
    release = anonymize(build_od(read_trips(survey), resolution=7), rule, method="cascade", allow_inference=True)
    folder = release.save(tmp_path / "release")
    rows = read_rows(folder)
    people: list[set[str]] = [set() for _ in rows]
    for trip in survey.to_pylist():
        ends = [h3.latlng_to_cell(trip[f"{end}_lat"], trip[f"{end}_lon"], 7) for end in ("start", "end")]
        around = [
            at for at, row in enumerate(rows) if holds(row["origin"], ends[0]) and holds(row["destination"], ends[1])
        ]
        if around:
            people[max(around, key=lambda at: fineness(rows[at]))].add(trip["person"])
    few = sum(len(who) < 5 for who in people)
    report = audit_releases([folder], trips=TripsSource(tmp_path / "survey.parquet", resolution=7))
    assert sum(len(each.details) for each in findings(report) if each.check == "persons") == few
    assert (few > 0) == ("persons" not in rule.measures)


def test_a_row_with_fewer_persons_than_its_rule_asks_for_is_found(tmp_path: Path) -> None:
    survey = make_survey().slice(0, 1_000)
    pyarrow.parquet.write_table(survey, tmp_path / "survey.parquet")
    od = build_od(read_trips(survey), resolution=7)
    folder = anonymize(od, Rule(trips=5), method="cascade").save(tmp_path / "release")
    source = TripsSource(tmp_path / "survey.parquet", resolution=7)
    report = audit_releases([folder], trips=source, least={"persons": 5})
    assert any("below the rule of 5 persons" in each.message for each in findings(report))


def test_flows_that_cross_are_a_finding(folder: Path) -> None:
    rows = read_rows(folder)
    fine, coarse = next(
        (one, other) for one in rows for other in rows if all(inside(one[end], other[end]) for end in AXES)
    )
    write_rows(folder, [*rows, {**fine, "origin": coarse["origin"]}, {**fine, "destination": coarse["destination"]}])
    sign_again(folder)
    assert any("without one lying in the other" in each.message for each in findings(audit_releases([folder])))


def test_households_without_names_of_persons_are_persons(tmp_path: Path) -> None:
    """Nobody wrote down who made the trips, but each household has somebody."""
    survey = make_survey().slice(0, 400)
    homes = pyarrow.compute.cast(pyarrow.compute.index_in(survey["person"], survey["person"].unique()), "string")
    nobody = pyarrow.nulls(len(survey) - 1, "string").to_pylist()
    table = survey.set_column(survey.column_names.index("person"), "person", [[survey["person"][0].as_py(), *nobody]])
    table = table.append_column("household", homes)
    pyarrow.parquet.write_table(table, tmp_path / "survey.parquet")
    od = build_od(read_trips(table), resolution=7)
    folder = anonymize(od, Rule(households=3), method="cascade").save(tmp_path / "release")
    report = audit_releases([folder], trips=TripsSource(tmp_path / "survey.parquet", resolution=7))
    assert [each.message for each in findings(report)] == []


def test_households_that_one_person_is_in_are_one_person(tmp_path: Path) -> None:
    """Everybody is named, so that nobody has to be guessed from households."""
    survey = make_survey().slice(0, 400)
    table = survey.set_column(survey.column_names.index("person"), "person", [["somebody"] * len(survey)])
    table = table.append_column("household", pyarrow.array([f"h{number}" for number in range(len(survey))]))
    pyarrow.parquet.write_table(table, tmp_path / "survey.parquet")
    od = build_od(read_trips(table), resolution=7)
    folder = anonymize(od, Rule(households=3), method="cascade").save(tmp_path / "release")
    report = audit_releases([folder], trips=TripsSource(tmp_path / "survey.parquet", resolution=7))
    assert any("fewer than 3 different persons" in each.message for each in findings(report))
