"""The basemap of a page: land and lakes (OpenStreetMap), borders (Natural Earth) and towns, cut to what it shows.

Licences: © OpenStreetMap contributors, ODbL 1.0; Natural Earth, public domain; GeoNames, CC BY 4.0.

The web build packs the whole world beside this module (`web/base.mjs`, `web/names.mjs`); the page of a city contains a
few kilobytes of it, and works offline. The selection depends on the outlines of zones only, never on trips.
Coordinates are whole quarters of thousandths of a degree, finer than the source is accurate.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odkanon.estimate import town_names
from odkanon.estimate.town_names import UNIT, fold_name, load_towns
from odkanon.publish.report.packing import PER_DEGREE, PackedRing, PackedShape
from odkanon.zoning.cells import KM_PER_DEGREE

WORLD = Path(__file__).with_name("world.bin.gz")
DETAIL = 4000
"""Details smaller than the extent of the map divided by this are left out."""
MAX_TOWNS = 300
"""A page lists at most this many towns: the largest."""
FAR_TOWN_KM = 60
"""Beyond this distance a place is not described as near a town."""

Point = tuple[int, int]
Points = npt.NDArray[np.int64]
"""Corners, one a row: quarters of thousandths of a degree to the east and to the north."""


class Extent(NamedTuple):
    """West, south, east and north, in steps of `UNIT` to a degree."""

    west: int
    south: int
    east: int
    north: int


def build_basemap(shapes: Iterable[PackedShape]) -> dict[str, Any] | None:
    """Return land and borders around some shapes.

    Returns
    -------
    dict or None
        ``unit`` (steps per degree), ``box``, ``land`` and ``water`` in it (closed rings) and ``borders`` (open lines),
        packed like the rings of a shape. None if there are no shapes or the world was not built.
    """
    corners = list(shape_corners(shapes))
    if not corners or not WORLD.exists():
        return None
    extent = _surroundings(corners)
    step = max(extent.east - extent.west, extent.north - extent.south) // DETAIL
    land, water, borders = _lines_near(extent, step)
    lines = (_simplify(part, step) for line in borders for part in clip_line(line, extent))
    return {
        "unit": UNIT,
        "box": list(extent),
        "land": _pack_rings(land, extent, step),
        "water": _pack_rings(water, extent, step),
        "borders": [_pack(line) for line in lines],
    }


def _pack_rings(rings: Iterable[Points], extent: Extent, step: int) -> list[PackedRing]:
    clipped = (_simplify(clip_ring(ring, extent), step) for ring in rings)
    return [_pack(ring) for ring in clipped if len(ring) > 2]


def build_labels(shapes: Iterable[PackedShape], most: int | None = MAX_TOWNS) -> dict[str, Any] | None:
    """Return the towns inside the bounding box of some shapes, as many as fit on a page.

    Returns
    -------
    dict or None
        ``unit`` (steps per degree), ``name``, ``place`` (longitude and latitude of each, alternating) and ``people``,
        the largest first. None if there are no shapes or the towns were not built.
    """
    corners = np.array(list(shape_corners(shapes)), dtype=np.int64).reshape(-1, 2)
    if not len(corners) or not town_names.TOWNS.exists():
        return None
    places, people, names, _ = load_towns()
    inside = ((places >= corners.min(axis=0)) & (places <= corners.max(axis=0))).all(axis=1)
    found = np.flatnonzero(inside)[:most]
    return {
        "unit": UNIT,
        "name": [names[town] for town in found],
        "place": places[found].ravel().tolist(),
        "people": people[found].tolist(),
    }


def find_town(name: str, shapes: Iterable[PackedShape]) -> tuple[float, float] | None:
    """Return longitude and latitude of the largest town of a name inside the bounding box of some shapes."""
    known = build_labels(shapes, most=None)
    titles = [] if known is None else [fold_name(title) for title in known["name"]]
    if known is None or fold_name(name) not in titles:
        return None
    at = titles.index(fold_name(name))
    return known["place"][2 * at] / known["unit"], known["place"][2 * at + 1] / known["unit"]


def describe_place(lat: float, lon: float) -> str | None:
    """Return a place in words, such as "near Lyon": by a large town close to it; None if towns were not built."""
    places, people, names, _ = load_towns()
    if not len(places):
        return None
    east, north = ((places - np.array([lon, lat]) * UNIT) / UNIT).T
    away = KM_PER_DEGREE * np.hypot(((east + 180) % 360 - 180) * np.cos(np.radians(lat)), north)
    if away.min() >= FAR_TOWN_KM:
        return f"{away.min():,.0f} km from {names[int(np.argmin(away))]}"
    return f"near {names[int(np.argmax(np.where(away < FAR_TOWN_KM, people / (away + 10) ** 2, -1)))]}"


def shape_corners(shapes: Iterable[PackedShape]) -> Iterator[Point]:
    """Yield the corners of the outer rings of some shapes, in steps of `UNIT` to a degree."""
    return (corner for shape in shapes for polygon in shape for corner in _unpack(polygon[0]))


def clip_ring(ring: Points, extent: Extent) -> Points:
    """Clip a closed ring to an extent, side by side (Sutherland and Hodgman, 1974).

    Examples
    --------
    >>> import numpy as np
    >>> clip_ring(np.array([(0, 0), (4, 0), (4, 4), (0, 4)]), Extent(1, 1, 9, 9)).tolist()
    [[1, 1], [4, 1], [4, 4], [1, 4]]
    """
    for axis, bound, sign in ((0, extent.west, 1), (0, extent.east, -1), (1, extent.south, 1), (1, extent.north, -1)):
        inside = sign * (ring[:, axis] - bound) >= 0
        if inside.all():
            continue
        crosses = inside != np.roll(inside, 1)
        ends = np.flatnonzero(crosses)
        # For each side of the ring: its intersection with the bound, if any, and then its end, if that is inside.
        kept = np.flatnonzero(crosses | inside)
        both = np.stack([ring[kept], ring[kept]], axis=1)
        both[crosses[kept], 0] = _crossings(ring[ends - 1], ring[ends], axis, bound)
        ring = both[np.stack([crosses[kept], inside[kept]], axis=1)]
    return ring


def clip_line(line: Points, extent: Extent) -> list[Points]:
    """Return the parts of an open line whose segments come near an extent."""
    low, high = np.minimum(line[:-1], line[1:]), np.maximum(line[:-1], line[1:])
    near = ((low <= (extent.east, extent.north)) & (high >= (extent.west, extent.south))).all(axis=1)
    edges = np.flatnonzero(np.diff(near, prepend=False, append=False))
    return [line[first : last + 1] for first, last in zip(edges[0::2], edges[1::2], strict=True)]


def _crossings(start: Points, end: Points, axis: int, bound: int) -> Points:
    share = (bound - start[:, axis]) / (end[:, axis] - start[:, axis])
    crossings: Points = np.rint(start + share[:, None] * (end - start)).astype(np.int64)
    crossings[:, axis] = bound
    return crossings


def _surroundings(corners: list[Point]) -> Extent:
    """Return the bounding box of corners, extended by twice its size on every side, but at least one degree."""
    west, east = min(x for x, _ in corners), max(x for x, _ in corners)
    south, north = min(y for _, y in corners), max(y for _, y in corners)
    x_margin, y_margin = max(UNIT, 2 * (east - west)), max(UNIT, 2 * (north - south))
    return Extent(west - x_margin, max(south - y_margin, -85 * UNIT), east + x_margin, min(north + y_margin, 85 * UNIT))


def _lines_near(extent: Extent, step: int) -> list[list[Points]]:
    """Return the land rings and lakes near an extent that are larger than a step, and the border lines near it."""
    counts, table, steps = _world()
    ends = np.cumsum(table[:, 4])
    near = ((table[:, :2] <= (extent.east, extent.north)) & (table[:, 2:4] >= (extent.west, extent.south))).all(axis=1)
    visible = (table[:, 2:4] - table[:, :2]).sum(axis=1) >= (step if step > 1 else 0)
    visible[counts[0] + counts[1] :] = True
    of_kind = np.repeat(np.arange(3), counts)
    return [
        [
            unroll(np.cumsum(steps[ends[row] - table[row, 4] : ends[row]], axis=0, dtype=np.int64))
            for row in np.flatnonzero(near & visible & (of_kind == each))
        ]
        for each in range(3)
    ]


def unroll(line: Points) -> Points:
    """Return a line across the date line without its jump around the world; one around a pole is left as it is.

    Examples
    --------
    >>> import numpy as np
    >>> unroll(np.array([(716_000, 0), (-716_000, 0), (-712_000, 1)])).tolist()
    [[716000, 0], [724000, 0], [728000, 1]]
    """
    east = line + np.where(line[:, :1] < 0, [[360 * UNIT, 0]], 0)
    half = 180 * UNIT
    return east if np.ptp(line[:, 0]) > half and np.ptp(east[:, 0]) < half else line


@cache
def _world() -> tuple[list[int], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return how many land rings, lakes and borders there are, the bounds and length of each, and the steps of all."""
    numbers = np.frombuffer(gzip.decompress(WORLD.read_bytes()), dtype="<i4")
    counts = numbers[:3].tolist()
    table, steps = np.split(numbers[3:], [5 * sum(counts)])
    return counts, table.reshape(-1, 5).astype(np.int64), steps.reshape(-1, 2)


def _unpack(ring: PackedRing) -> Iterator[Point]:
    scale, x, y = PER_DEGREE // UNIT, 0, 0
    steps = iter(ring)
    for dx, dy in zip(steps, steps, strict=True):
        x, y = x + dx, y + dy
        yield x // scale, y // scale


def _pack(points: Points) -> PackedRing:
    packed: PackedRing = np.diff(points, axis=0, prepend=np.zeros((1, 2), dtype=np.int64)).ravel().tolist()
    return packed


def _simplify(points: Points, step: int) -> Points:
    """Drop points closer than a step to the last one kept; the last point is always kept."""
    if step < 2 or len(points) < 3:
        return points
    if (points.max(axis=0) - points.min(axis=0)).sum() < step:
        return points[[0, -1]]
    kept = [0]
    corners = points.tolist()
    for at, (x, y) in enumerate(corners[1:-1], start=1):
        if abs(x - corners[kept[-1]][0]) + abs(y - corners[kept[-1]][1]) >= step:
            kept.append(at)
    return points[[*kept, len(points) - 1]]
