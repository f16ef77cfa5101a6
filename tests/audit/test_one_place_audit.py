"""The audit of tables by one place: honest ones are clean, and what is changed is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from audit.tamper import Rows, edit_json, read_rows, sign_again, write_rows
from odkanon import InputError, anonymize, audit_releases, make_survey, read_hierarchy
from odkanon.audit import TripsSource
from worlds.residents import counted, residents, tiers

BY = ["age", "sex"]
PEOPLE = residents(3_000).drop_columns(["weight"])
TREE = read_hierarchy(tiers())


def saved(folder: Path, source: Any = PEOPLE, **options: Any) -> tuple[Path, Path]:
    """Write residents and their table."""
    pyarrow.parquet.write_table(source, folder / "residents.parquet")
    given: dict[str, Any] = {"place": "home", "unit": "residents", "by": BY, "hierarchy": TREE, "k": 5} | options
    release = anonymize(folder / "residents.parquet", **given)
    return folder / "residents.parquet", release.save(folder / "table")


@pytest.mark.filterwarnings("ignore:.* are in no row")
@pytest.mark.parametrize("at", ["lookup", "cells", "coordinates", "counts", "weights"])
def test_honest_tables_are_clean(at: str, tmp_path: Path) -> None:
    worlds: dict[str, tuple[Any, dict[str, Any]]] = {
        "lookup": (PEOPLE, {}),
        "cells": (PEOPLE, {"place": "cell", "hierarchy": None}),
        "coordinates": (PEOPLE.drop_columns(["home"]), {"hierarchy": None, "resolution": 8}),
        "counts": (counted(PEOPLE, ["home", *BY], "residents"), {}),
        "weights": (residents(3_000), {"protect": ["participants", "population"]}),
    }
    source, options = worlds[at]
    trips, folder = saved(tmp_path, source, **options)
    tree = options.get("hierarchy", TREE)
    for report in (audit_releases([folder], trips=TripsSource(trips, hierarchy=tree)), audit_releases([folder])):
        assert report.clean, [each.message for each in report.findings]


def more(rows: Rows) -> None:
    rows[0]["residents"] += 7


def added(rows: Rows) -> None:
    rows.append({**rows[0], "home": "m059", "sex": "f", "age": "70+"})


def small(rows: Rows) -> None:
    rows[0]["residents"] = 2


@pytest.mark.parametrize("change", [more, added, small])
def test_changed_rows_are_found(change: Callable[[Rows], None], tmp_path: Path) -> None:
    trips, folder = saved(tmp_path)
    rows = read_rows(folder)
    change(rows)
    write_rows(folder, rows)
    sign_again(folder)
    report = audit_releases([folder], trips=TripsSource(trips, hierarchy=TREE))
    found = " ".join(each.message for each in report.findings)
    assert not report.clean
    assert "residents" in found
    assert not re.search("trips|-> |flows|destination", found), found


def test_other_residents_are_noticed(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    pyarrow.parquet.write_table(PEOPLE.slice(100), tmp_path / "fewer.parquet")
    report = audit_releases([folder], trips=TripsSource(tmp_path / "fewer.parquet", hierarchy=TREE))
    assert "the residents given are not those of the release" in report.findings[0].message


def test_a_threshold_that_was_raised_is_noticed(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    edit_json(folder / "release.json", lambda content: content["rule"].update(residents=9))
    sign_again(folder)
    assert not audit_releases([folder]).clean


def test_residents_and_trips_are_not_compared(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    other = anonymize(make_survey(), resolution=7, protect="persons").save(tmp_path / "trips")
    with pytest.raises(InputError, match="by one place and flows between two"):
        audit_releases([folder, other])
