"""Rows of a release divided among pairs of places, in whole millionths, so that nothing is lost or added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.publish.onto.shares import ZoneShares
from odkanon.zoning.cells import Floats

DECIMALS = 6
_AT_ONCE = 1 << 21
"""Parts of rows that are worked on at the same time; bounds the memory."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Flows between places, sorted; empty ones are left out.

    Attributes
    ----------
    origin, destination : array of int
        Numbers of the places.
    units, exact : array of int
        How many millionths flow, and how many of them were published inside; the rest was spread.
    """

    origin: Ints
    destination: Ints
    units: Ints
    exact: Ints


def spread_rows(
    origin: Ints,
    destination: Ints,
    published: Ints,
    to_spread: Ints,
    shares: tuple[ZoneShares, ZoneShares],
    places: int,
) -> Cells:
    """Divide rows among pairs of places; the sum over cells is that of the rows, to the last unit.

    Parameters
    ----------
    origin, destination : array of int
        For each row, the numbers of its zones.
    published : array of int
        The units of each row, which count as exact where both zones lie inside one place each.
    to_spread : array of int
        The units to divide: the same, or corrected for rows inside rows, with the same sum.
    shares : tuple of ZoneShares
        How origin and destination zones are divided.
    places : int
        How many places there are, the outside among them.
    """
    starts = [np.searchsorted(share.zone, np.arange(len(share.size) + 1)) for share in shares]
    counts = [np.diff(start)[zone] for start, zone in zip(starts, (origin, destination), strict=True)]
    largest = [_largest(share, start) for share, start in zip(shares, starts, strict=True)]
    total = _Sums.nothing()
    for some in _blocks(counts[0] * counts[1]):
        parts = (counts[0] * counts[1])[some]
        row = np.repeat(np.arange(len(parts)), parts)
        offset = np.arange(len(row)) - (np.cumsum(parts) - parts)[row]
        left = starts[0][origin[some]][row] + offset // counts[1][some][row]
        right = starts[1][destination[some]][row] + offset % counts[1][some][row]
        share = shares[0].share[left] * shares[1].share[right]
        key = shares[0].place[left] * places + shares[1].place[right]
        first = np.cumsum(parts) - parts
        main = first + largest[0][origin[some]] * counts[1][some] + largest[1][destination[some]]
        units = _apportioned(to_spread[some], row, share, first, main)
        exact = np.where(parts[row] == 1, published[some][row], 0)
        total = total.plus(key, units, exact)
    settled = _without_negative(total.units)
    used = (settled != 0) | (total.exact != 0)
    return Cells(total.key[used] // places, total.key[used] % places, settled[used], total.exact[used])


def _blocks(work: Ints) -> Iterator[slice]:
    done, start = np.cumsum(work), 0
    while start < len(work):
        before = int(done[start - 1]) if start else 0
        stop = max(int(np.searchsorted(done, before + _AT_ONCE, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _largest(shares: ZoneShares, starts: Ints) -> Ints:
    """Return for each zone which of its parts is the largest."""
    best = np.lexsort((-shares.share, shares.zone))[starts[:-1]]
    return best - starts[:-1]


def _apportioned(units: Ints, row: Ints, share: Floats, first: Ints, main: Ints) -> Ints:
    """Divide units in proportion; what rounding leaves over goes to the main part of the row."""
    parts: Ints = np.rint(units[row] * share).astype(np.int64)
    parts[main] += units - np.add.reduceat(parts, first)
    return parts


@dataclass(frozen=True, eq=False)
class _Sums:
    key: Ints
    units: Ints
    exact: Ints

    @classmethod
    def nothing(cls) -> _Sums:
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, none)

    def plus(self, key: Ints, units: Ints, exact: Ints) -> _Sums:
        key = np.concatenate([self.key, key])
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0])[: len(key)])
        sums = [
            np.add.reduceat(np.concatenate([old, new])[order], starts)
            for old, new in ((self.units, units), (self.exact, exact))
        ]
        return _Sums(key[order][starts], sums[0], sums[1])


def _without_negative(units: Ints) -> Ints:
    """Lift what rounding has pushed below 0, at the cost of the largest cell."""
    lifted: Ints = np.maximum(units, 0)
    if len(units):
        lifted[np.argmax(lifted)] -= int(lifted.sum()) - int(units.sum())
    return lifted
