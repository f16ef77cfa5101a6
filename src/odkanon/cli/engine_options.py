"""The input, the engine and other options that several commands share."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from odkanon.errors import InvalidValueError


class EngineName(StrEnum):
    """The engine that computes a release."""

    memory = "memory"
    duckdb = "duckdb"
    spark = "spark"


Input = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="Trips (person, start_time, end_time, start_lat, start_lon, end_lat, end_lon, weight, ...) or an OD table "
        "(origin, destination, trips, weight), as CSV, Parquet, Arrow, JSON Lines or a spreadsheet, compressed or not. "
        "Several files with the same columns; - is standard input.",
        show_default=False,
    ),
]


def plain(value: Any) -> Any:
    """Return the value of an option as JSON has it."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if isinstance(value, bool | int | float | None) else str(value)


NOT_REPEATED = ("config", "as_json", "quiet", "help_all", "force", "metrics")
"""Options that do not affect the result."""


def command_account(context: typer.Context, output: Path) -> dict[str, Any]:
    """Return the command of this run, for the recipe.

    ``options`` has the options that were given, on the command line or in ``odkanon.toml``; ``folder`` the working
    directory relative to the recipe, so that both can be moved together; ``files`` the digests of the files that
    options other than the input name.
    """
    given = {
        name: plain(value)
        for name, value in context.params.items()
        if name not in NOT_REPEATED
        and (source := context.get_parameter_source(name)) is not None
        and source.name != "DEFAULT"
    }
    named = [text for name, value in given.items() if name not in ("source", "output") for text in _texts(value)]
    return {
        "name": context.info_name,
        "options": given,
        "folder": _relative(Path.cwd(), output.absolute().parent),
        "files": {text: digest for text in named if (digest := _digest(text)) is not None},
    }


def _texts(value: Any) -> list[str]:
    """Return the parts of an option's value that could be paths, as after the colon of ``purpose:LOOKUP.csv``."""
    values = value if isinstance(value, list) else [value]
    return [part for each in values if isinstance(each, str) for part in (each, each.partition(":")[2]) if part]


def _digest(text: str) -> str | None:
    from odkanon.release_format.recipe import public_digest

    try:
        return public_digest(Path(text))
    except (OSError, ValueError):  # not a valid path
        return None


def _relative(folder: Path, start: Path) -> str:
    try:
        return Path(os.path.relpath(folder, start)).as_posix()
    except ValueError:  # on another drive
        return str(folder)


def parse_age_bands(text: str | None) -> tuple[int, ...]:
    """Parse ``--age-bands 18,40,65``."""
    from odkanon.attributes.spec import AGE_BANDS

    if text is None:
        return AGE_BANDS
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InvalidValueError.expected("--age-bands", "the ages at which bands begin, such as 18,40,65", text)
    return tuple(int(part) for part in parts)
