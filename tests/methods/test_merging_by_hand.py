"""Which steps of a sequence of merges are looked at and found, where what each leaves below a rule is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odkanon import Rule, read_hierarchy
from odkanon.core.arrays import Ints
from odkanon.methods.merging import MergeOrder, MergePath, Path, SquarePath, alternate, bisect_first, gallop
from odkanon.model.flows import Totals
from odkanon.model.release_spec import Budget
from odkanon.zoning.hierarchy import Cut, Hierarchy

TRIPS = Budget(0.1, "trips")
PLAIN, CONSTRAINTS = Rule(trips=5), Rule(trips=5, min_destinations=2)
HALVES = 2 ** np.arange(12, -1, -1)
"""4096 classes that there can be, 2048, and so on, down to one."""


class Probed:
    """An engine at some step that knows what is below its rule there; it can only be made coarser."""

    def __init__(self, path: GivenPath, step: int) -> None:
        self.path, self.step = path, step

    def coarsen(self, origins: Any, destinations: Any) -> Probed:
        assert origins == destinations >= self.step
        self.path.probes.append(origins)
        return Probed(self.path, origins)

    def totals_below(self, rule: Rule) -> Totals:
        return Totals(0, (self.path.thresholds if rule.thresholds_only else self.path.all_asked)[self.step])


class GivenPath(Path):
    """A path of which all is given: for each step, the classes that there can be, and what is below a rule."""

    def __init__(self, space: Ints, thresholds: Sequence[int], all_asked: Sequence[int] = ()) -> None:
        assert len(space) == len(thresholds)
        self.space, self.thresholds, self.all_asked = space, list(thresholds), list(all_asked)
        self.probes: list[int] = []
        engine: Any = Probed(self, 0)
        self.engine = engine

    @property
    def class_space(self) -> Ints:
        return self.space

    def cuts(self, step: int) -> Any:
        assert 0 <= step < len(self.space)
        return step, step

    def steps(self, rule: Rule, allowance: int, guess: float | None = None) -> list[int]:
        """The steps that are found, each with its own classes."""
        found: Any = list(self.steps_within(rule, TRIPS, allowance, guess))
        assert all(step.classes.step == step.number and step.cuts == self.cuts(step.number) for step in found)
        return [step.number for step in found]


@pytest.mark.parametrize("guess", [None, 0.5, 1.0, 3.0, 64.0, 1e6])
@pytest.mark.parametrize("allowance", range(14))
def test_the_first_step_within_the_allowance_is_found(allowance: int, guess: float | None) -> None:
    path = GivenPath(HALVES, range(13, 0, -1))
    assert path.steps(PLAIN, allowance, guess) == [13 - allowance][: allowance > 0]


def test_without_a_guess_what_is_left_is_halved() -> None:
    path = GivenPath(np.arange(1024, 0, -1), [1] * 700 + [0] * 324)
    assert path.steps(PLAIN, 0) == [700]
    assert path.probes[:4] == [1023, 511, 767, 639]
    assert len(path.probes) <= 12


@pytest.mark.parametrize(
    ("guess", "first", "probes", "found"),
    [
        (8, 4, [9, 7, 5, 3], (3, 5)),  # 8 classes at the first probe, 32, 128, and 512: too many
        (8, 10, [9], (9, 12)),  # the guess is wrong: what is coarser is left
        (7, 0, [10, 8, 6, 4, 2, 0], (-1, 0)),  # all are good
        (8, 1, [9, 7, 5, 3, 1, 0], (0, 1)),
        (0.1, 11, [11, 10], (10, 11)),  # never the last, which is known to be good; nor one twice
        (1e9, 1, [0], (0, 12)),
    ],
)
def test_probes_begin_at_the_guess_and_are_four_times_as_fine_each_time(
    guess: float, first: int, probes: list[int], found: tuple[int, int]
) -> None:
    asked = []

    def good(step: int) -> bool:
        asked.append(step)
        return step >= first

    assert gallop(HALVES, guess, good) == found
    assert asked == probes
    assert gallop(np.array([1]), guess, good) == (-1, 0)  # one step: nothing is asked
    assert asked == probes


@pytest.mark.parametrize("low", [-1, 3])
@pytest.mark.parametrize("high", [4, 5, 6, 40])
def test_the_first_good_step_is_found_in_few_probes(low: int, high: int) -> None:
    for first in range(low + 1, high + 1):
        asked: list[int] = []

        def good(step: int, first: int = first, asked: list[int] = asked) -> bool:
            asked.append(step)
            return step >= first

        assert bisect_first(low, high, good) == first
        assert all(low < step < high for step in asked)
        assert len(set(asked)) == len(asked) <= (high - low - 1).bit_length()


def test_further_steps_have_clearly_fewer_classes_each() -> None:
    """Of a hundred classes those of 98, 96 and 94 are looked at; of few, every step that has fewer."""
    path = GivenPath(np.array([100, 100, 99, 98, 97, 96, 95, 94]), [0] * 8, [1, 0, 1, 0, 0, 0, 1, 0])
    assert path.steps(CONSTRAINTS, 0) == [3, 5, 7]
    assert path.probes[-3:] == [3, 5, 7]
    path = GivenPath(np.array([5, 4, 4, 3]), [9, 0, 0, 0], [9, 3, 0, 2])
    assert path.steps(CONSTRAINTS, 2) == [
        3
    ]  # from the first that keeps the thresholds; then those of the grid, 1 and 3
    assert path.steps(CONSTRAINTS, 3) == [1, 3]
    assert path.steps(PLAIN, 3) == [1]
    last = GivenPath(np.array([100, 99]), [0, 0], [2, 1])  # the last is looked at, however little it differs
    assert last.steps(CONSTRAINTS, 2) == [0, 1]
    assert GivenPath(np.array([5, 4]), [9, 9], [9, 9]).steps(CONSTRAINTS, 8) == []
    assert GivenPath(np.array([7, 7]), [0, 0], [0, 0]).steps(CONSTRAINTS, 0) == [0]


@pytest.mark.parametrize(("count", "every"), [(1, 1), (50, 1), (51, 2), (100, 2), (101, 3)])
def test_the_least_that_is_left_is_that_of_fifty_steps_at_most(count: int, every: int) -> None:
    left = [abs(step - 30) + 5 for step in range(count)]
    path = GivenPath((1e15 * 0.9 ** np.arange(count)).astype(np.int64), [0] * count, left)
    assert path.least_below(CONSTRAINTS, TRIPS) == min(left[::every])
    assert path.probes == list(range(0, count, every))


@pytest.mark.parametrize(
    ("origins", "destinations", "expected"),
    [
        ([1], [1], [0]),
        ([0], [0], [0]),
        ([3, 2, 1], [1], [0, 1, 2]),  # one axis has nothing to merge
        ([1], [3, 2, 1], [0, 0, 0]),
        ([3, 3, 3, 3], [1, 1, 1], [0, 1, 1, 2, 2, 3]),  # merges that change nothing take turns
        ([4, 3, 2, 1], [4, 3, 2, 1], [0, 1, 1, 2, 2, 3, 3]),
        ([8, 1], [8, 7, 6, 5], [0, 1, 1, 1, 1]),
        ([100, 97, 50], [1, 1, 1], [0, 1, 1, 2, 2]),  # exactly three percent less is not more than that
    ],
)
def test_the_turns_of_the_axes_by_hand(origins: list[int], destinations: list[int], expected: list[int]) -> None:
    assert alternate(np.array(origins), np.array(destinations)).tolist() == expected


BLOCKS = {"block": ["1", "2", "3", "4", "5"], "town": ["a", "a", "b", "b", "c"], "region": ["X", "X", "Y", "Y", "Y"]}
TREE = read_hierarchy(pa.table(BLOCKS))
"""Five blocks in three towns in two regions of one country."""
SMALL = read_hierarchy(pa.table({"block": ["1", "2"]}))


class Masses:
    """An engine of which nothing is asked but its trees and what their nodes have."""

    def __init__(self, trees: Sequence[Hierarchy], masses: Sequence[Sequence[list[int]]]) -> None:
        self.trees = dict(zip(("origin", "destination"), trees, strict=True))
        self.masses = dict(zip(("origin", "destination"), masses, strict=True))

    def tree(self, axis: str) -> Hierarchy:
        return self.trees[axis]

    def node_masses(self, axis: str, measure: str) -> tuple[Ints, ...]:
        assert measure == "persons"
        return tuple(np.array(each) for each in self.masses[axis])


def zones_of(cut: Cut) -> list[list[str]]:
    """The blocks of each zone."""
    leaves = cut.tree.labels(0)
    return [leaves[cut.zone_of_leaf == zone].tolist() for zone in range(len(cut))]


BY_SIZE = [[1, 1, 4, 4, 9], [2, 8, 9], [2, 17], [19]]
"""Town a (2) and region X (2), of which the finer is first; town b (8), c (9), Y (17), the country (19)."""
STEPS = [
    [["1"], ["2"], ["3"], ["4"], ["5"]],
    [["1", "2"], ["3"], ["4"], ["5"]],
    [["1", "2"], ["3"], ["4"], ["5"]],
    [["1", "2"], ["3", "4"], ["5"]],
    [["1", "2"], ["3", "4"], ["5"]],
    [["1", "2"], ["3", "4", "5"]],
    [["1", "2", "3", "4", "5"]],
]


def test_nodes_are_merged_from_the_smallest_on() -> None:
    order = MergeOrder.of(TREE, tuple(np.array(each) for each in BY_SIZE))
    assert order.zones.tolist() == [5, 4, 4, 3, 3, 2, 1]
    assert [zones_of(order.cut(merges)) for merges in range(7)] == STEPS
    assert order.ranks.tolist() == [[0, 0, 2, 2, 3], [1, 1, 4, 4, 4], [5, 5, 5, 5, 5]]


def test_a_tree_of_one_leaf_has_nothing_to_merge() -> None:
    order = MergeOrder.of(read_hierarchy(pa.table({"block": ["1"]})), (np.array([7]),))
    assert order.zones.tolist() == [1]
    assert order.ranks.shape == (0, 1)
    assert zones_of(order.cut(0)) == [["1"]]


def test_the_axes_of_a_path_have_their_own_merges() -> None:
    engine: Any = Masses((TREE, SMALL), (BY_SIZE, [[9, 10], [19]]))
    path = MergePath.of(engine, Rule(persons=3))
    # Origins; then 4 of 5 are left, which is less than before, so destinations; 4 to 1 are more, so origins to the end.
    assert path.origin_merges.tolist() == [0, 1, 1, 2, 3, 4, 5, 6]
    assert path.class_space.tolist() == [10, 8, 4, 4, 3, 3, 2, 1]
    for step, origins in enumerate([0, 1, 1, 2, 3, 4, 5, 6]):
        starts, ends = path.cuts(step)
        assert zones_of(starts) == STEPS[origins]
        assert zones_of(ends) == ([["1"], ["2"]] if step < 2 else [["1", "2"]])


def test_one_zoning_for_both_ends_counts_what_begins_and_ends_in_a_node() -> None:
    """What ends in town a makes it the largest town; so its blocks are merged last but for the country's."""
    ends = [[10, 10, 0, 0, 0], [20, 0, 0], [20, 0], [20]]
    engine: Any = Masses((TREE, TREE), (BY_SIZE, ends))
    path = SquarePath.of(engine, Rule(persons=3))
    assert path.class_space.tolist() == [25, 16, 16, 9, 4, 4, 1]
    for step, zones in enumerate(path.order.zones.tolist()):
        starts, ends_cut = path.cuts(step)
        assert zones_of(starts) == zones_of(ends_cut)
        assert len(starts) == zones
    assert zones_of(path.cuts(1)[0]) == [["1"], ["2"], ["3", "4"], ["5"]]
    assert zones_of(path.cuts(3)[0]) == [["1"], ["2"], ["3", "4", "5"]]
