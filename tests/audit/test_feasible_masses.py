"""Releases without their trips: which of them a trip may be about, and masses that fit their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from odkanon.audit import published_counts
from odkanon.audit.differences import Breakdown
from odkanon.audit.differencing.equations import InconsistentCountsError
from odkanon.audit.published_counts import feasible_masses, possible_atoms
from odkanon.audit.relations import Relation, RelationKind
from odkanon.audit.release_reader import PublishedRelease
from worlds.tries import tries


@st.composite
def worlds(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Columns on two or three sides with the trips in them, none in some."""
    sides = draw(st.integers(2, 3))
    rows = st.tuples(*(st.sampled_from([-1, *range(4 * side, 4 * side + 4)]) for side in range(sides)))
    columns = draw(st.lists(rows.filter(lambda row: max(row) >= 0), min_size=1, max_size=20, unique=True))
    trips = draw(st.lists(st.integers(0, 50), min_size=len(columns), max_size=len(columns)))
    return np.array(columns), np.array(trips, dtype=np.float64)


def added(rows: np.ndarray[Any, Any], masses: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    totals = np.zeros(12)
    for side in rows.T:
        np.add.at(totals, side[side >= 0], masses[side >= 0])
    return totals


@tries(100)
@given(worlds())
def test_masses_add_up_to_the_rows(world: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
    rows, trips = world
    totals = added(rows, trips)
    found = feasible_masses(rows, totals)
    assert found is not None
    assert (found >= 0).all()
    assert np.allclose(added(rows, found), totals, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "totals"),
    [
        ([[0, 2], [1, 2]], [5, 6, 10]),  # the one row has less than the two in it
        ([[0, 2], [1, 2], [1, -1]], [11, 6, 10]),
        ([[0, 2]], [5, 0, 4]),
        ([[0, 1, 2]], [5, 5, 4]),
        ([[0, 1, 2], [0, -1, -1]], [4, 5, 5]),
        ([[0, 1]], [-1, -1]),
        ([[0, 1]], [np.nan, 1]),
        ([[0, 1]], [np.inf, np.inf]),
    ],
)
def test_rows_that_contradict_each_other(rows: list[list[int]], totals: list[float]) -> None:
    with pytest.raises(InconsistentCountsError):
        feasible_masses(np.array(rows), np.array(totals, dtype=np.float64))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_what_is_sent_the_wrong_way_first_is_sent_back(size: float) -> None:
    """The first row can go to both, the second to one of them only."""
    rows = np.array([[0, 2], [0, 3], [1, 2]])
    found = feasible_masses(rows, size * np.array([4.0, 5.0, 5.0, 4.0]))
    assert found is not None
    assert found.tolist() == pytest.approx([0, 4 * size, 5 * size])


@pytest.mark.parametrize("seed", range(60))
def test_tangled_tables_fit(seed: int) -> None:
    """Many rows on two sides that meet in few columns each, so that most of what is sent has to be sent back."""
    random = np.random.default_rng(seed)
    pairs = np.unique(random.integers(0, 12, (26, 2)), axis=0) + np.array([0, 12])
    trips = random.integers(0, 3, len(pairs)) * random.integers(1, 40, len(pairs)).astype(np.float64)
    totals = np.zeros(24)
    for side in pairs.T:
        np.add.at(totals, side, trips)
    masses = feasible_masses(pairs, totals)
    assert masses is not None
    assert (masses >= 0).all()
    for side in pairs.T:
        assert np.bincount(side, masses, minlength=24)[np.unique(side)] == pytest.approx(totals[np.unique(side)])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("sides", [2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_rows_fit_exactly_where_non_negative_masses_add_up_to_them(seed: int, sides: int, size: float) -> None:
    """By a nonnegative least-squares fit of the same rows, some of which were changed by one trip."""
    random = np.random.default_rng(seed)
    rows = np.unique(random.integers(0, 3, (5, sides)) + 3 * np.arange(sides), axis=0)
    totals = np.zeros(3 * sides)
    np.add.at(totals, rows, random.integers(0, 9, (len(rows), 1)))
    totals = size * (totals + random.integers(0, 2) * random.integers(0, 2, 3 * sides))
    matrix = np.array([(rows == row).any(axis=1) for row in np.unique(rows)], dtype=np.float64)
    _, off = nnls(matrix, totals[np.unique(rows)])
    if off < 1e-6 * size:
        found = feasible_masses(rows, totals)
        assert found is not None
        assert (found >= 0).all()
        assert matrix @ found == pytest.approx(totals[np.unique(rows)])
    else:
        with pytest.raises(InconsistentCountsError):
            feasible_masses(rows, totals)


@pytest.mark.parametrize("size", [1, 1_000, 1_000_000_000])
def test_whole_counts_on_two_sides_have_whole_masses(size: int) -> None:
    """However large the counts next to them are, and whatever the order of the solver's steps."""
    random = np.random.default_rng(1)
    rows = np.unique(random.integers(0, 12, (40, 2)), axis=0) + np.array([0, 12])
    trips = random.integers(0, 7, len(rows)).astype(np.float64)
    trips[0] = size
    totals = np.bincount(rows.ravel(), trips.repeat(2), minlength=24).astype(np.float64)
    found = feasible_masses(rows, totals)
    assert found is not None
    assert (found == np.rint(found)).all()
    assert np.array_equal(np.bincount(rows.ravel(), found.repeat(2), minlength=24), totals)


def test_one_trip_too_many_is_found_beside_large_counts() -> None:
    rows, large = np.array([[0, 2], [1, 3]]), 1e9
    assert feasible_masses(rows, np.array([large, 5, large, 5])) is not None
    with pytest.raises(InconsistentCountsError):
        feasible_masses(rows, np.array([large, 5, large, 6]))


@pytest.mark.parametrize(("more", "fits"), [(0.9, True), (1.1, False)])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("sides", [2, 3])
def test_what_rounding_leaves_over_is_a_share_of_the_rows(sides: int, size: float, more: float, fits: bool) -> None:
    """Two rows, or three, have one column in common; by how much the first may say more."""
    said = np.full(sides, size)
    said[0] += more * 1e-7 * size * sides
    if fits:
        found = feasible_masses(np.arange(sides)[None], said)
        assert found == pytest.approx(size, rel=1e-6)
    else:
        with pytest.raises(InconsistentCountsError):
            feasible_masses(np.arange(sides)[None], said)


def test_numbers_of_other_rows_do_not_matter() -> None:
    found = feasible_masses(np.array([[0, 1]]), np.array([5.0, 5.0, np.inf, np.nan, -1.0]))
    assert found is not None
    assert found.tolist() == [5]


@pytest.mark.parametrize("sides", [2, 3])
def test_releases_without_rows_fit(sides: int) -> None:
    found = feasible_masses(np.zeros((0, sides), dtype=np.int64), np.zeros(0))
    assert found is not None
    assert found.tolist() == []


@pytest.mark.parametrize("sides", [2, 3])
def test_rows_without_trips_fit(sides: int) -> None:
    found = feasible_masses(np.arange(sides)[None], np.zeros(sides))
    assert found is not None
    assert found.tolist() == [0]


def test_three_sides_that_are_too_many_to_solve_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[0, 1, 2]])
    monkeypatch.setattr(published_counts, "MOST_VALUES", 3)
    assert feasible_masses(rows, np.ones(3)) is not None
    monkeypatch.setattr(published_counts, "MOST_VALUES", 2)
    assert feasible_masses(rows, np.ones(3)) is None


def release(number: int, *, thinned: bool = False) -> PublishedRelease:
    parameters = {"suppress": "before" if thinned else "after"}
    manifest = {"rule": {"trips": 10}, "parameters": parameters}
    return PublishedRelease(number, f"r{number}", Path(f"r{number}"), manifest, None, {}, {}, ("trips",))


ONE, TWO, ALL = release(1), release(2), release(0)


def atoms(
    *told: Relation, releases: tuple[PublishedRelease, ...], complete: tuple[Breakdown, ...] = ()
) -> list[list[int]]:
    found = possible_atoms(releases, told, complete)
    assert found is not None
    return sorted(sorted(each) for each in found)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("disjoint", [[0], [1]]),
        ("same", [[0, 1]]),
        ("part", [[0], [0, 1]]),
        ("overlap", [[0], [0, 1], [1]]),
        ("unknown", [[0], [0, 1], [1]]),
    ],
)
def test_possible_atoms(kind: RelationKind, expected: list[list[int]]) -> None:
    assert atoms(Relation(ONE, ALL, kind, "said"), releases=(ALL, ONE)) == expected
    assert atoms(Relation(ONE, ALL, kind, "said"), releases=(ONE, ALL)) == expected


def test_of_a_release_that_was_thinned_any_trip_may_be_missing() -> None:
    thin = replace(ONE, manifest=release(1, thinned=True).manifest)
    assert atoms(Relation(thin, ALL, "same", "said"), releases=(ALL, thin)) == [[0], [0, 1]]
    assert atoms(Relation(ALL, thin, "part", "said"), releases=(ALL, thin)) == [[0], [0, 1], [1]]


def test_complete_parts_leave_no_trip_outside() -> None:
    told = [Relation(ONE, ALL, "part", ""), Relation(TWO, ALL, "part", ""), Relation(ONE, TWO, "disjoint", "")]
    everybody = (Breakdown(ALL, (ONE, TWO), complete=True),)
    assert atoms(*told, releases=(ALL, ONE, TWO)) == [[0], [0, 1], [0, 2]]
    assert atoms(*told, releases=(ALL, ONE, TWO), complete=everybody) == [[0, 1], [0, 2]]
    assert atoms(*told, releases=(ALL, ONE), complete=everybody) == [[0], [0, 1]]
    # Another one beside them, and one of them thinned, of which any trip may be missing.
    other = release(3)
    some = [[0, 1], [0, 1, 3], [0, 2], [0, 2, 3], [3]]
    assert atoms(*told, releases=(ALL, ONE, TWO, other), complete=everybody) == some
    thin = (Breakdown(ALL, (release(1, thinned=True), TWO), complete=True),)
    assert atoms(*told, releases=(ALL, ONE, TWO), complete=thin) == [[0], [0, 1], [0, 2]]


def test_releases_that_can_lie_in_too_many_ways() -> None:
    found = possible_atoms([release(number) for number in range(10)], [], [])
    assert found is not None
    assert len(found) == 1023
    assert possible_atoms([release(number) for number in range(11)], [], []) is None
