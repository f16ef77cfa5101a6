"""A model of flows between places, fitted to the rows of a release as to counts of which only sums are known.

The rate between two places is ``a(o) b(d) f(distance)``, mixed with the estimated flow the other way, since people
return. Each round allocates the trips of every row to the pairs of places whose finest row it is, in proportion to the
rate, and fits `a`, `b` and `f` to what was allocated: the EM algorithm of Dempster, Laird and Rubin (1977) with a
doubly constrained gravity model (Wilson 1971), whose margins are adjusted as by Furness (1965).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Codes, Ints
from odkanon.estimate.place_tree import PlacedZones, PlaceTree
from odkanon.estimate.row_blocks import RowBlocks, divide_into_blocks
from odkanon.zoning.cells import Floats

DISTANCES_KM = np.array([0, 0.3, 1.2, 2, 3, 4, 5.5, 7, 9, 11, 14, 17, 21, 26, 32, 40, 60])
"""Lower limits of the classes of distance."""
ROUNDS = 12
"""Rounds of the EM algorithm; more fit the rows better, and flows between places worse."""
_FURNESS_ROUNDS = 2
PULL = (0.01, 0.05, 0.05)
"""How far margins are pulled towards their means: of all places, of the parent, of the grandparent."""
RETURN_SHARE = 0.75
"""Weight of the flow the other way in the final rate."""
_RETURN_ROUNDS = 4
_SMALLEST = 1e-12
"""Least rate of a class of distance, relative to the largest."""


@dataclass(frozen=True, eq=False)
class Rates:
    """A fitted gravity model: attraction of places as origins and destinations, and decay by class of distance."""

    origin: Floats
    destination: Floats
    decay: Floats


@dataclass(frozen=True, eq=False)
class FlowModel:
    """Rows of a release allocated to blocks of places.

    Attributes
    ----------
    tree : PlaceTree
        Places.
    zones : tuple of PlacedZones
        The zones of both axes.
    rows : tuple of array of int
        For each row the numbers of its zones.
    blocks : RowBlocks
        All pairs of places.
    rates : Rates
        The fitted model, by which a block is divided among its places.
    share, beside_share : array of float
        The share of its row that each block has; those of a row add up to 1.
    """

    tree: PlaceTree
    zones: tuple[PlacedZones, PlacedZones]
    rows: tuple[Ints, Ints]
    blocks: RowBlocks
    rates: Rates
    share: Floats
    beside_share: Floats

    def allocate(self, mass: Floats) -> tuple[Floats, Floats]:
        """Return the part of a mass of rows that each block has, and each pair beside them."""
        blocks = self.blocks
        return np.where(blocks.row >= 0, mass[blocks.row] * self.share, 0.0), mass[
            blocks.beside_row
        ] * self.beside_share


def fit_flows(
    tree: PlaceTree, zones: tuple[PlacedZones, PlacedZones], rows: tuple[Ints, Ints], trips: Floats
) -> FlowModel:
    """Fit the model to rows with a number of trips.

    Examples
    --------
    >>> from odkanon.estimate.place_tree import place_cells
    >>> from odkanon.zoning.zone_nodes import cell_nodes
    >>> names = ["881fb46625fffff", "881fb46627fffff"]
    >>> tree, placed = place_cells([cell_nodes(names), cell_nodes(names)])
    >>> model = fit_flows(tree, (placed[0], placed[1]), (np.array([0, 1]), np.array([1, 1])), np.array([30.0, 12.0]))
    >>> float(model.allocate(np.array([30.0, 12.0]))[0].sum())
    42.0
    """
    blocks = divide_into_blocks(tree, zones, rows)
    fit = _Fit(tree, blocks, trips)
    rates = fit.run()
    return FlowModel(tree, zones, rows, blocks, rates, *fit.with_returns(rates))


@dataclass(frozen=True, eq=False)
class _Fit:
    """The EM algorithm on blocks."""

    tree: PlaceTree
    blocks: RowBlocks
    trips: Floats

    @cached_property
    def _classes(self) -> tuple[Ints, Ints]:
        blocks = self.blocks
        return (
            self._class(blocks.origin, blocks.destination),
            self._class(blocks.beside_origin, blocks.beside_destination),
        )

    def _class(self, origin: Ints, destination: Ints) -> Ints:
        """Return the class of distance between nodes."""
        distance = np.round(self.tree.distance(origin, destination), 6)
        return np.searchsorted(DISTANCES_KM, distance, side="right").astype(np.int64) - 1

    def run(self) -> Rates:
        """Return the fitted rates."""
        places, width = len(self.tree), len(DISTANCES_KM)
        rates = Rates(np.full(places, 1 / places), np.full(places, 1 / places), np.ones(width))
        for _ in range(ROUNDS):
            rates = self._adjusted(rates, *self._expected(rates))
        return rates

    def _rate(self, rates: Rates) -> tuple[Floats, Floats]:
        """Return the rate of each block and of each pair beside them."""
        start, end = self.tree.sums(rates.origin), self.tree.sums(rates.destination)
        blocks, (classes, beside) = self.blocks, self._classes
        return (
            start[blocks.origin] * end[blocks.destination] * rates.decay[classes],
            start[blocks.beside_origin] * end[blocks.beside_destination] * rates.decay[beside],
        )

    def _shares(self, rate: Floats, beside: Floats) -> tuple[Floats, Floats]:
        """Return the share of its row that each block has, in proportion to its rate."""
        blocks, rows = self.blocks, len(self.trips)
        used = np.flatnonzero(blocks.row >= 0)
        while True:
            total = _sums(blocks.row[used], rate[used], rows) + _sums(blocks.beside_row, beside, rows)
            empty = total <= 0
            if not empty.any():
                break
            rate, beside = np.where(empty[blocks.row], 1.0, rate), np.where(empty[blocks.beside_row], 1.0, beside)
        share = np.zeros(len(rate))
        share[used] = rate[used] / total[blocks.row[used]]
        return share, beside / total[blocks.beside_row]

    def _expected(self, rates: Rates) -> tuple[Floats, Floats, Floats]:
        """Return the trips that start and end in each place, and those of each class of distance."""
        blocks, (classes, beside_classes) = self.blocks, self._classes
        share, beside = self._shares(*self._rate(rates))
        trips = np.where(blocks.row >= 0, self.trips[blocks.row] * share, 0.0)
        beside = self.trips[blocks.beside_row] * beside
        decay = _sums(classes, trips, len(DISTANCES_KM)) + _sums(beside_classes, beside, len(DISTANCES_KM))
        ends = [
            self._to_places(attraction, _sums(nodes, trips, size) + _sums(others, beside, size))
            for attraction, nodes, others, size in (
                (rates.origin, blocks.origin, blocks.beside_origin, self.tree.offsets[-1]),
                (rates.destination, blocks.destination, blocks.beside_destination, self.tree.offsets[-1]),
            )
        ]
        return ends[0], ends[1], decay

    def _to_places(self, attraction: Floats, trips: Floats) -> Floats:
        """Divide the trips of nodes among their places, and pull the result a little towards means."""
        found: Floats = attraction * self.tree.push_down(_ratio(trips, self.tree.sums(attraction)))
        pulled: Floats = (1 - sum(PULL)) * found + PULL[0] * float(found.mean())
        for pull, level in zip(PULL[1:], (self.tree.levels[-2:-1], self.tree.levels[-3:-2]), strict=True):
            node = level[0] if level else np.zeros(len(found), dtype=np.int64)
            pulled += pull * (np.bincount(node, found) / np.bincount(node))[node]
        return pulled

    def _adjusted(self, rates: Rates, starts: Floats, ends: Floats, decay: Floats) -> Rates:
        """Return rates whose margins and classes of distance are those that were allocated."""
        tree, blocks, (classes, _) = self.tree, self.blocks, self._classes
        nodes, origin, destination, f = int(tree.offsets[-1]), rates.origin, rates.destination, rates.decay
        for _ in range(_FURNESS_ROUNDS):
            to = tree.sums(destination)[blocks.destination] * f[classes]
            origin = _ratio(starts, tree.push_down(_sums(blocks.origin, to, nodes)))
            start = tree.sums(origin)[blocks.origin]
            destination = _ratio(ends, tree.push_down(_sums(blocks.destination, start * f[classes], nodes)))
            rate = start * tree.sums(destination)[blocks.destination] * f[classes]
            f = f * _ratio(decay, _sums(classes, rate, len(f)))
            f = np.maximum(f, _SMALLEST * f.max())
        return Rates(origin, destination, f)

    def with_returns(self, rates: Rates) -> tuple[Floats, Floats]:
        """Return the shares of rows where the rate is mixed with the flow the other way."""
        blocks = self.blocks
        gravity, gravity_beside = self._rate(rates)
        scale = self.trips.sum() / gravity.sum()
        gravity, gravity_beside = gravity * scale, gravity_beside * scale
        known = np.flatnonzero(blocks.beside_block >= 0)
        within = blocks.beside_block[known]
        share, beside_share = self._shares(gravity, gravity_beside)
        for _ in range(_RETURN_ROUNDS):
            flow: Floats = np.where(blocks.row >= 0, self.trips[blocks.row] * share, 0.0)
            beside = self.trips[blocks.beside_row] * beside_share
            flow = flow + _sums(within, beside[known], len(flow))
            back: Floats = flow[blocks.reverse]
            mixed = gravity_beside.copy()
            part = _ratio(gravity_beside[known], gravity[within])
            mixed[known] = (1 - RETURN_SHARE) * gravity_beside[known] + RETURN_SHARE * part * back[within]
            share, beside_share = self._shares((1 - RETURN_SHARE) * gravity + RETURN_SHARE * back, mixed)
        return share, beside_share


def _sums(groups: Ints | Codes, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each group, added in order."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return quotients, 0 where the divisor is not positive."""
    found: Floats = np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
    return found
