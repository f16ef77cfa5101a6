"""A model of flows between places, fitted to the rows of a release as to counts of which only sums are known.

The rate between two places is ``a(o) b(d) f(distance)``. As far as regions are left by as many trips as enter them,
people return: then `a` and `b` are drawn to each other, and the rate is mixed with the estimated flow the other way.
Each round allocates the trips of every row to the pairs of places whose finest row it is, in proportion to the rate,
and fits `a`, `b` and `f` to what was allocated: the EM algorithm of Dempster, Laird and Rubin (1977) with a doubly
constrained gravity model (Wilson 1971), whose margins are adjusted as by Furness (1965). In a release by attributes
each combination of values has rates of its own, whose margins are shrunk towards those of the surroundings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.estimate.place_tree import PlacedZones, PlaceTree
from odkanon.estimate.row_blocks import RowBlocks, divide_into_blocks
from odkanon.zoning.cells import Floats

DISTANCES_KM = np.array([0, 0.3, 0.6, 0.9, 1.2, 1.6, 2, 3, 4, 5.5, 7, 9, 11, 14, 17, 21, 26, 32, 40, 60])
"""Lower limits of the classes of distance."""
FEWER_KM = np.setdiff1d(DISTANCES_KM, [0.6, 0.9, 1.6])
"""The same where each combination of attributes has a decay of its own, and where classes are counted with noise."""
_FURNESS_ROUNDS = 2
RETURN_SHARE = 0.85
"""Weight of the flow the other way in the final rate, where as many trips start as end everywhere."""
RETURN_SHARE_BY_ATTRIBUTES = 0.75
"""The same in releases by attributes, whose combinations are not in balance."""
_RETURN_ROUNDS = 4
SHRINKAGE = 40.0
"""Trips from the surroundings that the shares of combinations of attributes in a place are mixed with."""
_SMALLEST = 1e-12
"""Least rate of a class of distance, relative to the largest."""


@dataclass(frozen=True)
class FitSettings:
    """How thoroughly a model is fitted.

    Attributes
    ----------
    rounds : int
        Rounds of the EM algorithm; more fit the rows better, and flows between places worse.
    nearness : float
        Blocks are divided down to single places where their distance is less than this times the sum of their radii.
    pull : tuple of float
        How far margins are pulled towards the mean of all places, and towards those of the places around.
    limit_rounds : int
        Rounds in which trips are moved out of boxes that would have been listed if they had so many.
    """

    rounds: int = 12
    nearness: float = 1.5
    pull: tuple[float, float] = (0.002, 0.3)
    limit_rounds: int = 0


BY_ATTRIBUTES = FitSettings(18, 1.5, (0.01, 0.04), 5)
"""For questions about attributes."""
ROUGH = FitSettings(10, 0.8)
"""For the totals of a release by attributes, and where places and combinations are many."""
MOST_ENTRIES = 200_000
"""Places times combinations of attributes up to which questions about attributes are answered thoroughly."""


@dataclass(frozen=True, eq=False)
class Rates:
    """A fitted gravity model; the first axis of each array is the combination of attributes.

    Attributes
    ----------
    origin, destination : array of float
        Attraction of places as origins and destinations.
    decay : array of float
        Decay by class of distance.
    balance : float
        How far people are seen to come back, from 0 to 1.
    """

    origin: Floats
    destination: Floats
    decay: Floats
    balance: float = 0.0


@dataclass(frozen=True, eq=False)
class Combinations:
    """The combinations of attributes whose rates differ; a single one where nothing is published by attributes.

    Attributes
    ----------
    covers : array of bool, shape (rows, combinations)
        Which combinations each row counts; of rows between the same zones, those that cover fewest come first.
    back : array of int
        For each combination the group that its return trips are in: the same values at any time.
    most : int
        The most trips of a group of combinations between two zones for which a row could have been listed, but was not;
        0 if unknown.
    """

    covers: Bools
    back: Ints
    most: int = 0

    @classmethod
    def single(cls, rows: int) -> Combinations:
        """Return one combination."""
        return cls(np.ones((rows, 1), dtype=bool), np.zeros(1, dtype=np.int64))


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
    share : array of float, shape (combinations, blocks)
        The share of its row that each block has; those of a row add up to 1, with those beside blocks.
    beside_share : array of float
        The same for pairs beside them.
    """

    tree: PlaceTree
    zones: tuple[PlacedZones, PlacedZones]
    rows: tuple[Ints, Ints]
    blocks: RowBlocks
    rates: Rates
    share: Floats
    beside_share: Floats


def fit_flows(
    tree: PlaceTree,
    zones: tuple[PlacedZones, PlacedZones],
    rows: tuple[Ints, Ints],
    trips: Floats,
    combinations: Combinations | None = None,
    settings: FitSettings = FitSettings(),
) -> FlowModel:
    """Fit the model to rows with a number of trips.

    Examples
    --------
    >>> from odkanon.estimate.place_tree import place_cells
    >>> from odkanon.zoning.zone_nodes import cell_nodes
    >>> names = ["881fb46625fffff", "881fb46627fffff"]
    >>> tree, placed = place_cells([cell_nodes(names), cell_nodes(names)])
    >>> trips = np.array([30.0, 12.0])
    >>> model = fit_flows(tree, (placed[0], placed[1]), (np.array([0, 1]), np.array([1, 1])), trips)
    >>> np.bincount(model.blocks.row[model.share > 0], model.share[model.share > 0]).tolist()
    [1.0, 1.0]
    """
    combinations = Combinations.single(len(trips)) if combinations is None else combinations
    if len(tree) * combinations.covers.shape[1] > MOST_ENTRIES and combinations.covers.shape[1] > 1:
        settings = ROUGH
    blocks = divide_into_blocks(tree, zones, rows, combinations.covers, settings.nearness)
    fit = _Fit(tree, zones, rows, blocks, trips, combinations, settings)
    rates = fit.run()
    return FlowModel(tree, zones, rows, blocks, rates, *fit.with_returns(rates))


@dataclass(frozen=True, eq=False)
class _Fit:
    """The EM algorithm on blocks."""

    tree: PlaceTree
    zones: tuple[PlacedZones, PlacedZones]
    rows: tuple[Ints, Ints]
    blocks: RowBlocks
    trips: Floats
    combinations: Combinations
    settings: FitSettings

    @property
    def _limits_km(self) -> Floats:
        return DISTANCES_KM if len(self.blocks.row) == 1 else FEWER_KM

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
        return np.searchsorted(self._limits_km, distance, side="right").astype(np.int64) - 1

    @cached_property
    def _used(self) -> Ints:
        """The entries of all combinations and blocks, in one numbering, that have a row."""
        return np.flatnonzero(self.blocks.row.ravel() >= 0)

    @cached_property
    def _row_used(self) -> Ints:
        """The rows of these entries."""
        return self.blocks.row.ravel().take(self._used).astype(np.int64)

    @cached_property
    def _row_trips(self) -> Floats:
        """The trips of the row of each combination and block; 0 where there is none."""
        found: Floats = np.where(self.blocks.row >= 0, self.trips.take(self.blocks.row), 0.0)
        return found

    def run(self) -> Rates:
        """Return the fitted rates."""
        parts, places, width = len(self.blocks.row), len(self.tree), len(self._limits_km)
        even = np.full((parts, places), 1 / places)
        rates = Rates(even, even, np.ones((parts, width)))
        for _ in range(self.settings.rounds):
            starts, ends, decay = self._expected(rates)
            balance = 0.0 if parts > 1 else self._balance(starts, ends)
            rates = replace(self._adjusted(rates, *self._balanced(starts, ends, balance), decay), balance=balance)
        return rates

    def _rate(self, rates: Rates) -> tuple[Floats, Floats]:
        """Return the rate of each combination and block, and of each pair beside them."""
        start, end = self.tree.sums(rates.origin), self.tree.sums(rates.destination)
        blocks, (classes, beside), part = self.blocks, self._classes, self.blocks.beside_part
        return (
            start.take(blocks.origin, 1) * end.take(blocks.destination, 1) * rates.decay.take(classes, 1),
            start[part, blocks.beside_origin] * end[part, blocks.beside_destination] * rates.decay[part, beside],
        )

    @cached_property
    def _limits(self) -> list[tuple[Ints, Ints, Floats]]:
        """The most trips that coarser rows can have where a row by more attributes would have been listed.

        For each number of combinations that rows cover: entries of coarser rows, the box of each, and its most trips.
        """
        found: list[tuple[Ints, Ints, Floats]] = []
        if not self.combinations.most or not self.settings.limit_rounds:
            return found
        tree, blocks, covers = self.tree, self.blocks, self.combinations.covers
        width = covers.sum(axis=1)
        flat = self._used
        row, (part, block) = blocks.row.ravel()[flat], np.divmod(flat, blocks.row.shape[1])
        for size in np.unique(width)[:-1].tolist():
            same = np.flatnonzero(width == size)
            group = np.where(covers[same].any(axis=0), covers[same].argmax(axis=0), -1)
            coarser = np.flatnonzero((width[row] > size) & (group[part] >= 0))
            key, boxes = group[part[coarser]], np.ones(len(coarser))
            for nodes, zones, ends in zip((blocks.origin, blocks.destination), self.zones, self.rows, strict=True):
                level = tree.levels[int(zones.level[ends[same]].min())]
                first, last = (level[side[nodes[block[coarser]]]] for side in (tree.first, tree.end - 1))
                key, boxes = key * (int(level[-1]) + 1) + first, boxes * (last - first + 1)
            distinct, box = np.unique(key, return_inverse=True)
            most = np.zeros(len(distinct))
            most[box] = boxes * self.combinations.most
            found.append((flat[coarser], box, most))
        return found

    def _limited(self, rate: Floats, beside: Floats) -> tuple[Floats, Floats]:
        """Return shares of which none gives a box more trips than an unlisted one can have, but for rounding."""
        rate = rate.copy()
        share, other = self._shares(rate, beside)
        for _ in range(self.settings.limit_rounds if self._limits else 0):
            trips = self._allocated(share, other)[0].ravel()
            for entry, box, most in self._limits:
                total = _sums(box, trips[entry], len(most))
                rate.ravel()[entry] *= np.minimum(_ratio(most, total), 1.0)[box]
            share, other = self._shares(rate, beside)
        return share, other

    def _shares(self, rate: Floats, beside: Floats) -> tuple[Floats, Floats]:
        """Return the share of its row that each block has, in proportion to its rate."""
        blocks, rows, used = self.blocks, len(self.trips), self._used
        row, own = self._row_used, rate.ravel().take(used)
        while True:
            total = _sums(row, own, rows) + _sums(blocks.beside_row, beside, rows)
            empty = total <= 0
            if not empty.any():
                break
            own, beside = np.where(empty[row], 1.0, own), np.where(empty[blocks.beside_row], 1.0, beside)
        share = np.zeros(rate.size)
        share[used] = own / total.take(row)
        return share.reshape(rate.shape), beside / total[blocks.beside_row]

    def _allocated(self, share: Floats, beside: Floats) -> tuple[Floats, Floats]:
        """Return the trips of blocks and of pairs beside them."""
        return self._row_trips * share, self.trips[self.blocks.beside_row] * beside

    def _expected(self, rates: Rates) -> tuple[Floats, Floats, Floats]:
        """Return the trips that start and end in each place, and those of each class of distance."""
        blocks, (classes, beside_classes), part = self.blocks, self._classes, self.blocks.beside_part
        trips, beside = self._allocated(*self._limited(*self._rate(rates)))
        parts, nodes, width = len(trips), self.tree.size, len(self._limits_km)
        decay = _sums_by_part(classes, trips, width)
        decay += _sums(part * width + beside_classes, beside, parts * width).reshape(parts, width)
        ends = [
            self._to_places(
                attraction,
                _sums_by_part(inside, trips, nodes)
                + _sums(part * nodes + other, beside, parts * nodes).reshape(parts, nodes),
            )
            for attraction, inside, other in (
                (rates.origin, blocks.origin, blocks.beside_origin),
                (rates.destination, blocks.destination, blocks.beside_destination),
            )
        ]
        return ends[0], ends[1], decay

    @staticmethod
    def _balanced(starts: Floats, ends: Floats, weight: float) -> tuple[Floats, Floats]:
        """Mix what starts in each place with what ends there."""
        middle = weight * (starts + ends) / 2
        return (1 - weight) * starts + middle, (1 - weight) * ends + middle

    def _balance(self, starts: Floats, ends: Floats) -> float:
        """Return how far people come back: 1 if as many trips start as end in each coarse node, 0 if half as many."""
        level = self.tree.levels[max(len(self.tree.levels) - 3, 1)]
        first, last = (_sums(level, side.sum(axis=0), int(level[-1]) + 1) for side in (starts, ends))
        common = float(np.minimum(first, last).sum() / max(first.sum(), last.sum()))
        return max(2 * common - 1, 0.0) ** 2

    def _to_places(self, attraction: Floats, trips: Floats) -> Floats:
        """Divide the trips of nodes among their places, and pull the result a little towards means."""
        found: Floats = attraction * self.tree.push_down(_ratio(trips, self.tree.sums(attraction)))
        even, around = self.settings.pull
        pulled: Floats = (1 - even - around) * found + even * found.mean(axis=1, keepdims=True)
        pulled += around * (self.tree.surroundings @ found.T).T
        return pulled if len(pulled) == 1 else self._shrunk(pulled)

    def _shrunk(self, trips: Floats) -> Floats:
        """Mix the shares of combinations in each place with those of its region, and these with those of all."""
        level = self.tree.levels[-3:-2]
        region = level[0] if level else np.zeros(trips.shape[1], dtype=np.int64)
        around = _sums_by_part(region, trips, int(region[-1]) + 1)
        of_all = trips.sum(axis=1, keepdims=True) / trips.sum()
        of_region = (around + SHRINKAGE * of_all) / (around.sum(axis=0) + SHRINKAGE)
        total = trips.sum(axis=0)
        shrunk: Floats = (trips + SHRINKAGE * of_region[:, region]) * (total / (total + SHRINKAGE))
        return shrunk

    @cached_property
    def _pairs(self) -> Any:
        """Sums what is at the other end of blocks by class of distance and node; from either end, as blocks are pairs.

        Blocks are sorted by origin, so that those of a class are, too.
        """
        from scipy.sparse import csr_array

        classes, nodes, width = self._classes[0], self.tree.size, len(self._limits_km)
        order = np.argsort(classes.astype(np.uint8), kind="stable")
        count = np.bincount(classes * nodes + self.blocks.origin, minlength=width * nodes)
        numbers = np.int32 if len(order) < 1 << 31 else np.int64
        ends = np.concatenate([[0], np.cumsum(count)]).astype(numbers)
        entries = np.ones(len(order)), self.blocks.destination[order].astype(numbers), ends
        return csr_array(entries, shape=(width * nodes, nodes))

    def _adjusted(self, rates: Rates, starts: Floats, ends: Floats, decay: Floats) -> Rates:
        """Return rates whose margins and classes of distance are those that were allocated."""
        tree, f = self.tree, rates.decay.T[:, None]
        starts, ends, decay, destination = starts.T, ends.T, decay.T[:, None], rates.destination.T
        for _ in range(_FURNESS_ROUNDS):
            origin = _ratio(starts, tree.push_down((f * self._reached(destination)).sum(axis=0).T).T)
            reached = self._reached(origin)
            destination = _ratio(ends, tree.push_down((f * reached).sum(axis=0).T).T)
            f = f * _ratio(decay, f * (reached * tree.sums(destination.T).T).sum(axis=1, keepdims=True))
            f = np.maximum(f, _SMALLEST * f.max(axis=0))
        origin, destination, f = (np.ascontiguousarray(each.T) for each in (origin, destination, f[:, 0]))
        return Rates(origin, destination, f)

    def _reached(self, attraction: Floats) -> Floats:
        """Return the attraction of all places that lead to each node, by class of distance; combinations come last."""
        found: Floats = self._pairs @ np.ascontiguousarray(self.tree.sums(attraction.T).T)
        return found.reshape(len(self._limits_km), self.tree.size, -1)

    def with_returns(self, rates: Rates) -> tuple[Floats, Floats]:
        """Return the shares of rows where the rate is mixed with the flow the other way."""
        blocks, group = self.blocks, self.combinations.back
        gravity, gravity_beside = self._rate(rates)
        scale = self.trips.sum() / gravity.sum()
        gravity, gravity_beside = gravity * scale, gravity_beside * scale
        known = np.flatnonzero(blocks.beside_block >= 0)
        within = blocks.beside_part[known] * gravity.shape[1] + blocks.beside_block[known]
        of_group = _ratio(gravity, _grouped(gravity, group))
        share, beside_share = self._limited(gravity, gravity_beside)
        returns = RETURN_SHARE * rates.balance if len(group) == 1 else RETURN_SHARE_BY_ATTRIBUTES
        for _ in range(_RETURN_ROUNDS):
            flow, beside = self._allocated(share, beside_share)
            flow = flow + _sums(within, beside[known], flow.size).reshape(flow.shape)
            back: Floats = _grouped(flow, group).take(blocks.reverse, 1) * of_group
            mixed = gravity_beside.copy()
            part = _ratio(gravity_beside[known], gravity.ravel()[within])
            mixed[known] = (1 - returns) * gravity_beside[known] + returns * part * back.ravel()[within]
            share, beside_share = self._limited((1 - returns) * gravity + returns * back, mixed)
        return share, beside_share


def _grouped(values: Floats, group: Ints) -> Floats:
    """Return for each combination the sum over those of its group."""
    if len(group) == 1:
        return values
    total = np.zeros_like(values)
    np.add.at(total, group, values)
    found: Floats = total[group]
    return found


def _sums(groups: Ints | Codes, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each group, added in order."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64)


def _sums_by_part(groups: Ints | Codes, values: Floats, count: int) -> Floats:
    """Return the sums of the values of each group for each combination of attributes."""
    return np.stack([_sums(groups, own, count) for own in values])


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return quotients, 0 where the divisor is not positive."""
    found: Floats = np.divide(above, below, out=np.zeros(np.broadcast(above, below).shape), where=below > 0)
    return found
