"""Rows of a release apportioned to pairs of target zones, in whole millionths, so that nothing is lost or added.

With ``A`` the shares of source zones in target zones and ``F`` the flows between source zones, the matrix between
target zones is the product ``A' F A``. It is computed for some origins at a time: apportioning row by row would be
slow where many rows are large, since each meets thousands of targets at both ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.estimate.zone_shares import ZoneShares
from odkanon.zoning.cells import Floats

DECIMALS = 6
_MAX_CELLS = 1 << 21
"""Cells of the matrix that are computed at the same time; bounds the memory."""
_NOISE = 1e-6
"""Units below this are rounding errors of differences between equal numbers."""


@dataclass(frozen=True, eq=False)
class MatrixBlock:
    """Flows from consecutive origins to all destinations."""

    first: int
    """Position of the first origin."""
    units: Ints
    exact: Ints
    """By origin (first axis) and destination, the millionths that flow, and those of them that were published between
    zones inside; the others are estimated."""


@dataclass(frozen=True, eq=False)
class ApportionedRows:
    """Rows prepared to be apportioned; see `apportion`."""

    targets: int
    """Number of target zones, including the outside."""
    shares: Any
    """Sparse shares of target zones (columns) in source zones (rows)."""
    estimated: Any
    """Sparse: between source zones, the units to apportion."""
    exact: Any
    """Sparse: between target zones, the units published inside both."""
    from_target: Ints
    """The apportioned units that start in each target zone."""

    def blocks(self) -> Iterator[MatrixBlock]:
        """Yield the matrix in order, some origins at a time; the boundaries do not depend on the measure."""
        transposed = self.shares.T.tocsr()
        step = rows_at_once(self.targets)
        for first in range(0, self.targets, step):
            some = slice(first, first + step)
            spread = (transposed[some] @ self.estimated @ self.shares).toarray()
            exact: Ints = self.exact[some].toarray()
            yield MatrixBlock(first, exact + divide(spread, self.from_target[some]), exact)


def rows_at_once(targets: int) -> int:
    """Return how many origins are computed at the same time."""
    return max(min(_MAX_CELLS // targets, targets), 1)


def apportion(
    origin: Ints, destination: Ints, published: Ints, to_spread: Ints, shares: ZoneShares, targets: int
) -> ApportionedRows:
    """Apportion rows to pairs of target zones; the sum over cells equals that of the rows, to the last unit.

    Where nested zones extend beyond each other (H3 cells), a cell may come out below what was published inside it. It
    is then set to that, and the other cells of the same origin are reduced in proportion to their estimates.

    Parameters
    ----------
    origin, destination : array of int
        For each row, the positions of its source zones.
    published : array of int
        The published units of each row; exact where both zones lie inside one target zone each.
    to_spread : array of int
        The units to apportion: the same, or corrected for nested rows, with the same sum.
    shares : ZoneShares
        The shares of source zones in target zones.
    targets : int
        Number of target zones, including the outside.
    """
    from scipy import sparse

    sources = len(shares.size)
    parts = sparse.csr_array((shares.share, (shares.source, shares.target)), shape=(sources, targets))
    starts = np.searchsorted(shares.source, np.arange(sources))
    whole = np.bincount(shares.source, minlength=sources) == 1
    inside = whole[origin] & whole[destination]
    ends = tuple(shares.target[starts[zone[inside]]] for zone in (origin, destination))
    exact = sparse.csr_array((published[inside], ends), shape=(targets, targets))
    left = to_spread - np.where(inside, published, 0)
    used = left != 0
    estimated = sparse.csr_array(
        (left[used].astype(np.float64), (origin[used], destination[used])), shape=(sources, sources)
    )
    from_target = parts.T @ group_sum(origin, sources, left).astype(np.float64)
    return ApportionedRows(targets, parts, estimated, exact, divide(from_target[None], left.sum(keepdims=True))[0])


def divide(shares: Floats, totals: Ints) -> Ints:
    """Divide each total (one a row) in proportion to the shares of its row; negative shares count as 0.

    What rounding down leaves over is distributed as the fractions accumulate along the row. The sum is exact, each
    part is off by less than one, and so is the sum of any adjacent parts, however many and small they are.

    Examples
    --------
    >>> divide(np.array([[0.3, 0.3, 0.4, -1.0], [2.0, 0.0, 1.0, 1.0]]), np.array([2, 8]))
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
    distributed: Ints = np.rint(running).astype(np.int64)
    units += distributed
    units[:, 1:] -= distributed[:, :-1]
    largest = np.arange(len(units)), np.argmax(shares, axis=1)
    units[largest] += totals - units.sum(axis=1)  # zero, except for numbers beyond the precision of floats
    return units


def _ratio(above: Ints, below: Floats) -> Floats:
    """Return quotients, 0 where the divisor is not positive."""
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
