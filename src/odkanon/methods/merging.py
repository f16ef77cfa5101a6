"""Sequences of merges that follow from the marginals, and a search for the first feasible step.

A parent's mass is at least its child's, so the greedy order of an axis is its internal nodes sorted by (mass,
finest first, id), and the choice of the axis needs only numbers of zones. Thresholds are monotone, so the first
feasible step is found by bisection. Other constraints are not; the steps that follow are then tried in turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.engine.protocols import Engine
from odkanon.model.od import AXES
from odkanon.model.release_spec import Budget
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at
from odkanon.zoning.zones import JointTree, join_trees

_GALLOP = 4.0
"""Factor by which the number of classes may grow from probe to probe until one fails."""

_STRIDE = 0.98
"""The next step that is tried in turn has at most this share of the classes."""

_PROBES = 50
"""Number of such steps that suffice to estimate the necessary budget where none is feasible."""

BALANCE = 0.03
"""Relative change of the ratio of origin to destination zones beyond which the axis is no longer alternated."""


@dataclass(frozen=True, eq=False)
class MergeOrder:
    """The order in which the internal nodes of one axis are merged."""

    tree: Hierarchy
    ranks: npt.NDArray[np.int32]
    """For each level above the leaves (row) and leaf (column), the place of the leaf's ancestor in the order."""
    zones: Ints
    """Number of zones after 0, 1, 2, ... merges."""

    @classmethod
    def of(cls, tree: Hierarchy, masses: tuple[Ints, ...]) -> MergeOrder:
        """Sort the internal nodes of a tree by (mass, finest first, id)."""
        levels = range(1, tree.top + 1)
        counts = [len(tree.ids[level]) for level in levels]
        if not counts:
            return cls(tree, np.empty((0, len(tree.leaves)), dtype=np.int32), np.array([len(tree.leaves)]))
        level = np.repeat(np.array(levels), counts)
        order = np.lexsort((np.concatenate(tree.id_ranks[1:]), level, np.concatenate(masses[1:])))
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order))
        gone = np.concatenate([np.diff(first) for first in tree.first_children[1:]])[order] - 1
        zones = len(tree.leaves) - np.concatenate([[0], np.cumsum(gone)])
        by_level = np.split(rank, np.cumsum(counts)[:-1])
        ranks = np.stack([ranks[codes] for ranks, codes in zip(by_level, tree.codes[1:], strict=True)])
        return cls(tree, ranks, zones)

    def cut(self, merges: int) -> Cut:
        """Return the cut after the first ``merges`` merges."""
        # Ranks grow along the path from a leaf to the root, so merged ancestors are the lowest ones.
        level = np.count_nonzero(self.ranks < merges, axis=0)
        return cut_at(self.tree, level.astype(np.int8))


class Step(NamedTuple):
    """One step of a path of merges."""

    number: int
    cuts: tuple[Cut, Cut]
    classes: Engine
    """The engine over the classes of the two cuts."""


class Path(ABC):
    """A sequence of pairs of cuts, each coarser than the last."""

    engine: Engine

    @abstractmethod
    def cuts(self, step: int) -> tuple[Cut, Cut]:
        """Return the cuts of both axes after ``step`` steps."""

    @property
    @abstractmethod
    def class_space(self) -> Ints:
        """For each step, the largest possible number of classes: origin times destination zones. Never grows."""

    def steps_within(self, rule: Rule, budget: Budget, allowance: int, guess: float | None = None) -> Iterator[Step]:
        """Yield the steps that leave at most the allowance below the rule, from the first on.

        A rule that consists of thresholds is monotone, so its first feasible step is the only one of interest. Other
        rules are not, but their thresholds are: no step before the first that meets these can be feasible.
        """
        step = self.first_within(rule.with_constraints(), budget, allowance, guess)
        if step is None:
            return
        if rule.thresholds_only:
            yield step
            return
        for number in (step.number, *self._grid[self._grid > step.number].tolist()):
            step = step if number == step.number else self._coarsen(step.classes, number)
            if budget.mass(step.classes.totals_below(rule)) <= allowance:
                yield step

    def least_below(self, rule: Rule, budget: Budget) -> int:
        """Return an estimate of the smallest mass that any step leaves below a rule: a sufficient budget."""
        engine, left = self.engine, []
        for number in self._grid[:: -(len(self._grid) // -_PROBES)].tolist():
            engine = self._coarsen(engine, number).classes
            left.append(budget.mass(engine.totals_below(rule)))
        return min(left)

    @cached_property
    def _grid(self) -> Ints:
        """The steps to try in turn: the first, and each with clearly fewer classes than the one before."""
        space, steps = self.class_space, [0]
        while space[-1] < space[steps[-1]]:
            fewer = int(np.searchsorted(-space, -space[steps[-1]] * _STRIDE))
            steps.append(min(fewer, len(space) - 1))
        return np.array(steps)

    def _coarsen(self, engine: Engine, number: int) -> Step:
        """Return a step, given the engine over the classes of an earlier one."""
        cuts = self.cuts(number)
        return Step(number, cuts, engine.coarsen(*cuts))

    def first_within(self, rule: Rule, budget: Budget, allowance: int, guess: float | None) -> Step | None:
        """Return the first step that leaves at most the allowance below some thresholds; None if there is none.

        ``guess`` is the expected number of classes at that step, or None. It affects the number of probes only.
        """
        engine, best = self.engine, None

        def good(number: int) -> bool:
            nonlocal engine, best
            step = self._coarsen(engine, number)
            if budget.mass(step.classes.totals_below(rule)) > allowance:
                # The search continues with later steps only; these are coarser than this one.
                engine = step.classes
                return False
            best = step
            return True

        last = len(self.class_space) - 1
        if good(last):
            low, high = (-1, last) if guess is None else gallop(self.class_space, guess, good)
            bisect_first(low, high, good)
        return best


@dataclass(frozen=True, eq=False)
class MergePath(Path):
    """The whole sequence of merges on both axes."""

    engine: Engine
    origin: MergeOrder
    destination: MergeOrder
    """The order on each axis."""
    origin_merges: npt.NDArray[np.int64]
    """How many of the first 0, 1, 2, ... steps merge origins."""

    @classmethod
    def of(cls, engine: Engine, rule: Rule) -> MergePath:
        """Return the sequence of merges that follows from the marginal masses."""
        measure = rule.main_measure
        origin, destination = (MergeOrder.of(engine.tree(axis), engine.node_masses(axis, measure)) for axis in AXES)
        return cls(engine, origin, destination, alternate(origin.zones, destination.zones))

    def cuts(self, step: int) -> tuple[Cut, Cut]:
        """Return the cuts of both axes after ``step`` steps."""
        merges = int(self.origin_merges[step])
        return self.origin.cut(merges), self.destination.cut(step - merges)

    @cached_property
    def class_space(self) -> Ints:
        """For each step, the largest possible number of classes."""
        steps = np.arange(len(self.origin_merges))
        space: Ints = self.origin.zones[self.origin_merges] * self.destination.zones[steps - self.origin_merges]
        return space


@dataclass(frozen=True, eq=False)
class SquarePath(Path):
    """A sequence of merges with one zoning for both ends: each step merges one node of the joint tree.

    The mass of a node is that of the trips that start in it plus that of those that end in it.
    """

    engine: Engine
    joint: JointTree
    order: MergeOrder

    @classmethod
    def of(cls, engine: Engine, rule: Rule) -> SquarePath:
        """Return the sequence of merges that follows from the marginal masses."""
        joint = join_trees(engine.tree("origin"), engine.tree("destination"))
        first, second = (engine.node_masses(axis, rule.main_measure) for axis in AXES)
        return cls(engine, joint, MergeOrder.of(joint.tree, joint.masses((first, second))))

    def cuts(self, step: int) -> tuple[Cut, Cut]:
        """Return the cuts of both axes after ``step`` steps."""
        return self.joint.cuts(self.order.cut(step))

    @property
    def class_space(self) -> Ints:
        """For each step, the largest possible number of classes."""
        return self.order.zones**2


def alternate(origin_zones: Ints, destination_zones: Ints) -> Ints:
    """Return the number of origin merges among the first 0, 1, 2, ... steps.

    Origins are merged when the ratio of origin to destination zones has grown by more than 3 % over its initial
    value, destinations when it has shrunk by more than that; in between, origins on even steps and destinations
    on odd ones. When one axis is exhausted, the other goes on. The loop is over merges of zones, not over data.
    """
    origins, destinations = origin_zones.tolist(), destination_zones.tolist()
    last_origin, last_destination = len(origins) - 1, len(destinations) - 1
    initial = origins[0] / max(destinations[0], 1)
    merged, step = 0, 0
    path = [0]
    while merged < last_origin and step - merged < last_destination:
        drift = (origins[merged] / destinations[step - merged] - initial) / initial
        if drift > BALANCE or (drift >= -BALANCE and step % 2 == 0):
            merged += 1
        step += 1
        path.append(merged)
    residual = last_origin + last_destination - step
    tail = merged + np.arange(1, residual + 1) if merged < last_origin else np.full(residual, merged)
    return np.concatenate([np.array(path, dtype=np.int64), tail])


def gallop(space: Ints, guess: float, good: Callable[[int], bool]) -> tuple[int, int]:
    """Return a failing step (-1 for none) and a good one after it, found with few probes of fine steps.

    Probing a fine step costs as much as a pass over all data, and most steps are fine: halfway along the path hardly
    any two pairs share a class. So the first probe is where the answer is likely; finer ones follow until one fails.
    """
    low, high = -1, len(space) - 1
    while low < 0 < high:
        step = min(int(np.searchsorted(-space, -guess)), high - 1)
        if good(step):
            high = step
        else:
            low = step
        guess *= _GALLOP
    return low, high


def bisect_first(low: int, high: int, good: Callable[[int], bool]) -> int:
    """Return the first good step in ``(low, high]`` of a monotone test, given that ``high`` is good."""
    while high - low > 1:
        middle = (low + high) // 2
        if good(middle):
            high = middle
        else:
            low = middle
    return high
