"""The options for reading an input, shared by all commands that read one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odkanon.cli.common_options import OptionGroup, describe_options
from odkanon.errors import InputError, InvalidValueError

if TYPE_CHECKING:
    from odkanon.read.input_spec import InputSpec


class ReadAs(StrEnum):
    """The content of a table whose columns allow both."""

    trips = "trips"
    od = "od"


OPTIONS = describe_options(
    """
    --resolution 0..15  H3 resolution of the finest zones. [default: 10 for trips; that of the cells in an OD table]
    --column OURS=THEIRS  Name a column that is not recognised: person=ID. Repeatable.
    --where EXPR  Read matching rows, such as 'day_type == "weekday"' or 'hour >= 7'. Repeatable: all must match.
    --zoning FILE  Use your polygons as zones instead of H3: GeoPackage, Shapefile, GeoJSON, any reference system.
    zone_id: --id PROPERTY  With --zoning: the property with the codes.
    zone_parents: --parent PROPERTY  With --zoning: the property with the codes of larger zones. Repeatable, from fine
        to coarse. [default: neighbours are grouped by their geometry]
    Input: zones and coordinates:
    --within FILE|CELLS|NAME  Read trips with both ends in this area: a GeoJSON outline, H3 cells separated by commas,
        or paris-centre, the five cells of the paper.
    --hierarchy FILE  Use your zones instead of H3, for an OD table: a table leaf, parent, grandparent, ...
    outlines: --boundaries FILE  With --hierarchy: polygons of the zones, for maps and exports.
    --crs EPSG:CODE  The reference system of coordinates that are not degrees, such as EPSG:32719: x in start_lon and
        end_lon, y in start_lat and end_lat.
    Input: tables by one place:
    --place COLUMN  Publish a table by one place instead of two: of this code or cell, or of COLUMN_lat, COLUMN_lon.
        Implies --method cascade.
    --unit NAME  With --place: what is counted, such as residents; a column of that name has the counts. With --method
        noise: who is protected, person or trip. [default: records; person]
    Input: period and times:
    --since DAY  Read trips that start on this day or later: 2024-02-01.
    --until DAY  Read trips that start before this day. The period is published with the release.
    --timezone ZONE  The time zone of hours, such as Europe/Paris, if times have an offset. [default: as written]
    --time-format FORMAT  The format of times: '%d/%m/%Y %H:%M'. [default: detected]
    Input: file formats:
    --read-as  The content of a table whose columns allow both.
    --encoding NAME  The encoding of a text file, such as latin-1. [default: detected]
    --delimiter CHAR  The character between columns. [default: detected in the header]
    --decimal CHAR  The decimal mark, . or , [default: detected in numbers]
    --accept-rejected  Go on if more than half of the rows cannot be used.
    """,
    {
        "resolution": (int | None, None),
        "column": (list[str], []),
        "where": (list[str], []),
        "within": (str | None, None),
        "zoning": (Path | None, None),
        "zone_id": (str | None, None),
        "zone_parents": (list[str], []),
        "hierarchy": (Path | None, None),
        "outlines": (Path | None, None),
        "place": (str | None, None),
        "unit": (str | None, None),
        "crs": (str | None, None),
        "since": (str | None, None),
        "until": (str | None, None),
        "timezone": (str | None, None),
        "time_format": (str | None, None),
        "read_as": (ReadAs | None, None),
        "encoding": (str | None, None),
        "delimiter": (str | None, None),
        "decimal": (str | None, None),
        "accept_rejected": (bool, False),
    },
)


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
