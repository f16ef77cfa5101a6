"""Rows of an earlier cascade that may be reused for other trips, and their places on a ladder.

A trip goes to the finest given row that contains it, and to the next coarser one if that row has too few. Which rows
are then listed discloses nothing about places, with one exception: if the *own* places of a row, those in no finer
given row, all lie in one part of it, its trips must be there. Such rows are not reused; which ones follows from the
given rows alone. All trips of every other listed row may lie outside any box that does not contain the row, so no box
can be shown to hold trips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints, locate
from odkanon.errors import InputError
from odkanon.methods.cascade.ladder import Ladder
from odkanon.methods.method_registry import is_nested
from odkanon.model.axes import AXES
from odkanon.quality.accuracy.row_masses import enclosing_rows
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats, is_pentagon
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zone_nodes import CellNodes, cell_nodes

_LITTLE = 1e-9
_RESIDUAL = 0.5
"""Share of a row that must be its own where the numbers of children differ: pentagons, and the world."""
_PER_RESOLUTION = 3
"""Depths of a node from one H3 resolution to the next."""


@dataclass(frozen=True, eq=False)
class EarlierRows:
    """Rows of an earlier cascade."""

    name: str
    """The name of the release, for messages."""
    origin: npt.NDArray[np.str_]
    destination: npt.NDArray[np.str_]

    @classmethod
    def from_saved(cls, release: SavedRelease) -> EarlierRows:
        """Return the rows of a saved cascade, for `odkanon.anonymize` with other trips."""
        if release.axes or not is_nested(str(release.manifest.get("method"))):
            raise InputError(f"{release.name} is not a cascade between places, so it has no rows to reuse")
        ends = [np.array(release.table.column(axis).to_pylist(), dtype=np.str_) for axis in AXES]
        return cls(release.name, ends[0], ends[1])

    def on(self, ladder: Ladder) -> list[Ints]:
        """Return, by rung of a ladder, the keys of the reusable rows; see `odkanon.engine.node_flows.codes_to_keys`."""
        trees = [side.tree for side in ladder.sides]
        if any(tree.resolution is None or tree.steps > 1 or tree.within is not None for tree in trees):
            raise InputError(
                f"the rows of {self.name} can be used for other trips on plain H3 cells, without an area; make a "
                "cascade of the new data instead"
            )
        ends = cell_nodes(self.origin.tolist()), cell_nodes(self.destination.tolist())
        if ends[0] is None or ends[1] is None or any((end.depth % _PER_RESOLUTION > 1).any() for end in ends if end):
            raise InputError(f"the rows of {self.name} do not lie between H3 cells, so that they cannot be used again")
        last = lasting(ends[0], ends[1])
        names = [ids[last] for ids in (self.origin, self.destination)]
        levels = [_levels(tree, end.depth[last]) for tree, end in zip(trees, (ends[0], ends[1]), strict=True)]
        if not set(zip(*(level.tolist() for level in levels), strict=True)) <= set(ladder.levels):
            raise InputError(f"{self.name} was made at another resolution than the new data; read these at its own")
        return [_keys(ladder, rung, names, levels) for rung in range(len(ladder))]


def _levels(tree: Hierarchy, depth: Ints) -> Ints:
    assert tree.resolution is not None
    return tree.resolution + 1 - (depth + _PER_RESOLUTION - 1) // _PER_RESOLUTION


def _keys(ladder: Ladder, rung: int, names: list[npt.NDArray[np.str_]], levels: list[Ints]) -> Ints:
    """Return the keys of the rows of a rung whose zones occur in the data."""
    here = np.logical_and.reduce([level == want for level, want in zip(levels, ladder.levels[rung], strict=True)])
    codes, known = [], np.ones(int(here.sum()), dtype=bool)
    for side, level, ids in zip(ladder.sides, ladder.levels[rung], names, strict=True):
        code, found = locate(side.tree.labels(level).astype(np.str_), ids[here])
        codes.append(code)
        known &= found
    return np.sort(ladder.keys(rung, codes)[0][known])


def lasting(origin: CellNodes, destination: CellNodes) -> Bools:
    """Return which rows between H3 cells may be reused for other trips, from fine to coarse."""
    around, size = enclosing_rows([origin, destination]), origin.size * destination.size
    kept, owner = np.zeros(len(size), dtype=bool), around.copy()
    depths = origin.depth * 64 + destination.depth
    occurring = np.unique(depths)
    for now in occurring[np.argsort(-(occurring // 64 + occurring % 64), kind="stable")].tolist():
        rows = np.flatnonzero(depths == now)
        inner = np.flatnonzero(kept & np.isin(owner, rows))
        number = np.zeros(len(size), dtype=np.int64)
        number[rows] = np.arange(len(rows))
        inside = number[owner[inner]]
        free = size[rows] - np.bincount(inside, weights=size[inner], minlength=len(rows))
        # Nodes whose parts differ in size.
        irregular = np.any(
            [(end.depth[rows] == 0) | is_pentagon(end.cell[rows]) for end in (origin, destination)], axis=0
        )
        least = np.where(irregular, _RESIDUAL, _LITTLE) * size[rows]
        good = free > least
        for end in (origin, destination):
            good &= _outside(end, rows, inner, inside, size, free) > least
        kept[rows] = good
        lost = ~good[inside]
        owner[inner[lost]] = around[owner[inner[lost]]]
    return kept


def _outside(end: CellNodes, rows: Ints, inner: Ints, inside: Ints, size: Floats, free: Floats) -> Floats:
    """Return the minimum, over the parts of each row on one axis, of its own places outside that part.

    A leaf has no parts, so all of its own places count.
    """
    depth = int(end.depth[rows[0]])
    parts = 122 if depth == 0 else 7
    below = 1 if depth == 0 else depth + _PER_RESOLUTION
    finer = end.depth[inner] > depth
    across = np.bincount(inside[~finer], weights=size[inner[~finer]], minlength=len(rows)) / parts
    own = size[rows] / parts - across
    if not finer.any():
        return free - own
    _, part = np.unique(end.above(inner[finer], below), return_inverse=True)
    width = int(part.max()) + 1
    touched, which = np.unique(inside[finer] * width + part, return_inverse=True)
    row = touched // width
    covered = np.bincount(which, weights=size[inner[finer]], minlength=len(touched))
    most = np.full(len(rows), -np.inf)
    np.maximum.at(most, row, own[row] - covered)
    whole = np.bincount(row, minlength=len(rows)) < parts
    return free - np.where(whole, np.maximum(most, own), most)
