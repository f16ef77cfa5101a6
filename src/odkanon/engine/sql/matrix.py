"""OD matrices in a database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.core.arrays import Codes, Ints
from odkanon.engine.node_flows import NodeFlows, codes_to_keys
from odkanon.engine.sql.backend import Backend, Relation, StoredTable, Subquery, store_query, upload_columns
from odkanon.engine.sql.engine import FLOWS_PER_CONTRIBUTION, SqlEngine, TableAxis, axis_columns, int_column, sum_bigint
from odkanon.engine.sql.residual import SqlResidual, sql_residual
from odkanon.errors import InputError
from odkanon.model.flows import Contributions
from odkanon.model.od import AXES, Axis, ODMatrix
from odkanon.model.provenance import Summary
from odkanon.read.person_ids import contributor_numbers
from odkanon.zoning.hierarchy import Hierarchy, single_point

_BYTES_PER_PAIR = 64
"""Memory for a pair while a method works on it, roughly; a contribution takes a third of it."""


@dataclass(frozen=True, eq=False)
class SqlMatrix:
    """An OD matrix whose pairs are in a database."""

    backend: Backend
    origins: Hierarchy
    destinations: Hierarchy
    """The trees over the observed leaves of each axis."""
    keys: tuple[Ints, Ints]
    """The keys of the leaves of each axis in the database, in tree order."""
    pairs: StoredTable
    """``origin, destination``, the codes of attributes, ``pairs, trips`` and, if trips are weighted, ``weight``; one
    row for each combination of pair and attributes."""
    contributions: Mapping[str, Relation]
    """``origin, destination``, the codes of attributes and ``contributor``, possibly repeated, for each measure whose
    contributors the input identifies."""
    summary: Summary
    """The totals of the matrix and its provenance."""
    axes: tuple[AttributeAxis, ...] = ()
    """The attributes of a cube."""
    finer: SqlMatrix | None = None
    """The same trips between cells of `LOCATED`, where leaves are coarser than their coordinates."""

    @property
    def located(self) -> SqlMatrix:
        """The same trips between smaller cells than the leaves, where their coordinates are known; or this matrix."""
        return self if self.finer is None else self.finer

    def table_axis(self, axis: Axis) -> TableAxis:
        """Return one axis of the table of pairs."""
        tree = self.origins if axis == "origin" else self.destinations
        return TableAxis(tree, self.keys[AXES.index(axis)], np.arange(len(tree.leaves)))

    def on_trees(self, origins: tuple[Hierarchy, Ints], destinations: tuple[Hierarchy, Ints]) -> SqlMatrix:
        """Return the matrix over other trees of the same leaves, each given with the old positions of its leaves."""
        keys = self.keys[0][origins[1]], self.keys[1][destinations[1]]
        return replace(self, origins=origins[0], destinations=destinations[0], keys=keys)

    def at_one_place(self) -> SqlMatrix:
        """Return a matrix whose records begin and end at the same place as a table by that place alone."""
        names = [name for name in axis_columns(len(self.axes)) if name != AXES[1]]
        masses = ["trips"] if self.scale is None else ["trips", "weight"]

        def point(columns: Sequence[str]) -> str:
            return f"SELECT 0 AS {AXES[1]}, {', '.join([*names, *columns])} FROM"

        return replace(
            self,
            destinations=single_point(),
            keys=(self.keys[0], np.zeros(1, dtype=np.int64)),
            pairs=store_query(self.backend, f"{point(['pairs', *masses])} {self.pairs}"),
            contributions={
                name: Subquery(f"{point(['contributor', *masses])} {each} v", each)
                for name, each in self.contributions.items()
            },
        )

    def with_axes(self, axes: Sequence[AttributeAxis], numbers: Sequence[Codes]) -> SqlMatrix:
        """Return the matrix with other values on its attribute axes, given the number of each of the old ones."""
        names = axis_columns(len(axes))
        maps = [upload_columns(self.backend, code=np.arange(len(number)), new=number) for number in numbers]
        ends = ", ".join(
            [*(f"f.{axis}" for axis in AXES), *(f"m{at}.new AS {name}" for at, name in enumerate(names[2:]))]
        )
        joins = " ".join(
            f"JOIN {map_} m{at} ON m{at}.code = f.{name}"
            for at, (map_, name) in enumerate(zip(maps, names[2:], strict=True))
        )
        masses = ["trips"] if self.scale is None else ["trips", "weight"]
        groups = ", ".join([*(f"f.{axis}" for axis in AXES), *(f"m{at}.new" for at in range(len(maps)))])
        sums = ", ".join(f"{sum_bigint(f'f.{name}')} AS {name}" for name in masses)
        one = "CAST(1 AS BIGINT) AS pairs"
        pairs = store_query(self.backend, f"SELECT {ends}, {one}, {sums} FROM {self.pairs} f {joins} GROUP BY {groups}")
        own = ", ".join(f"f.{name}" for name in ("contributor", *masses))
        contributions = {
            name: Subquery(f"SELECT {ends}, {own} FROM {each} f {joins}", each, *maps)
            for name, each in self.contributions.items()
        }
        finer = self.finer.with_axes(axes, numbers) if self.finer is not None and self.finer.axes else self.finer
        summary = replace(self.summary, pairs=pairs.rows)
        return replace(self, axes=tuple(axes), pairs=pairs, contributions=contributions, summary=summary, finer=finer)

    @property
    def scale(self) -> int | None:
        """Units per unit of weight; None without weights."""
        return None if self.summary.weight_units is None else self.summary.scale

    def engine(self, measures: Collection[str] = ()) -> SqlEngine:
        """Return an engine over all pairs that counts trips, weight and the contributors of the given measures."""
        axes = self.table_axis("origin"), self.table_axis("destination")
        contributions = {name: each for name, each in self.contributions.items() if name in measures}
        return SqlEngine(self.backend, *axes, self.pairs, contributions, self.scale)

    @property
    def is_small(self) -> bool:
        """Whether the pairs are better fetched and processed in memory."""
        return self.summary.pairs + self._contributions_at_most <= self.backend.fetchable

    @property
    def _contributions_at_most(self) -> int:
        return len(self.contributions) * self.summary.trips

    def in_memory(self) -> ODMatrix:
        """Return the matrix with its pairs in memory; raise if they do not fit there."""
        return self._collected

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
        contributions = {
            name: self._contributions(groups, residual.nodes, each) for name, each in residual.contributions.items()
        }
        flows = groups.flows(contributions, self.summary.scale)
        return ODMatrix(self.origins, self.destinations, flows, self.summary.source, self.axes, self.finer)

    @property
    def pairs_fit(self) -> bool:
        """Whether the pairs, without their contributors, fit in memory easily."""
        return self.summary.pairs // FLOWS_PER_CONTRIBUTION <= self.backend.fetchable

    @cached_property
    def pairs_in_memory(self) -> NodeFlows:
        """The pairs, sorted by the numbers of their leaves, without contributors; fetched once."""
        return self.residual_trips(()).groups()

    def residual_trips(self, contributors: Collection[str] | None = None) -> SqlResidual:
        """Return all pairs by the numbers of their leaves, with the contributors of some (by default all) measures."""
        contributions = {
            name: each for name, each in self.contributions.items() if contributors is None or name in contributors
        }
        attributes = [len(axis.tree.leaves) for axis in self.axes]
        return sql_residual(self.backend, self.keys, attributes, self.pairs, contributions, self.scale)

    def _contributions(self, groups: NodeFlows, nodes: Sequence[int], contributions: Relation) -> Contributions:
        columns = axis_columns(len(self.axes))
        masses = ("trips",) if self.scale is None else ("trips", "weight")
        sums = ", ".join(f"{sum_bigint(name)} AS {name}" for name in masses)
        own = ", ".join(columns)
        found = self.backend.execute(
            f"SELECT {own}, contributor, {sums} FROM {contributions} v GROUP BY {own}, contributor"
        )
        contributor = contributor_numbers(found.column("contributor").combine_chunks())
        keys, wanted = codes_to_keys(nodes, groups.codes, [int_column(found, name) for name in columns])
        flow = np.searchsorted(keys, wanted)
        order = np.lexsort((contributor, flow))
        return Contributions(
            flow[order].astype(np.int32),
            contributor[order],
            max(int(contributor.max(initial=0)) + 1, 1),
            {name: int_column(found, name)[order] for name in masses},
        )

    def __repr__(self) -> str:
        return (
            f"SqlMatrix({self.summary.pairs:,} pairs, {self.summary.trips:,} trips; {len(self.origins.leaves):,} "
            f"origin x {len(self.destinations.leaves):,} destination leaves)"
        )
