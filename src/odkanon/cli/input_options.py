"""The options for reading an input, shared by all commands that read one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.cli.common_options import OptionGroup, Options
from odkanon.errors import InputError, InvalidValueError

if TYPE_CHECKING:
    from odkanon.read.input_spec import InputSpec

_ZONES, _TIMES, _FILES = "Input: zones and coordinates", "Input: period and times", "Input: file formats"


class ReadAs(StrEnum):
    """The content of a table whose columns allow both."""

    trips = "trips"
    od = "od"


def _option(name: str, metavar: str | None, text: str, panel: str | None = None) -> Any:
    return typer.Option(name, metavar=metavar, rich_help_panel=panel, help=text, show_default=False)


Column = Annotated[
    list[str], _option("--column", "OURS=THEIRS", "Name a column that is not recognised: person=ID. Repeatable.")
]

OPTIONS: Options = {
    "resolution": (
        Annotated[
            int | None,
            _option(
                "--resolution",
                "0..15",
                "H3 resolution of the finest zones. [default: 10 for trips; that of the cells in an OD table]",
            ),
        ],
        None,
    ),
    "column": (Column, []),
    "where": (
        Annotated[
            list[str],
            _option(
                "--where",
                "EXPR",
                "Read matching rows, such as 'day_type == \"weekday\"' or 'hour >= 7'. Repeatable: all must match.",
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
                "Read trips with both ends in this area: a GeoJSON outline, H3 cells separated by commas, or "
                "paris-centre, the five cells of the paper.",
            ),
        ],
        None,
    ),
    "hierarchy": (
        Annotated[
            Path | None,
            _option("--hierarchy", "FILE", "Use your zones instead of H3: a table leaf, parent, grandparent, ..."),
        ],
        None,
    ),
    "outlines": (
        Annotated[
            Path | None,
            _option("--boundaries", "FILE", "With --hierarchy: polygons of the zones, for maps and exports.", _ZONES),
        ],
        None,
    ),
    "crs": (
        Annotated[
            str | None,
            _option(
                "--crs",
                "EPSG:CODE",
                "The reference system of coordinates that are not degrees, such as EPSG:32719: x in start_lon and "
                "end_lon, y in start_lat and end_lat.",
                _ZONES,
            ),
        ],
        None,
    ),
    "since": (
        Annotated[
            str | None, _option("--since", "DAY", "Read trips that start on this day or later: 2024-02-01.", _TIMES)
        ],
        None,
    ),
    "until": (
        Annotated[
            str | None,
            _option(
                "--until",
                "DAY",
                "Read trips that start before this day. The period is published with the release.",
                _TIMES,
            ),
        ],
        None,
    ),
    "timezone": (
        Annotated[
            str | None,
            _option(
                "--timezone",
                "ZONE",
                "The time zone of hours, such as Europe/Paris, if times have an offset. [default: as written]",
                _TIMES,
            ),
        ],
        None,
    ),
    "time_format": (
        Annotated[
            str | None,
            _option("--time-format", "FORMAT", "The format of times: '%d/%m/%Y %H:%M'. [default: detected]", _TIMES),
        ],
        None,
    ),
    "read_as": (
        Annotated[
            ReadAs | None, _option("--read-as", None, "The content of a table whose columns allow both.", _FILES)
        ],
        None,
    ),
    "encoding": (
        Annotated[
            str | None,
            _option("--encoding", "NAME", "The encoding of a text file, such as latin-1. [default: detected]", _FILES),
        ],
        None,
    ),
    "delimiter": (
        Annotated[
            str | None,
            _option("--delimiter", "CHAR", "The character between columns. [default: detected in the header]", _FILES),
        ],
        None,
    ),
    "decimal": (
        Annotated[
            str | None, _option("--decimal", "CHAR", "The decimal mark, . or , [default: detected in numbers]", _FILES)
        ],
        None,
    ),
}


@dataclass(frozen=True)
class InputOptions(OptionGroup):
    """How to read an input; call it with the input."""

    OPTIONS = OPTIONS

    def __call__(self, source: Any, **more: Any) -> InputSpec:
        """Return the description of an input, with what only the command knows about it."""
        from odkanon.read.input_spec import InputSpec

        if isinstance(source, list) and len(source) == 1:
            source = source[0]
        values = dict(self.values)
        read_as: ReadAs | None = values.pop("read_as")
        values["columns"] = column_mapping(values.pop("column"))
        return InputSpec(source, kind=None if read_as is None else read_as.value, **values | more)


def column_mapping(column: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--column`` as ``{ours: theirs}``."""
    mapping: dict[str, str] = {}
    for text in column:
        ours, equals, theirs = (part.strip() for part in text.partition("="))
        if not equals or not ours or not theirs:
            raise InvalidValueError.expected("--column", "OURS=THEIRS, such as person=ID", text)
        if ours in mapping:
            raise InputError(f"--column names two columns for {ours}; name one")
        mapping[ours] = theirs
    return mapping
