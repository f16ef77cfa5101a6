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
from odkanon.core.registry import import_extra
from odkanon.core.sql import quote_names
from odkanon.errors import InputError
from odkanon.model.provenance import Rejected
from odkanon.read.tables.table import RowCheck
from odkanon.read.trip_checks import finite
from odkanon.zoning.cells import KM_PER_DEGREE, Cells, Floats, latlng_to_cell

log = logging.getLogger(__name__)

NO_COORDINATES = "with missing coordinates"
SWAPPED = "with a latitude out of range, which would fit as longitude"
OUT_OF_RANGE = "with coordinates out of range"
DECIMAL_COMMA = "with coordinates that are not numbers: a decimal comma, where a point is needed (48.85)"

SAMPLE = 10_000
FAR_KM, FAR = 100.0, 6.0
"""An end of a trip is an outlier beyond so many km, and beyond so many times the typical distance from the middle."""
FEW_OUTLIERS, MIN_OUTLIERS = 10, 0.005
"""The number and the share of trips with such ends from which on a warning is due."""
FEW_SWAPPED = 3
"""The same number where most of these ends lie among the others once latitude and longitude are swapped."""
CLUSTER, GAP, GAP_KM = 0.3, 2.0, 50.0
"""Ends are in two places if a gap follows the nearest CLUSTER of them: the next are GAP times as far plus GAP_KM."""
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
    quoted = quote_names((*lats, *lons))
    raw = [quoted[name] for name in (*lats, *lons)]
    number = [f"TRY_CAST({column} AS DOUBLE)" for column in raw]
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
        RowCheck(NO_COORDINATES, " OR ".join(f"{column} IS NULL" for column in raw)),
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


def warn_of_places(ends: Sequence[Floats], *, first: bool = False) -> None:
    """Warn of trips that are probably in a wrong place: in the sea, far from all others, or with swapped coordinates.

    Parameters
    ----------
    ends : sequence of array
        ``start_lat, start_lon, end_lat, end_lon`` in degrees.
    first : bool
        Whether these are the first trips only.

    Notes
    -----
    Many places are on land both ways (Rome, Madrid), so silence proves nothing.
    """
    few = slice(None, None, max(len(ends[0]) // SAMPLE, 1))
    lat, lon = (np.concatenate([side[few] for side in ends[at::2]]) for at in (0, 1))
    on_land, swappable = _on_land(lat, lon).mean(), np.abs(lon) <= 90
    middle = float(np.median(lat)), float(np.median(lon))
    if on_land >= 0.5:
        _warn_of_outliers(ends, *_surroundings(lat, lon, middle), f"{'the first ' * first}{len(ends[0]):,}")
    elif (swappable & _on_land(np.where(swappable, lon, 0.0), lat)).mean() > 0.5:
        log.warning(
            "most trips are in the sea or in Antarctica, around latitude %.2f, longitude %.2f; swap lat and lon?",
            *middle,
        )
    else:
        log.warning(
            "most trips are in the sea or in Antarctica, around latitude %.2f, longitude %.2f; are the columns of the "
            "coordinates and their reference system the right ones?",
            *middle,
            extra={"option": "crs"},
        )


def _surroundings(lat: Floats, lon: Floats, middle: tuple[float, float]) -> tuple[tuple[float, float], float]:
    """Return the middle of most ends, and the distance in km beyond which an end is far from them.

    With two cities, the middle of all is in neither: there, it is that of the square degree with most ends.
    """
    _, square, counts = np.unique(np.floor(lat) * 1000 + np.floor(lon), return_inverse=True, return_counts=True)
    busiest = square == np.argmax(counts)
    centre = float(np.median(lat[busiest])), float(np.median(lon[busiest]))
    away = np.sort(_kilometres(lat, lon, centre))
    nearest = int(CLUSTER * len(away))
    gaps = nearest + np.flatnonzero(away[nearest + 1 :] > GAP * away[nearest:-1] + GAP_KM)
    typical = float(np.quantile(_kilometres(lat, lon, middle), 0.75))
    limit = max(FAR_KM, FAR * typical)
    if not len(gaps) or away[gaps[0]] + GAP_KM >= limit:
        return middle, limit
    return centre, float(away[gaps[0]]) + GAP_KM


def _warn_of_outliers(ends: Sequence[Floats], middle: tuple[float, float], limit: float, trips: str) -> None:
    """Warn of trips with an end more than ``limit`` km from the middle of the others."""
    far = [_kilometres(lat, lon, middle) > limit for lat, lon in (ends[:2], ends[2:])]
    count = int(np.count_nonzero(far[0] | far[1]))
    if not count:
        return
    which = int(np.count_nonzero(far[1]) > np.count_nonzero(far[0]))
    lat, lon = (side[far[which]] for side in ends[2 * which : 2 * which + 2])
    swapped = (np.abs(lon) <= 90) & (_kilometres(lon, lat, middle) <= limit)
    mostly = swapped.mean() > 0.5
    if count < (FEW_SWAPPED if mostly else max(FEW_OUTLIERS, MIN_OUTLIERS * len(ends[0]))):
        return
    at = int(np.argmax(swapped)) if mostly else 0
    log.warning(
        "%s of %s trips start or end more than %s km away from the middle of the others (latitude %.2f, longitude "
        "%.2f), for instance at %s_lat = %.5f, %s_lon = %.5f; %s",
        *(f"{count:,}", trips, f"{limit:,.0f}", *middle),
        *(("start", "end")[which], lat[at], ("start", "end")[which], lon[at]),
        "with latitude and longitude swapped they are among them, so correct these rows"
        if mostly
        else "if they do not belong there, leave them out",
        extra={} if mostly else {"option": "within"},
    )


def _kilometres(lat: Floats, lon: Floats, middle: tuple[float, float]) -> Floats:
    """Return roughly the distances of points from a point."""
    east = ((lon - middle[1] + 180) % 360 - 180) * np.cos(np.radians(middle[0]))
    return np.asarray(KM_PER_DEGREE * np.hypot(lat - middle[0], east))


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


def check_not_degrees(ends: Sequence[Floats], crs: str) -> None:
    """Raise if coordinates in a projected reference system are degrees already."""
    y, x = (np.abs(np.concatenate(list(ends[first::2]))) for first in (0, 1))
    known = np.isfinite(x) & np.isfinite(y)
    degrees = bool(known.any() and (y[known] <= 90).all() and (x[known] <= 180).all())
    if degrees and _transformer(crs).source_crs.is_projected:
        first = int(np.argmax(np.isfinite(ends[0]) & np.isfinite(ends[1])))
        raise InputError(
            f"the coordinates are degrees already (start_lat = {ends[0][first]:g}, start_lon = {ends[1][first]:g}), "
            f"not in {crs}, whose units are metres or the like; leave out the reference system",
            option="crs",
        )


def warn_of_reference_system(given: Sequence[Floats], degrees: Sequence[Floats], crs: str) -> None:
    """Warn where most trips start outside the area that a reference system is made for."""
    area = _transformer(crs).source_crs.area_of_use
    if area is None or area.west >= area.east or not len(degrees[0]):
        return
    lat, lon = degrees[:2]
    outside = ~((lat >= area.south) & (lat <= area.north) & (lon >= area.west - 1) & (lon <= area.east + 1))
    if outside.mean() > 0.5:
        at = int(np.argmax(outside))
        log.warning(
            "most trips start outside the area that %s is made for (longitude %g to %g, latitude %g to %g), for "
            "instance start_lat = %.1f, start_lon = %.1f, which is latitude %.2f, longitude %.2f; is it the right one?",
            *(crs, area.west, area.east, area.south, area.north),
            *(given[0][at], given[1][at], lat[at], lon[at]),
            extra={"option": "crs"},
        )


def utm_neighbours(crs: str, lon: float) -> str | None:
    """Return where the same numbers are in the next zones of UTM, which fit as well; None if it is not UTM."""
    zone = _transformer(crs).source_crs.utm_zone
    if zone is None:
        return None
    number = int(zone[:-1])
    others = [(number - 2) % 60 + 1, number % 60 + 1]
    west, east = ((lon + step + 180) % 360 - 180 for step in (-6, 6))
    same = f"the same numbers are at longitude {west:.2f} and {east:.2f}"
    return f"In the next UTM zones, {others[0]} and {others[1]}, {same}"


def off_globe(crs: str) -> str:
    """Return the reason to reject rows outside the domain of a reference system."""
    return f"that {crs} cannot place on the globe"


def check_crs(crs: str) -> None:
    """Raise if a reference system is unknown."""
    _transformer(crs)


def _transformer(crs: str) -> Any:
    pyproj = import_extra("pyproj", purpose="converting coordinates", extra="geo")
    try:
        return pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        raise InputError(f"unknown reference system {crs!r}; give one such as EPSG:32719") from None
