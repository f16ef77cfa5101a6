"""The public shape of a tree: the number of parts of each node, whether or not trips were observed there.

Nodes whose subtrees have the same shape have the same *subtree type*. What a node without rows can hold depends only
on its type on each axis, so a few types stand for all nodes that the data never touch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.zoning.cells import Cells, cell_to_parent, cell_to_resolution, is_pentagon
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.substeps import FIRST_HALF, FIRST_PAIR, PAIR_OF_DIGIT, child_digit, group_parts
from odkanon.zoning.zones import find_nodes

_WHOLE_OWNER = np.repeat([0, 1], [7, 6])
_WHOLE_DIGIT = np.array([0, 1, 2, 3, 4, 5, 6, 0, 2, 3, 4, 5, 6])
_WHOLE_CHILD = np.repeat([0, 1, 0], [7, 1, 5])
"""The children of a whole hexagon (type 0) and of a whole pentagon (1): owner, digit and type."""
_BASE_CELLS = np.array([110, 12])


@dataclass(frozen=True, eq=False)
class Level:
    """The subtree types of one level of a public tree; rows are types, columns types of parts, padded with count 0."""

    types: Ints
    """The type of each observed node of the level."""
    child: Ints
    count: Ints
    """The types of the children of each type, and the number of children of each."""
    step: Ints
    step_count: Ints
    """The same for the maximal proper parts: the children or, of an only child, its own."""
    spare: Bools
    """For each type, whether readers may know that such nodes are empty."""

    @cached_property
    def single(self) -> Bools:
        """For each type, whether it has a single child."""
        single: Bools = self.count.sum(axis=1) == 1
        return single


def leaf_level(spare: Bools) -> Level:
    """Return the level of the leaves, which have no parts; ``spare`` marks the spare ones of those observed."""
    none = np.zeros((2, 0), dtype=np.int64)
    return Level(spare.astype(np.int64), none, none, none, none, np.array([False, True]))


def level_above(below: Level, types: Ints, child: Ints, count: Ints) -> Level:
    """Return a level from the children of its types."""
    width = max(child.shape[1], below.step.shape[1])
    step, step_count = (np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (child, count))
    single = count.sum(axis=1) == 1
    only = child[single, count[single].argmax(axis=1)]
    for parts, of_child in ((step, below.step), (step_count, below.step_count)):
        parts[single] = np.pad(of_child[only], ((0, 0), (0, width - of_child.shape[1])))
    spare = (below.spare[child] | (count == 0)).all(axis=1)
    return Level(types, child, count, step, step_count, spare)


def number_types(types: Ints, parent: Ints, parents: int) -> tuple[Ints, Ints, Ints]:
    """Return the type of each parent, and the types and numbers of the children of each of these types.

    * ``types``, ``parent``: for each child, its type and the number of its parent.
    * ``parents``: the number of parents.
    """
    below = int(types.max(initial=0)) + 1
    runs, times = np.unique(parent * below + types, return_counts=True)
    owner = runs // below
    place = np.arange(len(runs)) - np.searchsorted(owner, owner)
    width = int(place.max(initial=0)) + 1
    rows = np.zeros((parents, 2 * width), dtype=np.int64)
    rows[owner, place], rows[owner, width + place] = runs % below, times
    distinct, number = np.unique(rows, axis=0, return_inverse=True)
    return number.reshape(-1), distinct[:, :width], distinct[:, width:]


def public_levels(tree: Hierarchy) -> tuple[Level, ...]:
    """Return the levels of the public tree that contains the leaves of a hierarchy, up to its public root.

    For H3: all children of every cell (with a mask, those that contain a place of it), up to a ``world`` above
    resolution 0. For a lookup table: all of its rows.
    """
    return _levels_of_cells(tree) if tree.resolution is not None else _levels_of_lookup(tree)


def _levels_of_lookup(tree: Hierarchy) -> tuple[Level, ...]:
    full = tree.public or tree
    levels = [leaf_level(np.isin(tree.leaves, [*full.spare]))]
    types = np.isin(full.leaves, [*full.spare]).astype(np.int64)
    for at in range(1, full.top + 1):
        parent = full.codes[at][full.starts[at - 1]].astype(np.int64)
        types, child, count = number_types(types, parent, len(full.ids[at]))
        levels.append(level_above(levels[-1], types[find_nodes(full, at, tree.ids[at])], child, count))
    return tuple(levels)


def _levels_of_cells(tree: Hierarchy) -> tuple[Level, ...]:
    assert tree.resolution is not None
    mask = np.empty(0, dtype=np.uint64) if tree.within is None else tree.within.mask(tree.resolution)
    mask_resolution = cell_to_resolution(mask)
    levels = [leaf_level(np.zeros(len(tree.leaves), dtype=bool))]
    # Types 0 and 1 of every resolution are a whole hexagon and a whole pentagon; those of cells of the mask follow.
    cells = np.unique(cell_to_parent(mask[mask_resolution >= tree.resolution], tree.resolution))
    types = np.zeros(2 + len(cells), dtype=np.int64)
    for finer in range(tree.resolution, 0, -1):
        whole = mask[mask_resolution == finer - 1]
        part = np.unique(cell_to_parent(cells, finer - 1))
        part = part[~np.isin(part, whole)]
        cells, types = _with_whole(part, _step(tree, levels, finer, (cells, types), part), whole)
    of_base = types[2:] if tree.within is not None else np.repeat(types[:2], _BASE_CELLS)
    _, child, count = number_types(of_base, np.zeros(len(of_base), dtype=np.int64), 1)
    return (*levels, level_above(levels[-1], np.zeros(1, dtype=np.int64), child, count))


def _step(tree: Hierarchy, levels: list[Level], finer: int, below: tuple[Cells, Ints], part: Cells) -> Ints:
    """Add the levels from a resolution to the next coarser one; return the types of its cells, whole ones first.

    * ``below``: the cells of the finer resolution in the mask, and the types of the two whole cells and of these.
    * ``part``: the cells of the coarser resolution that lie in the mask in part.
    """
    cells, types = below
    owner = _owners(cell_to_parent(cells, finer - 1), part)
    inside = owner >= 2
    keys = np.concatenate([_WHOLE_OWNER, owner[inside]])
    of_child = np.concatenate([types[:2][_WHOLE_CHILD], types[2:][inside]])
    if tree.steps > 1:
        keys = 4 * keys + PAIR_OF_DIGIT[np.concatenate([_WHOLE_DIGIT, child_digit(cells[inside], finer)])]
    for groups, first in ((4, FIRST_PAIR), (2, FIRST_HALF), (1, 0)) if tree.steps > 1 else ((1, 0),):
        nodes, parent = np.unique(keys, return_inverse=True)
        of_child, child, count = number_types(of_child, parent, len(nodes))
        cell, group = group_parts(tree.ids[len(levels)])
        observed = np.searchsorted(nodes, _owners(cell, part) * groups + group - first)
        levels.append(level_above(levels[-1], of_child[observed], child, count))
        keys = nodes // 2
    return of_child


def _owners(cells: Cells, part: Cells) -> Ints:
    """Return the numbers of cells: two and more for those in part in the mask, else 0, or 1 for a pentagon."""
    found = np.searchsorted(part, cells)
    named = np.append(part, np.uint64(0))[found] == cells
    return np.where(named & (found < len(part)), 2 + found, is_pentagon(cells).astype(np.int64))


def _with_whole(cells: Cells, types: Ints, whole: Cells) -> tuple[Cells, Ints]:
    """Add the cells that lie in the mask as a whole."""
    every = np.concatenate([cells, whole])
    order = np.argsort(every, kind="stable")
    of_every = np.concatenate([types[2:], types[:2][is_pentagon(whole).astype(np.int64)]])
    return every[order], np.concatenate([types[:2], of_every[order]])
