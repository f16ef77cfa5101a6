"""Values too rare for a table of their own, and budgets that cannot be kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.runner import odkanon, output
from odkanon import Rule, read_trips
from odkanon.attributes.dimensions import Dimension
from odkanon.linked import make_dimensions, release_linked
from odkanon.linked.fixed_zoning import zoning_of
from odkanon.linked.linked_release import NO_SAFE_TABLE, TOO_FEW
from odkanon.release_format.folder import open_release
from worlds.people import Trip, audit_with_trips, crowd, findings, release, together, write


def dimension(labels: list[str]) -> Dimension:
    return Dimension("mode", ("mode",), tuple((each,) for each in labels), np.arange(len(labels), dtype=np.int32))


def test_joined_values_are_remembered() -> None:
    once = dimension(["a", "b", "c", "d"]).join(np.array([False, True, False, True]))
    assert once.labels == (("a",), ("c",), ("other",))
    assert once.value.tolist() == [0, 2, 1, 2]
    assert once.segments_of(2) == [{"mode": "b"}, {"mode": "d"}]
    twice = once.join(np.array([True, False, False]))
    assert twice.labels == (("c",), ("other",))
    assert twice.joined == (("a",), ("b",), ("d",))
    assert twice.value.tolist() == [1, 1, 0, 1]
    assert once.segments_of(0) == [{"mode": "a"}]


def test_a_value_that_is_called_other_is_one_of_them() -> None:
    joined = dimension(["a", "other", "z"]).join(np.array([True, False, False]))
    assert joined.labels == (("z",), ("other",))
    assert joined.segments_of(1) == [{"mode": "a"}, {"mode": "other"}]


def many_values(path: Path) -> Path:
    """Two large groups everywhere; five small ones, each in flows of its own where it is too small."""
    trips = [
        Trip(who, place, place)
        for place in range(5)
        for who in [*crowd(30, "Woman", prefix=f"w{place}"), *crowd(30, "Man", prefix=f"m{place}")]
    ]
    trips += [
        Trip(who, place, place)
        for group in range(5)
        for place in range(5)
        for who in crowd(3, f"group {group}", prefix=f"g{group}{place}")
    ]
    return write(trips, path)


def test_small_values_are_joined_until_the_tables_stay_within_the_budget(tmp_path: Path) -> None:
    path = many_values(tmp_path / "trips.parquet")
    made = together(path, tmp_path / "releases", Rule(trips=10), ["sex"], segment_budget=0.2)
    assert made.over_budget == {}
    assert [part.title for part in made.parts] == ["sex=Man", "sex=Woman", "sex=other"]
    assert [each["sex"] for each in made.parts[-1].joined] == [f"group {number}" for number in range(5)]
    assert made.suppressed["sex"] <= 0.2
    assert findings(audit_with_trips(path, tmp_path / "releases")) == []


def tied(path: Path) -> Path:
    """Ages of women that are too rare for tables of their own, where ages cannot be joined across the sexes."""
    people = [person for age in (15, 25, 45) for person in crowd(4, "Woman", age)] + crowd(30, "Woman", 75)
    people += [person for age in (15, 25) for person in crowd(30, "Man", age)]
    return write([Trip(who, 0, 5) for who in people], path)


def test_a_budget_that_cannot_be_kept_is_a_caution(tmp_path: Path) -> None:
    path = tied(tmp_path / "trips.parquet")
    made = together(path, tmp_path / "releases", Rule(trips=10), ["sex", "sex*age"], segment_budget=0.0)
    assert made.over_budget == {"sex*age": pytest.approx(12 / 102)}
    segments = ["--segment", "sex", "--segment", "sex*age"]
    done = odkanon("anonymize", path, "--k", "10", *segments, "--segment-budget", "0", "-o", tmp_path / "out")
    assert done.returncode == 0
    words = " ".join(output(done).split())
    assert "he tables by sex*age suppress 11.8% of the trips, more than the 0.0% allowed" in words
    done = odkanon("anonymize", path, "--k", "10", *segments, "--segment-budget", "0.2", "-o", tmp_path / "enough")
    assert "more than" not in output(done)
    assert "suppress more individually" in " ".join(output(done).split())


def test_a_value_with_many_trips_is_not_called_too_few(tmp_path: Path) -> None:
    """Six women in each of two flows: neither can be shown, nor can the men beside them, on zones that are given."""
    men = [Trip(who, place, place) for place in (0, 8) for who in crowd(30, "Man", prefix=f"{place}")]
    release(write(men, tmp_path / "men.parquet"), tmp_path / "zones", Rule(trips=10))
    trips = men + [Trip(who, place, place) for place in (0, 8) for who in crowd(6, "Woman", prefix=f"{place}")]
    read = read_trips(write(trips, tmp_path / "trips.parquet"))
    made = release_linked(
        read, Rule(trips=10), make_dimensions(read, ["sex"]), zoning=zoning_of(open_release(tmp_path / "zones"))
    )
    assert len(made.whole.classes) == 2
    assert [part.reason for part in made.parts] == [NO_SAFE_TABLE, NO_SAFE_TABLE]
    assert made.over_budget == {}
    few = [Trip(who, 0, 0) for number in range(3) for who in crowd(4, f"rare {number}", age=30)]
    nested = write([*men, *few, *(Trip(who, 0, 0) for who in crowd(30, "rare 0", age=70))], tmp_path / "few.parquet")
    reasons = {part.reason for part in together(nested, tmp_path / "made", Rule(trips=10), ["sex", "sex*age"]).parts}
    assert reasons <= {None, TOO_FEW}
