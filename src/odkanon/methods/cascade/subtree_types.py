"""The public shape of a tree: the number of parts of each node, whether or not anything was observed there.

Two nodes whose subtrees have the same shape are of one *kind*. How much a node without a listed row can hold depends
on the kinds of its axes alone, so a few kinds stand for all the nodes that the data never touch.
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
"""The children of a hexagon (0) and of a pentagon (1): their digits, and what they are."""
_BASE_CELLS = np.array([110, 12])


@dataclass(frozen=True, eq=False)
class Level:
    """The kinds of one level of a public tree: rows are kinds, columns kinds of parts (0 times if there are fewer)."""

    kind: Ints
    """For each observed node of the level, its kind."""
    child: Ints
    count: Ints
    """The kinds of the children of each kind, and how many there are of each."""
    step: Ints
    step_count: Ints
    """The same for the largest proper parts: the children, or those of the only child where there is but one."""
    spare: Bools
    """For each kind, whether a reader may know that there is nothing in it at all."""

    @cached_property
    def single(self) -> Bools:
        """For each kind, whether it has a single child."""
        single: Bools = self.count.sum(axis=1) == 1
        return single


def leaf_level(spare: Bools) -> Level:
    """Return the level of the leaves, which have no parts, given which of those observed are spare."""
    none = np.zeros((2, 0), dtype=np.int64)
    return Level(spare.astype(np.int64), none, none, none, none, np.array([False, True]))


def level_above(below: Level, kind: Ints, child: Ints, count: Ints) -> Level:
    """Return a level from the children of its kinds."""
    width = max(child.shape[1], below.step.shape[1])
    step, step_count = (np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (child, count))
    single = count.sum(axis=1) == 1
    only = child[single, count[single].argmax(axis=1)]
    for parts, of_child in ((step, below.step), (step_count, below.step_count)):
        parts[single] = np.pad(of_child[only], ((0, 0), (0, width - of_child.shape[1])))
    spare = (below.spare[child] | (count == 0)).all(axis=1)
    return Level(kind, child, count, step, step_count, spare)


def number_attributes(kind: Ints, parent: Ints, parents: int) -> tuple[Ints, Ints, Ints]:
    """Return the kind of each parent from those of its children, and the children of each kind.

    * ``kind``, ``parent``: for each child, its kind and the number of its parent.
    * ``parents``: how many parents there are.
    """
    attributes = int(kind.max(initial=0)) + 1
    runs, times = np.unique(parent * attributes + kind, return_counts=True)
    owner = runs // attributes
    place = np.arange(len(runs)) - np.searchsorted(owner, owner)
    width = int(place.max(initial=0)) + 1
    rows = np.zeros((parents, 2 * width), dtype=np.int64)
    rows[owner, place], rows[owner, width + place] = runs % attributes, times
    distinct, number = np.unique(rows, axis=0, return_inverse=True)
    return number.reshape(-1), distinct[:, :width], distinct[:, width:]


def public_levels(tree: Hierarchy) -> tuple[Level, ...]:
    """Return the levels of the public tree over the leaves of a hierarchy that goes up to its public root.

    For H3 that is every child of every cell, up to a ``world`` above resolution 0, or those with a place in the mask;
    for a lookup table all of its rows.
    """
    return _levels_of_cells(tree) if tree.resolution is not None else _levels_of_lookup(tree)


def _levels_of_lookup(tree: Hierarchy) -> tuple[Level, ...]:
    full = tree.public or tree
    levels = [leaf_level(np.isin(tree.leaves, [*full.spare]))]
    kind = np.isin(full.leaves, [*full.spare]).astype(np.int64)
    for at in range(1, full.top + 1):
        parent = full.codes[at][full.starts[at - 1]].astype(np.int64)
        kind, child, count = number_attributes(kind, parent, len(full.ids[at]))
        levels.append(level_above(levels[-1], kind[find_nodes(full, at, tree.ids[at])], child, count))
    return tuple(levels)


def _levels_of_cells(tree: Hierarchy) -> tuple[Level, ...]:
    assert tree.resolution is not None
    mask = np.empty(0, dtype=np.uint64) if tree.within is None else tree.within.mask(tree.resolution)
    mask_resolution = cell_to_resolution(mask)
    levels = [leaf_level(np.zeros(len(tree.leaves), dtype=bool))]
    # The first two cells of every resolution are a whole hexagon and a whole pentagon; then come those the mask names.
    cells = np.unique(cell_to_parent(mask[mask_resolution >= tree.resolution], tree.resolution))
    kind = np.zeros(2 + len(cells), dtype=np.int64)
    for finer in range(tree.resolution, 0, -1):
        whole = mask[mask_resolution == finer - 1]
        part = np.unique(cell_to_parent(cells, finer - 1))
        part = part[~np.isin(part, whole)]
        cells, kind = _with_whole(part, _step(tree, levels, finer, (cells, kind), part), whole)
    of_base = kind[2:] if tree.within is not None else np.repeat(kind[:2], _BASE_CELLS)
    _, child, count = number_attributes(of_base, np.zeros(len(of_base), dtype=np.int64), 1)
    return (*levels, level_above(levels[-1], np.zeros(1, dtype=np.int64), child, count))


def _step(tree: Hierarchy, levels: list[Level], finer: int, below: tuple[Cells, Ints], part: Cells) -> Ints:
    """Add the levels from a resolution to the next coarser one; return the kinds of its cells, whole ones first.

    * ``below``: the cells of the finer resolution that the mask names, and the kinds of two whole cells and of those.
    * ``part``: the cells of the coarser resolution of which the mask names parts.
    """
    cells, kind = below
    owner = _owners(cell_to_parent(cells, finer - 1), part)
    inside = owner >= 2
    keys = np.concatenate([_WHOLE_OWNER, owner[inside]])
    of_child = np.concatenate([kind[:2][_WHOLE_CHILD], kind[2:][inside]])
    if tree.steps > 1:
        keys = 4 * keys + PAIR_OF_DIGIT[np.concatenate([_WHOLE_DIGIT, child_digit(cells[inside], finer)])]
    for groups, first in ((4, FIRST_PAIR), (2, FIRST_HALF), (1, 0)) if tree.steps > 1 else ((1, 0),):
        nodes, parent = np.unique(keys, return_inverse=True)
        of_child, child, count = number_attributes(of_child, parent, len(nodes))
        cell, group = group_parts(tree.ids[len(levels)])
        observed = np.searchsorted(nodes, _owners(cell, part) * groups + group - first)
        levels.append(level_above(levels[-1], of_child[observed], child, count))
        keys = nodes // 2
    return of_child


def _owners(cells: Cells, part: Cells) -> Ints:
    """Return the numbers of cells: two and more for those that the mask has a part of, else 0 or 1 for a pentagon."""
    found = np.searchsorted(part, cells)
    named = np.append(part, np.uint64(0))[found] == cells
    return np.where(named & (found < len(part)), 2 + found, is_pentagon(cells).astype(np.int64))


def _with_whole(cells: Cells, kind: Ints, whole: Cells) -> tuple[Cells, Ints]:
    """Add the cells that the mask has as a whole."""
    every = np.concatenate([cells, whole])
    order = np.argsort(every, kind="stable")
    of_every = np.concatenate([kind[2:], kind[:2][is_pentagon(whole).astype(np.int64)]])
    return every[order], np.concatenate([kind[:2], of_every[order]])
