"""Top-down noisy counts: each level is noised, then made consistent with the level above.

The caller supplies the noise. Only the accuracy of the counts on squares is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.model.od import ODMatrix
from odkanon.quality.accuracy.accuracy import map_leaves, rows_to_spread
from odkanon.quality.accuracy.comparison import compare_flows, count_flows, locate_leaves
from odkanon.quality.accuracy.squares import Squares
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import zones_of_tree

FINEST = 8
"""The finest H3 resolution counted; a square of 2 km holds several of its cells."""
CHILDREN = 7
SPLIT = 2.5
"""The number of standard deviations from which a count is split further."""

Noise = Callable[[Ints, float], Ints]
"""Adds noise of a given scale to counts."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The true counts at one pair of levels.

    Attributes
    ----------
    levels : tuple of int
        The levels of both axes.
    codes : tuple of array of int
        The nodes of each count.
    trips, parent : array of int
        The true trips of each count, and its parent in the layer above.
    """

    levels: tuple[int, int]
    codes: tuple[Ints, Ints]
    trips: Ints
    parent: Ints


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts that are not split further (layer, index, noisy value), and the mass lost to cells without trips."""

    parts: list[tuple[Layer, Ints, Floats]]
    lost: float


def level_pairs(od: ODMatrix) -> list[tuple[int, int]]:
    """Return the pairs of levels to count at, from the coarsest to the finest, one step of one axis at a time."""
    levels = [od.origins.top, od.destinations.top]
    last = [_finest(tree) for tree in (od.origins, od.destinations)]
    found = [(levels[0], levels[1])]
    while levels != last:
        axis = 0 if levels[0] - last[0] >= levels[1] - last[1] else 1
        levels[axis] -= 1
        found.append((levels[0], levels[1]))
    return found


def _finest(tree: Hierarchy) -> int:
    assert tree.resolution is not None
    return min(max(tree.resolution - FINEST, 0), tree.top)


def layers(od: ODMatrix, trips: Ints) -> list[Layer]:
    """Return the counts at each pair of levels, the coarsest first, given the trips of each OD pair."""
    found: list[Layer] = []
    above = np.zeros(len(od), dtype=np.int64)
    for levels in level_pairs(od):
        origin = od.origins.codes[levels[0]][od.flows.origin].astype(np.int64)
        destination = od.destinations.codes[levels[1]][od.flows.destination].astype(np.int64)
        width = len(od.destinations.ids[levels[1]])
        keys, number = np.unique(origin * width + destination, return_inverse=True)
        parent = np.zeros(len(keys), dtype=np.int64)
        parent[number] = above
        found.append(Layer(levels, (keys // width, keys % width), group_sum(number, len(keys), trips), parent))
        above = number
    return found


def top_down(counted: Sequence[Layer], noise: Noise, scales: Sequence[float]) -> NoisyCounts:
    """Return noisy counts, each split for as long as it stands out from the noise of the next layer.

    A count is split into all of its seven parts, observed or not; the mass of unobserved parts is lost.
    """
    guess = noise(counted[0].trips, scales[0]).astype(np.float64).clip(0)
    live, parts, lost = np.ones(len(guess), dtype=bool), [], 0.0
    for (above, layer), scale in zip(pairwise(counted), scales[1:], strict=True):
        split = live & (guess >= max(SPLIT * scale, 2.0))
        stays = np.flatnonzero(live & ~split)
        parts.append((above, stays, guess[stays]))
        here = np.flatnonzero(split[layer.parent])
        empty = np.where(split, CHILDREN - np.bincount(layer.parent[here], minlength=len(split)), 0).clip(0)
        owner = np.concatenate([layer.parent[here], np.repeat(np.arange(len(split)), empty)])
        true = np.concatenate([layer.trips[here], np.zeros(int(empty.sum()), dtype=np.int64)])
        shares = project_to_totals(noise(true, scale).astype(np.float64), owner, guess)
        lost += float(shares[len(here) :].sum())
        live, guess = np.zeros(len(layer.trips), dtype=bool), np.zeros(len(layer.trips))
        live[here], guess[here] = True, shares[: len(here)]
    last = np.flatnonzero(live)
    return NoisyCounts([*parts, (counted[-1], last, guess[last])], lost)


def project_to_totals(values: Floats, owner: Ints, total: Floats) -> Floats:
    """Return the nearest non-negative numbers to some values whose sums by owner are the totals.

    This is the projection onto a simplex: all parts that stay positive are shifted by the same amount.
    """
    order = np.lexsort((-values, owner))
    ranked, owners = values[order], owner[order]
    start = np.searchsorted(owners, owners)
    rank = np.arange(len(owners)) - start + 1
    sums = np.cumsum(ranked)
    before = np.where(start > 0, sums[start - 1], 0.0)
    offset = (sums - before - total[owners]) / rank
    stays = ranked - offset > 0
    last = np.zeros(len(total), dtype=np.int64)
    np.maximum.at(last, owners, np.where(stays, rank, 0))
    first = np.searchsorted(owners, np.arange(len(total)))
    chosen = np.minimum(first + np.maximum(last, 1) - 1, max(len(owners) - 1, 0))
    result = np.empty(len(values))
    result[order] = np.maximum(ranked - offset[chosen][owners], 0) if len(owners) else ranked
    return result


def cpc_by_square(od: ODMatrix, found: NoisyCounts, squares: Sequence[float]) -> dict[float, float]:
    """Return the CPC of noisy counts with the input, by side of the squares in km."""
    located = map_leaves(od)
    assert located is not None
    about, ends = located
    both = [zones_of_tree(tree) for tree in (od.origins, od.destinations)]
    mass = np.concatenate([guess for _, _, guess in found.parts])
    real, used = mass > 0, []
    for axis in (0, 1):
        zone = [both[axis][1][layer.levels[axis]] + layer.codes[axis][which] for layer, which, _ in found.parts]
        used.append(np.unique(np.concatenate(zone)[real], return_inverse=True))
    zones = both[0][0].take(used[0][0]), both[1][0].take(used[1][0])
    spread, areas = rows_to_spread(zones, (used[0][1], used[1][1]), mass[real][:, None], od, about)
    total, cpc = float(mass.sum()) + found.lost, {}
    for km in squares:
        square = Squares(km)
        counted, _ = count_flows(od, locate_leaves(square, ends), ("trips",))
        before, after = counted.mass[:, 0], compare_flows(square, counted, spread, areas).estimate[:, 0]
        cpc[km] = 2 * float(np.minimum(before, after).sum()) / (float(before.sum()) + total)
    return cpc
