"""Rows of a noisy release: an estimate of all flows, listed at the finest places at which it is large enough.

Places grow coarser from rung to rung. What a row lists leaves, and the rest of its flow goes up, so that each expected
trip is in one row. With attributes, rows have all of them up to the coarse blocks, and none above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.methods.noise.joined_flows import JoinedFlows, block_sums
from odkanon.methods.noise.public_places import PublicPlaces
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Hierarchy

LEAST_TRIPS = 2.0
"""A row estimates at least this many trips; fewer go to a coarser row."""
CHANCE, MODEL = 1.5, 0.45
"""Variance of a row beside that of its block: of chance, and of the model's division of blocks. Fitted on a survey."""
_MOST_CELLS = 60_000_000


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """Rows with an estimate.

    Attributes
    ----------
    level, origin, destination : array of int
        The nodes between which trips are estimated, by their level in the tree of places.
    values : array of int
        The number of the combination of attributes; -1 for any.
    trips : array of int
        The estimate.
    standard_error : array of float
        Its standard error.
    """

    level: Ints
    origin: Ints
    destination: Ints
    values: Ints
    trips: Ints
    standard_error: Floats


def list_rows(places: PublicPlaces, joined: JoinedFlows, shares: Floats) -> NoisyRows:
    """Return the rows of an estimate.

    Parameters
    ----------
    shares : array of float
        The share of each combination of attributes (column) in each class of distance (row).
    """
    tree = places.tree
    attributes, drops = shares.shape[1] > 1, places.block_levels[-1]
    first = first_level(places, shares.shape[1])
    residual = _by_values(places, joined.flows, shares, first) if attributes else joined.flows[:, :, None].copy()
    parts, fine = [], places.block_levels[0]
    pending: Floats | None = None
    for level in range(first, tree.top + 1):
        least = LEAST_TRIPS if level < tree.top else 0.5
        if pending is None and level >= fine:
            share = residual.sum(axis=2) / np.maximum(block_sums(tree, level, joined.flows), 1e-9)
            pending = _to_level(tree, fine, level, joined.variance) * share**2
        before = residual.sum(axis=2)
        spread = _Spread(places, joined, level, before, pending)
        if attributes and level <= drops:
            parts.append(spread.listed(residual, LEAST_TRIPS, named=True))
        if attributes and level == drops:
            residual = residual.sum(axis=2, keepdims=True)
        if not attributes or level >= drops:
            parts.append(spread.listed(residual, least, named=False))
        if level < tree.top:
            if pending is not None:
                pending = pending * np.clip(residual.sum(axis=2) / np.maximum(before, 1e-9), 0, 1) ** 2
                pending = _to_level(tree, level, level + 1, pending)
            residual = _to_level(tree, level, level + 1, residual)
    return NoisyRows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def first_level(places: PublicPlaces, combinations: int) -> int:
    """Return the finest level of rows by some combinations of attributes, of which there must not be too many."""
    for level, ids in enumerate(places.tree.ids[: places.block_levels[-1] + 1]):
        if combinations <= 1 or len(ids) ** 2 * combinations <= _MOST_CELLS:
            return level
    raise InputError(f"{combinations:,} combinations of attributes are too many for noise; group their values")


def _to_level(tree: Hierarchy, level: int, above: int, values: Floats) -> Floats:
    """Return the sums of values between the nodes of a level by those of one above."""
    starts = np.searchsorted(tree.starts[level], tree.starts[above])
    found: Floats = np.add.reduceat(np.add.reduceat(values, starts, axis=0), starts, axis=1)
    return found


def _by_values(places: PublicPlaces, flows: Floats, shares: Floats, level: int) -> Floats:
    """Return the flows between the nodes of a level by combinations of attributes."""
    found = 0.0
    for number in np.unique(places.distance_class).tolist():
        part = block_sums(places.tree, level, np.where(places.distance_class == number, flows, 0.0))
        found = found + part[:, :, None] * shares[number]
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Spread:
    """The flows between the nodes of one level, and their variance."""

    places: PublicPlaces
    joined: JoinedFlows
    level: int
    left: Floats
    """The flows between the nodes of the level that no finer row lists."""
    pending: Floats | None
    """From the fine blocks on, the variance of what is left between the nodes of the level."""

    def listed(self, residual: Floats, least: float, *, named: bool) -> tuple[Any, ...]:
        """Return the rows of a level, and take them away from what is left."""
        tree = self.places.tree
        parent = np.searchsorted(tree.starts[min(self.level + 1, tree.top)], tree.starts[self.level], side="right") - 1
        origin, destination, values = np.nonzero(residual >= least)
        group = (parent[origin] * len(tree.leaves) + parent[destination]) * residual.shape[2] + values
        order = np.argsort(group, kind="stable")
        origin, destination, values, group = (each[order] for each in (origin, destination, values, group))
        expected = residual[origin, destination, values]
        trips = round_in_groups(expected, group)
        residual[origin, destination, values] -= trips
        error = np.sqrt(self._variance(origin, destination, expected))
        kept = trips > 0
        level = np.full(len(trips), self.level)
        columns = (level, origin, destination, values if named else np.full(len(trips), -1), trips, np.round(error, 1))
        return tuple(each[kept] for each in columns)

    def _variance(self, origin: Ints, destination: Ints, expected: Floats) -> Floats:
        """Return the variance of parts of the flows between nodes: the noise of their blocks, chance and the model."""
        tree, fine = self.places.tree, self.places.block_levels[0]
        own = CHANCE * expected + (MODEL * expected) ** 2
        if self.pending is not None:
            left = np.maximum(self.left[origin, destination], expected)
            return own + self.pending[origin, destination] * (expected / left) ** 2
        above = np.searchsorted(tree.starts[fine], tree.starts[self.level], side="right") - 1
        block = above[origin], above[destination]
        whole = block_sums(tree, fine, self.joined.flows)[block]
        found: Floats = own + (expected / np.maximum(whole, 1e-9)) ** 2 * self.joined.variance[block]
        return found


def round_in_groups(values: Floats, group: Ints) -> Ints:
    """Return whole numbers next to the values whose sum in each group is as near to theirs as can be.

    Groups are adjacent.

    Examples
    --------
    >>> round_in_groups(np.array([1.4, 1.4, 1.4, 2.2]), np.array([0, 0, 0, 1])).tolist()
    [1, 2, 1, 2]
    """
    if not len(values):
        return np.empty(0, dtype=np.int64)
    total, at = np.cumsum(values), np.arange(len(values))
    opens = np.append(True, group[1:] != group[:-1])
    before = (total - values)[np.maximum.accumulate(np.where(opens, at, 0))]
    up_to = np.floor(total - before + 0.5)
    up_to[1:] -= np.where(opens[1:], 0.0, up_to[:-1])
    return up_to.astype(np.int64)
