"""The plain map beneath the zones: Natural Earth's land and borders, cut down to what one page shows.

The whole world is packed beside this module by the web build (`web/base.mjs`); a page of one city then carries
a few hundred bytes of it. Coordinates are whole thousandths of a degree, finer than the source is accurate.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odkanon.core.parsing import parse_json
from odkanon.errors import InputError
from odkanon.publish.report.page_model import PER_DEGREE, Ring, Shape, pack_line, pack_polygons
from odkanon.read.coordinates import check_degrees

WORLD = Path(__file__).with_name("world.bin.gz")
UNIT = 1000
DETAIL = 1500
"""A page shows no more detail than this many steps from one side of the map to the other."""

Point = tuple[int, int]
Points = npt.NDArray[np.int64]
"""Corners, one a row: thousandths of a degree to the east and to the north."""


class Box(NamedTuple):
    """West, south, east and north, in thousandths of a degree."""

    west: int
    south: int
    east: int
    north: int


def build_base(shapes: Iterable[Shape]) -> dict[str, Any] | None:
    """Cut land and borders to the surroundings of some shapes.

    Returns
    -------
    dict or None
        ``unit`` (steps per degree), ``box``, ``land`` (closed rings) and ``borders`` (open lines), packed like the
        rings of a shape. None where no shape is to be drawn or the world was not built.
    """
    corners = list(corners_of(shapes))
    if not corners or not WORLD.exists():
        return None
    box = _surroundings(corners)
    step = max(box.east - box.west, box.north - box.south) // DETAIL
    land, borders = _near(box, step)
    rings = (_thin(clip_ring(ring, box), step) for ring in land)
    lines = (_thin(part, step) for line in borders for part in clip_line(line, box))
    return {
        "unit": UNIT,
        "box": list(box),
        "land": [_pack(ring) for ring in rings if len(ring) > 2],
        "borders": [_pack(line) for line in lines],
    }


def corners_of(shapes: Iterable[Shape]) -> Iterator[Point]:
    """Yield the corners of the outer rings of some shapes, in thousandths of a degree."""
    return (corner for shape in shapes for polygon in shape for corner in _unpack(polygon[0]))


def read_beneath(path: Path) -> dict[str, list[Any]]:
    """Read a user's GeoJSON to be drawn beneath the zones: shapes and lines only, no attributes.

    Raises
    ------
    InputError
        If the file is missing, is not GeoJSON, or is not in degrees.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        geometries = list(_geometries(content))
        points = [point for geometry in geometries for point in _points(geometry["coordinates"])]
        if points:
            x, y = zip(*points, strict=True)
            check_degrees([min(x), min(y), max(x), max(y)], path)
        lines = [line for geometry in geometries for line in _lines(geometry)]
        return {
            "shapes": [shape for geometry in geometries if (shape := pack_polygons(geometry))],
            "lines": [pack_line(line) for line in lines],
        }
    except (OSError, ValueError, AttributeError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise InputError(f"{path} cannot be read as GeoJSON ({error})") from None


def clip_ring(ring: Points, box: Box) -> Points:
    """Cut a closed ring to a box, side by side (Sutherland and Hodgman, 1974).

    Examples
    --------
    >>> import numpy as np
    >>> clip_ring(np.array([(0, 0), (4, 0), (4, 4), (0, 4)]), Box(1, 1, 9, 9)).tolist()
    [[1, 1], [4, 1], [4, 4], [1, 4]]
    """
    for axis, bound, sign in ((0, box.west, 1), (0, box.east, -1), (1, box.south, 1), (1, box.north, -1)):
        inside = sign * (ring[:, axis] - bound) >= 0
        if inside.all():
            continue
        crosses = inside != np.roll(inside, 1)
        ends = np.flatnonzero(crosses)
        # Of each side of the ring: where it crosses the bound, if it does, and then its end, if that is inside.
        stays = np.flatnonzero(crosses | inside)
        both = np.stack([ring[stays], ring[stays]], axis=1)
        both[crosses[stays], 0] = _crossings(ring[ends - 1], ring[ends], axis, bound)
        ring = both[np.stack([crosses[stays], inside[stays]], axis=1)]
    return ring


def clip_line(line: Points, box: Box) -> list[Points]:
    """Return the parts of an open line whose segments come near a box."""
    low, high = np.minimum(line[:-1], line[1:]), np.maximum(line[:-1], line[1:])
    near = ((low <= (box.east, box.north)) & (high >= (box.west, box.south))).all(axis=1)
    edges = np.flatnonzero(np.diff(near, prepend=False, append=False))
    return [line[first : last + 1] for first, last in zip(edges[0::2], edges[1::2], strict=True)]


def _crossings(start: Points, end: Points, axis: int, bound: int) -> Points:
    share = (bound - start[:, axis]) / (end[:, axis] - start[:, axis])
    crossings: Points = np.rint(start + share[:, None] * (end - start)).astype(np.int64)
    crossings[:, axis] = bound
    return crossings


def _surroundings(corners: list[Point]) -> Box:
    """Return the box of all corners with twice its size added on every side, at least one degree."""
    west, east = min(x for x, _ in corners), max(x for x, _ in corners)
    south, north = min(y for _, y in corners), max(y for _, y in corners)
    x_margin, y_margin = max(UNIT, 2 * (east - west)), max(UNIT, 2 * (north - south))
    return Box(west - x_margin, max(south - y_margin, -85 * UNIT), east + x_margin, min(north + y_margin, 85 * UNIT))


def _near(box: Box, step: int) -> tuple[list[Points], list[Points]]:
    """Return the land rings that may come near a box and are larger than a step, and the border lines that may."""
    rings, table, steps = _world()
    ends = np.cumsum(table[:, 4])
    near = ((table[:, :2] <= (box.east, box.north)) & (table[:, 2:4] >= (box.west, box.south))).all(axis=1)
    seen = (table[:, 2:4] - table[:, :2]).sum(axis=1) >= (step if step > 1 else 0)
    seen[rings:] = True
    found = [
        (row, unrolled(np.cumsum(steps[ends[row] - table[row, 4] : ends[row]], axis=0, dtype=np.int64)))
        for row in np.flatnonzero(near & seen)
    ]
    return [line for row, line in found if row < rings], [line for row, line in found if row >= rings]


def unrolled(line: Points) -> Points:
    """Return a line that goes over the date line without its jump around the world; one around a pole stays.

    Examples
    --------
    >>> import numpy as np
    >>> unrolled(np.array([(179_000, 0), (-179_000, 0), (-178_000, 1)])).tolist()
    [[179000, 0], [181000, 0], [182000, 1]]
    """
    east = line + np.where(line[:, :1] < 0, [[360 * UNIT, 0]], 0)
    half = 180 * UNIT
    return east if np.ptp(line[:, 0]) > half and np.ptp(east[:, 0]) < half else line


@cache
def _world() -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return how many rings there are, the frame and length of each ring and border line, and the steps of them all."""
    numbers = np.frombuffer(gzip.decompress(WORLD.read_bytes()), dtype="<i4")
    rings, borders = map(int, numbers[:2])
    table, steps = np.split(numbers[2:], [5 * (rings + borders)])
    return rings, table.reshape(-1, 5).astype(np.int64), steps.reshape(-1, 2)


def _walk(packed: Ring) -> Iterator[Point]:
    x = y = 0
    steps = iter(packed)
    for dx, dy in zip(steps, steps, strict=True):
        x, y = x + dx, y + dy
        yield x, y


def _unpack(ring: Ring) -> Iterator[Point]:
    scale = PER_DEGREE // UNIT
    return ((x // scale, y // scale) for x, y in _walk(ring))


def _pack(points: Points) -> Ring:
    packed: Ring = np.diff(points, axis=0, prepend=np.zeros((1, 2), dtype=np.int64)).ravel().tolist()
    return packed


def _thin(points: Points, step: int) -> Points:
    """Leave out points closer than `step` to the last one kept; the last point always stays."""
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


def _geometries(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = content.get("type")
    if kind == "FeatureCollection":
        for feature in content["features"]:
            yield from _geometries(feature)
    elif kind == "Feature":
        if content["geometry"] is not None:
            yield from _geometries(content["geometry"])
    elif kind == "GeometryCollection":
        for geometry in content["geometries"]:
            yield from _geometries(geometry)
    elif "coordinates" in content:
        yield content
    else:
        raise ValueError(f"unknown type {kind!r}")


def _points(coordinates: list[Any]) -> Iterator[tuple[float, float]]:
    """Yield the points of a geometry, however deep its lists are."""
    if coordinates and not isinstance(coordinates[0], list):
        yield float(coordinates[0]), float(coordinates[1])
        return
    for part in coordinates:
        yield from _points(part)


def _lines(geometry: dict[str, Any]) -> list[Any]:
    coordinates: list[Any] = geometry["coordinates"]
    return {"LineString": [coordinates], "MultiLineString": coordinates}.get(geometry["type"], [])
