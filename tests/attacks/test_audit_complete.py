"""What an exhaustive linear attacker finds in two or three releases, the audit names, and nothing else.

With the trips, or without them where the releases say how they lie to each other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from hypothesis import given
from hypothesis import strategies as st

from attacks.linear import Knowledge, Row, shown_groups
from odkanon import Hierarchy, InputError, Rule, audit_releases, read_hierarchy, read_matrix
from odkanon.audit import Report, TripsSource
from odkanon.linked.fixed_zoning import AxisZones, Zoning, release_on_zones
from odkanon.methods.method_registry import anonymize
from odkanon.release_format.recipe import recipe_path
from worlds.tries import tries

TREE = {"a1": "A", "a2": "A", "b1": "B", "b2": "B", "c1": "C"}
"""Places and their districts, which are in one town; C has a single place."""


class Move(NamedTuple):
    person: int
    origin: str
    destination: str
    sex: str
    age: int
    month: int


class Plan(NamedTuple):
    """How a release is made."""

    where: str | None
    k: int
    method: str
    counted: str = "trips"


FILTERS = (None, 'sex == "W"', 'sex == "M"', "age >= 18", "age >= 19", "month == 1", "month == 2", "person != 3")
METHODS = ("odkanon", "oigh", "atg-soft", "leaves", "districts")


def tree() -> Hierarchy:
    table = pa.table(
        {"leaf": list(TREE), "district": list(TREE.values()), "town": ["town"] * len(TREE)},
    )
    return read_hierarchy(table)


@st.composite
def moves(draw: st.DrawFn) -> list[Move]:
    """A few dozen trips between five places, most between a few of them."""
    busy = draw(st.lists(st.sampled_from(sorted(TREE)), min_size=1, max_size=3))
    place = st.sampled_from(busy) | st.sampled_from(sorted(TREE))
    move = st.builds(
        Move,
        st.integers(1, 12),
        place,
        place,
        st.sampled_from("WWM"),
        st.sampled_from([17, 18, 18, 19, 40]),
        st.sampled_from([1, 2]),
    )
    return draw(st.lists(move, min_size=12, max_size=45))


plans = st.lists(
    st.builds(
        Plan,
        st.sampled_from(FILTERS),
        st.sampled_from([3, 3, 4]),
        st.sampled_from(METHODS),
        st.sampled_from(["trips", "trips", "persons"]),
    ),
    min_size=2,
    max_size=3,
    unique=True,
)


told = st.builds(
    Plan, st.sampled_from([None, None, 'sex == "W"', 'sex == "M"']), st.sampled_from([3, 4]), st.sampled_from(METHODS)
)
"""Releases that can be told apart without the trips."""


def keeps(plan: Plan, move: Move) -> bool:
    """Tell whom a filter keeps, without the program."""
    return {
        None: True,
        'sex == "W"': move.sex == "W",
        'sex == "M"': move.sex == "M",
        "age >= 18": move.age >= 18,
        "age >= 19": move.age >= 19,
        "month == 1": move.month == 1,
        "month == 2": move.month == 2,
        "person != 3": move.person != 3,
    }[plan.where]


ON_ZONES = {"leaves": (0, 0), "districts": (1, 1), "from places": (0, 1), "to places": (1, 0)}
"""The levels of origins and destinations of releases on zones that do not depend on the data."""


def zones(level: int) -> AxisZones:
    """Return all places, or all districts, whatever the data."""
    names = np.array(sorted(set(TREE.values()) if level else TREE))
    numbers = np.arange(len(names))
    return AxisZones(names, names, numbers, np.full(len(names), level), {})


def save(path: Path, plan: Plan, folder: Path) -> bool:
    """Make a release; tell whether there is one."""
    try:
        od = read_matrix(path, hierarchy=tree(), where=plan.where, engine="memory")
    except InputError:
        return False
    rule = Rule(trips=plan.k) if plan.counted == "trips" else Rule(persons=plan.k)
    if plan.method in ON_ZONES:
        made = release_on_zones(od, rule, Zoning(*map(zones, ON_ZONES[plan.method])), full=tree())
    elif plan.method == "all leaves":
        made = anonymize(od, rule, method="oigh", at_level="leaf", budget=0.0)
    else:
        made = anonymize(od, rule, method=plan.method)
    if made.refusal is None:
        made.save(folder)
    return made.refusal is None


def below(zone: dict[str, object]) -> frozenset[str]:
    """Return the places of a zone by its public properties."""
    name, level = zone["id"], zone.get("level") or 0
    chain = {place: (place, district, "town") for place, district in TREE.items()}
    return frozenset(place for place, above in chain.items() if above[int(str(level))] == name)


def lists_all(folder: Path, *, steward: bool) -> bool:
    """Tell whether everybody can know that all trips are in a row; or the steward, who has the recipe."""
    if steward:
        return not json.loads(recipe_path(folder).read_text())["about"]["suppressed"]["trips"]
    return bool(json.loads((folder / "release.json").read_text())["unlisted"]["at_most_trips"] == 0)


def learn(trips: Sequence[Move], made: Sequence[tuple[Plan, Path]], *, steward: bool = False) -> Knowledge:
    """Read the published tables."""
    rows = []
    for number, (_, folder) in enumerate(made):
        features = json.loads((folder / "zones.geojson").read_text())["features"]
        places = {
            (each["properties"]["axis"], each["properties"]["id"]): below(each["properties"]) for each in features
        }
        rows += [
            Row(number, places["origin", row["origin"]], places["destination", row["destination"]], row["trips"])
            for row in pyarrow.parquet.read_table(folder / "classes.parquet").to_pylist()
        ]
    people = [frozenset(at for at, (plan, _) in enumerate(made) if keeps(plan, move)) for move in trips]
    whole = {number for number, (_, folder) in enumerate(made) if lists_all(folder, steward=steward)}
    cells = [
        (o, d, who)
        for o in TREE
        for d in TREE
        for who in sorted(set(people), key=sorted)
        if who and whole & who <= {row.table for row in rows if o in row.origins and d in row.destinations}
    ]
    counts = Counter((move.origin, move.destination, who) for move, who in zip(trips, people, strict=True))
    seen = {(move.person, move.origin, move.destination, who) for move, who in zip(trips, people, strict=True)}
    persons = np.array([[(person, *cell) in seen for cell in cells] for person in sorted({each[0] for each in seen})])
    return Knowledge(cells, rows, np.array([float(counts[cell]) for cell in cells]), persons)


def release_all(trips: Sequence[Move], chosen: Sequence[Plan], folder: Path) -> tuple[Path, list[tuple[Plan, Path]]]:
    path = folder / "trips.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist([move._asdict() for move in trips]), path)
    folders = [folder / f"release{at}" for at in range(len(chosen))]
    return path, [(plan, each) for plan, each in zip(chosen, folders, strict=True) if save(path, plan, each)]


def audited(path: Path | None, made: Sequence[tuple[Plan, Path]]) -> Report:
    source = None if path is None else TripsSource(path, hierarchy=tree())
    return audit_releases([folder for _, folder in made], trips=source, hierarchy=tree())


def compare(trips: Sequence[Move], chosen: Sequence[Plan], *, with_trips: bool = True) -> tuple[list[int], list[int]]:
    """Return the sizes of the groups that the attacker finds, and of those that the audit names."""
    with TemporaryDirectory() as name:
        path, made = release_all(trips, chosen, Path(name))
        if len(made) < 2:
            return [], []
        knowledge = learn(trips, made, steward=not with_trips)
        k = max(plan.k for plan, _ in made)
        k_persons = max((plan.k for plan, _ in made if plan.counted == "persons"), default=0)
        found = sorted({int(knowledge.truth[group].sum()) for group in shown_groups(knowledge, k, k_persons)})
        report = audited(path if with_trips else None, made)
        assert with_trips or not [each for each in report.findings if each.check == "relation"]
        assert not [each for each in report.findings if each.check == "recount" and each.severity == "finding"]
        told = [each for each in report.findings if each.check == "difference"]
        return found, sorted({each.details[0]["rest"] for each in told})


@tries(12)
@given(moves(), plans)
def test_the_audit_names_what_an_exhaustive_attacker_finds_and_no_more(trips: list[Move], chosen: list[Plan]) -> None:
    found, named = compare(trips, chosen)
    assert found == named


@tries(12)
@given(moves(), st.lists(told, min_size=2, max_size=3, unique=True))
def test_without_trips_too_where_releases_say_what_they_are_about(trips: list[Move], chosen: list[Plan]) -> None:
    found, named = compare(trips, chosen, with_trips=False)
    assert found == named


def crowd(count: int, origin: str, destination: str, sex: str, first: int = 20) -> list[Move]:
    return [Move(first + at, origin, destination, sex, 40, 1) for at in range(count)]


def test_one_person_less_is_found_and_named() -> None:
    """The test above would be worth nothing if there were nothing to find."""
    trips = [*crowd(5, "a1", "b1", "W"), *crowd(4, "b1", "a2", "M"), *crowd(1, "a1", "b1", "W", first=3)]
    everyone, without = Plan(None, 3, "leaves"), Plan("person != 3", 3, "leaves")
    assert compare(trips, [everyone, without]) == ([1], [1])


def test_three_releases_show_what_two_do_not() -> None:
    """Everyone between districts, less the men, less the women between the places that are published."""
    women = [*crowd(4, "a1", "b1", "W"), *crowd(2, "a1", "b2", "W"), *crowd(2, "b1", "c1", "W")]
    men = [*crowd(5, "a1", "b1", "M"), *crowd(5, "b2", "c1", "M")]
    plans = [Plan(None, 3, "districts"), Plan('sex == "M"', 3, "districts"), Plan('sex == "W"', 3, "leaves")]
    found, named = compare([*women, *men], plans)
    assert found == named == [2]
    assert compare([*women, *men], plans[::2]) == ([], [])


def test_what_one_release_leaves_out_is_shown_by_rows_across_those_of_another() -> None:
    """No row of one lies in a row of the other: places to districts, and districts to places."""
    trips = [*crowd(4, "a1", "b1", "W"), *crowd(4, "a2", "b1", "W"), *crowd(2, "a2", "b2", "W")]
    trips += [*crowd(2, "c1", "c1", "W"), *crowd(2, "b2", "c1", "W")]  # too few as well, so that no row goes with them
    chosen = [Plan(None, 3, "from places"), Plan(None, 3, "to places")]
    for with_trips in (True, False):
        assert compare(trips, chosen, with_trips=with_trips) == ([2], [2])


def test_whoever_says_that_nothing_is_missing_tells_that_other_places_are_empty() -> None:
    women = [*crowd(7, "a1", "b1", "W"), *crowd(4, "a2", "b1", "W"), *crowd(5, "b1", "a1", "W", first=50)]
    trips = [*women, *crowd(2, "a1", "b1", "M", first=80)]
    women_only = Plan('sex == "W"', 3, "districts")
    assert compare(trips, [Plan(None, 3, "leaves"), women_only]) == ([], [])
    assert compare(trips, [Plan(None, 3, "all leaves"), women_only]) == ([2], [2])


def test_few_persons_with_many_trips_are_found_and_named() -> None:
    """Two men with six trips in all are left, enough for a rule on trips."""
    trips = [*crowd(5, "a1", "b1", "W"), *crowd(2, "a1", "b1", "M") * 3]
    by_trips = [Plan(None, 3, "leaves"), Plan('sex == "W"', 3, "leaves")]
    assert compare(trips, by_trips) == ([], [])
    assert compare(trips, [plan._replace(counted="persons") for plan in by_trips]) == ([6], [6])
