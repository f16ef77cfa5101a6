"""What share of each zone of a release lies in each of the user's zones: by area, or by a weight that is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.read.tables.open_table import open_table
from odkanon.zoning.cells import Floats, cell_to_latlng, is_valid_cell, str_to_cell
from odkanon.zoning.spherical_geometry import Projection

Shapes = npt.NDArray[Any]
_WHOLE = 1e-9
"""A share that differs from 1 or 0 by less is 1 or 0: borders that are the same are never quite the same in numbers."""

_AT_ONCE = 1 << 16
"""Shapes that are intersected at the same time; bounds the memory."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Points that weigh something, such as residents: ``lat``, ``lon`` in degrees, and ``weight``."""

    lat: Floats
    lon: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class ZoneShares:
    """Shares of zones, sorted by zone; the last place is outside of all.

    Attributes
    ----------
    zone, place : array of int
        Numbers of both.
    share : array of float
        The shares of a zone add up to 1.
    size : array of float
        For each zone, what is divided: its area in square metres or its weight.
    """

    zone: Ints
    place: Ints
    share: Floats
    size: Floats


def read_weights(path: str | Path) -> Weights:
    """Read where weight lies from a table ``lat, lon, weight`` or ``cell, weight`` (H3 cells)."""
    table = open_table(path)
    columns = {name.lower(): name for name in table.columns}
    if "weight" not in columns or not ({"lat", "lon"} <= columns.keys() or "cell" in columns):
        raise InputError(
            f"{path} should have the columns lat, lon, weight or cell, weight; it has {list(table.columns)}"
        )
    weight = _numbers(table.fetch({"v": f'TRY_CAST("{columns["weight"]}" AS DOUBLE)'}))
    if "cell" in columns:
        text = table.fetch({"v": f'CAST("{columns["cell"]}" AS VARCHAR)'}).column("v").combine_chunks()
        cells = str_to_cell(text)
        good = is_valid_cell(cells)
        lat, lon = cell_to_latlng(np.where(good, cells, np.uint64(0x8A1FB4671017FFF)))
    else:
        lat, lon = (_numbers(table.fetch({"v": f'TRY_CAST("{columns[name]}" AS DOUBLE)'})) for name in ("lat", "lon"))
        good = (np.abs(lat) <= 90) & (np.abs(lon) <= 360)
    bad = ~good | ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        raise InputError(f"{path}: row {int(np.flatnonzero(bad)[0]) + 1} has no place on the globe, or no weight >= 0")
    return Weights(lat, lon, weight)


def _numbers(table: pa.Table) -> Floats:
    return np.asarray(table.column("v").to_numpy(zero_copy_only=False), dtype=np.float64)


def zone_shares(zones: Shapes, places: Shapes, weights: Weights | None = None) -> ZoneShares:
    """Return how zones are divided among places; both are shapely geometries in degrees, None where not known.

    A zone is divided by area on an equal-area map. With weights it is divided by those of the points in it, and by area
    if there are none. What lies in no place, and zones of which it is not known where they lie, is outside.
    """
    import shapely

    known = ~shapely.is_missing(zones)
    west, south, east, north = shapely.total_bounds(np.concatenate([zones[known], places]))
    about = Projection((south + north) / 2, (west + east) / 2)
    flat_zones, flat_places = _flat(zones, about), _flat(places, about)
    area = np.where(known, shapely.area(flat_zones), 1.0)
    zone, place, part = _overlaps(flat_zones, flat_places)
    share = part / area[zone]
    size = area
    if weights is not None:
        zone, place, share, size = _by_weight((zone, place, share), area, (flat_zones, flat_places), weights, about)
    return _complete(zone, place, share, size, len(places))


def _flat(shapes: Shapes, about: Projection) -> Shapes:
    import shapely

    def transform(points: Floats) -> Floats:
        return np.stack(about.to_metres(points[:, 1], points[:, 0]), axis=1)

    return np.asarray(shapely.make_valid(shapely.transform(shapes, transform)))


def _overlaps(zones: Shapes, places: Shapes) -> tuple[Ints, Ints, Floats]:
    """Return which zones and places meet, and the area that they have in common.

    Where one lies in the other it is the area of that one; to find this out takes a small part of the time of
    intersecting them.
    """
    import shapely

    shapely.prepare(places)
    shapely.prepare(zones)
    zone, place = shapely.STRtree(places).query(zones, predicate="intersects")
    area = shapely.area(zones)[zone]
    around = shapely.covers(zones[zone], places[place])
    area[around] = shapely.area(places)[place[around]]
    rest = np.flatnonzero(~around & ~shapely.covers(places[place], zones[zone]))
    for first in range(0, len(rest), _AT_ONCE):
        some = rest[first : first + _AT_ONCE]
        area[some] = shapely.area(shapely.intersection(zones[zone[some]], places[place[some]]))
    return zone.astype(np.int64), place.astype(np.int64), area


def _by_weight(
    shares: tuple[Ints, Ints, Floats],
    area: Floats,
    shapes: tuple[Shapes, Shapes],
    weights: Weights,
    about: Projection,
) -> tuple[Ints, Ints, Floats, Floats]:
    import shapely

    points = shapely.points(*about.to_metres(weights.lat, weights.lon))
    of_place = np.full(len(points), len(shapes[1]))
    point, place = shapely.STRtree(shapes[1]).query(points, predicate="intersects")
    of_place[point[::-1]] = place[::-1]  # on a border the first place counts
    point, zone = shapely.STRtree(shapes[0]).query(points, predicate="intersects")
    total = np.bincount(zone, weights=weights.weight[point], minlength=len(area))
    weighed = total > 0
    kept = ~weighed[shares[0]]
    used = weighed[zone]
    part = weights.weight[point[used]] / total[zone[used]]
    return (
        np.concatenate([shares[0][kept], zone[used]]),
        np.concatenate([shares[1][kept], of_place[point[used]]]),
        np.concatenate([shares[2][kept], part]),
        np.where(weighed, total, area),
    )


def _complete(zone: Ints, place: Ints, share: Floats, size: Floats, places: int) -> ZoneShares:
    """Add what lies outside; where places overlap, what they have in common is divided."""
    total = np.bincount(zone, weights=share, minlength=len(size))
    share = share / np.maximum(total, 1.0)[zone]
    rest = 1 - np.minimum(total, 1.0)
    zone = np.concatenate([zone, np.arange(len(size))])
    place = np.concatenate([place, np.full(len(size), places)])
    share = np.concatenate([share, rest])
    key = zone * (places + 1) + place
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    share, key = np.add.reduceat(share[order], starts), key[order][starts]
    # What is next to nothing is noise; the rest of the zone takes it over, so that shares still add up to 1.
    real = share > _WHOLE
    key, share = key[real], share[real]
    zone, place = key // (places + 1), key % (places + 1)
    share = share / np.bincount(zone, weights=share, minlength=len(size))[zone]
    return ZoneShares(zone, place, share, size)
