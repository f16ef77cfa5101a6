"""Zones and kinds of trips as nodes of public trees, so that it is known which row lies in which."""

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
from odkanon.zoning.spherical_area import polygon_area_km2
from odkanon.zoning.substeps import FIRST_HALF, FIRST_PAIR, PAIR_OF_DIGIT, child_digit, child_of, group_ids
from odkanon.zoning.zones import Zones, find_nodes

_CHILDREN, _BASE_CELLS = 7.0, 122.0
_STEPS = 3
"""Levels from an H3 resolution to the next: halves and pairs of children lie in between."""
_HALVES = ("0462", "315", "35")

Labels = npt.NDArray[np.str_]


class Nodes(Protocol):
    """Nodes of one tree, at any depths."""

    @property
    def depth(self) -> Ints:
        """How far each is below the root, which is 0."""
        ...

    @property
    def size(self) -> Floats:
        """How much there is in each, in any unit."""
        ...

    def take(self, which: Ints) -> Nodes:
        """Return some of the nodes."""
        ...

    def above(self, which: Ints, depth: int) -> npt.NDArray[Any]:
        """Return ids of the ancestors of some nodes (or of themselves) at a depth that none of them is above."""
        ...


@dataclass(frozen=True, eq=False)
class CellNodes:
    """Zones as nodes of the public H3 tree, steps in between included.

    Attributes
    ----------
    cell : array of uint64
        A cell that lies in each.
    depth : array of int
        How far below the whole world, which is 0; a cell of resolution r is at ``3 r + 1``.
    size : array of float
        What part of a resolution-0 cell each has.
    """

    cell: Cells
    depth: Ints
    size: Floats

    def take(self, which: Ints) -> CellNodes:
        """Return some of the nodes."""
        return CellNodes(self.cell[which], self.depth[which], self.size[which])

    def above(self, which: Ints, depth: int) -> Cells:
        """Return the ids of the ancestors of some nodes (or of themselves) at a depth."""
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
    """Return zones by their names as nodes of the H3 tree; None unless all of them are."""
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
    """Nodes of a tree that is told level by level.

    Attributes
    ----------
    chain : array of int
        For each depth (row) and node (column), a number of the node's ancestor there; anything below the node itself.
    depth : array of int
        How far each is below the root, which is 0.
    size : array of float
        How much there is in each.
    """

    chain: Ints
    depth: Ints
    size: Floats

    def take(self, which: Ints) -> TreeNodes:
        """Return some of the nodes."""
        return TreeNodes(self.chain[:, which], self.depth[which], self.size[which])

    def above(self, which: Ints, depth: int) -> Ints:
        """Return numbers of the ancestors of some nodes (or of themselves) at a depth."""
        found: Ints = self.chain[depth, which]
        return found


def attribute_nodes(labels: Labels, levels: Sequence[Sequence[str]]) -> tuple[TreeNodes, Ints]:
    """Return the kinds that rows tell on an axis, each once, and for each row the number of its own.

    All values below a kind count alike.

    Parameters
    ----------
    labels : array of str
        What each row says.
    levels : sequence of sequence of str
        The axis by columns, as `odkanon.zoning.attribute_axis.AttributeAxis.listed` tells it.
    """
    told, which = np.unique(labels, return_inverse=True)
    columns = np.array(levels, dtype=np.str_)[::-1]
    chain = np.stack([np.unique(column, return_inverse=True)[1] for column in columns])
    leaf, depth = np.zeros(len(told), dtype=np.int64), np.zeros(len(told), dtype=np.int64)
    size = np.zeros(len(told))
    for at in range(len(columns) - 1, -1, -1):  # of a name at two levels the coarser one counts
        below = columns[at] == told[:, None]
        here = below.any(axis=1)
        leaf[here], depth[here], size[here] = below[here].argmax(axis=1), at, below[here].sum(axis=1)
    return TreeNodes(chain[:, leaf], depth, size), which.reshape(-1)


def place_nodes(zones: Zones, tree: Hierarchy) -> Nodes | None:
    """Return zones as nodes of the tree that they are from; None for zones that are not, which lie in no others."""
    if zones.bounds is not None:
        return None
    if tree.resolution is not None:
        return cell_nodes(zones.ids.tolist())
    return None if zones.level is None or zones.places is not None else _lookup_nodes(zones, zones.level, tree)


def _lookup_nodes(zones: Zones, level: Ints, tree: Hierarchy) -> TreeNodes | None:
    """Return zones of a lookup table as its nodes, as large as the polygons of their leaves; None if none nest."""
    full = tree.public or tree
    if int(level.max(initial=0)) > full.top:
        return None
    first, end = np.zeros(len(zones), dtype=np.int64), np.zeros(len(zones), dtype=np.int64)
    for at in np.unique(level).tolist():
        here = np.flatnonzero(level == at)
        node = find_nodes(full, at, zones.ids[here])
        first[here], end[here] = full.starts[at][node], full.starts[at][node] + full.sizes[at][node]
    found = TreeNodes(np.stack([code[first] for code in reversed(full.codes)]), full.top - level, np.ones(len(zones)))
    if not nested(found).any():
        return None
    outlines = full.outlines or tree.outlines or {}
    areas = [polygon_area_km2(outlines.get(str(leaf), {})) for leaf in full.leaves]
    sums = np.concatenate([[0.0], np.cumsum(areas)])
    return replace(found, size=sums[end] - sums[first])


def nested(nodes: Nodes) -> Bools:
    """Tell which nodes lie inside others."""
    inside = np.zeros(len(nodes.depth), dtype=bool)
    for depth in np.unique(nodes.depth).tolist():
        here, finer = (np.flatnonzero(which) for which in (nodes.depth == depth, nodes.depth > depth))
        inside[finer] |= np.isin(nodes.above(finer, depth), nodes.above(here, depth))
    return inside
