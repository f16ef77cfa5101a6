"""A cascade over OD pairs in a database: what is left at each rung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints, sort_keys
from odkanon.engine.residual import Groups, MemoryResidual, Residual, deal, keys_of
from odkanon.engine.sql.backend import Backend, Relation, Selected, Stored, lend, store
from odkanon.engine.sql.sql_engine import LIGHTER, add_up, axis_columns, ints, totals
from odkanon.model.flows import Contributions, Totals
from odkanon.model.od import AXES
from odkanon.read.attributes.spec import attribute_column
from odkanon.read.person_ids import contributor_numbers


@dataclass(frozen=True, eq=False)
class SqlResidual:
    """What is left, in a database.

    Attributes
    ----------
    nodes : tuple of int
        For each axis, how many nodes there are.
    table : Relation
        The numbers of the nodes, ``pairs, trips`` and, where there is one, ``weight``.
    contributions : mapping of str to Relation
        The numbers of the nodes, ``contributor`` and ``trips``, possibly in several rows, for each measure that counts
        contributors.
    scale : int or None
        Units of weight in one; None where there is no weight.
    """

    backend: Backend
    nodes: tuple[int, ...]
    table: Relation
    contributions: Mapping[str, Relation]
    scale: int | None

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns of the table that number the nodes of each axis."""
        return axis_columns(len(self.nodes) - len(AXES))

    @property
    def masses(self) -> tuple[str, ...]:
        """Columns of the table that add up."""
        return ("pairs", "trips") if self.scale is None else ("pairs", "trips", "weight")

    def lift(self, axis: int, parent: Ints, nodes: int) -> Residual:
        """Return the rest grouped by the parents on one axis; in memory, if it fits there easily."""
        name = self.axes[axis]
        parents = lend(self.backend, code=np.arange(len(parent)), parent=parent)
        ends = ", ".join(f"p.parent AS {name}" if at == axis else f"f.{other}" for at, other in enumerate(self.axes))
        groups = ", ".join("p.parent" if at == axis else f"f.{other}" for at, other in enumerate(self.axes))
        joined = f"f JOIN {parents} p ON f.{name} = p.code"
        sums = ", ".join(f"{add_up(f'f.{mass}')} AS {mass}" for mass in self.masses)
        lifted = SqlResidual(
            self.backend,
            tuple(nodes if at == axis else count for at, count in enumerate(self.nodes)),
            store(self.backend, f"SELECT {ends}, {sums} FROM {self.table} {joined} GROUP BY {groups}"),
            {
                measure: store(
                    self.backend,
                    f"SELECT {ends}, f.contributor, {add_up('f.trips')} AS trips FROM {contributions} {joined} "
                    f"GROUP BY {groups}, f.contributor",
                )
                for measure, contributions in self.contributions.items()
            },
            self.scale,
        )
        return lifted._fetched() if lifted._is_small else lifted

    def at_least(self, trips: int) -> Groups:
        """Return the groups with at least so many trips."""
        groups = self.groups(f"{self.table} f WHERE f.trips >= {trips}")
        return replace(
            groups, contributors={name: self._count(groups, each) for name, each in self.contributions.items()}
        )

    def without(self, taken: Groups, rows: Ints, left: Groups, reassigned: str | None) -> SqlResidual:
        """Return what is left when groups go."""
        if len(rows) == 0:
            return self
        gone = lend(self.backend, **dict(zip(self.axes, taken.codes, strict=True)))
        missing = f"f LEFT JOIN {gone} g ON {self._same('g')} WHERE g.{self.axes[0]} IS NULL"
        columns = ", ".join(f"f.{name}" for name in (*self.axes, *self.masses))
        text, used = f"SELECT {columns} FROM {self.table} {missing}", [self.table, gone]
        on = left.take(np.flatnonzero(left.trips > 0))
        if len(on.trips):
            masses = {name: getattr(on, name) for name in self.masses}
            goes_on = lend(self.backend, **dict(zip(self.axes, on.codes, strict=True)), **masses)
            text, used = f"{text} UNION ALL SELECT {columns} FROM {goes_on} f", [*used, goes_on]
        contributors = ", ".join(f"f.{name}" for name in (*self.axes, "contributor", "trips"))
        contributions: dict[str, Relation] = {
            name: Selected(f"SELECT {contributors} FROM {each} {missing}", each, gone)
            for name, each in self.contributions.items()
        }
        if reassigned is not None and len(on.trips):
            leaving = self._leaving(taken, left, self.contributions[reassigned])
            others = f"SELECT {contributors} FROM {self.contributions[reassigned]} {missing}"
            contributions[reassigned] = Selected(
                f"{others} UNION ALL SELECT {contributors} FROM {leaving} f",
                self.contributions[reassigned],
                gone,
                leaving,
            )
        return replace(self, table=Selected(text, *used), contributions=contributions)

    def _leaving(self, taken: Groups, left: Groups, contributions: Relation) -> Stored:
        """Return whose trips go on, of groups of which some do."""
        some = np.flatnonzero(left.trips > 0)
        codes = dict(zip(self.axes, taken.take(some).codes, strict=True))
        wanted = lend(self.backend, **codes, number=np.arange(len(some)))
        found = self.backend.execute(
            f"SELECT w.number, f.contributor, {add_up('f.trips')} AS trips FROM {contributions} f JOIN {wanted} w "
            f"ON {self._same('w')} GROUP BY w.number, f.contributor"
        )
        ids = found.column("contributor").combine_chunks()
        number, contributor = ints(found, "number").astype(np.int32), contributor_numbers(ids)
        order = np.lexsort((contributor, number))
        own = Contributions(number[order], contributor[order], len(order) + 1, {"trips": ints(found, "trips")[order]})
        gone = deal(own, taken.trips[some], left.trips[some])
        leaves = np.flatnonzero(gone)
        return lend(
            self.backend,
            **{axis: code[own.flow[leaves]] for axis, code in codes.items()},
            contributor=ids.take(pa.array(order[leaves])),
            trips=gone[leaves],
        )

    def _same(self, other: str) -> str:
        return " AND ".join(f"{other}.{axis} = f.{axis}" for axis in self.axes)

    def totals(self) -> Totals:
        """Return what is left in all."""
        return totals(self.backend, f"{self.table} f", self.masses)

    @property
    def _is_small(self) -> bool:
        contributions = sum(each.rows for each in self.contributions.values() if isinstance(each, Stored))
        assert isinstance(self.table, Stored)
        return self.table.rows // LIGHTER + contributions <= self.backend.fetchable

    def _fetched(self) -> MemoryResidual:
        groups = self.groups()
        contributions = {name: self._fetch_contributions(groups, each) for name, each in self.contributions.items()}
        nowhere = np.empty(0, dtype=np.int32)
        return MemoryResidual(self.nodes, groups, contributions, nowhere, nowhere)

    def groups(self, relation: str | None = None) -> Groups:
        """Return all groups, or those of a selection ``f`` from the table."""
        columns = ", ".join(f"f.{name}" for name in (*self.axes, *self.masses))
        found = self.backend.execute(f"SELECT {columns} FROM {relation or f'{self.table} f'}")
        column = {name: ints(found, name) for name in (*self.axes, *self.masses)}
        keys = keys_of([column[axis] for axis in self.axes], self.nodes)
        order, _ = sort_keys(keys, int(np.prod(self.nodes, dtype=object)))
        column = {name: values[order] for name, values in column.items()}
        codes = tuple(column[axis] for axis in self.axes)
        return Groups(codes, column["pairs"], column["trips"], column.get("weight"), {}, self.scale or 1)

    def _count(self, groups: Groups, contributions: Relation) -> Ints:
        """Count the contributors of some groups."""
        contributors = np.zeros(len(groups.trips), dtype=np.int64)
        wanted = lend(
            self.backend, **dict(zip(self.axes, groups.codes, strict=True)), number=np.arange(len(contributors))
        )
        same = self._same("w")
        found = self.backend.execute(
            "SELECT number, COUNT(*) AS contributors FROM (SELECT DISTINCT w.number, f.contributor "
            f"FROM {contributions} f JOIN {wanted} w ON {same}) s GROUP BY number"
        )
        contributors[ints(found, "number")] = ints(found, "contributors")
        return contributors

    def _fetch_contributions(self, groups: Groups, contributions: Relation) -> Contributions:
        columns = ", ".join(f"f.{name}" for name in (*self.axes, "contributor", "trips"))
        found = self.backend.execute(f"SELECT {columns} FROM {contributions} f")
        keys = keys_of([ints(found, axis) for axis in self.axes], self.nodes)
        flow = np.searchsorted(keys_of(groups.codes, self.nodes), keys).astype(np.int32)
        contributor = contributor_numbers(found.column("contributor").combine_chunks())
        return Contributions(
            flow, contributor, max(int(contributor.max(initial=0)) + 1, 1), {"trips": ints(found, "trips")}
        )


def sql_residual(
    backend: Backend,
    keys: Sequence[Ints],
    attributes: Sequence[int],
    pairs: Relation,
    contributions: Mapping[str, Relation],
    scale: int | None,
) -> SqlResidual:
    """Return all pairs of a matrix, with the numbers of their leaves.

    Parameters
    ----------
    keys : sequence of array of int
        What the tables call the leaves of both places.
    attributes : sequence of int
        How many values the axes besides these have; the tables number them already.
    """
    maps = [lend(backend, place=key, code=np.arange(len(key))) for key in keys]
    joined = "f " + " ".join(
        f"JOIN {map_} {axis[0]} ON f.{axis} = {axis[0]}.place" for axis, map_ in zip(AXES, maps, strict=True)
    )
    ends = ", ".join(
        [f"{axis[0]}.code AS {axis}" for axis in AXES] + [f"f.{attribute_column(at)}" for at in range(len(attributes))]
    )

    def numbered(relation: Relation, *columns: str) -> Selected:
        more = "".join(f", f.{name}" for name in columns)
        return Selected(f"SELECT {ends}{more} FROM {relation} {joined}", relation, *maps)

    masses = ("pairs", "trips") if scale is None else ("pairs", "trips", "weight")
    return SqlResidual(
        backend,
        (*(len(key) for key in keys), *attributes),
        numbered(pairs, *masses),
        {name: numbered(each, "contributor", *masses[1:]) for name, each in contributions.items()},
        scale,
    )
