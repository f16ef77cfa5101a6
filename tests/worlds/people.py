"""Small worlds of people who make trips, with sex, age and hour; and releases of them, written to folders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import h3
import pyarrow as pa
import pyarrow.parquet
from hypothesis import strategies as st

from odkanon import ODMatrix, Release, Rule, read_trips
from odkanon.audit import Finding, Report, TripsSource, audit_releases
from odkanon.linked import LinkedReleases, make_dimensions, release_linked
from odkanon.methods.method_registry import anonymize
from odkanon.publish.save import save_linked
from odkanon.read.od_matrix import build_od


class Person(NamedTuple):
    name: str
    sex: str | None
    age: int | None
    weight: float


class Trip(NamedTuple):
    person: Person
    origin: int
    destination: int
    hour: int = 8


@cache
def places() -> list[str]:
    """Leaf cells: two families of siblings, their cousins, and one far away."""
    centre = h3.latlng_to_cell(48.8566, 2.3522, 8)
    first, second = sorted(h3.cell_to_children(centre, 9))[:2]
    other = sorted(h3.grid_ring(centre, 1))[0]
    cells = sorted(h3.cell_to_children(first, 10))[:4] + sorted(h3.cell_to_children(second, 10))[:3]
    return [*cells, *sorted(h3.cell_to_children(other, 10))[:3], h3.latlng_to_cell(48.95, 2.6, 10)]


def table_of(trips: Sequence[Trip]) -> pa.Table:
    starts = [h3.cell_to_latlng(places()[trip.origin]) for trip in trips]
    ends = [h3.cell_to_latlng(places()[trip.destination]) for trip in trips]
    return pa.table(
        {
            "person": [trip.person.name for trip in trips],
            # Minutes tell the trips of a person apart, which would be copies of each other without.
            "start_time": [
                f"2024-01-01 {trip.hour:02}:{at // 60 % 60:02}:{at % 60:02}" for at, trip in enumerate(trips)
            ],
            "start_lat": [place[0] for place in starts],
            "start_lon": [place[1] for place in starts],
            "end_lat": [place[0] for place in ends],
            "end_lon": [place[1] for place in ends],
            "weight": [trip.person.weight for trip in trips],
            "sex": pa.array([trip.person.sex for trip in trips], pa.string()),
            "age": pa.array([trip.person.age for trip in trips], pa.int64()),
        }
    )


def crowd(count: int, sex: str = "Woman", age: int = 30, prefix: str = "") -> list[Person]:
    return [Person(f"{prefix}{sex}{age}-{number}", sex, age, 1.0) for number in range(count)]


def scattered() -> list[Trip]:
    """Return trips of ten women and ten men in flows of less than ten: as many as may be suppressed for k = 10."""
    few = [(5, "Woman", 5), (5, "Man", 4), (6, "Woman", 5), (6, "Man", 4), (4, "Man", 2)]
    return [Trip(who, place, 9) for place, sex, count in few for who in crowd(count, sex, prefix=f"at{place}")]


def write(trips: Sequence[Trip], path: Path) -> Path:
    pyarrow.parquet.write_table(table_of(trips), path)
    return path


def matrix(path: Path, where: str | None = None) -> ODMatrix:
    return build_od(read_trips(path, where=where))


def release(path: Path, folder: Path, rule: Rule, *, where: str | None = None, method: str = "odkanon") -> Release:
    made = anonymize(matrix(path, where), rule, method=method)
    if made.refusal is None:
        made.save(folder)
    return made


def together(path: Path, folder: Path, rule: Rule, specs: Sequence[str], segment_budget: float = 0.3) -> LinkedReleases:
    trips = read_trips(path)
    made = release_linked(trips, rule, make_dimensions(trips, specs), segment_budget=segment_budget)
    save_linked(made, folder)
    return made


def findings(report: Report, check: str | None = None) -> list[Finding]:
    return [each for each in report.findings if each.severity == "finding" and check in (None, each.check)]


def audit_with_trips(path: Path, *folders: Path) -> Report:
    return audit_releases(folders, trips=TripsSource(path))


@st.composite
def populations(draw: st.DrawFn) -> list[Trip]:
    """People with a few trips each; most between a few places, so that something can be published."""
    sexes = st.sampled_from(["Woman", "Man", "Woman", "Man", None])
    ages = st.sampled_from([15, 25, 25, 45, 75, None])
    people = [
        Person(f"p{number}", draw(sexes), draw(ages), draw(st.integers(1, 8)) / 2)
        for number in range(draw(st.integers(5, 25)))
    ]
    busy = draw(st.lists(st.integers(0, len(places()) - 1), min_size=1, max_size=5))
    place = st.sampled_from(busy) | st.integers(0, len(places()) - 1)
    trip = st.builds(Trip, st.sampled_from(people), place, place, st.sampled_from([7, 7, 12, 18, 23]))
    return draw(st.lists(trip, min_size=20, max_size=120))


@st.composite
def small_rules(draw: st.DrawFn) -> Rule:
    """Thresholds that small worlds can meet."""
    measures = draw(st.sets(st.sampled_from(["trips", "weight", "persons"]), min_size=1))
    top = {"trips": 8, "weight": 12, "persons": 4}
    thresholds: dict[str, Any] = {measure: draw(st.integers(2, top[measure])) for measure in sorted(measures)}
    return Rule(**thresholds)
