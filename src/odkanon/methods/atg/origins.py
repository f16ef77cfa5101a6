"""The origin zones of ATG-Soft: as even in mass as the tree allows, and coarse enough for the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Codes, Ints
from odkanon.methods.volume import Volume, volume_measure
from odkanon.model.budget import Budget
from odkanon.model.flows import Flows
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at


@dataclass(frozen=True)
class Masses:
    """How volumes are counted: in trips of mean weight, so that one target fits trips and weights.

    Attributes
    ----------
    measure : {"trips", "weight"}
        What is counted.
    unit : float
        The mass of one trip. Where all weights are equal, masses are the numbers of trips exactly.
    """

    measure: Volume
    unit: float

    @classmethod
    def of(cls, od: ODMatrix, rule: Rule) -> Masses:
        """Return how the volumes of a matrix are counted under a rule."""
        measure = volume_measure(rule)
        return cls(measure, float(od.mean_weight * od.flows.scale) if measure == "weight" else 1.0)

    def of_flows(self, flows: Flows) -> Floats:
        """Return the volume of each flow."""
        values: Ints = getattr(flows, self.measure)
        return values / self.unit

    def of_nodes(self, od: ODMatrix) -> tuple[Floats, ...]:
        """Return the volume of every node of the origin tree, by level."""
        return tuple(values / self.unit for values in od.node_masses("origin", self.measure))


def even_cut(tree: Hierarchy, masses: tuple[Floats, ...], target: float) -> Cut:
    """Return the cut of least ``sum (target - mass)^2`` over zones of positive mass, by dynamic programming.

    Bottom-up, a node is split iff the best its children can do is at most its own error; a tie splits.
    """
    best = _error(masses[0], target)
    split = []
    for level in range(1, tree.top + 1):
        own = _error(masses[level], target)
        of_children = np.add.reduceat(best, np.searchsorted(tree.starts[level - 1], tree.starts[level]))
        split.append(of_children <= own)
        best = np.minimum(own, of_children)
    level_of_leaf = np.full(len(tree.leaves), tree.top, dtype=np.int8)
    reached = np.ones(len(tree.leaves), dtype=bool)
    for level in range(tree.top, 0, -1):
        reached &= split[level - 1][tree.codes[level]]
        level_of_leaf[reached] = level - 1
    return cut_at(tree, level_of_leaf)


def _error(mass: Floats, target: float) -> Floats:
    return np.where(mass > 0, (target - mass) ** 2, 0.0)


def coarsen_within(od: ODMatrix, rule: Rule, origins: Cut, budget: Budget, allowance: int) -> tuple[Cut, int]:
    """Merge origin zones that no destination cut can save, until they fit the budget.

    An origin zone whose trips do not meet the rule even with all destinations in one zone is lost. While such
    zones hold more than the allowance, each of them goes up to its parent, and its siblings with it.

    Returns
    -------
    cut : Cut
        The same or coarser zones.
    rounds : int
        How often zones were merged; 0 where nothing had to be.
    """
    everywhere = np.zeros(len(od), dtype=np.int32)
    rounds = 0
    while True:
        zones, _ = od.flows.only(rule.required_measures).merge(origins.zone_of_leaf[od.flows.origin], everywhere)
        lost = ~rule.satisfied(zones)
        if budget.mass(zones, lost) <= allowance or len(origins) == 1:
            return origins, rounds
        origins = _lifted(od.origins, origins, zones.origin[lost])
        rounds += 1


def _lifted(tree: Hierarchy, cut: Cut, zones: Codes) -> Cut:
    """Return the cut in which some zones have become their parents, and nothing below those is left."""
    level_of_leaf = cut.level[cut.zone_of_leaf]
    for level in np.unique(cut.level[zones]).tolist():
        if level == tree.top:
            continue
        lifted = zones[cut.level[zones] == level]
        parents = np.unique(tree.codes[level + 1][cut.starts[lifted]])
        below = np.isin(tree.codes[level + 1], parents)
        level_of_leaf = np.where(below, np.maximum(level_of_leaf, level + 1), level_of_leaf)
    return cut_at(tree, level_of_leaf.astype(np.int8))
