"""The options of a request, shared by commands: the input, the engine and the rule."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.cli.common_options import OptionGroup, describe_options
from odkanon.errors import InputError, InvalidValueError
from odkanon.model.measures import MEASURES, TARGETS

if TYPE_CHECKING:
    from odkanon.model.od import Matrix
    from odkanon.model.rule import Rule
    from odkanon.pipeline.request import RuleRequest
    from odkanon.read.input_spec import InputSpec


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
    --sheet NAME  The sheet of a workbook, or the layer of a GIS file. [default: the only one that has trips]
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
        "sheet": (str | None, None),
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


Protect = StrEnum("Protect", {target: target for target in TARGETS})  # type: ignore[misc]
"""The groups that can be protected."""

THRESHOLDS = {f"min_{name}": name for name in MEASURES}
"""The measure of each threshold, by the parameter of its option."""


_WHO = ", ".join(f"{measure.target} ({measure.meaning})" for measure in MEASURES.values())
_THRESHOLDS = "\n".join(
    f"--min-{name} NUMBER  The lowest {'sum of weights' if name == 'weight' else f'number of {name}'} of a flow."
    for name in MEASURES
)

RULE_OPTIONS = describe_options(
    f"""
--k NUMBER  The number that must share every published flow.
--protect WHO  Who is counted: {_WHO}. Repeatable: k applies to each.
    [default: participants, and persons where the input names them]
Rule: thresholds by measure, instead of --k:
{_THRESHOLDS}
Rule: further constraints (not with mondrian, cascade, --segment or --by):
--max-share SHARE  The largest share of a flow's trips (and weight, if counted) that one person or household may have,
    such as 0.5. Needs a column of persons or households, and trips in memory.
--min-destinations NUMBER  The fewest destinations of an origin zone with published flows. With 2, nobody who left a
    zone is known to have gone to its only destination.
""",
    {
        "k": (int, 10),
        "protect": (list[Protect], []),
        **{option: (float | None if name == "weight" else int | None, None) for option, name in THRESHOLDS.items()},
        "max_share": (float | None, None),
        "min_destinations": (int | None, None),
    },
)


@dataclass(frozen=True)
class RuleOptions(OptionGroup):
    """Who is protected; call it with a matrix to get the rule."""

    OPTIONS = RULE_OPTIONS
    LISTED_FIRST = True

    @property
    def request(self) -> RuleRequest:
        """The thresholds, for a rule once the input is read."""
        from odkanon.pipeline.request import RuleRequest

        given = self.values
        thresholds = {name: given[option] for option, name in THRESHOLDS.items() if given[option] is not None}
        targets = tuple(target.value for target in given["protect"])
        return RuleRequest(given["k"], targets, thresholds, given["max_share"], given["min_destinations"])

    def __call__(self, od: Matrix) -> Rule:
        """Return the rule; the mean weight of a trip is that of the whole data set."""
        return self.request.rule_for(od)
