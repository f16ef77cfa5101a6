"""The engine for OD pairs in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.arrays import Ints
from odkanon.flows import Flows
from odkanon.hierarchy import Cut, Hierarchy
from odkanon.od import Axis, ODMatrix
from odkanon.rule import Measure


@dataclass(frozen=True, eq=False)
class MemoryEngine:
    """Answers from flows in memory.

    Attributes
    ----------
    od : ODMatrix
        The matrix; its hierarchies are those of the engine.
    flows : Flows
        What is left to merge: the pairs, or the classes of a pair of cuts.
    origin_leaf, destination_leaf : array of int
        For each place of ``flows``, one leaf that lies in it.
    """

    od: ODMatrix
    flows: Flows
    origin_leaf: Ints
    destination_leaf: Ints

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""
        return self.od.tree(axis)

    def node_masses(self, axis: Axis, measure: Measure) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        return self.od.node_masses(axis, measure)

    def coarsen(self, origins: Cut, destinations: Cut) -> MemoryEngine:
        """Return the engine over the classes of two cuts."""
        origin_zone = origins.zone_of_leaf[self.origin_leaf]
        destination_zone = destinations.zone_of_leaf[self.destination_leaf]
        merged, _ = self.flows.merge(origin_zone[self.flows.origin], destination_zone[self.flows.destination])
        return MemoryEngine(self.od, merged, origins.starts, destinations.starts)


def memory_engine(od: ODMatrix, measures: frozenset[str]) -> MemoryEngine:
    """Return an engine over all pairs of a matrix that counts trips and the given measures."""
    return MemoryEngine(
        od, od.flows.only(measures), np.arange(len(od.origins.leaves)), np.arange(len(od.destinations.leaves))
    )
