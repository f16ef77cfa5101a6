"""Shares of the zones of a release in target zones, by area or by given weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.core.sql import quote_name
from odkanon.errors import InputError
from odkanon.read.tables.open_table import open_table
from odkanon.zoning.cells import Floats, cell_to_latlng, is_valid_cell, str_to_cell
from odkanon.zoning.spherical_geometry import Projection

Geometries = npt.NDArray[Any]
_TOLERANCE = 1e-9
"""Shares closer than this to 0 or 1 are 0 or 1: coordinates of shared borders are never quite equal."""
_AT_ONCE = 1 << 16
"""Geometries that are intersected at the same time; bounds the memory."""


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """Points with a weight, such as residents: ``lat``, ``lon`` in degrees, and ``weight``."""

    lat: Floats
    lon: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class ZoneShares:
    """Shares of source zones in target zones, sorted by source; the last target is outside of all."""

    source: Ints
    target: Ints
    """Positions of both."""
    share: Floats
    """The shares of a source zone add up to 1."""
    size: Floats
    """For each source zone, what is divided: its area in square metres, or its weight."""


def read_weights(path: str | Path) -> WeightedPoints:
    """Read a table ``lat, lon, weight`` or ``cell, weight`` (H3 cells)."""
    table = open_table(path)
    columns = {name.lower(): name for name in table.columns}
    if "weight" not in columns or not ({"lat", "lon"} <= columns.keys() or "cell" in columns):
        raise InputError(
            f"{path} should have the columns lat, lon, weight or cell, weight; it has {list(table.columns)}"
        )

    def numbers(column: str) -> Floats:
        values = table.fetch({"v": f"TRY_CAST({quote_name(columns[column])} AS DOUBLE)"}).column("v")
        return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)

    weight = numbers("weight")
    if "cell" in columns:
        text = table.fetch({"v": f"CAST({quote_name(columns['cell'])} AS VARCHAR)"}).column("v").combine_chunks()
        cells = str_to_cell(text)
        valid = is_valid_cell(cells)
        lat, lon = cell_to_latlng(np.where(valid, cells, np.uint64(0x8A1FB4671017FFF)))
    else:
        lat, lon = numbers("lat"), numbers("lon")
        valid = (np.abs(lat) <= 90) & (np.abs(lon) <= 360)
    invalid = np.flatnonzero(~valid | ~np.isfinite(weight) | (weight < 0))
    if len(invalid):
        raise InputError(f"{path}: row {int(invalid[0]) + 1} has no valid coordinates, or no weight >= 0")
    return WeightedPoints(lat, lon, weight)


def zone_shares(sources: Geometries, targets: Geometries, weights: WeightedPoints | None = None) -> ZoneShares:
    """Return the shares of source zones in target zones, both shapely geometries in degrees; None where unknown.

    Zones are divided by area on an equal-area map; with weights, by those of the points inside, and by area where
    there are none. What lies in no target zone is outside, and so are source zones of unknown outline.
    """
    import shapely

    known = ~shapely.is_missing(sources)
    west, south, east, north = shapely.total_bounds(np.concatenate([sources[known], targets]))
    projection = Projection((south + north) / 2, (west + east) / 2)
    flat_sources, flat_targets = _project(sources, projection), _project(targets, projection)
    area = np.where(known, shapely.area(flat_sources), 1.0)
    source, target, part = _overlaps(flat_sources, flat_targets)
    shares = ZoneShares(source, target, part / area[source], area)
    if weights is not None:
        points = shapely.points(*projection.to_metres(weights.lat, weights.lon))
        shares = _by_weight(shares, (flat_sources, flat_targets), points, weights.weight)
    return _complete(shares, len(targets))


def _project(geometries: Geometries, projection: Projection) -> Geometries:
    import shapely

    def transform(points: Floats) -> Floats:
        return np.stack(projection.to_metres(points[:, 1], points[:, 0]), axis=1)

    return np.asarray(shapely.make_valid(shapely.transform(geometries, transform)))


def _overlaps(sources: Geometries, targets: Geometries) -> tuple[Ints, Ints, Floats]:
    """Return the pairs of source and target zones that intersect, and the area of each intersection.

    Where one covers the other it is the area of the smaller one, which is much faster than intersecting them.
    """
    import shapely

    shapely.prepare(targets)
    shapely.prepare(sources)
    source, target = shapely.STRtree(targets).query(sources, predicate="intersects")
    area = shapely.area(sources)[source]
    covers = shapely.covers(sources[source], targets[target])
    area[covers] = shapely.area(targets)[target[covers]]
    partial = np.flatnonzero(~covers & ~shapely.covers(targets[target], sources[source]))
    for first in range(0, len(partial), _AT_ONCE):
        some = partial[first : first + _AT_ONCE]
        area[some] = shapely.area(shapely.intersection(sources[source[some]], targets[target[some]]))
    return source.astype(np.int64), target.astype(np.int64), area


def _by_weight(
    shares: ZoneShares, zones: tuple[Geometries, Geometries], points: Geometries, weight: Floats
) -> ZoneShares:
    """Return shares by weight for the source zones that have any; the others stay as they are."""
    import shapely

    target_of_point = np.full(len(points), len(zones[1]))
    point, target = shapely.STRtree(zones[1]).query(points, predicate="intersects")
    target_of_point[point[::-1]] = target[::-1]  # a point on a border belongs to the first target
    point, source = shapely.STRtree(zones[0]).query(points, predicate="intersects")
    total = np.bincount(source, weights=weight[point], minlength=len(shares.size))
    weighted = total > 0
    kept, used = ~weighted[shares.source], weighted[source]
    return ZoneShares(
        np.concatenate([shares.source[kept], source[used]]),
        np.concatenate([shares.target[kept], target_of_point[point[used]]]),
        np.concatenate([shares.share[kept], weight[point[used]] / total[source[used]]]),
        np.where(weighted, total, shares.size),
    )


def _complete(shares: ZoneShares, targets: int) -> ZoneShares:
    """Add what lies outside, and divide what overlapping target zones share."""
    source, size = shares.source, shares.size
    total = np.bincount(source, weights=shares.share, minlength=len(size))
    share = np.concatenate([shares.share / np.maximum(total, 1.0)[source], 1 - np.minimum(total, 1.0)])
    source = np.concatenate([source, np.arange(len(size))])
    key = source * (targets + 1) + np.concatenate([shares.target, np.full(len(size), targets)])
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    share, key = np.add.reduceat(share[order], starts), key[order][starts]
    # Rounding errors are dropped, and the other shares scaled so that they still add up to 1.
    real = share > _TOLERANCE
    key, share = key[real], share[real]
    source, target = key // (targets + 1), key % (targets + 1)
    share = share / np.bincount(source, weights=share, minlength=len(size))[source]
    return ZoneShares(source, target, share, size)
