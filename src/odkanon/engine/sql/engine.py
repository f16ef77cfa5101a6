"""The engine for OD pairs in a database: a few statements in a subset of SQL that DuckDB and Spark share.

Only marginals, zone maps and published classes travel between the database and Python; the pairs stay where they
are. All masses are whole numbers, so every database adds them up to the same result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Ints
from odkanon.engine.memory import MemoryEngine
from odkanon.engine.protocols import Engine
from odkanon.engine.sql.backend import Backend, Relation, Stored, lend, store
from odkanon.model.flows import Flows, Totals, Visits
from odkanon.model.od import Axis
from odkanon.model.rule import Measure, Rule
from odkanon.zoning.hierarchy import Cut, Hierarchy

_LIGHTER = 4
"""How many flows take as much memory as one with its visitors."""


@dataclass(frozen=True, eq=False)
class Side:
    """One axis of a table of flows.

    Attributes
    ----------
    tree : Hierarchy
        The tree over its leaves.
    places : array of int
        What the table calls its places: keys of leaves, or numbers of zones.
    leaf : array of int
        For each place, one leaf that lies in it.
    """

    tree: Hierarchy
    places: Ints
    leaf: Ints

    def coarsen(self, cut: Cut) -> Side:
        """Return the side whose places are the zones of a cut."""
        return Side(self.tree, np.arange(len(cut)), cut.starts)

    def at_leaves(self, found: pa.Table) -> Ints:
        """Return for each leaf the ``mass`` found for its ``place``; 0 where none was."""
        order = np.argsort(self.places, kind="stable")
        at = order[np.searchsorted(self.places, ints(found, "place"), sorter=order)]
        mass = np.zeros(len(self.tree.leaves), dtype=np.int64)
        mass[self.leaf[at]] = ints(found, "mass")
        return mass


@dataclass(frozen=True, eq=False)
class SqlEngine:
    """Answers from flows in a database.

    Attributes
    ----------
    origin, destination : Side
        What the places of the table are.
    table : Stored
        ``origin, destination, pairs, trips`` and, where there is one, ``weight``.
    visits : Relation or None
        ``origin, destination, person``, possibly repeated; where the rule counts persons.
    scale : int or None
        Units of weight in one; None where there is no weight.
    """

    backend: Backend
    origin: Side
    destination: Side
    table: Stored
    visits: Relation | None
    scale: int | None

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""
        return self.side(axis).tree

    def side(self, axis: Axis) -> Side:
        """Return one axis of the table."""
        return self.origin if axis == "origin" else self.destination

    def node_masses(self, axis: Axis, measure: Measure) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        side = self.side(axis)
        if measure == "persons":
            return tuple(self._persons_by_node(axis, level) for level in range(side.tree.top + 1))
        found = self.backend.execute(
            f"SELECT {axis} AS place, {_sum(measure)} AS mass FROM {self.table} GROUP BY {axis}"
        )
        mass = side.at_leaves(found)
        return tuple(np.add.reduceat(mass, starts) for starts in side.tree.starts)

    def _persons_by_node(self, axis: Axis, level: int) -> Ints:
        side = self.side(axis)
        nodes = lend(self.backend, place=side.places, node=side.tree.codes[level][side.leaf])
        found = self.backend.execute(
            f"SELECT node, COUNT(*) AS mass FROM (SELECT DISTINCT n.node, v.person FROM {self.visits} v "
            f"JOIN {nodes} n ON v.{axis} = n.place) s GROUP BY node"
        )
        mass = np.zeros(len(side.tree.ids[level]), dtype=np.int64)
        mass[ints(found, "node")] = ints(found, "mass")
        return mass

    def coarsen(self, origins: Cut, destinations: Cut) -> Engine:
        """Return the engine over the classes of two cuts; in memory, if they fit there easily."""
        coarser = self.merged(origins, destinations)
        visits = coarser.visits.rows if isinstance(coarser.visits, Stored) else 0
        return coarser.fetched() if coarser.table.rows // _LIGHTER + visits <= self.backend.fetchable else coarser

    def fetched(self) -> MemoryEngine:
        """Return the same engine with its flows in memory."""
        flows = self._fetch(str(self.table))
        if self.visits is not None:
            flows = replace(flows, visits=self._fetch_visits(flows))
        return MemoryEngine(self, flows, self.origin.leaf, self.destination.leaf)

    def _fetch_visits(self, flows: Flows) -> Visits:
        found = self.backend.execute(f"SELECT origin, destination, person FROM {self.visits} v")
        width = len(self.destination.places)
        keys = flows.origin.astype(np.int64) * width + flows.destination
        flow = np.searchsorted(keys, ints(found, "origin") * width + ints(found, "destination")).astype(np.int32)
        person = pc.dictionary_encode(found.column("person").combine_chunks()).indices.to_numpy().astype(np.int32)
        return Visits(flow, person, max(int(person.max(initial=0)) + 1, 1))

    def merged(self, origins: Cut, destinations: Cut) -> SqlEngine:
        """Return the engine over the classes of two cuts, where the pairs are."""
        sides = self.origin.coarsen(origins), self.destination.coarsen(destinations)
        masses = ", ".join(f"{_sum(name)} AS {name}" for name in self.masses)
        if len(origins) == len(destinations) == 1:
            merged = store(self.backend, f"SELECT 0 AS origin, 0 AS destination, {masses} FROM {self.table} f")
        else:
            maps = self._maps(origins, destinations)
            merged = store(
                self.backend,
                f"SELECT a.zone AS origin, b.zone AS destination, {masses} FROM {self.table} f "
                f"{join_maps('f', *maps)} GROUP BY a.zone, b.zone",
            )
        visits = None
        if self.visits is not None:
            visits = distinct_visits(self.backend, self.visits, *self._maps(origins, destinations))
        return SqlEngine(self.backend, *sides, merged, visits, self.scale)

    @property
    def masses(self) -> tuple[str, ...]:
        """Columns of the table that add up."""
        return ("pairs", "trips") if self.scale is None else ("pairs", "trips", "weight")

    def _maps(self, origins: Cut, destinations: Cut) -> tuple[Stored, Stored]:
        sides = ((self.origin, origins), (self.destination, destinations))
        first, second = (lend(self.backend, place=side.places, zone=cut.zone_of_leaf[side.leaf]) for side, cut in sides)
        return first, second

    @property
    def counted(self) -> str:
        """The flows with the number of their persons, where persons are counted."""
        if self.visits is None:
            return f"{self.table}"
        return (
            f"(SELECT f.*, COALESCE(p.persons, 0) AS persons FROM {self.table} f LEFT JOIN "
            f"(SELECT origin, destination, COUNT(*) AS persons FROM (SELECT DISTINCT origin, destination, person "
            f"FROM {self.visits} v) d GROUP BY origin, destination) p "
            "ON f.origin = p.origin AND f.destination = p.destination) c"
        )

    def below(self, rule: Rule) -> Totals:
        """Return what the classes that do not meet the rule add up to."""
        return totals(self.backend, f"{self.counted} WHERE NOT ({self.condition(rule)})", self.masses)

    def condition(self, rule: Rule) -> str:
        """Return the SQL condition under which a flow meets a rule."""
        units = rule.weight_units(self.scale or 1)
        least = {"trips": rule.trips, "weight": None if rule.weight is None else units, "persons": rule.persons}
        return " AND ".join(f"{measure} >= {value}" for measure, value in least.items() if value is not None)

    @cached_property
    def flows(self) -> Flows:
        """The classes of the cuts that the engine was coarsened to."""
        return self._fetch(self.counted)

    @property
    def counts_persons(self) -> bool:
        """Whether the flows say how many persons they have."""
        return self.visits is not None

    def meeting(self, rule: Rule) -> Flows:
        """Return the flows that meet a rule."""
        return self._fetch(f"{self.counted} WHERE {self.condition(rule)}")

    def _fetch(self, relation: str) -> Flows:
        found = self.backend.execute(f"SELECT * FROM {relation}")
        order = np.lexsort((ints(found, "destination"), ints(found, "origin")))
        columns = {name: ints(found, name)[order] for name in found.column_names}
        return Flows(
            columns["origin"].astype(np.int32),
            columns["destination"].astype(np.int32),
            columns["pairs"],
            columns["trips"],
            columns.get("weight"),
            None,
            self.scale or 1,
            columns.get("persons"),
        )


def join_maps(flows: str, origins: Stored, destinations: Stored) -> str:
    """Return the joins that give a table of flows its zones, as ``a.zone`` and ``b.zone``."""
    return f"JOIN {origins} a ON {flows}.origin = a.place JOIN {destinations} b ON {flows}.destination = b.place"


def distinct_visits(backend: Backend, visits: Relation, origins: Stored, destinations: Stored) -> Stored:
    """Return who takes part in which class."""
    return store(
        backend,
        f"SELECT DISTINCT a.zone AS origin, b.zone AS destination, v.person FROM {visits} v "
        f"{join_maps('v', origins, destinations)}",
    )


def totals(backend: Backend, relation: str, masses: tuple[str, ...]) -> Totals:
    """Return what some flows add up to."""
    sums = ", ".join(f"COALESCE({_sum(name)}, 0) AS {name}" for name in masses)
    found = backend.execute(f"SELECT {sums} FROM {relation}").to_pylist()[0]
    return Totals(**{name: int(value) for name, value in found.items()})


def leaf_keys(backend: Backend, table: Stored, axis: Axis) -> Ints:
    """Return the distinct keys of an axis, sorted."""
    return np.sort(ints(backend.execute(f"SELECT DISTINCT {axis} AS place FROM {table}"), "place"))


def _sum(column: str) -> str:
    # DuckDB adds integers up in 128 bits, Spark in 64; what we add up fits 64 by the choice of its scale.
    return f"CAST(SUM({column}) AS BIGINT)"


def ints(table: pa.Table, name: str) -> Ints:
    """Return a column of integers."""
    values: Ints = table.column(name).to_numpy().astype(np.int64, copy=False)
    return values
