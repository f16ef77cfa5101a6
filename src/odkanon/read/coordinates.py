"""Coordinates of trips and points: row checks in SQL, other reference systems, and a check for swapped latitudes."""

from __future__ import annotations

import base64
import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools
from odkanon.core.sql import quote_names
from odkanon.errors import InputError, MissingExtraError
from odkanon.model.provenance import Rejected
from odkanon.read.tables.table import RowCheck
from odkanon.read.trip_checks import finite
from odkanon.zoning.cells import Cells, Floats, latlng_to_cell

log = logging.getLogger(__name__)

SWAPPED = "with a latitude out of range, which would fit as longitude"
OUT_OF_RANGE = "with coordinates out of range"
DECIMAL_COMMA = "with coordinates that are not numbers: a decimal comma, where a point is needed (48.85)"

SAMPLE = 10_000
_LAND = (
    "c-oy%JxIeq6n>YhHi(!G6@MYYBBFvyaS#VvP|(pqH^If#A5g@}WDx8oI0+6qiQp`V4lRP1LBYXARGL9hP)G-BQ?2*ByVR08`a#~k"
    "+<otR-+R%Wle&Wu_W9~*PG2g)4mHe}7<U<-k+Xaj5g+k8cmHjgS<JEr6J12tL>~na@)I?Loete+;Q9@KBtv8lKmmdQSP{hnNCa-a"
    "j6`vO79+ZilF4OXhS3QDL$`pOEN}o7XtL@?=Cq>n?Ay@MWt5w_LJfx!`w?02VIokEXGDvJ2QyHG-wDEdm`e&yxq(+<sA34v(K@AG"
    "8#MBp$*66yrlOw43)XbEJB!8G;iar9fd##r)g1`hN-g0I+8vlTfcPURTP$r&1$p?uTNheL>H0?hW0D&P`}%gn$0#sm4b-$1c<(CZ"
    "ku7B<=Uq-+Bf>3RM_e{LXU?fwU#3nQ&2+m*7AvhAWJL-;mc)N32`TMKwV2-$z~J8kqpRoy&4>lXV;<jDN1Tiw3$sU`{Z3=~d4{q@"
    "2mV5_%Zbp0v2d<7X;u-8K(5Nz9@s)RK#U(L_&0t4YM=m?"
)
"""One bit per H3 cell of resolution 2, in ascending order: whether it has land north of 60 degrees south.

Derived from the public-domain coastlines of Natural Earth, 1:50 million.
"""


def numbers_sql(columns: Sequence[str]) -> list[str]:
    """Return the SQL of columns as numbers; NULL where a value is not one."""
    quoted = quote_names(columns)
    return [f"TRY_CAST({quoted[name]} AS DOUBLE)" for name in columns]


def check_degrees(bounds: Sequence[float], name: object) -> None:
    """Raise if bounds (west, south, east, north) cannot be degrees of longitude and latitude."""
    west, south, east, north = bounds
    if not (-180 <= west <= east <= 180 and -90 <= south <= north <= 90):
        raise InputError(
            f"{name} is not in degrees: x ranges from {west:g} to {east:g} and y from {south:g} to {north:g}; GeoJSON "
            "uses longitude and latitude (WGS 84), so convert it first"
        )


def coordinate_checks(lats: Sequence[str], lons: Sequence[str], *, degrees: bool = True) -> list[RowCheck]:
    """Return the checks of coordinates.

    Parameters
    ----------
    lats, lons : sequence of str
        Columns, one of each per place in a row.
    degrees : bool
        Whether they are degrees, whose range is known, rather than metres or the like.
    """
    quoted, number = quote_names((*lats, *lons)), numbers_sql((*lats, *lons))
    raw = [quoted[name] for name in (*lats, *lons)]
    lat, lon = number[: len(lats)], number[len(lats) :]
    null_island = [f"({y} = 0 AND {x} = 0)" for y, x in zip(lat, lon, strict=True)]
    comma = [
        f"({value} IS NULL AND TRY_CAST(replace(CAST({column} AS VARCHAR), ',', '.') AS DOUBLE) IS NOT NULL)"
        for value, column in zip(number, raw, strict=True)
    ]
    within = [*(f"abs({value}) <= 90" for value in lat), *(f"abs({value}) <= 180" for value in lon)]
    fine = within if degrees else [finite(value) for value in number]
    unless = f"{' AND '.join(fine)} AND NOT ({' OR '.join(null_island)})"
    checks = [
        RowCheck("with missing coordinates", " OR ".join(f"{column} IS NULL" for column in raw)),
        RowCheck(DECIMAL_COMMA, " OR ".join(comma)),
        RowCheck("with coordinates that are not numbers", " OR ".join(f"{value} IS NULL" for value in number)),
        RowCheck("with NaN or infinite coordinates", " OR ".join(f"NOT {finite(value)}" for value in number)),
        *(_range_checks(lat, lon) if degrees else []),
        RowCheck("at latitude 0, longitude 0, where devices put a missing fix", " OR ".join(null_island)),
    ]
    return [replace(check, unless=unless) for check in checks]


def _range_checks(lat: Sequence[str], lon: Sequence[str]) -> list[RowCheck]:
    out_of_range = [f"abs({value}) > 90" for value in lat] + [f"abs({value}) > 180" for value in lon]
    swapped = [f"abs({value}) <= 180" for value in lat] + [f"abs({value}) <= 90" for value in lon]
    return [
        RowCheck(SWAPPED, f"({' OR '.join(out_of_range)}) AND {' AND '.join(swapped)}"),
        RowCheck(OUT_OF_RANGE, " OR ".join(out_of_range)),
    ]


def hint_at_swap(rejected: Mapping[str, Rejected]) -> None:
    """Warn where latitudes are out of range but would fit as longitudes, or where coordinates are not degrees."""
    if SWAPPED in rejected:
        log.warning("%s rows have a latitude out of range; are lat and lon swapped?", f"{rejected[SWAPPED].rows:,}")
    elif OUT_OF_RANGE in rejected:
        log.warning(
            "%s rows have coordinates out of range; if they are not degrees, name their reference system",
            f"{rejected[OUT_OF_RANGE].rows:,}",
            extra={"option": "crs"},
        )


def warn_if_misplaced(lat: Floats, lon: Floats) -> None:
    """Warn where most points are in the sea or in Antarctica, but on land with latitude and longitude swapped.

    Many places are on land both ways (Rome, Madrid), so silence proves nothing.
    """
    few = slice(None, None, max(len(lat) // SAMPLE, 1))
    lat, lon = lat[few], lon[few]
    swappable = np.abs(lon) <= 90
    if _on_land(lat, lon).mean() < 0.5 < (swappable & _on_land(np.where(swappable, lon, 0.0), lat)).mean():
        log.warning(
            "most trips are in the sea or in Antarctica, around latitude %.2f, longitude %.2f; swap lat and lon?",
            np.median(lat),
            np.median(lon),
        )


def _on_land(lat: Floats, lon: Floats) -> Bools:
    cells, land = _land()
    found: Bools = land[np.searchsorted(cells, latlng_to_cell(lat, lon, 2))]
    return found


@cache
def _land() -> tuple[Cells, npt.NDArray[np.bool_]]:
    import h3.api.numpy_int as h3

    cells = np.sort(h3.uncompact_cells(h3.get_res0_cells(), 2))
    packed = np.frombuffer(zlib.decompress(base64.b85decode(_LAND)), dtype=np.uint8)
    return cells, np.unpackbits(packed, count=len(cells)).astype(bool)


def ends_in_degrees(ends: list[Floats], crs: str) -> tuple[list[Floats], Bools]:
    """Return ``start_lat, start_lon, end_lat, end_lon`` in degrees (WGS 84), and which rows are on the globe.

    Parameters
    ----------
    ends : list of array
        The same in another reference system: y, x, y, x.
    crs : str
        The reference system.
    """
    transformer = _transformer(crs)
    degrees, good = [], np.ones(len(ends[0]), dtype=bool)
    for y, x in (ends[:2], ends[2:]):
        lon, lat = transformer.transform(x, y)
        good &= np.isfinite(lon) & np.isfinite(lat) & (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        degrees += [lat, lon]
    return degrees, good


def off_globe(crs: str) -> str:
    """Return the reason to reject rows outside the domain of a reference system."""
    return f"that {crs} cannot place on the globe"


def check_crs(crs: str) -> None:
    """Raise if a reference system is unknown."""
    _transformer(crs)


def _transformer(crs: str) -> Any:
    try:
        import pyproj
    except ImportError:
        raise MissingExtraError.needed_for("converting coordinates", "pyproj", "geo") from None
    try:
        return pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        raise InputError(f"unknown reference system {crs!r}; give one such as EPSG:32719") from None
