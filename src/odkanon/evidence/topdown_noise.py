"""Counts from the top down: noisy numbers of the whole, then of its parts, each level made to agree with the one above.

Where the noise comes from is not decided here. What comes out is measured on squares, and thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.model.od import ODMatrix
from odkanon.quality.accuracy.accuracy import map_of, places_of_leaves, spreadable
from odkanon.quality.accuracy.comparison import compare_on
from odkanon.quality.accuracy.squares import Squares
from odkanon.quality.accuracy.truth import engine_of, on_places
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import zones_of_tree

FINEST = 8
"""The finest H3 resolution that is counted; squares of 2 km hold several of its cells."""
CHILDREN = 7
SPLIT = 2.5
"""From how many standard deviations on a count is split further."""

Noise = Callable[[Ints, float], Ints]
"""Adds noise of some scale to counts."""


@dataclass(frozen=True, eq=False)
class Layer:
    """What is counted at one pair of levels.

    Attributes
    ----------
    levels : tuple of int
        The levels of both axes.
    codes : tuple of array of int
        For each count, its nodes.
    trips, parent : array of int
        What it truly has, and which count of the layer above it is a part of.
    """

    levels: tuple[int, int]
    codes: tuple[Ints, Ints]
    trips: Ints
    parent: Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """Counts that are not split further: where they are, what is said of them, and what went where nobody goes."""

    parts: list[tuple[Layer, Ints, Floats]]
    lost: float


def rungs(od: ODMatrix) -> list[tuple[int, int]]:
    """Return the levels of both axes that are counted, from the coarsest to the finest, one axis a step."""
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
    """Return what is counted at each level, the coarsest first; ``trips`` are those of each pair."""
    found: list[Layer] = []
    above = np.zeros(len(od), dtype=np.int64)
    for levels in rungs(od):
        origin = od.origins.codes[levels[0]][od.flows.origin].astype(np.int64)
        destination = od.destinations.codes[levels[1]][od.flows.destination].astype(np.int64)
        width = len(od.destinations.ids[levels[1]])
        keys, number = np.unique(origin * width + destination, return_inverse=True)
        parent = np.zeros(len(keys), dtype=np.int64)
        parent[number] = above
        found.append(Layer(levels, (keys // width, keys % width), group_sum(number, len(keys), trips), parent))
        above = number
    return found


def top_down(counted: Sequence[Layer], noise: Noise, scales: Sequence[float]) -> Rows:
    """Return noisy counts, with noise of some scale at each layer, split as long as they stand out from the next.

    A count is split into all of its seven parts, seen in the data or not; what noise puts where nobody goes is lost.
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
        shares = agree(noise(true, scale).astype(np.float64), owner, guess)
        lost += float(shares[len(here) :].sum())
        live, guess = np.zeros(len(layer.trips), dtype=bool), np.zeros(len(layer.trips))
        live[here], guess[here] = True, shares[: len(here)]
    last = np.flatnonzero(live)
    return Rows([*parts, (counted[-1], last, guess[last])], lost)


def agree(values: Floats, owner: Ints, total: Floats) -> Floats:
    """Return the nearest numbers to some values, none negative, whose sums by owner are the totals.

    The projection onto a simplex: the same amount is taken off (or added to) all parts that stay above zero.
    """
    order = np.lexsort((-values, owner))
    ranked, of = values[order], owner[order]
    start = np.searchsorted(of, of)
    rank = np.arange(len(of)) - start + 1
    sums = np.cumsum(ranked)
    before = np.where(start > 0, sums[start - 1], 0.0)
    offset = (sums - before - total[of]) / rank
    stays = ranked - offset > 0
    last = np.zeros(len(total), dtype=np.int64)
    np.maximum.at(last, of, np.where(stays, rank, 0))
    first = np.searchsorted(of, np.arange(len(total)))
    chosen = np.minimum(first + np.maximum(last, 1) - 1, max(len(of) - 1, 0))
    result = np.empty(len(values))
    result[order] = np.maximum(ranked - offset[chosen][of], 0) if len(of) else ranked
    return result


def cpc_of(od: ODMatrix, found: Rows, squares: Sequence[float]) -> dict[float, float]:
    """Return how near noisy rows are to the input, by squares in km."""
    where = map_of(od)
    assert where is not None
    about, ends = where
    both = [zones_of_tree(tree) for tree in (od.origins, od.destinations)]
    mass = np.concatenate([guess for _, _, guess in found.parts])
    real, used = mass > 0, []
    for axis in (0, 1):
        zone = [both[axis][1][layer.levels[axis]] + layer.codes[axis][which] for layer, which, _ in found.parts]
        used.append(np.unique(np.concatenate(zone)[real], return_inverse=True))
    zones = both[0][0].take(used[0][0]), both[1][0].take(used[1][0])
    spread, areas = spreadable(zones, (used[0][1], used[1][1]), mass[real][:, None], od, about)
    total, told = float(mass.sum()) + found.lost, {}
    for km in squares:
        square = Squares(km)
        counted, _ = on_places(engine_of(od, ("trips",)), od, places_of_leaves(square, ends), ("trips",))
        before, after = counted.mass[:, 0], compare_on(square, counted, spread, areas).spread[:, 0]
        told[km] = 2 * float(np.minimum(before, after).sum()) / (float(before.sum()) + total)
    return told
