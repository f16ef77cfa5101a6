"""The questions that a method may ask of an engine; `memory` and `sql` answer them in files of the same names.

No method that asks only these ever looks at an OD pair, so it runs wherever the pairs are:

* Workspace: what is left after suppression, and which release a decision leads to.
* Engine, for methods that choose a pair of cuts: the hierarchies, the mass of each node, the classes of a pair of
  cuts, and how much of these is below the rule.
* Residual, for the cascade: the groups of a rung with enough trips, and what is left once some are listed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from odkanon.core.arrays import Ints
from odkanon.engine.node_flows import NestedRows, NodeFlows
from odkanon.model.flows import Flows, Totals
from odkanon.model.od import Axis
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, Hierarchy


class Engine(Protocol):
    """Classes between the zones of two cuts; at first, the OD pairs."""

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""

    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""

    def coarsen(self, origins: Cut, destinations: Cut) -> Engine:
        """Return the engine over the classes of two cuts, from which coarser cuts are reached faster."""

    def totals_below(self, rule: Rule) -> Totals:
        """Return the total of the classes that do not meet the rule."""

    @property
    def flows(self) -> Flows:
        """The classes."""


class Residual(Protocol):
    """The trips that no row lists yet, grouped by the nodes of a rung of the ladder."""

    def lift(self, axis: int, parent: Ints, nodes: int) -> Residual:
        """Return the residual grouped by the parents on one axis, of which there are ``nodes``."""

    def at_least(self, trips: int) -> NodeFlows:
        """Return the groups with at least this many trips, sorted by their codes."""

    def without(self, taken: NodeFlows, rows: Ints, left: NodeFlows, reassigned: str | None) -> Residual:
        """Return the residual once some groups are listed.

        * ``taken``: the groups.
        * ``rows``: the number of the row that lists each of them.
        * ``left``: the part of each group that its row does not list and that stays in the residual.
        * ``reassigned``: the measure whose contributors keep the trips that stay, see
          `odkanon.engine.memory.residual.choose_leaving_trips`; other measures lose theirs.
        """

    def totals(self) -> Totals:
        """Return the total of the residual."""


class Workspace(Protocol):
    """An OD matrix at work: what is left of it after suppression, and how that becomes a release."""

    @property
    def remaining(self) -> Totals:
        """The total of what is left."""

    def engine(self, measures: frozenset[str]) -> Engine:
        """Return an engine over what is left that counts trips and the given measures."""

    def presuppress(self, rule: Rule, *, levels: int, budget: Budget) -> Workspace:
        """Return the pairs that Algorithm 1 of the paper keeps; see `odkanon.engine.memory.workspace`."""

    def release(self, spec: ReleaseSpec, classes: Engine, cuts: tuple[Cut, Cut]) -> Release:
        """Return the release of two cuts, to which ``classes`` has been coarsened (or to finer ones)."""

    def residual_trips(self, nodes: Sequence[int], contributors: Collection[str]) -> Residual:
        """Return the remaining pairs as the residual of a cascade.

        ``nodes`` is the number of leaves of each axis; ``contributors`` names the measures whose contributors count.
        """

    def nested_release(self, spec: ReleaseSpec, nested: NestedRows) -> Release:
        """Return the release of nested rows."""

    def refuse(self, spec: ReleaseSpec, refusal: str) -> Release:
        """Return the release that publishes nothing, with the reason."""
