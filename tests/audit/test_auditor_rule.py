"""The auditor's own rule, bare tables, and promises that promise nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from audit.tamper import edit_json, read_rows, sign_again, write_rows
from cli.runner import odkanon, output
from odkanon import InputError, Rule, audit_releases
from odkanon.audit import TripsSource
from odkanon.release_format.recipe import recipe_path
from worlds.people import Trip, crowd, findings, matrix, places, release, write


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    trips = [Trip(who, 0, 8) for who in crowd(12)] + [Trip(crowd(1, prefix="x")[0], 5, 8) for _ in range(25)]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "release", Rule(trips=10))
    return path, tmp_path / "release"


def text(*folders: Path, trips: Path | None = None, k: int | None = None, **least: float) -> str:
    report = audit_releases(folders, trips=trips, k=k, least=least)
    return "\n".join(each.message for each in findings(report))


def test_a_release_is_held_against_the_rule_of_the_auditor(made: tuple[Path, Path]) -> None:
    assert text(made[1]) == ""
    assert "1 flows are below your rule of 20 trips" in text(made[1], k=20)
    assert "1 flows are below your rule of 30 weight" not in text(made[1], weight=5)
    assert "2 flows are below your rule of 30 weight" in text(made[1], weight=30)


def test_the_k_of_the_auditor_counts_with_the_mean_weight_of_the_rule(tmp_path: Path) -> None:
    """What is told of a threshold on weight is rounded down, and thresholds given one by one are no multiple of it."""
    heavy = [person._replace(weight=1.505) for person in crowd(20)]
    light = [person._replace(weight=1.0) for person in crowd(1500, prefix="x")]
    path = write([Trip(who, 0, 8) for who in heavy] + [Trip(who, 5, 8) for who in light], tmp_path / "trips.parquet")
    od = matrix(path)
    assert 30 * 1.00 < 20 * 1.505 < 30 * od.mean_weight  # 10.0 is told of ten times the mean
    release(path, tmp_path / "by-k", Rule.protect("population", k=10, of=od))
    release(path, tmp_path / "one-by-one", Rule(trips=10, weight=5, mean_weight=od.mean_weight))
    for name in ("by-k", "one-by-one"):
        assert "1 flows are below your rule of 30.199 weight" in text(tmp_path / name, k=30)


@pytest.mark.parametrize("k", [float("nan"), float("inf"), "ten", None])
def test_a_rule_that_is_no_number_is_a_damaged_release(made: tuple[Path, Path], k: object) -> None:
    edit_json(made[1] / "release.json", lambda content: content["rule"].update(k=k))
    edit_json(recipe_path(made[1]), lambda content: content["about"]["rule"].update(mean_weight=k))
    with pytest.raises(InputError, match="damaged"):
        audit_releases([made[1]])


def test_without_a_k_flows_of_one_person_are_found(tmp_path: Path) -> None:
    alone, crowded = crowd(1, prefix="x")[0], crowd(12)
    path = write(
        [Trip(alone, 5, 8) for _ in range(25)] + [Trip(who, 0, 8) for who in crowded], tmp_path / "trips.parquet"
    )
    release(path, tmp_path / "release", Rule(weight=10, mean_weight=matrix(path).mean_weight))
    assert "k" not in json.loads((tmp_path / "release" / "release.json").read_text())["rule"]
    (note,) = (each for each in audit_releases([tmp_path / "release"]).findings if each.check == "persons")
    assert note.message.startswith("1 flows have fewer than 10 different persons")
    recipe_path(tmp_path / "release").unlink()
    (note,) = (each for each in audit_releases([tmp_path / "release"]).findings if each.check == "persons")
    assert note.message.startswith("1 flows have fewer than 2 different persons")


def test_persons_are_counted_from_the_table_or_from_the_trips(made: tuple[Path, Path]) -> None:
    assert "1 flows are below your rule of 5 persons" in text(made[1], persons=5)
    found = text(made[1], trips=made[0], persons=5)
    assert "counted from the trips, 1 flows are below the rule of 5 persons" in found


def test_flows_that_publish_few_persons_are_noted(made: tuple[Path, Path], tmp_path: Path) -> None:
    (note,) = (each for each in audit_releases([made[1]]).findings if each.check == "persons")
    assert note.severity == "note"
    assert note.message.startswith("1 flows have fewer than 10 different persons, which the rule does not cover")
    release(made[0], tmp_path / "strict", Rule(trips=10, persons=10))
    assert not any(each.check == "persons" for each in audit_releases([tmp_path / "strict"]).findings)


def test_persons_that_the_rule_does_not_count_are_still_those_of_the_trips(made: tuple[Path, Path]) -> None:
    """What the table says of them is believed only where the trips cannot tell."""
    write_rows(made[1], [{**row, "persons": 50} for row in read_rows(made[1])])
    sign_again(made[1])
    (found,) = findings(audit_releases([made[1]], trips=made[0]), "persons")
    assert "1 of 2 flows have fewer than 10 different persons: whoever knows one of the 1 behind" in found.message


def test_persons_of_a_thinned_flow_are_the_published_ones(made: tuple[Path, Path]) -> None:
    """The trips tell who may be in such a flow, not who is."""
    write_rows(made[1], [{**row, "persons": 3} for row in read_rows(made[1])])
    edit_json(made[1] / "release.json", lambda content: content["parameters"].update(suppress="before"))
    edit_json(recipe_path(made[1]), lambda content: content["about"]["parameters"].update(suppress="before"))
    sign_again(made[1])
    (found,) = findings(audit_releases([made[1]], trips=made[0]), "persons")
    assert "2 of 2 flows have fewer than 10 different persons: whoever knows one of the 3 behind" in found.message


def test_what_nobody_can_count_is_not_clean(made: tuple[Path, Path]) -> None:
    assert "the rule counts households, but no flow lists them" in text(made[1], households=2)
    found = text(made[1], trips=made[0], households=2)
    assert "the rule counts households, but the trips given do not name any" in found


def test_households_are_counted_where_the_file_names_them(made: tuple[Path, Path], tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(made[0])
    homes = [f"h{at % 3}" for at in range(len(table))]
    pyarrow.parquet.write_table(table.append_column("household", pa.array(homes)), tmp_path / "homes.parquet")
    found = text(made[1], trips=tmp_path / "homes.parquet", households=4)
    assert "2 flows are below the rule of 4 households" in found


def test_k_of_one_protects_nobody(tmp_path: Path) -> None:
    path = write([Trip(who, 0, 8) for who in crowd(12)], tmp_path / "trips.parquet")
    release(path, tmp_path / "release", Rule(trips=1))
    assert "it protects nobody" in text(tmp_path / "release")


def test_a_threshold_that_cannot_be(made: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="choose from trips, weight, persons, households"):
        text(made[1], people=3)
    with pytest.raises(InputError, match="positive number"):
        text(made[1], k=0)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = ["origin,destination,trips", f"{places()[0]},{places()[8]},12", f"{places()[5]},{places()[8]},25"]
    (tmp_path / "flows.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "flows.csv"


def test_a_bare_table_needs_a_rule(table: Path) -> None:
    with pytest.raises(InputError, match="promises nothing"):
        audit_releases([table])
    assert text(table, k=10) == ""
    assert "below your rule of 20 trips" in text(table, k=20)


def test_a_bare_table_is_counted_again_and_compared(made: tuple[Path, Path], table: Path, tmp_path: Path) -> None:
    assert "fewer than 10 different persons" in text(table, trips=made[0], k=10)
    other = tmp_path / "other.parquet"
    flows = {"origin": [places()[0], places()[5]], "destination": [places()[8]] * 2, "trips": [11, 25]}
    pyarrow.parquet.write_table(pa.table(flows), other)
    assert "has 11 trips in the release, but 12 in the data" in text(other, trips=made[0], k=10)
    assert "cannot be compared" in text(table, other, k=10)


def test_a_bare_table_with_overlapping_zones(tmp_path: Path) -> None:
    import h3

    inside, outside = places()[0], h3.cell_to_parent(places()[0], 8)
    lines = ["origin,destination,trips", f"{inside},{places()[8]},12", f"{outside},{places()[8]},25"]
    (tmp_path / "flows.csv").write_text("\n".join(lines) + "\n")
    assert "places must be in one zone only" in text(tmp_path / "flows.csv", k=10)


def test_the_command_takes_the_rule_and_lists_comparisons(made: tuple[Path, Path], table: Path) -> None:
    done = odkanon("audit", table, "--k", 20)
    assert done.returncode == 1
    assert "below your rule of 20 trips" in output(done)
    done = odkanon("audit", made[1], table, "--min-trips", 10)
    assert done.returncode == 1
    assert "whether" in output(done)
    done = odkanon("audit", made[1], table, "--min-trips", 10, "--disjoint")
    assert done.returncode == 0, output(done)
    assert "no trips in common (as claimed)" in output(done)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("A,B,25,11\n,B,25,12", "have no origin or destination"),
        ("A,B,25,26", "have more persons than trips"),
    ],
)
def test_a_bare_table_with_rows_that_cannot_be(tmp_path: Path, rows: str, said: str) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(f"origin,destination,trips,persons\n{rows}\n")
    assert said in text(path, k=10)


def test_a_bare_table_without_thresholds_is_refused(table: Path) -> None:
    assert "you ask that a flow has 1 of what it counts" in text(table, k=1)


def test_a_bare_table_between_districts_is_counted_again(tmp_path: Path) -> None:
    """Its codes are those of a lookup table, on whatever level."""
    (tmp_path / "places.csv").write_text("leaf,district\na1,A\na2,A\nb1,B\n")
    (tmp_path / "trips.csv").write_text("origin,destination\n" + "a1,b1\n" * 6 + "a2,b1\n" * 5)
    path = tmp_path / "flows.csv"
    source = TripsSource(tmp_path / "trips.csv", hierarchy=tmp_path / "places.csv")
    for trips, clean in ((11, True), (12, False)):
        path.write_text(f"origin,destination,trips\nA,B,{trips}\n")
        assert audit_releases([path], trips=source, k=10).clean == clean


def test_k_is_one_on_trips_where_a_rule_on_weight_does_not_say_what_it_is(made: tuple[Path, Path]) -> None:
    _, folder = made
    edit_json(folder / "release.json", lambda content: content.update(rule={"weight": 1.0}))
    recipe_path(folder).unlink()
    assert "below your rule of 1,000 trips" in text(folder, k=1000)


def test_relation_options_do_not_apply_to_one_release(made: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="does not apply with a single release"):
        audit_releases([made[1]], cumulative=True)
    with pytest.raises(InputError, match="does not apply with a single release"):
        audit_releases([made[1]], disjoint=True)
    with pytest.raises(InputError, match="cumulative does not apply with disjoint"):
        audit_releases([made[1], made[1]], cumulative=True, disjoint=True)
