"""From the options of a command to the trips or the matrix that they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odkanon.cli.options import EngineName, ReadAs, column_mapping, plain
from odkanon.errors import InputError

if TYPE_CHECKING:
    from odkanon.engine.protocols import Matrix
    from odkanon.model.od import ODMatrix
    from odkanon.read.reading import Reading
    from odkanon.read.tables.open import Table
    from odkanon.read.trips import Trips
    from odkanon.zoning.hierarchy import Hierarchy


@dataclass(frozen=True)
class InputOptions:
    """What to read, and how, as it was given on the command line."""

    source: Path
    column: Sequence[str] = ()
    where: str | None = None
    within: str | None = None
    resolution: int | None = None
    hierarchy: Path | None = None
    zones_geojson: Path | None = None
    crs: str | None = None
    read_as: ReadAs | None = None

    def account(self) -> dict[str, Any]:
        """Return what was read and how, for the recipe of a release: the options that were given."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: plain(value) for name, value in given.items() if value not in (None, [], ())}

    def reading(self) -> Reading:
        """Return what the options mean, with the files that they name read."""
        from odkanon.read.area import read_area
        from odkanon.read.reading import Reading
        from odkanon.zoning.cells import check_resolution

        if self.resolution is not None:
            check_resolution(self.resolution)
        return Reading(
            kind=None if self.read_as is None else "trips" if self.read_as == ReadAs.trips else "od",
            columns=column_mapping(self.column),
            hierarchy=read_tree(self.hierarchy, self.zones_geojson),
            resolution=self.resolution,
            within=None if self.within is None else read_area(self.within),
            where=self.where,
            crs=self.crs,
        )

    def open(self) -> Opened:
        """Open trips or an OD table, whichever it is."""
        from odkanon.read.tables.layouts import open_trips

        reading = self.reading()
        table = open_trips(self.source)
        return Opened(table, reading, reading.kind_of(table) == "trips")

    def matrix(self) -> ODMatrix:
        """Read trips or an OD table, whichever it is, into memory."""
        return self.open().matrix(self.resolution)

    def matrix_anywhere(
        self, *, engine: EngineName | None, memory_limit: str | None, spark_master: str | None
    ) -> Matrix:
        """Read trips or an OD table in the engine that was asked for or that suits the size."""
        from odkanon.engine.choose import choose_engine, load, parse_bytes

        limit = None if memory_limit is None else parse_bytes(memory_limit)
        if engine is None:
            engine = EngineName.spark if spark_master else EngineName(choose_engine(self.source, memory_limit=limit))
        if engine == EngineName.memory:
            return self.matrix()
        return load(
            self.source,
            self.reading(),
            engine="spark" if engine == EngineName.spark else "duckdb",
            memory_limit=limit,
            spark_master=spark_master,
        )


@dataclass(frozen=True)
class Opened:
    """An input that was looked at but not read yet: trips, or a table of records between zones."""

    table: Table
    reading: Reading
    holds_trips: bool

    def trips(self, attributes: Sequence[str] | None) -> Trips:
        """Read the trips, with these attributes or (None) all that are known."""
        return self.reading.trips(self.table, attributes)

    def matrix(self, resolution: int | None) -> ODMatrix:
        """Read it as a matrix."""
        return replace(self.reading, resolution=resolution).matrix(self.table)


def read_tree(hierarchy: Path | None, zones_geojson: Path | None) -> Hierarchy | None:
    """Return the hierarchy that the options ask for; None for H3."""
    from odkanon.read.lookup import read_hierarchy
    from odkanon.read.outlines import with_outlines

    if hierarchy is None:
        if zones_geojson is not None:
            raise InputError("--zones-geojson goes with --hierarchy; H3 cells have their own outlines")
        return None
    tree = read_hierarchy(hierarchy)
    return tree if zones_geojson is None else with_outlines(tree, zones_geojson)
