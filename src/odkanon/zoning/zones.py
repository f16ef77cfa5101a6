"""Zones of a release: their names, sizes and geometries; and the joint tree of both axes, for one zoning of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Codes, Frozen, Ints, group_sum
from odkanon.zoning.cells import cell_to_polygon, cells_to_polygons
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at, make_levels
from odkanon.zoning.spherical_geometry import EARTH_KM2, cell_area_km2, polygon_area_km2
from odkanon.zoning.substeps import fine_cells

Array = npt.NDArray[Any]
ZoneShape = Literal["cell", "cells", "place", "box", "world"]
"""An H3 cell, a free zone of several, a zone of a lookup table, a box of coordinates, or the virtual H3 root."""


@dataclass(frozen=True, eq=False)
class Zones(Frozen):
    """The zones of one axis of a release."""

    ids: npt.NDArray[np.str_]
    """Published names."""
    leaves: Ints | None = None
    """Number of leaves of the input in each zone; None without a hierarchy."""
    resolution: npt.NDArray[np.int64] | None = None
    """H3 resolution of each zone, -1 for the virtual root; None if zones are not H3 cells."""
    level: npt.NDArray[np.int64] | None = None
    """Level of each zone in its hierarchy, 0 for leaves."""
    bounds: npt.NDArray[np.float64] | None = None
    """For boxes: west, south, east, north of each."""
    outlines: Mapping[str, dict[str, Any]] | None = None
    """GeoJSON geometries by id, for zonings with their own."""
    cells: tuple[tuple[str, ...], ...] | None = None
    """For free zones: the H3 cells of each."""
    places: tuple[tuple[str, ...], ...] | None = None
    """For free zones of a lookup table: the codes of the leaves of each."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def are_nodes(self) -> bool:
        """Whether each zone is a node of a hierarchy, rather than a box, a union of nodes, or a free label."""
        if self.bounds is not None or self.places is not None:
            return False
        return self.level is not None or not len(self) or (self.cells is None and self.resolution is not None)

    @property
    def are_located(self) -> bool:
        """Whether the location of the zones is known; that of free labels is not."""
        return any(each is not None for each in (self.resolution, self.bounds, self.outlines, self.cells, self.places))

    def take(self, which: Codes | Ints) -> Zones:
        """Return some of the zones, in the given order."""
        taken: dict[str, Any] = {}
        for name in ("ids", "leaves", "resolution", "level", "bounds"):
            values = getattr(self, name)
            taken[name] = None if values is None else values[which]
        for name in ("cells", "places"):
            lists = getattr(self, name)
            taken[name] = None if lists is None else tuple(lists[zone] for zone in which.tolist())
        return replace(self, **taken)

    def describe(self, zone: int) -> dict[str, Any]:
        """Return the data-independent properties of a zone: id, kind, H3 resolution or level, cells, area."""
        about: dict[str, Any] = {"id": str(self.ids[zone]), "kind": self.kind(zone), "resolution": None}
        if self.resolution is not None and self.resolution[zone] >= 0:
            about["resolution"] = int(self.resolution[zone])
        elif self.level is not None:
            about["level"] = int(self.level[zone])
        if self.cells is not None:
            about["cells"] = list(self.cells[zone])
        if self.places is not None:
            about["places"] = list(self.places[zone])
        return about | {"area_km2": self.area_km2(zone)}

    def kind(self, zone: int) -> ZoneShape:
        """Return the shape of a zone."""
        if self.bounds is not None:
            return "box"
        if self.cells is not None and self.cells[zone] != ("world",):
            return "cells"
        if self.resolution is None:
            return "place"
        return "cell" if self.resolution[zone] >= 0 else "world"

    def area_km2(self, zone: int) -> float | None:
        """Return the area of a zone on the sphere, to six digits; None if its outline is unknown."""
        kind = self.kind(zone)
        if kind in ("cell", "cells"):
            cells = [str(self.ids[zone])] if self.cells is None else self.cells[zone]
            return _six_digits(sum(cell_area_km2(cell) for cell in cells))
        if kind == "world":
            return _six_digits(EARTH_KM2)
        outline = self.geometry(zone)
        return None if outline is None else _six_digits(polygon_area_km2(outline))

    def geometry(self, zone: int) -> dict[str, Any] | None:
        """Return the outline of a zone as GeoJSON; None if it is unknown."""
        if self.bounds is not None:
            west, south, east, north = (float(side) for side in self.bounds[zone])
            ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
            return {"type": "Polygon", "coordinates": [ring]}
        if self.cells is not None and self.cells[zone] != ("world",):
            cells = self.cells[zone]
            return cells_to_polygons(cells) if len(cells) > 1 else cell_to_polygon(cells[0])
        if self.resolution is not None:
            return cell_to_polygon(str(self.ids[zone])) if self.resolution[zone] >= 0 else None
        return (self.outlines or {}).get(str(self.ids[zone]))


def zones_of_cut(full: Hierarchy, cut: Cut) -> tuple[Zones, Codes]:
    """Return the zones of a cut, and for each leaf of the full tree the number of its zone, -1 for none.

    * ``full``: the tree of the whole input, which determines the number of leaves of each zone.
    * ``cut``: a cut of the full tree, or of the part of it that is left after suppression.
    """
    ids = np.empty(len(cut), dtype=object)
    first, size = np.zeros(len(cut), dtype=np.int64), np.zeros(len(cut), dtype=np.int64)
    resolution, node_ids = np.full(len(cut), -1), np.zeros(len(cut), dtype=full.leaves.dtype)
    for level in np.unique(cut.level).tolist():
        here = np.flatnonzero(cut.level == level)
        node = find_nodes(full, level, cut.tree.ids[level][cut.node[here]])
        ids[here], node_ids[here] = full.labels(level)[node], full.ids[level][node]
        first[here], size[here] = full.starts[level][node], full.sizes[level][node]
        finest = full.level_resolution(level)
        resolution[here] = -1 if finest is None else finest
    zone_of_leaf = np.full(len(full.leaves), -1, dtype=np.int32)
    offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    zone_of_leaf[np.repeat(first, size) + offset] = np.repeat(np.arange(len(cut)), size)
    is_h3 = full.resolution is not None
    zones = Zones(
        ids.astype(np.str_),
        size,
        resolution if is_h3 else None,
        cut.level.astype(np.int64),
        outlines=full.outlines,
        cells=fine_cells(node_ids) if full.steps > 1 else None,
    )
    return zones, zone_of_leaf


def zones_of_tree(tree: Hierarchy) -> tuple[Zones, list[int]]:
    """Return all nodes of a tree as zones, and for each level the number of its first node."""
    counts = [len(ids) for ids in tree.ids]
    level = np.repeat(np.arange(len(counts)), counts)
    leaves = np.concatenate(tree.sizes)
    ids = np.concatenate([tree.labels(at) for at in range(len(counts))]).astype(np.str_)
    resolution = None
    if tree.resolution is not None:
        finest = [tree.level_resolution(at) for at in range(len(counts))]
        resolution = np.repeat([-1 if at is None else at for at in finest], counts)
    cells = fine_cells(np.concatenate(tree.ids)) if tree.steps > 1 else None
    zones = Zones(ids, leaves, resolution, level, outlines=tree.outlines, cells=cells)
    return zones, [0, *np.cumsum(counts)[:-1].tolist()]


def zones_of_nodes(tree: Hierarchy, level: Ints, node: Ints) -> tuple[Zones, Codes]:
    """Return the given nodes of a tree as zones, each once, and for each occurrence the number of its zone.

    A code of a lookup table may occur on several levels; the finest of the given ones counts.
    """
    nodes = max(len(ids) for ids in tree.ids)
    distinct, number = np.unique(level * nodes + node, return_inverse=True)
    level, node, number = distinct // nodes, distinct % nodes, number.astype(np.int32)
    if tree.resolution is None:
        zones, first = zones_of_tree(tree)
        zones = zones.take(np.array(first)[level] + node)
        _, first_of, same = np.unique(zones.ids, return_index=True, return_inverse=True)
        kept = np.sort(first_of)
        return zones.take(kept), np.searchsorted(kept, first_of[same])[number].astype(np.int32)
    parts = [(at, node[level == at]) for at in np.unique(level).tolist()]
    finest = {at: tree.level_resolution(at) for at, _ in parts}
    zones = Zones(
        np.concatenate([tree.labels(at, here) for at, here in parts]).astype(np.str_),
        np.concatenate([tree.sizes[at][here] for at, here in parts]),
        np.array([-1 if finest[at] is None else finest[at] for at in level.tolist()], dtype=np.int64),
        level,
        cells=fine_cells(np.concatenate([tree.ids[at][here] for at, here in parts])) if tree.steps > 1 else None,
    )
    return zones, number


def find_nodes(tree: Hierarchy, level: int, ids: npt.NDArray[Any]) -> Ints:
    """Return the numbers of the nodes of a level that have the given ids."""
    by_id = np.argsort(tree.ids[level], kind="stable")
    return by_id[np.searchsorted(tree.ids[level], ids, sorter=by_id)]


def _six_digits(area: float) -> float:
    """Return an area without the digits that may differ between machines."""
    return float(f"{area:.6g}")


@dataclass(frozen=True, eq=False)
class JointTree:
    """The joint tree of two axes."""

    tree: Hierarchy
    """The tree over the leaves of either axis."""
    sides: tuple[Hierarchy, Hierarchy]
    """The trees of the origins and of the destinations, extended to the height of the joint tree."""
    leaves: tuple[Ints, Ints]
    """For each leaf of a side, its number in the joint tree, in ascending order."""

    def cuts(self, cut: Cut) -> tuple[Cut, Cut]:
        """Return a cut of the joint tree as a cut of each side."""
        level = cut.level[cut.zone_of_leaf]
        first, second = (cut_at(side, level[leaves]) for side, leaves in zip(self.sides, self.leaves, strict=True))
        return first, second

    def masses(self, of_sides: tuple[tuple[Ints, ...], tuple[Ints, ...]]) -> tuple[Ints, ...]:
        """Return the mass of every node, by level: the sum of its masses as an origin and as a destination."""
        return tuple(np.sum([self._lifted(at, of_sides, level) for at in (0, 1)], axis=0) for level in self._levels)

    @property
    def counts(self) -> tuple[Ints, Ints]:
        """For each side and leaf of the joint tree, 1 if the side has the leaf, else 0."""
        first, second = (np.bincount(leaves, minlength=len(self.tree.leaves)) for leaves in self.leaves)
        return first, second

    @property
    def _levels(self) -> range:
        return range(self.tree.top + 1)

    def _lifted(self, at: int, of_sides: tuple[tuple[Ints, ...], tuple[Ints, ...]], level: int) -> Ints:
        # Masses may be those of a lower tree, whose root contains everything.
        mass = of_sides[at][min(level, len(of_sides[at]) - 1)]
        node = self.tree.codes[level][self.leaves[at][self.sides[at].starts[level]]]
        return group_sum(node, len(self.tree.ids[level]), mass)


def join_trees(origins: Hierarchy, destinations: Hierarchy) -> JointTree:
    """Return the joint tree of two trees over the same zoning.

    Examples
    --------
    >>> import numpy as np
    >>> from odkanon.zoning.hierarchy import h3_hierarchy
    >>> first, second = (np.array([cell], dtype=np.uint64) for cell in (0x8A1FB4671017FFF, 0x8A1FB4671007FFF))
    >>> join_trees(h3_hierarchy(first), h3_hierarchy(second)).tree
    Hierarchy(H3 resolution 10; nodes by level: 2 < 1)
    """
    tall = origins.to_public_root(), destinations.to_public_root()
    height = min(tree.top for tree in tall) + 1
    above = [np.concatenate([tree.ids[at][tree.codes[at]] for tree in tall]) for at in range(height)]
    first = np.unique(above[0], return_index=True)[1]
    # In every tree, a level is sorted by id within the level above it.
    order = first[np.lexsort([ids[first] for ids in above])]
    plain = make_levels([ids[order] for ids in above], origins.resolution)
    known = replace(plain, outlines=origins.outlines, public=origins.public or destinations.public)
    tree = replace(known, steps=origins.steps, names=origins.names, within=origins.within)
    sides = origins.reaching(tree.top), destinations.reaching(tree.top)
    first_leaves, second_leaves = (find_nodes(tree, 0, side.leaves) for side in sides)
    return JointTree(tree, sides, (first_leaves, second_leaves))
