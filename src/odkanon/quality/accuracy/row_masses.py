"""The rows of a release as masses to spread over whole zones, also where rows are nested.

A row that contains finer rows (of a cascade) covers the remainder of its area. Spreading it over the remainder equals
spreading it over all of its area and subtracting the same density from each row directly inside it. So nested rows
become rows with corrected masses, some of them negative, and all other code is the same for every method. Attributes
of a cube are axes like the two places: a row is also spread over the values below its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints
from odkanon.core.weights import from_units
from odkanon.zoning.cells import Floats
from odkanon.zoning.zone_nodes import ZoneNodes, is_nested

_NOTHING = 1e-9
"""Share of a row that is a rounding error."""
_DEPTHS = 64
"""More levels than any tree has."""
_KEYS = 2**62


def stack_masses(units: Mapping[str, Ints], scale: int) -> Floats:
    """Return masses by measure as columns of floats; weight comes in units of ``1 / scale``."""
    columns = [from_units(each, scale if name == "weight" else 1) for name, each in units.items()]
    return np.stack(columns, axis=1).astype(np.float64)


def masses_to_spread(
    mass: Floats,
    axes: Sequence[tuple[ZoneNodes | None, Ints]],
    size: Floats | None = None,
    least: float = _NOTHING,
) -> Floats:
    """Return the masses to spread evenly over the whole zones of each row; their sum over rows stays the same.

    Parameters
    ----------
    mass : array of float, shape (rows, measures)
        Published mass of each row.
    axes : sequence of tuple
        For each axis its nodes, if any are nested, and for each row the number of its own.
    size, least
        See `correct_masses`.
    """
    known = [(nodes, which) for nodes, which in axes if nodes is not None]
    if len(known) < len(axes) or not any(is_nested(nodes).any() for nodes, _ in known):
        return mass
    return correct_masses(mass, [nodes.take(which) for nodes, which in known], size, least)


def correct_masses(
    mass: Floats, ends: Sequence[ZoneNodes], size: Floats | None = None, least: float = _NOTHING
) -> Floats:
    """Return masses to spread over whole rows between nodes, some of them inside others.

    A row that finer ones cover completely is spread over all of its area, in addition to them.

    Parameters
    ----------
    mass : array of float, shape (rows, measures)
        Published mass of each row.
    ends : sequence of ZoneNodes
        For each axis the node of each row.
    size : array of float, optional
        The size of each row; by default the product of the sizes of its nodes.
    least : float
        Share of a row up to which its remainder counts as covered completely. A small remainder is the difference of
        large masses, which multiplies the errors of areas that are sampled.
    """
    around = enclosing_rows(ends)
    inside = around >= 0
    size = np.prod([end.size for end in ends], axis=0) if size is None else size
    covered = np.bincount(around[inside], weights=size[inside], minlength=len(size))
    free = size - covered
    whole = free <= least * size
    density = mass / np.where(whole, np.where(size > 0, size, 1.0), free)[:, None]
    beneath = np.where((inside & ~whole[around])[:, None], density[around], 0.0)
    return np.where((size > 0)[:, None], (density - beneath) * size[:, None], mass)


def enclosing_rows(ends: Sequence[ZoneNodes]) -> Ints:
    """Return for each row between nodes the finest other row that contains it; -1 for none."""
    depth_key = reduce(lambda key, end: key * _DEPTHS + end.depth, ends, np.zeros(len(ends[0].depth), dtype=np.int64))
    found = np.full(len(depth_key), -1)
    distinct, first = np.unique(depth_key, return_index=True)
    depths = np.stack([end.depth[first] for end in ends], axis=1)
    for at in np.argsort(-depths.sum(axis=1), kind="stable").tolist():
        rows = np.flatnonzero(depth_key == distinct[at])
        finer = np.logical_and.reduce([end.depth >= depth for end, depth in zip(ends, depths[at], strict=True)])
        open_ = np.flatnonzero(finer & (depth_key != distinct[at]) & (found < 0))
        if len(open_):
            both = np.concatenate([rows, open_])
            keys = _keys([end.above(both, depth) for end, depth in zip(ends, depths[at].tolist(), strict=True)])
            into, hit = _match(keys[: len(rows)], keys[len(rows) :])
            found[open_[hit]] = rows[into[hit]]
    return found


def _keys(ids: Sequence[npt.NDArray[np.generic]]) -> Ints:
    """Return one number for each combination of ids."""
    keys, space = np.zeros(len(ids[0]), dtype=np.int64), 1
    for each in ids:
        known, numbers = np.unique(each, return_inverse=True)
        if space * len(known) > _KEYS:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            space = len(keys)
        keys, space = keys * len(known) + numbers.reshape(-1), space * len(known)
    return keys


def _match(known: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Return the position of each wanted key among the known ones, and whether it occurs."""
    order = np.argsort(known, kind="stable")
    at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return at, known[at] == wanted
