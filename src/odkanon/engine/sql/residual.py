"""The residual of a cascade in a database: what is left at each rung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints, sort_keys
from odkanon.engine.memory.residual import MemoryResidual, choose_leaving_trips
from odkanon.engine.node_flows import NodeFlows, codes_to_keys, key_space
from odkanon.engine.protocols import Residual
from odkanon.engine.sql.backend import Backend, Relation, StoredTable, Subquery, store_query, upload_columns
from odkanon.engine.sql.engine import FLOWS_PER_CONTRIBUTION, axis_columns, int_column, query_totals, sum_bigint
from odkanon.model.flows import Contributions, Totals
from odkanon.model.measures import exact_masses
from odkanon.model.od import AXES
from odkanon.read.attribute_values import attribute_column
from odkanon.read.person_ids import contributor_numbers


@dataclass(frozen=True, eq=False)
class SqlResidual:
    """The residual, in a database."""

    backend: Backend
    nodes: tuple[int, ...]
    """For each axis, the number of nodes."""
    table: Relation
    """The node numbers, ``pairs, trips`` and, if trips are weighted, ``weight``."""
    contributions: Mapping[str, Relation]
    """The node numbers, ``contributor`` and ``trips``, possibly in several rows, for each measure that counts
    contributors."""
    scale: int | None
    """Units per unit of weight; None without weights."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns of the table with the node numbers of each axis."""
        return axis_columns(len(self.nodes) - len(AXES))

    @property
    def masses(self) -> tuple[str, ...]:
        """Columns of the table that add up."""
        return ("pairs", "trips") if self.scale is None else ("pairs", "trips", "weight")

    def lift(self, axis: int, parent: Ints, nodes: int) -> Residual:
        """Return the residual grouped by the parents on one axis; in memory if it fits there easily."""
        name = self.axes[axis]
        parents = upload_columns(self.backend, code=np.arange(len(parent)), parent=parent)
        ends = ", ".join(f"p.parent AS {name}" if at == axis else f"f.{other}" for at, other in enumerate(self.axes))
        groups = ", ".join("p.parent" if at == axis else f"f.{other}" for at, other in enumerate(self.axes))
        joined = f"f JOIN {parents} p ON f.{name} = p.code"
        sums = ", ".join(f"{sum_bigint(f'f.{mass}')} AS {mass}" for mass in self.masses)
        lifted = SqlResidual(
            self.backend,
            tuple(nodes if at == axis else count for at, count in enumerate(self.nodes)),
            store_query(self.backend, f"SELECT {ends}, {sums} FROM {self.table} {joined} GROUP BY {groups}"),
            {
                measure: store_query(
                    self.backend,
                    f"SELECT {ends}, f.contributor, {sum_bigint('f.trips')} AS trips FROM {contributions} {joined} "
                    f"GROUP BY {groups}, f.contributor",
                )
                for measure, contributions in self.contributions.items()
            },
            self.scale,
        )
        contributions = sum(each.rows for each in lifted.contributions.values() if isinstance(each, StoredTable))
        assert isinstance(lifted.table, StoredTable)
        return lifted._fetched() if lifted.is_small(lifted.table.rows, contributions) else lifted

    def at_least(self, trips: int) -> NodeFlows:
        """Return the groups with at least this many trips."""
        groups = self.groups(f"{self.table} f WHERE f.trips >= {trips}")
        counts = {name: self._count(groups, each) for name, each in self.contributions.items()}
        return replace(groups, contributors=counts)

    def without(self, taken: NodeFlows, rows: Ints, left: NodeFlows, reassigned: str | None) -> SqlResidual:
        """Return the residual once some groups are listed."""
        if len(rows) == 0:
            return self
        gone = upload_columns(self.backend, **dict(zip(self.axes, taken.codes, strict=True)))
        missing = f"f LEFT JOIN {gone} g ON {self._same('g')} WHERE g.{self.axes[0]} IS NULL"
        columns = ", ".join(f"f.{name}" for name in (*self.axes, *self.masses))
        parts, used = [f"SELECT {columns} FROM {self.table} {missing}"], [self.table, gone]
        on = left.take(np.flatnonzero(left.trips > 0))
        if len(on.trips):
            masses = {name: exact_masses(on, name) for name in self.masses}
            staying = upload_columns(self.backend, **dict(zip(self.axes, on.codes, strict=True)), **masses)
            parts.append(f"SELECT {columns} FROM {staying} f")
            used.append(staying)
        contributors = ", ".join(f"f.{name}" for name in (*self.axes, "contributor", "trips"))
        contributions: dict[str, Relation] = {
            name: Subquery(f"SELECT {contributors} FROM {each} {missing}", each, gone)
            for name, each in self.contributions.items()
        }
        if reassigned is not None and len(on.trips):
            leaving = self._leaving(taken, left, self.contributions[reassigned])
            others = f"SELECT {contributors} FROM {self.contributions[reassigned]} {missing}"
            contributions[reassigned] = Subquery(
                f"{others} UNION ALL SELECT {contributors} FROM {leaving} f",
                self.contributions[reassigned],
                gone,
                leaving,
            )
        return replace(self, table=Subquery(" UNION ALL ".join(parts), *used), contributions=contributions)

    def _leaving(self, taken: NodeFlows, left: NodeFlows, contributions: Relation) -> StoredTable:
        """Return the contributors of the trips that stay in the residual of listed groups."""
        some = np.flatnonzero(left.trips > 0)
        codes = dict(zip(self.axes, taken.take(some).codes, strict=True))
        wanted = upload_columns(self.backend, **codes, number=np.arange(len(some)))
        found = self.backend.execute(
            f"SELECT w.number, f.contributor, {sum_bigint('f.trips')} AS trips FROM {contributions} f JOIN {wanted} w "
            f"ON {self._same('w')} GROUP BY w.number, f.contributor"
        )
        ids = found.column("contributor").combine_chunks()
        number, contributor = int_column(found, "number").astype(np.int32), contributor_numbers(ids)
        order = np.lexsort((contributor, number))
        own = Contributions(
            number[order], contributor[order], len(order) + 1, {"trips": int_column(found, "trips")[order]}
        )
        trips = choose_leaving_trips(own, taken.trips[some], left.trips[some])
        leaves = np.flatnonzero(trips)
        return upload_columns(
            self.backend,
            **{axis: code[own.flow[leaves]] for axis, code in codes.items()},
            contributor=ids.take(pa.array(order[leaves])),
            trips=trips[leaves],
        )

    def _same(self, other: str) -> str:
        return " AND ".join(f"{other}.{axis} = f.{axis}" for axis in self.axes)

    def totals(self) -> Totals:
        """Return the total of the residual."""
        return query_totals(self.backend, f"{self.table} f", self.masses)

    def is_small(self, groups: int, contributions: int) -> bool:
        """Return whether at most so many groups and contributions fit in memory easily."""
        return groups // FLOWS_PER_CONTRIBUTION + contributions <= self.backend.fetchable

    def pairs_in_memory(self, pairs: NodeFlows) -> MemoryResidual:
        """Return the residual of a whole matrix in memory, given its pairs, where the row of each can be kept."""
        every = np.arange(len(pairs.trips), dtype=np.int32)
        return replace(self._fetched(pairs), pair=every, group=every, pairs=pairs)

    def _fetched(self, groups: NodeFlows | None = None) -> MemoryResidual:
        groups = self.groups() if groups is None else groups
        contributions = {name: self._fetch_contributions(groups, each) for name, each in self.contributions.items()}
        nowhere = np.empty(0, dtype=np.int32)
        return MemoryResidual(self.nodes, groups, contributions, nowhere, nowhere)

    def groups(self, relation: str | None = None) -> NodeFlows:
        """Return all groups, or those of a relation ``f``."""
        columns = ", ".join(f"f.{name}" for name in (*self.axes, *self.masses))
        found = self.backend.execute(f"SELECT {columns} FROM {relation or f'{self.table} f'}")
        column = {name: int_column(found, name) for name in (*self.axes, *self.masses)}
        (keys,) = codes_to_keys(self.nodes, [column[axis] for axis in self.axes])
        order, _ = sort_keys(keys, key_space(self.nodes))
        column = {name: values[order] for name, values in column.items()}
        codes = tuple(column[axis] for axis in self.axes)
        return NodeFlows(codes, column["pairs"], column["trips"], column.get("weight"), {}, self.scale or 1)

    def _count(self, groups: NodeFlows, contributions: Relation) -> Ints:
        """Return the number of contributors of each group."""
        contributors = np.zeros(len(groups.trips), dtype=np.int64)
        wanted = upload_columns(
            self.backend, **dict(zip(self.axes, groups.codes, strict=True)), number=np.arange(len(contributors))
        )
        same = self._same("w")
        found = self.backend.execute(
            "SELECT number, COUNT(*) AS contributors FROM (SELECT DISTINCT w.number, f.contributor "
            f"FROM {contributions} f JOIN {wanted} w ON {same}) s GROUP BY number"
        )
        contributors[int_column(found, "number")] = int_column(found, "contributors")
        return contributors

    def _fetch_contributions(self, groups: NodeFlows, contributions: Relation) -> Contributions:
        columns = ", ".join(f"f.{name}" for name in (*self.axes, "contributor", "trips"))
        found = self.backend.execute(f"SELECT {columns} FROM {contributions} f")
        keys, own = codes_to_keys(self.nodes, groups.codes, [int_column(found, axis) for axis in self.axes])
        flow = np.searchsorted(keys, own).astype(np.int32)
        contributor = contributor_numbers(found.column("contributor").combine_chunks())
        return Contributions(
            flow, contributor, max(int(contributor.max(initial=0)) + 1, 1), {"trips": int_column(found, "trips")}
        )


def sql_residual(
    backend: Backend,
    keys: Sequence[Ints],
    attributes: Sequence[int],
    pairs: Relation,
    contributions: Mapping[str, Relation],
    scale: int | None,
) -> SqlResidual:
    """Return the residual that holds all pairs of a matrix, by the numbers of their leaves.

    * ``keys``: for origins and destinations, the keys of the leaves in the tables.
    * ``attributes``: for each attribute, the number of its values; the tables already have their codes.
    """
    maps = [upload_columns(backend, place=key, code=np.arange(len(key))) for key in keys]
    joined = "f " + " ".join(
        f"JOIN {map_} {axis[0]} ON f.{axis} = {axis[0]}.place" for axis, map_ in zip(AXES, maps, strict=True)
    )
    ends = ", ".join(
        [f"{axis[0]}.code AS {axis}" for axis in AXES] + [f"f.{attribute_column(at)}" for at in range(len(attributes))]
    )

    def numbered(relation: Relation, *columns: str) -> Subquery:
        more = "".join(f", f.{name}" for name in columns)
        return Subquery(f"SELECT {ends}{more} FROM {relation} {joined}", relation, *maps)

    masses = ("pairs", "trips") if scale is None else ("pairs", "trips", "weight")
    return SqlResidual(
        backend,
        (*(len(key) for key in keys), *attributes),
        numbered(pairs, *masses),
        {name: numbered(each, "contributor", *masses[1:]) for name, each in contributions.items()},
        scale,
    )
