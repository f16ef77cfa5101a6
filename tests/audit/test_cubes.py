"""The audit of cubes: rows of places and kinds of trips, in each other along every axis, and spoilt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from audit.tamper import copy_release, edit_json, read_rows, settle_accounts, sign_again, write_rows
from odkanon import InputError, Rule, audit_releases, make_survey, read_matrix
from odkanon.audit.counting.scan import TripsSource
from odkanon.methods.method_registry import anonymize
from odkanon.release_format.recipe import recipe_path
from worlds.people import Trip, crowd, findings, write

BY = ["mode:private=car+motorcycle,transit=transit", "hour:7-9,17-20", "age"]


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cube") / "survey.parquet"
    pyarrow.parquet.write_table(make_survey().slice(0, 3000), path)
    return path


@pytest.fixture(scope="module")
def cube(trips: Path) -> Path:
    od = read_matrix(trips, by=BY, age_bands=(30, 60), resolution=8)
    release = anonymize(od, Rule(trips=5), method="cascade", drop_order="place:6,age,hour,mode,place")
    assert len(release.classes) > 50
    return release.save(trips.parent / "cube")


def told(folder: Path, trips: Path | None = None, resolution: int = 8, **more: Any) -> list[str]:
    source = None if trips is None else TripsSource(trips, resolution=resolution)
    return [each.message for each in findings(audit_releases([folder], trips=source, **more))]


def test_a_cube_is_clean_and_counts_again_as_it_says(cube: Path, trips: Path) -> None:
    """The rule counts trips, so rows of few persons are named, like those of any other release, and nothing else is."""
    assert told(cube) == []
    (few,) = told(cube, trips)
    assert re.match(r"\d+ of \d+ flows have fewer than 5 different persons", few)


def test_persons_are_those_of_a_kind_of_trips(tmp_path: Path) -> None:
    """Twelve women and a man who travels as often, between the same places: his row is his alone."""
    trips = [Trip(who, 0, 8) for who in crowd(12)] + [Trip(crowd(1, "Man")[0], 0, 8) for _ in range(12)]
    path = write(trips, tmp_path / "trips.parquet")
    od = read_matrix(path, by=["sex"])
    folder = anonymize(od, Rule(trips=10), method="cascade", allow_inference=True).save(tmp_path / "cube")
    (few,) = told(folder, path, 10)
    assert "1 of 2 flows have fewer than 10 different persons: whoever knows one of the 1 behind" in few


@pytest.mark.slow
def test_other_axes_count_again_as_they_say(trips: Path, tmp_path: Path) -> None:
    (tmp_path / "purposes.csv").write_text("purpose,kind\nwork,daily\nstudy,daily\nshopping,rest\n")
    by = [f"purpose:{tmp_path / 'purposes.csv'}", "weekday", "sex"]
    release = anonymize(read_matrix(trips, by=by, resolution=7), Rule(trips=5, persons=4), method="cascade")
    assert told(release.save(tmp_path / "cube"), trips, 7) == []
    od = read_matrix(trips, by=["date", "hour"], resolution=7, since="2022-11-14", until="2022-12-01")
    release = anonymize(od, Rule(trips=5, persons=5), method="cascade", drop_order="place,date,hour")
    assert len(set(release.classes.attributes["date"].tolist())) > 2
    assert told(release.save(tmp_path / "dates"), trips, 7) == []


def test_a_row_of_another_kind_than_its_trips_is_found(cube: Path, trips: Path, tmp_path: Path) -> None:
    folder = copy_release(cube, tmp_path / "cube")
    rows = read_rows(folder)
    attributes = {(row["origin"], row["destination"], row["mode"], row["hour"], row["age"]) for row in rows}
    at = next(
        at
        for at, row in enumerate(rows)
        if row["mode"] == "private"
        and (row["origin"], row["destination"], "transit", row["hour"], row["age"]) not in attributes
    )
    rows[at]["mode"] = "transit"
    write_rows(folder, rows)
    settle_accounts(folder)
    assert any("are in it and in no finer row" in text for text in told(folder, trips))


def test_rows_that_are_listed_twice_or_cross_are_found(cube: Path, tmp_path: Path) -> None:
    folder = copy_release(cube, tmp_path / "cube")
    rows = read_rows(folder)
    write_rows(folder, [*rows, rows[0]])
    sign_again(folder)
    assert any("is listed 2 times" in text for text in told(folder))
    # One keeps the mode and gives up the hour, the other the hour and gives up the mode.
    write_rows(folder, [{**rows[0], "mode": "private", "hour": "any"}, {**rows[0], "mode": "any", "hour": "07-09"}])
    sign_again(folder)
    assert any("without one lying in the other" in text for text in told(folder))


def test_csv_and_parquet_are_compared_by_kind(cube: Path, tmp_path: Path) -> None:
    folder = copy_release(cube, tmp_path / "cube")
    lines = (folder / "classes.csv").read_text().splitlines()
    at = next(at for at, line in enumerate(lines) if ",private," in line)
    lines[at] = lines[at].replace(",private,", ",ferry,")
    (folder / "classes.csv").write_text("\n".join(lines) + "\n")
    sign_again(folder)
    assert any("classes.csv and classes.parquet disagree" in text for text in told(folder))


def test_rows_below_the_rule_and_rows_without_a_recipe_are_found(cube: Path, trips: Path, tmp_path: Path) -> None:
    assert any("below your rule of 50" in text for text in told(cube, k=50))
    folder = copy_release(cube, tmp_path / "cube")
    recipe_path(folder).unlink()
    assert told(folder) == []
    assert any("rows were not recounted" in text for text in told(folder, trips))


def test_a_damaged_axis_is_reported(cube: Path, tmp_path: Path) -> None:
    folder = copy_release(cube, tmp_path / "cube")
    edit_json(folder / "release.json", lambda content: content["axes"].pop())
    with pytest.raises(InputError, match="has the columns"):
        audit_releases([folder])


def test_cubes_of_the_same_trips_are_not_called_clean(cube: Path, trips: Path, tmp_path: Path) -> None:
    other = anonymize(read_matrix(trips, by=["sex"], resolution=8), Rule(trips=5), method="cascade")
    report = audit_releases([cube, other.save(tmp_path / "other")], trips=TripsSource(trips, resolution=8))
    (found,) = findings(report, "relation")
    assert "share trips" in found.message
