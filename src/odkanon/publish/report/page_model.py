"""The compact model that the page draws: columns instead of rows, each distinct shape once.

The live explorer sends the same model; `web/src/model.ts` is the only reader. A shape is a list of polygons, a polygon
a list of rings, and a ring one flat list of whole millionths of a degree: longitude and latitude of the first corner,
then the steps from corner to corner. A box has two entries only: a corner and its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Ints
from odkanon.errors import DamagedReleaseError
from odkanon.methods.method_registry import words_for
from odkanon.model.axes import AXES
from odkanon.model.measures import AT_CAP, MEASURES
from odkanon.publish.report.packing import LONG, PER_DEGREE, ShapeTable, pack_names, pack_numbers
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import (
    WORLD,
    Cells,
    cell_to_parent,
    cell_to_polygon,
    cell_to_resolution,
    cell_to_str,
    str_to_cell,
)

FORMAT = 1
MAX_VALUES = 60
"""A column with more distinct values than this is no attribute that a reader filters by."""
ROLL_UP_LEVELS = 2
"""A page can roll up at least this many levels from the finest zones, even if all zones have the same level."""


def build_model(releases: Sequence[SavedRelease]) -> dict[str, Any]:
    """Pack releases into the model of one page, ready for JSON.

    Parameters
    ----------
    releases : sequence of SavedRelease
        At least one; two are compared, more are shown side by side.
    """
    shapes = ShapeTable()
    # One coarsest level for all, so that cells of several releases can be compared at every level.
    coarsest = coarsest_level(
        [zone["properties"].get("resolution") for release in releases for zone in release.features]
    )
    packed = [pack_release(release, shapes, coarsest) for release in releases]
    return {"format": FORMAT, "releases": packed, "shapes": shapes.packed}


def pack_release(release: SavedRelease, shapes: ShapeTable, coarsest: int) -> dict[str, Any]:
    """Pack one release; its flows refer to its zones by number, sorted by origin."""
    # Without the running time: the same release should give the same page.
    about = {name: value for name, value in release.manifest.items() if name != "seconds"}
    words = words_for(str(release.manifest.get("method")))
    packed: dict[str, Any] = {"name": release.name, "about": about, "method": words}
    names: dict[str, Sequence[str]] = {}
    for axis in AXES:
        zones = sorted(release.axis_features(axis), key=lambda zone: str(zone["properties"]["id"]))
        packed[axis] = _pack_zones(zones, shapes, coarsest)
        names[axis] = [str(zone["properties"]["id"]) for zone in zones]
    packed["flows"] = _pack_flows(release, names)
    return packed


def _pack_zones(zones: Sequence[dict[str, Any]], shapes: ShapeTable, coarsest: int) -> dict[str, Any]:
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
        "trips": _pack_measure(properties, "trips"),
    }
    if all(own.get("weight") is not None for own in properties):
        columns["weight"] = _pack_measure(properties, "weight")
    if any(own.get("area_km2") is not None for own in properties):
        columns["area"] = [own.get("area_km2") for own in properties]
    if h3 and (tree := pack_zone_tree(columns["id"], coarsest)):
        columns["nest"], outlines = tree
        columns["nest"]["shape"] = [shapes.number(outline) for outline in outlines]
    return columns


def _is_box(zone: dict[str, Any]) -> bool:
    return zone["properties"].get("kind") == "box" and zone.get("geometry") is not None


def _pack_measure(properties: Sequence[dict[str, Any]], measure: str) -> list[Any] | dict[str, Any]:
    return pack_numbers(np.array([own[measure] for own in properties]))


def _pack_boxes(zones: Sequence[dict[str, Any]], shapes: ShapeTable) -> dict[str, Any]:
    """Pack many boxes: the distinct coordinates of their sides, and for each box the positions of its sides.

    The page derives areas from the sides, and trips from the flows.
    """
    rings = [zone["geometry"]["coordinates"][0] for zone in zones]
    corners = np.rint(np.array([[*ring[0], *ring[2]] for ring in rings]) * PER_DEGREE).astype(np.int64)
    (west, south), (east, north) = corners[:, :2].min(axis=0).tolist(), corners[:, 2:].max(axis=0).tolist()
    # The page is cropped to the extent of its shapes.
    shapes.packed.append([[[west, south, east - west, north - south]]])
    packed: dict[str, Any] = {}
    for axis, sides in (("lon", ("west", "east")), ("lat", ("south", "north"))):
        at = corners[:, 0 if axis == "lon" else 1 :: 2]
        lines, number = np.unique(at, return_inverse=True)
        packed[axis] = pack_numbers(lines)
        packed |= {side: pack_numbers(own) for side, own in zip(sides, number.reshape(at.shape).T, strict=True)}
    return packed


def _level(own: dict[str, Any], h3: bool) -> Any:
    """Return the resolution of a cell, or the level of another zone; None for the world around H3 cells."""
    if own.get("resolution") is not None:
        return own["resolution"]
    return None if h3 and own["id"] == "world" else own.get("level")


def _pack_flows(release: SavedRelease, names: dict[str, Sequence[str]]) -> dict[str, Any]:
    table = release.table
    ends = [_zone_numbers(release, axis, names[axis]) for axis in AXES]
    order = np.lexsort(ends[::-1])
    origin, destination = ends[0][order], ends[1][order]
    # The difference of each destination from the previous one of the same origin.
    same_origin = np.diff(origin, prepend=-1) == 0
    steps = destination - np.where(same_origin, np.roll(destination, 1), 0)
    per_origin = np.bincount(origin, minlength=len(names["origin"]))
    flows: dict[str, Any] = {"per_origin": pack_numbers(per_origin), "destination_steps": pack_numbers(steps)}
    for name in MEASURES:
        if name in table.column_names:
            flows[name] = pack_numbers(table.column(name).to_numpy()[order])
    if AT_CAP in table.column_names:
        flows[AT_CAP] = pack_numbers(np.asarray(table.column(AT_CAP).to_numpy()[order], dtype=np.int64))
    others = [name for name in table.column_names if name not in {*AXES, *MEASURES, AT_CAP}]
    packed = {name: _pack_attribute(table.column(name).to_pylist(), order) for name in others}
    attributes = {name: own for name, own in packed.items() if len(own["values"]) <= MAX_VALUES}
    return flows | ({"attributes": attributes} if attributes else {})


def _zone_numbers(release: SavedRelease, axis: str, names: Sequence[str]) -> Ints:
    """Return the number of the zone of each flow."""
    zones = pc.cast(release.table.column(axis), pa.string())
    found = pc.index_in(zones, value_set=pa.array(names, pa.string()))
    if found.null_count:
        first = zones.filter(pc.is_null(found))[0].as_py()
        raise DamagedReleaseError.because(release.name, f"has flows of the zone {first!r}, which zones.geojson lacks")
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _pack_attribute(values: Sequence[Any], order: Ints) -> dict[str, Any]:
    """Pack an attribute of the flows, each distinct value once; None and empty text are missing values."""
    texts = np.array(["" if value is None else str(value) for value in values], dtype=np.str_)
    distinct, number = np.unique(texts, return_inverse=True)
    return {"values": distinct.tolist(), "of": pack_numbers(number.reshape(-1)[order])}


def coarsest_level(resolutions: Sequence[Any]) -> int:
    """Return the coarsest resolution to which the zones of a release can be rolled up.

    Examples
    --------
    >>> coarsest_level([9, 8, 5]), coarsest_level([8, 8]), coarsest_level([1])
    (5, 6, 0)
    """
    known = [each for each in resolutions if isinstance(each, int)]
    return max(0, min(min(known), max(known) - ROLL_UP_LEVELS)) if known else 0


def pack_zone_tree(ids: Sequence[str], coarsest: int) -> tuple[dict[str, Any], list[dict[str, Any] | None]] | None:
    """Find the parents of H3 zones, with the cells between and above them that the page needs to roll them up.

    Parameters
    ----------
    ids : sequence of str
        The zones of one axis.
    coarsest : int
        The coarsest resolution of the added cells.

    Returns
    -------
    tuple or None
        Columns ``id`` and ``level`` of the added cells, which are numbered after the zones, and ``parent`` of the zones
        and then of the added cells (-1 for none); and the outlines of the added cells. None if a zone is not an H3
        cell: the page then derives its parent from the outlines.
    """
    cells = str_to_cell(pa.array(ids, pa.string()))
    world = np.array([name == "world" for name in ids], dtype=np.bool_)
    if not len(cells) or bool(np.any((cells == WORLD) & ~world)):
        return None
    added = _missing_ancestors(cells[cells != WORLD], coarsest)
    names = cell_to_str(added)
    columns = {
        "id": names.tolist(),
        "level": cell_to_resolution(added).tolist(),
        "parent": _parents(np.concatenate([cells, added]), coarsest).tolist(),
    }
    return columns, [cell_to_polygon(str(name)) for name in names]


def _missing_ancestors(cells: Cells, coarsest: int) -> Cells:
    """Return the ancestors of cells, down from a resolution, that are not among the cells themselves."""
    resolutions = cell_to_resolution(cells)
    found = [
        cell_to_parent(cells[resolutions > resolution], resolution)
        for resolution in range(coarsest, int(resolutions.max(initial=0)))
    ]
    return np.setdiff1d(np.concatenate(found), cells) if found else cells[:0]


def _parents(nodes: Cells, coarsest: int) -> npt.NDArray[np.int64]:
    """Return the position of the parent of each node; that of the coarsest cells is the world, if it is a zone."""
    order = np.argsort(nodes, kind="stable")
    resolutions = cell_to_resolution(nodes)
    world = np.flatnonzero(nodes == WORLD)
    parents = np.full(len(nodes), world[0] if len(world) else -1, dtype=np.int64)
    parents[world] = -1
    for resolution in range(coarsest + 1, int(resolutions.max(initial=0)) + 1):
        own = np.flatnonzero((resolutions == resolution) & (nodes != WORLD))
        if len(own):
            above = cell_to_parent(nodes[own], resolution - 1)
            parents[own] = order[np.searchsorted(nodes, above, sorter=order)]
    return parents
