"""Hierarchies of zones over the leaves of one axis, and cuts through them.

Leaves are sorted so that those below any node are adjacent. A node is then an interval of leaves, a cut is a partition
into intervals, and all operations on the tree are array arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Ints, spans
from odkanon.zoning.cells import WORLD, Cells, Floats, cell_to_latlng, cell_to_parent, cell_to_resolution, cell_to_str

Ids = npt.NDArray[Any]


class StudyArea(Protocol):
    """The area that contains all places."""

    def mask(self, resolution: int) -> Cells:
        """Return the disjoint cells, of any resolutions up to the given one, that cover it."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree over the leaves of one axis, all at the same depth."""

    ids: tuple[Ids, ...]
    """Node ids of each level, from the leaves (level 0) to the root (a single node): ``uint64`` for H3, else text."""
    starts: tuple[Ints, ...]
    """For each level and node, the position of its first leaf."""
    resolution: int | None = None
    """H3 resolution of the leaves; None for other zonings."""
    outlines: Mapping[str, dict[str, Any]] | None = None
    """GeoJSON geometries by id, for zonings with their own."""
    listed: tuple[Ints, ...] | None = None
    """For each level and node of a lookup table, the number of its leaves in the whole table, observed or not; None if
    this tree is the whole table, and for H3, where it follows from the resolution."""
    public: Hierarchy | None = None
    """For other zonings: the public tree, if this one has only some of its leaves."""
    within: StudyArea | None = None
    """For H3: the area that contains all places, if it is public."""
    steps: int = 1
    """For H3: the number of levels from one resolution to the next; see `odkanon.zoning.substeps`."""
    names: tuple[str, ...] = ()
    """For other zonings: the names of the levels, from the leaves on, as far as they have any."""
    spare: frozenset[str] = frozenset()
    """For attributes: leaves that readers may know to be empty, such as a missing value."""

    @cached_property
    def leaves(self) -> Ids:
        """Ids of the leaves, in tree order."""
        return self.ids[0]

    @property
    def top(self) -> int:
        """Level of the root."""
        return len(self.ids) - 1

    @cached_property
    def sizes(self) -> tuple[Ints, ...]:
        """For each level and node, the number of leaves below it."""
        return tuple(np.diff(starts, append=len(self.leaves)) for starts in self.starts)

    @cached_property
    def codes(self) -> tuple[Codes, ...]:
        """For each level and leaf, the number of the leaf's ancestor at that level."""
        return tuple(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes) for sizes in self.sizes)

    @cached_property
    def centres(self) -> tuple[Floats, Floats]:
        """Latitude and longitude of the centre of each leaf, where leaves are H3 cells."""
        return cell_to_latlng(self.leaves)

    @cached_property
    def first_leaves(self) -> npt.NDArray[np.int32]:
        """For each level (row) and leaf (column), the first leaf of the leaf's ancestor at that level."""
        return np.stack([np.repeat(s, n) for s, n in zip(self.starts, self.sizes, strict=True)]).astype(np.int32)

    @cached_property
    def id_ranks(self) -> tuple[Ints, ...]:
        """For each level and node, its rank among the nodes of that level by id."""
        return tuple(np.argsort(np.argsort(ids, kind="stable"), kind="stable") for ids in self.ids)

    @cached_property
    def offsets(self) -> Ints:
        """For each level, the number of nodes in all levels below, at which the numbers of its nodes start."""
        return np.cumsum([0, *(len(ids) for ids in self.ids)])

    @cached_property
    def first_children(self) -> tuple[Ints, ...]:
        """For each level and node, its first child in the level below, and finally the end of all children."""
        above = (np.append(np.searchsorted(fine, coarse), len(fine)) for fine, coarse in pairwise(self.starts))
        return (np.zeros(len(self.leaves) + 1, dtype=np.int64), *above)

    def children(self, level: int) -> Ints:
        """Return the number of children of each node of a level above the leaves."""
        return np.diff(self.first_children[level])

    def labels(self, level: int, nodes: Ints | None = None) -> npt.NDArray[np.str_]:
        """Return the published names of all or some nodes of a level."""
        ids = self.ids[level] if nodes is None else self.ids[level][nodes]
        if self.resolution is None:
            return ids
        if self.steps > 1:
            from odkanon.zoning.substeps import fine_labels

            return fine_labels(ids)
        return cell_to_str(ids)

    def level_resolution(self, level: int) -> int | None:
        """Return the H3 resolution of a level; None for other zonings, the virtual root and substeps."""
        if self.resolution is None or level % self.steps or level > self.resolution * self.steps:
            return None
        return self.resolution - level // self.steps

    def level_of_resolution(self, resolution: int) -> int:
        """Return the level of the cells of an H3 resolution; negative if it is finer than the leaves."""
        return ((self.resolution or 0) - resolution) * self.steps

    def restrict(self, keep: Bools) -> Hierarchy:
        """Return the tree over some of the leaves, without nodes that become empty and levels above the new root."""
        before = np.concatenate([[0], np.cumsum(keep)])
        ids, starts, listed = [], [], []
        whole = self.sizes if self.listed is None else self.listed
        for level_ids, level_starts, sizes, of_table in zip(self.ids, self.starts, self.sizes, whole, strict=True):
            observed = before[level_starts + sizes] > before[level_starts]
            ids.append(level_ids[observed])
            starts.append(before[level_starts[observed]])
            listed.append(of_table[observed])
        tree = _trimmed(ids, starts, self.resolution)
        kept = None if self.resolution is not None else tuple(listed[: tree.top + 1])
        public = self.public or (self if self.resolution is None else None)
        tree = replace(tree, within=self.within, steps=self.steps, names=self.names)
        return replace(tree, outlines=self.outlines, listed=kept, public=public)

    def to_public_root(self) -> Hierarchy:
        """Return the tree extended by the levels above its root, up to the public root."""
        above: list[Ids] = []
        listed = self.listed
        if self.resolution is None:
            full = self.public or self
            leaf = int(np.flatnonzero(full.leaves == self.leaves[0])[0]) if len(self.leaves) else 0
            nodes = [(at, full.codes[at][leaf : leaf + 1]) for at in range(self.top + 1, full.top + 1)]
            above = [full.ids[at][node] for at, node in nodes]
            listed = None if listed is None else (*listed, *(full.sizes[at][node] for at, node in nodes))
        elif self.ids[-1].tolist() != [WORLD]:
            above = self._cells_above()
        if len(self.leaves) == 0 or not above:
            return self
        starts = (*self.starts, *(self.starts[-1] for _ in above))
        return replace(self, ids=(*self.ids, *above), starts=starts, listed=listed)

    def reaching(self, level: int) -> Hierarchy:
        """Return the tree extended by the levels above its root, up to a level at or below the public root."""
        if level <= self.top:
            return self
        tall = self.to_public_root()
        listed = None if tall.listed is None else tall.listed[: level + 1]
        return replace(tall, ids=tall.ids[: level + 1], starts=tall.starts[: level + 1], listed=listed)

    def _cells_above(self) -> list[Ids]:
        """Return the ids of the nodes above the root."""
        if self.steps > 1:
            from odkanon.zoning.substeps import ids_above

            return ids_above(self.leaves[:1])[self.top + 1 :]
        assert self.resolution is not None
        finest = range(self.resolution - self.top - 1, -1, -1)
        return [*(cell_to_parent(self.leaves[:1], at) for at in finest), np.array([WORLD])]

    def __repr__(self) -> str:
        levels = " < ".join(f"{len(ids):,}" for ids in self.ids)
        zoning = "lookup" if self.resolution is None else f"H3 resolution {self.resolution}"
        return f"Hierarchy({zoning}; nodes by level: {levels})"


@dataclass(frozen=True, eq=False)
class Cut:
    """A partition of the leaves of a hierarchy into tree nodes."""

    tree: Hierarchy
    """The hierarchy."""
    level: npt.NDArray[np.int8]
    """For each zone, the level of its node."""
    starts: Ints
    """For each zone, the position of its first leaf."""
    zone_of_leaf: Codes
    """For each leaf, the number of its zone."""

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def node(self) -> Codes:
        """For each zone, the number of its node within its level."""
        node = np.zeros(len(self), dtype=np.int32)
        for level in np.unique(self.level).tolist():
            here = self.level == level
            node[here] = self.tree.codes[level][self.starts[here]]
        return node

    @property
    def numbers(self) -> Ints:
        """For each zone, the number of its node among the nodes of all levels; see `Hierarchy.offsets`."""
        return self.tree.offsets[self.level] + self.node


def cut_at(tree: Hierarchy, level_of_leaf: npt.NDArray[np.int8]) -> Cut:
    """Return the cut in which the zone of each leaf is its ancestor at the given level."""
    leaves = np.arange(len(level_of_leaf))
    opens = tree.first_leaves[level_of_leaf, leaves] == leaves
    zone_of_leaf = np.cumsum(opens, dtype=np.int32) - np.int32(1)
    return Cut(tree, level_of_leaf[opens], np.flatnonzero(opens), zone_of_leaf)


def cut_through(tree: Hierarchy, whole: Sequence[Bools]) -> Cut:
    """Return the cut of the topmost nodes marked as ``whole``, level by level above the leaves."""
    levels, starts = [], []
    nodes = np.zeros(len(tree.ids[-1]), dtype=np.int64)
    for level in range(tree.top, -1, -1):
        stays = whole[level - 1][nodes] if level else np.ones(len(nodes), dtype=bool)
        starts.append(tree.starts[level][nodes[stays]])
        levels.append(np.full(len(starts[-1]), level, dtype=np.int8))
        nodes = nodes[~stays]
        if level:
            nodes = spans(tree.first_children[level][nodes], tree.first_children[level][nodes + 1])
    start = np.concatenate(starts)
    order = np.argsort(start)
    start = start[order]
    sizes = np.diff(start, append=len(tree.leaves))
    return Cut(tree, np.concatenate(levels)[order], start, np.repeat(np.arange(len(start), dtype=np.int32), sizes))


def level_cut(tree: Hierarchy, level: int) -> Cut:
    """Return the cut through one level of the tree, or at the root if the tree is lower."""
    level = min(level, tree.top)
    return cut_at(tree, np.full(len(tree.leaves), level, dtype=np.int8))


def single_point() -> Hierarchy:
    """Return the tree of an axis with a single place."""
    return Hierarchy((np.array(["world"]),), (np.zeros(1, dtype=np.int64),))


def h3_hierarchy(cells: Cells) -> Hierarchy:
    """Return the H3 hierarchy over the distinct cells of an array, all of one resolution.

    The root is the finest cell that contains all of them, or a virtual node above several resolution-0 cells.

    Examples
    --------
    >>> import numpy as np
    >>> h3_hierarchy(np.array([0x8A1FB4671017FFF, 0x8A1FB4671007FFF], dtype=np.uint64))
    Hierarchy(H3 resolution 10; nodes by level: 2 < 1)
    """
    ids = [_distinct(cells)]
    resolution = int(cell_to_resolution(ids[0][:1])[0]) if len(cells) else 0
    starts = [np.arange(len(ids[0]))]
    # Sorted children have sorted parents, since coarser digits are more significant.
    for coarser in range(resolution - 1, -1, -1):
        parents = cell_to_parent(ids[-1], coarser)
        first = np.flatnonzero(np.concatenate([[True], parents[1:] != parents[:-1]])[: len(parents)])
        ids.append(parents[first])
        starts.append(starts[-1][first])
    ids.append(np.full(min(len(cells), 1), WORLD))
    starts.append(np.zeros(min(len(cells), 1), dtype=np.int64))
    return _trimmed(ids, starts, resolution)


def index_cells(cells: Cells) -> tuple[Hierarchy, Codes]:
    """Return the H3 hierarchy over the cells of records, and the leaf of each record."""
    tree = h3_hierarchy(cells)
    return tree, np.searchsorted(tree.leaves, cells).astype(np.int32)


def make_levels(ids_of_leaf: list[Ids], resolution: int | None) -> Hierarchy:
    """Return the tree of leaves in tree order, given the ids of their ancestors level by level."""
    ids, starts = [], []
    for of_leaf in ids_of_leaf:
        first = np.flatnonzero(np.concatenate([[True], of_leaf[1:] != of_leaf[:-1]])[: len(of_leaf)])
        ids.append(of_leaf[first])
        starts.append(first)
    return _trimmed(ids, starts, resolution)


def _distinct(cells: Cells) -> Cells:
    """Return the distinct cells, sorted; the cells of an OD matrix already are, which is quick to check."""
    if (cells[1:] > cells[:-1]).all():
        return cells
    return np.unique(cells)


def _trimmed(ids: list[Ids], starts: list[Ints], resolution: int | None) -> Hierarchy:
    """Drop every level above the finest one that has a single node."""
    top = next((level for level, nodes in enumerate(ids) if len(nodes) <= 1), len(ids) - 1)
    return Hierarchy(tuple(ids[: top + 1]), tuple(starts[: top + 1]), resolution)
