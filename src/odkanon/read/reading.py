"""How to read a table, whatever it holds and whichever engine it goes to: one set of options for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odkanon.errors import InputError
from odkanon.model.od import ODMatrix
from odkanon.read.area import Area
from odkanon.read.odtable import od_of_table
from odkanon.read.tables.columns import Kind, kind_of, resolve
from odkanon.read.tables.open import Named, Table
from odkanon.read.trips import Trips, build_od, trips_of_table
from odkanon.zoning.hierarchy import Hierarchy


@dataclass(frozen=True)
class Reading:
    """All that can be said about how to read a table.

    Attributes
    ----------
    kind : {"trips", "od"}, optional
        What the table holds; told by its columns if not given.
    columns, hierarchy, resolution, within, where, crs
        As for `odkanon.read_trips`, `odkanon.build_od` and `odkanon.read_od`.
    """

    kind: Kind | None = None
    columns: Mapping[str, str] | None = None
    hierarchy: Hierarchy | None = None
    resolution: int | None = None
    within: Area | None = None
    where: str | None = None
    crs: str | None = None

    @property
    def finest(self) -> int:
        """The H3 resolution of trips."""
        return 10 if self.resolution is None else self.resolution

    def kind_of(self, table: Named) -> Kind:
        """Tell what a table holds; raise if it does not go with the rest."""
        kind = self.kind or ("od" if self.hierarchy is not None else kind_of(table, resolve(table, self.columns)))
        if kind == "od" and self.hierarchy is not None and self.within is not None:
            raise InputError("--within takes H3 cells; with --hierarchy, use --filter instead")
        if kind == "od" and self.crs is not None:
            raise InputError("--crs is for coordinates; the ends of these trips are zones")
        return kind

    def trips(self, table: Table, attributes: Sequence[str] | None) -> Trips:
        """Read trips into memory, with these attributes or (None) all that are known."""
        return trips_of_table(table, columns=self.columns, attributes=attributes, where=self.where, crs=self.crs)

    def matrix(self, table: Table) -> ODMatrix:
        """Read trips or records between zones, whichever a table holds, into memory."""
        if self.kind_of(table) == "trips":
            return build_od(self.trips(table, []), resolution=self.finest, within=self.within)
        return od_of_table(
            table,
            columns=self.columns,
            hierarchy=self.hierarchy,
            resolution=self.resolution,
            within=self.within,
            where=self.where,
        )
