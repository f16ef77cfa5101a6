"""Options that several commands share, and what the words in them mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.errors import InputError

if TYPE_CHECKING:
    pass


class EngineName(StrEnum):
    """Where to work on the data."""

    memory = "memory"
    duckdb = "duckdb"
    spark = "spark"


Input = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="Trips (person, start_time, end_time, start_lat, start_lon, end_lat, end_lon, weight, ...) or an OD table "
        "(origin, destination, trips, weight). CSV, Parquet, Arrow, JSON Lines or a spreadsheet, zipped or not; "
        "several files with the same columns; - for standard input.",
        show_default=False,
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


def plain(value: Any) -> Any:
    """Return an option as JSON has it."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if isinstance(value, bool | int | float | None) else str(value)


def command_account(context: typer.Context) -> dict[str, Any]:
    """Return the command that runs, and the options that were given to it."""
    given = {
        name: plain(value)
        for name, value in context.params.items()
        if (source := context.get_parameter_source(name)) is not None and source.name != "DEFAULT"
    }
    return {"name": context.info_name, "options": given}


def parse_age_bands(text: str | None) -> tuple[int, ...]:
    """Read ``--age-bands 18,40,65``."""
    from odkanon.read.axes import AGE_BANDS

    if text is None:
        return AGE_BANDS
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"--age-bands takes the ages at which bands begin, such as 18,40,65; not {text!r}")
    return tuple(int(part) for part in parts)
