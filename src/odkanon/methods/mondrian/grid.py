"""The public grid on which Mondrian's borders lie: it depends on the resolution of the cells, never on the trips.

A border half-way between two observed cell centres gives both away: few pairs of cells have just that middle. So
coordinates are known to Mondrian only as the numbers of their squares of the grid, and a border is always a grid line.
Whatever is published is the same for all trips that begin and end in the same squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.zoning.cells import Floats, cell_radius

_CORNER = np.array([-180.0, -90.0])
_MARGIN = 16
"""The frame ends at every so many-th grid line, or at coarser ones."""
_WIDER = [_MARGIN << more for more in range(1, 40)]


@dataclass(frozen=True)
class Grid:
    """Lines of longitude and latitude at multiples of a power of two degrees, counted from -180 and -90.

    Attributes
    ----------
    step : float
        Degrees from line to line: exact in binary, so that borders are the same numbers everywhere.
    """

    step: float

    @classmethod
    def of_resolution(cls, resolution: int) -> Grid:
        """Return the finest grid whose step is at least twice as wide as a cell: no square has a single cell."""
        return cls(2.0 ** ceil(log2(4 * cell_radius(resolution))))

    def squares(self, lon: Floats, lat: Floats) -> Ints:
        """Return the numbers of the lines to the left of and below each point, shape (2, points)."""
        lines: Ints = np.floor((np.stack([lon, lat]) - _CORNER[:, None]) / self.step).astype(np.int64)
        return lines

    def frame(self, squares: Ints, low: Ints, high: Ints) -> Ints:
        """Return the first and the last line around all squares, on a grid that is coarser by far: shape (2, 2).

        It goes by where enough trips are to be published. Fewer that lie beyond move it by large steps: the farther
        they are, the coarser are the lines at which it may end, and the less it tells of where they are.

        Parameters
        ----------
        squares : array of int, shape (2, points)
            All squares.
        low, high : array of int, shape (2,)
            Of each coordinate, the square up to which there are enough trips, and that from which on there are.
        """
        first, last = squares.min(axis=1).tolist(), squares.max(axis=1).tolist()
        below = [max(_below(near, far), 0) for near, far in zip(low.tolist(), first, strict=True)]
        above = [-_below(-1 - near, -1 - far) for near, far in zip(high.tolist(), last, strict=True)]
        return np.array([below, above], dtype=np.int64)

    def degrees(self, lines: Ints) -> Floats:
        """Return where lines of longitude and latitude, the last axis, are; none lies beyond the ends of the world."""
        places: Floats = np.minimum(lines * self.step + _CORNER, -_CORNER)
        return places


def _below(near: int, far: int) -> int:
    """Return a line below two squares: the next one, unless ``far`` lies beyond it; then one of a coarser grid."""
    line = near // _MARGIN * _MARGIN
    return line if line <= far else next(line for wide in _WIDER if (line := (near // wide - 1) * wide) <= far)


def simplest_line(left: Ints, right: Ints) -> Ints:
    """Return the line after the squares ``left`` and before the squares ``right`` that belongs to the coarsest grid.

    All lines between two neighbouring values part the points in the same way; the one with most zeros at its end in
    binary tells least of where these values are.
    """
    _, bits = np.frexp((left ^ right).astype(np.float64))
    line: Ints = (right >> (bits - 1)) << (bits - 1)
    return line
