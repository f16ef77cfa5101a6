"""How far each OD pair has to be generalised before a class over it meets the rule.

Rules are monotone: above a class that meets the rule all do, and are dearer. So for every origin node over a pair one
destination node matters, the first that meets the rule. The work is done on classes, not on pairs: the flows from the
nodes of an origin level are merged level by level of the destinations, and what each class finds is handed back down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Ints, group_keys
from odkanon.model.flows import Flows
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]

Meets = Callable[[int, int, Flows], Bools]
"""Given the steps of origins and of destinations, and flows between them: which flows meet the rule."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Some levels of a tree, each a step; flows are between numbered nodes of a step.

    Attributes
    ----------
    numbers : tuple of int
        Which levels of the tree.
    sizes : tuple of array of int
        For each step and node, the number of its leaves.
    parents : tuple of array of int
        For each step and each node of the step below, the number of its parent. The first step has one too, where it
        has been split off from steps below it.
    """

    numbers: tuple[int, ...]
    sizes: tuple[Ints, ...]
    parents: tuple[Codes, ...]

    def __len__(self) -> int:
        return len(self.numbers)

    def split(self, step: int) -> tuple[Levels, Levels]:
        """Return the levels before a step, and those from it on."""
        parts = ((slice(None, step)), slice(step, None))
        lower, upper = (Levels(self.numbers[part], self.sizes[part], self.parents[part]) for part in parts)
        return lower, upper


def levels_of(tree: Hierarchy) -> Levels:
    """Return the levels of a tree, but for those with the very nodes of the level below."""
    nodes = [len(ids) for ids in tree.ids]
    numbers = tuple(level for level in range(len(nodes)) if level == 0 or nodes[level] < nodes[level - 1])
    starts = (tree.starts[level] for level in (0, *numbers[:-1]))
    parents = tuple(tree.codes[level][below] for level, below in zip(numbers, starts, strict=True))
    return Levels(numbers, tuple(tree.sizes[level] for level in numbers), parents)


@dataclass(frozen=True, eq=False)
class Rung:
    """Flows from the nodes of one origin level to single destinations, with the best class over each.

    Attributes
    ----------
    origin : array of int
        Numbers of the nodes.
    mass : array of int
        What the flows carry.
    price : array of float
        The least ``|u| + |w|`` of a class with origin u that meets the rule; infinite where there is none.
    smallest : array of float
        The mass of that class.
    above : array of int
        For each flow, the row of the one that it is part of on the next rung; empty on the last.
    """

    origin: Codes
    mass: Ints
    price: Floats
    smallest: Floats
    above: Codes


@dataclass(frozen=True, eq=False)
class Ladder:
    """The rungs of some flows, one for each level of their origins.

    Attributes
    ----------
    origins : Levels
        What was climbed.
    rungs : tuple of Rung
        From the flows themselves to those from the highest nodes.
    summit : Flows
        The flows of the last rung.
    """

    origins: Levels
    rungs: tuple[Rung, ...]
    summit: Flows

    def descend(self, price: Floats | float = np.inf, smallest: Floats | float = np.inf) -> tuple[Floats, Floats]:
        """Return for each flow of the first rung the least price and the smallest mass of a class over it.

        ``price`` and ``smallest`` are what is known already, from levels above, of the flows of the last rung.
        """
        last = self.rungs[-1]
        price, smallest = np.minimum(last.price, price), np.minimum(last.smallest, smallest)
        for rung in reversed(self.rungs[:-1]):
            price = np.minimum(rung.price, price[rung.above])
            smallest = np.minimum(rung.smallest, smallest[rung.above])
        return price, smallest

    def least_cost(self, multiplier: float) -> tuple[float, float]:
        """Return the least ``sum m min(price, multiplier)`` over all cuts of the origins, and the mass it drops."""
        best: Floats = np.empty(0)
        lost: Floats = np.empty(0)
        for up, rung in enumerate(self.rungs):
            nodes = len(self.origins.sizes[up])
            dropped: Floats = np.bincount(rung.origin, rung.mass * (rung.price > multiplier), nodes).astype(np.float64)
            cost: Floats = np.bincount(rung.origin, rung.mass * np.minimum(rung.price, multiplier), nodes).astype(
                np.float64
            )
            if up:
                first = np.flatnonzero(np.diff(self.origins.parents[up], prepend=-1))
                below, below_lost = np.add.reduceat(best, first), np.add.reduceat(lost, first)
                dropped, cost = np.where(cost < below, dropped, below_lost), np.minimum(cost, below)
            best, lost = cost, dropped
        return float(best[0]), float(lost[0])


def ladder(flows: Flows, origins: Levels, destinations: Levels, meets: Meets, measure: str = "trips") -> Ladder:
    """Climb the origins level by level, and at each look for the first destinations that meet the rule.

    Parameters
    ----------
    flows : Flows
        Between nodes of the first steps, sorted.
    measure : {"trips", "weight"}
        What masses are counted in.
    """
    rungs: list[Rung] = []
    flows = replace(flows, pairs=np.empty(0, dtype=np.int64))
    for up in range(len(origins)):
        size, smallest = _first_to_meet(flows, destinations, partial(meets, up), measure)
        price = size + origins.sizes[up][flows.origin]
        origin, mass, above = flows.origin, getattr(flows, measure), np.empty(0, dtype=np.int32)
        if up + 1 < len(origins):
            flows, above = flows.merge(origins.parents[up + 1][flows.origin], flows.destination)
        rungs.append(Rung(origin, mass, price, smallest, above))
    return Ladder(origins, tuple(rungs), flows)


def _first_to_meet(
    flows: Flows, destinations: Levels, meets: Callable[[int, Flows], Bools], measure: str
) -> tuple[Floats, Floats]:
    """Return for each flow the leaves of the first destination node that meets the rule, and the mass of that class."""
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
        smallest[found] = getattr(classes, measure)[found]
        if across:
            size, smallest = size[number], smallest[number]
    return size, smallest


def climb(od: ODMatrix, rule: Rule, measure: str, *, transposed: bool = False) -> Ladder:
    """Climb the origins of a matrix in memory, or its destinations."""
    flows = od.flows.only(rule.required_measures | {measure})
    origins, destinations = levels_of(od.origins), levels_of(od.destinations)
    if transposed:
        origins, destinations = destinations, origins
        flows, _ = flows.merge(flows.destination, flows.origin)
    return ladder(flows, origins, destinations, lambda up, across, classes: rule.satisfied(classes), measure)


def minimal_costs(od: ODMatrix, rule: Rule) -> tuple[Spread, Spread]:
    """Return how the least prices of the pairs of a matrix in memory are spread, and the masses of their classes."""
    price, smallest = climb(od, rule, "trips").descend()
    return spread(price, od.flows.trips), spread(smallest, od.flows.trips)


@dataclass(frozen=True, eq=False)
class Spread:
    """How often a value and a number of trips occur together among OD pairs, by value and then by trips.

    Attributes
    ----------
    value : array of float
        Infinite for pairs that no class can publish.
    trips, pairs : array of int
        Trips of each such pair, and how many of them there are.
    """

    value: Floats
    trips: Ints
    pairs: Ints


def spread(value: Floats, trips: Ints, pairs: Ints | None = None) -> Spread:
    """Count pairs by value and trips; ``value`` is whole or infinite."""
    unreachable = np.isinf(value)
    values = np.where(unreachable, 0, value).astype(np.int64)
    top, width = int(values.max(initial=0)) + 1, int(trips.max(initial=0)) + 1
    values[unreachable] = top
    groups = group_keys(values * width + trips, (top + 1) * width)
    counted = groups.sum(np.ones(len(value), dtype=np.int64) if pairs is None else pairs)
    first = groups.first()
    return Spread(value[first], trips[first], counted)
