"""What several releases give away together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from odkanon import Rule, read_trips
from odkanon.audit import audit_releases, pairwise_checks
from odkanon.audit.differencing import equations, min_cut
from odkanon.linked.fixed_zoning import Zoning, release_on_zones, zoning_of
from odkanon.methods.method_registry import anonymize
from odkanon.model.provenance import Source
from odkanon.read.od_matrix import build_od
from odkanon.release_format.folder import open_release
from worlds.people import Trip, audit_with_trips, crowd, findings, matrix, release, scattered, write

RULE = Rule(trips=10)


def planted(tmp_path: Path) -> Path:
    """Write trips among which three men are hidden in a flow of women."""
    trips = [Trip(who, 0, 8) for who in crowd(22, "Woman") + crowd(3, "Man")]
    trips += [Trip(who, 5, 9) for who in crowd(30, "Woman", prefix="x") + crowd(25, "Man", prefix="x")]
    return write(trips, tmp_path / "trips.parquet")


def on(zoning: Zoning, path: Path, folder: Path, where: str | None = None) -> Path:
    return release_on_zones(matrix(path, where), RULE, zoning).save(folder)


def differences(*folders: Path, cumulative: bool = False) -> list[str]:
    return [each.message for each in findings(audit_releases(folders, cumulative=cumulative), "difference")]


def test_everyone_minus_women_is_named(tmp_path: Path) -> None:
    path = planted(tmp_path)
    release(path, tmp_path / "everyone", RULE)
    zoning = zoning_of(open_release(tmp_path / "everyone"))
    on(zoning, path, tmp_path / "women", "sex == 'Woman'")
    (found,) = differences(tmp_path / "everyone", tmp_path / "women")
    assert "everyone 25 - women 22 = 3 trips of somebody else" in found


def test_a_segment_on_finer_zones_is_subtracted_too(tmp_path: Path) -> None:
    """Everyone on coarse zones, women on fine ones inside them."""
    trips = [Trip(who, 0, 8) for who in crowd(20, "Woman")]
    trips += [Trip(who, 1, 8) for who in crowd(15, "Woman", prefix="x") + crowd(4, "Man")]
    path = write(trips, tmp_path / "trips.parquet")
    coarse = zoning_of(anonymize(matrix(path), Rule(trips=30)))
    on(coarse, path, tmp_path / "everyone")
    fine = zoning_of(anonymize(matrix(path), Rule(trips=1), budget=0.0))
    on(fine, path, tmp_path / "women", "sex == 'Woman'")
    (found,) = differences(tmp_path / "everyone", tmp_path / "women")
    assert "everyone 39 - women (2 flows) 35 = 4 trips" in found


def test_women_and_men_minus_everyone_tells_what_was_suppressed(tmp_path: Path) -> None:
    trips = [Trip(who, 0, 8) for who in crowd(15, "Woman") + crowd(15, "Man")]
    trips += [Trip(who, 1, 8) for who in crowd(2, "Woman", prefix="x") + crowd(1, "Man", prefix="x")]
    coarse = zoning_of(anonymize(matrix(write(trips, tmp_path / "some.parquet")), Rule(trips=33), budget=0.0))
    path = write([*trips, *scattered()], tmp_path / "trips.parquet")
    on(zoning_of(anonymize(matrix(path), Rule(trips=1), budget=0.0)), path, tmp_path / "everyone")
    for name in ("Woman", "Man"):
        on(coarse, path, tmp_path / name, f"sex == '{name}'")
    found = differences(tmp_path / "everyone", tmp_path / "Woman", tmp_path / "Man")
    assert any("= 3 trips" in text for text in found), found


def test_the_same_trips_on_other_zones(tmp_path: Path) -> None:
    """A revised release with finer zones shows, by subtraction, what it suppresses."""
    trips = [Trip(who, 0, 8) for who in crowd(20)] + [Trip(who, 1, 8) for who in crowd(4, prefix="x")]
    coarse = zoning_of(anonymize(matrix(write(trips, tmp_path / "some.parquet")), Rule(trips=24)))
    path = write([*trips, *scattered()], tmp_path / "trips.parquet")
    on(coarse, path, tmp_path / "first")
    on(zoning_of(anonymize(matrix(path), Rule(trips=1), budget=0.0)), path, tmp_path / "revised")
    (found,) = differences(tmp_path / "first", tmp_path / "revised")
    assert "first 24 - revised 20 = 4 trips" in found


def test_a_series_that_grows(tmp_path: Path) -> None:
    january = [Trip(who, 0, 8) for who in crowd(20)]
    release(write(january, tmp_path / "january.parquet"), tmp_path / "january", RULE)
    longer = write([*january, *(Trip(who, 0, 8) for who in crowd(3, prefix="x"))], tmp_path / "february.parquet")
    release(longer, tmp_path / "february", RULE)
    assert differences(tmp_path / "january", tmp_path / "february") == []
    (found,) = differences(tmp_path / "january", tmp_path / "february", cumulative=True)
    assert "february 23 - january 20 = 3 trips" in found


def test_weights_are_compared_with_the_threshold_on_weight(tmp_path: Path) -> None:
    path = planted(tmp_path)
    rule = Rule(weight=10)
    release(path, tmp_path / "everyone", rule)
    release_on_zones(matrix(path, "sex == 'Woman'"), rule, zoning_of(open_release(tmp_path / "everyone"))).save(
        tmp_path / "women"
    )
    (found,) = differences(tmp_path / "everyone", tmp_path / "women")
    assert "3 trips of weight 3, below 10" in found


def everyone_and_women(tmp_path: Path, men: int) -> Path:
    """22 women with a trip each and some men with 12 trips each, released together and the women by themselves."""
    trips = [Trip(who, 0, 8) for who in crowd(22, "Woman") + crowd(men, "Man") * 12]
    path = write(trips, tmp_path / "trips.parquet")
    rule = Rule(trips=10, persons=10)
    release(path, tmp_path / "everyone", rule)
    trips_of_all = read_trips(path)
    women = trips_of_all.select(np.array([trip.person.sex == "Woman" for trip in trips]))
    source = Source(len(women), trips_of_all.source.sha256)
    part = release_on_zones(
        build_od(replace(women, source=source)), rule, zoning_of(open_release(tmp_path / "everyone"))
    )
    replace(part, spec=part.spec.with_parameters(segment={"sex": "Woman"})).save(tmp_path / "women")
    return path


@pytest.mark.parametrize(
    ("men", "said"), [(1, "everyone 34 - women 22 = 12 trips of 1 persons"), (9, "108 trips of 9 persons"), (10, None)]
)
def test_persons_of_a_remainder_are_counted_where_trips_are_given(tmp_path: Path, men: int, said: str | None) -> None:
    """The trips that are left are enough for the rule on trips, but few men made them all.

    Without trips, there are the numbers of persons in both tables, which do not add up for certain.
    """
    path = everyone_and_women(tmp_path, men)
    told = differences(tmp_path / "everyone", tmp_path / "women")
    assert [f"by the numbers of perhaps {men} persons" in text for text in told] == [True][: men < 10]
    found = findings(audit_with_trips(path, tmp_path / "everyone", tmp_path / "women"), "difference")
    assert len(found) == (said is not None)
    assert all(said in each.message for each in found if said)


def test_what_could_not_be_decided_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = everyone_and_women(tmp_path, 9)
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    monkeypatch.setattr(min_cut, "ROUNDS", 0)
    (found,) = findings(audit_with_trips(path, tmp_path / "everyone", tmp_path / "women"), "relation")
    assert "could not be decided whether a group of too few can be worked out" in found.message
    monkeypatch.undo()
    assert findings(audit_with_trips(path, tmp_path / "everyone", tmp_path / "women"), "relation") == []


@pytest.mark.parametrize("method", ["odkanon", "oigh", "atg-soft", "mondrian"])
def test_recounting_agrees_with_every_method(tmp_path: Path, method: str) -> None:
    trips = [Trip(who, at % 5, 5 + at % 4) for at, who in enumerate(crowd(60) + crowd(40, "Man"))]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "release", Rule(trips=8, persons=8), method=method)
    assert findings(audit_with_trips(path, tmp_path / "release")) == []


def test_more_releases_than_can_be_combined_at_once_are_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = [Trip(who, 0, 8) for age in (20, 30, 40) for who in crowd(15, age=age)]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "everyone", Rule(trips=10))
    zoning = zoning_of(open_release(tmp_path / "everyone"))
    folders = [on(zoning, path, tmp_path / f"from{age}", f"age >= {age}") for age in (30, 40)]
    assert findings(audit_with_trips(path, tmp_path / "everyone", *folders), "relation") == []
    monkeypatch.setattr(pairwise_checks, "MOST_SIDES", 2)
    (found,) = findings(audit_with_trips(path, tmp_path / "everyone", *folders), "relation")
    assert "3 releases share trips with each other in so many ways that only two kinds of tables" in found.message


@pytest.mark.parametrize(("strict", "said"), [(10, 0), (20, 1)])
def test_a_group_is_held_against_the_strictest_rule(tmp_path: Path, strict: int, said: int) -> None:
    """Fifteen men are left, enough for the table of everyone, not for that of the women; with and without trips."""
    path = write([Trip(who, 0, 8) for who in crowd(22, "Woman") + crowd(15, "Man")], tmp_path / "trips.parquet")
    release(path, tmp_path / "everyone", Rule(trips=10))
    zoning = zoning_of(open_release(tmp_path / "everyone"))
    folders = (
        tmp_path / "everyone",
        release_on_zones(matrix(path, "sex == 'Woman'"), Rule(trips=strict), zoning).save(tmp_path / "women"),
    )
    assert len(differences(*folders)) == said
    assert len(findings(audit_with_trips(path, *folders), "difference")) == said
