"""The areas of zones: as points that each represent an equal part of a zone, or as boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import h3ronpy
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Bools, Ints, group_sum, spans
from odkanon.quality.accuracy.squares import MapZones, Shares, Squares, number_pairs
from odkanon.zoning.cells import WORLD, Cells, Floats, cell_to_latlng, cell_to_resolution, cell_to_span, str_to_cell
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.spherical_geometry import Projection, list_polygons
from odkanon.zoning.zone_nodes import leaf_parts, leaf_spans
from odkanon.zoning.zones import Zones

STEPS = 4
"""Levels below a cell at which it is sampled: 2,401 parts, or the leaves if these are coarser."""
_GRID = 16
"""Points along each side of the bounding box of a polygon."""

T = TypeVar("T")
Pair = tuple[T, T]
"""One for origins and one for destinations."""


@dataclass(frozen=True, eq=False)
class ZonePoints:
    """Zones as points, each of which represents an equal part of its zone; a zone without a location has none."""

    x: Floats
    y: Floats
    """The points, in metres, with those of a zone next to each other. Overlapping zones may share points."""
    starts: Ints
    counts: Ints
    """For each zone its first point, and the number of its points."""
    many: Ints | None = None
    """The number of points that each point represents, if not one."""

    def shares(self, places: MapZones) -> Shares:
        """Return the share of each zone in each place."""
        (zone, place), many = self._counts(places)
        whole = self.counts if self.many is None else group_sum(zone, len(self.counts), many)
        return Shares(zone, place, many / whole[zone], len(self.counts))

    def on(self, squares: Squares) -> ZonePoints:
        """Return the zones as one point per square, with the same shares of larger squares."""
        (zone, place), many = self._counts(squares)
        return _rounded(*squares.centres(place), np.bincount(zone, minlength=len(self.counts)), many)

    def _counts(self, places: MapZones) -> tuple[tuple[Ints, Ints], Ints]:
        """Return the combinations of zone and place, and the number of points of each, run by run of equal places."""
        place, points, ends = places.locate(self.x, self.y), len(self.x), self.starts + self.counts
        opens = np.ones(points + 1, dtype=bool)
        opens[1:points] = place[1:] != place[:-1]
        opens[self.starts] = opens[ends] = True
        run, first = np.cumsum(opens) - 1, np.flatnonzero(opens[:-1])
        many = np.diff(first, append=points) if self.many is None else np.add.reduceat(self.many, first)
        at = spans(run[self.starts], run[ends])
        zone = np.repeat(np.arange(len(ends)), run[ends] - run[self.starts])
        return number_pairs(zone, place[first][at], many[at])

    def split(self, zones: int) -> tuple[ZonePoints, ZonePoints]:
        """Return the first ``zones`` zones, and the others."""
        first, others = slice(None, zones), slice(zones, None)
        return replace(self, starts=self.starts[first], counts=self.counts[first]), replace(
            self, starts=self.starts[others], counts=self.counts[others]
        )

    def sample(self, zone: Ints, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return a point of each given zone, chosen by two numbers in [0, 1); NaN for zones without a location."""
        nowhere = self.counts[zone] == 0
        at = np.where(nowhere, 0, self.starts[zone] + (u * self.counts[zone]).astype(np.int64))
        x, y = (np.where(nowhere, np.nan, np.append(side, np.nan)[at]) for side in (self.x, self.y))
        return x, y


@dataclass(frozen=True, eq=False)
class ZoneBoxes:
    """Zones as boxes: ``sides`` has west, south, east and north of each, in metres."""

    sides: Floats

    def shares(self, places: MapZones) -> Shares:
        """Return the share of each zone in each place."""
        return places.box_shares(self.sides)

    def on(self, squares: Squares) -> ZoneBoxes:
        """Return the boxes themselves, whose shares of squares of any size have a closed form."""
        return self

    def sample(self, zone: Ints, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return a point of each given zone, chosen by two numbers in [0, 1)."""
        west, south, east, north = self.sides[zone].T
        return west + u * (east - west), south + v * (north - south)


def locate_zones(
    zones: Pair[Zones], leaf_resolution: Pair[int | None], projection: Projection
) -> Pair[ZonePoints | ZoneBoxes]:
    """Return the areas of the zones of a release, on both axes.

    H3 cells and unions of them are sampled at all cells below them, not only those with trips, since a reader knows no
    more. Polygons of other zonings are sampled on a grid of points; those of the finest level at their centroid, like
    their trips.
    """
    cells, other = _cells_of(zones[0]), _cells_of(zones[1])
    if cells is None or other is None:
        return _drawn(zones[0], projection), _drawn(zones[1], projection)
    # In one call, since most zones are the same on both axes.
    leaf = np.repeat([leaf_resolution[0] or 0, leaf_resolution[1] or 0], [len(zones[0]), len(zones[1])])
    (first, many), (second, more) = cells, other
    parts = _cells(np.concatenate([first, second]), np.concatenate([many, more]), leaf, projection)
    return parts.split(len(zones[0]))


def _cells_of(zones: Zones) -> tuple[Cells, Ints] | None:
    """Return the cells of zones that consist of cells, and their number for each zone; None for other zones."""
    if zones.bounds is not None:
        return None
    if zones.cells is not None:
        members = str_to_cell(pa.array([cell for cells in zones.cells for cell in cells], pa.string()))
        zone = np.repeat(np.arange(len(zones)), [len(cells) for cells in zones.cells])
        real = members != WORLD
        return members[real], np.bincount(zone[real], minlength=len(zones))
    if zones.resolution is not None:
        real = zones.resolution >= 0
        return str_to_cell(pa.array(zones.ids[real].tolist(), pa.string())), real.astype(np.int64)
    return None


def _drawn(zones: Zones, projection: Projection) -> ZonePoints | ZoneBoxes:
    """Return the areas of zones that do not consist of cells."""
    if zones.bounds is None:
        return _polygons(zones, projection)
    west, south, east, north = zones.bounds.T
    x, y = projection.to_metres(np.concatenate([south, north]), np.concatenate([west, east]))
    return ZoneBoxes(np.stack([x[: len(west)], y[: len(west)], x[len(west) :], y[len(west) :]], axis=1))


def leaf_points(tree: Hierarchy) -> tuple[Floats, Floats]:
    """Return latitude and longitude of the centroid of each leaf; NaN where it is unknown."""
    if tree.resolution is not None:
        return tree.centres
    outlines = tree.outlines or {}
    centroids = [_centroid(outlines.get(str(leaf))) for leaf in tree.leaves]
    lat, lon = np.array(centroids).reshape(-1, 2).T
    return lat, lon


def _cells(cells: Cells, counts: Ints, leaf_resolution: Ints, projection: Projection) -> ZonePoints:
    """Return zones that consist of cells, with their number for each zone in ``counts``."""
    zone = np.repeat(np.arange(len(counts)), counts)
    own = cell_to_resolution(cells)
    coarsest, finest = np.full(len(counts), 15), np.zeros(len(counts), dtype=np.int64)
    np.minimum.at(coarsest, zone, own)
    np.maximum.at(finest, zone, own)
    resolution = np.minimum(np.maximum(finest, coarsest + STEPS), np.maximum(leaf_resolution, finest))[zone]
    found, points = [(np.empty(0), np.empty(0))], 0
    starts, parts = np.zeros(len(counts), dtype=np.int64), np.zeros(len(counts), dtype=np.int64)
    for wanted in np.unique(resolution).tolist():
        here = np.flatnonzero(resolution == wanted)
        below, first, end = _below(cells[here], wanted)
        x, y = (np.rint(side) for side in projection.to_metres(*cell_to_latlng(below)))
        if (counts[zone[here]] > 1).any():  # the points of a zone have to be next to each other
            order = np.lexsort((first, zone[here]))
            here, at = here[order], spans(first[order], end[order])
            x, y, end = x[at], y[at], np.cumsum((end - first)[order])
            first = np.concatenate([[0], end[:-1]])
        own, at = np.unique(zone[here], return_index=True)
        starts[own] = points + first[at]
        np.add.at(parts, zone[here], end - first)
        found.append((x, y))
        points += len(x)
    x, y = (np.concatenate(each) for each in zip(*found, strict=True))
    return ZonePoints(x, y, starts, parts)


def _below(cells: Cells, resolution: int) -> tuple[Cells, Ints, Ints]:
    """Return all cells of a resolution below some cells, sorted, and the first and last index for each cell."""
    low, high = cell_to_span(cells, resolution)
    order = np.lexsort((~high, low))
    # Cells are disjoint, nested or equal; those inside others add none.
    furthest = np.maximum.accumulate(high[order])
    outer = order[np.concatenate([[True], low[order][1:] > furthest[:-1]])]
    below = np.sort(pa.array(h3ronpy.change_resolution(pa.array(cells[outer]), resolution)).to_numpy())
    return below, np.searchsorted(below, low), np.searchsorted(below, high, side="right")


def _rounded(x: Floats, y: Floats, counts: Ints, many: Ints | None = None) -> ZonePoints:
    # To the metre, like the leaves: on the border of two squares both have to fall on the same side.
    return ZonePoints(np.rint(x), np.rint(y), np.cumsum(counts) - counts, counts, many)


def _polygons(zones: Zones, projection: Projection) -> ZonePoints:
    outlines = [(zones.outlines or {}).get(str(zone)) for zone in zones.ids]
    finest = np.zeros(len(zones), dtype=bool) if zones.level is None else zones.level == 0
    if zones.places is not None:
        finest = np.array([len(part) == 1 for part in zones.places])
    points = [
        np.array([_centroid(outline)]) if is_finest else _inside(outline)
        for outline, is_finest in zip(outlines, finest.tolist(), strict=True)
    ]
    known = [part[np.isfinite(part).all(axis=1)] for part in points]
    lat, lon = np.concatenate([np.empty((0, 2)), *known]).T
    return _rounded(*projection.to_metres(lat, lon), np.array([len(part) for part in known], dtype=np.int64))


def leaf_areas(zones: Zones, tree: Hierarchy, projection: Projection, inside: bool) -> ZonePoints:
    """Return the areas of nested zones of a lookup table: points of their leaves, as many as these have parts.

    These are points ``inside`` a leaf, or its centroid where the trips themselves are only known by leaf.
    """
    full = tree.public or tree
    outlines = full.outlines or tree.outlines or {}
    drawn = [outlines.get(str(leaf)) for leaf in full.leaves]
    points = [_inside(each) if inside else np.array([_centroid(each)]) for each in drawn]
    parts = np.array(
        [0 if np.isnan(own).any() else n for own, n in zip(points, leaf_parts(tree).tolist(), strict=True)]
    )
    taken = [own[np.arange(n) * len(own) // n] for own, n in zip(points, parts.tolist(), strict=True) if n]
    lat, lon = np.concatenate([np.empty((0, 2)), *taken]).T
    x, y = (np.rint(side) for side in projection.to_metres(lat, lon))
    sums = np.concatenate([[0], np.cumsum(parts)])
    assert zones.level is not None
    first, end = leaf_spans(zones, zones.level, full)
    return ZonePoints(x, y, sums[first], sums[end] - sums[first])


def _rings(outline: dict[str, Any] | None) -> list[Floats]:
    """Return all rings of a GeoJSON polygon or multipolygon, as longitudes and latitudes."""
    return [np.asarray(ring, dtype=np.float64)[:, :2] for polygon in list_polygons(outline) for ring in polygon]


def _centroid(outline: dict[str, Any] | None) -> tuple[float, float]:
    """Return latitude and longitude of the centroid of a polygon."""
    area, moment = 0.0, np.zeros(2)
    rings = _rings(outline)
    for ring in rings:
        here, after = ring[:-1] - rings[0][0], ring[1:] - rings[0][0]
        cross = here[:, 0] * after[:, 1] - after[:, 0] * here[:, 1]
        # Inner rings run the other way round, so they subtract.
        area += float(cross.sum()) / 2
        moment += ((here + after) * cross[:, None]).sum(axis=0) / 6
    if area == 0:
        return np.nan, np.nan
    lon, lat = rings[0][0] + moment / area
    return float(lat), float(lon)


def _inside(outline: dict[str, Any] | None) -> Floats:
    """Return latitudes and longitudes of a grid of points inside a polygon."""
    rings = _rings(outline)
    if not rings:
        return np.empty((0, 2))
    corners = np.concatenate(rings)
    low, high = corners.min(axis=0), corners.max(axis=0)
    steps = (np.arange(_GRID) + 0.5) / _GRID
    lon, lat = (side.ravel() for side in np.meshgrid(*(low + steps[:, None] * (high - low)).T))
    within = np.zeros(len(lon), dtype=bool)
    for ring in rings:
        within ^= _odd(ring, lon, lat)
    return np.stack([lat, lon], axis=1)[within] if within.any() else np.array([_centroid(outline)])


def _odd(ring: Floats, x: Floats, y: Floats) -> Bools:
    """Return for each point whether a ray to the east crosses a ring an odd number of times."""
    (x1, y1), (x2, y2) = ring[:-1].T[:, :, None], ring[1:].T[:, :, None]
    spans: npt.NDArray[np.bool_] = (y1 > y) != (y2 > y)
    slope = (x2 - x1) / np.where(y2 == y1, 1.0, y2 - y1)
    odd: Bools = (spans & (x < x1 + (y - y1) * slope)).sum(axis=0) % 2 == 1
    return odd
