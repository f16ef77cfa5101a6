"""OD matrices in a database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.engine.protocols import Workspace
from odkanon.engine.residual import Groups, keys_of
from odkanon.engine.sql.backend import Backend, Relation, Stored
from odkanon.engine.sql.residual import SqlResidual, sql_residual
from odkanon.engine.sql.sql_engine import Side, SqlEngine, add_up, axis_columns, ints
from odkanon.errors import InputError
from odkanon.model.flows import Contributions, Flows
from odkanon.model.od import AXES, Axis, ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.rule import Rule
from odkanon.read.person_ids import contributor_numbers
from odkanon.zoning.attribute_axis import AttributeAxis
from odkanon.zoning.hierarchy import Hierarchy

if TYPE_CHECKING:
    from odkanon.quality.lower_bounds.minimal_cost import Spread

_BYTES_PER_PAIR = 64
"""What a pair takes in memory while a method works on it, roughly; a visit takes a third of it."""


@dataclass(frozen=True, eq=False)
class SqlMatrix:
    """An OD matrix whose pairs are in a database.

    Attributes
    ----------
    origins, destinations : Hierarchy
        The trees over the observed leaves of each axis.
    keys : tuple of array of int
        What the database calls the leaves of each axis, in tree order.
    pairs : Stored
        ``origin, destination``, the numbers of kinds, ``pairs, trips`` and, where there is one, ``weight``; one row a
        pair and kind.
    contributions : mapping of str to Relation
        ``origin, destination``, kinds and ``contributor``, possibly repeated, for each measure by contributors that the
        input names.
    summary : Summary
        The totals, and where they come from.
    axes : tuple of AttributeAxis
        Axes besides the two places.
    """

    backend: Backend
    origins: Hierarchy
    destinations: Hierarchy
    keys: tuple[Ints, Ints]
    pairs: Stored
    contributions: Mapping[str, Relation]
    summary: Summary
    axes: tuple[AttributeAxis, ...] = ()

    def side(self, axis: Axis) -> Side:
        """Return an axis as an engine sees it."""
        tree = self.origins if axis == "origin" else self.destinations
        return Side(tree, self.keys[AXES.index(axis)], np.arange(len(tree.leaves)))

    def on_trees(self, origins: tuple[Hierarchy, Ints], destinations: tuple[Hierarchy, Ints]) -> SqlMatrix:
        """Return the matrix over other trees of the same leaves, each with where its leaves stood before."""
        keys = self.keys[0][origins[1]], self.keys[1][destinations[1]]
        return replace(self, origins=origins[0], destinations=destinations[0], keys=keys)

    @property
    def scale(self) -> int | None:
        """Units of weight in one; None where there is no weight."""
        return None if self.summary.weight is None else self.summary.scale

    def engine(self, measures: Collection[str] = ()) -> SqlEngine:
        """Return an engine over all pairs that counts the given measures besides trips and weight."""
        sides = self.side("origin"), self.side("destination")
        contributions = {name: each for name, each in self.contributions.items() if name in measures}
        return SqlEngine(self.backend, *sides, self.pairs, contributions, self.scale)

    @property
    def is_small(self) -> bool:
        """Whether the pairs are better fetched and worked on in memory."""
        return self.summary.pairs + self._contributions_at_most <= self.backend.fetchable

    @property
    def _contributions_at_most(self) -> int:
        return len(self.contributions) * self.summary.trips

    def in_memory(self) -> ODMatrix:
        """Return the matrix with its pairs in memory, for methods that look at each of them."""
        return self._collected

    def workspace(self) -> Workspace:
        """Return the place to work on the matrix: memory if it fits there easily, else where it is."""
        from odkanon.engine.sql.workspace import SqlWorkspace

        return self.in_memory().workspace() if self.is_small else SqlWorkspace.of(self)

    def reach(self, rule: Rule) -> tuple[Spread, Spread]:
        """Return how the least prices of the pairs are spread, and the masses of their smallest classes."""
        from odkanon.quality.lower_bounds.stored_costs import spreads

        return self.in_memory().reach(rule) if self.is_small else spreads(self, rule)

    @cached_property
    def _collected(self) -> ODMatrix:
        size = self.summary.pairs * _BYTES_PER_PAIR + self._contributions_at_most * _BYTES_PER_PAIR // 3
        if size > self.backend.memory:
            needs, use = "this method needs", "method odkanon or oigh with thresholds alone"
            if self.axes:
                needs, use = "segments need", "fewer of them"
            raise InputError(
                f"{needs} the OD pairs in memory: {self.summary.pairs:,} of them take some "
                f"{size / 2**30:.1f} GiB, and {self.backend.memory / 2**30:.1f} are free for that; use {use}, "
                "a coarser resolution, or a larger memory limit",
                option="memory-limit SIZE",
            )
        residual = self.residual_trips()
        groups = residual.groups()
        flows = Flows(
            groups.codes[0].astype(np.int32),
            groups.codes[1].astype(np.int32),
            np.ones_like(groups.trips),
            groups.trips,
            groups.weight,
            {name: self._contributions(groups, residual.nodes, each) for name, each in residual.contributions.items()},
            self.summary.scale,
            attributes=tuple(code.astype(np.int32) for code in groups.codes[2:]),
        )
        return ODMatrix(self.origins, self.destinations, flows, self.summary.source, self.axes)

    def residual_trips(self, contributors: Collection[str] | None = None) -> SqlResidual:
        """Return all pairs with the numbers of their leaves, counting some (by default all) contributors."""
        contributions = {
            name: each for name, each in self.contributions.items() if contributors is None or name in contributors
        }
        attributes = [len(axis.tree.leaves) for axis in self.axes]
        return sql_residual(self.backend, self.keys, attributes, self.pairs, contributions, self.scale)

    def _contributions(self, groups: Groups, nodes: Sequence[int], contributions: Relation) -> Contributions:
        columns = axis_columns(len(self.axes))
        masses = ("trips",) if self.scale is None else ("trips", "weight")
        sums = ", ".join(f"{add_up(name)} AS {name}" for name in masses)
        own = ", ".join(columns)
        found = self.backend.execute(
            f"SELECT {own}, contributor, {sums} FROM {contributions} v GROUP BY {own}, contributor"
        )
        wanted = keys_of([ints(found, name) for name in columns], nodes)
        contributor = contributor_numbers(found.column("contributor").combine_chunks())
        flow = np.searchsorted(keys_of(groups.codes, nodes), wanted)
        order = np.lexsort((contributor, flow))
        return Contributions(
            flow[order].astype(np.int32),
            contributor[order],
            max(int(contributor.max(initial=0)) + 1, 1),
            {name: ints(found, name)[order] for name in masses},
        )

    def __repr__(self) -> str:
        return (
            f"SqlMatrix({self.summary.pairs:,} pairs, {self.summary.trips:,} trips; {len(self.origins.leaves):,} "
            f"origin x {len(self.destinations.leaves):,} destination leaves)"
        )
