"""The options that say how to read an input: one list, for every command that reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.errors import InputError

if TYPE_CHECKING:
    from odkanon.read.input_spec import InputSpec

_PANEL = "How to read INPUT"


class ReadAs(StrEnum):
    """How to read a table that could be read in two ways."""

    trips = "trips"
    od = "od"


def _option(name: str, metavar: str | None, text: str) -> Any:
    return typer.Option(name, metavar=metavar, rich_help_panel=_PANEL, help=text, show_default=False)


Column = Annotated[
    list[str], _option("--column", "OURS=THEIRS", "Which column is which, such as person=ID. Repeatable.")
]

OPTIONS: dict[str, tuple[Any, Any]] = {
    "resolution": (
        Annotated[
            int | None,
            _option(
                "--resolution",
                None,
                "H3 resolution of the finest zones, 0 to 15. [default: 10 for trips; an OD table's own]",
            ),
        ],
        None,
    ),
    "column": (Column, []),
    "where": (
        Annotated[
            list[str],
            _option(
                "--filter",
                "EXPR",
                "Keep matching rows only, such as 'day_type == \"weekday\"' or 'hour >= 7'. Repeatable: all must hold.",
            ),
        ],
        [],
    ),
    "within": (
        Annotated[
            str | None,
            _option(
                "--within",
                "FILE|CELLS|NAME",
                "Keep trips with both ends inside these H3 cells (separated by commas) or this GeoJSON outline; "
                "paris-centre are the five cells of the paper.",
            ),
        ],
        None,
    ),
    "since": (
        Annotated[str | None, _option("--since", "DAY", "Keep trips that start on this day or later: 2024-02-01.")],
        None,
    ),
    "until": (
        Annotated[
            str | None,
            _option("--until", "DAY", "Keep trips that start before this day. The period is published with a release."),
        ],
        None,
    ),
    "hierarchy": (
        Annotated[
            Path | None,
            _option("--hierarchy", "FILE", "Table of nested zones (leaf, parent, grandparent, ...) instead of H3."),
        ],
        None,
    ),
    "outlines": (
        Annotated[
            Path | None,
            _option("--zones-geojson", "FILE", "With --hierarchy: polygons of the zones, for maps and exports."),
        ],
        None,
    ),
    "crs": (
        Annotated[
            str | None,
            _option(
                "--crs",
                "EPSG:CODE",
                "What the coordinates are if not degrees, such as EPSG:32719: x in start_lon and end_lon, y in "
                "start_lat and end_lat.",
            ),
        ],
        None,
    ),
    "read_as": (
        Annotated[ReadAs | None, _option("--read-as", None, "Settle what INPUT is where its columns allow both.")],
        None,
    ),
    "encoding": (
        Annotated[
            str | None,
            _option("--encoding", "NAME", "Of a text file that is not UTF-8, such as latin-1. [default: as it looks]"),
        ],
        None,
    ),
    "delimiter": (
        Annotated[
            str | None, _option("--delimiter", "CHAR", "Between columns of a text file. [default: told by the header]")
        ],
        None,
    ),
    "timezone": (
        Annotated[
            str | None,
            _option(
                "--timezone",
                "ZONE",
                "On which clock hours are, such as Europe/Paris, where times have an offset. [default: as written]",
            ),
        ],
        None,
    ),
    "decimal": (
        Annotated[
            str | None,
            _option("--decimal", "CHAR", "Before the fraction of numbers: , or . [default: told by coordinates]"),
        ],
        None,
    ),
    "time_format": (
        Annotated[
            str | None,
            _option(
                "--time-format", "FORMAT", "How times are written, such as '%d/%m/%Y %H:%M'. [default: as they look]"
            ),
        ],
        None,
    ),
}
"""By name of the parameter: how typer is to take it, and the default."""


@dataclass(frozen=True)
class InputOptions:
    """What the options say about reading; call it with what to read."""

    said: Mapping[str, Any]

    def __call__(self, source: Any, **more: Any) -> InputSpec:
        """Return the description of an input, with what the command itself has to say about it."""
        from odkanon.read.input_spec import InputSpec

        if isinstance(source, list) and len(source) == 1:
            source = source[0]
        said = dict(self.said)
        read_as: ReadAs | None = said.pop("read_as")
        said["columns"] = column_mapping(said.pop("column"))
        return InputSpec(source, kind=None if read_as is None else read_as.value, **said | more)


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of reading, in place of its parameter ``how``."""

    @wraps(command)
    def wrapped(**given: Any) -> None:
        said = {name: given.pop(name) for name in OPTIONS}
        command(**given, how=InputOptions(said))

    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in OPTIONS.items()
    ]
    return with_parameters(wrapped, command, add=options, drop="how")


def with_parameters(
    wrapped: Callable[..., None],
    command: Callable[..., None],
    *,
    add: Sequence[Parameter],
    drop: str | None = None,
    first: bool = False,
) -> Callable[..., None]:
    """Return a wrapper with the signature, which typer looks at, of a command with some parameters more or less."""
    own = [each for each in signature(command, eval_str=True).parameters.values() if each.name != drop]
    both = (*add, *own) if first else (*own, *add)
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in both]
    wrapped.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def column_mapping(column: Sequence[str]) -> dict[str, str]:
    """Return ``--column ours=theirs`` options as ``{ours: theirs}``."""
    mapping: dict[str, str] = {}
    for text in column:
        ours, equals, theirs = (part.strip() for part in text.partition("="))
        if not equals or not ours or not theirs:
            raise InputError(f"--column takes OURS=THEIRS, such as person=ID; not {text!r}")
        if ours in mapping:
            raise InputError(f"--column names two columns for {ours}; name one")
        mapping[ours] = theirs
    return mapping
