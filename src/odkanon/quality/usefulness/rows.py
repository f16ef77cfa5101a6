"""The rows of a release as masses to spread over whole zones, also where rows lie inside larger rows.

A row that has finer rows inside it stands for what these do not cover (a cascade). Spreading it over the rest is the
same as spreading it over all of its area and taking as much away again from each row right inside it. So nested rows
become rows with corrected masses, some of them negative, and everything else is written once for all methods.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.core.weights import from_units
from odkanon.model.release import Classes, Release
from odkanon.zoning.cells import WORLD, Cells, Floats, cell_to_parent, cell_to_resolution, str_to_cell
from odkanon.zoning.zones import Zones

_NOTHING = 1e-9
_CHILDREN, _BASE_CELLS = 7.0, 122.0


def masses_of(release: Release, measures: tuple[str, ...]) -> Floats:
    """Return the mass of each row (first axis) in each measure."""
    return np.stack([_mass(release.classes, measure) for measure in measures], axis=1)


def masses_to_spread(mass: Floats, zones: tuple[Zones, Zones], rows: tuple[Ints, Ints]) -> Floats:
    """Return for each row (first axis) and measure what to spread evenly over the row's two zones.

    The sum over rows stays that of the masses. ``rows`` has the numbers of the zones of each row.
    """
    ends = _as_cells(zones[0]), _as_cells(zones[1])
    if ends[0] is None or ends[1] is None or not (_nested(ends[0]) or _nested(ends[1])):
        return mass
    return corrected(mass, ends[0][rows[0]], ends[1][rows[1]])


def corrected(mass: Floats, origin: Cells, destination: Cells, size: Floats | None = None) -> Floats:
    """Return masses to spread over whole rows between H3 cells, of which some lie inside others.

    A row that finer ones cover wholly is spread over all of its area, on top of them. ``size`` says how much there is
    to spread over in each row, if not all cells below it alike.
    """
    around = around_rows(origin, destination)
    inside = around >= 0
    size = _size(origin) * _size(destination) if size is None else size
    covered = np.bincount(around[inside], weights=size[inside], minlength=len(size))
    free = size - covered
    whole = free <= _NOTHING * size  # nothing but rounding
    density = mass / np.where(whole, size, free)[:, None]
    beneath = np.where((inside & ~whole[around])[:, None], density[around], 0.0)
    return (density - beneath) * size[:, None]


def around_rows(origin: Cells, destination: Cells) -> Ints:
    """Return for each row between H3 cells the finest other row that it lies in; -1 for none."""
    levels = _level(origin), _level(destination)
    kind = levels[0] * 32 + levels[1]
    found = np.full(len(origin), -1)
    kinds = np.unique(kind)
    for coarser in kinds[np.argsort(-(kinds // 32 + kinds % 32), kind="stable")].tolist():
        row, column = divmod(coarser, 32)
        rows = np.flatnonzero(kind == coarser)
        open_ = np.flatnonzero((levels[0] >= row) & (levels[1] >= column) & (kind != coarser) & (found < 0))
        if len(open_) == 0:
            continue
        first = np.concatenate([origin[rows], _parent(origin[open_], row)])
        numbers = np.unique(first, return_inverse=True)[1]
        others, second = np.unique(
            np.concatenate([destination[rows], _parent(destination[open_], column)]), return_inverse=True
        )
        keys = numbers.astype(np.int64) * len(others) + second
        order = np.argsort(keys[: len(rows)], kind="stable")
        known, wanted = keys[: len(rows)][order], keys[len(rows) :]
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        hit = known[at] == wanted
        found[open_[hit]] = rows[order[at[hit]]]
    return found


def _mass(classes: Classes, measure: str) -> Floats:
    units = getattr(classes, measure)
    return np.asarray(from_units(units, classes.scale if measure == "weight" else 1), dtype=np.float64)


def _as_cells(zones: Zones) -> Cells | None:
    """Return zones as H3 cells, the whole world among them; None unless all of them are."""
    if zones.resolution is None or zones.cells is not None:
        return None
    cells: Cells = np.where(zones.resolution < 0, WORLD, str_to_cell(pa.array(zones.ids.tolist(), pa.string())))
    return cells


def _level(cells: Cells) -> Ints:
    """Return resolutions, counted from the whole world, which is 0."""
    return np.where(cells == WORLD, 0, cell_to_resolution(cells) + 1)


def _parent(cells: Cells, level: int) -> Cells:
    return np.full(len(cells), WORLD) if level == 0 else cell_to_parent(cells, level - 1)


def _size(cells: Cells) -> Floats:
    """Return what part of a resolution-0 cell each has: of a cell each child has a seventh."""
    size: Floats = np.power(_CHILDREN, 1 - _level(cells).astype(np.float64))
    return np.where(cells == WORLD, _BASE_CELLS, size)


def _nested(cells: Cells) -> bool:
    """Tell whether some cells lie inside others."""
    own = _level(cells)
    return any(
        bool(np.isin(_parent(cells[own > coarser], coarser), cells[own == coarser]).any())
        for coarser in np.unique(own).tolist()
    )
