"""Places of zones that are polygons: parts of a grid, or of nested zones where these form a tree."""

from __future__ import annotations

from typing import Any

import h3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from h3ronpy import vector

from odkanon.core.arrays import Ints
from odkanon.estimate.place_tree import FINEST, NodeParts, PlacedZones, PlaceTree, SamplePoints
from odkanon.estimate.target_areas import on_globe
from odkanon.zoning.cells import Cells, Floats, cell_to_latlng, cell_to_parent, latlng_to_cell
from odkanon.zoning.spherical_geometry import RADIUS_KM

Shapes = npt.NDArray[Any]
MOST = 1_200
"""Places to aim for."""
_POINTS_BELOW = 2
_FEW_POINTS = 16
"""Zones with fewer points than this have some of their own, at which their trips are."""
_GRID = np.array([1, 3, 5]) / 6
_MOST_PAIRS, _COARSER = 2_000_000, 3
"""Pairs of parts of zones that cross each other, beyond which cells are chosen coarser, up to so many levels."""


def place_shapes(axes: tuple[Shapes, Shapes], rows: tuple[Ints, Ints]) -> tuple[PlaceTree, list[PlacedZones]]:
    """Return the places of zones given by outlines in degrees; one without an outline contains everything.

    Parameters
    ----------
    axes : tuple of array of shapely geometries
        The zones of both axes, None where the outline is unknown.
    rows : tuple of array of int
        For each row the numbers of its zones.
    """
    import shapely

    texts = [shapely.to_wkb(shape) if shape is not None else b"" for shape in np.concatenate(axes)]
    distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    zone = np.array([distinct[text] for text in texts], dtype=np.int64)
    shapes = np.array([shapely.from_wkb(text) if text else None for text in distinct], dtype=object)
    shapes = on_globe(shapes)
    points = _Points.inside(shapely, shapes, _resolution(shapely, shapes))
    sizes = [len(axis) for axis in axes]
    numbers = [zone[: sizes[0]], zone[sizes[0] :]]
    parent = points.parents(len(shapes))
    return _crossing(shapely, shapes, points, numbers, rows) if parent is None else _nested(points, parent, numbers)


def _resolution(shapely: Any, shapes: Shapes) -> int:
    """Return the H3 resolution of places: the finest that gives no more of them than wanted."""
    known = shapely.get_parts(shapes[~shapely.is_missing(shapes)])

    def equal_area(points: Floats) -> Floats:
        return np.stack([np.radians(points[:, 0]), np.sin(np.radians(points[:, 1]))], axis=1)

    box = float(shapely.union_all(shapely.envelope(shapely.transform(known, equal_area))).area) * RADIUS_KM**2
    for resolution in range(FINEST, 0, -1):
        if box / h3.average_hexagon_area(resolution, unit="km^2") <= MOST:
            return resolution
    return 0


def _narrow(shapely: Any, shapes: Shapes) -> tuple[Shapes, Ints]:
    """Return shapes of which those wider than half of the globe are cut, and for each piece the number of its shape."""
    west, _, east, _ = shapely.bounds(shapes).T
    wide = np.flatnonzero(east - west >= 180)
    thirds = shapely.box(np.array([-180, -60, 60]), -90, np.array([-60, 60, 180]), 90)
    kept = np.setdiff1d(np.arange(len(shapes)), wide)
    cut = shapely.intersection(shapes[wide][:, None], thirds).ravel()
    return np.concatenate([shapes[kept], cut]), np.concatenate([kept, np.repeat(wide, len(thirds))])


def _points_within(shapely: Any, shapes: Shapes) -> SamplePoints:
    """Return a point on each shape, and those of a grid of nine over its box that are inside."""
    west, south, east, north = (side[:, None] for side in shapely.bounds(shapes).T)
    x, y = (each.ravel() for each in np.meshgrid(_GRID, _GRID))
    grid = shapely.points(west + x * (east - west), south + y * (north - south))
    owner, which = np.nonzero(shapely.intersects(shapes[:, None], grid))
    points = np.concatenate([shapely.point_on_surface(shapes), grid[owner, which]])
    return SamplePoints(np.concatenate([np.arange(len(shapes)), owner]), shapely.get_y(points), shapely.get_x(points))


class _Points:
    """Points inside zones: their cells, and for each pair of a point and a zone that contains it, both numbers."""

    def __init__(self, cells: Cells, lat: Floats, lon: Floats, point: Ints, zone: Ints, resolution: int) -> None:
        self.cells, self.lat, self.lon = cells, lat, lon
        self.point, self.zone, self.resolution = point, zone, resolution

    @classmethod
    def inside(cls, shapely: Any, shapes: Shapes, resolution: int) -> _Points:
        """Return middles of cells inside polygons, and one point of each polygon that contains none."""
        fine = resolution + _POINTS_BELOW
        known = np.flatnonzero(~shapely.is_missing(shapes))
        pieces, owner = _narrow(shapely, shapes[known])
        lists = pa.array(vector.wkb_to_cells(pa.array(shapely.to_wkb(pieces).tolist(), pa.binary()), fine))
        zone = np.repeat(known[owner], np.diff(lists.offsets.to_numpy()))
        cells, point = np.unique(lists.values.to_numpy().astype(np.uint64), return_inverse=True)
        lat, lon = cell_to_latlng(cells)
        missed = np.setdiff1d(known, zone)
        extra = shapely.point_on_surface(shapes[missed])
        own, around = shapely.STRtree(shapes[known]).query(extra, predicate="intersects")
        lat, lon = np.concatenate([lat, shapely.get_y(extra)]), np.concatenate([lon, shapely.get_x(extra)])
        point = np.concatenate([point.astype(np.int64), len(cells) + own])
        zone = np.concatenate([zone, known[around]])
        cells = np.concatenate(
            [cells, latlng_to_cell(shapely.get_y(extra), (shapely.get_x(extra) + 180) % 360 - 180, fine)]
        )
        everywhere = np.flatnonzero(shapely.is_missing(shapes))
        point = np.concatenate([point, np.tile(np.arange(len(cells)), len(everywhere))])
        zone = np.concatenate([zone, np.repeat(everywhere, len(cells))])
        return cls(cells, lat, lon, point, zone, resolution)

    def parents(self, zones: int) -> Ints | None:
        """Return for each zone the smallest one that contains it, -1 for none; None if zones cross each other."""
        from scipy import sparse

        member = sparse.csr_array((np.ones(len(self.zone)), (self.point, self.zone)), shape=(len(self.cells), zones))
        both = (member.T @ member).tocoo()
        size = np.bincount(self.zone, minlength=zones)
        one, other, common = both.row, both.col, both.data
        if bool((common < np.minimum(size[one], size[other])).any()):
            return None
        # Of two zones with the same points, the first contains the other.
        larger = (size[other] > size[one]) | ((size[other] == size[one]) & (other < one))
        one, other = one[larger], other[larger]
        order = np.lexsort((-other, size[other]))
        parent = np.full(zones, -1)
        parent[one[order][::-1]] = other[order][::-1]  # of repeated positions the last, so the smallest, counts
        return parent


def _nested(points: _Points, parent: Ints, numbers: list[Ints]) -> tuple[PlaceTree, list[PlacedZones]]:
    """Return places that are parts of the finest zone around them: one for each cell that it reaches into."""
    depth = np.zeros(len(parent), dtype=np.int64)
    ancestor = parent.copy()
    while (ancestor >= 0).any():
        depth[ancestor >= 0] += 1
        ancestor = np.where(ancestor >= 0, parent[ancestor], -1)
    finest = np.full(len(points.cells), -1)
    order = np.argsort(depth[points.zone], kind="stable")
    finest[points.point[order]] = points.zone[order]
    top = int(depth.max(initial=0))
    above: list[Ints] = [np.zeros(len(finest), dtype=np.int64)]
    root = finest.copy()
    for _ in range(top):
        root = np.where(parent[root] >= 0, parent[root], root)
    above += _grouped(points, root)
    zones = []
    for at in range(top + 1):
        zone = finest.copy()
        for _ in range(top):
            zone = np.where(depth[zone] > at, parent[zone], zone)
        zones.append(zone)
    cells = [
        cell_to_parent(points.cells, at).astype(np.int64)
        for at in range(max(points.resolution - 2, 0), points.resolution + 1)
    ]
    columns = [*above, *zones, *cells]
    order = np.lexsort(columns[::-1])
    levels, changes = [], np.zeros(len(order), dtype=bool)
    changes[0] = True
    for column in columns:
        ordered = column[order]
        changes = changes | np.concatenate([[True], ordered[1:] != ordered[:-1]])
        levels.append(np.cumsum(changes) - 1)
    place, starts = levels[-1], np.flatnonzero(changes)
    tree = PlaceTree([level[starts] for level in levels], SamplePoints(place, points.lat[order], points.lon[order]))
    level_of_zone = depth + len(above)
    node = np.zeros(len(parent), dtype=np.int64)
    sorted_points = np.empty(len(order), dtype=np.int64)
    sorted_points[order] = np.arange(len(order))
    for at in np.unique(level_of_zone).tolist():
        here = level_of_zone[points.zone] == at
        node[points.zone[here]] = levels[at][sorted_points[points.point[here]]]
    return tree, [_nodes_of(tree, level_of_zone[zones], node[zones]) for zones in numbers]


def _grouped(points: _Points, root: Ints) -> list[Ints]:
    """Return coarse cells around the outermost zones, as levels above them."""
    first = np.unique(root, return_index=True)[1]
    cell = np.zeros(int(root.max()) + 1, dtype=np.uint64)
    cell[root[first]] = points.cells[first]
    coarsest = max(points.resolution - 4, 0)
    return [cell_to_parent(cell[root], at).astype(np.int64) for at in range(coarsest, points.resolution)]


def _nodes_of(tree: PlaceTree, level: Ints, node: Ints) -> PlacedZones:
    at = tree.offsets[level] + node
    none = np.empty(0, np.int64)
    points = SamplePoints(none, np.empty(0), np.empty(0))
    inside = np.zeros(len(level), dtype=bool)
    return PlacedZones(level, node, tree.first[at], tree.end[at], none, inside, points)


def _crossing(
    shapely: Any, shapes: Shapes, points: _Points, numbers: list[Ints], rows: tuple[Ints, Ints]
) -> tuple[PlaceTree, list[PlacedZones]]:
    """Return the points as places of zones that cross each other: each zone consists of parts of cells."""
    zones = int(points.zone.max()) + 1
    for coarser in range(_COARSER + 1):
        cells = cell_to_parent(points.cells, max(points.resolution - coarser, 0))
        base, cell = np.unique(cells, return_inverse=True)
        key = points.zone * len(base) + cell[points.point]
        order = np.argsort(key, kind="stable")
        part, first = np.unique(key[order], return_index=True)
        count = np.bincount(part // len(base), minlength=zones)
        if int((count[numbers[0][rows[0]]] * count[numbers[1][rows[1]]]).sum()) <= _MOST_PAIRS:
            break
    by_cell = np.argsort(cell, kind="stable")
    position = np.empty(len(cell), dtype=np.int64)
    position[by_cell] = np.arange(len(cell))
    tree = PlaceTree(
        [np.zeros(len(cell), dtype=np.int64), cell[by_cell].astype(np.int64), np.arange(len(cell))],
        SamplePoints(np.arange(len(cell)), points.lat[by_cell], points.lon[by_cell]),
        NodeParts(part % len(base) + 1, position[points.point[order]], np.append(first, len(order))),
    )
    ends = np.searchsorted(part // len(base), np.arange(zones + 1))
    members = len(cell) + np.arange(len(part))
    few = (np.bincount(points.zone, minlength=zones) < _FEW_POINTS) & ~shapely.is_missing(shapes)
    placed = []
    for own in numbers:
        inside = few[own]
        within = _points_within(shapely, shapes[own[inside]])
        within = SamplePoints(np.flatnonzero(inside)[within.owner], within.lat, within.lon)
        none = np.full(len(own), -1)
        placed.append(PlacedZones(none, none + 1, ends[own], ends[own + 1], members, inside, within))
    return tree, placed
