"""What to read, and how: one description of an input for every command and every engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from odkanon.errors import InputError
from odkanon.model.provenance import Rejected, Source
from odkanon.read.area import Area, read_area
from odkanon.read.boundaries import with_outlines
from odkanon.read.lookup import read_hierarchy
from odkanon.read.tables.column_names import ALIASES, COORDINATES, TableContent, kind_of, resolve
from odkanon.read.tables.filters import FILTERED, HOUR, Scope, filter_check, filter_names, number_names
from odkanon.read.tables.layouts import in_our_columns
from odkanon.read.tables.number_formats import Spelling, in_plain_spelling
from odkanon.read.tables.open_table import Check, Named, Table, Typed, open_table
from odkanon.read.tables.text_files import TextFormat
from odkanon.read.tables.time_formats import TimeColumn, check_timezone
from odkanon.zoning.cells import check_resolution
from odkanon.zoning.hierarchy import Hierarchy

log = logging.getLogger(__name__)

TIMES = ("start_time", "end_time")


@dataclass(frozen=True, eq=False)
class InputSpec:
    """All that can be said about an input: what it is, and how to read it.

    What is named as a file (``within``, ``hierarchy``, ``outlines``) is read when it is first needed, and once.

    Attributes
    ----------
    source : path, sequence of paths, or table
        CSV, Parquet, Arrow (Feather), JSON Lines or a spreadsheet, gzipped or zipped; ``-`` for standard input; several
        files with the same columns; Parquet at ``s3://`` or ``gs://``; lines in a GeoPackage or the like; or a table of
        pandas, geopandas, polars, Arrow or DuckDB. The layouts of bike share, taxi and other data in
        `odkanon.read.tables.layouts` and `odkanon.read.tables.column_names` are recognised.
    columns : mapping of str to str, optional
        ``{ours: theirs}`` for columns whose names are not recognised.
    where : str or sequence of str, optional
        Keep only rows for which this holds, such as ``'day_type == "weekday"'``; of several, all have to hold.
    within : Area or str, optional
        Keep trips with both ends inside; a text is as for `odkanon.read_area`.
    resolution : int, optional
        H3 resolution of the finest zones; 10 for trips, and an OD table's own by default.
    hierarchy : Hierarchy or path, optional
        The tree over zone codes, or the file of it, where zones are not H3 cells.
    kind : {"trips", "od"}, optional
        What the table holds; told by its columns if not given.
    outlines : path, optional
        GeoJSON with the polygons of the zones of ``hierarchy``.
    crs : str, optional
        What the coordinates are if not degrees of latitude and longitude, such as ``"EPSG:32719"``; x is then looked
        for in ``start_lon`` and ``end_lon``, y in ``start_lat`` and ``end_lat``. Needs pyproj.
    encoding, delimiter : str, optional
        Of a text file, where they are not what it says or looks like; see `odkanon.read.tables.text_files.TextFormat`.
    timezone : str, optional
        On which clock hours are, such as ``"America/Santiago"``, where times are written with ``Z`` or an offset; as
        they are written by default.
    since, until : str, optional
        Days, such as ``"2024-02-01"``: keep trips that start on the first or later, and before the second. They are
        published with a release, and tell that releases of two periods have no trip in common.
    decimal, time_format : str, optional
        How numbers and times are written, where that is in doubt; see `odkanon.read.tables.number_formats.Spelling`.
    """

    source: Any = None
    columns: Mapping[str, str] | None = None
    where: str | Sequence[str] | None = None
    within: Area | str | None = None
    resolution: int | None = None
    hierarchy: Hierarchy | str | Path | None = None
    kind: TableContent | None = None
    outlines: str | Path | None = None
    crs: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    timezone: str | None = None
    decimal: str | None = None
    time_format: str | None = None
    since: str | None = None
    until: str | None = None

    def __post_init__(self) -> None:
        _ = self.text, self.spelling
        check_timezone(self.timezone)
        check_period(self.since, self.until)
        if self.resolution is not None:
            check_resolution(self.resolution)
        if self.outlines is not None and self.hierarchy is None:
            raise InputError(
                "outlines of zones go with a hierarchy of them; H3 cells have their own", option="hierarchy"
            )

    @property
    def name(self) -> str:
        """What to call the input."""
        paths = self._paths
        return " and ".join([str(paths[0]), f"{len(paths) - 1} more"][: len(paths)]) if paths else "the table"

    @property
    def title(self) -> str:
        """What to call the input on a page."""
        return Path(self._paths[0]).stem if len(self._paths) == 1 else self.name

    @property
    def _paths(self) -> tuple[str | Path, ...]:
        if isinstance(self.source, str | Path):
            return (self.source,)
        several = isinstance(self.source, list | tuple) and all(isinstance(each, str | Path) for each in self.source)
        return tuple(self.source) if several else ()

    @property
    def filters(self) -> tuple[str, ...]:
        """The conditions that rows have to meet, all of them."""
        own = () if self.where is None else (self.where,) if isinstance(self.where, str) else tuple(self.where)
        return *own, *period_filters(self.since, self.until)

    @property
    def finest(self) -> int:
        """The H3 resolution of trips."""
        return 10 if self.resolution is None else self.resolution

    @property
    def text(self) -> TextFormat:
        """How a text file is written."""
        return TextFormat(self.encoding, self.delimiter)

    @property
    def spelling(self) -> Spelling:
        """How numbers and times are written."""
        return Spelling(self.decimal, self.time_format)

    @property
    def uses_hours(self) -> bool:
        """Whether a filter asks for times."""
        own = {HOUR, *TIMES, *(alias for name in TIMES for alias in ALIASES[name])}
        theirs = {column for name, column in (self.columns or {}).items() if name in TIMES}
        return any(name in theirs or name.lower() in own for name in filter_names(self.filters))

    @property
    def clock(self) -> str:
        """A sentence that says which clock hours are on."""
        if self.timezone is None:
            return (
                "Hours are as they are written in the input: a Z or an offset from UTC is not converted, and moments "
                "stored with a time zone are in UTC."
            )
        return f"Hours are on the clock of {self.timezone}; times without an offset are taken to be so already."

    @cached_property
    def area(self) -> Area | None:
        """The part of the world to keep; None for all of it."""
        return read_area(self.within) if isinstance(self.within, str) else self.within

    @cached_property
    def tree(self) -> Hierarchy | None:
        """The tree over zone codes, with the outlines of the zones; None for H3."""
        if self.hierarchy is None:
            return None
        tree = self.hierarchy if isinstance(self.hierarchy, Hierarchy) else read_hierarchy(self.hierarchy)
        return tree if self.outlines is None else with_outlines(tree, Path(self.outlines))

    def open(self) -> Table:
        """Open the source, in our words."""
        return self.in_our_words(open_table(self.source, self.text))

    def in_our_words(self, table: Table) -> Table:
        """Return an open table in our words: a known layout gets our columns, numbers get points, times their order."""
        table = in_our_columns(table)
        found = resolve(table, self.columns, also=None)
        filtered = {name if name in table.columns else found.get(name) for name in number_names(self.filters)}
        ours = {found[name] for name in (*COORDINATES, "weight", "trips") if name in found}
        return in_plain_spelling(
            table,
            self.spelling,
            degrees=[found[name] for name in COORDINATES if name in found and self.crs is None],
            numbers=[name for name in table.columns if name in ours or name in filtered],
            times=[found[name] for name in TIMES if name in found],
        )

    def kind_of(self, table: Named) -> TableContent:
        """Tell what a table holds; raise if it does not go with the rest."""
        kind = self.kind or (
            "od" if self.hierarchy is not None else kind_of(table, resolve(table, self.columns, also=None))
        )
        if kind == "od" and self.hierarchy is not None and self.within is not None:
            raise InputError("areas are of H3 cells; with zones of your own, filter by a column", option="filter")
        if kind == "od" and self.hierarchy is not None and self.resolution is not None:
            raise InputError("a resolution is that of H3 cells; zones of your own have none")
        if kind == "od" and self.crs is not None:
            raise InputError("a reference system is for coordinates; the ends of these trips are zones")
        return kind

    def resolved(self, table: Named, attributes: Sequence[str] = ()) -> dict[str, str]:
        """Return which column stands for which of our names; attributes and what filters name may be given one, too."""
        return resolve(table, self.columns, also={*attributes, *filter_names(self.filters)})

    def check(self, table: Typed, found: Mapping[str, str], times: Mapping[str, TimeColumn]) -> Check | None:
        """Return the filter as a check of rows; None without one."""
        return filter_check(self.filters, Scope(table, found, times))

    def times(self, table: Typed, found: Mapping[str, str]) -> dict[str, TimeColumn]:
        """Return how the times of a trip are read."""
        return {
            name: TimeColumn(table, found[name], counts=False, zone=self.timezone) for name in TIMES if name in found
        }

    def account(self, source: Source, lines: int | None) -> Source:
        """Return the account of the rows with how they were read; raise where lines have got lost.

        It is said where the filter makes no difference, and an error if it leaves nothing.

        Parameters
        ----------
        source : Source
            What became of the rows.
        lines : int or None
            How many rows there should be, where that is known.
        """
        if lines is not None and lines != source.rows:
            raise InputError(
                f"{self.name} has {lines:,} lines below its header, but {source.rows:,} rows were read; it may be "
                "damaged, or hold quotes or line ends that it should not"
            )
        source = replace(source, reading=self.said())
        if not self.filters:
            return source
        turned_away = source.rejected.get(FILTERED, Rejected(0, 0)).rows
        if turned_away == source.rows:
            raise InputError(f"the filter matches none of the {source.rows:,} rows of {self.name}; check its values")
        if not turned_away and self.where:
            log.warning("the filter keeps all %s rows; check whether it says what you mean", f"{source.rows:,}")
        return source

    def said(self) -> dict[str, Any]:
        """Return what was said, as JSON can hold it, without what was left to be found out."""
        told = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}
        return {name: value for name, value in told.items() if value not in (None, {}, [])}


def check_period(since: str | None, until: str | None) -> None:
    """Raise unless both are days, the second after the first."""
    for day in (since, until):
        try:
            _ = None if day is None else date.fromisoformat(day)
        except ValueError:
            raise InputError(f"a period begins and ends with a day such as 2024-02-01; not {day!r}") from None
    if since is not None and until is not None and date.fromisoformat(since) >= date.fromisoformat(until):
        raise InputError(f"the period from {since} to before {until} has no day in it; let it end later")


def period_filters(since: str | None, until: str | None) -> tuple[str, ...]:
    """Return the conditions that a trip starts in a period."""
    bounds = ((">=", since), ("<", until))
    return tuple(f'start_time {sign} "{day}"' for sign, day in bounds if day is not None)


def _plain(value: Any) -> Any:
    """Return a value for JSON; what only exists in memory is named by its kind."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return f"a {type(value).__name__} in memory"
