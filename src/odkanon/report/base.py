"""The plain map beneath the zones: Natural Earth's land and borders, cut down to what one page shows.

The whole world is packed beside this module by the web build (`web/base.mjs`); a page of one city then carries
a few hundred bytes of it. Coordinates are whole thousandths of a degree, finer than the source is accurate.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from odkanon.errors import InputError
from odkanon.report.model import PER_DEGREE, Ring, Shape, pack_line, pack_polygons

WORLD = Path(__file__).with_name("world.json.gz")
UNIT = 1000
DETAIL = 1500
"""A page shows no more detail than this many steps from one side of the map to the other."""

Point = tuple[int, int]


class Box(NamedTuple):
    """West, south, east and north, in thousandths of a degree."""

    west: int
    south: int
    east: int
    north: int

    def meets(self, other: Box) -> bool:
        """Tell whether two boxes have a point in common."""
        return (
            self.west <= other.east
            and other.west <= self.east
            and self.south <= other.north
            and other.south <= self.north
        )


def build_base(shapes: Iterable[Shape]) -> dict[str, Any] | None:
    """Cut land and borders to the surroundings of some shapes.

    Returns
    -------
    dict or None
        ``unit`` (steps per degree), ``box``, ``land`` (closed rings) and ``borders`` (open lines), packed like the
        rings of a shape. None where no shape is to be drawn or the world was not built.
    """
    corners = [corner for shape in shapes for polygon in shape for corner in _unpack(polygon[0])]
    if not corners or not WORLD.exists():
        return None
    box = _surroundings(corners)
    step = max(box.east - box.west, box.north - box.south) // DETAIL
    world = json.loads(gzip.decompress(WORLD.read_bytes()))
    land = (clip_ring(_thin(ring, step), box) for ring in _near(world["land"], box))
    borders = (part for line in _near(world["borders"], box) for part in clip_line(_thin(line, step), box))
    return {
        "unit": UNIT,
        "box": list(box),
        "land": [_pack(ring) for ring in land if len(ring) > 2],
        "borders": [_pack(line) for line in borders],
    }


def read_beneath(path: Path) -> dict[str, list[Any]]:
    """Read a user's GeoJSON to be drawn beneath the zones: shapes and lines only, no attributes.

    Raises
    ------
    InputError
        If the file is missing or is not GeoJSON.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        geometries = list(_geometries(content))
    except (OSError, ValueError, AttributeError, KeyError) as error:
        raise InputError(f"{path} cannot be read as GeoJSON ({error})") from None
    lines = [line for geometry in geometries for line in _lines(geometry)]
    return {
        "shapes": [shape for geometry in geometries if (shape := pack_polygons(geometry))],
        "lines": [pack_line(line) for line in lines],
    }


def clip_ring(ring: list[Point], box: Box) -> list[Point]:
    """Cut a closed ring to a box, side by side (Sutherland and Hodgman, 1974).

    Examples
    --------
    >>> clip_ring([(0, 0), (4, 0), (4, 4), (0, 4)], Box(1, 1, 9, 9))
    [(1, 1), (4, 1), (4, 4), (1, 4)]
    """
    for axis, bound, sign in ((0, box.west, 1), (0, box.east, -1), (1, box.south, 1), (1, box.north, -1)):
        kept: list[Point] = []
        for start, end in pairwise([*ring[-1:], *ring]):
            inside_start, inside_end = (sign * (point[axis] - bound) >= 0 for point in (start, end))
            if inside_start != inside_end:
                kept.append(_crossing(start, end, axis, bound))
            if inside_end:
                kept.append(end)
        ring = kept
    return ring


def clip_line(line: list[Point], box: Box) -> Iterator[list[Point]]:
    """Yield the parts of an open line whose segments come near a box."""
    part: list[Point] = []
    for start, end in pairwise(line):
        near = Box(min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1]))
        if near.meets(box):
            part = [*part, end] if part else [start, end]
        elif part:
            yield part
            part = []
    if part:
        yield part


def _crossing(start: Point, end: Point, axis: int, bound: int) -> Point:
    share = (bound - start[axis]) / (end[axis] - start[axis])
    other = round(start[1 - axis] + share * (end[1 - axis] - start[1 - axis]))
    return (bound, other) if axis == 0 else (other, bound)


def _surroundings(corners: list[Point]) -> Box:
    """Return the box of all corners with twice its size added on every side, at least one degree."""
    west, east = min(x for x, _ in corners), max(x for x, _ in corners)
    south, north = min(y for _, y in corners), max(y for _, y in corners)
    x_margin, y_margin = max(UNIT, 2 * (east - west)), max(UNIT, 2 * (north - south))
    return Box(west - x_margin, max(south - y_margin, -85 * UNIT), east + x_margin, min(north + y_margin, 85 * UNIT))


def _near(rows: list[list[int]], box: Box) -> Iterator[list[Point]]:
    for row in rows:
        if box.meets(Box(*row[:4])):
            yield list(_walk(row[4:]))


def _walk(packed: Ring) -> Iterator[Point]:
    x = y = 0
    steps = iter(packed)
    for dx, dy in zip(steps, steps, strict=True):
        x, y = x + dx, y + dy
        yield x, y


def _unpack(ring: Ring) -> Iterator[Point]:
    scale = PER_DEGREE // UNIT
    return ((x // scale, y // scale) for x, y in _walk(ring))


def _pack(points: list[Point]) -> Ring:
    packed = [*points[0]]
    for (x0, y0), (x1, y1) in pairwise(points):
        packed += (x1 - x0, y1 - y0)
    return packed


def _thin(points: list[Point], step: int) -> list[Point]:
    """Leave out points closer than `step` to the last one kept; the last point always stays."""
    kept = points[:1]
    for x, y in points[1:-1]:
        if abs(x - kept[-1][0]) + abs(y - kept[-1][1]) >= step:
            kept.append((x, y))
    return kept + points[1:][-1:]


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


def _lines(geometry: dict[str, Any]) -> list[Any]:
    coordinates: list[Any] = geometry["coordinates"]
    return {"LineString": [coordinates], "MultiLineString": coordinates}.get(geometry["type"], [])
