"""The audit of releases whose flows lie in each other."""

from __future__ import annotations

from pathlib import Path

import h3
import pytest

from audit.tamper import read_rows, sign_again, write_rows
from odkanon import Rule, anonymize
from odkanon.audit import audit_releases
from odkanon.model.od import AXES
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


def test_flows_that_cross_are_a_finding(folder: Path) -> None:
    rows = read_rows(folder)
    fine, coarse = next(
        (one, other) for one in rows for other in rows if all(inside(one[end], other[end]) for end in AXES)
    )
    write_rows(folder, [*rows, {**fine, "origin": coarse["origin"]}, {**fine, "destination": coarse["destination"]}])
    sign_again(folder)
    assert any("without one lying in the other" in each.message for each in findings(audit_releases([folder])))
