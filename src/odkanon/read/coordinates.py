"""Row checks of coordinates, for the two ends of trips and for single points alike, in SQL that every engine knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odkanon.errors import InputError
from odkanon.read.tables.open_table import Check, quote_name
from odkanon.read.trip_checks import finite

SWAPPED = "with a latitude out of range, which would fit as longitude"
OUT_OF_RANGE = "with coordinates out of range"
DECIMAL_COMMA = "with coordinates that are not numbers: a decimal comma, where a point is needed (48.85)"


def number_sql(column: str) -> str:
    """Return the SQL for a column as a number; NULL where it is none."""
    return f"TRY_CAST({quote_name(column)} AS DOUBLE)"


def check_degrees(bounds: Sequence[float], name: object) -> None:
    """Raise if what outlines span (west, south, east, north) cannot be degrees of longitude and latitude."""
    west, south, east, north = bounds
    if not (-180 <= west <= east <= 180 and -90 <= south <= north <= 90):
        raise InputError(
            f"{name} is not in degrees: x goes from {west:g} to {east:g} and y from {south:g} to {north:g}; GeoJSON "
            "has longitude and latitude (WGS 84), so convert it first"
        )


def coordinate_checks(lats: Sequence[str], lons: Sequence[str], *, degrees: bool = True) -> list[Check]:
    """Return the reasons to turn a row away for its coordinates.

    Parameters
    ----------
    lats, lons : sequence of str
        Columns, one of each for every place in a row.
    degrees : bool
        Whether they are degrees, whose range is known; otherwise metres or the like.
    """
    raw = [quote_name(name) for name in (*lats, *lons)]
    lat, lon = [number_sql(name) for name in lats], [number_sql(name) for name in lons]
    number = [*lat, *lon]
    null_island = [f"({y} = 0 AND {x} = 0)" for y, x in zip(lat, lon, strict=True)]
    comma = [
        f"({value} IS NULL AND TRY_CAST(replace(CAST({column} AS VARCHAR), ',', '.') AS DOUBLE) IS NOT NULL)"
        for value, column in zip(number, raw, strict=True)
    ]
    within = [*(f"abs({value}) <= 90" for value in lat), *(f"abs({value}) <= 180" for value in lon)]
    fine = within if degrees else [finite(value) for value in number]
    unless = f"{' AND '.join(fine)} AND NOT ({' OR '.join(null_island)})"
    checks = [
        Check("with missing coordinates", " OR ".join(f"{column} IS NULL" for column in raw)),
        Check(DECIMAL_COMMA, " OR ".join(comma)),
        Check("with coordinates that are not numbers", " OR ".join(f"{value} IS NULL" for value in number)),
        Check("with NaN or infinite coordinates", " OR ".join(f"NOT {finite(value)}" for value in number)),
        *(_range_checks(lat, lon) if degrees else []),
        Check("at latitude 0, longitude 0, where devices put a missing fix", " OR ".join(null_island)),
    ]
    return [replace(check, unless=unless) for check in checks]


def _range_checks(lat: Sequence[str], lon: Sequence[str]) -> list[Check]:
    out_of_range = [f"abs({value}) > 90" for value in lat] + [f"abs({value}) > 180" for value in lon]
    swapped = [f"abs({value}) <= 180" for value in lat] + [f"abs({value}) <= 90" for value in lon]
    return [
        Check(SWAPPED, f"({' OR '.join(out_of_range)}) AND {' AND '.join(swapped)}"),
        Check(OUT_OF_RANGE, " OR ".join(out_of_range)),
    ]
