"""Options that several commands share, and what the words in them mean."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odkanon.errors import InputError
from odkanon.model.measures import TARGETS

if TYPE_CHECKING:
    from odkanon.engine.protocols import Matrix
    from odkanon.model.rule import Rule


Protect = StrEnum("Protect", {target: target for target in TARGETS})  # type: ignore[misc]
"""What a rule protects."""


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


def column_mapping(column: Sequence[str]) -> dict[str, str]:
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
    from odkanon.together.dimensions import AGE_BANDS

    if text is None:
        return AGE_BANDS
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"--age-bands takes the ages at which bands begin, such as 18,40,65; not {text!r}")
    return tuple(int(part) for part in parts)


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
    from odkanon.model.rule import Rule

    if min_trips is None and min_weight is None and min_persons is None:
        return Rule.protect(*(target.value for target in protect or [Protect("participants")]), k=k, of=od.summary)
    if protect:
        raise InputError("give either --protect with --k, or --min-trips, --min-weight and --min-persons; not both")
    return Rule(trips=min_trips, weight=min_weight, persons=min_persons)
