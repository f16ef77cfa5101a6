"""The engine over flows in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.model.flows import Flows, Totals
from odkanon.model.od import Axis, ODMatrix
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, Hierarchy


class Marginals(Protocol):
    """Anything with hierarchies and the masses of their nodes: a matrix, or another engine."""

    def tree(self, axis: Axis) -> Hierarchy: ...  # noqa: D102
    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class MemoryEngine:
    """Answers from flows in memory."""

    marginals: Marginals
    """The hierarchies and the masses of their nodes."""
    flows: Flows
    """The OD pairs, or the classes of a pair of cuts."""
    origin_leaf: Ints
    destination_leaf: Ints
    """For each place of ``flows``, one leaf inside it."""

    @classmethod
    def from_matrix(cls, od: ODMatrix, measures: frozenset[str]) -> MemoryEngine:
        """Return an engine over all pairs of a matrix that counts trips and the given measures."""
        leaves = (np.arange(len(tree.leaves)) for tree in (od.origins, od.destinations))
        return cls(od, od.flows.only(measures), *leaves)

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""
        return self.marginals.tree(axis)

    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        return self.marginals.node_masses(axis, measure)

    def coarsen(self, origins: Cut, destinations: Cut) -> MemoryEngine:
        """Return the engine over the classes of two cuts."""
        origin_zone = origins.zone_of_leaf[self.origin_leaf]
        destination_zone = destinations.zone_of_leaf[self.destination_leaf]
        merged, _ = self.flows.merge(origin_zone[self.flows.origin], destination_zone[self.flows.destination])
        return MemoryEngine(self.marginals, merged, origins.starts, destinations.starts)

    def satisfying_flows(self, rule: Rule) -> Flows:
        """Return the classes that meet a rule."""
        return self.flows.take(rule.satisfied_jointly(self.flows))

    @property
    def counted_measures(self) -> frozenset[str]:
        """The measures whose contributors the flows count."""
        return frozenset(self.flows.contributions)

    def totals_below(self, rule: Rule) -> Totals:
        """Return the total of the classes that do not meet the rule."""
        return self.flows.totals(~rule.satisfied_jointly(self.flows))
