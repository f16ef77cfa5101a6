"""What a cascade is asked for and told, by hand and at the boundaries."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import h3
import numpy as np
import pytest

from odkanon import InputError, Rule
from odkanon.methods.cascade.method import (
    _last,
    counts_contributors_or_trips,
    forecast,
    ladder_of,
    settled,
    within_budget,
)
from odkanon.methods.cascade.roll_up import PublicationRule
from odkanon.methods.method_registry import anonymize
from odkanon.model.flows import Totals
from odkanon.model.provenance import Source, Summary
from odkanon.model.release_spec import Budget
from worlds.matrices import od_of_cells
from worlds.towns import four_zones, people, town


def test_what_was_asked_for_is_told() -> None:
    od = town(("a1", "b1", people(12)), ("a2", "b2", people(12))).od
    plain = {"allow_inference": False}
    assert anonymize(od, Rule(trips=4), method="cascade").parameters == {**plain, "withstands": 3}
    assert anonymize(od, Rule(trips=4), method="cascade", coarsest=0).parameters == {**plain, "coarsest": 0}
    told = anonymize(od, Rule(trips=4), method="cascade", budget=0.2).parameters
    assert told == {**plain, "budget": 0.2, "budget_of": "trips", "withstands": 3}
    with pytest.raises(InputError, match="budget_of does not apply without a budget"):
        anonymize(od, Rule(trips=4), method="cascade", budget_of="rows")
    with pytest.raises(InputError, match="the matrix has none"):
        anonymize(od, Rule(trips=4), method="cascade", drop_order="place")
    assert "under" in str(anonymize(od, Rule(trips=99), method="cascade").refusal)
    assert "within the budget" not in str(anonymize(od, Rule(trips=99), method="cascade").refusal)
    assert "within the budget" in str(anonymize(od, Rule(trips=99), method="cascade", budget=0.2).refusal)


def test_the_coarsest_is_a_level_of_the_tree() -> None:
    tree = four_zones()
    assert [_last(tree, level) for level in (None, 0, 1, tree.top)] == [tree.top, 0, 1, tree.top]
    for level in (-1, tree.top + 1):
        with pytest.raises(InputError, match=f"the coarsest level to publish must lie between 0 and {tree.top}, not"):
            _last(tree, level)


def test_the_coarsest_level_is_one_of_places_and_not_of_attributes() -> None:
    tree = four_zones()
    assert [tuple(ladder_of([tree] * 3, level).levels[-1]) for level in (0, 1, None)] == [
        (0, 0, tree.top),
        (1, 1, tree.top),
        (tree.top, tree.top, tree.top),
    ]


@pytest.mark.parametrize(
    ("allowance", "kept"),
    [(1, "..."), (2, "xxx"), (5, "xxx"), (6, "xx."), (8, "xx."), (9, ".x."), (18, "...")],
)
def test_the_coarsest_rows_go_while_the_budget_lasts(allowance: int, kept: str) -> None:
    """Two trips are in no row; rows of 3, 9 and 4 trips are 5, 2 and 7 wide."""
    groups = SimpleNamespace(trips=np.array([3, 9, 4]), pairs=np.array([1, 1, 1]))
    sizes = np.array([[2, 1, 3], [3, 1, 4]])

    class Rows(SimpleNamespace):
        def __len__(self) -> int:
            return 3

    rows = Rows(groups=groups, rung=np.array([1, 0, 2]), sizes=lambda: sizes)
    rolled_up: Any = SimpleNamespace(rows=rows, unlisted=Totals(1, 2))
    found = within_budget(rolled_up, Budget(0.5, "trips"), allowance)
    assert "".join("x" if each else "." for each in found) == kept


def settling(*falls: tuple[list[int], list[int]], rule: Rule, safe: bool = True) -> tuple[list[float], int]:
    """Return the thresholds that falls with such rows, trips and weights, are asked for, and which of them is taken."""
    asked: list[float] = []

    class Rows(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.groups.trips)

    def residual_trips(terms: PublicationRule) -> Any:
        trips, weight = (np.array(each, dtype=np.int64) for each in falls[len(asked)])
        asked.append(float(terms.rule.weight or 0))
        rows = Rows(groups=SimpleNamespace(trips=trips, weight_units=weight), hides_weight=trips < 0)
        return SimpleNamespace(rows=rows, number=len(asked))

    whole = Summary(4, 10, 50, {}, 1, Source(rows=10))
    found: Any = settled(residual_trips, PublicationRule(rule, 2), whole, safe=safe)
    return asked, found.number


BY_MEAN = Rule(weight=10, k=2, mean_weight=Fraction(5))
LIGHT, HEAVY = ([2, 2], [10, 20]), ([2], [20])


def test_rows_have_k_times_the_mean_weight_of_what_is_listed() -> None:
    """Four listed trips weigh 30, so that two weigh 15; then two weigh 20, as they are."""
    assert settling(LIGHT, HEAVY, rule=BY_MEAN) == ([10, 15], 2)
    assert settling(([2, 2], [10, 10]), rule=BY_MEAN) == ([10], 1)
    assert settling(([2, 3], [10, 15]), rule=BY_MEAN) == ([10], 1)


def test_what_was_asked_once_is_asked_until_the_end() -> None:
    assert settling(LIGHT, ([10, 2], [20, 16]), rule=BY_MEAN) == ([10, 15], 2)
    assert settling(LIGHT, ([4, 2], [15, 60]), ([2], [25]), rule=BY_MEAN) == ([10, 15, 25], 3)


@pytest.mark.parametrize(
    ("rule", "safe"),
    [
        (BY_MEAN, False),
        (Rule(weight=10, k=2, mean_weight=Fraction(4)), True),
        (Rule(weight=10, trips=2), True),
        (Rule(trips=2), True),
    ],
)
def test_other_rules_do_not_go_by_what_is_listed(rule: Rule, safe: bool) -> None:
    assert settling(LIGHT, rule=rule, safe=safe)[1] == 1


def test_where_nothing_is_listed_there_is_no_mean() -> None:
    assert settling(([], []), rule=BY_MEAN) == ([10], 1)
    assert settling(LIGHT, ([], []), rule=BY_MEAN) == ([10, 15], 2)


def test_an_outlook_settles_as_its_cascade_does() -> None:
    """Of weights 1, 2 + 4 and 4 + 4, rows of 6 and 8 could be listed at once; two mean weights of these are 7."""
    cells = np.array([h3.str_to_int(cell) for cell in sorted(h3.cell_to_children("861fb4667ffffff", 7))[:3]], np.uint64)
    weights = np.array([1, 2, 4, 4, 4], dtype=np.int64)
    od = od_of_cells(cells[[0, 1, 1, 2, 2]], cells[[0] * 5], weight=weights)
    rule = Rule.protect("population", k=2, of=od)
    listed = int(anonymize(od, rule, method="cascade").classes.trips.sum())
    assert forecast(od, rule, None).trips == listed == 5


@pytest.mark.parametrize(
    ("rule", "counted"),
    [
        (Rule(trips=2), True),
        (Rule(weight=2), False),
        (Rule(weight=2, mean_weight=Fraction(3)), False),
        (Rule(weight=2, k=2), True),
        (Rule(weight=2, persons=2), True),
        (Rule(weight=2, trips=2), True),
    ],
)
def test_rules_that_say_how_many_trips_a_row_has(rule: Rule, counted: bool) -> None:
    assert counts_contributors_or_trips(rule) is counted
