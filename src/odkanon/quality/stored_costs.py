"""Minimal cost of OD pairs in a database, part by part; see `odkanon.quality.minimal_cost`.

Every class lies within its origin node, so the pairs can be split between origin nodes into parts that fit in memory,
as long as only nodes below the split are used. Above it, the pairs are split between destination nodes in the same
way; what lies above both splits is small. The results of the coarse levels are passed down to the parts below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.engine.sql.backend import StoredTable, upload_columns
from odkanon.engine.sql.engine import SqlEngine, int_column
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.model.flows import Contributions, Flows
from odkanon.model.measures import MEASURES
from odkanon.model.od import Axis
from odkanon.model.rule import Rule
from odkanon.quality.minimal_cost import CostDistribution, Floats, TreeLevels, climb, count_costs, distinct_levels
from odkanon.zoning.hierarchy import level_cut

_SHARE = 4
"""A part has at most this fraction of the fetchable rows: a climb keeps every rung, and several parts run at a time."""
_LEAST_ROWS = 200  # parts with fewer rows are not worth a query


def stored_minimal_costs(od: SqlMatrix, rule: Rule) -> tuple[CostDistribution, CostDistribution]:
    """Return the distributions of the minimal costs of OD pairs, and of the masses of their smallest classes."""
    engine = od.engine(rule.measures)
    origins, destinations = distinct_levels(od.origins), distinct_levels(od.destinations)
    parts = _parts(engine, "origin", origins)
    known = None if parts.upper is None else _costs_above(engine, parts.upper, destinations, rule)
    counted = _run(engine, "origin", _CountCosts.from_parts(parts, destinations, rule, engine.scale), parts, known)
    found = engine.backend.execute(
        f"SELECT what, value, trips, CAST(SUM(pairs) AS BIGINT) AS pairs FROM {counted} GROUP BY what, value, trips"
    )
    what, value, trips, pairs = (found.column(name).to_numpy() for name in ("what", "value", "trips", "pairs"))
    cost, smallest = (count_costs(_float(value[which]), trips[which], pairs[which]) for which in (what == 0, what == 1))
    return cost, smallest


def _costs_above(engine: SqlEngine, origins: TreeLevels, destinations: TreeLevels, rule: Rule) -> StoredTable:
    """Return the costs of flows from the nodes of the first of the upper origin levels to single destinations."""
    parts = _parts(engine, "destination", destinations)
    known = None if parts.upper is None else _costs_on_top(engine, origins, parts.upper, rule)
    return _run(engine, "destination", _ListCosts.from_parts(parts, origins, rule, engine.scale), parts, known)


def _costs_on_top(engine: SqlEngine, origins: TreeLevels, destinations: TreeLevels, rule: Rule) -> StoredTable:
    """Return the costs of flows between the nodes of the first of the upper levels of both axes."""
    trees = engine.origin.tree, engine.destination.tree
    coarse = engine.merged(level_cut(trees[0], origins.numbers[0]), level_cut(trees[1], destinations.numbers[0]))

    def meets(up: int, across: int, classes: Flows) -> Bools:
        if coarse.contributions:  # contributors stay in the database; their counts come in the same order of classes
            cuts = level_cut(trees[0], origins.numbers[up]), level_cut(trees[1], destinations.numbers[across])
            classes = replace(classes, contributor_counts=coarse.coarsen(*cuts).flows.contributors)
        return rule.satisfied(classes)

    flows = coarse.flows
    cost, smallest = climb(flows, origins, destinations, meets).descend()
    return upload_columns(
        engine.backend, near=flows.destination, far=flows.origin, cost=_whole(cost), smallest=_whole(smallest)
    )


@dataclass(frozen=True, eq=False)
class _Parts:
    """A split of the flows of an axis into parts."""

    lower: TreeLevels
    upper: TreeLevels | None
    """The levels whose nodes lie within one part, and the others, if any."""
    part_of_leaf: Codes  # for each leaf, the number of its part

    @property
    def count(self) -> int:
        return int(self.part_of_leaf[-1]) + 1

    def below(self) -> tuple[Codes, Codes]:
        """Return the combinations of a node of the first upper level and a part below it."""
        assert self.upper is not None
        node_of_leaf = np.repeat(np.arange(len(self.upper.sizes[0]), dtype=np.int32), self.upper.sizes[0])
        opens = np.diff(node_of_leaf, prepend=-1) + np.diff(self.part_of_leaf, prepend=-1) > 0
        return node_of_leaf[opens], self.part_of_leaf[opens]


def _parts(engine: SqlEngine, axis: Axis, levels: TreeLevels) -> _Parts:
    """Split an axis into parts that fit in memory, at the highest possible level."""
    side = engine.table_axis(axis)
    ends = f"SELECT {axis} AS place FROM {engine.table}"
    for each in engine.contributions.values():
        ends = f"{ends} UNION ALL SELECT {axis} AS place FROM {each} v"
    rows = side.at_leaves(engine.backend.execute(f"SELECT place, COUNT(*) AS mass FROM ({ends}) e GROUP BY place"))
    enough = max(engine.backend.fetchable // _SHARE, _LEAST_ROWS)
    for step in reversed(range(len(levels))):
        first = np.cumsum(levels.sizes[step]) - levels.sizes[step]
        of_node = np.add.reduceat(rows, first)
        if step == 0 or of_node.max() <= enough:
            break
    _, part = np.unique((np.cumsum(of_node) - of_node) // enough, return_inverse=True)
    lower, upper = levels.split(step + 1)
    return _Parts(lower, upper if len(upper) else None, np.repeat(part.astype(np.int32), levels.sizes[step]))


def _run(engine: SqlEngine, axis: Axis, work: _Part, parts: _Parts, known: StoredTable | None) -> StoredTable:
    """Climb every part, wherever the backend runs it, and store the results."""
    other: Axis = "destination" if axis == "origin" else "origin"
    near, far = engine.table_axis(axis), engine.table_axis(other)
    maps = (
        upload_columns(
            engine.backend, place=near.places, zone=near.leaf.astype(np.int32), part=parts.part_of_leaf[near.leaf]
        ),
        upload_columns(engine.backend, place=far.places, zone=far.tree.codes[work.far.numbers[0]][far.leaf]),
    )
    joins = f"JOIN {maps[0]} m ON f.{axis} = m.place JOIN {maps[1]} o ON f.{other} = o.place"
    ends = "SELECT m.part, m.zone AS near, o.zone AS far"
    weight = ", f.weight" if work.rule.weight is not None else ""
    tables = {"flows": f"{ends}, f.trips{weight} FROM {engine.table} f {joins}"}
    for name, each in engine.contributions.items():
        tables[name] = f"{ends}, f.contributor FROM {each} f {joins}"
    if known is not None:
        nodes, part = parts.below()
        wanted = upload_columns(engine.backend, node=nodes, part=part)
        tables["known"] = f"SELECT w.part, k.* FROM {known} k JOIN {wanted} w ON k.near = w.node"
    return engine.backend.by_part(tables, parts.count, work, work.columns)


@dataclass(frozen=True, eq=False)
class _Part(ABC):
    """The climb of one part, given its rows."""

    near: TreeLevels
    far: TreeLevels
    """The levels below the split on the axis that was split, and all levels of the other axis."""
    bridge: Codes | None  # for each node of the last near level, its parent above the split
    rule: Rule
    scale: int | None

    columns: ClassVar[tuple[str, ...]]

    @abstractmethod
    def __call__(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return the results of a part, given ``flows``, contributions by measure, and ``known`` costs above."""

    @classmethod
    def from_parts(cls, parts: _Parts, far: TreeLevels, rule: Rule, scale: int | None) -> Self:
        """Return the work on any of the parts."""
        return cls(parts.lower, far, None if parts.upper is None else parts.upper.parents[0], rule, scale)

    def best(self, tables: Mapping[str, pa.Table]) -> tuple[Flows, Floats, Floats]:
        """Return the flows, with the minimal cost and the smallest mass of a class that contains each."""
        flows = self._flows(tables)
        climbed = climb(flows, self.near, self.far, lambda up, across, classes: self.rule.satisfied(classes))
        if self.bridge is None:
            return flows, *climbed.descend()
        known = tables["known"]
        keys, summit = self._keys(int_column(known, "near"), int_column(known, "far")), climbed.summit
        order = np.argsort(keys, kind="stable")
        wanted = self._keys(self.bridge[summit.origin], summit.destination)
        at = order[np.searchsorted(keys, wanted, sorter=order)]
        return flows, *climbed.descend(*(_float(int_column(known, name))[at] for name in ("cost", "smallest")))

    def _keys(self, near: npt.NDArray[np.integer], far: npt.NDArray[np.integer]) -> Ints:
        return near.astype(np.int64) * len(self.far.sizes[0]) + far

    def _flows(self, tables: Mapping[str, pa.Table]) -> Flows:
        rows = tables["flows"]
        given = Flows(
            int_column(rows, "near").astype(np.int32),
            int_column(rows, "far").astype(np.int32),
            np.empty(0, dtype=np.int64),
            int_column(rows, "trips"),
            int_column(rows, "weight") if self.rule.weight is not None else None,
            scale=self.scale or 1,
        )
        flows, _ = given.merge(given.origin, given.destination)
        contributors = [name for name in self.rule.measures if MEASURES[name].counts_distinct]
        return replace(flows, contributions={name: self._contributions(flows, tables[name]) for name in contributors})

    def _contributions(self, flows: Flows, contributions: pa.Table) -> Contributions:
        ends = self._keys(int_column(contributions, "near"), int_column(contributions, "far"))
        flow = np.searchsorted(self._keys(flows.origin, flows.destination), ends)
        contributor = pc.dictionary_encode(contributions.column("contributor").combine_chunks()).indices.to_numpy()
        repeated = Contributions(
            flow.astype(np.int32), contributor.astype(np.int32), int(contributor.max(initial=0)) + 1
        )
        return repeated.relabel(np.arange(len(flows), dtype=np.int32), len(flows))


class _ListCosts(_Part):
    """Lists the cost of each flow, for the parts of the other axis to look up."""

    columns = ("near", "far", "cost", "smallest")

    def __call__(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        flows, cost, smallest = self.best(tables)
        ends = flows.destination.astype(np.int64), flows.origin.astype(np.int64)
        return pa.table(dict(zip(self.columns, (*ends, _whole(cost), _whole(smallest)), strict=True)))


class _CountCosts(_Part):
    """Counts the pairs by minimal cost, and by smallest mass."""

    columns = ("what", "value", "trips", "pairs")

    def __call__(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        flows, *found = self.best(tables)
        counts = []
        for what, value in enumerate(found):
            counted = count_costs(value, flows.trips)
            columns = (np.full(len(counted.value), what), _whole(counted.value), counted.trips, counted.pairs)
            counts.append(pa.table(dict(zip(self.columns, columns, strict=True))))
        return pa.concat_tables(counts)


def _whole(value: Floats) -> Ints:
    """Return values as integers, with -1 for infinity."""
    return np.where(np.isinf(value), -1, value).astype(np.int64)


def _float(value: Ints) -> Floats:
    return np.where(value < 0, np.inf, value)
