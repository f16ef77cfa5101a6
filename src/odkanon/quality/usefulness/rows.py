"""The rows of a release as masses to spread over whole zones, also where rows lie inside larger rows.

A row that has finer rows inside it stands for what these do not cover (a cascade). Spreading it over the rest is the
same as spreading it over all of its area and taking as much away again from each row right inside it. So nested rows
become rows with corrected masses, some of them negative, and everything else is written once for all methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools, Ints
from odkanon.core.weights import from_units
from odkanon.model.classes import Classes
from odkanon.model.release import Release
from odkanon.zoning.cells import (
    WORLD,
    Cells,
    Floats,
    cell_to_parent,
    cell_to_resolution,
    is_valid_cell,
    str_to_cell,
)
from odkanon.zoning.fine import FIRST_HALF, FIRST_PAIR, PAIR_OF_DIGIT, child_digit, child_of, group_ids
from odkanon.zoning.zones import Zones

_NOTHING = 1e-9
_CHILDREN, _BASE_CELLS = 7.0, 122.0
_STEPS = 3
"""Levels from an H3 resolution to the next: halves and pairs of children lie in between."""
_HALVES = ("0462", "315", "35")


@dataclass(frozen=True, eq=False)
class Nodes:
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

    def take(self, which: Ints) -> Nodes:
        """Return some of the nodes."""
        return Nodes(self.cell[which], self.depth[which], self.size[which])

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


def nodes_of(names: Sequence[str]) -> Nodes | None:
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
    return Nodes(cell, depth.astype(np.int64), np.where(world, _BASE_CELLS, size))


def masses_of(release: Release, measures: tuple[str, ...]) -> Floats:
    """Return the mass of each row (first axis) in each measure."""
    return np.stack([_mass(release.classes, measure) for measure in measures], axis=1)


def masses_to_spread(mass: Floats, zones: tuple[Zones, Zones], rows: tuple[Ints, Ints]) -> Floats:
    """Return for each row (first axis) and measure what to spread evenly over the row's two zones.

    The sum over rows stays that of the masses. ``rows`` has the numbers of the zones of each row.
    """
    if any(side.bounds is not None for side in zones):
        return mass
    ends = nodes_of(zones[0].ids.tolist()), nodes_of(zones[1].ids.tolist())
    if ends[0] is None or ends[1] is None or not (_nested(ends[0]) or _nested(ends[1])):
        return mass
    return corrected(mass, ends[0].take(rows[0]), ends[1].take(rows[1]))


def corrected(mass: Floats, origin: Nodes, destination: Nodes, size: Floats | None = None) -> Floats:
    """Return masses to spread over whole rows between nodes, of which some lie inside others.

    A row that finer ones cover wholly is spread over all of its area, on top of them. ``size`` says how much there is
    to spread over in each row, if not all cells below it alike.
    """
    around = around_rows(origin, destination)
    inside = around >= 0
    size = origin.size * destination.size if size is None else size
    covered = np.bincount(around[inside], weights=size[inside], minlength=len(size))
    free = size - covered
    whole = free <= _NOTHING * size  # nothing but rounding
    density = mass / np.where(whole, size, free)[:, None]
    beneath = np.where((inside & ~whole[around])[:, None], density[around], 0.0)
    return (density - beneath) * size[:, None]


def around_rows(origin: Nodes, destination: Nodes) -> Ints:
    """Return for each row between nodes the finest other row that it lies in; -1 for none."""
    kind = origin.depth * 64 + destination.depth
    found = np.full(len(kind), -1)
    kinds = np.unique(kind)
    for coarser in kinds[np.argsort(-(kinds // 64 + kinds % 64), kind="stable")].tolist():
        row, column = divmod(coarser, 64)
        rows = np.flatnonzero(kind == coarser)
        finer = (origin.depth >= row) & (destination.depth >= column) & (kind != coarser)
        open_ = np.flatnonzero(finer & (found < 0))
        if len(open_):
            both = np.concatenate([rows, open_])
            keys = _keys(origin.above(both, row), destination.above(both, column))
            at, hit = _match(keys[: len(rows)], keys[len(rows) :])
            found[open_[hit]] = rows[at[hit]]
    return found


def _keys(first: Cells, second: Cells) -> Ints:
    """Return numbers that are the same where both ids are."""
    numbers, others = (np.unique(ids, return_inverse=True)[1].astype(np.int64) for ids in (first, second))
    keys: Ints = numbers * (int(others.max(initial=0)) + 1) + others
    return keys


def _match(known: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Return where each wanted key stands among the known ones, and whether it does."""
    order = np.argsort(known, kind="stable")
    at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return at, known[at] == wanted


def _mass(classes: Classes, measure: str) -> Floats:
    units = getattr(classes, measure)
    return np.asarray(from_units(units, classes.scale if measure == "weight" else 1), dtype=np.float64)


def _nested(nodes: Nodes) -> bool:
    """Tell whether some nodes lie inside others."""
    for depth in np.unique(nodes.depth).tolist():
        here, finer = (np.flatnonzero(which) for which in (nodes.depth == depth, nodes.depth > depth))
        if np.isin(nodes.above(finer, depth), nodes.above(here, depth)).any():
            return True
    return False
