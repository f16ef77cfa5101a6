"""Which values are joined, on tables by hand, where what can be published of them is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from odkanon import Rule
from odkanon.attributes.dimensions import Dimension
from odkanon.linked.suppression_pattern import Plan
from odkanon.linked.zoning_search import Attempt, LinkedTables, join_rare, search_joining
from odkanon.model.flows import Flows

JOINING = import_module("odkanon.linked.zoning_search")
BUDGET = 0.25


def ground_of(*sizes: Mapping[str, int], k: int = 5, parents: Sequence[int | None] | None = None) -> LinkedTables:
    """Trips of one pair in dimensions of as many trips in all, by how many each of their values has."""
    values = [np.repeat(np.arange(len(each)), list(each.values())).astype(np.int32) for each in sizes]
    trips = len(values[0])
    dimensions = [
        Dimension(name, (name,), tuple((label,) for label in each), value)
        for name, each, value in zip("xyz", sizes, values, strict=False)
    ]
    one, nowhere = np.ones(trips, dtype=np.int64), np.zeros(trips, dtype=np.int32)
    od: Any = SimpleNamespace(flows=Flows(nowhere, nowhere, one, one))
    return LinkedTables(od, dimensions, parents or [None] * len(sizes), Rule(trips=k))


def labels_of(ground: LinkedTables) -> list[str]:
    """The values of each dimension in one text, such as ``abc`` and ``a*``, where * is what was joined."""
    return [
        "".join("*" if label == "other" else label for (label,) in dimension.labels) for dimension in ground.dimensions
    ]


def publishing(ground: LinkedTables, shares: Sequence[float], shown: Sequence[str]) -> Attempt:
    """An attempt in which these values have tables: of the first of two classes, or of the second."""
    cells = []
    for labels, those in zip(labels_of(ground), shown, strict=True):
        here = np.array([label in those for label in labels])
        odd = np.arange(len(labels)) % 2 > 0
        cells.append(np.array([here & odd, here & ~odd]))
    plan = Plan(np.ones(2, dtype=bool), tuple(cells), tuple(shares))
    nothing: Any = None
    return Attempt(1.0, nothing, plan, np.arange(2), 1, {"shares": tuple(shares)})


def searched(
    monkeypatch: pytest.MonkeyPatch, ground: LinkedTables, plans: Sequence[tuple[Sequence[float], Sequence[str]]]
) -> tuple[list[list[str]], tuple[float, ...], list[str]]:
    """Search where one attempt after the other is given; return what was tried, and the shares and values found."""
    left, tried = list(plans), []

    def search(ground: LinkedTables, budget: float, method: str, options: dict[str, Any]) -> Attempt:
        assert (budget, method, options) == (BUDGET, "any", {"of": 1})
        tried.append(labels_of(ground))
        return publishing(ground, *left.pop(0))

    monkeypatch.setattr(JOINING, "search", search)
    found, attempt = search_joining(ground, BUDGET, "any", {"of": 1})
    assert not left
    return tried, attempt.plan.shares, labels_of(found)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"a": 5, "b": 9}, "ab"),  # none is rare
        ({"a": 4, "b": 9}, "ab"),  # one that is stays alone: the rule is not met
        ({"a": 2, "b": 9, "c": 2}, "abc"),  # two that are below the rule even together
        ({"a": 2, "b": 9, "c": 3}, "b*"),
        ({"a": 2, "b": 2, "c": 1}, "*"),
        ({"a": 2, "b": 9, "c": 3, "d": 0}, "bd*"),  # a value that does not occur is not rare
    ],
)
def test_rare_values_are_joined_where_they_meet_the_rule_together(sizes: dict[str, int], expected: str) -> None:
    assert labels_of(join_rare(ground_of(sizes))) == [expected]


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ([None, None, None], ["b*", "e*", "h*"]),
        ([None, 0, None], ["abc", "def", "h*"]),  # x is above y: values of neither are joined
        ([1, None, 1], ["abc", "def", "ghi"]),
        ([None, 2, None], ["b*", "def", "ghi"]),
    ],
)
def test_dimensions_that_are_tied_to_others_are_left(parents: list[int | None], expected: list[str]) -> None:
    sizes = [{"a": 2, "b": 9, "c": 3}, {"d": 3, "e": 8, "f": 3}, {"g": 4, "h": 7, "i": 3}]
    assert labels_of(join_rare(ground_of(*sizes, parents=parents))) == expected


def test_a_search_ends_where_all_have_tables_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a": 5, "b": 6, "c": 7, "d": 8}
    found = searched(monkeypatch, ground_of(sizes), [([BUDGET], ["abcd"])])
    assert found == ([["abcd"]], (BUDGET,), ["abcd"])
    found = searched(monkeypatch, ground_of(sizes), [([0.5], ["abcd"]), ([BUDGET], ["cd*"])])
    assert found == ([["abcd"], ["cd*"]], (BUDGET,), ["cd*"])
    found = searched(monkeypatch, ground_of(sizes), [([0.1], ["bcd"]), ([0.2], ["cd*"])])
    assert found == ([["abcd"], ["cd*"]], (0.2,), ["cd*"])  # under the budget, more is not worse


@pytest.mark.parametrize(
    ("plans", "best"),
    [
        ([([0.5], "abcde"), ([0.4], ""), ([0.6], "de*"), ([0.6], "e*")], 1),  # what is over the budget counts first
        ([([0.5], "abcde"), ([0.6], "cde*"), ([0.5], "de*"), ([0.5], "e*")], 0),  # of equal ones the first
        ([([0.5], "abc"), ([0.5], "ab*"), ([0.5], "ab*"), ([0.5], "b*")], 2),  # then how many have no table
        ([([0.5], "abcde"), ([0.2], "de*"), ([0.3], "de*"), ([0.3], "e*")], 1),
    ],
)
def test_the_best_of_all_that_was_tried_is_returned(
    monkeypatch: pytest.MonkeyPatch, plans: list[tuple[list[float], str]], best: int
) -> None:
    ground = ground_of({"a": 5, "b": 6, "c": 7, "d": 8, "e": 9})
    tried, shares, labels = searched(monkeypatch, ground, [(share, [shown]) for share, shown in plans])
    assert shares == tuple(plans[best][0])
    assert [labels] == tried[best : best + 1]


@pytest.mark.parametrize(
    ("sizes", "shown", "expected"),
    [
        ({"a": 8, "b": 6, "c": 7, "d": 5}, "abcd", "ac*"),  # the two smallest
        ({"a": 8, "b": 6, "c": 7, "d": 5}, "bd", "bd*"),  # those without a table, whatever their size
        ({"a": 8, "b": 6, "c": 7, "d": 5}, "abd", "ab*"),  # one without a table, and the smallest of the others
        ({"a": 8, "b": 6, "c": 7, "d": 5}, "", "ac*"),  # nothing has a table: the two smallest
        ({"a": 8, "b": 6, "c": 7, "d": 5}, "a", "a*"),
        ({"a": 8, "b": 6, "c": 7, "other": 5}, "abc*", "ac*"),  # the smallest goes to those that are joined
        ({"a": 8, "b": 6, "c": 7, "other": 5}, "ab*", "ab*"),  # the one without a table does
        ({"a": 8, "b": 6, "c": 7, "other": 5}, "abc", "ac*"),  # what is joined has none: the smallest is joined, too
        ({"a": 8, "b": 6, "c": 7, "other": 5}, "*", "ac*"),  # nothing else has a table
        ({"a": 8, "b": 6, "c": 0, "d": 5}, "abd", "ac*"),  # a value that does not occur is not joined,
        ({"a": 8, "b": 6, "c": 0, "d": 5}, "", "ac*"),  # nor does it need a table,
        ({"a": 8, "b": 6, "c": 0, "d": 5}, "ab", "ac*"),
        ({"a": 8, "b": 6, "c": 7, "d": 1}, "d", "d*"),  # and one trip is enough to occur
        ({"a": 8, "b": 6, "c": 7, "d": 1}, "abc", "ac*"),
        ({"a": 8, "b": 6, "c": 7, "d": 1}, "b", "b*"),  # and to need a table
        ({"a": 1, "b": 1, "c": 7, "d": 8}, "abcd", "cd*"),
    ],
)
def test_whom_to_join_by_hand(
    monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], shown: str, expected: str
) -> None:
    plans = [([0.5], [shown]), ([0.0], [expected])]
    tried, _, _ = searched(monkeypatch, ground_of(sizes, k=1), plans)
    assert tried[1] == [expected]


@pytest.mark.parametrize(
    ("sizes", "share", "shown"),
    [
        ({"a": 5, "b": 6}, 0.9, "ab"),  # two values
        ({"a": 5, "b": 6}, 0.9, ""),
        ({"a": 5, "b": 6, "c": 0}, 0.9, "ab"),  # that occur
        ({"a": 5, "b": 6, "c": 7}, BUDGET, "abc"),  # nothing is amiss
        ({"a": 5, "b": 6, "c": 0, "d": 7}, BUDGET, "abd"),
    ],
)
def test_where_nothing_is_joined(
    monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], share: float, shown: str
) -> None:
    tried, _, _ = searched(monkeypatch, ground_of(sizes), [([share], [shown])])
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("shares", "shown", "expected"),
    [
        ([0.5, 0.6, 0.7], ["abcd", "efgh", "ijkl"], ["abcd", "efgh", "kl*"]),  # the largest share
        ([0.7, 0.6, 0.5], ["abcd", "efgh", "ijkl"], ["cd*", "efgh", "ijkl"]),
        ([0.2, 0.15, 0.1], ["abcd", "ef", "i"], ["abcd", "ef*", "ijkl"]),  # of those that are worse than allowed
        ([0.5, 0.5, 0.5], ["abc", "ef", "ijk"], ["abcd", "ef*", "ijkl"]),  # and then most values without a table
    ],
)
def test_the_dimension_that_is_worst_off_is_joined(
    monkeypatch: pytest.MonkeyPatch, shares: list[float], shown: list[str], expected: list[str]
) -> None:
    sizes = [dict(zip(labels, [5, 6, 7, 8], strict=True)) for labels in ("abcd", "efgh", "ijkl")]
    tried, _, _ = searched(monkeypatch, ground_of(*sizes), [(shares, shown), ([0, 0, 0], expected)])
    assert tried[1] == expected
