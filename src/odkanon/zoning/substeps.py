"""Substeps: two levels of neighbouring siblings between an H3 cell and its parent, the same for all data.

The children of a cell surround its centre child 0 in the order 4, 6, 2, 3, 1, 5. The first level has pairs of
neighbours, {0, 4}, {6, 2}, {3, 1} and {5}; the second has halves, {0, 4, 6, 2} and {3, 1, 5}. Pentagons lack child 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.zoning.cells import (
    MAX_RESOLUTION,
    WORLD,
    Cells,
    cell_to_parent,
    cell_to_resolution,
    cell_to_str,
    is_pentagon,
)
from odkanon.zoning.hierarchy import Hierarchy, make_levels

STEPS = 3
"""Levels from one resolution to the next."""

DIGITS = np.array([0, 4, 6, 2, 3, 1, 5])
"""The children of a cell, with those of a pair and of a half next to each other."""
PAIR_OF_DIGIT = np.array([0, 2, 1, 2, 0, 3, 1])
"""For each child, its pair; pairs 0 and 1 are the first half, 2 and 3 the second."""

_GROUP_SHIFT = np.uint64(56)
_GROUP_MASK = np.uint64(0b111 << 56)
FIRST_HALF, FIRST_PAIR = 1, 3
"""In three bits that cells leave unused, halves have the numbers 1 and 2, and pairs 3 to 6."""


def fine_hierarchy(tree: Hierarchy) -> tuple[Hierarchy, Ints]:
    """Return an H3 hierarchy with substeps, and the old positions of its leaves."""
    assert tree.resolution is not None
    order = np.argsort(substep_order(tree.leaves), kind="stable")
    fine = make_levels(ids_above(tree.leaves[order]), tree.resolution)
    return replace(fine, steps=STEPS, within=tree.within), order


def ids_above(cells: Cells) -> list[Cells]:
    """Return for each level, from the cells to the virtual root, the id of the ancestor of each cell."""
    resolution = int(cell_to_resolution(cells[:1]).max(initial=0))
    ids = [cells]
    for finer in range(resolution, 0, -1):
        parent = cell_to_parent(cells, finer - 1)
        pair = PAIR_OF_DIGIT[child_digit(cells, finer)]
        ids += [group_ids(parent, FIRST_PAIR + pair), group_ids(parent, FIRST_HALF + pair // 2), parent]
    return [*ids, np.full(len(cells), WORLD)]


def child_digit(cells: Cells, resolution: int) -> npt.NDArray[np.int64]:
    """Return for each cell of a resolution its child number, 0 to 6."""
    shift = np.uint64(3 * (MAX_RESOLUTION - resolution))
    return ((cells >> shift) & np.uint64(7)).astype(np.int64)


def group_ids(parents: Cells, group: npt.NDArray[np.int64]) -> Cells:
    """Return the ids of pairs (3 to 6) and halves (1, 2) of the children of cells; 0 is the cell itself."""
    return parents | (group.astype(np.uint64) << _GROUP_SHIFT)


def group_parts(ids: Cells) -> tuple[Cells, npt.NDArray[np.int64]]:
    """Return for each id the cell and the group of its children; the inverse of `group_ids`."""
    return ids & ~_GROUP_MASK, ((ids & _GROUP_MASK) >> _GROUP_SHIFT).astype(np.int64)


def fine_labels(ids: Cells) -> npt.NDArray[np.str_]:
    """Return the names of nodes: those of cells, followed by the child numbers of a group, as in ``...-0462``."""
    parents, group = group_parts(ids)
    pentagon = is_pentagon(parents)
    suffix = np.array([["".join(map(str, _digits(at, five))) for at in range(7)] for five in (False, True)])
    marked = np.char.add(np.char.add(cell_to_str(parents), "-"), suffix[pentagon.astype(np.int64), group])
    return np.where(group > 0, marked, cell_to_str(parents))


def fine_cells(ids: Cells) -> tuple[tuple[str, ...], ...]:
    """Return the cells of each node; the virtual root consists of itself."""
    parents, group = group_parts(ids)
    pentagon = is_pentagon(parents).astype(np.int64)
    parts = [[_digits(at, five) for at in range(7)] for five in (False, True)]
    count = np.array([[max(len(digits), 1) for digits in each] for each in parts])[pentagon, group]
    owner, first = np.repeat(np.arange(len(ids)), count), np.cumsum(count) - count
    table = np.array([[(digits + [0] * 4)[:4] for digits in each] for each in parts], dtype=np.uint64)
    digit = table[pentagon[owner], group[owner], np.arange(len(owner)) - first[owner]]
    names = cell_to_str(np.where(group[owner] > 0, child_of(parents[owner], digit), parents[owner])).tolist()
    return tuple(tuple(names[start : start + many]) for start, many in zip(first.tolist(), count.tolist(), strict=True))


def child_of(parents: Cells, digits: npt.NDArray[np.uint64]) -> Cells:
    """Return one child of each cell; arbitrary for cells of the finest resolution."""
    finer = np.minimum(cell_to_resolution(parents) + 1, MAX_RESOLUTION).astype(np.uint64)
    shift = np.uint64(3) * (np.uint64(MAX_RESOLUTION) - finer)
    bare = parents & ~np.uint64(0xF << 52) & ~(np.uint64(7) << shift)
    children: Cells = bare | (finer << np.uint64(52)) | (digits << shift)
    return children


def _digits(group: int, pentagon: bool) -> list[int]:
    if group == 0:
        return []
    pairs = [group - FIRST_PAIR] if group >= FIRST_PAIR else [2 * group - 2, 2 * group - 1]
    return [int(digit) for digit in DIGITS if PAIR_OF_DIGIT[digit] in pairs and not (pentagon and digit == 1)]


def substep_order(cells: Cells) -> Cells:
    """Return numbers that sort cells in the order of the tree with substeps: each digit becomes its rank."""
    rank = np.full(8, 7, dtype=np.uint64)
    rank[DIGITS] = np.arange(7, dtype=np.uint64)
    keys = cells >> np.uint64(45)
    for digit in range(1, MAX_RESOLUTION + 1):
        shift = np.uint64(3 * (MAX_RESOLUTION - digit))
        keys = (keys << np.uint64(3)) | rank[((cells >> shift) & np.uint64(7)).astype(np.int64)]
    return keys
