"""Complementary suppression step by step, on tables that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linked.test_protect import cells_of
from odkanon import Rule
from odkanon.core.arrays import Bools
from odkanon.linked.complementary_suppression import (
    _arcs,
    _complements,
    _contributors,
    _fix_columns,
    _new_arc,
    _widen,
    protect_partition,
    protect_whole,
)
from odkanon.model.flows import Flows


def table_of(*rows: list[int]) -> Flows:
    """Cells with so many trips, row by row; those with none are not there. All trips are of different persons."""
    trips = {(row, column): each for row, counts in enumerate(rows) for column, each in enumerate(counts) if each}
    return cells_of({key: set(range(count)) for key, count in trips.items()}, trips)


def marked(*rows: str) -> Bools:
    """Return which cells are suppressed: those with an ``x``; a blank is a cell that is not there."""
    return np.array([each == "x" for row in rows for each in row if each != " "])


def drawn(which: Bools) -> str:
    return "".join("x" if each else "." for each in which)


@pytest.mark.parametrize(
    ("trips", "never", "expected"),
    [
        ([9, 8, 7], "...", "..."),
        ([9, 8, 4, 7], "....", "..xx"),  # one is too few to be left out alone: the smallest goes with it
        ([9, 8, 4, 3], "....", "..xx"),  # two that are enough
        ([9, 5, 5, 2], "....", ".x.x"),  # of equal ones the first
        ([9, 8, 7], "x..", "x.."),  # what cannot be published is enough by itself
        ([3, 8, 7], "x..", "x.x"),
        ([3, 1], "..", "xx"),  # nothing is left that could go
    ],
)
def test_what_goes_from_the_whole(trips: list[int], never: str, expected: str) -> None:
    classes = table_of(*[[each] for each in trips])
    assert drawn(protect_whole(classes, marked(never), Rule(trips=5))) == expected


def test_in_each_row_the_smallest_cell_goes_with_what_is_too_few() -> None:
    cells = table_of([3, 9, 8], [3, 4, 9], [9, 2, 9], [8, 9, 7], [8, 8, 1])
    hidden = marked("x..", "xx.", ".x.", "...", "..x")
    assert drawn(_complements(cells, hidden, Rule(trips=7))) == "..x" + "..." + "x.." + "..." + "x.."
    assert not _complements(cells, marked("...", "...", "...", "...", "..."), Rule(trips=7)).any()
    assert not _complements(cells, np.ones(15, dtype=bool), Rule(trips=7)).any()


def test_the_first_row_of_all_is_looked_at_where_it_is_the_only_one() -> None:
    assert drawn(_complements(table_of([3, 9, 8], [9, 9, 9]), marked("x..", "..."), Rule(trips=7))) == "..x..."


# Columns 0 and 1 are suppressed together in rows 0 and 1, columns 1 and 2 in row 2; nothing is in row 3.
CELLS = table_of([3, 5, 9], [2, 1, 9], [9, 4, 6], [9, 9, 9])
HIDDEN = marked("xx.", "xx.", ".xx", "...")
SPREAD = np.array([[5, 5, 0], [6, 10, 4], [0, 6, 6]])
"""What each column has suppressed in rows where the other one is, too."""


@pytest.mark.parametrize("least", [1, 4, 5, 6, 7, 11])
@pytest.mark.parametrize("measure", ["trips", "persons", "weight"])
def test_arcs_are_strong_where_enough_is_hidden_in_the_same_rows(measure: str, least: int) -> None:
    """Weights are three times the trips; a little more than the threshold is asked of them."""
    contributors = np.array(
        [[3, 3, 0], [5, 5, 4], [0, 6, 6]]
    )  # those of the smaller cells of a column are in the larger ones
    mass = {"trips": SPREAD, "persons": contributors, "weight": 3 * SPREAD - 1}[measure]
    asked: dict[str, Any] = {measure: 3 * least if measure == "weight" else least}
    together, strong = _arcs(CELLS, HIDDEN, CELLS.destination.astype(np.int64), 3, Rule(**asked))
    apart = np.array([[False, True, False], [True, False, True], [False, True, False]])
    assert np.array_equal(together, apart)
    assert np.array_equal(strong, apart & (mass >= asked[measure]))


def test_arcs_are_strong_where_all_that_a_rule_counts_is_enough() -> None:
    column = CELLS.destination.astype(np.int64)
    for rule, expected in (
        (Rule(trips=5, persons=4), [(1, 0), (2, 1)]),
        (Rule(trips=6, persons=3), [(1, 0), (2, 1)]),
        (Rule(trips=3, persons=3), [(0, 1), (1, 0), (1, 2), (2, 1)]),
    ):
        _, strong = _arcs(CELLS, HIDDEN, column, 3, rule)
        assert [tuple(each) for each in np.argwhere(strong).tolist()] == expected


def test_contributors_are_counted_once_in_the_rows_of_another_column() -> None:
    """Persons 0 and 39, the first and the last of all, and a cell that nobody named."""
    trips = {(0, 0): 2, (0, 1): 2, (1, 0): 2, (1, 2): 1, (2, 0): 9, (2, 2): 3}
    persons = {(0, 0): {0, 39}, (0, 1): {0}, (1, 0): {0, 5}, (1, 2): set[int](), (2, 0): {7}, (2, 2): {39, 38}}
    cells = cells_of(persons, trips)
    hidden = np.flatnonzero(marked("xx", "xx", ".x"))
    row = np.array([0, 0, 1, 1, 2])
    mask = np.array([[1.0, 1, 0], [1, 0, 1], [0, 0, 1]])
    counts = _contributors(cells, "persons", hidden, row, cells.destination.astype(np.int64), mask)
    assert counts.tolist() == [[3, 2, 2], [1, 1, 0], [0, 0, 2]]


def arc(cells: Flows, hidden: Bools, arcs: list[tuple[int, int]]) -> tuple[int, int, int] | None:
    return _new_arc(cells, hidden, cells.destination.astype(np.int64), arcs)


def test_the_arc_that_costs_least_is_made_strong() -> None:
    cells = table_of([3, 4, 20], [9, 9, 20], [9, 8, 20], [12, 0, 5])
    hidden = marked("xx.", "...", "...", ". .")
    assert arc(cells, hidden, [(0, 1)]) == (2, 0, 1)  # 9 and 8; where 12 are, the second column has nothing
    assert arc(cells, hidden, [(1, 0)]) == (2, 1, 0)
    assert arc(cells, hidden, [(0, 2)]) == (3, 0, 2)  # 12 and 5
    assert arc(cells, hidden, [(0, 1), (0, 2)]) == (2, 0, 1)
    assert arc(cells, hidden, [(0, 2), (0, 1)]) == (2, 0, 1)
    assert arc(cells, hidden, [(0, 1), (1, 0)]) == (2, 0, 1)  # of equal ones the first
    assert arc(cells, hidden, [(0, 0), (1, 1)]) is None  # from a column to itself leads none
    assert arc(cells, hidden, [(0, 0), (0, 2)]) == (3, 0, 2)
    assert arc(cells, hidden, []) is None


def test_what_is_suppressed_already_costs_nothing() -> None:
    cells = table_of([9, 30], [20, 5], [7, 31])
    assert arc(cells, marked("..", ".x", ".."), [(0, 1)]) == (1, 0, 1)  # 20, rather than 9 + 30 or 7 + 31
    assert arc(cells, marked(".x", ".x", ".."), [(0, 1)]) == (0, 0, 1)
    assert arc(cells, marked("xx", "xx", "xx"), [(0, 1)]) is None
    assert arc(cells, marked("x.", "x.", "x."), [(0, 1)]) is None  # the first has to be there to go


def test_columns_that_hold_together_are_left() -> None:
    cells = table_of([7, 8, 20], [9, 9, 20])
    hidden = marked("xx.", "...")
    assert _fix_columns(cells, hidden, np.arange(3), Rule(trips=7)) is None
    assert drawn(hidden) == "xx...."


def test_more_goes_until_columns_hold_together() -> None:
    cells = table_of([3, 8, 20], [9, 12, 20], [10, 10, 20])
    hidden = marked("xx.", "...", "...")
    assert _fix_columns(cells, hidden, np.arange(3), Rule(trips=7)) is None
    assert drawn(hidden) == "xx." + "..." + "xx."  # 3 need more: 10 and 10 are fewer than 9 and 12


def test_columns_that_cannot_hold_together_are_told_by_their_numbers() -> None:
    cells = table_of([3, 4, 20], [0, 9, 20])
    assert _fix_columns(cells, marked("xx.", " .."), np.array([5, 7, 8]), Rule(trips=7)) == (5, 7)
    cells = table_of([4, 9, 20], [9, 0, 20])
    assert _fix_columns(cells, marked("xx.", ". ."), np.array([7, 5, 8]), Rule(trips=7)) == (7, 5)


@pytest.mark.parametrize(
    ("rows", "hidden", "width", "expected"),
    [
        # 4 is between 0 and 12: the smallest rectangle through it
        (([4, 8], [9, 9], [9, 15], [12, 15]), ("xx", "..", "..", ".."), 6, "xx" + "xx" + ".." + ".."),
        (([4, 8], [9, 9], [9, 15], [12, 15]), ("xx", "..", "..", ".."), 0, "xx" + "xx" + ".." + ".."),
        (([9, 8], [9, 9]), ("xx", ".."), 6, "xx" + ".."),  # what meets the rule may be known
        (([4, 8], [9, 9]), ("xx", "xx"), 6, "xx" + "xx"),  # wide enough
    ],
)
def test_what_is_nearly_known_gets_company(
    rows: tuple[list[int], ...], hidden: tuple[str, ...], width: int, expected: str
) -> None:
    cells, which = table_of(*rows), marked(*hidden)
    assert _widen(cells, which, np.arange(2), Rule(trips=6), {"trips": width}) is None
    assert drawn(which) == expected


def test_the_column_that_stays_nearly_known_is_told() -> None:
    cells = table_of([9, 8, 4], [9, 9, 9])
    which = marked(".xx", "...")
    assert _widen(cells, which, np.array([4, 6, 8]), Rule(trips=6), {"trips": 40}) == (8, 8)
    assert _widen(cells, marked(".xx", "..."), np.array([4, 6, 8]), Rule(trips=6), {}) is None


def test_every_measure_is_kept_wide() -> None:
    """Twelve trips are at hand, and 36 of weight: enough for 30 of one, and too few for 40."""
    for measure, width, expected in (("trips", 12, None), ("weight", 36, None), ("weight", 60, (0, 0))):
        cells = table_of([4, 12], [12, 12])
        assert _widen(cells, marked("xx", "xx"), np.arange(2), Rule(trips=6), {measure: width}) == expected


@pytest.mark.parametrize(
    ("rows", "closed", "withheld", "expected", "gone"),
    [
        (([9, 9], [9, 9]), ("..", ".."), "..", "....", ".."),
        (([9, 9], [9, 9]), ("xx", ".."), "..", "xx..", ".."),  # a row that is not published
        (([9, 9, 9], [9, 9, 9]), ("...", "..."), "x..", "x..x..", "x.."),  # what it has in each row is enough
        (([3, 9, 9], [9, 9, 9]), ("...", "..."), "x..", "xx.xx.", "xx."),  # 3 are too few: two tables go
        (([9, 9], [9, 9]), ("..", ".."), "xx", "xxxx", "xx"),
    ],
)
def test_what_is_given_stays(
    rows: tuple[list[int], ...], closed: tuple[str, ...], withheld: str, expected: str, gone: str
) -> None:
    group = np.zeros(len(withheld), dtype=np.int64)
    given = marked(withheld)
    plan = protect_partition(table_of(*rows), marked(*closed), given, group, Rule(trips=6))
    assert (drawn(plan.suppressed), drawn(plan.withheld)) == (expected, gone)
    assert drawn(given) == withheld  # not changed in place
