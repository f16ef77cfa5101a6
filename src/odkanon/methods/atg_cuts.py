"""The destination zones of ATG-Soft: one cut of the destination tree for every origin zone, all at once.

For each level of the tree, the combinations of an origin zone and a node that occur are rows of an array, each with the
row of its parent one level up. Dynamic programming over these arrays, from the leaves to the root, decides all subtrees
of all origin zones in a few vector operations per level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.methods.common import Volume, volume_measure
from odkanon.model.flows import Flows
from odkanon.model.measures import exact_masses
from odkanon.model.od import ODMatrix
from odkanon.model.release_spec import Budget
from odkanon.model.rule import Rule
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Cut

MAX_ITERATIONS = 200
"""A guard against endless search; on real data, no search has needed more than 16 iterations."""

PRECISION = 1e-12
"""Relative difference of costs below which two choices count as equally good."""


@dataclass(frozen=True)
class Masses:
    """The unit of volumes: trips of mean weight, so that one target suits trips and weights."""

    measure: Volume
    unit: float
    """The mass of one trip. If all weights are equal, volumes are exact numbers of trips."""

    @classmethod
    def of(cls, od: ODMatrix, rule: Rule) -> Masses:
        """Return how a rule counts the volumes of a matrix."""
        measure = volume_measure(rule)
        return cls(measure, float(od.mean_weight * od.flows.scale) if measure == "weight" else 1.0)

    def of_flows(self, flows: Flows) -> Floats:
        """Return the volume of each flow."""
        values: Ints = exact_masses(flows, self.measure)
        return values / self.unit

    def of_nodes(self, od: ODMatrix) -> tuple[Floats, ...]:
        """Return the volume of every node of the origin tree, by level."""
        return tuple(values / self.unit for values in od.node_masses("origin", self.measure))


@dataclass(frozen=True, eq=False)
class DestinationLevel:
    """The combinations of one destination level for which there is a choice.

    A combination below the rule whose parent is below it too has none: the whole parent is suppressed.
    """

    row: Ints
    """The numbers of these combinations among all of the level."""
    parent: Codes
    """Their parents, as positions in the arrays of the next level; empty at the root."""
    good: Bools
    """Whether each meets the rule."""
    volume: Floats
    """The published mass of each: its mass if it meets the rule, else 0."""
    spread: Floats
    """The cost of publishing it: ``volume * (|o| + |node|)``."""
    lost: Floats
    """The cost of suppressing it, in the unit of the budget; 0 if it meets the rule."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The cheapest cuts at a multiplier."""

    delta: float
    """The multiplier: the price of one more unit of the budget."""
    spread: float
    lost: float
    """``sum mass * (|o| + |d|)`` over published classes, and the suppressed amount in the unit of the budget."""
    split: tuple[Bools, ...]
    """For each level above the leaves and each `DestinationLevel.row`, whether the node is split."""
    gap: float = 0.0
    """Relative duality gap, in [0, 1]: no cuts of the same origins within the budget have a ``spread`` smaller by more
    than this share."""

    def priced(self, delta: float) -> float:
        """Return the cost of these cuts at a multiplier, ``spread + delta * lost``."""
        return self.spread + delta * self.lost


@dataclass(frozen=True, eq=False)
class Forest:
    """The destination trees of all origin zones."""

    levels: tuple[DestinationLevel, ...]
    """The combinations to decide, from the leaves to the roots."""
    parents: tuple[Codes, ...]
    """For each level below the roots and every combination, the row of its parent."""
    row_of_pair: Codes
    """For each OD pair, its combination at the lowest level."""

    @classmethod
    def of(cls, od: ODMatrix, rule: Rule, origins: Cut, budget: Budget, masses: Masses) -> Forest:
        """Merge destinations level by level; the rule is checked on exact unions of persons."""
        tree = od.destinations
        needed = od.flows.only(rule.required_measures | {masses.measure})
        flows, row_of_pair = needed.merge(origins.zone_of_leaf[needed.origin], needed.destination)
        tables, parents = [flows], []
        for level in range(1, tree.top + 1):
            parent_node = tree.codes[level][tree.starts[level - 1]]
            flows, parent = flows.merge(flows.origin, parent_node[flows.destination])
            tables.append(flows)
            parents.append(parent)
        origin_sizes = np.diff(origins.starts, append=len(od.origins.leaves))
        sizes = [
            origin_sizes[flows.origin] + tree.sizes[level][flows.destination] for level, flows in enumerate(tables)
        ]
        return cls(_worth_deciding(tables, parents, sizes, rule, budget, masses), tuple(parents), row_of_pair)

    def cheapest(self, delta: float) -> Choice:
        """Return the cuts of least ``spread + delta * lost``; a node is split iff that is strictly cheaper."""
        spread, lost = self.levels[0].spread, self.levels[0].lost
        split = []
        for below, level in zip(self.levels, self.levels[1:], strict=False):
            count = len(level.row)
            spread, lost = _summed(below.parent, spread, count), _summed(below.parent, lost, count)
            cheaper = level.good & (spread + delta * lost < level.spread)
            spread = np.where(cheaper, spread, level.spread)
            lost = np.where(cheaper, lost, level.lost)
            split.append(cheaper)
        return Choice(delta, float(spread.sum()), float(lost.sum()), tuple(split))

    def g(self, choice: Choice) -> float:
        """Return the mean generalisation error of a choice; infinite if it publishes nothing."""
        volume = self.levels[0].volume
        for below, level, split in zip(self.levels, self.levels[1:], choice.split, strict=False):
            volume = np.where(split, _summed(below.parent, volume, len(level.row)), level.volume)
        published = float(volume.sum())
        return choice.spread / published if published > 0 else float("inf")

    def level_of_pairs(self, choice: Choice) -> npt.NDArray[np.int8]:
        """Return for each OD pair the level of the destination node in which it is published."""
        top = len(self.levels) - 1
        level_of_row = np.full(len(self.levels[top].row), -1, dtype=np.int8)
        for level in range(top, -1, -1):
            if level < top:
                level_of_row = level_of_row[self.parents[level]]
            goes_on = np.zeros(len(level_of_row), dtype=bool)
            if level > 0:
                goes_on[self.levels[level].row[choice.split[level - 1]]] = True
            level_of_row[(level_of_row < 0) & ~goes_on] = level
        return level_of_row[self.row_of_pair]


def _summed(group: Codes, values: Floats, groups: int) -> Floats:
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64)


def _worth_deciding(
    tables: list[Flows], parents: list[Codes], sizes: list[Ints], rule: Rule, budget: Budget, masses: Masses
) -> tuple[DestinationLevel, ...]:
    """Return the levels without the combinations whose parent is below the rule."""
    goods = [rule.satisfied(flows) for flows in tables]
    levels: list[DestinationLevel] = []
    place_above = np.empty(0, dtype=np.int32)
    for at in range(len(tables) - 1, -1, -1):
        flows, good = tables[at], goods[at]
        is_root = at == len(tables) - 1
        # The parent itself may be left out: a share is not monotone, so a part can be good though the whole is not.
        row = np.arange(len(flows)) if is_root else np.flatnonzero((goods[at + 1] & (place_above >= 0))[parents[at]])
        parent = place_above if is_root else place_above[parents[at][row]]
        volume = masses.of_flows(flows)[row] * good[row]
        cost = budget.cost(flows)[row]
        lost = np.where(good[row], 0.0, cost)
        levels.append(DestinationLevel(row, parent, good[row], volume, volume * sizes[at][row], lost))
        place_above = np.full(len(flows), -1, dtype=np.int32)
        place_above[row] = np.arange(len(row))
    return tuple(reversed(levels))


def cheapest_within(forest: Forest, allowance: int) -> Choice:
    """Return cuts that suppress no more than the allowance, of least ``spread`` up to the duality gap.

    ``lost`` falls as the multiplier grows. From 0, the multiplier is doubled until the allowance is kept. Then the cost
    lines of the best choices on both sides are intersected, and the cheapest cuts at the intersection replace one of
    them, until neither line can be undercut. The choice within the allowance is returned.
    """
    low = forest.cheapest(0.0)
    if low.lost <= allowance:
        return low
    low, high = _bracket(forest, low, allowance)
    delta = high.delta
    for _ in range(MAX_ITERATIONS):
        delta = (high.spread - low.spread) / (low.lost - high.lost)
        middle = forest.cheapest(delta)
        if middle.priced(delta) >= high.priced(delta) * (1 - PRECISION):
            break
        low, high = (low, middle) if middle.lost <= allowance else (middle, high)
    bound = high.priced(delta) - delta * allowance
    gap = (high.spread - bound) / high.spread if high.spread > 0 else 0.0
    return replace(high, delta=delta, gap=max(gap, 0.0))


def _bracket(forest: Forest, low: Choice, allowance: int) -> tuple[Choice, Choice]:
    """Return choices on both sides of the allowance."""
    # The price of publishing whole trees for each unit that this saves: about the right order of magnitude.
    delta = max(float(forest.levels[-1].spread.sum()) / low.lost, 1.0)
    for _ in range(MAX_ITERATIONS):
        high = forest.cheapest(delta)
        if high.lost <= allowance:
            return low, high
        low, delta = high, 2 * delta
    raise AssertionError("no multiplier keeps the budget, though the origin zones by themselves do")
