"""What the audit counts again from the trips, told by itself: notes, shares, what is left, and how releases compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from audit.tamper import copy_release, edit_json, read_rows, settle_accounts, sign_again, write_rows
from odkanon import Rule, audit_releases, read_matrix
from odkanon.methods.method_registry import anonymize
from odkanon.release_format.recipe import recipe_path
from worlds.people import Person, Trip, crowd, findings, matrix, release, write

BUSY = Person("busy", "Woman", 30, 1.0)
HEAVY = Person("heavy", "Woman", 30, 18.0)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One person with 15 of 25 trips of a flow, and one with a weight of 18 of the 30 of another."""
    folder = tmp_path_factory.mktemp("world")
    trips = [Trip(BUSY, 5, 8)] * 15 + [Trip(who, 5, 8) for who in crowd(10)]
    trips += [Trip(who, 0, 8) for who in (HEAVY, *crowd(12, prefix="x"))]
    path = write(trips, folder / "trips.parquet")
    assert len(release(path, folder / "release", Rule(trips=10)).classes) == 2
    return path, folder / "release"


@pytest.fixture
def forged(world: tuple[Path, Path], tmp_path: Path) -> Path:
    return copy_release(world[1], tmp_path / "release")


def told(folder: Path, trips: Path, check: str, severity: str = "finding") -> list[str]:
    report = audit_releases([folder], trips=trips)
    return [each.message for each in report.findings if (each.check, each.severity) == (check, severity)]


def without_names(trips: Path, folder: Path) -> Path:
    table = pyarrow.parquet.read_table(trips).drop_columns(["person"])
    pyarrow.parquet.write_table(table, folder / "nobody.parquet")
    return folder / "nobody.parquet"


def edit_manifests(folder: Path, change: Callable[[Any], None]) -> None:
    """Change what both accounts of a release say, and sign it again."""
    edit_json(folder / "release.json", change)
    edit_json(recipe_path(folder), lambda content: change(content["about"]))
    sign_again(folder)


def test_whoever_makes_up_most_of_a_flow_is_noted(world: tuple[Path, Path]) -> None:
    person, weight = told(world[1], world[0], "dominance", "note")
    assert person.startswith("one person makes up at most 60% of the trips of a flow")
    assert person.endswith("more than half in 1 flow")
    assert weight.startswith("one weight makes up at most 60% of the weight of a flow")
    assert weight.endswith("more than half in 1 flow")


def test_half_of_a_flow_is_not_more_than_half(tmp_path: Path) -> None:
    path = write([Trip(BUSY, 5, 8)] * 10 + [Trip(who, 5, 8) for who in crowd(10)], tmp_path / "trips.parquet")
    release(path, tmp_path / "release", Rule(trips=10))
    person, weight = (
        each for each in audit_releases([tmp_path / "release"], trips=path).findings if each.check == "dominance"
    )
    assert "at most 50%" in person.message
    assert person.message.endswith("more than half in no flow")
    assert [row["share"] for row in person.details] == [0.5]
    assert [row["share"] for row in weight.details] == [0.05]


def test_trips_that_name_nobody_have_no_person_who_makes_up_most(world: tuple[Path, Path], tmp_path: Path) -> None:
    (weight,) = told(world[1], without_names(world[0], tmp_path), "dominance", "note")
    assert weight.startswith("one weight")


def test_the_same_trips_from_another_file_are_noted(world: tuple[Path, Path], tmp_path: Path) -> None:
    assert told(world[1], world[0], "recount", "note") == []
    for at, compression in enumerate(("gzip", "zstd", "brotli")):  # whose digests are larger and smaller
        other = tmp_path / f"other{at}.parquet"
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(world[0]), other, compression=compression)
        assert told(world[1], other, "recount", "note") == [
            "the trips come from another file than those of the release, though as many"
        ]


def test_a_release_without_a_digest_is_not_reported_as_of_another_file(world: tuple[Path, Path], forged: Path) -> None:
    edit_json(recipe_path(forged), lambda content: content["about"]["input"].update(sha256=None))
    assert told(forged, world[0], "recount", "note") == []


@pytest.mark.parametrize(
    ("measure", "by", "found"),
    [
        ("trips", 4, "has 29 trips in the release, but only 25 in the data"),
        ("trips", -4, "has 21 trips in the release, but 25 in the data: its count was changed"),
        ("weight", 4, "has 25 trips and 29 weight in the release, but 25 weight in the data: its count was changed"),
        ("weight", -4, "has 25 trips and 21 weight in the release, but 25 weight in the data: its count was changed"),
    ],
)
def test_a_changed_number_is_reported_once(
    world: tuple[Path, Path], forged: Path, measure: str, by: int, found: str
) -> None:
    rows = read_rows(forged)
    (row,) = [row for row in rows if row["trips"] == 25]
    row[measure] += by
    write_rows(forged, rows)
    settle_accounts(forged)
    told_of = [each for each in told(forged, world[0], "recount") if " -> " in each]
    assert len(told_of) == 1
    assert told_of[0].endswith(found)


def test_more_trips_than_those_of_the_release_are_others(world: tuple[Path, Path], tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(world[0])
    times = pa.array([f"2024-02-{day + 1:02} 08:00:00" for day in range(2)])
    extra = table.slice(0, 2).set_column(table.column_names.index("start_time"), "start_time", times)
    pyarrow.parquet.write_table(pa.concat_tables([table, extra]), tmp_path / "more.parquet")
    (found,) = told(world[1], tmp_path / "more.parquet", "recount")
    assert found.startswith(
        "the trips given are not those of the release: 40 remain after reading, the release is of 38"
    )


@pytest.mark.parametrize("by", [-1, 1])
def test_a_zone_with_other_places_than_the_data_is_reported(world: tuple[Path, Path], forged: Path, by: int) -> None:
    """The steward's recipe says how many places of the data each zone has."""

    def change(content: Any) -> None:
        content["zones"]["origin"]["leaves"][0] += by

    assert told(forged, world[0], "zones") == []
    edit_json(recipe_path(forged), change)
    (found,) = told(forged, world[0], "zones")
    assert found.startswith("1 origin zones are not where they are stated")
    assert found.endswith(f"has 1 places of the data, not {1 + by}")


@pytest.mark.parametrize("changed", [1, 2])
def test_the_message_names_one_flow_and_how_many_more(world: tuple[Path, Path], forged: Path, changed: int) -> None:
    rows = read_rows(forged)
    for row in rows[:changed]:
        row["trips"] -= 1
    write_rows(forged, rows)
    settle_accounts(forged)
    (found,) = [each for each in told(forged, world[0], "recount") if "its count was changed" in each]
    assert ("more flows" in found) == (changed == 2)
    assert ("(and 1 more flows)" in found) == (changed == 2)


@pytest.mark.parametrize(
    ("before", "said", "found"), [(False, 0, 0), (False, 1, 1), (True, 0, 0), (True, 1, 0), (True, -1, 1)]
)
def test_what_lies_in_no_flow_is_what_is_suppressed(
    world: tuple[Path, Path], forged: Path, before: bool, said: int, found: int
) -> None:
    """Where pairs were taken out before flows were formed, some of them lie in a flow: at most as many lie in none."""

    def change(content: Any) -> None:
        content["parameters"]["suppress"] = "before" if before else "after"

    edit_manifests(forged, change)
    edit_json(recipe_path(forged), lambda content: content["about"]["suppressed"].update(trips=said))
    messages = told(forged, world[0], "recount")
    assert sum("lie in no published flow" in each for each in messages) == found


def test_shares_of_weight_count_where_the_rule_does(tmp_path: Path) -> None:
    """Six of eighteen in weight and one trip in thirteen: too much of the weight, not of the trips."""
    heavy = Person("heavy", "Woman", 30, 6.0)
    path = write([Trip(who, 0, 8) for who in (heavy, *crowd(12))], tmp_path / "trips.parquet")
    for name, rule, found in (("trips", Rule(trips=10), 0), ("both", Rule(trips=10, weight=10), 1)):
        release(path, tmp_path / name, rule)
        edit_manifests(tmp_path / name, lambda content: content["rule"].update(max_share=0.3))
        messages = told(tmp_path / name, path, "rule")
        assert sum("has more than the 30% of the weight" in each for each in messages) == found
        assert not any("of the trips that are promised" in each for each in messages)


@pytest.mark.parametrize(
    ("before", "named", "severity", "why"),
    [
        (False, True, None, None),
        (False, False, "finding", "the trips given name nobody"),
        (True, True, "note", "it does not disclose which trips of a flow were suppressed"),
        (True, False, "finding", "the trips given name nobody"),
    ],
)
def test_a_share_without_named_contributors_is_unchecked(
    world: tuple[Path, Path],
    forged: Path,
    tmp_path: Path,
    before: bool,
    named: bool,
    severity: str | None,
    why: str | None,
) -> None:
    def change(content: Any) -> None:
        content["parameters"]["suppress"] = "before" if before else "after"
        content["rule"].update(max_share=0.9)

    edit_manifests(forged, change)
    trips = world[0] if named else without_names(world[0], tmp_path)
    found = {
        level: [each for each in told(forged, trips, "rule", level) if "cannot be checked" in each]
        for level in ("finding", "note")
    }
    assert {level: [each.split(": ")[-1] for each in said] for level, said in found.items() if said} == (
        {} if severity is None else {severity: [why]}
    )


def test_releases_are_compared_by_their_trips_where_these_were_counted_again(tmp_path: Path) -> None:
    women = [Trip(who, at % 2, 8) for at, who in enumerate(crowd(40))]
    men = [Trip(who, at % 2, 8) for at, who in enumerate(crowd(40, sex="Man"))]
    path = write(women + men, tmp_path / "trips.parquet")
    fewer = write(women[1:] + men, tmp_path / "fewer.parquet")
    folders = [tmp_path / "all", tmp_path / "women"]
    release(path, folders[0], Rule(trips=10))
    release(path, folders[1], Rule(trips=10), where='sex == "Woman"')
    report, other = audit_releases(folders, trips=path), audit_releases(folders, trips=fewer)
    assert [each.compared for each in report.compared] == ["all combinations of rows compared"]
    assert findings(report) == []
    assert [each.compared for each in other.compared] == ["published numbers compared"]
    assert "the trips given are not those of the release" in findings(other, "recount")[0].message


def test_rows_of_a_cascade_are_counted_again(world: tuple[Path, Path], tmp_path: Path) -> None:
    release(world[0], tmp_path / "nested", Rule(trips=10), method="cascade")
    assert told(tmp_path / "nested", world[0], "recount") == []
    assert len(told(tmp_path / "nested", world[0], "dominance", "note")) == 2
    rows = read_rows(tmp_path / "nested")
    rows[0]["trips"] += 30
    write_rows(tmp_path / "nested", rows)
    settle_accounts(tmp_path / "nested")
    assert told(tmp_path / "nested", world[0], "recount") != []


def test_what_was_not_counted_again_is_not_compared_by_trips(world: tuple[Path, Path], tmp_path: Path) -> None:
    """Rows of kinds of trips whose recipe is gone: nobody knows which trips are in them."""
    folder = anonymize(read_matrix(world[0], by=["sex"]), Rule(trips=10), method="cascade").save(tmp_path / "cube")
    assert audit_releases([world[1], folder], trips=world[0]).compared[0].how == "by the trips"
    recipe_path(folder).unlink()
    report = audit_releases([world[1], folder], trips=world[0])
    assert report.compared[0].how != "by the trips"
    (found,) = findings(report, "recount")
    assert "rows were not recounted" in found.message


def test_releases_of_trips_that_cannot_be_told_apart_any_more_are_not_compared_by_them(tmp_path: Path) -> None:
    trips = [Trip(who, 0, 8) for who in crowd(22, "Woman") + crowd(15, "Man")]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "everyone", Rule(trips=10))
    anonymize(matrix(path, "sex == 'Woman'"), Rule(trips=10)).save(tmp_path / "women")
    table = pyarrow.parquet.read_table(path).drop_columns(["sex"])
    pyarrow.parquet.write_table(table, tmp_path / "nobody.parquet")
    report = audit_releases([tmp_path / "everyone", tmp_path / "women"], trips=tmp_path / "nobody.parquet")
    (found,) = (each for each in report.findings if each.check == "recount" and each.severity == "finding")
    assert found.releases == ("women",)
    assert "sex" in found.message
