"""Zones and attribute values as nodes of public trees, from which the nesting of rows follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Bools, Ints
from odkanon.zoning.cells import (
    WORLD,
    Cells,
    Floats,
    cell_to_parent,
    cell_to_resolution,
    is_valid_cell,
    str_to_cell,
)
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.spherical_geometry import polygon_area_km2
from odkanon.zoning.substeps import FIRST_HALF, FIRST_PAIR, PAIR_OF_DIGIT, child_digit, child_of, group_ids
from odkanon.zoning.zones import Zones, find_nodes

_CHILDREN, _BASE_CELLS = 7.0, 122.0
_STEPS = 3
"""Levels from an H3 resolution to the next, with halves and pairs of children in between."""
_PARTS = 50_000
"""Approximate number of equal parts into which the area of a lookup table's zones is divided."""
_HALVES = ("0462", "315", "35")

Labels = npt.NDArray[np.str_]


class ZoneNodes(Protocol):
    """Nodes of one tree, at any depths."""

    @property
    def depth(self) -> Ints:
        """Depth of each node; that of the root is 0."""

    @property
    def size(self) -> Floats:
        """Size of each node, in any unit."""

    def take(self, which: Ints) -> ZoneNodes:
        """Return some of the nodes."""

    def above(self, which: Ints, depth: int) -> npt.NDArray[Any]:
        """Return the ids of the ancestors of some nodes at a depth; a node is its own ancestor at its depth."""


@dataclass(frozen=True, eq=False)
class CellNodes:
    """Zones as nodes of the public H3 tree with substeps."""

    cell: Cells
    """A cell inside each node."""
    depth: Ints
    """0 for the world, ``3 r + 1`` for a cell of resolution r."""
    size: Floats
    """Size relative to a resolution-0 cell."""

    def take(self, which: Ints) -> CellNodes:
        """Return some of the nodes."""
        return CellNodes(self.cell[which], self.depth[which], self.size[which])

    def above(self, which: Ints, depth: int) -> Cells:
        """Return the ids of the ancestors of some nodes at a depth; see `ZoneNodes`."""
        cells = self.cell[which]
        if depth == 0:
            return np.full(len(cells), WORLD)
        resolution, step = divmod(depth - 1, _STEPS)
        parent = cell_to_parent(cells, resolution)
        if step == 0:
            return parent
        pair = PAIR_OF_DIGIT[child_digit(cells, resolution + 1)]
        return group_ids(parent, FIRST_HALF + pair // 2 if step == 1 else FIRST_PAIR + pair)


def cell_nodes(names: Sequence[str]) -> CellNodes | None:
    """Return named zones as nodes of the H3 tree; None if any of them is not a node."""
    parts = [name.partition("-")[::2] for name in names]
    world = np.array([name == "world" for name in names], dtype=bool)
    base = np.where(world, WORLD, str_to_cell(pa.array([cell for cell, _ in parts], pa.string())))
    if not bool((is_valid_cell(base) | world).all()):
        return None
    digits = np.array([int(children[:1] or -1) for _, children in parts])
    between = digits >= 0
    half = np.array([children in _HALVES for _, children in parts], dtype=bool)
    depth = np.where(world, 0, _STEPS * cell_to_resolution(base) + 1 + np.where(between, 2 - half, 0))
    cell = base.copy()
    cell[between] = child_of(base[between], digits[between].astype(np.uint64))
    size: Floats = np.power(_CHILDREN, -cell_to_resolution(cell).astype(np.float64))
    size = size * np.array([max(len(children), 1) for _, children in parts])
    return CellNodes(cell, depth.astype(np.int64), np.where(world, _BASE_CELLS, size))


@dataclass(frozen=True, eq=False)
class TreeNodes:
    """Nodes of a tree given level by level."""

    chain: Ints
    """For each depth (row) and node (column), the number of the node's ancestor; arbitrary below the node itself."""
    depth: Ints
    """Depth of each node; that of the root is 0."""
    size: Floats
    """Size of each node."""

    def take(self, which: Ints) -> TreeNodes:
        """Return some of the nodes."""
        return TreeNodes(self.chain[:, which], self.depth[which], self.size[which])

    def above(self, which: Ints, depth: int) -> Ints:
        """Return the numbers of the ancestors of some nodes at a depth; see `ZoneNodes`."""
        found: Ints = self.chain[depth, which]
        return found


def attribute_nodes(labels: Labels, levels: Sequence[Sequence[str]]) -> tuple[TreeNodes, Ints]:
    """Return the distinct labels of rows as nodes of an attribute's tree, and for each row the number of its node.

    The size of a node is the number of values below it.

    * ``labels``: for each row, its value or group of values.
    * ``levels``: the tree by columns; see `odkanon.attributes.hierarchies.AttributeAxis.listed`.
    """
    distinct, which = np.unique(labels, return_inverse=True)
    columns = np.array(levels, dtype=np.str_)[::-1]
    chain = np.stack([np.unique(column, return_inverse=True)[1] for column in columns])
    leaf, depth = np.zeros(len(distinct), dtype=np.int64), np.zeros(len(distinct), dtype=np.int64)
    size = np.zeros(len(distinct))
    for at in range(len(columns) - 1, -1, -1):  # of equal names at two levels, the coarser one counts
        below = columns[at] == distinct[:, None]
        here = below.any(axis=1)
        leaf[here], depth[here], size[here] = below[here].argmax(axis=1), at, below[here].sum(axis=1)
    return TreeNodes(chain[:, leaf], depth, size), which.reshape(-1)


def place_nodes(zones: Zones, tree: Hierarchy) -> ZoneNodes | None:
    """Return zones as nodes of their tree; None if they are not nodes, hence not nested."""
    if zones.bounds is not None:
        return None
    if tree.resolution is not None:
        return cell_nodes(zones.ids.tolist())
    return None if zones.level is None or zones.places is not None else _lookup_nodes(zones, zones.level, tree)


def _lookup_nodes(zones: Zones, level: Ints, tree: Hierarchy) -> TreeNodes | None:
    """Return zones of a lookup table as its nodes, with the areas of their leaves as sizes; None if none is nested."""
    full = tree.public or tree
    if int(level.max(initial=0)) > full.top:
        return None
    first, end = leaf_spans(zones, level, full)
    found = TreeNodes(np.stack([code[first] for code in reversed(full.codes)]), full.top - level, np.ones(len(zones)))
    if not is_nested(found).any():
        return None
    sums = np.concatenate([[0], np.cumsum(leaf_parts(tree))]).astype(np.float64)
    return replace(found, size=sums[end] - sums[first])


def leaf_spans(zones: Zones, level: Ints, full: Hierarchy) -> tuple[Ints, Ints]:
    """Return the first leaf of each zone of a lookup table, and the leaf after its last."""
    first, end = np.zeros(len(zones), dtype=np.int64), np.zeros(len(zones), dtype=np.int64)
    for at in np.unique(level).tolist():
        here = np.flatnonzero(level == at)
        node = find_nodes(full, at, zones.ids[here])
        first[here], end[here] = full.starts[at][node], full.starts[at][node] + full.sizes[at][node]
    return first, end


def leaf_parts(tree: Hierarchy) -> Ints:
    """Return the area of each leaf of the public tree, as a number of equal parts, at least 1; 0 if it is unknown.

    Zones consist of whole parts, so the mass of a zone can be divided exactly between the zones inside it.
    """
    full = tree.public or tree
    outlines = full.outlines or tree.outlines or {}
    areas = np.array([polygon_area_km2(outlines.get(str(leaf), {})) for leaf in full.leaves])
    part = max(float(areas.sum()) / _PARTS, 1e-12)
    return np.where(areas > 0, np.maximum(np.rint(areas / part), 1), 0).astype(np.int64)


def is_nested(nodes: ZoneNodes) -> Bools:
    """Return for each node whether it lies inside another."""
    inside = np.zeros(len(nodes.depth), dtype=bool)
    for depth in np.unique(nodes.depth).tolist():
        here, finer = (np.flatnonzero(which) for which in (nodes.depth == depth, nodes.depth > depth))
        inside[finer] |= np.isin(nodes.above(finer, depth), nodes.above(here, depth))
    return inside
