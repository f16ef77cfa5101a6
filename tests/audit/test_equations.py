"""The split_components of a system of rows and columns, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from odkanon.audit.differencing.equations import (
    ColumnContributors,
    DisclosedGroup,
    EquationSystem,
    comparable_components,
    incidence_matrix,
    is_published,
    split_components,
)

CONTRIBUTORS = ColumnContributors("persons", 3, np.array([7, 8, 8, 9, 7]), np.array([0, 2, 2, 5]))
"""Persons 7 and 8 are in the first column, nobody in the second, 8, 9 and 7 in the third."""


def system(*rows: tuple[int, ...], contributors: tuple[ColumnContributors, ...] = ()) -> EquationSystem:
    """Columns in these rows, with 1, 2, 3, ... trips and ten times as much weight."""
    trips = np.arange(1.0, len(rows) + 1)
    mass = np.column_stack([trips, 10 * trips])
    return EquationSystem(
        np.array(rows, dtype=np.int64), ("trips", "weight"), mass, np.array([5.0, 20.0]), contributors
    )


def test_contributors_of_some_columns() -> None:
    some = CONTRIBUTORS.take(np.array([2, 1]))
    assert (some.name, some.least) == ("persons", 3)
    assert (some.contributor.tolist(), some.start.tolist()) == ([8, 9, 7], [0, 3, 3])
    assert [CONTRIBUTORS.count_distinct(np.array(each, dtype=np.int64)) for each in ([0], [1], [2], [0, 2], [])] == [
        2,
        0,
        3,
        3,
        0,
    ]


def test_some_columns_of_a_system() -> None:
    some = system((0, 1), (0, 2), (3, 2), contributors=(CONTRIBUTORS,)).take(np.array([2, 0]))
    assert some.rows.tolist() == [[3, 2], [0, 1]]
    assert some.mass.tolist() == [[3, 30], [1, 10]]
    assert (some.names, some.least.tolist()) == (("trips", "weight"), [5, 20])
    assert some.counts().tolist() == [[3], [2]]
    assert system((0, 1), (0, 2)).counts().shape == (2, 0)


@pytest.mark.parametrize(
    ("mass", "most", "small"),
    [
        ((5, 20), 3, False),
        ((4, 20), 3, True),
        ((5, 19), 3, True),
        ((4, 19), 3, True),
        ((5, 20), 2, True),
        ((4, 19), 2, True),
        ((5, 20), 4, False),
    ],
)
def test_one_measure_that_is_too_small_is_enough(mass: tuple[float, float], most: int, small: bool) -> None:
    found = system((0, 1), (0, 2), (3, 2), contributors=(CONTRIBUTORS,))
    assert found.maybe_small(np.array([mass]), np.array([[most]])).tolist() == [small]
    assert found.maybe_small(np.array([mass, (9, 90)]), np.array([[most], [9]])).tolist() == [small, False]


@pytest.mark.parametrize(("least", "small"), [((3, 3), [False]), ((3, 4), [True]), ((4, 3), [True])])
def test_one_kind_of_contributors_that_is_too_few_is_enough(least: tuple[int, int], small: list[bool]) -> None:
    attributes = tuple(
        ColumnContributors(str(each), each, CONTRIBUTORS.contributor, CONTRIBUTORS.start) for each in least
    )
    assert (
        system((0, 1), (0, 2), (3, 2), contributors=attributes).maybe_small(np.array([[5, 20]]), np.array([[3, 3]]))
        == small
    )


ROWS = [(0, 10), (1, 11), (0, -1), (-1, 11), (2, 12), (3, -1), (3, -1), (4, 13), (5, 13), (5, 14), (6, 14)]


def test_components_are_connected_by_columns() -> None:
    """Over several steps: 4 by 13, 5 and 14 with 6."""
    found = [part.tolist() for part in split_components(np.array(ROWS))]
    assert found == [[0, 2], [1, 3], [4], [5, 6], [7, 8, 9, 10]]
    backwards = [sorted(len(ROWS) - 1 - each for each in part) for part in split_components(np.array(ROWS[::-1]))]
    assert sorted(backwards) == found
    assert list(split_components(np.zeros((0, 2), dtype=np.int64))) == []


def test_rows_of_one_side_and_single_columns_show_nothing_but_themselves() -> None:
    assert [part.tolist() for part in comparable_components(np.array(ROWS))] == [[0, 2], [1, 3], [7, 8, 9, 10]]
    assert [part.tolist() for part in comparable_components(np.array([(0, -1, 5), (0, -1, -1)]))] == [[0, 1]]
    # Row 0 is a row like any other.
    assert [part.tolist() for part in comparable_components(np.array([(1, 0), (2, 0)]))] == [[0, 1]]
    assert [part.tolist() for part in comparable_components(np.array([(0, 1), (0, 2)]))] == [[0, 1]]


@pytest.mark.parametrize("length", [2, 3, 9, 40])
def test_long_chains_are_one_component(length: int) -> None:
    """However they are numbered."""
    order = np.random.default_rng(length).permutation(2 * length)
    chain = np.array(
        [(2 * at, 2 * at + 1) for at in range(length)] + [(2 * at + 2, 2 * at + 1) for at in range(length - 1)]
    )
    assert [len(part) for part in split_components(order[chain])] == [2 * length - 1]


def test_incidence() -> None:
    numbers, incidence = incidence_matrix(np.array([(0, 10), (0, -1), (7, 10)]))
    assert numbers.tolist() == [0, 7, 10]
    assert incidence.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 1]]
    numbers, incidence = incidence_matrix(np.array([(3, 5), (4, 5)]))
    assert (numbers.tolist(), incidence.tolist()) == ([3, 4, 5], [[1, 0], [0, 1], [1, 1]])


COLUMNS = [(0, 10), (0, 11), (1, 10), (1, -1), (-1, 11)]


@pytest.mark.parametrize(
    ("columns", "published"),
    [
        ([0, 1], True),  # row 0
        ([0, 2], True),  # row 10
        ([2, 3], True),  # row 1
        ([0, 1, 2, 3], True),  # rows 0 and 1
        ([0, 1, 2, 4], True),  # rows 10 and 11
        ([0], False),
        ([1], False),
        ([0, 1, 2], False),
        ([3], False),
        ([0, 1, 4], False),  # row 0, and somebody besides
        ([0, 1, 2, 3, 4], False),
    ],
)
def test_rows_of_one_side_are_published(columns: list[int], published: bool) -> None:
    live = np.ones(len(COLUMNS), dtype=bool)
    assert is_published(system(*COLUMNS), live, DisclosedGroup(np.array(columns), (), ())) is published


def test_columns_that_are_known_to_be_empty_do_not_count() -> None:
    live = np.array([True, False, True, True, True])
    assert is_published(system(*COLUMNS), live, DisclosedGroup(np.array([0]), (), ()))
    assert is_published(system(*COLUMNS), live, DisclosedGroup(np.array([4]), (), ()))
    assert not is_published(system(*COLUMNS), live, DisclosedGroup(np.array([2]), (), ()))
