"""Rows of releases as equations: which columns there are, and what is in them, by a world of four places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.by_hand import Flows, tables
from audit.by_hand import Known as Regions
from audit.by_hand import release as told
from odkanon.audit import equation_systems
from odkanon.audit.differencing.equations import EquationSystem
from odkanon.audit.equation_systems import _contained, _distinct, make_system, number_rows, strictest_threshold
from odkanon.audit.relations import inside_mark
from odkanon.audit.release_reader import PublishedRelease
from odkanon.audit.zone_geometry import AREA
from worlds.tries import tries

ORIGINS = ({(0, "A"), (1, "a")}, {(0, "A"), (1, "b")}, {(0, "B")}, {(0, "C"), (1, "c")})
"""The places where trips start, by the zones of the releases 0 and 1 that they lie in; trips end in one place."""
ROWS = [(0, "A", "X", 11), (0, "B", "X", 5), (0, "C", "X", 6), (1, "a", "x", 4), (1, "c", "x", 5)]
"""Numbered through, these are the rows 0 to 4; the zone b of release 1 has too few trips for one."""


class Known:
    """Places of which the zones are known."""

    def areas_of(self, numbers: Iterable[int]) -> dict[int, set[int]]:
        assert sorted(numbers) == [0, 1]
        return {}

    def regions(self, axis: str, numbers: list[int]) -> list[frozenset[tuple[int, str]]]:
        assert sorted(numbers) == [0, 1]
        return [frozenset(each) for each in (ORIGINS if axis == "origin" else ({(0, "X"), (1, "x")},))]


def release(number: int, rule: dict[str, float], *, boxes: bool = False) -> PublishedRelease:
    names = "ABC" if number == 0 else "abc"
    zones = {"origin": names, "destination": "X" if number == 0 else "x"}
    kind: dict[str, Any] = {"kind": "box"} if boxes else {"level": 0}
    about = {axis: [({"id": zone, **kind}, None) for zone in listed] for axis, listed in zones.items()}
    return PublishedRelease(number, f"r{number}", Path(f"r{number}"), {"rule": rule}, None, {}, about, ("trips",))


BOTH_ABOUT: list[tuple[str | None, int]] = [("v", 0), ("v", 0), ("w", 0), (None, 0), ("v", 1), ("u", 1)]
BOTH_ABOUT += [(who, 3) for who in "vwxyz"]
FIRST_ABOUT: list[tuple[str | None, int]] = [("m", 0), ("m", 0), ("n", 0), ("o", 3)]
"""Trips of whom both releases are about, and only release 0: who, and where from."""


def world() -> duckdb.DuckDBPyConnection:
    """Return the database of an audit with these trips in it."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE classes (release INTEGER, origin VARCHAR, destination VARCHAR, trips BIGINT)")
    connection.execute("CREATE TABLE records (trip INTEGER, row INTEGER, trips INTEGER, weight DOUBLE, person VARCHAR)")
    for number in (0, 1):
        connection.execute(f"CREATE TABLE member{number} (trip INTEGER, co VARCHAR, cd VARCHAR)")
    connection.executemany("INSERT INTO classes VALUES (?, ?, ?, ?)", ROWS)
    for trip, (who, place) in enumerate(BOTH_ABOUT + FIRST_ABOUT):
        connection.execute("INSERT INTO records VALUES (?, ?, 1, 2.5, ?)", [trip, trip, who])
        for number, zone in sorted(ORIGINS[place]):
            if number == 0 or trip < len(BOTH_ABOUT):
                connection.execute(f"INSERT INTO member{number} VALUES (?, ?, ?)", [trip, zone, "Xx"[number]])
    number_rows(connection)
    return connection


ALONE, BOTH = frozenset({0}), frozenset({0, 1})


def made(
    *rules: dict[str, float], boxes: bool = False, atoms: Sequence[frozenset[int]] = (ALONE, BOTH)
) -> EquationSystem:
    places: Any = Known()
    sides = [[release(number, rule, boxes=boxes and number == 1)] for number, rule in enumerate(rules)]
    return make_system(world(), places, sides, atoms)


TRIPS = {"trips": 5.0}
FOUND = [(0, -1), (0, 3), (2, -1), (2, 4)]
"""What trips there are tells apart: in row 0 alone, in rows 0 and 3, and so on."""


def test_columns_are_what_the_rows_tell_apart_and_what_may_be_there() -> None:
    """Nobody starts in B, but somebody might."""
    found = made(TRIPS, TRIPS)
    assert [tuple(row) for row in found.rows.tolist()] == [*FOUND, (1, -1)]
    assert found.names == ("trips",)
    assert found.mass[:, 0].tolist() == [5, 4, 1, 5, 0]
    assert found.least.tolist() == [5]
    assert found.contributors == ()


@pytest.mark.parametrize(
    ("atoms", "more"),
    [
        ((ALONE,), {(1, -1)}),
        ((frozenset({1}),), {(-1, 3), (-1, 4)}),
        ((BOTH, frozenset({1})), {(1, -1), (-1, 3), (-1, 4)}),
        ((), set()),
    ],
)
def test_what_may_be_there_is_settled_by_whom_releases_are_about(
    atoms: tuple[frozenset[int], ...], more: set[tuple[int, int]]
) -> None:
    rows = [tuple(row) for row in made(TRIPS, TRIPS, atoms=atoms).rows.tolist()]
    assert rows[:4] == FOUND
    assert sorted(rows[4:]) == sorted(more)


@pytest.mark.parametrize(("most", "rows"), [(4, 5), (3, 4)])
def test_where_places_cannot_be_listed_only_what_is_there_counts(
    most: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equation_systems, "MOST_CELLS", most)
    assert len(made(TRIPS, TRIPS).rows) == rows
    assert len(made(TRIPS, TRIPS, boxes=True).rows) == 4


def test_every_measure_of_any_rule_counts_with_the_highest_threshold() -> None:
    found = made({"trips": 3.0, "weight": 20.0}, {"trips": 4.0, "persons": 2.5})
    assert found.names == ("trips", "weight")
    assert found.least.tolist() == [4.0, pytest.approx(20.0, rel=1e-9)]
    assert found.least[1] < 20
    assert found.mass.tolist() == [[5, 12.5], [4, 10], [1, 2.5], [5, 12.5], [0, 0]]
    (persons,) = found.contributors
    assert (persons.name, persons.least) == ("persons", 3)
    # v and u besides the two men; one trip of the second column names nobody.
    assert np.diff(persons.start).tolist() == [4, 2, 1, 5, 0]
    assert persons.count_distinct(np.array([0, 1])) == 5  # v, u, w, and the men m and n
    assert persons.count_distinct(np.array([4])) == 0
    assert len(persons.contributor) == 12


def test_thresholds_of_several_releases() -> None:
    releases = [release(0, {"trips": 3.0}), release(1, {"trips": 0.5, "weight": 0.25})]
    assert [strictest_threshold(releases, name) for name in ("trips", "weight", "persons")] == [3, 0.25, 0]


numbers = st.sampled_from([-1, 0, 1, 2, 7, 2**20, 2**21 - 2, 2**31 - 3, 2**31 - 2, 2**40])


@tries(200)
@given(st.integers(1, 3).flatmap(lambda width: st.tuples(*[st.lists(st.tuples(*[numbers] * width), min_size=1)] * 2)))
def test_columns_are_the_same_where_all_their_rows_are(tables: tuple[list[Any], list[Any]]) -> None:
    here, there = (np.array(table, dtype=np.int64) for table in tables)
    assert _contained(here, there).tolist() == [each in tables[1] for each in tables[0]]
    assert sorted(map(tuple, _distinct(here).tolist())) == sorted(set(tables[0]))


@pytest.mark.parametrize("most", range(4))
def test_all_columns_up_to_a_number_are_different(most: int) -> None:
    every = np.array([(one, other) for one in range(-1, most) for other in range(-1, most)], dtype=np.int64)
    assert len(_distinct(np.concatenate([every, every]))) == len(every)
    small = every[(every < 1).all(axis=1)]
    assert _contained(every, small).tolist() == (every < 1).all(axis=1).tolist()
    assert _contained(small, every).all()


def test_large_numbers_are_told_apart() -> None:
    """As one number these columns would be the same: what exceeds 64 bits is lost."""
    large = 2**32 - 2
    known = np.array([(0, 0, 5), (large, 0, 0)])
    assert not _contained(np.array([(0, 0, -1)]), known).any()
    assert len(_distinct(np.concatenate([known, known + np.array([0, 0, 1])]))) == 4


INSIDE = inside_mark(0)
PLACES: Flows = {("a1", "b1"): (12,), ("a2", "b1"): (13,), ("b1", "b1"): (14,)}
"""Rows 0, 1 and 2."""
DISTRICTS: Flows = {("A", "B"): (20,)}
"""Row 3."""


def possible(
    *atoms: set[int], listed: set[int] | None = None, all_of: int | None = None
) -> set[tuple[int, ...]] | None:
    """Return in which rows a trip may be, of two releases that some trips may be about."""
    connection = tables(PLACES, DISTRICTS)
    number_rows(connection)
    both = [told(number) for number in range(2)]
    if all_of is not None:
        both[all_of].manifest["unlisted"] = {"at_most_trips": 0}
    places: Any = Regions(PLACES, DISTRICTS)
    sides = [[each] for each in both]
    found = equation_systems.possible_columns(
        connection, places, sides, [frozenset(each) for each in atoms], listed or set()
    )
    return None if found is None else set(map(tuple, found.tolist()))


def test_a_trip_between_any_two_places_is_in_the_rows_between_them() -> None:
    assert possible({0}) == {(0, -1), (1, -1), (2, -1)}
    assert possible({1}) == {(-1, 3)}
    assert possible({0, 1}) == {(0, 3), (1, 3), (2, -1), (-1, 3)}  # the last from A to the other place of B
    assert possible({0, 1}, {0}) == {(0, 3), (1, 3), (2, -1), (-1, 3), (0, -1), (1, -1)}
    assert possible() is None


def test_of_whom_all_is_listed_each_trip_is_in_a_row() -> None:
    assert possible({0, 1}, listed={1}) == {(0, 3), (1, 3), (-1, 3)}
    assert possible({0, 1}, listed={0}) == {(0, 3), (1, 3), (2, -1)}
    assert possible({0, 1}, listed={0, 1}) == {(0, 3), (1, 3)}
    assert possible({0, 1}, all_of=1) == {(0, 3), (1, 3), (-1, 3)}
    assert possible({0}, listed={1}) == {(0, -1), (1, -1), (2, -1)}


class InAnArea(Regions):
    """The same places, of which some are in the area that release 0 was kept to."""

    def __init__(self, *inside: str) -> None:
        super().__init__(PLACES, DISTRICTS)
        self._inside = inside

    def areas_of(self, numbers: Iterable[int]) -> dict[int, set[int]]:
        return {0: {0}}

    def regions(self, axis: str, numbers: list[int]) -> list[frozenset[tuple[int, str]]]:
        return [
            region | {(0, AREA)} if any((0, place) in region for place in self._inside) else region
            for region in super().regions(axis, numbers)
        ]


@pytest.mark.parametrize(
    ("inside", "atoms", "expected"),
    [
        (("a1", "b1"), [{0, INSIDE}], {(0, -1), (2, -1)}),
        (("a1", "b1"), [{0, 1, INSIDE}], {(0, 3), (2, -1)}),
        (("a1", "b1"), [{1}], {(-1, 3)}),
        (("a1", "a2", "b1"), [{1, INSIDE}], {(-1, 3)}),
        (("b1",), [{0, INSIDE}], {(2, -1)}),
        (("b1",), [{0, 1, INSIDE}, {1}], {(2, -1), (-1, 3)}),
        (("a1",), [{0, INSIDE}], set()),
    ],
)
def test_trips_inside_an_area_are_nowhere_else(
    inside: tuple[str, ...], atoms: list[set[int]], expected: set[tuple[int, int]]
) -> None:
    connection = tables(PLACES, DISTRICTS)
    number_rows(connection)
    places: Any = InAnArea(*inside)
    sides = [[told(0)], [told(1)]]
    found = equation_systems.possible_columns(connection, places, sides, [frozenset(each) for each in atoms])
    assert found is not None
    assert set(map(tuple, found.tolist())) == expected


def test_trips_outside_an_area_may_be_anywhere_else() -> None:
    connection = tables(PLACES, DISTRICTS)
    number_rows(connection)
    places: Any = InAnArea("a1", "a2", "b1")
    found = equation_systems.possible_columns(connection, places, [[told(0)], [told(1)]], [frozenset({0})])
    assert found is not None
    assert found.tolist() == []


@pytest.mark.parametrize(("less", "listed"), [(0, True), (1, False)])
def test_pairs_of_places_that_are_too_many_to_list(less: int, listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = [len(Regions(PLACES, DISTRICTS).regions(axis, [0, 1])) for axis in ("origin", "destination")]
    assert min(shape) > 1
    monkeypatch.setattr(equation_systems, "MOST_CELLS", shape[0] * shape[1] - less)
    assert (possible({0, 1}) is not None) is listed


def test_rows_between_zones_that_are_not_there_lie_nowhere() -> None:
    connection = tables(PLACES, {("A", "B"): (20,), ("A", "nowhere"): (30,), ("nowhere", "B"): (40,)})
    number_rows(connection)
    places: Any = Regions(PLACES, DISTRICTS)
    sides = [[told(0)], [told(1)]]
    found = equation_systems.possible_columns(connection, places, sides, [frozenset({1})])
    assert found is not None
    assert found.tolist() == [[-1, 3]]
