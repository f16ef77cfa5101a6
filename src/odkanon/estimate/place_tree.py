"""Small places that zones are made of, as the leaves of one tree for origins and destinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import h3
import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints, spans
from odkanon.zoning.cells import (
    MAX_RESOLUTION,
    Cells,
    Floats,
    cell_to_children,
    cell_to_latlng,
    cell_to_parent,
    cell_to_resolution,
    cell_to_span,
)
from odkanon.zoning.spherical_geometry import RADIUS_KM
from odkanon.zoning.substeps import substep_order
from odkanon.zoning.zone_nodes import CellNodes

FINEST = 8
"""H3 resolution of places: finer than flows can be distinguished, coarse enough to be few."""
FINER = FINEST + 1
"""H3 resolution of places where these are few and flows have no attributes: it helps between small areas."""
COARSEST_FILLED = 6
"""Listed zones of this resolution or finer are divided into places; coarser ones only where nothing finer is known."""
MOST_PLACES = 40_000
_POINTS_PER_STEP = 2
FINEST_POINTS = 10
"""Resolution of points; the trips of a cell of this size are at its middle, as those of an input of cells are."""


_WIDTH, _REACH = 1.1, 1.4
"""Width of the density by which trips are smoothed, and where it is cut off, in distances to the nearest place."""


@dataclass(frozen=True, eq=False)
class SamplePoints:
    """Points that stand for the area of places or zones: `owner` has the number of each, with `lat` and `lon`."""

    owner: Ints
    lat: Floats
    lon: Floats

    def take(self, which: npt.NDArray[np.bool_], numbers: Ints) -> SamplePoints:
        """Return some of the points, with other numbers of their owners."""
        return SamplePoints(numbers[self.owner[which]], self.lat[which], self.lon[which])


@dataclass(frozen=True, eq=False)
class NodeParts:
    """Parts of nodes, as zones that cross each other cut them.

    Attributes
    ----------
    node : array of int
        The node that each is part of.
    places, ends : array of int
        The places of all parts in one array, and where those of each begin; then the length.
    """

    node: Ints
    places: Ints
    ends: Ints

    @classmethod
    def none(cls) -> NodeParts:
        """Return no parts."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64))


@dataclass(frozen=True, eq=False)
class PlaceTree:
    """Places in the order of a tree, so that each node is a range of them.

    Attributes
    ----------
    levels : list of array of int
        For each level, from the root to the places, the number of each place's node; ascending.
    points : SamplePoints
        Points inside each place.
    parts : NodeParts
        Parts of the nodes above places, numbered after all nodes. If there are any, blocks lead between those nodes.
    """

    levels: list[Ints]
    points: SamplePoints
    parts: NodeParts = field(default_factory=NodeParts.none)

    def __len__(self) -> int:
        return len(self.levels[-1])

    @cached_property
    def offsets(self) -> Ints:
        """For each level the number of its first node, in one numbering of all nodes; then their number."""
        return np.cumsum([0, *(int(level[-1]) + 1 for level in self.levels)])

    @cached_property
    def first(self) -> Ints:
        """For each node its first place."""
        return np.concatenate([np.flatnonzero(np.diff(level, prepend=-1)) for level in self.levels])

    @cached_property
    def end(self) -> Ints:
        """For each node the place after its last."""
        return np.concatenate([np.append(np.flatnonzero(np.diff(level)) + 1, len(level)) for level in self.levels])

    @property
    def size(self) -> int:
        """The number of nodes and parts."""
        return int(self.offsets[-1]) + len(self.parts.node)

    @property
    def block_level(self) -> int:
        """The finest level of the nodes between which blocks lead."""
        return len(self.levels) - (2 if len(self.parts.node) else 1)

    @cached_property
    def members(self) -> tuple[Ints, Ints]:
        """All pairs of a node or part and a place in it."""
        count = np.concatenate([self.end - self.first, np.diff(self.parts.ends)])
        return np.repeat(np.arange(self.size), count), np.concatenate([spans(self.first, self.end), self.parts.places])

    def sums(self, values: Floats) -> Floats:
        """Return for each node and part the sum over its places; further axes come first."""
        found = _differences(values, self.first, self.end)
        if len(self.parts.node):
            found = np.concatenate(
                [found, _differences(values[..., self.parts.places], self.parts.ends[:-1], self.parts.ends[1:])],
                axis=-1,
            )
        return found

    def push_down(self, values: Floats) -> Floats:
        """Return for each place the sum over the nodes and parts that contain it; further axes come first."""
        total = np.zeros((*values.shape[:-1], len(self)))
        for level, first, last in zip(self.levels, self.offsets[:-1], self.offsets[1:], strict=True):
            total += values[..., first:last][..., level]
        if len(self.parts.node):
            own = np.repeat(values[..., self.offsets[-1] :], np.diff(self.parts.ends), axis=-1)
            for at in np.ndindex(total.shape[:-1]):
                total[at] += np.bincount(self.parts.places, own[at], len(self))
        return total

    @cached_property
    def centres(self) -> Floats:
        """Unit vectors to the middle of each node; those of parts are those of their nodes."""
        lat, lon = np.radians(self.points.lat), np.radians(self.points.lon)
        flat = np.cos(lat)
        sums = [
            self.sums(np.bincount(self.points.owner, side, len(self)) / self._counts)
            for side in (flat * np.cos(lon), flat * np.sin(lon), np.sin(lat))
        ]
        vectors = np.stack(sums, axis=1)
        vectors[self.offsets[-1] :] = vectors[self.parts.node]
        # Rounded: sines and cosines may differ in the last bit between machines.
        found: Floats = np.round(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 12)
        return found

    @cached_property
    def _counts(self) -> Floats:
        return np.bincount(self.points.owner, minlength=len(self)).astype(np.float64)

    @cached_property
    def radii(self) -> Floats:
        """Distance in km from the middle of each node to the middle of its farthest place, plus that place's own."""
        places = slice(self.offsets[-2], self.offsets[-1])
        own = self._spread(self.points.owner, self.centres[places], self.points)
        radii = [np.round(own, 6)]
        for at in range(len(self.levels) - 2, -1, -1):
            level, middle = self.levels[at], self.centres[self.offsets[at] : self.offsets[at + 1]]
            far = RADIUS_KM * np.linalg.norm(self.centres[places] - middle[level], axis=1) + own
            farthest = np.zeros(len(middle))
            np.maximum.at(farthest, level, far)
            radii.insert(0, np.round(farthest, 6))
        return np.concatenate(radii)

    @cached_property
    def surroundings(self) -> Any:
        """For each place (column) how its trips would lie in the places around it, by a normal density cut off."""
        from scipy.sparse import csc_array
        from scipy.spatial import cKDTree

        middle = RADIUS_KM * self.centres[self.offsets[-2] : self.offsets[-1]]
        search = cKDTree(middle)
        spacing = np.round(search.query(middle, k=min(2, len(self)))[0].reshape(len(self), -1)[:, -1], 6)
        found = search.query_ball_point(middle, _REACH * spacing, return_sorted=True)
        near = np.concatenate(found).astype(np.int64)
        place = np.repeat(np.arange(len(self)), [len(each) for each in found])
        steps = np.round(np.linalg.norm(middle[near] - middle[place], axis=1) / np.maximum(spacing[place], 1e-3), 6)
        weight = np.exp(-((steps / _WIDTH) ** 2) / 2) * np.maximum(spacing[near], 1e-3) ** 2
        share = weight / np.bincount(place, weight, len(self))[place]
        return csc_array((share, (near, place)), shape=(len(self), len(self)))

    @staticmethod
    def _spread(owner: Ints, middle: Floats, points: SamplePoints) -> Floats:
        lat, lon = np.radians(points.lat), np.radians(points.lon)
        vectors = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
        far = np.zeros(len(middle))
        np.maximum.at(far, owner, RADIUS_KM * np.linalg.norm(vectors - middle[owner], axis=1))
        return far

    def distance(self, one: Ints, other: Ints) -> Floats:
        """Return the distance in km between the middles of pairs of nodes."""
        found: Floats = RADIUS_KM * np.linalg.norm(self.centres[one] - self.centres[other], axis=1)
        return found

    def children(self, level: int, node: Ints) -> tuple[Ints, Ints]:
        """Return the first child of nodes of a level, and the one after the last, numbered within the next level."""
        below, at = self.levels[level + 1], self.offsets[level] + node
        return below[self.first[at]], below[self.end[at] - 1] + 1


def _differences(values: Floats, first: Ints, end: Ints) -> Floats:
    """Return the sums over ranges of the last axis."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=total[..., 1:])
    found: Floats = total[..., end] - total[..., first]
    return found


@dataclass(frozen=True, eq=False)
class PlacedZones:
    """Zones of one axis as parts of a `PlaceTree`.

    Attributes
    ----------
    level, node : array of int
        The node that a zone is, numbered within its level; level -1 where it is none.
    first, end : array of int
        The range of places of each zone that is a node or lies inside a place; of others, a range of `members`.
    members : array of int
        Parts of zones that are no nodes, numbered like places, after these.
    inside_place : array of bool
        Whether a zone is smaller than the place that it lies in.
    points : SamplePoints
        Points inside the zones that are smaller than a place.
    """

    level: Ints
    node: Ints
    first: Ints
    end: Ints
    members: Ints
    inside_place: npt.NDArray[np.bool_]
    points: SamplePoints

    def places(self, zones: Ints) -> tuple[Ints, Ints]:
        """Return the places or parts of each of some zones in one array, and how many each zone has."""
        found = spans(self.first[zones], self.end[zones])
        count = self.end[zones] - self.first[zones]
        listed = np.repeat(self.level[zones] < 0, count)
        if listed.any():
            found[listed] = self.members[found[listed]]
        return found, count


def place_cells(axes: Sequence[CellNodes], finest: int = FINEST) -> tuple[PlaceTree, list[PlacedZones]]:
    """Return the places of zones that are H3 cells, worlds, or groups of cells between two resolutions.

    Parameters
    ----------
    axes : sequence of CellNodes
        The zones of both axes.
    finest : int
        The H3 resolution of places, unless zones are coarser or places would be too many.
    """
    cell, depth = (np.concatenate([getattr(nodes, name) for nodes in axes]) for name in ("cell", "depth"))
    finest = min(finest, int(cell_to_resolution(cell[depth > 0]).max(initial=0)))
    cells = _base_cells(cell, depth, finest)
    while len(cells) > MOST_PLACES and finest > 0:
        finest -= 1
        cells = _base_cells(cell, depth, finest)
    own = CellNodes(cells, 3 * cell_to_resolution(cells) + 1, np.ones(len(cells)))
    bottom = 3 * finest + 1
    depths = sorted({0, bottom} | set(range(1, bottom, 3)) | {int(at) for at in depth if at < bottom})
    levels, ids = [], []
    for at in depths:
        above = own.cell.copy()
        deep = np.flatnonzero(own.depth >= at)
        above[deep] = own.above(deep, at)
        starts = np.concatenate([[True], above[1:] != above[:-1]])
        levels.append(np.cumsum(starts) - 1)
        ids.append(above[starts])
    tree = PlaceTree(levels, _cell_points(cells))
    return tree, [_placed_cells(nodes, tree, depths, ids) for nodes in axes]


def _base_cells(cell: Cells, depth: Ints, finest: int) -> Cells:
    """Return the cells that zones are made of: of one resolution, and coarser where nothing finer is known."""
    resolution = np.where(depth == 0, -1, (depth - 1) // 3)
    cell, resolution = _with_children(cell, resolution, (depth > 0) & ((depth - 1) % 3 > 0) & (resolution < finest))
    parts = [cell_to_parent(cell[resolution >= finest], finest)]
    parts += [
        cell_to_children(np.unique(cell_to_parent(cell[resolution == at], at)), finest)
        for at in range(min(COARSEST_FILLED, finest), finest)
    ]
    cells = np.unique(np.concatenate(parts))
    for at in range(min(COARSEST_FILLED, finest) - 1, -1, -1):
        zones = np.unique(cell_to_parent(cell[resolution == at], at))
        keys = np.sort(cell_to_span(cells, MAX_RESOLUTION)[0])
        low, high = cell_to_span(zones, MAX_RESOLUTION)
        empty = np.searchsorted(keys, low) == np.searchsorted(keys, high, side="right")
        cells = np.concatenate([cells, zones[empty]])
    if not len(cells):  # nothing but the world
        cells = np.array([int(name, 16) for name in h3.get_res0_cells()], dtype=np.uint64)
    return cells[np.argsort(substep_order(cell_to_span(cells, MAX_RESOLUTION)[0]))]


def _with_children(cell: Cells, resolution: Ints, between: Bools) -> tuple[Cells, Ints]:
    """Replace groups of cells between two resolutions by all cells of the finer one around them."""
    cells, resolutions = [cell[~between]], [resolution[~between]]
    for at in np.unique(resolution[between]).tolist():
        children = cell_to_children(np.unique(cell_to_parent(cell[between & (resolution == at)], at)), at + 1)
        cells.append(children)
        resolutions.append(np.full(len(children), at + 1))
    return np.concatenate(cells), np.concatenate(resolutions)


def _cell_points(cells: Cells) -> SamplePoints:
    """Return the middles of small cells below each cell."""
    owner, points = _cells_below(cells)
    return SamplePoints(owner, *cell_to_latlng(points))


def _node_points(nodes: CellNodes, which: Ints) -> SamplePoints:
    """Return points inside some nodes, of which those between two resolutions are parts of a cell."""
    cells = cell_to_parent(nodes.cell[which], 0)
    resolution = (nodes.depth[which] - 1) // 3
    for at in np.unique(resolution).tolist():
        here = resolution == at
        cells[here] = cell_to_parent(nodes.cell[which[here]], at)
    owner, points = _cells_below(cells, MAX_RESOLUTION if bool(((nodes.depth[which] - 1) % 3).any()) else FINEST_POINTS)
    below = CellNodes(points, 3 * cell_to_resolution(points) + 1, np.zeros(len(points)))
    inside = np.zeros(len(points), dtype=bool)
    for depth in np.unique(nodes.depth[which]).tolist():
        here = np.flatnonzero(nodes.depth[which][owner] == depth)
        inside[here] = below.above(here, depth) == nodes.above(which[owner[here]], depth)
    return SamplePoints(which[owner[inside]], *cell_to_latlng(points[inside]))


def _cells_below(cells: Cells, finest: int = FINEST_POINTS) -> tuple[Ints, Cells]:
    """Return the cells that stand for points of some cells, sorted by these, and for each the number of its own."""
    owners, points = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    resolution = cell_to_resolution(cells)
    for at in np.unique(resolution).tolist():
        own = np.flatnonzero(resolution == at)
        distinct, number = np.unique(cells[own], return_inverse=True)
        below = cell_to_children(distinct, max(at, min(at + _POINTS_PER_STEP, finest)))
        parent = np.searchsorted(distinct, cell_to_parent(below, at))
        order = np.argsort(parent, kind="stable")
        first = np.searchsorted(parent[order], np.arange(len(distinct)))
        last = np.searchsorted(parent[order], np.arange(len(distinct)), side="right")
        which = spans(first[number], last[number])
        owners.append(np.repeat(own, (last - first)[number]))
        points.append(below[order][which])
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return owner[order], np.concatenate(points)[order]


def _placed_cells(nodes: CellNodes, tree: PlaceTree, depths: list[int], ids: list[Cells]) -> PlacedZones:
    count, bottom = len(nodes.cell), depths[-1]
    level, node = np.full(count, -1), np.zeros(count, dtype=np.int64)
    first, end = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for at, depth in enumerate(depths):
        here = np.flatnonzero((nodes.depth == depth) | ((nodes.depth > bottom) & (depth == bottom)))
        if not len(here):
            continue
        order = np.argsort(ids[at], kind="stable")
        found = order[np.searchsorted(ids[at], nodes.above(here, depth), sorter=order)]
        level[here], node[here] = at, found
        first[here], end[here] = (side[tree.offsets[at] + found] for side in (tree.first, tree.end))
    inside = nodes.depth > bottom
    points = _node_points(nodes, np.flatnonzero(inside))
    return PlacedZones(level, node, first, end, np.empty(0, np.int64), inside, points)
