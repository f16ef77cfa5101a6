"""The building blocks of free zones: cells of mixed levels that move as units, and their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import h3ronpy
import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools, Codes, Ints, spans
from odkanon.zoning.cells import Cells, cell_to_parent, cell_to_resolution, is_valid_cell
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at
from odkanon.zoning.polygon_neighbours import Edges, both_ways, distinct_edges, islands


@dataclass(frozen=True, eq=False)
class Blocks:
    """Disjoint cells of mixed levels that contain every leaf of an axis, with empty cells between them.

    A block is the largest cell over a leaf that is neither too heavy nor too large. Empty siblings of blocks are blocks
    too, so that zones have no holes and their cells do not disclose which small cells were observed. The parent of
    every block meets the thresholds, so that the extent of zones does not disclose a few trips.
    """

    cells: Cells
    """The cells, observed ones first."""
    leaves: Ints
    """The number of observed leaves in each; 0 for empty ones."""
    block_of_leaf: Codes
    """For each leaf, its block."""
    edges: Edges
    """Neighbours, in both directions, sorted by the first, of shape (2, n)."""
    around: int = 0
    """The number of blocks to visit, beyond the neighbours of a block, to see whether its zone is connected without it;
    0 if consecutive neighbours of a block always touch, as those of hexagons do."""

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def degree(self) -> Ints:
        """For each block, its number of neighbours."""
        return np.bincount(self.edges[0], minlength=len(self))

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """For each block, its neighbours."""
        ends = np.searchsorted(self.edges[0], np.arange(1, len(self)))
        return [part.tolist() for part in np.split(self.edges[1], ends)]

    @cached_property
    def first_edge(self) -> Ints:
        """For each block the position of its first edge, and finally the number of edges."""
        return np.concatenate([[0], np.cumsum(self.degree)])

    @cached_property
    def rings(self) -> tuple[Ints, Edges]:
        """Touching pairs among the neighbours of each block: the position of its first pair, and all pairs."""
        source, target = self.edges
        once = source < target
        ends = np.stack([source[once], target[once]])
        # A common neighbour of both ends of an edge is among the neighbours of the end that has fewer.
        few = np.where(self.degree[ends[0]] <= self.degree[ends[1]], ends[0], ends[1])
        third = target[spans(self.first_edge[few], self.first_edge[few + 1])]
        edge = np.repeat(np.arange(len(few)), self.degree[few])
        many = ends.sum(axis=0)[edge] - few[edge]
        keys, sought = source * np.int64(len(self)) + target, many * np.int64(len(self)) + third
        found = keys[np.minimum(np.searchsorted(keys, sought), len(keys) - 1)] == sought
        third, edge = third[found], edge[found]
        order = np.argsort(third, kind="stable")
        return np.searchsorted(third[order], np.arange(len(self) + 1)), ends[:, edge[order]]

    @cached_property
    def neighbour_sets(self) -> list[set[int]]:
        """For each block, the set of its neighbours."""
        return [set(part) for part in self.neighbours]


def blocks_of(tree: Hierarchy, masses: tuple[Ints, ...], enough: Sequence[Bools], finest: Cut, target: int) -> Blocks:
    """Return the blocks of an axis.

    * ``tree``: an H3 hierarchy.
    * ``masses``: the mass of every node, by level.
    * ``enough``: whether every node meets the thresholds, by level.
    * ``finest``: a cut whose zones are unions of blocks, unless the parent of a zone is below the thresholds.
    * ``target``: the approximate number of blocks.
    """
    level = finest.level[finest.zone_of_leaf].copy()
    for at in range(tree.top, 0, -1):
        codes, sizes = tree.codes[at], tree.sizes[at]
        large = (sizes * target > len(tree.leaves)) | (masses[at] * target > masses[-1][0])
        if tree.level_resolution(at) is None:
            large[:] = True
        level[large[codes] & (level >= at)] = at - 1
        # Thresholds are monotone, so this is the number of levels below the first at which they are met.
    short = sum((~good[codes] for good, codes in zip(enough, tree.codes, strict=True)), np.zeros(len(level), np.int8))
    cut = cut_at(tree, np.maximum(level, short - 1).astype(np.int8))
    cells = np.empty(len(cut), dtype=np.uint64)
    for at in np.unique(cut.level).tolist():
        here = cut.level == at
        cells[here] = tree.ids[at][cut.node[here]]
    leaves = np.bincount(cut.zone_of_leaf, minlength=len(cut))
    empty = _empty_siblings(cells, tree)
    cells = np.concatenate([cells, empty])
    leaves = np.concatenate([leaves, np.zeros(len(empty), dtype=np.int64)])
    return Blocks(cells, leaves, cut.zone_of_leaf, both_ways(_connected(cells, _touching(cells))))


def _empty_siblings(cells: Cells, tree: Hierarchy) -> Cells:
    """Return the children of all parents of the given cells in which no leaf lies."""
    found = [np.empty(0, dtype=np.uint64)]
    resolutions = cell_to_resolution(cells)
    for resolution in np.unique(resolutions[resolutions > 0]).tolist():
        children = children_of(np.unique(cell_to_parent(cells[resolutions == resolution], resolution - 1)))
        observed = cell_to_parent(tree.leaves, resolution)
        found.append(children[~np.isin(children, observed)])
    return np.unique(np.concatenate(found))


def children_of(parents: Cells) -> Cells:
    """Return all children of some cells of one resolution."""
    resolution = int(cell_to_resolution(parents[:1])[0]) + 1
    shift = np.uint64(3 * (15 - resolution))
    bare = (parents & ~(np.uint64(0xF) << np.uint64(52))) | (np.uint64(resolution) << np.uint64(52))
    bare = bare & ~(np.uint64(7) << shift)
    children = (bare[:, None] | (np.arange(7, dtype=np.uint64) << shift)[None, :]).ravel()
    return children[is_valid_cell(children)]


def _touching(cells: Cells) -> Edges:
    """Return the pairs of disjoint cells of mixed levels that share an edge, each once."""
    disks = pa.array(h3ronpy.grid_disk(pa.array(cells), 1))
    source = np.repeat(np.arange(len(cells)), np.diff(np.asarray(disks.offsets)))
    around = np.asarray(disks.values)
    resolutions = cell_to_resolution(cells)
    found = []
    # Of two neighbours, the finer one has a ring cell inside the coarser one.
    for resolution in np.unique(resolutions).tolist():
        finer = resolutions[source] >= resolution
        here = np.flatnonzero(resolutions == resolution)
        here = here[np.argsort(cells[here], kind="stable")]
        above = cell_to_parent(around[finer], resolution)
        at = np.minimum(np.searchsorted(cells[here], above), len(here) - 1)
        hit = cells[here][at] == above
        found.append(np.stack([source[finer][hit], here[at[hit]]]))
    return distinct_edges(np.concatenate(found, axis=1))


def _connected(cells: Cells, edges: Edges) -> Edges:
    """Add links across empty land until all cells are connected.

    Cells in different islands are neighbours if their ancestors, at the finest level that bridges the gap, are equal or
    share an edge; each such pair of ancestors gets one link.
    """
    island = islands(len(cells), edges)
    resolution = int(cell_to_resolution(cells).max(initial=0))
    while resolution > 0 and island.any():
        resolution -= 1
        lifted = np.where(cell_to_resolution(cells) > resolution, cell_to_parent(cells, resolution), cells)
        ancestors, first, number = np.unique(lifted, return_index=True, return_inverse=True)
        inside = np.stack([first[number], np.arange(len(cells))])
        across = first[_touching(ancestors)]
        links = np.concatenate([inside, across], axis=1)
        links = links[:, island[links[0]] != island[links[1]]]
        edges = distinct_edges(np.concatenate([edges, links], axis=1))
        island = islands(len(cells), edges)
    # At resolution 0 only oceans separate islands; one link for each connects the world.
    roots = np.unique(island)
    return distinct_edges(np.concatenate([edges, np.stack([roots[:-1], roots[1:]])], axis=1))
