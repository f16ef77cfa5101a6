"""Areas that flows are asked for: H3 cells, polygons, or everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from weakref import finalize

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.estimate.place_tree import FINEST
from odkanon.release_format.conversions import to_shapes
from odkanon.zoning.cells import (
    Cells,
    Floats,
    cell_to_parent,
    cell_to_polygon,
    cell_to_resolution,
    cell_to_str,
    latlng_to_cell,
)
from odkanon.zoning.zone_nodes import CellNodes

Shapes = npt.NDArray[Any]
EVERYWHERE = "anywhere"
_MARGIN, _COARSE_MARGIN = 0.2, 0.3
"""How far the cells below an H3 cell may reach beyond its outline, as a share of an edge (measured: 0.151 and 0.29)."""
_COARSE = 3
_POLAR = 85.0
"""Latitude beyond which outlines of cells, with sides drawn straight in degrees, mean little."""
_ROUNDING = 1e-9
"""Share of an area below which an overlap is due to rounding."""
_NO_PAIRS = np.empty(0, np.int64), np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class ZoneFootprints:
    """Where the zones of one axis are.

    Attributes
    ----------
    nodes : CellNodes or None
        The zones as H3 cells, where they are.
    outlines : list of dict or None
        Their GeoJSON geometries, None where unknown.
    finest : int
        Resolution of the input's cells; a zone of that resolution is its own outline.
    """

    nodes: CellNodes | None
    outlines: list[dict[str, Any] | None]
    finest: int

    @cached_property
    def shapes(self) -> Shapes:
        """The outlines as shapely geometries."""
        return on_globe(to_shapes(self.outlines))

    @cached_property
    def outer(self) -> Shapes:
        """Outlines that contain all of each zone, including finer cells that reach beyond their parent's outline."""
        import shapely

        if self.nodes is None:
            return self.shapes
        resolution = np.maximum((self.nodes.depth - 1) // 3, 0)
        exact = resolution >= self.finest
        return np.where(exact, self.shapes, on_globe(grow(shapely, to_shapes(self.outlines), resolution, 1)))


def on_globe(shapes: Shapes) -> Shapes:
    """Return valid shapes between 180 degrees west and east; what lies beyond is cut off and turned around."""
    import shapely

    shapes = np.where(shapely.is_valid(shapes) | shapely.is_missing(shapes), shapes, shapely.make_valid(shapes))
    west, _, east, _ = shapely.bounds(shapes).T
    beyond = np.flatnonzero((west < -180) | (east > 180))
    if len(beyond):
        world, own = shapely.box(-180, -90, 180, 90), shapes[beyond]
        turned = [shapely.transform(own, lambda points, by=by: points + np.array([by, 0])) for by in (-360, 0, 360)]
        shapes[beyond] = shapely.union_all(shapely.intersection(np.stack(turned), world), axis=0)
    return shapes


def grow(shapely: Any, shapes: Shapes, resolution: Ints, sign: int) -> Shapes:
    """Return outlines of H3 cells grown (or shrunk) by what finer cells may reach beyond them.

    Their sides are arcs on the globe, so large ones are grown further; those near a pole have no outline at all.
    """
    south, north = (np.nan_to_num(side) for side in shapely.bounds(shapes)[:, [1, 3]].T)
    polar = np.minimum(np.maximum(-south, north), _POLAR)
    shrink = np.cos(np.radians(polar))
    nearest = np.cos(np.radians(np.where(south * north < 0, 0, np.minimum(abs(south), abs(north)))))
    edge = shapely.length(_stretched(shapely, shapes, nearest)) / 6
    bend = np.radians(edge) * np.tan(np.radians(polar)) / 4  # twice the height of an arc above its chord
    share = np.where(resolution <= _COARSE, _COARSE_MARGIN, _MARGIN) + bend
    grown = shapely.buffer(_stretched(shapely, shapes, shrink), np.nan_to_num(sign * share * edge))
    found = _stretched(shapely, grown, 1 / shrink)
    found[np.maximum(-south, north) > _POLAR] = None
    return found


def _stretched(shapely: Any, shapes: Shapes, factor: Floats) -> Shapes:
    """Return shapes with their longitudes multiplied by a factor of their own."""
    coordinates, owner = shapely.get_coordinates(shapes, return_index=True)
    coordinates[:, 0] *= factor[owner]
    found: Shapes = shapely.set_coordinates(shapes.copy(), coordinates)
    return found


class Areas(Protocol):
    """Areas of which each point is in at most one."""

    @property
    def ids(self) -> list[str]:
        """Names of the areas."""
        ...

    def number(self, lat: Floats, lon: Floats) -> Ints:
        """Return for each point the number of its area, -1 for none."""
        ...

    def relation(self, zones: ZoneFootprints) -> tuple[Any, Any]:
        """Return which zones (rows) lie inside which areas (columns), and which share any part, as sparse matrices."""
        ...


@dataclass(frozen=True)
class Everywhere:
    """The whole world as one area."""

    @property
    def ids(self) -> list[str]:
        """Its name."""
        return [EVERYWHERE]

    def number(self, lat: Floats, lon: Floats) -> Ints:
        """Return 0 for each point."""
        return np.zeros(len(lat), dtype=np.int64)

    def relation(self, zones: ZoneFootprints) -> tuple[Any, Any]:
        """Return that all zones lie inside."""
        every = np.arange(len(zones.outlines))
        both = _matrix(every, np.zeros(len(every), dtype=np.int64), (len(every), 1))
        return both, both


@dataclass(frozen=True, eq=False)
class CellAreas:
    """H3 cells of one resolution; a trip is in the one above the finest cell that it starts or ends in."""

    cells: Cells
    resolution: int

    @classmethod
    def around(cls, lat: Floats, lon: Floats, resolution: int) -> CellAreas:
        """Return the cells that contain any of some points."""
        return cls(np.unique(_cell_above(lat, lon, resolution)), resolution)

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the cells."""
        return [str(name) for name in cell_to_str(self.cells)]

    def number(self, lat: Floats, lon: Floats) -> Ints:
        """Return for each point the number of its cell, -1 for none."""
        cells = _cell_above(lat, lon, self.resolution)
        at = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return np.where(self.cells[at] == cells, at, -1)

    def relation(self, zones: ZoneFootprints) -> tuple[Any, Any]:
        """Return which zones lie inside which cells, and which share any part."""
        shape = (len(zones.outlines), len(self.cells))
        if zones.nodes is None:
            return self._relation_to_shapes(zones, shape)
        own = CellNodes(self.cells, 3 * cell_to_resolution(self.cells) + 1, np.zeros(len(self.cells)))
        depth = 3 * self.resolution + 1
        inside, meets = [_NO_PAIRS], [_NO_PAIRS]
        for at in np.unique(zones.nodes.depth).tolist():
            here = np.flatnonzero(zones.nodes.depth == at)
            common = min(at, depth)
            zone, area = _equal(zones.nodes.above(here, common), own.above(np.arange(len(self.cells)), common))
            meets.append((here[zone], area))
            if at >= depth:
                inside.append(meets[-1])
        return _joined(inside, shape), _joined(meets, shape)

    def _relation_to_shapes(self, zones: ZoneFootprints, shape: tuple[int, int]) -> tuple[Any, Any]:
        import shapely

        outlines = shapely.from_geojson(np.array([_geojson(name) for name in self.ids]))
        resolution = np.full(len(outlines), self.resolution)
        inner, outer = (on_globe(grow(shapely, outlines, resolution, sign)) for sign in (-1, 1))
        return _overlaps(zones.shapes, inner, shape)[0], _overlaps(zones.shapes, outer, shape)[1]


@dataclass(frozen=True, eq=False)
class JoinedAreas:
    """Some of several areas, as one."""

    areas: Areas
    which: Ints
    name: str

    @property
    def ids(self) -> list[str]:
        """The name."""
        return [self.name]

    def number(self, lat: Floats, lon: Floats) -> Ints:
        """Return for each point 0 if it lies in one of the areas, else -1."""
        return np.where(np.isin(self.areas.number(lat, lon), self.which), 0, -1)

    def relation(self, zones: ZoneFootprints) -> tuple[Any, Any]:
        """Return which zones lie inside one of the areas, and which share any part with one."""
        from scipy.sparse import csr_array

        inside, meets = (
            csr_array((each.tocsc()[:, self.which].sum(axis=1) > 0)[:, None]) for each in self.areas.relation(zones)
        )
        return inside, meets


@dataclass(frozen=True, eq=False)
class PolygonAreas:
    """Polygons in degrees, such as communes; where they overlap, a point is in the first."""

    codes: Sequence[str]
    shapes: Shapes

    @property
    def ids(self) -> list[str]:
        """Codes of the polygons."""
        return list(self.codes)

    @cached_property
    def _cut(self) -> Shapes:
        return on_globe(self.shapes)

    def number(self, lat: Floats, lon: Floats) -> Ints:
        """Return for each point the number of its polygon, -1 for none."""
        import shapely

        found = np.full(len(lat), -1)
        points = shapely.points((lon + 180) % 360 - 180, lat)
        area, point = shapely.STRtree(points).query(self._cut, predicate="intersects")
        order = np.lexsort((-area, point))
        found[point[order]] = area[order]  # of repeated positions the last, so the first polygon, counts
        return found

    def relation(self, zones: ZoneFootprints) -> tuple[Any, Any]:
        """Return which zones lie inside which polygons, and which share any part."""
        return _overlaps(zones.outer, self._cut, (len(zones.outlines), len(self.shapes)))


def _overlaps(zones: Shapes, areas: Shapes, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return which zones lie inside which areas, and which share any part.

    Zones and areas of unknown outline may be anywhere. Borders that coincide but for rounding are the same: zones that
    only touch share nothing.
    """
    import shapely

    missing = shapely.is_missing(zones)
    unknown, placed = np.flatnonzero(missing), np.flatnonzero(~missing)
    unplaced = np.flatnonzero(shapely.is_missing(areas))
    shapely.prepare(areas)
    number, area = shapely.STRtree(areas).query(zones[placed], predicate="intersects")
    zone = placed[number]
    whole = shapely.covers(areas[area], zones[zone])
    partial = np.flatnonzero(~whole)
    common = np.zeros(len(zone))
    common[partial] = shapely.area(shapely.intersection(zones[zone[partial]], areas[area[partial]]))
    size, other = shapely.area(zones)[zone], shapely.area(areas)[area]
    whole |= common >= (1 - _ROUNDING) * size
    shared = whole | (common > _ROUNDING * np.minimum(size, other))
    anywhere = np.repeat(unknown, shape[1]), np.tile(np.arange(shape[1]), len(unknown))
    everything = np.tile(placed, len(unplaced)), np.repeat(unplaced, len(placed))
    meets = _joined([(zone[shared], area[shared]), anywhere, everything], shape)
    return _matrix(zone[whole], area[whole], shape), meets


def _joined(pairs: Sequence[tuple[Ints, Ints]], shape: tuple[int, int]) -> Any:
    return _matrix(np.concatenate([zone for zone, _ in pairs]), np.concatenate([area for _, area in pairs]), shape)


def _matrix(zone: Ints, area: Ints, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(zone)), (zone, area)), shape=shape)


def _equal(one: Cells, other: Cells) -> tuple[Ints, Ints]:
    """Return all pairs of positions at which two arrays are equal."""
    order = np.argsort(other, kind="stable")
    low, high = (np.searchsorted(other[order], one, side=side) for side in ("left", "right"))
    count = high - low
    first = np.repeat(np.arange(len(one)), count)
    at = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
    return first, order[np.repeat(low, count) + at]


def _cell_above(lat: Floats, lon: Floats, resolution: int) -> Cells:
    """Return the cells of points, by way of the finest cells: those of H3's own coarse grid may differ at borders."""
    fine = latlng_to_cell(lat, (lon + 180) % 360 - 180, resolution) if resolution > _FINE else _fine_cells(lat, lon)
    return cell_to_parent(fine, resolution)


def _fine_cells(lat: Floats, lon: Floats) -> Cells:
    """Return the fine cells of points, kept as long as these: each level of detail of a page asks for them again."""
    key = id(lat), id(lon)
    if key not in _CELLS:
        _CELLS[key] = latlng_to_cell(lat, (lon + 180) % 360 - 180, _FINE)
        for side in (lat, lon):
            finalize(side, _CELLS.pop, key, None)
    return _CELLS[key]


_FINE = FINEST + 2
_CELLS: dict[tuple[int, int], Cells] = {}
"""The fine cells of points that are still in use."""


def _geojson(cell: str) -> str:
    import json

    return json.dumps(cell_to_polygon(cell))
