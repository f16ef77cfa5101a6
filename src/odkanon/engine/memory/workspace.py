"""A matrix in memory at work: what is left of it, and the releases that are made of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.core.parsing import check_not_negative
from odkanon.engine.memory.residual import MemoryResidual
from odkanon.engine.node_flows import NestedRows
from odkanon.engine.protocols import Engine
from odkanon.errors import UnsafeReleaseError
from odkanon.model.assemble import release_of_cuts
from odkanon.model.flows import Flows, Totals
from odkanon.model.measures import exact_masses
from odkanon.model.od import Axis, ODMatrix
from odkanon.model.published_flows import Assignment
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, ReleaseSpec, Structure
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, Hierarchy, level_cut


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
        leaves = (np.arange(len(tree.ids[0])) for tree in (od.origins, od.destinations))
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
        return rule.totals_below(self.flows)


@dataclass(frozen=True, eq=False)
class MemoryWorkspace:
    """A matrix in memory at work."""

    od: ODMatrix
    """The whole matrix."""
    left: ODMatrix
    """The pairs that remain after suppression."""
    candidate: Bools
    """For each pair of ``od``, whether it is left."""

    @classmethod
    def from_matrix(cls, od: ODMatrix) -> MemoryWorkspace:
        """Return the workspace with nothing suppressed yet."""
        return cls(od, od, np.ones(len(od.flows.trips), dtype=bool))

    @property
    def remaining(self) -> Totals:
        """The total of what is left."""
        return self.left.flows.totals()

    def engine(self, measures: frozenset[str]) -> MemoryEngine:
        """Return an engine over what is left."""
        return MemoryEngine.from_matrix(self.left, measures)

    def presuppress(self, rule: Rule, *, levels: int, budget: Budget) -> MemoryWorkspace:
        """Return the pairs that Algorithm 1 keeps."""
        early = presuppressed_pairs(self.od, rule, levels=levels, budget=budget)
        return MemoryWorkspace(self.od, self.od.take(~early) if early.any() else self.od, ~early)

    def release(self, spec: ReleaseSpec, classes: Engine, cuts: tuple[Cut, Cut]) -> Release:
        """Return the release of two cuts, with the class of each pair."""
        return release_of_cuts(self.od, spec, *cuts, self.candidate)

    def residual_trips(self, nodes: Sequence[int], contributors: Collection[str]) -> MemoryResidual:
        """Return the remaining pairs as the residual of a cascade."""
        return MemoryResidual.from_flows(self.left.flows, nodes, contributors)

    def nested_release(self, spec: ReleaseSpec, nested: NestedRows) -> Release:
        """Return the release of nested rows, with the finest row of each pair."""
        assert isinstance(nested.residual, MemoryResidual)
        origins, destinations, classes, rows = nested.classes()
        area = nested.area_of_pair(rows, nested.residual.row_of_pair(len(self.od)))
        return Release(
            self.od.summary,
            spec,
            origins,
            destinations,
            classes,
            nested.suppressed,
            Structure.NESTED,
            Assignment(self.od, area, area >= 0, _excess(nested.suppressed, self.od.flows.totals(area < 0))),
            unlisted=nested.unlisted,
        )

    def refuse(self, spec: ReleaseSpec, refusal: str) -> Release:
        """Return the release that publishes nothing, with the reason."""
        return Release.empty(self.od, spec, refusal)


def _excess(suppressed: Totals, unpublished: Totals) -> Totals:
    """Return the suppressed part of pairs that lie in a row: a row may list fewer trips than lie in it, never more.

    Rows share out their weight among each other, so the suppressed weight may be above or below that of the pairs.
    """
    excess = suppressed - unpublished
    if excess.pairs or excess.trips < 0:
        raise UnsafeReleaseError("the suppressed total is smaller than that of the pairs in no row")
    return excess


def presuppressed_pairs(od: ODMatrix, rule: Rule, *, levels: int, budget: Budget) -> Bools:
    """Return the pairs that Algorithm 1 of the paper suppresses: those that a few levels of generalisation cannot save.

    A pair is *problematic* if its group does not meet the rule with both ends lifted by 0, 1, ..., ``levels`` levels;
    since rules are monotone, the last of these decides. All problematic pairs are suppressed if the budget covers them,
    otherwise those of the lowest mass (ties by origin id, then by destination id) as far as it reaches.

    References
    ----------
    Armenante, Huang, Jha, Vassio: "Protecting participants or population?", Algorithm 1.
    """
    check_levels(levels)
    flows = od.flows
    origin_group = level_cut(od.origins, levels).zone_of_leaf[flows.origin]
    destination_group = level_cut(od.destinations, levels).zone_of_leaf[flows.destination]
    groups, group_of_pair = flows.merge(origin_group, destination_group)
    problematic = ~rule.satisfied(groups)[group_of_pair]
    allowance = budget.allowance(flows)
    if budget.mass(flows, problematic) <= allowance:
        return problematic
    candidates = np.flatnonzero(problematic)
    order = np.lexsort(
        (
            od.destinations.id_ranks[0][flows.destination[candidates]],
            od.origins.id_ranks[0][flows.origin[candidates]],
            exact_masses(flows, rule.main_measure)[candidates],
        )
    )
    cost = budget.cost(flows)[candidates[order]]
    suppressed = np.zeros(len(flows), dtype=bool)
    suppressed[candidates[order[np.cumsum(cost) <= allowance]]] = True
    return suppressed


def check_levels(levels: int) -> None:
    """Raise unless ``levels`` is a number of levels to lift pairs by."""
    check_not_negative("levels", levels)
