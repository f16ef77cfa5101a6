"""Options that several commands share, and how they become objects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odkanon.errors import InputError

if TYPE_CHECKING:
    from odkanon.area import Area
    from odkanon.engine import Matrix
    from odkanon.hierarchy import Hierarchy
    from odkanon.io.tables import Table
    from odkanon.od import ODMatrix
    from odkanon.rule import Rule
    from odkanon.trips import Trips


class Protect(StrEnum):
    """What a rule protects."""

    participants = "participants"
    population = "population"
    persons = "persons"


class EngineName(StrEnum):
    """Where to work on the data."""

    memory = "memory"
    duckdb = "duckdb"
    spark = "spark"


class ReadAs(StrEnum):
    """How to read a table that could be read in two ways."""

    trips = "trips"
    od = "od"


Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="Trips (person, start_time, end_time, start_lat, start_lon, end_lat, end_lon, weight, ...) or an OD table "
        "(origin, destination, trips, weight). CSV, gzipped CSV or Parquet; told apart by the columns.",
        show_default=False,
    ),
]
Column = Annotated[
    list[str],
    typer.Option(
        "--column",
        metavar="OURS=THEIRS",
        rich_help_panel="How to read INPUT",
        help="Which column is which, such as person=ID. Repeatable.",
        show_default=False,
    ),
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="EXPR",
        rich_help_panel="How to read INPUT",
        help="Keep matching rows only, such as 'day_type == \"weekday\"'.",
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        "--within",
        metavar="FILE|CELLS",
        rich_help_panel="How to read INPUT",
        help="Keep trips with both ends inside these H3 cells (separated by commas) or this GeoJSON outline.",
    ),
]
Resolution = Annotated[
    int | None,
    typer.Option(
        "--resolution",
        rich_help_panel="How to read INPUT",
        help="H3 resolution of the finest zones, 0 to 15. [default: 10 for trips; an OD table's own]",
    ),
]
HierarchyFile = Annotated[
    Path | None,
    typer.Option(
        "--hierarchy",
        metavar="FILE",
        rich_help_panel="How to read INPUT",
        help="Table of nested zones (leaf, parent, grandparent, ...) instead of H3.",
    ),
]
ZonesGeojson = Annotated[
    Path | None,
    typer.Option(
        "--zones-geojson",
        metavar="FILE",
        rich_help_panel="How to read INPUT",
        help="With --hierarchy: polygons of the zones, for maps and exports.",
    ),
]
Crs = Annotated[
    str | None,
    typer.Option(
        "--crs",
        metavar="EPSG:CODE",
        rich_help_panel="How to read INPUT",
        help="What the coordinates are if not degrees, such as EPSG:32719: x in start_lon and end_lon, y in start_lat "
        "and end_lat.",
    ),
]
ReadAsOption = Annotated[
    ReadAs | None,
    typer.Option(
        "--read-as", rich_help_panel="How to read INPUT", help="Settle what INPUT is where its columns allow both."
    ),
]
Engine = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        rich_help_panel="Where to compute",
        help="Work in memory, in DuckDB on disk, or on Spark. [default: memory if the input fits, else duckdb]",
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        rich_help_panel="Where to compute",
        help="How much memory to use, such as 8GiB.",
    ),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(
        "--spark-master",
        metavar="URL",
        rich_help_panel="Where to compute",
        help="Such as local[4] or spark://host:7077; implies --engine spark.",
    ),
]


def column_mapping(column: list[str]) -> dict[str, str]:
    """Return ``--column ours=theirs`` options as ``{theirs: ours}``."""
    mapping: dict[str, str] = {}
    for text in column:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours or not theirs:
            raise InputError(f"--column takes OURS=THEIRS, such as person=ID; not {text!r}")
        if theirs in mapping:
            raise InputError(f"--column names {theirs!r} twice")
        mapping[theirs] = ours.strip()
    return mapping


def parse_age_bands(text: str | None) -> tuple[int, ...]:
    """Read ``--age-bands 18,40,65``."""
    from odkanon.segments.dimensions import AGE_BANDS

    if text is None:
        return AGE_BANDS
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"--age-bands takes the ages at which bands begin, such as 18,40,65; not {text!r}")
    return tuple(int(part) for part in parts)


@dataclass(frozen=True)
class Opened:
    """An input that was looked at but not read yet: trips, or a table of records between zones."""

    table: Table
    columns: dict[str, str]
    where: str | None
    area: Area | None
    tree: Hierarchy | None
    holds_trips: bool
    crs: str | None

    def trips(self, attributes: list[str] | None) -> Trips:
        """Read the trips, with these attributes or (None) all that are known."""
        from odkanon.trips import trips_of_table

        return trips_of_table(self.table, columns=self.columns, attributes=attributes, where=self.where, crs=self.crs)

    def matrix(self, resolution: int | None) -> ODMatrix:
        """Read it as a matrix."""
        from odkanon.odtable import od_of_table
        from odkanon.trips import build_od

        if self.holds_trips:
            return build_od(self.trips([]), resolution=10 if resolution is None else resolution, within=self.area)
        return od_of_table(
            self.table,
            columns=self.columns,
            hierarchy=self.tree,
            resolution=resolution,
            within=self.area,
            where=self.where,
        )


def open_input(
    source: Path,
    *,
    column: list[str],
    where: str | None = None,
    within: str | None = None,
    hierarchy: Path | None = None,
    zones_geojson: Path | None = None,
    crs: str | None = None,
    read_as: ReadAs | None = None,
) -> Opened:
    """Open trips or an OD table, whichever it is."""
    from odkanon.area import read_area
    from odkanon.io.columns import kind_of, resolve
    from odkanon.io.formats import open_trips

    tree = read_tree(hierarchy, zones_geojson)
    table = open_trips(source)
    columns = column_mapping(column)
    area = None if within is None else read_area(within)
    kind = read_as or ("od" if tree is not None else kind_of(table, resolve(table, columns)))
    if kind != "trips" and tree is not None and area is not None:
        raise InputError("--within takes H3 cells; with --hierarchy, use --filter instead")
    if kind != "trips" and crs is not None:
        raise InputError("--crs is for coordinates; the ends of these trips are zones")
    return Opened(table, columns, where, area, tree, kind == "trips", crs)


def read_matrix(
    source: Path,
    *,
    column: list[str],
    where: str | None = None,
    within: str | None = None,
    resolution: int | None = None,
    hierarchy: Path | None = None,
    zones_geojson: Path | None = None,
    crs: str | None = None,
    read_as: ReadAs | None = None,
) -> ODMatrix:
    """Read trips or an OD table, whichever it is, as a matrix."""
    from odkanon.cells import check_resolution

    if resolution is not None:
        check_resolution(resolution)
    opened = open_input(
        source,
        column=column,
        where=where,
        within=within,
        hierarchy=hierarchy,
        zones_geojson=zones_geojson,
        crs=crs,
        read_as=read_as,
    )
    return opened.matrix(resolution)


def read_tree(hierarchy: Path | None, zones_geojson: Path | None) -> Hierarchy | None:
    """Return the hierarchy that the options ask for; None for H3."""
    from odkanon.lookup import read_hierarchy
    from odkanon.outlines import with_outlines

    if hierarchy is None:
        if zones_geojson is not None:
            raise InputError("--zones-geojson goes with --hierarchy; H3 cells have their own outlines")
        return None
    tree = read_hierarchy(hierarchy)
    return tree if zones_geojson is None else with_outlines(tree, zones_geojson)


def read_anywhere(
    source: Path,
    *,
    engine: EngineName | None,
    memory_limit: str | None,
    spark_master: str | None,
    column: list[str],
    where: str | None,
    within: str | None,
    resolution: int | None,
    hierarchy: Path | None,
    zones_geojson: Path | None,
    crs: str | None,
    read_as: ReadAs | None,
) -> Matrix:
    """Read trips or an OD table as a matrix, in the engine that was asked for or that suits the size."""
    from odkanon.area import read_area
    from odkanon.cells import check_resolution
    from odkanon.engine.choose import choose_engine, load, parse_bytes

    if resolution is not None:
        check_resolution(resolution)
    limit = None if memory_limit is None else parse_bytes(memory_limit)
    if engine is None:
        engine = EngineName.spark if spark_master else EngineName(choose_engine(source, memory_limit=limit))
    if engine == EngineName.memory:
        return read_matrix(
            source,
            column=column,
            where=where,
            within=within,
            resolution=resolution,
            hierarchy=hierarchy,
            zones_geojson=zones_geojson,
            crs=crs,
            read_as=read_as,
        )
    if crs is not None:
        raise InputError(f"--crs works with --engine memory only; convert the coordinates first for {engine.value}")
    return load(
        source,
        engine="spark" if engine == EngineName.spark else "duckdb",
        memory_limit=limit,
        spark_master=spark_master,
        kind=None if read_as is None else "trips" if read_as == ReadAs.trips else "od",
        columns=column_mapping(column),
        hierarchy=read_tree(hierarchy, zones_geojson),
        resolution=resolution,
        within=None if within is None else read_area(within),
        where=where,
    )


def make_rule(
    od: Matrix,
    *,
    k: int,
    protect: list[Protect],
    min_trips: int | None,
    min_weight: float | None,
    min_persons: int | None,
) -> Rule:
    """Return the rule that the options ask for."""
    from odkanon.rule import Rule

    if min_trips is None and min_weight is None and min_persons is None:
        return Rule.protect(*(target.value for target in protect or [Protect.participants]), k=k, of=od.summary)
    if protect:
        raise InputError("give either --protect with --k, or --min-trips, --min-weight and --min-persons; not both")
    return Rule(trips=min_trips, weight=min_weight, persons=min_persons)
