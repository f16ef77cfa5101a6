"""Groups that rows show: all combinations where there are few, minimum cuts where there are many, and both agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.audit import shown
from odkanon.audit.shown import System, small_groups
from worlds.tries import tries

LEAST = 4


def system(columns: Mapping[Any, int]) -> System:
    rows = np.array(list(columns), dtype=np.int64)
    mass = np.array(list(columns.values()), dtype=np.float64)[:, None]
    nothing = np.zeros((len(rows), 0), dtype=np.int64)
    return System(rows, mass, nothing, np.array([float(LEAST)]), np.zeros(0, dtype=np.int64))


def masses(found: System) -> list[int]:
    groups, undecided = small_groups(found)
    assert not undecided
    return sorted(int(found.mass[group.columns].sum()) for group in groups)


@st.composite
def two_sided(draw: st.DrawFn) -> System:
    """Columns between up to five rows a side; some without a trip."""
    sides = st.sampled_from([-1, 0, 1, 2, 3, 4]), st.sampled_from([-1, 10, 11, 12, 13, 14])
    columns = draw(st.dictionaries(st.tuples(*sides), st.integers(0, 5), min_size=2, max_size=16))
    columns.pop((-1, -1), None)
    # Rows meet the rule by themselves: what is missing lies in places that a row has for itself or shares already.
    for side in (0, 1):
        for row in {key[side] for key in columns if key[side] >= 0}:
            own = [key for key in columns if key[side] == row]
            lacking = LEAST - sum(columns[key] for key in own)
            columns[own[0]] += max(lacking, 0)
    return system(columns or {(0, 10): 1})


def least_by_column(found: System) -> dict[int, float]:
    """Return, for each column in some group, the mass of the smallest group with it."""
    least: dict[int, float] = {}
    for group in small_groups(found)[0]:
        total = float(found.mass[group.columns].sum())
        for column in group.columns.tolist():
            if found.mass[column] > 0:
                least[column] = min(total, least.get(column, total))
    return least


@tries(300)
@given(two_sided())
def test_cuts_find_for_each_column_the_least_group_with_it(found: System) -> None:
    with pytest.MonkeyPatch.context() as patch:
        expected = least_by_column(found)
        patch.setattr(shown, "MOST_ROWS", 0)
        assert least_by_column(found) == expected


def test_a_row_less_the_rows_inside_it() -> None:
    assert masses(system({(0, 10): 22, (0, -1): 3, (1, 11): 20})) == [3]


def test_two_rows_less_one_that_lies_in_both() -> None:
    assert masses(system({(0, -1): 1, (0, 10): 9, (1, 10): 9, (1, -1): 1})) == [2]


def test_a_row_that_may_reach_further_is_not_taken_away() -> None:
    """The empty column is possible: nobody outside knows that the two rows have the same trips in common."""
    assert masses(system({(0, 10): 22, (0, -1): 3, (-1, 10): 0})) == []


def test_a_column_that_must_be_empty_hides_nothing() -> None:
    """Row 0 is all in row 10, so column (0, 11) is empty, and row 11 lies in row 1."""
    columns = {(0, 10): 25, (0, 11): 0, (1, 11): 12, (1, -1): 3}
    assert masses(system(columns)) == [3]


def test_three_sides_that_show_something_only_together() -> None:
    """A + B, B + C and C + A give twice each of them."""
    columns = {(0, -1, 20): 9, (0, 10, -1): 2, (-1, 10, 20): 8}
    assert 2 in masses(system(columns))


def test_too_many_combinations_are_said_to_be_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "MOST_STATES", 1)
    found = system({(0, 10, 20): 1, (0, 10, 21): 2, (1, 10, 20): 3, (1, 11, 21): 3, (0, 11, 20): 2})
    assert small_groups(found)[1] == 1
