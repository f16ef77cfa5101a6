"""How trips are split."""

from __future__ import annotations

from pathlib import Path

import pytest

from odkanon import InputError, read_trips
from odkanon.attributes.dimensions import parent_dimension
from odkanon.linked import make_dimensions
from odkanon.read.trips import Trips
from worlds.people import Person, Trip, write


@pytest.fixture
def trips(tmp_path: Path) -> Trips:
    people = [
        Person("a", "Woman", 9, 1.0),
        Person("b", "Man", 10, 1.0),
        Person("c", "Man", 19, 1.0),
        Person("d", None, 70, 1.0),
        Person("e", " ", None, 1.0),
    ]
    hours = [0, 5, 6, 19, 23]
    return read_trips(
        write([Trip(who, 0, 1, hour) for who, hour in zip(people, hours, strict=True)], tmp_path / "t.pq")
    )


def labels(trips: Trips, spec: str, **options: tuple[int, ...]) -> list[str]:
    (dimension,) = make_dimensions(trips, [spec], **options)
    return [dimension.title(value) for value in dimension.value.tolist()]


def test_every_trip_has_a_label_and_missing_ones_share_one(trips: Trips) -> None:
    assert labels(trips, "sex") == ["sex=Woman", "sex=Man", "sex=Man", "sex=missing", "sex=missing"]


def test_ages_are_banded(trips: Trips) -> None:
    assert labels(trips, "age") == ["age=under 10", "age=10-19", "age=10-19", "age=70+", "age=missing"]
    assert labels(trips, "age", age_bands=(18, 65)) == ["age=under 18"] * 2 + ["age=18-64", "age=65+", "age=missing"]


def test_hours_and_slots_over_midnight(trips: Trips) -> None:
    assert labels(trips, "hour") == ["hour=00", "hour=05", "hour=06", "hour=19", "hour=23"]
    assert labels(trips, "hour:6-19,19-6") == ["hour=19-06", "hour=19-06", "hour=06-19", "hour=19-06", "hour=19-06"]
    assert labels(trips, "hour:6-9") == ["hour=other", "hour=other", "hour=06-09", "hour=other", "hour=other"]


def test_crossings_combine_labels(trips: Trips) -> None:
    assert labels(trips, "sex*age")[0] == "sex=Woman,age=under 10"


def test_crossings_are_finer_than_what_they_cross(trips: Trips) -> None:
    dimensions = make_dimensions(trips, ["sex*hour", "sex"])
    assert parent_dimension(dimensions, 0) == 1
    assert parent_dimension(dimensions, 1) is None


def test_tables_tied_in_two_ways_are_refused(tmp_path: Path) -> None:
    people = [Person(f"{sex}{age}", sex, age, 1.0) for sex in ("Woman", "Man") for age in (15, 35)]
    trips = read_trips(write([Trip(who, 0, 1) for who in people], tmp_path / "t.pq"))
    with pytest.raises(InputError, match="drop one of the three"):
        parent_dimension(make_dimensions(trips, ["sex", "age", "sex*age"]), 2)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["gender"], "no column 'gender'"),
        (["sex", "sex"], "twice"),
        (["sex*"], "not understood"),
        (["age:10-20"], "only hour takes slots"),
        (["hour:6-x"], "not understood"),
        (["hour:6-9,8-10"], "two time slots"),
    ],
)
def test_what_is_not_understood_says_so(trips: Trips, specs: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_dimensions(trips, specs)
