"""The engine for OD pairs in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.engine.nested_release import Nested, nested_release
from odkanon.engine.presuppress import presuppress
from odkanon.engine.protocols import Engine
from odkanon.engine.residual import MemoryResidual, memory_residual
from odkanon.model.assemble import release_of_cuts
from odkanon.model.budget import Budget
from odkanon.model.flows import Flows, Totals
from odkanon.model.od import Axis, ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, Hierarchy


class Marginals(Protocol):
    """Anything with hierarchies and the masses of their nodes: a matrix, or another engine."""

    def tree(self, axis: Axis) -> Hierarchy: ...  # noqa: D102
    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class MemoryEngine:
    """Answers from flows in memory.

    Attributes
    ----------
    od : ODMatrix or the like
        Whose hierarchies and marginals are those of the engine.
    flows : Flows
        What is left to merge: the pairs, or the classes of a pair of cuts.
    origin_leaf, destination_leaf : array of int
        For each place of ``flows``, one leaf that lies in it.
    """

    od: Marginals
    flows: Flows
    origin_leaf: Ints
    destination_leaf: Ints

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""
        return self.od.tree(axis)

    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        return self.od.node_masses(axis, measure)

    def coarsen(self, origins: Cut, destinations: Cut) -> MemoryEngine:
        """Return the engine over the classes of two cuts."""
        origin_zone = origins.zone_of_leaf[self.origin_leaf]
        destination_zone = destinations.zone_of_leaf[self.destination_leaf]
        merged, _ = self.flows.merge(origin_zone[self.flows.origin], destination_zone[self.flows.destination])
        return MemoryEngine(self.od, merged, origins.starts, destinations.starts)

    def meeting(self, rule: Rule) -> Flows:
        """Return the classes that meet a rule."""
        return self.flows.take(rule.satisfied_jointly(self.flows))

    @property
    def counted(self) -> frozenset[str]:
        """The measures of which the flows say how many contributors they have."""
        return frozenset(self.flows.contributions)

    def below(self, rule: Rule) -> Totals:
        """Return what the classes that do not meet the rule add up to."""
        return self.flows.totals(~rule.satisfied_jointly(self.flows))


def memory_engine(od: ODMatrix, measures: frozenset[str]) -> MemoryEngine:
    """Return an engine over all pairs of a matrix that counts trips and the given measures."""
    return MemoryEngine(
        od, od.flows.only(measures), np.arange(len(od.origins.leaves)), np.arange(len(od.destinations.leaves))
    )


@dataclass(frozen=True, eq=False)
class MemoryWorkspace:
    """A matrix in memory at work.

    Attributes
    ----------
    od : ODMatrix
        All of it.
    residual : ODMatrix
        What is left after suppression.
    candidate : array of bool
        For each pair of ``od``, whether it is left.
    """

    od: ODMatrix
    residual: ODMatrix
    candidate: Bools

    @classmethod
    def of(cls, od: ODMatrix) -> MemoryWorkspace:
        """Return the workspace with nothing suppressed yet."""
        return cls(od, od, np.ones(len(od), dtype=bool))

    @property
    def remaining(self) -> Totals:
        """What is left of the matrix."""
        return self.residual.flows.totals()

    def engine(self, measures: frozenset[str]) -> MemoryEngine:
        """Return an engine over what is left."""
        return memory_engine(self.residual, measures)

    def presuppress(self, rule: Rule, *, levels: int, budget: Budget) -> MemoryWorkspace:
        """Return what Algorithm 1 leaves."""
        early = presuppress(self.od, rule, levels=levels, budget=budget)
        return MemoryWorkspace(self.od, self.od.take(~early) if early.any() else self.od, ~early)

    def release(self, spec: ReleaseSpec, classes: Engine, cuts: tuple[Cut, Cut]) -> Release:
        """Return the release of two cuts, which says of each pair where it went."""
        return release_of_cuts(self.od, spec, *cuts, self.candidate)

    def residual_trips(self, nodes: Sequence[int], contributors: Collection[str]) -> MemoryResidual:
        """Return what is left as a cascade takes it up its ladder."""
        return memory_residual(self.residual.flows, nodes, contributors)

    def nested_release(self, spec: ReleaseSpec, nested: Nested) -> Release:
        """Return the release of rows at several levels, which says of each pair in which it lies."""
        return nested_release(self.od, spec, nested)

    def refuse(self, spec: ReleaseSpec, refusal: str) -> Release:
        """Return the release that publishes nothing, and says why."""
        return Release.empty(self.od, spec, refusal)
