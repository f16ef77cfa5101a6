"""How far each OD pair has to be generalised before a class over it meets the rule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from odkanon.arrays import Bools, Codes, Ints
from odkanon.hierarchy import Hierarchy
from odkanon.od import ODMatrix
from odkanon.rule import Measure, Rule

Floats = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Reach:
    """For each OD pair and level of its origin, the first level of its destination that meets the rule.

    Rules are monotone, so for every origin level there is a first destination level that meets it, and it does not
    rise when the origin is lifted: a staircase that says all there is to know about a pair.

    Attributes
    ----------
    od : ODMatrix
        The input.
    level : array of int, shape (origin levels, pairs)
        The staircases; one more than the top where not even the root of the destinations meets the rule.
    smallest : array of float
        For each pair, the mass of the smallest class over it that meets the rule.
    """

    od: ODMatrix
    level: Levels
    smallest: Floats

    @cached_property
    def reachable(self) -> Bools:
        """Pairs that some class over them can publish."""
        return np.asarray(self.level[-1] <= self.od.destinations.top)

    @cached_property
    def price(self) -> Floats:
        """For each pair the least ``|u| + |w|`` that meets the rule; infinite where there is none."""
        flows, origins, destinations = self.od.flows, self.od.origins, self.od.destinations
        best = np.full(len(flows), np.inf)
        for sizes, codes, level in zip(origins.sizes, origins.codes, self.level, strict=True):
            partner = _partner_size(destinations, flows.destination, level)
            best = np.minimum(best, partner + sizes[codes[flows.origin]])
        return best

    @cached_property
    def origin_prices(self) -> AxisPrices:
        """What pairs pay under each node over their origin, with the best destination zone for each."""
        flows = self.od.flows
        return _axis_prices(self.od.origins, flows.origin, self.od.destinations, flows.destination, self.level)

    @cached_property
    def destination_prices(self) -> AxisPrices:
        """What pairs pay under each node over their destination, with the best origin zone for each."""
        flows = self.od.flows
        return _axis_prices(self.od.destinations, flows.destination, self.od.origins, flows.origin, self._transposed)

    @cached_property
    def _transposed(self) -> Levels:
        """For each destination level and pair, the first level of the origin that meets the rule."""
        levels = range(self.od.destinations.top + 1)
        return np.stack([np.count_nonzero(self.level > level, axis=0).astype(np.int8) for level in levels])


def reach_of(od: ODMatrix, rule: Rule, measure: Measure) -> Reach:
    """Work out the staircases: one group-by for each pair of levels, and none above a level that meets the rule."""
    flows = od.flows.only(frozenset({*rule.measures, measure}))
    top = od.destinations.top
    staircase = np.full((od.origins.top + 1, len(od)), top + 1, dtype=np.int8)
    smallest = np.full(len(od), np.inf)
    row_of_pair = np.arange(len(od), dtype=np.int32)
    for origin_level in range(od.origins.top + 1):
        if origin_level:
            flows, number = flows.merge(_parent(od.origins, origin_level)[flows.origin], flows.destination)
            row_of_pair = number[row_of_pair]
        classes, open_pairs, row = flows, np.arange(len(od)), row_of_pair
        for level in range(top + 1):
            if level:
                classes, number = classes.merge(classes.origin, _parent(od.destinations, level)[classes.destination])
                row = number[row]
            good = rule.met(classes)[row]
            done, masses = open_pairs[good], getattr(classes, measure)[row[good]]
            staircase[origin_level, done] = level
            smallest[done] = np.minimum(smallest[done], masses)
            open_pairs, row = open_pairs[~good], row[~good]
            if len(open_pairs) == 0:
                break
    return Reach(od, staircase, smallest)


def _parent(tree: Hierarchy, level: int) -> Codes:
    """Return for each node one level below the given one the number of its parent."""
    return tree.codes[level][tree.starts[level - 1]]


def _partner_size(tree: Hierarchy, leaf: Codes, level: Levels) -> Floats:
    """Return for each pair the size of its zone at a level of its own; infinite above the root."""
    size = np.full(len(leaf), np.inf)
    for at, (sizes, codes) in enumerate(zip(tree.sizes, tree.codes, strict=True)):
        here = np.flatnonzero(level == at)
        size[here] = sizes[codes[leaf[here]]]
    return size


@dataclass(frozen=True, eq=False)
class AxisPrices:
    """For each level of an axis and pair, the number of the pair's node and the price of the best class under it."""

    tree: Hierarchy
    node: tuple[Codes, ...]
    price: tuple[npt.NDArray[np.float32], ...]

    def least_cost(self, mass: Floats, multiplier: float) -> tuple[float, float]:
        """Return the least ``sum m min(price, multiplier)`` over all cuts of the axis, and the mass it suppresses."""
        best: Floats = np.empty(0)
        lost: Floats = np.empty(0)
        for level, (node, price) in enumerate(zip(self.node, self.price, strict=True)):
            nodes = len(self.tree.ids[level])
            dropped: Floats = np.bincount(node, mass * (price > multiplier), nodes).astype(np.float64)
            cost: Floats = np.bincount(node, mass * np.minimum(price, multiplier), nodes).astype(np.float64)
            if level:
                first: Ints = np.searchsorted(self.tree.starts[level - 1], self.tree.starts[level])
                below, below_lost = np.add.reduceat(best, first), np.add.reduceat(lost, first)
                dropped, cost = np.where(cost < below, dropped, below_lost), np.minimum(cost, below)
            best, lost = cost, dropped
        return float(best[0]), float(lost[0])


def _axis_prices(
    tree: Hierarchy, leaf: Codes, partner: Hierarchy, partner_leaf: Codes, staircase: Levels
) -> AxisPrices:
    nodes = tuple(codes[leaf] for codes in tree.codes)
    prices = (
        sizes[node] + _partner_size(partner, partner_leaf, levels)
        for sizes, node, levels in zip(tree.sizes, nodes, staircase, strict=True)
    )
    # Sizes are whole numbers below 2**24, which 32-bit floats hold exactly.
    return AxisPrices(tree, nodes, tuple(price.astype(np.float32) for price in prices))
