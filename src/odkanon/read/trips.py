"""The trips table: reading it, turning bad rows away with their reason, and placing trips on a hierarchy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.errors import InputError, nearest
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.model.provenance import Rejected, Source
from odkanon.read.area import Area
from odkanon.read.coordinates import coordinate_checks, number_sql
from odkanon.read.crs import to_degrees
from odkanon.read.diagnostics import example_of, hint_at_swap, no_rows, warn_of_missing
from odkanon.read.input_spec import TIMES, InputSpec
from odkanon.read.land_mask import SAMPLE, warn_if_misplaced
from odkanon.read.person_ids import value_text
from odkanon.read.tables.column_names import ATTRIBUTES, COORDINATES, missing
from odkanon.read.tables.open_table import Check, Named, Table, Typed, quote_name
from odkanon.read.tables.time_formats import TimeColumn, half_of_day, mixed_offsets
from odkanon.read.trip_checks import Checked, checked_rows
from odkanon.zoning.attribute_axis import AttributeAxis
from odkanon.zoning.cells import Cells, latlng_to_cell
from odkanon.zoning.hierarchy import h3_hierarchy

log = logging.getLogger(__name__)

OUTSIDE = "outside the area"

AttributeColumns = tuple[tuple[AttributeAxis, ...], tuple[Codes, ...]]
"""Axes besides the two places, and for each of them the number of the value of each trip."""


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips that passed every check.

    Attributes
    ----------
    table : pyarrow.Table
        ``start_lat, start_lon, end_lat, end_lon`` and, where the input has them, ``start_time``, ``end_time`` and
        attributes; one row a trip.
    weight : array of int or None
        Weight of each trip, in units of ``1 / scale``.
    contributors : mapping of str to array of int
        By measure, the number of the head of each trip (the person, the household); -1 where unknown.
    source : Source
        Where they come from, and what was rejected on the way.
    """

    table: pa.Table
    weight: Ints | None
    scale: int
    contributors: Mapping[str, Codes]
    source: Source
    _cells: dict[int, tuple[Cells, Cells]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def cells(self, resolution: int) -> tuple[Cells, Cells]:
        """Return the H3 cells in which the trips begin and end; worked out once, also for parts of the trips."""
        if resolution not in self._cells:
            lat, lon, end_lat, end_lon = (self.table.column(name).to_numpy() for name in COORDINATES)
            # Together, for most trips end where others begin.
            ends = latlng_to_cell(np.concatenate([lat, end_lat]), np.concatenate([lon, end_lon]), resolution)
            self._cells[resolution] = ends[: len(self)], ends[len(self) :]
        return self._cells[resolution]

    def select(self, which: Bools) -> Trips:
        """Return some of the trips, such as a segment; the unit of weight stays the same."""
        return replace(
            self,
            _cells={at: (start[which], end[which]) for at, (start, end) in self._cells.items()},
            table=self.table.filter(pa.array(which)),
            weight=None if self.weight is None else self.weight[which],
            contributors={name: contributor[which] for name, contributor in self.contributors.items()},
        )

    def reject(self, which: Bools, reason: str) -> Trips:
        """Return the other trips; these count as turned away for the reason."""
        count = int(np.count_nonzero(which))
        weight = 0 if self.weight is None else int(self.weight[which].sum())
        source = self.source.reject(reason, Rejected(count, count, weight))
        return replace(self.select(~which), source=source) if count else self

    def inside(self, resolution: int, within: Area) -> Bools:
        """Return which trips have both ends inside an area; raise if none has."""
        start, end = self.cells(resolution)
        return check_inside(within.contains(start) & within.contains(end))

    def __repr__(self) -> str:
        rejected = sum(part.rows for part in self.source.rejected.values())
        return f"Trips({len(self):,} trips, {rejected:,} rows rejected; {', '.join(self.table.column_names)})"


def read_trips(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    attributes: Sequence[str] | None = None,
    where: str | Sequence[str] | None = None,
    crs: str | None = None,
    **how: Any,
) -> Trips:
    """Read trips with coordinates, and turn bad rows away.

    Parameters
    ----------
    source : path or table
        CSV, gzipped CSV or Parquet; or a table of pandas, polars, Arrow or DuckDB.
    attributes : sequence of str, optional
        Further columns to keep; by default sex, age and category where there are such.
    columns, where, crs, **how
        How to read it; see `odkanon.InputSpec`.

    Notes
    -----
    A row is turned away, and counted, for the first of: not matched by the filter, missing, unreadable, infinite or
    out-of-range coordinates, the point (0, 0), a missing, unreadable or non-positive weight, a time that cannot be
    read, or being an exact copy of another row of the same person. A column that is empty throughout counts as
    absent. A trip without a person stays, and counts as nobody where persons are counted. Ids that differ only in how
    they are written (``1`` and ``1.0``) are one person, and words for nothing (``NA``, ``null``) are nobody.

    Examples
    --------
    >>> from odkanon import make_survey
    >>> trips = read_trips(make_survey(), where='sex == "Woman"')
    >>> len(trips) + sum(each.rows for each in trips.source.rejected.values())
    81291
    """
    return trips_of(InputSpec(source, columns, where, crs=crs, **how), attributes)


def trips_of(reading: InputSpec, attributes: Sequence[str] | None = None, *, table: Table | None = None) -> Trips:
    """Read the trips of an input, which may be open already; see `read_trips`."""
    table = reading.open() if table is None else table
    found = reading.resolved(table, attributes or ())
    if any(name not in found for name in COORDINATES):
        raise missing(table, found, COORDINATES)
    kept = attribute_columns(table, found, attributes)
    times = reading.times(table, found)
    values = trip_values(found, times) | {name: quote_name(column) for name, column in kept.items()}
    identity = trip_identity(found, times) | {name: value_text(column) for name, column in kept.items()}
    values |= {f"{name} zoned": time.zoned for name, time in times.items()}
    checks, crs = trip_checks(table, found, degrees=reading.crs is None, times=reading.uses_hours), reading.crs
    rows = checked_rows(table, found, values, checks, where=reading.check(table, found, times), identity=identity)
    rows = replace(rows, source=reading.account(rows.source, table.lines))
    hint_at_swap(rows.source.rejected)
    if crs is not None:
        rows = to_degrees(rows, crs)
    if len(rows.table) == 0:
        raise no_rows(table, rows.source, example=example_of(table, found, checks, rows.source.rejected))
    rows = without_offsets(table, found, rows, times)
    warn_of_missing(rows.contributors)
    some = np.arange(0, len(rows.table), max(len(rows.table) // SAMPLE, 1))
    ends = [column.to_numpy() for column in rows.table.select(list(COORDINATES)).take(pa.array(some)).columns]
    warn_if_misplaced(np.concatenate(ends[0::2]), np.concatenate(ends[1::2]))
    return Trips(rows.table, rows.weight, rows.scale, rows.contributors, rows.with_mean_weight())


def build_od(trips: Trips, *, resolution: int = 10, within: Area | None = None) -> ODMatrix:
    """Place trips on H3 cells and count them by origin and destination.

    Parameters
    ----------
    trips : Trips
        The trips.
    resolution : int
        H3 resolution of the leaves, in [0, 15]; 10 is some 130 m across.
    within : Area, optional
        Keep trips with both ends inside; the others count as rejected.

    Examples
    --------
    >>> from odkanon import make_survey
    >>> od = build_od(read_trips(make_survey()), resolution=7)
    >>> od.trips, od.origins.resolution
    (81291, 7)
    """
    return count_trips(trips, resolution, within)


def count_trips(
    trips: Trips,
    resolution: int,
    within: Area | None,
    parse_attributes: Callable[[Trips], AttributeColumns] = lambda trips: ((), ()),
) -> ODMatrix:
    """Count trips by origin, destination and kind, where they are inside an area if one is given.

    Parameters
    ----------
    parse_attributes : callable
        Given the trips that are counted, returns the axes besides the two places, and for each the values of the trips.
    """
    if within is not None:
        trips = trips.reject(~trips.inside(resolution, within), OUTSIDE)
    axes, attributes = parse_attributes(trips)
    return od_between(
        trips.cells(resolution),
        within,
        weight=trips.weight,
        scale=trips.scale,
        contributors=trips.contributors,
        source=trips.source,
        axes=axes,
        attributes=attributes,
    )


def check_inside(inside: Bools) -> Bools:
    """Return which records lie in an area; raise if none does."""
    if not inside.any():
        raise InputError("no trip has both ends inside the area; check the cells or the outline")
    return inside


def od_between(
    ends: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]], within: Area | None, **counted: Any
) -> ODMatrix:
    """Return the matrix of records between H3 cells, all of them inside the area; see `odkanon.model.od.od_matrix`."""
    # The area is public: who knows that there is nothing outside it must not find rows to have had room there.
    origins, destinations = (replace(h3_hierarchy(cells), within=within) for cells in ends)
    codes = (
        np.searchsorted(tree.leaves, cells).astype(np.int32)
        for tree, cells in zip((origins, destinations), ends, strict=True)
    )
    return od_matrix(origins, destinations, *codes, **counted)


def attribute_columns(table: Named, found: Mapping[str, str], wanted: Sequence[str] | None) -> dict[str, str]:
    """Return the columns of the attributes to keep; where none are named, of those that are usual."""
    lower = {name.lower(): name for name in table.columns}
    if wanted is None:
        return {name: lower[name] for name in ATTRIBUTES if name in lower} | {
            name: found[name] for name in ATTRIBUTES if name in found
        }
    kept = {name: found.get(name, lower.get(name.lower(), "")) for name in wanted}
    for name, column in kept.items():
        if not column:
            raise InputError(f"{table.name} has no column {name!r}{nearest(name, table.columns)}")
    return kept


def trip_values(found: Mapping[str, str], times: Mapping[str, TimeColumn]) -> dict[str, str]:
    """Return the SQL expressions of the coordinates and times of a trip."""
    return {name: number_sql(found[name]) for name in COORDINATES} | {name: time.clock for name, time in times.items()}


def trip_identity(found: Mapping[str, str], times: Mapping[str, TimeColumn]) -> dict[str, str]:
    """Return the SQL expressions by which a trip is the same as another, however its times are written."""
    return trip_values(found, {}) | {name: time.moment for name, time in times.items()}


def trip_checks(table: Typed, found: Mapping[str, str], *, degrees: bool = True, times: bool = True) -> list[Check]:
    """Return the reasons to turn a trip away; the range of coordinates counts where they are degrees.

    Times have to be readable where something needs them (``times``): a filter, or the search for copies, which goes by
    person and time.
    """
    places = [found[name] for name in COORDINATES]
    ends = coordinate_checks(places[0::2], places[1::2], degrees=degrees)
    needed = TIMES if times or "person" in found else ()
    return [*ends, *time_checks(table, found, [name for name in needed if name in found])]


def time_checks(table: Typed, found: Mapping[str, str], times: Iterable[str]) -> list[Check]:
    """Return the reasons to turn a row away whose times have to be readable; what is stored as a time is."""
    checks = []
    for name in times:
        column, kind = quote_name(found[name]), table.types()[found[name]]
        half = f" OR {half_of_day(found[name])}" if kind == "VARCHAR" else ""
        unread = f"{column} IS NOT NULL AND (TRY_CAST({column} AS TIMESTAMP) IS NULL{half})"
        if kind not in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
            checks.append(Check(f"whose {name} cannot be read", unread))
    return checks


def without_offsets(table: Table, found: Mapping[str, str], rows: Checked, times: Mapping[str, TimeColumn]) -> Checked:
    """Drop the columns that tell which times had a UTC offset, once it is certain that all had one or none."""
    for name in times:
        written = rows.table.column(f"{name} zoned").to_numpy()
        known = np.asarray(rows.table.column(name).is_valid())
        zoned, plain = int(np.count_nonzero(written & known)), int(np.count_nonzero(~written & known))
        if zoned and plain:
            raise mixed_offsets(table.name, found[name], zoned, plain)
    return replace(rows, table=rows.table.drop_columns([f"{name} zoned" for name in times]))
