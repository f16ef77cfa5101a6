"""Which releases are compared with which, and what is said of the groups that they show, by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.by_hand import Flows, Known, release, tables
from odkanon.audit import pairwise_checks
from odkanon.audit.differencing.equations import ColumnContributors, EquationSystem, InconsistentCountsError
from odkanon.audit.findings import Finding
from odkanon.audit.pairwise_checks import ReleaseComparer, overlapping_systems
from odkanon.audit.relations import Relation, RelationKind
from odkanon.audit.release_reader import PublishedRelease

FLOWS: list[Flows] = [
    {("a1", "b1"): (20,), ("a2", "b1"): (1500,)},
    {("a1", "b1"): (17,), ("a1", "b2"): (2,)},
    {("A", "B"): (30,)},
]
"""Rows 0 and 1, 2 and 3, and 4."""


def system(columns: dict[tuple[int, ...], tuple[float, ...]], *least: float, persons: int = 0) -> EquationSystem:
    """Columns by their rows, with their masses; with persons, each column has persons of its own, one less a column."""
    mass = np.array(list(columns.values()), dtype=np.float64)
    names = ("trips", "weight")[: mass.shape[1]]
    counts = np.maximum(persons - 1 - np.arange(len(columns)), 0)
    contributors = ColumnContributors("persons", persons, np.arange(counts.sum()), np.append(0, np.cumsum(counts)))
    rows = np.array(list(columns), dtype=np.int64)
    return EquationSystem(rows, names, mass, np.array(least), (contributors,) if persons else ())


class Asked:
    """Answers with systems made by hand, and keeps what was asked."""

    def __init__(self, answer: Callable[[int], EquationSystem | None]) -> None:
        self.answer = answer
        self.sides: list[list[list[int]]] = []

    def __call__(self, sides: Sequence[Sequence[PublishedRelease]]) -> EquationSystem | None:
        self.sides.append([[each.number for each in side] for side in sides])
        return self.answer(len(sides))


def findings(
    answer: Callable[[int], EquationSystem | None],
    *related: tuple[int, int, RelationKind],
    rule: dict[str, float] | None = None,
    folder: Path | None = None,
) -> tuple[list[Finding], list[list[list[int]]]]:
    """Return what is found of releases that are related so, and which sides were asked for."""
    numbers = sorted({number for one, other, _ in related for number in (one, other)})
    releases = {at: replace(release(at, rule=rule), folder=(folder or Path()) / f"r{at}") for at in numbers}
    asked = Asked(answer)
    compare = ReleaseComparer(tables(*FLOWS), asked)
    known = [Relation(releases[one], releases[other], kind, "said") for one, other, kind in related]
    return compare.compare(known), asked.sides


def text(columns: dict[tuple[int, ...], tuple[float, ...]], *least: float, **more: Any) -> list[str]:
    """Return what is said of a system of the first two releases."""
    persons = more.pop("persons", 0)
    found, _ = findings(lambda _: system(columns, *least, persons=persons), (0, 1, "part"), **more)
    return [each.message for each in found]


def test_a_group_is_reported_with_its_rows() -> None:
    found, sides = findings(lambda _: system({(0, 2): (17,), (0, -1): (3,)}, 10), (1, 0, "part"))
    (one,) = found
    assert one.message == "a1 -> b1: r0 20 - r1 17 = 3 trips of somebody else"
    assert (one.check, one.releases, one.severity) == ("difference", ("r0", "r1"), "finding")
    (details,) = one.details
    assert details == {
        "origin": "a1",
        "destination": "b1",
        "rest": 3,
        "plus": [("r0", "a1", "b1")],
        "minus": [("r1", "a1", "b1")],
    }
    assert sides == [[[0], [1]]]


def test_several_rows_of_a_release_are_counted() -> None:
    assert text({(0, 2): (17,), (0, 3): (2,), (0, -1): (1,)}, 10) == [
        "a1 -> b1: r0 20 - r1 (2 flows) 19 = 1 trips of somebody else"
    ]
    assert text({(0, -1): (1,), (0, 2): (19,), (1, 2): (19,), (1, -1): (2,)}, 10) == [
        "a1 -> b1: r0 (2 flows) 1,520 - r1 17 = 3 trips of somebody else"
    ]


def test_rows_of_two_releases_are_added() -> None:
    """Two parts together less a table of both, each of which has somebody whom that leaves out."""
    found, sides = findings(
        lambda _: system({(0, -1): (1,), (0, 4): (19,), (2, 4): (19,), (2, -1): (2,)}, 10),
        (0, 2, "overlap"),
        (1, 2, "overlap"),
    )
    assert [(each.message, each.releases) for each in found] == [
        ("a1 -> b1: r0 20 + r1 17 - r2 30 = 3 trips of somebody else", ("r0", "r1", "r2"))
    ]
    assert sides == [[[0, 1], [2]]]


def test_a_group_that_takes_more_than_sums_is_a_combination() -> None:
    """Twice the one is the sum of three rows less the others."""
    three = system({(0, -1, 4): (9,), (0, 2, -1): (2,), (-1, 2, 4): (8,)}, 4)
    found, sides = findings(lambda _: three, (0, 1, "overlap"), (0, 2, "overlap"), (1, 2, "overlap"))
    assert [(each.message, each.releases) for each in found] == [
        ("a1 -> b1: a combination of r0, r1 = 2 trips of somebody else", ("r0", "r1"))
    ]
    assert sides == [[[0], [1], [2]]]


def test_groups_without_trips_are_nothing() -> None:
    assert text({(0, 2): (17,), (0, -1): (0,)}, 10) == []
    assert text({(0, 2): (17,), (0, -1): (0.6,)}, 10) == ["a1 -> b1: r0 20 - r1 17 = 1 trips of somebody else"]


@pytest.mark.parametrize(
    ("trips", "weight", "said"),
    [
        (9, 50.0, "9 trips of"),
        (10, 7.5, "10 trips of weight 7.500, below 8, of"),
        (10, 8.0, None),
        (10, 50.0, None),
    ],
)
def test_too_little_weight_is_reported(trips: float, weight: float, said: str | None) -> None:
    found = text({(0, 2): (17, 90.0), (0, -1): (trips, weight)}, 10, 8, rule={"trips": 10, "weight": 8})
    assert found == ([f"a1 -> b1: r0 20 - r1 17 = {said} somebody else"] if said else [])


@pytest.mark.parametrize(
    ("persons", "said"), [(6, "15 trips of 4 persons of somebody else"), (3, "15 trips of 1 persons")]
)
def test_too_few_persons_are_reported(persons: int, said: str) -> None:
    (found,) = text({(0, 2): (17,), (0, -1): (15,)}, 10, persons=persons)
    assert said in found


def test_groups_with_enough_persons_after_all_are_none() -> None:
    """Each of two columns has fewer than the rule asks for, both together have enough."""
    assert text({(0, -1): (15,), (0, 2): (15,), (1, 2): (15,), (1, -1): (15,)}, 10, persons=4) != []
    for enough in (5, 40):  # 4 + 1 and 39 + 36
        assert text({(0, -1): (15,), (0, 2): (15,), (1, 2): (15,), (1, -1): (15,)}, 10, persons=enough) == []


def test_releases_that_share_no_trips_are_not_compared() -> None:
    assert findings(lambda _: None, (0, 1, "disjoint")) == ([], [])


NOTHING = system({(0, 2): (17,), (0, -1): (30,)}, 10)


def test_each_cluster_is_compared_separately() -> None:
    _, sides = findings(lambda _: NOTHING, (0, 3, "part"), (1, 2, "part"), (0, 1, "disjoint"), (3, 4, "part"))
    assert sides == [[[0, 4], [3]], [[1], [2]]]


def test_a_long_chain_is_one_cluster() -> None:
    chain = [3, 1, 4, 0, 2]
    _, sides = findings(lambda _: NOTHING, *((one, other, "overlap") for one, other in pairwise(chain)))
    assert {number for side in sides[0] for number in side} == set(range(5))
    assert len(sides[0]) == 2


ALL = [(0, 1), (0, 2), (1, 2)]


def overlaps(*pairs: tuple[int, int]) -> list[tuple[int, int, RelationKind]]:
    return [(one, other, "overlap") for one, other in pairs]


def test_several_sides_are_tried_at_once_and_else_two_at_a_time() -> None:
    assert findings(lambda _: NOTHING, *overlaps(*ALL)) == ([], [[[0], [1], [2]]])
    (found,), sides = findings(lambda many: None if many > 2 else NOTHING, *overlaps(*ALL))
    assert sides == [[[0], [1], [2]], [[0], [1]], [[0], [2]], [[1], [2]]]
    assert found.message == (
        "3 releases share trips with each other in so many ways that only two kinds of tables at a time were combined, "
        "not all at once"
    )
    assert (found.check, found.releases, found.severity) == ("relation", ("r0", "r1", "r2"), "finding")


def test_groups_of_several_sides_are_reported_beside_what_is_undecided() -> None:
    shown = system({(0, -1, 4): (9,), (0, 2, -1): (2,), (-1, 2, 4): (8,)}, 4)
    found, _ = findings(lambda many: shown, *overlaps(*ALL))
    assert [each.check for each in found] == ["difference"]


@pytest.mark.parametrize(("most", "first"), [(3, 2), (4, 4)])
def test_more_sides_than_can_be_tried(most: int, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise_checks, "MOST_SIDES", most)
    pairs = [(one, other) for other in range(4) for one in range(other)]
    found, sides = findings(lambda _: NOTHING, *overlaps(*pairs))
    assert len(sides[0]) == first
    assert len(sides) == (1 if first == 4 else 6)
    assert len(found) == (0 if first == 4 else 1)


def test_two_sides_that_are_too_large_are_undecided() -> None:
    (found,), sides = findings(lambda _: None, (0, 1, "part"))
    assert found.message == (
        "2 releases share trips with each other in so many ways that it could not be decided whether a group of too "
        "few can be worked out"
    )
    assert sides == [[[0], [1]]]
    both, _ = findings(lambda _: None, *overlaps(*ALL))
    assert [("only two kinds" in each.message, "not be decided" in each.message) for each in both] == [
        (True, False),
        (False, True),
    ]


def test_one_of_several_that_could_not_be_decided_is_enough() -> None:
    answers = iter([None, NOTHING, None, NOTHING])
    found, _ = findings(lambda _: next(answers), *overlaps(*ALL))
    assert ["not be decided" in each.message for each in found] == [False, True]


def test_segments_of_one_run_are_only_noted(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"whole": "r0", "segments": [{"folder": "r1"}]}')
    (found,), _ = findings(lambda _: None, (0, 1, "part"), folder=tmp_path)
    assert found.severity == "note"


def test_numbers_that_contradict_are_a_finding() -> None:
    def fail(_: int) -> EquationSystem:
        raise InconsistentCountsError

    (found,), _ = findings(fail, (0, 1, "part"))
    assert found.message.startswith("the numbers of r0 and r1 contradict what is known of their trips")
    found_of_three, sides = findings(fail, *overlaps(*ALL))
    assert len(found_of_three) == len(sides) == 1


def test_sides_around_two_releases_are_as_large_as_can_be() -> None:
    """A whole (0), two parts of it that share no trips (1, 2), and others that share trips with all of these (3)."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]
    _, sides = findings(lambda many: None if many > 2 else NOTHING, *overlaps(*pairs), (1, 2, "disjoint"))
    assert sides[0] == [[0], [1, 2], [3]]
    assert sides[1:] == [[[0], [1, 2]], [[0], [3]], [[1, 2], [3]]]


def test_a_release_joins_a_side_only_if_it_shares_no_trips_with_any_there() -> None:
    """The third shares none with the first, but some with the second."""
    _, sides = findings(lambda _: NOTHING, *overlaps((0, 3), (1, 3), (1, 2)))
    assert sides == [[[0, 1], [3, 2]]]


def test_overlapping_releases_form_one_system_per_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def make(*arguments: Any) -> EquationSystem:
        asked.append(arguments[2:])
        return NOTHING

    monkeypatch.setattr(pairwise_checks, "make_system", make)
    releases = [release(at) for at in range(3)]
    related = [
        Relation(releases[0], releases[1], "part", "said"),
        Relation(releases[0], releases[2], "disjoint", "said"),
        Relation(releases[1], releases[2], "disjoint", "said"),
    ]
    atoms = [(frozenset({0, 1}), 5), (frozenset({0}), 7)]
    places: Any = Known(*FLOWS)
    assert list(overlapping_systems(tables(*FLOWS), places, atoms, related)) == [NOTHING]
    ((sides, members),) = asked
    assert sides == [[releases[0]], [releases[1]]]
    assert members == [frozenset({0, 1}), frozenset({0})]
