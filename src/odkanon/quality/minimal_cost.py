"""Minimal cost of each OD pair: how far it must be generalised until a class that contains it meets the rule.

The cost of a class (u, w) is ``|u| + |w|``. Rules are monotone: above a class that meets the rule, all classes meet it
and cost more. So for each origin node over a pair only one destination node matters, the first that meets the rule.
The search runs on classes, not on pairs: the flows from the nodes of an origin level are merged level by level of the
destinations, and the result of each class is passed back down to its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Ints, group_keys
from odkanon.model.flows import Flows
from odkanon.model.measures import exact_masses
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]

Meets = Callable[[int, int, Flows], Bools]
"""Given a step of the origins, a step of the destinations and the flows between them: which flows meet the rule."""


@dataclass(frozen=True, eq=False)
class TreeLevels:
    """Levels of a tree, one for each step of the search."""

    numbers: tuple[int, ...]  # for each step, the level of the tree
    sizes: tuple[Ints, ...]  # for each step and node, the number of its leaves
    parents: tuple[Codes, ...]
    """For each step and each node of the step below, the number of its parent; also for the first step, if it was split
    off from steps below it."""

    def __len__(self) -> int:
        return len(self.numbers)

    def split(self, step: int) -> tuple[TreeLevels, TreeLevels]:
        """Return the levels before a step, and the others."""
        parts = ((slice(None, step)), slice(step, None))
        lower, upper = (TreeLevels(self.numbers[part], self.sizes[part], self.parents[part]) for part in parts)
        return lower, upper


def distinct_levels(tree: Hierarchy) -> TreeLevels:
    """Return the levels of a tree, except those with the same nodes as the level below."""
    nodes = [len(ids) for ids in tree.ids]
    numbers = tuple(level for level in range(len(nodes)) if level == 0 or nodes[level] < nodes[level - 1])
    starts = (tree.starts[level] for level in (0, *numbers[:-1]))
    parents = tuple(tree.codes[level][below] for level, below in zip(numbers, starts, strict=True))
    return TreeLevels(numbers, tuple(tree.sizes[level] for level in numbers), parents)


@dataclass(frozen=True, eq=False)
class CostRung:
    """Flows from the nodes of one origin level to single destinations, with the cheapest class over each."""

    origin: Codes  # numbers of the nodes
    mass: Ints  # mass of the flows
    cost: Floats  # minimal cost of a class with this origin that meets the rule; infinite if there is none
    smallest: Floats  # the mass of that class
    above: Codes  # for each flow, the flow of the next rung that contains it; empty on the last rung


@dataclass(frozen=True, eq=False)
class CostLadder:
    """The rungs of some flows, one for each level of their origins."""

    origins: TreeLevels  # the levels of the origins
    rungs: tuple[CostRung, ...]  # from the flows themselves to those from the highest nodes
    summit: Flows  # the flows of the last rung

    def descend(self, cost: Floats | float = np.inf, smallest: Floats | float = np.inf) -> tuple[Floats, Floats]:
        """Return for each flow of the first rung the minimal cost and the smallest mass of a class that contains it.

        ``cost`` and ``smallest`` are those of the flows of the last rung, found at the levels above.
        """
        last = self.rungs[-1]
        cost, smallest = np.minimum(last.cost, cost), np.minimum(last.smallest, smallest)
        for rung in reversed(self.rungs[:-1]):
            cost = np.minimum(rung.cost, cost[rung.above])
            smallest = np.minimum(rung.smallest, smallest[rung.above])
        return cost, smallest

    def least_cost(self, multiplier: float) -> tuple[float, float]:
        """Return the least ``sum m min(cost, multiplier)`` over all cuts of the origins, and the suppressed mass."""
        best: Floats = np.empty(0)
        lost: Floats = np.empty(0)
        for up, rung in enumerate(self.rungs):
            nodes = len(self.origins.sizes[up])
            dropped, cost = (
                np.bincount(rung.origin, rung.mass * factor, nodes).astype(np.float64)
                for factor in (rung.cost > multiplier, np.minimum(rung.cost, multiplier))
            )
            if up:
                first = np.flatnonzero(np.diff(self.origins.parents[up], prepend=-1))
                below, below_lost = np.add.reduceat(best, first), np.add.reduceat(lost, first)
                dropped, cost = np.where(cost < below, dropped, below_lost), np.minimum(cost, below)
            best, lost = cost, dropped
        return float(best[0]), float(lost[0])


def climb(
    flows: Flows, origins: TreeLevels, destinations: TreeLevels, meets: Meets, measure: str = "trips"
) -> CostLadder:
    """Climb the origins level by level, and find the first destinations that meet the rule at each.

    * ``flows``: between nodes of the first steps, sorted.
    * ``measure``: the measure of masses.
    """
    rungs: list[CostRung] = []
    flows = replace(flows, pairs=np.empty(0, dtype=np.int64))
    for up in range(len(origins)):
        size, smallest = _first_to_meet(flows, destinations, partial(meets, up), measure)
        cost = size + origins.sizes[up][flows.origin]
        origin, mass, above = flows.origin, exact_masses(flows, measure), np.empty(0, dtype=np.int32)
        if up + 1 < len(origins):
            flows, above = flows.merge(origins.parents[up + 1][flows.origin], flows.destination)
        rungs.append(CostRung(origin, mass, cost, smallest, above))
    return CostLadder(origins, tuple(rungs), flows)


def _first_to_meet(
    flows: Flows, destinations: TreeLevels, meets: Callable[[int, Flows], Bools], measure: str
) -> tuple[Floats, Floats]:
    """Return for each flow the size of the first destination node that meets the rule, and the mass of that class."""
    steps: list[tuple[Codes, Bools, Flows]] = []
    number = np.empty(0, dtype=np.int32)
    for across in range(len(destinations)):
        if across:
            flows, number = flows.merge_destinations(destinations.parents[across])
        good = meets(across, flows)
        steps.append((number, good, flows))
        if good.all():
            break
    size, smallest = np.full(len(flows), np.inf), np.full(len(flows), np.inf)
    for across, (number, good, classes) in reversed(list(enumerate(steps))):
        found = np.flatnonzero(good)
        size[found] = destinations.sizes[across][classes.destination[found]]
        smallest[found] = exact_masses(classes, measure)[found]
        if across:
            size, smallest = size[number], smallest[number]
    return size, smallest


def climb_matrix(od: ODMatrix, rule: Rule, measure: str, *, transposed: bool = False) -> CostLadder:
    """Climb the origins of a matrix in memory, or its destinations."""
    flows = od.flows.only(rule.required_measures | {measure})
    origins, destinations = distinct_levels(od.origins), distinct_levels(od.destinations)
    if transposed:
        origins, destinations = destinations, origins
        flows, _ = flows.merge(flows.destination, flows.origin)
    return climb(flows, origins, destinations, lambda up, across, classes: rule.satisfied(classes), measure)


@dataclass(frozen=True, eq=False)
class CostDistribution:
    """The number of OD pairs for each combination of a value and a number of trips, sorted by both."""

    value: Floats  # infinite for pairs that no class can publish
    trips: Ints
    pairs: Ints
    """The trips of each such pair, and the number of such pairs."""

    @classmethod
    def joined(cls, parts: Sequence[CostDistribution]) -> CostDistribution:
        """Return the sum of several distributions."""
        value, trips, pairs = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "trips", "pairs")
        )
        return count_costs(value, trips, pairs)


def minimal_costs(
    flows: Flows, trees: tuple[Hierarchy, Hierarchy], rule: Rule, at_once: int | None = None
) -> tuple[CostDistribution, CostDistribution]:
    """Return the distributions of the minimal costs of OD pairs, and of the masses of their smallest classes.

    * ``flows``: between leaves, sorted.
    * ``at_once``: about how many flows to climb at a time, since memory holds every rung; by default all.
    """
    origins, destinations = distinct_levels(trees[0]), distinct_levels(trees[1])

    def meets(up: int, across: int, classes: Flows) -> Bools:
        return rule.satisfied(classes)

    flows = flows.only(rule.required_measures)
    if at_once is None or len(flows) <= at_once or len(origins) == 1:
        cost, smallest = climb(flows, origins, destinations, meets).descend()
        return count_costs(cost, flows.trips), count_costs(smallest, flows.trips)
    lower, upper, ends = _split_flows(flows, trees[0], origins, at_once)
    merged, _ = flows.merge(trees[0].codes[upper.numbers[0]][flows.origin], flows.destination)
    known = climb(merged, upper, destinations, meets).descend()
    keys, parts = _ends(merged.origin, merged.destination), []
    for first, last in pairwise(ends):
        part = flows.between(first, last)
        climbed = climb(part, lower, destinations, meets)
        at = np.searchsorted(keys, _ends(upper.parents[0][climbed.summit.origin], climbed.summit.destination))
        found = climbed.descend(*(above[at] for above in known))
        parts.append([count_costs(each, part.trips) for each in found])
    costs, masses = (CostDistribution.joined(each) for each in zip(*parts, strict=True))
    return costs, masses


def _split_flows(
    flows: Flows, tree: Hierarchy, levels: TreeLevels, at_once: int
) -> tuple[TreeLevels, TreeLevels, list[int]]:
    """Return the levels whose nodes lie within one part, the others, and where the parts of the flows begin and end."""
    step = len(levels) - 2
    while True:
        first = np.searchsorted(flows.origin, tree.starts[levels.numbers[step]])
        if step == 0 or np.diff(first, append=len(flows)).max() <= at_once:
            break
        step -= 1
    parts = first[np.flatnonzero(np.diff(first // at_once, prepend=-1))]
    return *levels.split(step + 1), [*parts.tolist(), len(flows)]


def _ends(origin: Codes, destination: Codes) -> Ints:
    """Return one number for each pair of places, in their order."""
    return (origin.astype(np.int64) << 32) | destination


def count_costs(value: Floats, trips: Ints, pairs: Ints | None = None) -> CostDistribution:
    """Count pairs by value and trips; ``value`` is whole or infinite."""
    unreachable = np.isinf(value)
    values = np.where(unreachable, 0, value).astype(np.int64)
    top, width = int(values.max(initial=0)) + 1, int(trips.max(initial=0)) + 1
    values[unreachable] = top
    groups = group_keys(values * width + trips, (top + 1) * width)
    counted = groups.sum(np.ones(len(value), dtype=np.int64) if pairs is None else pairs)
    first = groups.first()
    return CostDistribution(value[first], trips[first], counted)
