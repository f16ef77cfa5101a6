"""The rows of a release as masses to spread over whole zones, also where rows lie inside larger rows.

A row that has finer rows inside it stands for what these do not cover (a cascade). Spreading it over the rest is the
same as spreading it over all of its area and taking as much away again from each row right inside it. So nested rows
become rows with corrected masses, some of them negative, and everything else is written once for all methods. What
kind of trips a row is of (a cube) is an axis like the two places: a row is spread over the kinds below its own, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints
from odkanon.core.weights import from_units
from odkanon.model.published_flows import Classes
from odkanon.model.release import Release
from odkanon.quality.accuracy.zone_nodes import Nodes, nested
from odkanon.zoning.cells import Floats

_NOTHING = 1e-9
_DEPTHS = 64
"""More than any tree has."""
_KEYS = 2**62


def masses_of(release: Release, measures: tuple[str, ...]) -> Floats:
    """Return the mass of each row (first axis) in each measure."""
    return np.stack([_mass(release.classes, measure) for measure in measures], axis=1)


def masses_to_spread(mass: Floats, axes: Sequence[tuple[Nodes | None, Ints]], size: Floats | None = None) -> Floats:
    """Return for each row (first axis) and measure what to spread evenly over the row's two zones.

    The sum over rows stays that of the masses.

    Parameters
    ----------
    mass : array of float, shape (rows, measures)
        What is published of each row.
    axes : sequence of tuple
        For each axis its nodes, and for each row the number of its own. No nodes where none lies in another.
    size : array of float, optional
        See `corrected`.
    """
    known = [(nodes, which) for nodes, which in axes if nodes is not None]
    if len(known) < len(axes) or not any(nested(nodes).any() for nodes, _ in known):
        return mass
    return corrected(mass, [nodes.take(which) for nodes, which in known], size)


def corrected(mass: Floats, ends: Sequence[Nodes], size: Floats | None = None) -> Floats:
    """Return masses to spread over whole rows between nodes, of which some lie inside others.

    A row that finer ones cover wholly is spread over all of its area, on top of them.

    Parameters
    ----------
    mass : array of float, shape (rows, measures)
        What is published of each row.
    ends : sequence of Nodes
        For each axis the node of each row.
    size : array of float, optional
        How much there is to spread over in each row, if not all that lies below it alike.
    """
    around = around_rows(ends)
    inside = around >= 0
    size = np.prod([end.size for end in ends], axis=0) if size is None else size
    covered = np.bincount(around[inside], weights=size[inside], minlength=len(size))
    free = size - covered
    whole = free <= _NOTHING * size  # nothing but rounding
    density = mass / np.where(whole, np.where(size > 0, size, 1.0), free)[:, None]
    beneath = np.where((inside & ~whole[around])[:, None], density[around], 0.0)
    return np.where((size > 0)[:, None], (density - beneath) * size[:, None], mass)


def around_rows(ends: Sequence[Nodes]) -> Ints:
    """Return for each row between nodes the finest other row that it lies in; -1 for none."""
    kind = reduce(lambda key, end: key * _DEPTHS + end.depth, ends, np.zeros(len(ends[0].depth), dtype=np.int64))
    found = np.full(len(kind), -1)
    attributes, first = np.unique(kind, return_index=True)
    depths = np.stack([end.depth[first] for end in ends], axis=1)
    for at in np.argsort(-depths.sum(axis=1), kind="stable").tolist():
        rows = np.flatnonzero(kind == attributes[at])
        finer = np.logical_and.reduce([end.depth >= depth for end, depth in zip(ends, depths[at], strict=True)])
        open_ = np.flatnonzero(finer & (kind != attributes[at]) & (found < 0))
        if len(open_):
            both = np.concatenate([rows, open_])
            keys = _keys([end.above(both, depth) for end, depth in zip(ends, depths[at].tolist(), strict=True)])
            into, hit = _match(keys[: len(rows)], keys[len(rows) :])
            found[open_[hit]] = rows[into[hit]]
    return found


def _keys(ids: Sequence[npt.NDArray[np.generic]]) -> Ints:
    """Return numbers that are the same where all ids are."""
    keys, space = np.zeros(len(ids[0]), dtype=np.int64), 1
    for each in ids:
        known, numbers = np.unique(each, return_inverse=True)
        if space * len(known) > _KEYS:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            space = len(keys)
        keys, space = keys * len(known) + numbers.reshape(-1), space * len(known)
    return keys


def _match(known: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Return where each wanted key stands among the known ones, and whether it does."""
    order = np.argsort(known, kind="stable")
    at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return at, known[at] == wanted


def _mass(classes: Classes, measure: str) -> Floats:
    units = getattr(classes, measure)
    return np.asarray(from_units(units, classes.scale if measure == "weight" else 1), dtype=np.float64)
