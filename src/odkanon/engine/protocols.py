"""Engines answer the questions that methods ask of the data, wherever the data is.

A method over hierarchies decides on marginal masses, on what a pair of cuts leaves below the rule, and on the
classes of a pair of cuts; a cascade on the groups that the rungs of its ladder list, and on what falls on. It never
looks at a pair, so the same method runs on any engine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from odkanon.core.arrays import Ints
from odkanon.model.budget import Budget
from odkanon.model.flows import Flows, Totals
from odkanon.model.od import Axis, ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.release_spec import ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.zoning.attribute_axis import AttributeAxis
from odkanon.zoning.hierarchy import Cut, Hierarchy

if TYPE_CHECKING:
    from odkanon.engine.nested_release import Nested
    from odkanon.engine.residual import Residual
    from odkanon.model.release import Release
    from odkanon.quality.lower_bounds.minimal_cost import Spread


class Engine(Protocol):
    """What a method over hierarchies may ask."""

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""
        ...

    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        ...

    def coarsen(self, origins: Cut, destinations: Cut) -> Engine:
        """Return the engine over the classes of two cuts; it can be coarsened further, and is faster at it."""
        ...

    def below(self, rule: Rule) -> Totals:
        """Return what the classes that do not meet the rule add up to."""
        ...

    @property
    def flows(self) -> Flows:
        """The classes of the cuts that the engine was coarsened to; the OD pairs if it was not."""
        ...


class Matrix(Protocol):
    """An OD matrix, wherever its pairs are."""

    @property
    def summary(self) -> Summary:
        """The totals of the matrix, and where it comes from."""
        ...

    @property
    def origins(self) -> Hierarchy:
        """The tree over the origins."""
        ...

    @property
    def destinations(self) -> Hierarchy:
        """The tree over the destinations."""
        ...

    @property
    def axes(self) -> tuple[AttributeAxis, ...]:
        """Axes besides the two places."""
        ...

    def in_memory(self) -> ODMatrix:
        """Return the matrix with its pairs in memory, for methods that look at each; says so if they do not fit."""
        ...

    def on_trees(self, origins: tuple[Hierarchy, Ints], destinations: tuple[Hierarchy, Ints]) -> Matrix:
        """Return the matrix over other trees of the same leaves, each with where its leaves stood before."""
        ...

    def workspace(self) -> Workspace:
        """Return the place to work on the matrix: where its pairs are."""
        ...

    def reach(self, rule: Rule) -> tuple[Spread, Spread]:
        """Return how the least prices of the pairs are spread, and the masses of their smallest classes."""
        ...


class Workspace(Protocol):
    """A matrix at work: what is left of it after suppression, and how it becomes a release."""

    @property
    def remaining(self) -> Totals:
        """What is left of the matrix."""
        ...

    def engine(self, measures: frozenset[str]) -> Engine:
        """Return an engine over what is left that counts trips and the given measures."""
        ...

    def presuppress(self, rule: Rule, *, levels: int, budget: Budget) -> Workspace:
        """Return what Algorithm 1 leaves; see `odkanon.engine.presuppress.presuppress`."""
        ...

    def release(self, spec: ReleaseSpec, classes: Engine, cuts: tuple[Cut, Cut]) -> Release:
        """Return the release of two cuts; ``classes`` is an engine that was coarsened to them, or to finer ones."""
        ...

    def residual_trips(self, nodes: Sequence[int], contributors: Collection[str]) -> Residual:
        """Return what is left as a cascade takes it up its ladder.

        ``nodes`` is the number of leaves of each axis, ``contributors`` names the measures that count contributors.
        """
        ...

    def nested_release(self, spec: ReleaseSpec, nested: Nested) -> Release:
        """Return the release of rows at several levels."""
        ...

    def refuse(self, spec: ReleaseSpec, refusal: str) -> Release:
        """Return the release that publishes nothing, and says why."""
        ...
