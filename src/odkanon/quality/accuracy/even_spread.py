"""What a release says about flows between places, where its rows are spread evenly over their zones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Ints, sort_keys
from odkanon.quality.accuracy.squares import Shares
from odkanon.zoning.cells import Floats

_AT_ONCE = 1 << 18
"""Entries that are worked on at the same time; bounds the memory, and they fit in a processor's cache."""
_TABLE = 16
"""How many times as many numbers as are looked up a table may have."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Masses to spread, sorted by origin: each row over one origin and one destination zone.

    Attributes
    ----------
    origin, destination : array of int
        Numbers of the zones.
    mass : array of float, shape (rows, measures)
        What to spread, in each measure.
    """

    origin: Ints
    destination: Ints
    mass: Floats

    def take(self, which: Ints) -> Rows:
        """Return some of the rows, in the given order."""
        return Rows(self.origin[which], self.destination[which], self.mass[which])


def merged(rows: Rows) -> Rows:
    """Return rows sorted by both ends, those between the same two zones as one."""
    order = np.lexsort((rows.destination, rows.origin))
    found = rows.take(order)
    opens = (np.diff(found.origin, prepend=-1) != 0) | (np.diff(found.destination, prepend=-1) != 0)
    if opens.all():
        return found
    starts = np.flatnonzero(opens)
    return Rows(found.origin[starts], found.destination[starts], np.add.reduceat(found.mass, starts, axis=0))


def spread_at(rows: Rows, origins: Shares, destinations: Shares, wanted: tuple[Ints, Ints]) -> Floats:
    """Return the mass between pairs of places.

    The mass between places a and b is the sum over rows of ``mass * share(origin, a) * share(destination, b)``. Rows
    are first spread over the origin places, and then looked at from the destination places, so that the work is about
    that of the rows and of the wanted pairs, never their product.

    Parameters
    ----------
    rows : Rows
        What to spread.
    origins, destinations : Shares
        What share of each zone lies in each place.
    wanted : tuple of array of int
        Pairs of places, sorted by origin and then by destination.

    Returns
    -------
    array of float, shape (pairs, measures)
    """
    result = np.zeros((len(wanted[0]), rows.mass.shape[1]))
    first = np.searchsorted(rows.origin, np.arange(origins.zones + 1))
    by_place = np.argsort(origins.place, kind="stable")
    by_place = by_place[np.isin(origins.place[by_place], wanted[0])]
    work = np.diff(first)[origins.zone[by_place]]
    second = _Second.of(destinations)
    for some in _blocks(origins.place[by_place], work):
        entries, counts = by_place[some], work[some]
        row = np.repeat(first[origins.zone[entries]], counts) + _offsets(counts)
        values = rows.mass[row] * np.repeat(origins.share[entries], counts)[:, None]
        places = origins.place[entries]
        here = slice(*np.searchsorted(wanted[0], [places[0], places[-1] + 1]))
        half = _Half(np.repeat(places - places[0], counts), rows.destination[row], values)
        result[here] = second.spread(half, wanted[0][here] - places[0], wanted[1][here])
    return result


@dataclass(frozen=True, eq=False)
class _Half:
    """Masses between origin places and destination zones."""

    place: Ints
    zone: Ints
    mass: Floats

    def keys(self, zones: int) -> Ints:
        """Return one number for both ends."""
        return self.place * zones + self.zone

    def merged(self, zones: int) -> _Half:
        """Return the same without repetition, sorted."""
        key_space = (int(self.place.max(initial=0)) + 1) * zones
        order, key = sort_keys(self.keys(zones), key_space)
        starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])[: len(key)])
        total = np.add.reduceat(self.mass[order], starts, axis=0) if len(starts) else self.mass
        return _Half(key[starts] // zones, key[starts] % zones, total)


@dataclass(frozen=True, eq=False)
class _Second:
    """Spreads the other end.

    Attributes
    ----------
    shares : Shares
        What share of each destination zone lies in each place, by zone.
    by_place, place : array of int
        The same by place: which entry comes when, and its place.
    """

    shares: Shares
    by_place: Ints
    place: Ints

    @classmethod
    def of(cls, shares: Shares) -> _Second:
        by_place = np.argsort(shares.place, kind="stable")
        return cls(shares, by_place, shares.place[by_place])

    def spread(self, half: _Half, origin: Ints, destination: Ints) -> Floats:
        """Return the masses between wanted places, in the way that has the least work."""
        of_pair, zones = _runs(self.place, destination), self.shares.zones
        looks, space = int((of_pair[1] - of_pair[0]).sum()), (int(origin.max(initial=0)) + 1) * zones
        if max(looks, space) <= _TABLE * len(half.place):
            return self._from_table(half, origin, of_pair, space)
        half = half.merged(zones)
        of_half = _runs(self.shares.zone, half.zone)
        if looks <= (of_half[1] - of_half[0]).sum():
            return self._from_pairs(half, origin, of_pair)
        return self._from_half(half, (origin, destination), of_half)

    def _from_table(self, half: _Half, origin: Ints, of_pair: tuple[Ints, Ints], space: int) -> Floats:
        """Add up in a table of all places and zones: no sorting, no searching."""
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

    def _from_pairs(self, half: _Half, origin: Ints, of_pair: tuple[Ints, Ints]) -> Floats:
        zones, result = self.shares.zones, np.zeros((len(origin), half.mass.shape[1]))
        known = half.keys(zones)
        for pair, at in _expanded(*of_pair):
            entry = self.by_place[at]
            hit, found = _found(known, origin[pair] * zones + self.shares.zone[entry])
            _add(result, pair[hit], half.mass[found] * self.shares.share[entry[hit]][:, None])
        return result

    def _from_half(self, half: _Half, wanted: tuple[Ints, Ints], of_half: tuple[Ints, Ints]) -> Floats:
        result = np.zeros((len(wanted[0]), half.mass.shape[1]))
        width = int(max(self.place.max(initial=0), wanted[1].max(initial=0))) + 1
        known = wanted[0] * width + wanted[1]
        for part, entry in _expanded(*of_half):
            hit, found = _found(known, half.place[part] * width + self.shares.place[entry])
            _add(result, found, half.mass[part[hit]] * self.shares.share[entry[hit]][:, None])
        return result


def _runs(ordered: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return where each wanted number begins and ends among ordered ones."""
    first = np.searchsorted(ordered, np.arange(int(wanted.max(initial=-1)) + 2))
    return first[wanted], first[wanted + 1]


def _expanded(low: Ints, high: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield, a part at a time, every number of each interval, and before it which interval it is of."""
    for some in _blocks(np.arange(len(low)), high - low):
        counts = (high - low)[some]
        yield np.repeat(np.arange(len(low))[some], counts), np.repeat(low[some], counts) + _offsets(counts)


def _blocks(group: Ints, work: Ints) -> Iterator[slice]:
    """Yield slices of about as much work each; what belongs to one group stays together."""
    done = np.concatenate([[0], np.cumsum(work)])
    ends = np.flatnonzero(np.concatenate([group[1:] != group[:-1], [True]])[: len(group)]) + 1
    start = 0
    while start < len(group):
        fits = ends[max(np.searchsorted(done[ends], done[start] + _AT_ONCE, side="right") - 1, 0)]
        stop = int(fits) if fits > start else int(ends[np.searchsorted(ends, start, side="right")])
        yield slice(start, stop)
        start = stop


def _offsets(counts: Ints) -> Ints:
    """Return 0, 1, 2, ... for each count anew."""
    offsets: Ints = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return offsets


def _found(known: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return which of the wanted keys are among sorted ones, and where each of these is."""
    if len(known) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    space = int(known[-1]) + 1
    if space <= _TABLE * len(wanted):  # looking up is many times as fast as searching
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
