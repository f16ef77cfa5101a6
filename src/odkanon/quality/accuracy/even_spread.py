"""Flows between places estimated from a release, with each row spread evenly over its zones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Ints, sort_keys
from odkanon.quality.accuracy.squares import Shares
from odkanon.zoning.cells import Floats

_AT_ONCE = 1 << 18
"""Entries that are processed at a time; bounds the memory, and fits in a processor's cache."""
_TABLE = 16
"""The largest size of a lookup table, relative to the number of lookups."""


@dataclass(frozen=True, eq=False)
class RowMasses:
    """Masses to spread, each over one origin and one destination zone, sorted by origin."""

    origin: Ints
    destination: Ints
    """Numbers of the zones."""
    mass: Floats
    """The masses in each measure, of shape (rows, measures)."""

    def take(self, which: Ints) -> RowMasses:
        """Return some of the rows, in the given order."""
        return RowMasses(self.origin[which], self.destination[which], self.mass[which])


def merge_rows(rows: RowMasses) -> RowMasses:
    """Return rows sorted by both ends, with rows between the same zones merged."""
    order = np.lexsort((rows.destination, rows.origin))
    found = rows.take(order)
    opens = (np.diff(found.origin, prepend=-1) != 0) | (np.diff(found.destination, prepend=-1) != 0)
    if opens.all():
        return found
    starts = np.flatnonzero(opens)
    return RowMasses(found.origin[starts], found.destination[starts], np.add.reduceat(found.mass, starts, axis=0))


def spread_at(rows: RowMasses, origins: Shares, destinations: Shares, wanted: tuple[Ints, Ints]) -> Floats:
    """Return the mass between pairs of places.

    The mass between places a and b is the sum over rows of ``mass * share(origin, a) * share(destination, b)``. Rows
    are first spread over the origin places and then looked up from the destination places, so that the work grows with
    the rows plus the wanted pairs, never with their product.

    * ``rows``: the masses.
    * ``origins``, ``destinations``: the share of each zone in each place.
    * ``wanted``: pairs of places, sorted by origin and then by destination.

    Returns
    -------
    array of float, shape (pairs, measures)
    """
    result = np.zeros((len(wanted[0]), rows.mass.shape[1]))
    first = np.searchsorted(rows.origin, np.arange(origins.zones + 1))
    by_place = np.argsort(origins.place, kind="stable")
    by_place = by_place[np.isin(origins.place[by_place], wanted[0])]
    work = np.diff(first)[origins.zone[by_place]]
    second = _DestinationSpread.from_shares(destinations)
    for some in _blocks(origins.place[by_place], work):
        entries, counts = by_place[some], work[some]
        row = np.repeat(first[origins.zone[entries]], counts) + _offsets(counts)
        values = rows.mass[row] * np.repeat(origins.share[entries], counts)[:, None]
        places = origins.place[entries]
        here = slice(*np.searchsorted(wanted[0], [places[0], places[-1] + 1]))
        half = _HalfSpread(np.repeat(places - places[0], counts), rows.destination[row], values)
        result[here] = second.spread(half, wanted[0][here] - places[0], wanted[1][here])
    return result


@dataclass(frozen=True, eq=False)
class _HalfSpread:
    """Masses between origin places and destination zones."""

    place: Ints
    zone: Ints
    mass: Floats

    def keys(self, zones: int) -> Ints:
        """Return one number for both ends."""
        return self.place * zones + self.zone

    def merged(self, zones: int) -> _HalfSpread:
        """Return the masses merged by place and zone, sorted."""
        key_space = (int(self.place.max(initial=0)) + 1) * zones
        order, key = sort_keys(self.keys(zones), key_space)
        starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])[: len(key)])
        total = np.add.reduceat(self.mass[order], starts, axis=0) if len(starts) else self.mass
        return _HalfSpread(key[starts] // zones, key[starts] % zones, total)


@dataclass(frozen=True, eq=False)
class _DestinationSpread:
    """Spreads half-spread masses over the destination places."""

    shares: Shares
    """The share of each destination zone in each place, by zone."""
    by_place: Ints
    place: Ints
    """The order of the entries by place, and their places in that order."""

    @classmethod
    def from_shares(cls, shares: Shares) -> _DestinationSpread:
        by_place = np.argsort(shares.place, kind="stable")
        return cls(shares, by_place, shares.place[by_place])

    def spread(self, half: _HalfSpread, origin: Ints, destination: Ints) -> Floats:
        """Return the masses between wanted places, by the cheapest of three ways."""
        of_pair, zones = _runs(self.place, destination), self.shares.zones
        looks, space = int((of_pair[1] - of_pair[0]).sum()), (int(origin.max(initial=0)) + 1) * zones
        if max(looks, space) <= _TABLE * len(half.place):
            return self._from_table(half, origin, of_pair, space)
        half = half.merged(zones)
        of_half = _runs(self.shares.zone, half.zone)
        if looks <= (of_half[1] - of_half[0]).sum():
            return self._from_pairs(half, origin, of_pair)
        return self._from_half(half, (origin, destination), of_half)

    def _from_table(self, half: _HalfSpread, origin: Ints, of_pair: tuple[Ints, Ints], space: int) -> Floats:
        """Sum in a table of all places and zones, without sorting or searching."""
        zones, columns = self.shares.zones, range(half.mass.shape[1])
        keys = half.keys(zones)
        tables = [np.bincount(keys, half.mass[:, measure], space) for measure in columns]
        result = np.zeros((len(origin), len(columns)))
        for pair, at in _expanded(*of_pair):
            entry = self.by_place[at]
            wanted = origin[pair] * zones + self.shares.zone[entry]
            mass = np.stack([table[wanted] for table in tables], axis=1)
            _add(result, pair, mass * self.shares.share[entry][:, None])
        return result

    def _from_pairs(self, half: _HalfSpread, origin: Ints, of_pair: tuple[Ints, Ints]) -> Floats:
        zones, result = self.shares.zones, np.zeros((len(origin), half.mass.shape[1]))
        known = half.keys(zones)
        for pair, at in _expanded(*of_pair):
            entry = self.by_place[at]
            hit, found = _found(known, origin[pair] * zones + self.shares.zone[entry])
            _add(result, pair[hit], half.mass[found] * self.shares.share[entry[hit]][:, None])
        return result

    def _from_half(self, half: _HalfSpread, wanted: tuple[Ints, Ints], of_half: tuple[Ints, Ints]) -> Floats:
        result = np.zeros((len(wanted[0]), half.mass.shape[1]))
        width = int(max(self.place.max(initial=0), wanted[1].max(initial=0))) + 1
        known = wanted[0] * width + wanted[1]
        for part, entry in _expanded(*of_half):
            hit, found = _found(known, half.place[part] * width + self.shares.place[entry])
            _add(result, found, half.mass[part[hit]] * self.shares.share[entry[hit]][:, None])
        return result


def _runs(ordered: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return the start and end of the run of each wanted number among ordered ones."""
    first = np.searchsorted(ordered, np.arange(int(wanted.max(initial=-1)) + 2))
    return first[wanted], first[wanted + 1]


def _expanded(low: Ints, high: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield, block by block, the intervals and the numbers in them, one entry for each number."""
    for some in _blocks(np.arange(len(low)), high - low):
        counts = (high - low)[some]
        yield np.repeat(np.arange(len(low))[some], counts), np.repeat(low[some], counts) + _offsets(counts)


def _blocks(group: Ints, work: Ints) -> Iterator[slice]:
    """Yield slices of about equal work that do not split groups."""
    done = np.concatenate([[0], np.cumsum(work)])
    ends = np.flatnonzero(np.concatenate([group[1:] != group[:-1], [True]])[: len(group)]) + 1
    start = 0
    while start < len(group):
        fits = ends[max(np.searchsorted(done[ends], done[start] + _AT_ONCE, side="right") - 1, 0)]
        stop = int(fits) if fits > start else int(ends[np.searchsorted(ends, start, side="right")])
        yield slice(start, stop)
        start = stop


def _offsets(counts: Ints) -> Ints:
    """Return 0, 1, 2, ... up to each count."""
    offsets: Ints = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return offsets


def _found(known: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return which of the wanted keys occur among sorted ones, and their positions there."""
    if len(known) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    space = int(known[-1]) + 1
    if space <= _TABLE * len(wanted):  # a lookup is many times as fast as a search
        table = np.full(space + 1, -1)
        table[known] = np.arange(len(known))
        at: Ints = table[np.minimum(wanted, space)]
        hit = np.flatnonzero(at >= 0)
    else:
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        hit = np.flatnonzero(known[at] == wanted)
    return hit, at[hit]


def _add(result: Floats, to: Ints, values: Floats) -> None:
    for measure in range(result.shape[1]):
        result[:, measure] += np.bincount(to, weights=values[:, measure], minlength=len(result))
