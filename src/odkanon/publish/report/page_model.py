"""The compact model that the page draws: columns instead of rows, each shape stored once.

The live explorer sends the same model, so `web/src/model.ts` is the only reader. Shapes are lists of
polygons, a polygon is a list of rings, and a ring is one flat list of whole millionths of a degree:
longitude and latitude of the first corner, then the steps from corner to corner; a box has two corners only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.methods.method_registry import words_for
from odkanon.model.measures import MEASURES
from odkanon.publish.report.packed_columns import LONG, pack_names, pack_numbers
from odkanon.publish.report.zone_tree import pack_nest, roof_of
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.spherical_geometry import list_polygons

FORMAT = 1
PER_DEGREE = 1_000_000
AXES = ("origin", "destination")
MOST_VALUES = 60
"""A column of a release with more distinct values than this is nothing that a reader chooses by."""

Ring = list[int]
Shape = list[list[Ring]]


class Shapes:
    """Every distinct shape of all releases on a page, numbered in the order of first use."""

    def __init__(self) -> None:
        self.packed: list[Shape] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, geometry: dict[str, Any] | None) -> int:
        """Return the number of a GeoJSON (Multi)Polygon, or -1 where there is nothing to draw."""
        shape = pack_polygons(geometry)
        if not shape:
            return -1
        key = tuple(tuple(tuple(ring) for ring in polygon) for polygon in shape)
        number = self._numbers.setdefault(key, len(self.packed))
        if number == len(self.packed):
            self.packed.append(shape)
        return number


def pack_polygons(geometry: dict[str, Any] | None) -> Shape:
    """Pack the polygons of a GeoJSON geometry; other geometries give an empty list."""
    return [[pack_ring(ring) for ring in polygon] for polygon in list_polygons(geometry)]


def pack_ring(points: Sequence[Sequence[float]]) -> Ring:
    """Pack a ring without saying its first corner twice; of a box, two opposite corners are all.

    Examples
    --------
    >>> pack_ring([[2.0, 48.0], [2.1, 48.0], [2.1, 48.2], [2.0, 48.2], [2.0, 48.0]])
    [2000000, 48000000, 100000, 200000]
    """
    packed = pack_line(points[:-1] if len(points) > 3 and list(points[0]) == list(points[-1]) else points)
    # Four corners are three steps; a box goes along, up and back.
    if len(packed) == 8 and packed[3] == packed[4] == packed[7] == 0 and packed[2] == -packed[6]:
        return [packed[0] + min(0, packed[2]), packed[1] + min(0, packed[5]), abs(packed[2]), abs(packed[5])]
    return packed


def pack_line(points: Iterable[Sequence[float]]) -> Ring:
    """Pack a line of longitudes and latitudes; one that jumps over the date line is unrolled first.

    Examples
    --------
    >>> pack_line([[2.0, 48.0], [2.000001, 48.0], [2.0, 47.999999]])
    [2000000, 48000000, 1, 0, -1, -1]
    """
    whole = [(round(point[0] * PER_DEGREE), round(point[1] * PER_DEGREE)) for point in points]
    if whole and max(x for x, _ in whole) - min(x for x, _ in whole) > 180 * PER_DEGREE:
        whole = [(x + 360 * PER_DEGREE if x < 0 else x, y) for x, y in whole]
    packed = [*whole[0]] if whole else []
    for (x0, y0), (x1, y1) in pairwise(whole):
        packed += (x1 - x0, y1 - y0)
    return packed


def build_model(releases: Sequence[SavedRelease]) -> dict[str, Any]:
    """Pack releases into the model of one page.

    Parameters
    ----------
    releases : sequence of SavedRelease
        At least one; two are compared, more stand side by side.

    Returns
    -------
    dict
        Ready for JSON.
    """
    shapes = Shapes()
    # One roof for all: cells of several releases can then be compared at every detail.
    roof = roof_of([zone["properties"].get("resolution") for release in releases for zone in release.zones])
    packed = [pack_release(release, shapes, roof) for release in releases]
    return {"format": FORMAT, "releases": packed, "shapes": shapes.packed}


def pack_release(release: SavedRelease, shapes: Shapes, roof: int) -> dict[str, Any]:
    """Pack one release; its flows refer to its zones by number, sorted by origin. For the roof see `roof_of`."""
    # Without the time it took: the same release should give the same page.
    about = {name: value for name, value in release.about.items() if name != "seconds"}
    words = words_for(str(release.about.get("method")))
    packed: dict[str, Any] = {"name": release.name, "about": about, "method": words}
    names: dict[str, Sequence[str]] = {}
    for axis in AXES:
        zones = sorted(
            (zone for zone in release.zones if zone["properties"]["axis"] == axis),
            key=lambda zone: str(zone["properties"]["id"]),
        )
        packed[axis] = _pack_zones(zones, shapes, roof)
        names[axis] = [str(zone["properties"]["id"]) for zone in zones]
    packed["flows"] = _pack_flows(release, names)
    return packed


def _pack_zones(zones: Sequence[dict[str, Any]], shapes: Shapes, roof: int) -> dict[str, Any]:
    properties = [zone["properties"] for zone in zones]
    h3 = any(own.get("resolution") is not None for own in properties)
    names = [str(own["id"]) for own in properties]
    if len(zones) >= LONG and all(map(_is_box, zones)):
        return {"h3": False, "id": pack_names(names), "boxes": _pack_boxes(zones, shapes)}
    columns: dict[str, Any] = {
        "h3": h3,
        "id": names,
        "shape": [shapes.number(zone.get("geometry")) for zone in zones],
        "level": [_level(own, h3) for own in properties],
        **({"leaves": [own["leaves"] for own in properties]} if all("leaves" in own for own in properties) else {}),
        "trips": _packed(properties, "trips"),
    }
    if all(own.get("weight") is not None for own in properties):
        columns["weight"] = _packed(properties, "weight")
    if any(own.get("area_km2") is not None for own in properties):
        columns["area"] = [own.get("area_km2") for own in properties]
    if h3 and (nest := pack_nest(columns["id"], roof)):
        columns["nest"], outlines = nest
        columns["nest"]["shape"] = [shapes.number(outline) for outline in outlines]
    return columns


def _is_box(zone: dict[str, Any]) -> bool:
    return zone["properties"].get("kind") == "box" and zone.get("geometry") is not None


def _packed(properties: Sequence[dict[str, Any]], measure: str) -> list[Any] | dict[str, Any]:
    return pack_numbers(np.array([own[measure] for own in properties]))


def _pack_boxes(zones: Sequence[dict[str, Any]], shapes: Shapes) -> dict[str, Any]:
    """Pack many boxes: the lines that their sides lie on, and for each box the numbers of its lines.

    What else is known of them follows: areas from the sides, trips from the flows.
    """
    rings = [zone["geometry"]["coordinates"][0] for zone in zones]
    corners = np.rint(np.array([[*ring[0], *ring[2]] for ring in rings]) * PER_DEGREE).astype(np.int64)
    (west, south), (east, north) = corners[:, :2].min(axis=0).tolist(), corners[:, 2:].max(axis=0).tolist()
    # The page is cut to what its shapes cover.
    shapes.packed.append([[[west, south, east - west, north - south]]])
    packed: dict[str, Any] = {}
    for axis, sides in (("lon", ("west", "east")), ("lat", ("south", "north"))):
        at = corners[:, 0 if axis == "lon" else 1 :: 2]
        lines, number = np.unique(at, return_inverse=True)
        packed[axis] = pack_numbers(lines)
        packed |= {side: pack_numbers(own) for side, own in zip(sides, number.reshape(at.shape).T, strict=True)}
    return packed


def _level(own: dict[str, Any], h3: bool) -> Any:
    """Return the resolution of a cell, or the level of another zone; the world around cells is coarser than all."""
    if own.get("resolution") is not None:
        return own["resolution"]
    return None if h3 and own["id"] == "world" else own.get("level")


def _pack_flows(release: SavedRelease, names: dict[str, Sequence[str]]) -> dict[str, Any]:
    classes = release.flows
    ends = [_numbers(release, axis, names[axis]) for axis in AXES]
    order = np.lexsort(ends[::-1])
    origin, destination = ends[0][order], ends[1][order]
    # How much larger each destination is than the one before it from the same origin.
    again = np.diff(origin, prepend=-1) == 0
    steps = destination - np.where(again, np.roll(destination, 1), 0)
    per_origin = np.bincount(origin, minlength=len(names["origin"]))
    flows: dict[str, Any] = {"per_origin": pack_numbers(per_origin), "destination_steps": pack_numbers(steps)}
    for name in MEASURES:
        if name in classes.column_names:
            flows[name] = pack_numbers(classes.column(name).to_numpy()[order])
    others = [name for name in classes.column_names if name not in {*AXES, *MEASURES}]
    packed = {name: _pack_attribute(classes.column(name).to_pylist(), order) for name in others}
    attributes = {name: kind for name, kind in packed.items() if len(kind["values"]) <= MOST_VALUES}
    return flows | ({"attributes": attributes} if attributes else {})


def _numbers(release: SavedRelease, axis: str, names: Sequence[str]) -> Ints:
    """Return the number of the zone of each flow."""
    zones = pc.cast(release.flows.column(axis), pa.string())
    found = pc.index_in(zones, value_set=pa.array(names, pa.string()))
    if found.null_count:
        first = zones.filter(pc.is_null(found))[0].as_py()
        raise InputError(f"{release.name}: the classes name zone {first!r}, which zones.geojson lacks")
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _pack_attribute(values: Sequence[Any], order: Ints) -> dict[str, Any]:
    """Pack what a row says besides its places: each distinct value once; None and empty text are "not given"."""
    texts = np.array(["" if value is None else str(value) for value in values], dtype=np.str_)
    distinct, number = np.unique(texts, return_inverse=True)
    return {"values": distinct.tolist(), "of": pack_numbers(number.reshape(-1)[order])}
