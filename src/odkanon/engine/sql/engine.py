"""The engine over flows in a database: a few statements in a subset of SQL that DuckDB and Spark share.

Only marginals, zone maps and published classes travel between the database and Python; the pairs stay where they are.
All masses are whole numbers, so every database returns the same sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints, sort_keys
from odkanon.engine.memory.workspace import MemoryEngine
from odkanon.engine.protocols import Engine
from odkanon.engine.sql.backend import Backend, Relation, StoredTable, store_query, upload_columns
from odkanon.errors import InputError
from odkanon.model.flows import Contributions, Flows, Totals
from odkanon.model.measures import MEASURES
from odkanon.model.od import AXES, Axis
from odkanon.model.rule import Rule
from odkanon.read.attribute_values import attribute_column
from odkanon.read.person_ids import contributor_numbers
from odkanon.zoning.hierarchy import Cut, Hierarchy

FLOWS_PER_CONTRIBUTION = 4
"""Flows that take as much memory as one contribution."""


@dataclass(frozen=True, eq=False)
class TableAxis:
    """One axis of a table of flows."""

    tree: Hierarchy
    """The tree over its leaves."""
    places: Ints
    """The places as the table identifies them: keys of leaves, or numbers of zones."""
    leaf: Ints
    """For each place, one leaf inside it."""

    def coarsen(self, cut: Cut) -> TableAxis:
        """Return the axis whose places are the zones of a cut."""
        return TableAxis(self.tree, np.arange(len(cut)), cut.starts)

    def at_leaves(self, found: pa.Table) -> Ints:
        """Return for each leaf the ``mass`` found for its ``place``, or 0."""
        order = np.argsort(self.places, kind="stable")
        at = order[np.searchsorted(self.places, int_column(found, "place"), sorter=order)]
        mass = np.zeros(len(self.tree.leaves), dtype=np.int64)
        mass[self.leaf[at]] = int_column(found, "mass")
        return mass


@dataclass(frozen=True, eq=False)
class SqlEngine:
    """Answers from flows in a database."""

    backend: Backend
    origin: TableAxis
    destination: TableAxis
    """The axes of the table."""
    table: StoredTable
    """``origin, destination, pairs, trips`` and, if trips are weighted, ``weight``."""
    contributions: Mapping[str, Relation]
    """``origin, destination, contributor``, possibly repeated, for each measure whose contributors count."""
    scale: int | None
    """Units per unit of weight; None without weights."""

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""
        return self.table_axis(axis).tree

    def table_axis(self, axis: Axis) -> TableAxis:
        """Return one axis of the table."""
        return self.origin if axis == "origin" else self.destination

    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        own = self.table_axis(axis)
        if MEASURES[measure].counts_distinct:
            return tuple(self._contributors_by_node(axis, level, measure) for level in range(own.tree.top + 1))
        found = self.backend.execute(
            f"SELECT {axis} AS place, {sum_bigint(measure)} AS mass FROM {self.table} GROUP BY {axis}"
        )
        mass = own.at_leaves(found)
        return tuple(np.add.reduceat(mass, starts) for starts in own.tree.starts)

    def _contributors_by_node(self, axis: Axis, level: int, measure: str) -> Ints:
        own = self.table_axis(axis)
        nodes = upload_columns(self.backend, place=own.places, node=own.tree.codes[level][own.leaf])
        found = self.backend.execute(
            f"SELECT node, COUNT(*) AS mass FROM (SELECT DISTINCT n.node, v.contributor FROM "
            f"{self.contributions[measure]} v JOIN {nodes} n ON v.{axis} = n.place) s GROUP BY node"
        )
        mass = np.zeros(len(own.tree.ids[level]), dtype=np.int64)
        mass[int_column(found, "node")] = int_column(found, "mass")
        return mass

    def coarsen(self, origins: Cut, destinations: Cut) -> Engine:
        """Return the engine over the classes of two cuts; in memory if they fit there easily."""
        coarser = self.merged(origins, destinations)
        contributions = sum(each.rows for each in coarser.contributions.values() if isinstance(each, StoredTable))
        size = coarser.table.rows // FLOWS_PER_CONTRIBUTION + contributions
        return coarser.fetched() if size <= self.backend.fetchable else coarser

    def fetched(self) -> MemoryEngine:
        """Return the same engine with its flows in memory."""
        flows = self._fetch(str(self.table))
        contributions = {name: self._fetch_contributions(flows, each) for name, each in self.contributions.items()}
        return MemoryEngine(self, replace(flows, contributions=contributions), self.origin.leaf, self.destination.leaf)

    def _fetch_contributions(self, flows: Flows, contributions: Relation) -> Contributions:
        found = self.backend.execute(f"SELECT origin, destination, contributor FROM {contributions} v")
        width = len(self.destination.places)
        keys = flows.origin.astype(np.int64) * width + flows.destination
        flow = np.searchsorted(keys, int_column(found, "origin") * width + int_column(found, "destination"))
        contributor = contributor_numbers(found.column("contributor").combine_chunks())
        return Contributions(flow.astype(np.int32), contributor, int(contributor.max(initial=0)) + 1)

    def merged(self, origins: Cut, destinations: Cut) -> SqlEngine:
        """Return the engine over the classes of two cuts, in the database."""
        axes = self.origin.coarsen(origins), self.destination.coarsen(destinations)
        masses = ", ".join(f"{sum_bigint(name)} AS {name}" for name in self.masses)
        if len(origins) == len(destinations) == 1:
            merged = store_query(self.backend, f"SELECT 0 AS origin, 0 AS destination, {masses} FROM {self.table} f")
        else:
            maps = self._maps(origins, destinations)
            merged = store_query(
                self.backend,
                f"SELECT a.zone AS origin, b.zone AS destination, {masses} FROM {self.table} f "
                f"{join_maps('f', *maps)} GROUP BY a.zone, b.zone",
            )
        contributions = {
            name: distinct_contributions(self.backend, each, *self._maps(origins, destinations))
            for name, each in self.contributions.items()
        }
        return SqlEngine(self.backend, *axes, merged, contributions, self.scale)

    @property
    def masses(self) -> tuple[str, ...]:
        """Columns of the table that add up."""
        return ("pairs", "trips") if self.scale is None else ("pairs", "trips", "weight")

    def _maps(self, origins: Cut, destinations: Cut) -> tuple[StoredTable, StoredTable]:
        pairs = ((self.origin, origins), (self.destination, destinations))
        first, second = (
            upload_columns(self.backend, place=e.places, zone=cut.zone_of_leaf[e.leaf]) for e, cut in pairs
        )
        return first, second

    @property
    def relation(self) -> str:
        """The flows, with the numbers of their contributors if any are counted."""
        if not self.contributions:
            return f"{self.table}"
        counts = "".join(f", COALESCE(h{at}.contributors, 0) AS {name}" for at, name in enumerate(self.contributions))
        joins = " ".join(
            f"LEFT JOIN (SELECT origin, destination, COUNT(*) AS contributors FROM (SELECT DISTINCT origin, "
            f"destination, contributor FROM {each} v) d GROUP BY origin, destination) h{at} "
            f"ON f.origin = h{at}.origin AND f.destination = h{at}.destination"
            for at, each in enumerate(self.contributions.values())
        )
        return f"(SELECT f.*{counts} FROM {self.table} f {joins}) c"

    def totals_below(self, rule: Rule) -> Totals:
        """Return the total of the classes that do not meet the rule."""
        return query_totals(self.backend, f"{self.relation} WHERE NOT ({self.condition(rule)})", self.masses)

    def condition(self, rule: Rule) -> str:
        """Return the SQL condition under which a flow meets a rule."""
        if not rule.thresholds_only:
            raise InputError(
                f"{rule} can only be checked in memory; read the trips into memory, or use thresholds only"
            )
        return " AND ".join(f"{measure} >= {rule.units(measure, self.scale or 1)}" for measure in rule.measures)

    @cached_property
    def flows(self) -> Flows:
        """The classes."""
        return self._fetch(self.relation)

    @property
    def counted_measures(self) -> frozenset[str]:
        """The measures whose contributors the flows count."""
        return frozenset(self.contributions)

    def satisfying_flows(self, rule: Rule) -> Flows:
        """Return the classes that meet a rule."""
        return self._fetch(f"{self.relation} WHERE {self.condition(rule)}")

    def _fetch(self, relation: str) -> Flows:
        found = self.backend.execute(f"SELECT * FROM {relation}")
        width = len(self.destination.places)
        keys = int_column(found, "origin") * width + int_column(found, "destination")
        order, _ = sort_keys(keys, len(self.origin.places) * width)
        columns = {name: int_column(found, name)[order] for name in found.column_names}
        return Flows(
            columns["origin"].astype(np.int32),
            columns["destination"].astype(np.int32),
            columns["pairs"],
            columns["trips"],
            columns.get("weight"),
            scale=self.scale or 1,
            contributor_counts={name: columns[name] for name in self.contributions if name in columns},
        )


def join_maps(flows: str, origins: StoredTable, destinations: StoredTable, *, join: str = "JOIN") -> str:
    """Return the joins that add zones to a table of flows, as ``a.zone`` and ``b.zone``."""
    ends = ((origins, "a", "origin"), (destinations, "b", "destination"))
    return " ".join(f"{join} {table} {name} ON {flows}.{axis} = {name}.place" for table, name, axis in ends)


def distinct_contributions(
    backend: Backend, contributions: Relation, origins: StoredTable, destinations: StoredTable
) -> StoredTable:
    """Return the distinct contributors of each class."""
    return store_query(
        backend,
        f"SELECT DISTINCT a.zone AS origin, b.zone AS destination, v.contributor FROM {contributions} v "
        f"{join_maps('v', origins, destinations)}",
    )


def axis_columns(attributes: int) -> tuple[str, ...]:
    """Return the columns of all axes: the two places and a number of attributes."""
    return (*AXES, *map(attribute_column, range(attributes)))


def query_totals(backend: Backend, relation: str, masses: tuple[str, ...]) -> Totals:
    """Return the total of some flows."""
    sums = ", ".join(f"COALESCE({sum_bigint(name)}, 0) AS {name}" for name in masses)
    found = backend.execute(f"SELECT {sums} FROM {relation}").to_pylist()[0]
    return Totals(**{"weight_units" if name == "weight" else name: int(value) for name, value in found.items()})


def leaf_keys(backend: Backend, table: StoredTable, axis: Axis) -> Ints:
    """Return the distinct keys of an axis, sorted."""
    return np.sort(int_column(backend.execute(f"SELECT DISTINCT {axis} AS place FROM {table}"), "place"))


def sum_bigint(column: str) -> str:
    """Return the SQL of a sum of whole numbers."""
    # DuckDB sums integers in 128 bits, Spark in 64; the scale of weights is chosen so that sums fit 64.
    return f"CAST(SUM({column}) AS BIGINT)"


def int_column(table: pa.Table, name: str) -> Ints:
    """Return a column of integers."""
    values: Ints = table.column(name).to_numpy().astype(np.int64, copy=False)
    return values
