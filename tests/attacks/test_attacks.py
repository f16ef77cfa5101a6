"""The adversary's side: each attack works against a naive release of the same trips, and fails against ours.

The attacks use published numbers only, and know nothing of the program: a table is a mapping from (origin, destination)
to a number of trips.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import h3
import pyarrow.parquet
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from odkanon import RefusedError, Rule
from worlds.people import Trip, places, populations, release, together, write
from worlds.tries import tries

K = 4
RULE = Rule(trips=K)
SEXES = ("Woman", "Man", "missing", "other")
Table = dict[tuple[str, str], int]
few = tries(15)
first = settings(max_examples=300, phases=(Phase.generate,), database=None)  # any world will do, it need not be small


def sex(trip: Trip) -> str:
    return trip.person.sex or "missing"


def naive(trips: Sequence[Trip], level: int = 0) -> Table:
    """Count trips between cells some levels up, and leave out what is below k: the textbook release."""
    counts = Counter(
        tuple(h3.cell_to_parent(places()[at], 10 - level) for at in (trip.origin, trip.destination)) for trip in trips
    )
    return {(flow[0], flow[1]): count for flow, count in counts.items() if count >= K}


def published(folder: Path) -> Table:
    rows = pyarrow.parquet.read_table(folder / "classes.parquet").to_pylist() if folder.is_dir() else []
    return {(row["origin"], row["destination"]): row["trips"] for row in rows}


def contains(zone: str, other: str) -> bool:
    return zone == "world" or (
        other != "world"
        and h3.get_resolution(zone) <= h3.get_resolution(other)
        and h3.cell_to_parent(other, h3.get_resolution(zone)) == zone
    )


def isolated(groups: Sequence[int]) -> list[int]:
    return [group for group in groups if 0 < group < K]


# Complement: everyone minus all but one of the segments.


def complement_attack(everyone: Table, segments: Sequence[Table]) -> list[int]:
    return isolated([count - sum(part.get(flow, 0) for part in segments) for flow, count in everyone.items()])


def naive_segments(trips: Sequence[Trip]) -> list[Table]:
    return [naive([trip for trip in trips if sex(trip) == value], 2) for value in SEXES]


def our_segments(trips: Sequence[Trip], rule: Rule = RULE) -> tuple[Table, list[Table], Counter[str]]:
    """Release by sex; return everyone, the segments, and the totals that their manifests tell."""
    with TemporaryDirectory() as name:
        path, folder = write(trips, Path(name) / "trips.parquet"), Path(name) / "releases"
        try:
            made = together(path, folder, rule, ["sex"])
        except RefusedError:
            return {}, [], Counter()
        totals = Counter({part.segment["sex"]: part.release.input.trips for part in made.parts if part.release})
        return published(folder / "whole"), [published(folder / f"sex={value}") for value in SEXES], totals


def test_complement_attack_works_against_naive_segments() -> None:
    found = find(
        populations(), lambda trips: bool(complement_attack(naive(trips, 2), naive_segments(trips))), settings=first
    )
    assert complement_attack(naive(found, 2), naive_segments(found))


# Differencing: two zonings of the same trips, one inside the other.


def differencing_attack(coarse: Table, fine: Table) -> list[int]:
    inside: dict[tuple[str, str], int] = defaultdict(int)
    for outer in coarse:
        for inner, count in fine.items():
            if contains(outer[0], inner[0]) and contains(outer[1], inner[1]):
                inside[outer] += count
    return isolated([coarse[flow] - count for flow, count in inside.items()])


def test_differencing_attack_works_against_two_naive_zonings() -> None:
    found = find(populations(), lambda trips: bool(differencing_attack(naive(trips, 2), naive(trips))), settings=first)
    assert differencing_attack(naive(found, 2), naive(found))


# Margins: sums of zones, or of segments, minus the published flows.


def margin_attack(flows: Table, margins: dict[str, int], axis: int) -> list[int]:
    known: Counter[str] = Counter()
    for flow, count in flows.items():
        known[flow[axis]] += count
    return isolated([total - known[zone] for zone, total in margins.items()])


def naive_margins(trips: Sequence[Trip]) -> dict[str, int]:
    """True sums of the origins, which a naive publisher adds as a service to the reader."""
    return Counter(h3.cell_to_parent(places()[trip.origin], 8) for trip in trips)


@few
@given(populations())
def test_margin_attack_fails(trips: list[Trip]) -> None:
    with TemporaryDirectory() as name:
        made = release(write(trips, Path(name) / "trips.parquet"), Path(name) / "release", RULE)
        if made.refusal:
            return
        features = json.loads((Path(name) / "release" / "zones.geojson").read_text())["features"]
        flows = published(Path(name) / "release")
        for number, axis in enumerate(("origin", "destination")):
            about = [feature["properties"] for feature in features if feature["properties"]["axis"] == axis]
            assert margin_attack(flows, {zone["id"]: zone["trips"] for zone in about}, number) == []


def test_margin_attack_works_against_true_margins() -> None:
    found = find(
        populations(), lambda trips: bool(margin_attack(naive(trips, 2), naive_margins(trips), 0)), settings=first
    )
    assert margin_attack(naive(found, 2), naive_margins(found), 0)


def total_attack(everyone: Table, segments: Sequence[Table], totals: Counter[str]) -> list[int]:
    """Take from a segment's total its published flows, and those of which only it is missing: what is left?"""
    left = []
    for number, value in enumerate(SEXES):
        if value not in totals:
            continue
        residual = totals[value] - sum(segments[number].values())
        for flow, count in everyone.items():
            hidden = [at for at, part in enumerate(segments) if flow not in part and (SEXES[at] in totals)]
            if hidden == [number]:
                residual -= count - sum(part.get(flow, 0) for part in segments)
        left.append(residual)
    return isolated(left)


def naive_totals(trips: Sequence[Trip]) -> Counter[str]:
    return Counter(sex(trip) for trip in trips)


def test_total_attack_works_against_naive_segments() -> None:
    def works(trips: list[Trip]) -> bool:
        return bool(total_attack(naive(trips, 2), naive_segments(trips), naive_totals(trips)))

    assert works(find(populations(), works, settings=first))


@few
@given(populations())
def test_no_attack_on_segments_released_together_works(trips: list[Trip]) -> None:
    everyone, segments, totals = our_segments(trips)
    assert complement_attack(everyone, segments) == []
    assert total_attack(everyone, segments, totals) == []
    for one in segments:
        assert differencing_attack(everyone, one) == []


# The person with ten trips: k trips are not k people.


def lonely_flows(trips: Sequence[Trip], flows: Table) -> list[tuple[str, str]]:
    """Find flows whose every trip is one person's; whoever knows that person knows what they did, and how often."""
    people: dict[tuple[str, str], set[str]] = defaultdict(set)
    for trip in trips:
        for flow in flows:
            if contains(flow[0], places()[trip.origin]) and contains(flow[1], places()[trip.destination]):
                people[flow].add(trip.person.name)
    return [flow for flow, names in people.items() if len(names) == 1]


commuters = st.builds(lambda trips, times: [*trips, *([trips[0]] * times)], populations(), st.integers(K, 2 * K))


@few
@given(commuters)
def test_the_person_with_ten_trips_is_not_published_alone(trips: list[Trip]) -> None:
    with TemporaryDirectory() as name:
        made = release(write(trips, Path(name) / "t.parquet"), Path(name) / "r", Rule(trips=K, persons=2))
        if made.refusal is None:
            assert lonely_flows(trips, published(Path(name) / "r")) == []


def test_the_person_with_ten_trips_shows_where_only_trips_are_counted() -> None:
    found = find(commuters, lambda trips: bool(lonely_flows(trips, naive(trips))), settings=first)
    assert lonely_flows(found, naive(found))
