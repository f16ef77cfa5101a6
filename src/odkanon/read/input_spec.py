"""The description of an input and how to read it, the same for every command and every engine."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cached_property, wraps
from inspect import Parameter, signature
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeVar, cast, get_args

from odkanon.attributes.filter_grammar import comparisons, parse_filter
from odkanon.attributes.spec import AGE_BANDS, AttributeSpec, is_formula, parse_attributes
from odkanon.errors import InputError, InvalidValueError, OptionConflictError, nearest
from odkanon.model.axes import RECORDS, TRIPS, Subject
from odkanon.model.measures import DISTINCT
from odkanon.model.provenance import Rejected, Source
from odkanon.read.area import Area, read_area
from odkanon.read.polygon_zoning import PolygonZoning, read_zoning
from odkanon.read.tables.column_names import (
    ALIASES,
    COORDINATES,
    ENDS,
    TableContent,
    apply_layout,
    at_one_place,
    detect_content,
    resolve,
)
from odkanon.read.tables.filters import FILTERED, HOUR, FilterScope, filter_check, filter_names, number_names
from odkanon.read.tables.number_formats import NumberFormat, normalize_formats
from odkanon.read.tables.open_table import open_table
from odkanon.read.tables.table import LISTED_VALUES, NamedColumns, RowCheck, SourceTable, TypedColumns
from odkanon.read.tables.text_files import TextFormat
from odkanon.read.tables.time_formats import TimeColumn, check_timezone
from odkanon.read.zone_hierarchy import read_hierarchy, with_outlines
from odkanon.zoning.cells import check_resolution
from odkanon.zoning.hierarchy import Hierarchy

log = logging.getLogger(__name__)

TIMES = ("start_time", "end_time")
_IN_MEMORY = " in memory"

Function = TypeVar("Function", bound=Callable[..., Any])


class CountedLines(NamedColumns, Protocol):
    """A table that may know its number of rows."""

    @property
    def lines(self) -> int | None: ...  # noqa: D102

    @property
    def sources(self) -> tuple[str, ...]: ...  # noqa: D102

    def values(self, column: str) -> list[str]: ...  # noqa: D102


class ReadOptions(TypedDict, total=False):
    """Keyword arguments of every function that reads an input; see `InputSpec`."""

    columns: Mapping[str, str] | None
    where: str | Sequence[str] | None
    within: Area | str | Path | None
    resolution: int | None
    hierarchy: Any
    kind: TableContent | None
    outlines: Any
    zoning: Any
    zone_id: str | None
    zone_parents: str | Sequence[str]
    crs: str | None
    encoding: str | None
    delimiter: str | None
    sheet: str | None
    timezone: str | None
    decimal: str | None
    time_format: str | None
    since: str | None
    until: str | None
    place: str | None
    unit: str | None
    accept_rejected: bool


@dataclass(frozen=True, eq=False)
class InputSpec:
    """An input and how to read it.

    Files named by ``within``, ``hierarchy``, ``outlines`` and ``zoning`` are read once, when first needed.

    Attributes
    ----------
    source : path, sequence of paths, or table
        CSV, Parquet, Arrow (Feather), JSON Lines or a spreadsheet, gzipped or zipped; ``-`` for standard input; several
        files with the same columns; Parquet at ``s3://`` or ``gs://``; lines in a GeoPackage or the like; a table of
        pandas, geopandas, polars, Arrow or DuckDB; or whatever a registered reader accepts. The layouts of bike share,
        taxi and other data in `odkanon.read.tables.column_names` are recognised.
    columns : mapping of str to str, optional
        ``{ours: theirs}`` for columns whose names are not recognised.
    where : str or sequence of str, optional
        Filters such as ``'day_type == "weekday"'``; only rows that match all of them are kept.
    within : Area, str or path, optional
        Keep trips with both ends inside; see `odkanon.read_area` for texts.
    resolution : int, optional
        H3 resolution of the finest zones; by default 10 for trips, and that of its cells for an OD table.
    hierarchy : Hierarchy, path or table, optional
        The nested zones, where these are not H3 cells; see `odkanon.read_hierarchy`.
    kind : {"trips", "od"}, optional
        Content of the table; by default detected from its columns.
    outlines : path or GeoDataFrame, optional
        Polygons of the zones of ``hierarchy``.
    zoning : path or GeoDataFrame, optional
        Polygons to use as zones instead of H3 cells: GeoPackage, Shapefile, GeoJSON or GeoParquet in any reference
        system. Trips are joined to them by their coordinates; those with an end outside all of them are rejected.
    zone_id : str, optional
        The property of the polygons with their codes.
    zone_parents : str or sequence of str
        Properties with the codes of larger zones, from fine to coarse. Without any, neighbours are grouped by the
        geometry of the polygons alone.
    crs : str, optional
        Reference system of the coordinates if they are not degrees, such as ``"EPSG:32719"``: x in ``start_lon`` and
        ``end_lon``, y in ``start_lat`` and ``end_lat``. Needs pyproj.
    encoding, delimiter : str, optional
        Format of a text file; by default detected from its content.
    sheet : str, optional
        The sheet of a workbook, or the layer of a GIS file; by default the only one that has trips.
    timezone : str, optional
        Time zone of hours, such as ``"America/Santiago"``, where times have ``Z`` or an offset; by default hours are
        those that are written.
    since, until : str, optional
        Days such as ``"2024-02-01"``: keep trips that start on or after the first, and before the second. They are
        published with a release, and show that releases of two periods share no trip.
    decimal, time_format : str, optional
        Format of ambiguous numbers and times; see `odkanon.read.tables.number_formats.NumberFormat`.
    place : str, optional
        For tables by one place instead of two: the column of its code or cell, such as ``home``, or the beginning of
        ``home_lat, home_lon``. It names the column of the release, too.
    unit : str, optional
        With ``place``: what is counted, in the plural, such as ``residents``; by default ``records``. A column of that
        name has how many each row stands for.
    accept_rejected : bool
        Make a release even if more than half of the rows cannot be used.
    """

    source: Any = None
    columns: Mapping[str, str] | None = None
    where: str | Sequence[str] | None = None
    within: Area | str | Path | None = None
    resolution: int | None = None
    hierarchy: Any = None
    kind: TableContent | None = None
    outlines: Any = None
    zoning: Any = None
    zone_id: str | None = None
    zone_parents: str | Sequence[str] = ()
    crs: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    timezone: str | None = None
    decimal: str | None = None
    time_format: str | None = None
    since: str | None = None
    until: str | None = None
    place: str | None = None
    unit: str | None = None
    accept_rejected: bool = False

    def __post_init__(self) -> None:
        self._check_types()
        self._check_subject()
        _ = self.text, self.number_format
        check_timezone(self.timezone)
        check_period(self.since, self.until)
        if self.resolution is not None:
            check_resolution(self.resolution)
        if self.outlines is not None and self.hierarchy is None:
            raise InputError("outlines need a hierarchy of zones; H3 cells have their own", option="hierarchy")
        others = ("hierarchy", "resolution", "within")
        other = next((name for name in others if getattr(self, name) is not None), None)
        if self.zoning is not None and other is not None:
            raise OptionConflictError.between(other, "zoning", "the zones are your polygons")
        if self.zoning is None and (self.zone_id is not None or self.zone_parents):
            raise OptionConflictError.between("a property of polygons", "zoning", "there are none", missing=True)

    def _check_types(self) -> None:
        for name, (types, expected) in _EXPECTED.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, types)):
                raise InvalidValueError.expected(name, expected, value)
        if self.kind is not None and self.kind not in get_args(TableContent):
            raise InvalidValueError.expected("kind", "'trips' or 'od'", self.kind)
        if not all(isinstance(each, str) for each in self.filters):
            raise InvalidValueError.expected("where", _EXPECTED["where"][1], self.where)

    def _check_subject(self) -> None:
        if self.place is None:
            if self.unit is not None:
                raise InputError("a unit applies to a table by one place; name the place", option="place COLUMN")
            return
        taken = {*COORDINATES, *ENDS} & {*(self.columns or {})}
        if taken:
            raise InputError(f"a table by one place has no {min(taken)}; leave out its column", option="column")
        for what, name, own in (("place", self.place, {TRIPS}), ("unit", self.subject.unit, {"place", *ENDS})):
            if not name.strip() or is_formula(name) or name in {"weight", *DISTINCT, "any", "axis", *own}:
                raise InvalidValueError.reserved_name(f"a {what}", name, option=what)
        if self.place == self.subject.unit:
            raise InputError(f"place and unit are both called {self.place!r}; name what is counted", option="unit")

    def check_attributes(self, attributes: Sequence[AttributeSpec]) -> None:
        """Raise if an attribute has the name of the place or of the unit, which are columns of the release."""
        for name in {each.name for each in attributes} & {self.subject.unit, *self.subject.places}:
            raise InvalidValueError.reserved_name("an attribute", name, "the release has a column of that name")

    @property
    def subject(self) -> Subject:
        """What is counted, and by which places."""
        return Subject() if self.place is None else Subject(self.place, self.unit or RECORDS)

    @property
    def name(self) -> str:
        """Name of the input in messages."""
        paths = self.paths
        return " and ".join([str(paths[0]), f"{len(paths) - 1} more"][: len(paths)]) if paths else "the table"

    @property
    def title(self) -> str:
        """Name of the input on a page."""
        return Path(self.paths[0]).stem if len(self.paths) == 1 else self.name

    @property
    def paths(self) -> tuple[str | Path, ...]:
        """The files to read; empty for a table in memory."""
        if isinstance(self.source, str | Path):
            return (self.source,)
        several = isinstance(self.source, list | tuple) and all(isinstance(each, str | Path) for each in self.source)
        return tuple(self.source) if several else ()

    @property
    def filters(self) -> tuple[str, ...]:
        """All filters, those of the period included."""
        own = () if self.where is None else (self.where,) if isinstance(self.where, str) else tuple(self.where)
        return *own, *period_filters(self.since, self.until)

    @property
    def finest(self) -> int:
        """The H3 resolution of trips."""
        return 10 if self.resolution is None else self.resolution

    @cached_property
    def text(self) -> TextFormat:
        """The format of a text file."""
        return TextFormat(self.encoding, self.delimiter, self.sheet, tuple((self.columns or {}).values()))

    @cached_property
    def number_format(self) -> NumberFormat:
        """The format of numbers and times."""
        return NumberFormat(self.decimal, self.time_format)

    @property
    def uses_hours(self) -> bool:
        """Whether a filter refers to times."""
        own = {HOUR, *TIMES, *(alias for name in TIMES for alias in ALIASES[name])}
        theirs = {column for name, column in (self.columns or {}).items() if name in TIMES}
        return any(name in theirs or name.lower() in own for name in filter_names(self.filters))

    @property
    def clock(self) -> str:
        """A note on the time zone of hours."""
        if self.timezone is None:
            return "Hours are as written: offsets are not converted, stored time zones are UTC."
        return f"Hours are in the time zone {self.timezone}, as times without an offset are assumed to be."

    @cached_property
    def area(self) -> Area | None:
        """The area to keep; None for no limit."""
        return read_area(str(self.within)) if isinstance(self.within, str | Path) else self.within

    @cached_property
    def polygons(self) -> PolygonZoning | None:
        """The polygons that are the zones of trips; None for other zones."""
        if self.zoning is None:
            return None
        parents = (self.zone_parents,) if isinstance(self.zone_parents, str) else tuple(self.zone_parents)
        return read_zoning(self.zoning, self.zone_id, parents)

    @cached_property
    def tree(self) -> Hierarchy | None:
        """The hierarchy of zones, with their outlines; None for H3."""
        if self.polygons is not None:
            return self.polygons.tree
        if self.hierarchy is None:
            return None
        if not isinstance(self.hierarchy, Hierarchy):
            return read_hierarchy(self.hierarchy, self.outlines)
        return self.hierarchy if self.outlines is None else with_outlines(self.hierarchy, self.outlines)

    def open(self) -> SourceTable:
        """Open the source in our layout and number format."""
        return self.standardize(open_table(self.source, self.text))

    def standardize(self, table: SourceTable) -> SourceTable:
        """Return an open table in our layout, with decimal points and ISO times."""
        table = apply_layout(table) if self.place is None else at_one_place(table, self.place, self.subject.unit)
        found = resolve(table, self.columns, also=None)
        filtered = {name if name in table.columns else found.get(name) for name in number_names(self.filters)}
        ours = {found[name] for name in (*COORDINATES, "weight", "trips") if name in found}
        return normalize_formats(
            table,
            self.number_format,
            degrees=[found[name] for name in COORDINATES if name in found and self.crs is None],
            numbers=[name for name in table.columns if name in ours or name in filtered],
            times=[found[name] for name in TIMES if name in found],
        )

    def detect_kind(self, table: NamedColumns) -> TableContent:
        """Return the content of a table; raise if other options contradict it."""
        kind = self.kind or (
            "od" if self.hierarchy is not None else detect_content(table, resolve(table, self.columns, also=None))
        )
        if kind == "od" and self.hierarchy is not None and self.within is not None:
            raise InputError("areas consist of H3 cells; filter zones of your own by a column", option="filter")
        if kind == "od" and self.hierarchy is not None and self.resolution is not None:
            raise InputError("a resolution applies to H3 cells only; leave it out with zones of your own")
        if kind == "od" and self.crs is not None:
            raise InputError("a reference system applies to coordinates; the ends of these trips are zones")
        return kind

    def resolved(self, table: NamedColumns, attributes: Sequence[str] = ()) -> dict[str, str]:
        """Return the column of each of our names, of attributes, and of names in filters."""
        return resolve(table, self.columns, also={*attributes, *filter_names(self.filters)})

    def check(self, table: TypedColumns, found: Mapping[str, str], times: Mapping[str, TimeColumn]) -> RowCheck | None:
        """Return the filters as a row check; None without any."""
        return filter_check(self.filters, FilterScope(table, found, times))

    def times(self, table: TypedColumns, found: Mapping[str, str]) -> dict[str, TimeColumn]:
        """Return how the times of a trip are parsed."""
        return {
            name: TimeColumn(table, found[name], counts=False, zone=self.timezone) for name in TIMES if name in found
        }

    def account(self, source: Source, table: CountedLines, used: Collection[str]) -> Source:
        """Return the account of the rows together with the options of reading.

        Parameters
        ----------
        source : Source
            The account of the rows.
        table : SourceTable or the like
            The table.
        used : collection of str
            The columns that were used, those of filters excepted.

        Raises
        ------
        InputError
            If lines were lost, or the filter matches no row. A filter that matches every row is a warning.
        """
        names = {each.lower() for each in (*used, *table.sources, *filter_names(self.filters))}
        lines = table.lines
        if lines is not None and lines != source.rows:
            raise InputError(
                f"{self.name} has {lines:,} lines below its header, but {source.rows:,} rows were read; it may be "
                "damaged, or contain stray quotes or line ends"
            )
        unused = tuple(name for name in table.columns if name.lower() not in names)
        source = replace(source, reading=self.to_dict(), subject=self.subject, unused=unused)
        if not self.filters:
            return source
        unmatched = source.rejected.get(FILTERED, Rejected(0, 0)).rows
        unusable = sum(part.rows for part in source.rejected.values())
        if unmatched == source.rows:
            raise InputError(
                f"the filter matches none of the {source.rows:,} rows of {self.name}; {self._values_to_choose(table)}"
            )
        if not unmatched and self.where and unusable < source.rows:
            log.warning("the filter matches all %s rows; check that it is what you mean", f"{source.rows:,}")
        return source

    def _values_to_choose(self, table: CountedLines) -> str:
        """Return the values of the first column that a filter compares with a text that does not occur in it."""
        for each in (test for text in self.filters for test in comparisons(parse_filter(text))):
            column = (self.columns or {}).get(each.name, each.name)
            texts = [value for value in each.values if isinstance(value, str)]
            if column not in table.columns or each.operator not in ("==", "in") or not texts:
                continue
            known = table.values(column)
            unknown = next((text for text in texts if text not in known), None)
            if unknown is not None and known:
                more = ", ..." if len(known) == LISTED_VALUES else ""
                return f"{each.name} is never {unknown!r}{nearest(unknown, known)}, but {', '.join(known)}{more}"
        return "check its values"

    def to_dict(self) -> dict[str, Any]:
        """Return the options that were given, for JSON."""
        given = {each.name: _json_value(getattr(self, each.name)) for each in fields(self)}
        return {name: value for name, value in given.items() if value not in (None, {}, []) and value is not False}


def recipe_folder(recipe: Mapping[str, Any], beside: Path) -> Path:
    """Return the folder from which the paths in a recipe start, given the folder where the recipe is."""
    return (beside / str((recipe.get("command") or {}).get("folder") or ".")).resolve()


def spec_from_recipe(recipe: Mapping[str, Any], beside: Path, source: Any = None) -> InputSpec:
    """Return the input of a release as its recipe describes it, for the same file or another one.

    Parameters
    ----------
    recipe : mapping
        The content of a recipe.
    beside : Path
        The folder of the recipe, from which its paths are found.
    source : path, sequence of paths or table, optional
        What to read in the same way; by default what the recipe names.

    Raises
    ------
    InputError
        If the release was made from objects in memory, which a recipe cannot describe.
    """
    names = {each.name for each in fields(InputSpec)}
    options = {name: value for name, value in recipe.get("input", {}).items() if name in names}
    if source is not None:
        options["source"] = source
    lost = [name for name, value in options.items() if in_memory(value)]
    if lost:
        raise InputError(f"the recipe names no file for its {lost[0]}, which was a table or an object in Python")
    folder = recipe_folder(recipe, beside)
    for name in ("source", "within", "hierarchy", "outlines", "zoning"):
        if name in options and not (name == "source" and source is not None):
            options[name] = _found_from(folder, options[name])
    return InputSpec(**options)


def attributes_from_recipe(recipe: Mapping[str, Any], beside: Path, spec: InputSpec) -> Sequence[AttributeSpec]:
    """Return the attributes of a release from its recipe, the folder where that is, and the trips."""
    axes = recipe.get("about", {}).get("axes", [])
    if not axes:
        return ()
    ages = [str(band) for axis in axes if axis["name"] == "age" for band in axis["levels"][0]]
    bounds = [int(found[0]) for band in ages if (found := re.match(r"\d+", band))] or AGE_BANDS
    folder = recipe_folder(recipe, beside)
    return [
        replace(each, lookup=str(_found_from(folder, each.lookup)) if each.lookup else None)
        for each in parse_attributes([axis["asked"] for axis in axes], bounds, (spec.since, spec.until))
    ]


def _found_from(folder: Path, named: Any) -> Any:
    """Return paths relative to a folder; a value that is no file there, such as a list of cells, stays as it is."""
    if isinstance(named, list):
        return [_found_from(folder, each) for each in named]
    try:
        return folder / named if isinstance(named, str) and (folder / named).exists() else named
    except OSError:  # too long for a path
        return named


_TEXT = (str, "text")
_EXPECTED: dict[str, tuple[Any, str]] = {
    "columns": (Mapping, "a mapping {ours: theirs}"),
    "where": (str | list | tuple, "a filter or a list of filters"),
    "within": (Area | str | Path, "an Area, or a text for read_area"),
    "zone_parents": (str | list | tuple, "a property or a list of properties"),
    "resolution": (Integral, "a whole number from 0 to 15"),
    **dict.fromkeys(
        ("zone_id", "crs", "encoding", "delimiter", "sheet", "timezone", "decimal", "time_format", "since", "until"),
        _TEXT,
    ),
    **dict.fromkeys(("place", "unit"), _TEXT),
}


def lists_read_options(function: Function) -> Function:
    """Show every option of `ReadOptions` in the signature of a function, and name the nearest one to a misspelt one."""
    own = signature(function)
    named = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    options = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in fields(InputSpec)[1:]
    ]
    public = own.replace(parameters=[*named, *options])

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        unknown = next((name for name in given if name not in public.parameters), None)
        if unknown is not None:
            called = f"{function.__name__}() got an unexpected keyword argument {unknown!r}"
            raise TypeError(f"{called}{nearest(unknown, public.parameters)}")
        return function(*args, **given)

    checked.__signature__ = public  # type: ignore[attr-defined]
    return cast("Function", checked)


def as_input_spec(source: Any, options: ReadOptions) -> InputSpec:
    """Return the description of an input; one that is described already takes no options for reading."""
    if not isinstance(source, InputSpec):
        return InputSpec(source, **options)
    check_unread(options)
    return source


def check_unread(options: ReadOptions, allowed: Collection[str] = ()) -> None:
    """Raise if there are options for reading an input that is read or described already."""
    given = [name for name, value in options.items() if value is not None and name not in allowed]
    if given:
        raise InputError(
            f"{given[0]} is an option for reading, and this input is read or described already; leave it out"
        )


def check_period(since: str | None, until: str | None) -> None:
    """Raise unless both are days, the second after the first."""
    for day in (since, until):
        try:
            _ = None if day is None else date.fromisoformat(day)
        except ValueError:
            raise InvalidValueError.expected("the bounds of a period", "days such as 2024-02-01", day) from None
    if since is not None and until is not None and date.fromisoformat(since) >= date.fromisoformat(until):
        raise InputError(f"the period from {since} to before {until} is empty; choose a later end")


def period_filters(since: str | None, until: str | None) -> tuple[str, ...]:
    """Return the filters for trips that start in a period."""
    bounds = ((">=", since), ("<", until))
    return tuple(f'start_time {sign} "{day}"' for sign, day in bounds if day is not None)


def in_memory(value: Any) -> bool:
    """Return whether an option in a recipe stands for a table or an object that was given in Python."""
    return isinstance(value, str) and value.endswith(_IN_MEMORY)


def _json_value(value: Any) -> Any:
    """Return a value for JSON; objects in memory are replaced by their type."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return f"a {type(value).__name__}{_IN_MEMORY}"
