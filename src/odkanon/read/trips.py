"""Trips with coordinates: reading them and rejecting bad rows with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.core.sql import quote_name
from odkanon.errors import InputError
from odkanon.model.provenance import Rejected, Source
from odkanon.read.area import Area
from odkanon.read.coordinates import (
    check_not_degrees,
    coordinate_checks,
    ends_in_degrees,
    hint_at_swap,
    numbers_sql,
    off_globe,
    warn_of_places,
    warn_of_reference_system,
)
from odkanon.read.fetching import CheckedRows, checked_rows, drop_rows
from odkanon.read.input_spec import TIMES, InputSpec, ReadOptions, lists_read_options
from odkanon.read.person_ids import value_text
from odkanon.read.polygon_zoning import OUTSIDE_ZONES, PolygonZoning
from odkanon.read.tables.column_names import COORDINATES, attribute_columns, missing_columns
from odkanon.read.tables.filters import FILTERED
from odkanon.read.tables.table import RowCheck, SourceTable, TypedColumns
from odkanon.read.tables.time_formats import TimeColumn, mixed_offsets, unreadable_time
from odkanon.read.trip_checks import ExampleSource, example_of, no_rows, warn_of_missing
from odkanon.zoning.cells import Cells
from odkanon.zoning.point_location import NOWHERE, CellFinder, PlaceFinder

OUTSIDE = "outside the area"
_LEFT_OUT = (FILTERED, OUTSIDE, OUTSIDE_ZONES)
"""Reasons for which rows are left out though nothing is wrong with them."""

MANY_REJECTED = 0.05
"""The share of rejected rows from which on the first line of the output has it, with an example."""


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips that passed every check.

    Attributes
    ----------
    table : pyarrow.Table
        ``start_lat, start_lon, end_lat, end_lon`` and, where the input has them, ``start_time``, ``end_time`` and
        attributes; one row per trip.
    weight : array of int or None
        Weight of each trip, in units of ``1 / scale``.
    contributors : mapping of str to array of int
        By measure, the number of the contributor (person, household) of each trip; -1 where it is missing.
    source : Source
        The input, and what was rejected from it.
    zoning : PolygonZoning or None
        The polygons between which trips are counted, instead of H3 cells.
    """

    table: pa.Table
    weight: Ints | None
    scale: int
    contributors: Mapping[str, Codes]
    source: Source
    zoning: PolygonZoning | None = None
    _cells: dict[int, tuple[Any, Any]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def cells(self, resolution: int) -> tuple[Cells, Cells]:
        """Return the H3 cells of the origins and destinations; cached, also for selections."""
        start, end = self._find(resolution, CellFinder(resolution))
        return start.view(np.uint64), end.view(np.uint64)

    def zones(self, zoning: PolygonZoning) -> tuple[Ints, Ints]:
        """Return the leaves of a zoning in which trips begin and end; `NOWHERE` outside of all; cached."""
        return self._find(NOWHERE, zoning.finder)

    def _find(self, key: int, finder: PlaceFinder) -> tuple[Any, Any]:
        if key not in self._cells:
            lat, lon, end_lat, end_lon = (self.table.column(name).to_numpy() for name in COORDINATES)
            # In one call, since most trips end where others begin.
            ends = finder.find(np.concatenate([lat, end_lat]), np.concatenate([lon, end_lon]))
            self._cells[key] = ends[: len(self)], ends[len(self) :]
        return self._cells[key]

    def select(self, which: Bools) -> Trips:
        """Return some of the trips, such as a segment, with the same unit of weight."""
        return replace(
            self,
            _cells={at: (start[which], end[which]) for at, (start, end) in self._cells.items()},
            table=self.table.filter(pa.array(which)),
            weight=None if self.weight is None else self.weight[which],
            contributors={name: contributor[which] for name, contributor in self.contributors.items()},
        )

    def reject(self, which: Bools, reason: str) -> Trips:
        """Return the other trips; these are counted as rejected for the reason."""
        count = int(np.count_nonzero(which))
        weight = 0 if self.weight is None else int(self.weight[which].sum())
        source = self.source.reject(reason, Rejected(count, count, weight))
        return replace(self.select(~which), source=source) if count else self

    def inside(self, resolution: int, within: Area | None) -> Bools:
        """Return which trips have both ends inside the zones, or inside an area; raise if none has."""
        if self.zoning is not None:
            origin, destination = self.zones(self.zoning)
            return self.zoning.check_inside((origin != NOWHERE) & (destination != NOWHERE))
        if within is None:
            return np.ones(len(self), dtype=bool)
        start, end = self.cells(resolution)
        return check_inside(within.contains(start) & within.contains(end))

    def __repr__(self) -> str:
        rejected = sum(part.rows for part in self.source.rejected.values())
        return f"Trips({len(self):,} trips, {rejected:,} rows rejected; {', '.join(self.table.column_names)})"


@lists_read_options
def read_trips(source: Any, *, attributes: Sequence[str] | None = None, **options: Unpack[ReadOptions]) -> Trips:
    """Read trips with coordinates, and reject bad rows.

    Parameters
    ----------
    source : path, sequence of paths, or table
        See `odkanon.InputSpec`.
    attributes : sequence of str, optional
        Further columns to keep; by default those of sex, age and category.
    **options
        How to read it; see `odkanon.InputSpec`.

    Notes
    -----
    A row is rejected, and counted, for the first of these reasons: the filter does not match; missing, unreadable,
    infinite or out-of-range coordinates; the point (0, 0); a missing, unreadable or non-positive weight; an unreadable
    time; an exact copy of another row of the same person. A column that is empty throughout counts as absent. A trip
    without a person id is kept, but does not count towards persons. Ids that differ in notation only (``1`` and
    ``1.0``) are one person, and placeholders (``NA``, ``null``) are missing ids.

    Examples
    --------
    >>> from odkanon import make_survey
    >>> trips = read_trips(make_survey(), where='sex == "Woman"')
    >>> len(trips) + sum(each.rows for each in trips.source.rejected.values())
    81291
    """
    return spec_to_trips(InputSpec(source, **options), attributes)


def spec_to_trips(
    spec: InputSpec, attributes: Sequence[str] | None = None, *, table: SourceTable | None = None
) -> Trips:
    """Read the trips of an input, whose table may be open already; see `read_trips`."""
    table = spec.open() if table is None else table
    found = spec.resolved(table, attributes or ())
    if any(name not in found for name in COORDINATES):
        raise missing_columns(table, found, COORDINATES)
    kept = attribute_columns(table, found, attributes)
    times = spec.times(table, found)
    values = trip_values(found, times) | {name: quote_name(column) for name, column in kept.items()}
    identity = trip_identity(found, times) | {name: value_text(column) for name, column in kept.items()}
    values |= {f"{name} zoned": time.zoned for name, time in times.items()}
    checks = trip_checks(table, found, degrees=spec.crs is None, times=spec.uses_hours)
    rows = checked_rows(table, found, values, checks, where=spec.check(table, found, times), identity=identity)
    source = spec.account(rows.source, table, {*found.values(), *kept.values()})
    rows = replace(rows, source=with_example(source, table, found, checks))
    hint_at_swap(rows.source.rejected)
    if spec.crs is not None:
        check_not_degrees([rows.table.column(name).to_numpy() for name in COORDINATES], spec.crs)
        rows = _to_degrees(rows, spec.crs)
    if len(rows.table) == 0:
        raise no_rows(table, rows.source, example=example_of(table, found, checks, rows.source.rejected))
    rows = without_offsets(table, found, rows, times)
    warn_of_missing(rows.contributors)
    warn_of_places([rows.table.column(name).to_numpy() for name in COORDINATES])
    return Trips(rows.table, rows.weight, rows.scale, rows.contributors, rows.with_mean_weight(), spec.polygons)


def _to_degrees(rows: CheckedRows, crs: str) -> CheckedRows:
    """Return rows with coordinates in degrees (WGS 84); those off the globe are rejected."""
    table = rows.table
    given = [table.column(name).to_numpy() for name in COORDINATES]
    degrees, good = ends_in_degrees(given, crs)
    warn_of_reference_system([each[good] for each in given], [each[good] for each in degrees], crs)
    for name, values in zip(COORDINATES, degrees, strict=True):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return drop_rows(replace(rows, table=table), good, off_globe(crs))


def check_inside(inside: Bools) -> Bools:
    """Return which records are inside an area; raise if none is."""
    if not inside.any():
        raise InputError("no trip has both ends inside the area; check its cells or outline")
    return inside


def rejected_share(source: Source) -> float:
    """Return the share of rows that cannot be used, among those that a filter and an area select."""
    return sum(unusable_rows(source).values()) / max(selected_rows(source), 1)


def selected_rows(source: Source) -> int:
    """Return the number of rows that no filter and no area leaves out."""
    return source.rows - sum(source.rejected[name].rows for name in _LEFT_OUT if name in source.rejected)


def unusable_rows(source: Source) -> dict[str, int]:
    """Return the number of rows that cannot be used, by reason: those rejected other than by a filter or an area."""
    return {name: part.rows for name, part in source.rejected.items() if name not in _LEFT_OUT}


def with_example(source: Source, table: ExampleSource, found: Mapping[str, str], checks: Sequence[RowCheck]) -> Source:
    """Return an account with an example of a rejected row, if many are rejected."""
    if rejected_share(source) <= MANY_REJECTED:
        return source
    rejected = {name: part for name, part in source.rejected.items() if name != FILTERED}
    return replace(source, example=example_of(table, found, checks, rejected))


def trip_values(found: Mapping[str, str], times: Mapping[str, TimeColumn]) -> dict[str, str]:
    """Return the SQL of the coordinates and times of a trip."""
    numbers = numbers_sql([found[name] for name in COORDINATES])
    return dict(zip(COORDINATES, numbers, strict=True)) | {name: time.clock for name, time in times.items()}


def trip_identity(found: Mapping[str, str], times: Mapping[str, TimeColumn]) -> dict[str, str]:
    """Return the SQL of values that are equal in duplicates, regardless of the time format."""
    return trip_values(found, {}) | {name: time.moment for name, time in times.items()}


def trip_checks(
    table: TypedColumns, found: Mapping[str, str], *, degrees: bool = True, times: bool = True
) -> list[RowCheck]:
    """Return the row checks of trips.

    Parameters
    ----------
    degrees : bool
        Whether coordinates are degrees, whose range is checked.
    times : bool
        Whether a filter refers to times, which then have to be readable. The same holds where persons are known, since
        duplicates are found by person and time.
    """
    places = [found[name] for name in COORDINATES]
    ends = coordinate_checks(places[0::2], places[1::2], degrees=degrees)
    needed = TIMES if times or "person" in found else ()
    return [*ends, *time_checks(table, found, [name for name in needed if name in found])]


def time_checks(table: TypedColumns, found: Mapping[str, str], times: Iterable[str]) -> list[RowCheck]:
    """Return the row checks of times that must be readable; stored timestamps always are."""
    unread = {name: unreadable_time(table, found[name]) for name in times}
    return [RowCheck(f"whose {name} cannot be read", each) for name, each in unread.items() if each != "false"]


def without_offsets(
    table: SourceTable, found: Mapping[str, str], rows: CheckedRows, times: Mapping[str, TimeColumn]
) -> CheckedRows:
    """Drop the columns that mark times with a UTC offset; raise if only some of the times have one."""
    for name in times:
        written = rows.table.column(f"{name} zoned").to_numpy()
        known = np.asarray(rows.table.column(name).is_valid())
        zoned, plain = int(np.count_nonzero(written & known)), int(np.count_nonzero(~written & known))
        if zoned and plain:
            raise mixed_offsets(table.name, found[name], zoned, plain)
    return replace(rows, table=rows.table.drop_columns([f"{name} zoned" for name in times]))
