"""Rows of a release divided among pairs of places, in whole millionths, so that nothing is lost or added.

Going through rows one by one would be slow where many rows are large: each meets thousands of places at both ends. So
they are divided together. With ``A`` the shares of zones in places and ``F`` what flows between zones, the matrix
between places is the product ``A' F A``, worked out for some origins at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.errors import InputError
from odkanon.publish.onto.shares import ZoneShares
from odkanon.zoning.cells import Floats

DECIMALS = 6
_AT_ONCE = 1 << 21
"""Cells that are worked on at the same time; bounds the memory."""
_NOISE = 1e-6
"""Less of a unit than this is what is left of differences of numbers that are the same."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Flows from a few places in a row to all places.

    Attributes
    ----------
    first : int
        The number of the first origin.
    units, exact : array of int
        By origin (first axis) and destination, how many millionths flow, and how many of them were published inside;
        the rest was spread.
    """

    first: int
    units: Ints
    exact: Ints


@dataclass(frozen=True, eq=False)
class SpreadRows:
    """Rows that are to be divided among pairs of places; see `spread_rows`.

    Attributes
    ----------
    places : int
        How many places there are, the outside among them.
    shares : scipy.sparse.csr_array
        Shares of places (columns) in zones (rows).
    estimated : scipy.sparse.csr_array
        Between zones, what is to be divided.
    exact : scipy.sparse.csr_array
        Between places, what was published inside of both.
    from_place : array of int
        The units to divide that begin in each place.
    """

    places: int
    shares: Any
    estimated: Any
    exact: Any
    from_place: Ints

    def blocks(self) -> Iterator[Cells]:
        """Yield all cells, some origins at a time, in their order; whatever was asked for, the limits are the same."""
        of_place = self.shares.T.tocsr()
        step = rows_at_once(self.places)
        for first in range(0, self.places, step):
            some = slice(first, first + step)
            spread = (of_place[some] @ self.estimated @ self.shares).toarray()
            exact: Ints = self.exact[some].toarray()
            yield Cells(first, exact + divided(spread, self.from_place[some]), exact)


def rows_at_once(places: int) -> int:
    """Return how many origins are worked on at the same time."""
    return max(min(_AT_ONCE // places, places), 1)


def spread_rows(
    origin: Ints, destination: Ints, published: Ints, to_spread: Ints, shares: ZoneShares, places: int
) -> SpreadRows:
    """Divide rows among pairs of places; the sum over cells is that of the rows, to the last unit.

    Where zones lie in each other only nearly (H3 cells), a cell may come out below what was published inside of it. It
    is then that, and the other cells of the same origin have so much less, in proportion to what was spread over them.

    Parameters
    ----------
    origin, destination : array of int
        For each row, the numbers of its zones.
    published : array of int
        The units of each row, which count as exact where both zones lie inside one place each.
    to_spread : array of int
        The units to divide: the same, or corrected for rows inside rows, with the same sum.
    shares : ZoneShares
        How zones are divided.
    places : int
        How many places there are, the outside among them.
    """
    try:
        from scipy.sparse import csr_array
    except ImportError:
        raise InputError("a release on other zones needs scipy: pip install 'odkanon[geo]'") from None
    zones = len(shares.size)
    parts = csr_array((shares.share, (shares.zone, shares.place)), shape=(zones, places))
    starts = np.searchsorted(shares.zone, np.arange(zones))
    whole = np.bincount(shares.zone, minlength=zones) == 1
    inside = whole[origin] & whole[destination]
    ends = tuple(shares.place[starts[zone[inside]]] for zone in (origin, destination))
    exact = csr_array((published[inside], ends), shape=(places, places))
    open_ = to_spread - np.where(inside, published, 0)
    used = open_ != 0
    estimated = csr_array((open_[used].astype(np.float64), (origin[used], destination[used])), shape=(zones, zones))
    begins = parts.T @ group_sum(origin, zones, open_).astype(np.float64)
    return SpreadRows(places, parts, estimated, exact, divided(begins[None], open_.sum(keepdims=True))[0])


def divided(shares: Floats, totals: Ints) -> Ints:
    """Divide each total (one a row) in proportion to the shares of its row; those below 0 count as 0.

    What rounding down leaves over is handed out as the fractions add up along the row. So the sum is exact, each
    part is off by less than one, and so are sums of neighbours, however many they are and however small.

    Examples
    --------
    >>> divided(np.array([[0.3, 0.3, 0.4, -1.0], [2.0, 0.0, 1.0, 1.0]]), np.array([2, 8]))
    array([[1, 0, 1, 0],
           [4, 0, 2, 2]])
    """
    parts = np.where(shares < _NOISE, 0.0, shares)
    parts *= _ratio(totals, parts.sum(axis=1))[:, None]
    units: Ints = parts.astype(np.int64)
    parts -= units
    left = totals - units.sum(axis=1)
    running = np.cumsum(parts, axis=1, out=parts)
    running *= _ratio(np.maximum(left, 0), running[:, -1])[:, None]
    handed: Ints = np.rint(running).astype(np.int64)
    units += handed
    units[:, 1:] -= handed[:, :-1]
    largest = np.arange(len(units)), np.argmax(shares, axis=1)
    units[largest] += totals - units.sum(axis=1)  # nothing, but for numbers beyond the precision of floats
    return units


def _ratio(above: Ints, below: Floats) -> Floats:
    """Return quotients, 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
