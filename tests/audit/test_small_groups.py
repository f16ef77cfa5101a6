"""Groups that rows show: all combinations where there are few, minimum cuts where there are many, and both agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import isqrt
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.audit import pairwise_checks
from odkanon.audit.differencing import equations, min_cut
from odkanon.audit.differencing.equations import ColumnContributors, EquationSystem
from odkanon.audit.pairwise_checks import find_small_groups
from worlds.tries import tries

LEAST = 4
T = TypeVar("T")


def system(columns: Mapping[Any, int], least: int = LEAST) -> EquationSystem:
    rows = np.array(list(columns), dtype=np.int64)
    mass = np.array(list(columns.values()), dtype=np.float64)[:, None]
    return EquationSystem(rows, ("trips",), mass, np.array([float(least)]))


def of_persons(columns: Mapping[Any, Collection[int]]) -> EquationSystem:
    """Columns by who is in them; each person has a hundred trips in each, so that trips are never few."""
    start = np.append(0, np.cumsum([len(who) for who in columns.values()]))
    contributor = np.array([person for who in columns.values() for person in sorted(who)], dtype=np.int64)
    trips = system({key: 100 * len(who) for key, who in columns.items()})
    return replace(trips, contributors=(ColumnContributors("persons", LEAST, contributor, start),))


def masses(found: EquationSystem) -> list[int]:
    groups, undecided = find_small_groups(found)
    assert not undecided
    return sorted(int(found.mass[group.columns].sum()) for group in groups)


def columns_with(values: st.SearchStrategy[T]) -> st.SearchStrategy[dict[tuple[int, int], T]]:
    """Columns between up to five rows a side."""
    sides = st.sampled_from([-1, 0, 1, 2, 3, 4]), st.sampled_from([-1, 10, 11, 12, 13, 14])
    keys = st.tuples(*sides).filter(lambda key: key != (-1, -1))
    return st.dictionaries(keys, values, min_size=2, max_size=16)


@st.composite
def two_sided(draw: st.DrawFn) -> EquationSystem:
    """Columns of trips; some without any."""
    columns = draw(columns_with(st.integers(0, 5)))
    # Rows meet the rule by themselves: what is missing lies in places that a row has for itself or shares already.
    for side in (0, 1):
        for row in {key[side] for key in columns if key[side] >= 0}:
            own = [key for key in columns if key[side] == row]
            lacking = LEAST - sum(columns[key] for key in own)
            columns[own[0]] += max(lacking, 0)
    return system(columns)


@st.composite
def with_persons(draw: st.DrawFn) -> EquationSystem:
    """Columns of persons, in rows of which each has enough."""
    columns = draw(columns_with(st.sets(st.integers(0, 9), max_size=6)))
    for side in (0, 1):
        for row in {key[side] for key in columns if key[side] >= 0}:
            own = [columns[key] for key in columns if key[side] == row]
            inside = set().union(*own)
            own[0] |= set(sorted(set(range(10)) - inside)[: max(LEAST - len(inside), 0)])
    return of_persons(columns)


@st.composite
def of_weak_rows(draw: st.DrawFn) -> EquationSystem:
    """Rows of which some were published under a weaker rule."""
    return system(draw(columns_with(st.integers(0, 5))), least=draw(st.integers(2, 14)))


def least_by_column(found: EquationSystem) -> dict[int, float]:
    """Return, for each column in some group, the mass of the smallest group with it."""
    least: dict[int, float] = {}
    for group in find_small_groups(found)[0]:
        total = float(found.mass[group.columns].sum())
        for column in group.columns.tolist():
            if found.mass[column] > 0:
                least[column] = min(total, least.get(column, total))
    return least


def small_columns(found: EquationSystem) -> tuple[set[int], int]:
    """Return the columns with trips that are in some group below the rule, and how much is undecided."""
    groups, undecided = find_small_groups(found)
    small = [
        group
        for group in groups
        if found.mass[group.columns].sum() < found.least[0]
        or any(contributors.count_distinct(group.columns) < contributors.least for contributors in found.contributors)
    ]
    return {at for group in small for at in group.columns.tolist() if found.mass[at, 0] > 0}, undecided


def filled_groups(found: EquationSystem) -> set[frozenset[int]]:
    """Return the groups, without columns that are empty."""
    return {frozenset(at for at in group.columns.tolist() if found.mass[at]) for group in find_small_groups(found)[0]}


@tries(300)
@given(with_persons())
def test_cuts_find_every_column_in_a_group_of_few_persons_or_are_undecided(found: EquationSystem) -> None:
    expected, undecided = small_columns(found)
    assert not undecided
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equations, "MOST_ROWS", 0)
        columns, undecided = small_columns(found)
    assert columns <= expected
    assert columns == expected or undecided


@tries(300)
@given(of_weak_rows())
def test_a_small_row_that_is_published_hides_no_other_group(found: EquationSystem) -> None:
    expected, _ = small_columns(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equations, "MOST_ROWS", 0)
        assert small_columns(found)[0] >= expected


CROWD = set(range(10, 30))
BY_CUTS = {
    "two rows less one in both": ({(0, -1): {1, 2}, (0, 10): CROWD, (1, 10): CROWD, (1, -1): {2, 3}}, {0, 3}),
    "one person everywhere": ({(0, -1): {1}, (0, 10): CROWD | {1}, (1, 10): CROWD, (1, -1): {1}}, {0, 3}),
    "one less than the rule": ({(0, 10): CROWD, (0, -1): {1, 2, 3}}, {1}),
    "as many as the rule": ({(0, 10): CROWD, (0, -1): {1, 2, 3, 4}}, set[int]()),
    "the same two in two columns besides": (
        {(0, -1): {1}, (0, 10): CROWD, (1, -1): {2, 3}, (1, 10): CROWD, (2, -1): {2, 3}, (2, 10): CROWD},
        {0, 2, 4},
    ),
    "heads in columns of no group": (
        {(0, -1): {1, 2}, (0, 10): {0, 1, 2, 5}, (0, 12): {0, 1}, (1, -1): {0, 5, 7}, (1, 12): {9, 6}},
        {0, 2},
    ),
    "as many in two columns": ({(0, -1): {1, 2, 3}, (0, 10): CROWD, (1, 10): CROWD, (1, -1): {2, 3, 4}}, set[int]()),
}


@pytest.mark.parametrize("case", BY_CUTS)
def test_groups_of_few_persons_are_found_by_cuts(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, expected = BY_CUTS[case]
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    assert small_columns(of_persons(columns)) == (expected, 0)
    assert len(find_small_groups(of_persons(columns))[0]) == bool(expected)


WEAK = {
    "a row of the other side hides": (
        {(-1, 101): 0, (0, -1): 3, (0, 100): 2, (1, 101): 4, (1, 103): 4, (2, 102): 2, (2, 103): 0, (3, 103): 0}
        | {(3, 104): 4, (4, 101): 1, (4, 102): 3, (4, 103): 2},
        10,
    ),
    "and another": (
        {(-1, 101): 0, (0, 101): 0, (0, 102): 3, (0, 104): 5, (1, 102): 5, (1, 103): 4, (2, 100): 1, (2, 101): 3}
        | {(2, 102): 5, (3, 100): 2, (3, 103): 5, (3, 104): 0, (4, 101): 2},
        11,
    ),
}


WEAK |= {
    "a row that one more must not be in": (
        {(0, 10): 6, (0, 11): 2, (0, 12): 6, (1, 10): 0, (1, 12): 5, (2, 10): 5, (2, 11): 6, (2, 12): 1},
        20,
    ),
    "a single trip besides": ({(0, -1): 1, (0, 10): 3, (0, 11): 0}, 4),
    "an empty column of the first row": ({(-1, 11): 6, (0, 11): 0, (0, 13): 2}, 20),
    "rows that flow goes through twice": (
        {(0, -1): 3, (0, 10): 3, (0, 11): 5, (0, 12): 4, (2, -1): 4, (2, 10): 2, (2, 12): 5, (3, 10): 6},
        10,
    ),
}


@pytest.mark.parametrize("case", WEAK)
def test_published_rows_hide_no_group_on_either_side(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, least = WEAK[case]
    found = system(columns, least)
    expected, _ = small_columns(found)
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    assert small_columns(found)[0] == expected


def test_groups_that_meet_the_rule_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    found = system({(0, -1): 1, (0, 10): 9, (1, 10): 9, (1, -1): 3})
    assert masses(found) == []
    assert masses(replace(found, least=np.array([5.0]))) == [4]
    many = of_persons({(-1, 12): {0, 8, 2, 4}, (0, 10): {0, 9, 2, 1}, (1, 12): {1, 2}, (2, 12): {8, 6}})
    five = replace(many, contributors=(replace(many.contributors[0], least=5),))
    assert [group.columns.tolist() for group in find_small_groups(five)[0]] == [[0]]


def test_weight_is_shifted_until_a_column_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    columns = {(-1, 10): {8, 5}, (-1, 12): {0, 1, 2}, (-1, 13): {0, 1, 2, 6, 7, 9}, (0, 10): {5}, (0, 12): {8, 1, 5}}
    hard = of_persons(columns)
    assert find_small_groups(replace(hard, contributors=(replace(hard.contributors[0], least=5),))) == ([], 1)


def test_columns_without_trips_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the empty one it would not be decided what it is in; nobody is there."""
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    columns = {(0, -1): set[int](), (0, 10): {0, 1, 3, 5, 6, 8}, (1, -1): {3, 4, 5}, (1, 10): {8, 1, 6}}
    columns |= {(2, -1): {1, 3, 5, 6, 8}, (2, 10): {8, 1, 3, 4}, (3, -1): {2, 3, 4, 5, 6, 7}}
    found = of_persons(columns)
    assert find_small_groups(replace(found, contributors=(replace(found.contributors[0], least=5),))) == ([], 0)


def test_what_went_one_way_can_go_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first way that flow takes is not the best here; it is given back."""
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    found, _ = find_small_groups(
        system({(0, -1): 2, (0, 10): 4, (0, 11): 5, (1, -1): 4, (1, 10): 3, (1, 11): 2}, least=7)
    )
    assert [group.columns.tolist() for group in found] == [[0, 3]]


def test_trips_of_nobody_are_few_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    found = of_persons({(0, 10): CROWD, (0, -1): set()})
    assert small_columns(replace(found, mass=np.array([[2000.0], [50.0]]))) == ({1}, 0)


def test_trips_of_nobody_are_not_even_one_person() -> None:
    found = of_persons({(0, 10): CROWD, (0, -1): set()})
    one = replace(found.contributors[0], least=1)
    assert small_columns(replace(found, mass=np.array([[2000.0], [50.0]]), contributors=(one,))) == ({1}, 0)


def test_few_persons_in_too_many_ways_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "MOST_ROWS", 0)
    monkeypatch.setattr(min_cut, "ROUNDS", 0)
    assert small_columns(of_persons({(0, 10): CROWD, (0, -1): {1, 2, 3}})) == (set(), 1)


@tries(300)
@given(two_sided())
def test_cuts_find_for_each_column_the_least_group_with_it(found: EquationSystem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        expected, smallest = least_by_column(found), filled_groups(found)
        patch.setattr(equations, "MOST_ROWS", 0)
        assert least_by_column(found) == expected
        assert filled_groups(found) <= smallest


def test_a_row_less_the_rows_inside_it() -> None:
    assert masses(system({(0, 10): 22, (0, -1): 3, (1, 11): 20})) == [3]


def test_what_is_added_and_what_is_subtracted() -> None:
    found, _ = find_small_groups(system({(0, 10): 9, (0, -1): 1, (1, 10): 9, (1, -1): 2}))
    assert [(group.columns.tolist(), group.plus, group.minus) for group in found] == [([1, 3], (0, 1), (10,))]


def test_a_row_that_counts_twice_is_neither_added_nor_subtracted() -> None:
    """The last but one is the rows 1 and 2, 2 once more, less the rows 10 and 21."""
    found, _ = find_small_groups(system({(2, 10, 21): 5, (1, 10, -1): 9, (2, 10, -1): 5, (1, 11, 21): 9}, least=7))
    assert [(group.columns.tolist(), group.plus, group.minus) for group in found] == [
        ([0], (10, 21), (1, 2)),
        ([2], (), ()),
    ]


def test_groups_of_many_persons_are_passed_over() -> None:
    """One column has few, and is published as it is."""
    assert find_small_groups(of_persons({(0, 10): {1}, (0, -1): CROWD})) == ([], 0)


def test_two_rows_less_one_that_lies_in_both() -> None:
    assert masses(system({(0, -1): 1, (0, 10): 9, (1, 10): 9, (1, -1): 1})) == [2]


def test_a_row_that_may_reach_further_is_not_taken_away() -> None:
    """The empty column is possible: nobody outside knows that the two rows have the same trips in common."""
    assert masses(system({(0, 10): 22, (0, -1): 3, (-1, 10): 0})) == []


def test_a_column_that_must_be_empty_hides_nothing() -> None:
    """Row 0 is all in row 10, so column (0, 11) is empty, and row 11 lies in row 1."""
    columns = {(0, 10): 25, (0, 11): 0, (1, 11): 12, (1, -1): 3}
    assert masses(system(columns)) == [3]


def test_three_sides_disclose_a_group_only_jointly() -> None:
    """A + B, B + C and C + A give twice each of them."""
    columns = {(0, -1, 20): 9, (0, 10, -1): 2, (-1, 10, 20): 8}
    assert 2 in masses(system(columns))


def test_combinations_are_worked_out_modulo_a_prime() -> None:
    """Else some numbers could not be divided by."""
    assert all(equations.PRIME % divisor for divisor in range(2, isqrt(equations.PRIME) + 1))


def test_rows_without_trips_disclose_nothing() -> None:
    assert equations.enumerate_groups(system({(0, 10): 0, (0, -1): 0, (1, 10): 0})) == []


def test_too_many_combinations_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "MOST_STATES", 1)
    found = system({(0, 10, 20): 1, (0, 10, 21): 2, (1, 10, 20): 3, (1, 11, 21): 3, (0, 11, 20): 2})
    assert find_small_groups(found)[1] == 1


def latin_square(side: int) -> EquationSystem:
    """Three sides of rows; one trip is in a column that no rows single out, all others are many."""
    return system(
        {(i, 10 + j, 30 + (i + j) % side): 1 if i == j == 0 else 100 for i in range(side) for j in range(side)}
    )


@pytest.mark.parametrize(
    ("side", "work", "undecided"), [(8, 1 << 30, 0), (8, 64 << 12, 1), (8, (64 << 12) + 1, 0), (7, 0, 1)]
)
def test_work_is_limited(side: int, work: int, undecided: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise_checks, "MOST_WORK", work)
    assert find_small_groups(latin_square(side)) == ([], undecided)


def test_small_systems_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: only those of more than sixty columns count."""
    monkeypatch.setattr(pairwise_checks, "MOST_WORK", 1)
    assert find_small_groups(latin_square(7)) == ([], 0)


def test_systems_that_cannot_be_too_small_are_passed_over() -> None:
    found = latin_square(11)
    assert len(found.rows) > equations.MOST_ROWS
    assert find_small_groups(replace(found, mass=found.mass + 3)) == ([], 0)
    assert find_small_groups(replace(found, mass=found.mass * 0)) == ([], 0)
