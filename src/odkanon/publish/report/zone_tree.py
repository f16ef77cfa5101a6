"""Which H3 zones lie in which, with the cells in between and above that a page needs to roll them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.zoning.cells import (
    WORLD,
    Cells,
    cell_to_parent,
    cell_to_polygon,
    cell_to_resolution,
    cell_to_str,
    str_to_cell,
)

STEPS = 2
"""A page can always step back this far from the finest zones, also where all zones have one level."""


def roof_of(levels: Sequence[Any]) -> int:
    """Return the coarsest resolution to which the zones of a release can be rolled up.

    Examples
    --------
    >>> roof_of([9, 8, 5]), roof_of([8, 8]), roof_of([1])
    (5, 6, 0)
    """
    known = [level for level in levels if isinstance(level, int)]
    return max(0, min(min(known), max(known) - STEPS)) if known else 0


def pack_nest(ids: Sequence[str], roof: int) -> tuple[dict[str, Any], list[dict[str, Any] | None]] | None:
    """Find the parent of each zone and of each cell above it, up to a resolution.

    Parameters
    ----------
    ids : sequence of str
        The zones of one axis.
    roof : int
        The coarsest resolution of the cells that are added.

    Returns
    -------
    tuple or None
        Columns ``id`` and ``level`` of the added cells, which are numbered after the zones, and ``parent`` of the zones
        and then of the added cells (-1 where there is none); and the outlines of the added cells. None where a zone is
        not an H3 cell: its place among the others is then found from its outline.
    """
    cells = str_to_cell(pa.array(ids, pa.string()))
    known = np.array([name == "world" for name in ids], dtype=np.bool_)
    if not len(cells) or bool(np.any((cells == WORLD) & ~known)):
        return None
    added = _above(cells[cells != WORLD], roof)
    names = cell_to_str(added)
    columns = {
        "id": names.tolist(),
        "level": cell_to_resolution(added).tolist(),
        "parent": _parents(np.concatenate([cells, added]), roof).tolist(),
    }
    return columns, [cell_to_polygon(str(name)) for name in names]


def _above(cells: Cells, roof: int) -> Cells:
    """Return the ancestors of some cells down from a resolution, without those that are among the cells already."""
    resolutions = cell_to_resolution(cells)
    found = [
        cell_to_parent(cells[resolutions > resolution], resolution)
        for resolution in range(roof, int(resolutions.max(initial=0)))
    ]
    return np.setdiff1d(np.concatenate(found), cells) if found else cells[:0]


def _parents(nodes: Cells, roof: int) -> npt.NDArray[np.int64]:
    """Return the number of the parent of each node; cells at the roof lie in the world, if that is a zone."""
    order = np.argsort(nodes, kind="stable")
    resolutions = cell_to_resolution(nodes)
    world = np.flatnonzero(nodes == WORLD)
    parents = np.full(len(nodes), world[0] if len(world) else -1, dtype=np.int64)
    parents[world] = -1
    for resolution in range(roof + 1, int(resolutions.max(initial=0)) + 1):
        own = np.flatnonzero((resolutions == resolution) & (nodes != WORLD))
        if len(own):
            above = cell_to_parent(nodes[own], resolution - 1)
            parents[own] = order[np.searchsorted(nodes, above, sorter=order)]
    return parents
