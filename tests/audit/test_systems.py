"""Rows of releases as equations: which columns there are, and what is in them, by a world of four places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.audit import systems
from odkanon.audit.folder import Published
from odkanon.audit.shown.system import System
from odkanon.audit.systems import _contained, _distinct, highest, make_system, number_rows
from worlds.tries import tries

ORIGINS = ({(0, "A"), (1, "a")}, {(0, "A"), (1, "b")}, {(0, "B")}, {(0, "C"), (1, "c")})
"""The places where trips start, by the zones of the releases 0 and 1 that they lie in; trips end in one place."""
ROWS = [(0, "A", "X", 11), (0, "B", "X", 5), (0, "C", "X", 6), (1, "a", "x", 4), (1, "c", "x", 5)]
"""Numbered through, these are the rows 0 to 4; the zone b of release 1 has too few trips for one."""


class Known:
    """Places of which the zones are known."""

    def regions(self, axis: str, numbers: list[int]) -> list[frozenset[tuple[int, str]]]:
        assert sorted(numbers) == [0, 1]
        return [frozenset(each) for each in (ORIGINS if axis == "origin" else ({(0, "X"), (1, "x")},))]


def release(number: int, rule: dict[str, float], *, boxes: bool = False) -> Published:
    names = "ABC" if number == 0 else "abc"
    zones = {"origin": names, "destination": "X" if number == 0 else "x"}
    kind: dict[str, Any] = {"kind": "box"} if boxes else {"level": 0}
    about = {axis: [({"id": zone, **kind}, None) for zone in listed] for axis, listed in zones.items()}
    return Published(number, f"r{number}", Path(f"r{number}"), {"rule": rule}, None, {}, about, ("trips",))


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


def made(*rules: dict[str, float], boxes: bool = False, atoms: Sequence[frozenset[int]] = (ALONE, BOTH)) -> System:
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
    assert found.heads == ()


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
    monkeypatch.setattr(systems, "MOST_CELLS", most)
    assert len(made(TRIPS, TRIPS).rows) == rows
    assert len(made(TRIPS, TRIPS, boxes=True).rows) == 4


def test_every_measure_of_any_rule_counts_with_the_highest_threshold() -> None:
    found = made({"trips": 3.0, "weight": 20.0}, {"trips": 4.0, "persons": 2.5})
    assert found.names == ("trips", "weight")
    assert found.least.tolist() == [4.0, pytest.approx(20.0, rel=1e-9)]
    assert found.least[1] < 20
    assert found.mass.tolist() == [[5, 12.5], [4, 10], [1, 2.5], [5, 12.5], [0, 0]]
    (persons,) = found.heads
    assert (persons.name, persons.least) == ("persons", 3)
    # v and u besides the two men; one trip of the second column names nobody.
    assert np.diff(persons.start).tolist() == [4, 2, 1, 5, 0]
    assert persons.among(np.array([0, 1])) == 5  # v, u, w, and the men m and n
    assert persons.among(np.array([4])) == 0
    assert len(persons.head) == 12


def test_thresholds_of_several_releases() -> None:
    releases = [release(0, {"trips": 3.0}), release(1, {"trips": 0.5, "weight": 0.25})]
    assert [highest(releases, name) for name in ("trips", "weight", "persons")] == [3, 0.25, 0]


numbers = st.sampled_from([-1, 0, 1, 2, 7, 2**20, 2**21 - 2, 2**31 - 3, 2**31 - 2, 2**40])


@tries(200)
@given(st.integers(1, 3).flatmap(lambda width: st.tuples(*[st.lists(st.tuples(*[numbers] * width), min_size=1)] * 2)))
def test_columns_are_the_same_where_all_their_rows_are(tables: tuple[list[Any], list[Any]]) -> None:
    here, there = (np.array(table, dtype=np.int64) for table in tables)
    assert _contained(here, there).tolist() == [each in tables[1] for each in tables[0]]
    assert sorted(map(tuple, _distinct(here).tolist())) == sorted(set(tables[0]))
