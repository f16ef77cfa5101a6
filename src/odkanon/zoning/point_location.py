"""The place of a point: its H3 cell, or the polygon that contains it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.zoning.cells import Floats, latlng_to_cell

Shapes = npt.NDArray[Any]

NOWHERE = -1
"""The number of a point outside all polygons."""
_SIDE = 512
"""Squares along each side of the extent of the polygons, in the table of what is where."""
_MARGIN = 1e-6
"""Share of a square by which borders are widened before they count as outside of it; far above rounding errors."""


class PlaceFinder(Protocol):
    """Finds the places of points."""

    def find(self, lat: Floats, lon: Floats) -> Ints:
        """Return the number of the place of each point; `NOWHERE` where there is none."""


@dataclass(frozen=True)
class CellFinder:
    """Finds the H3 cells of points, as signed integers."""

    resolution: int

    def find(self, lat: Floats, lon: Floats) -> Ints:
        """Return the cell of each point."""
        return latlng_to_cell(lat, lon, self.resolution).view(np.int64)


@dataclass(frozen=True, eq=False)
class PolygonFinder:
    """Finds the polygons of points. A point on a shared border, or where polygons overlap, is in the first of them.

    The extent is divided into small squares. A square that no border meets needs no geometry; points in other squares
    are compared with the polygons there. Results do not depend on the squares.
    """

    shapes: Shapes
    """Polygons in degrees, in order of precedence."""
    numbers: Ints
    """The number of each, which is returned for the points in it."""

    def find(self, lat: Floats, lon: Floats) -> Ints:
        """Return the number of the polygon of each point."""
        import shapely

        content, first, several = self._squares
        west, south, width, height = self._extent
        # Polygons that cross the 180th meridian may have longitudes beyond it.
        lon = np.where(lon < west, np.where(lon + 360 <= west + _SIDE * width, lon + 360, lon), lon)
        column, row = np.floor((lon - west) / width), np.floor((lat - south) / height)
        at = np.flatnonzero((column >= -1) & (column <= _SIDE) & (row >= -1) & (row <= _SIDE))
        square = _clipped(row[at]) * _SIDE + _clipped(column[at])
        found = np.full(len(lat), NOWHERE, dtype=np.int64)
        found[at] = content[square]
        mixed = found[at] < NOWHERE
        at = at[mixed]
        group = -2 - found[at]
        found[at] = NOWHERE
        candidate, end = first[group], first[group + 1]
        while len(at):
            hit = shapely.intersects_xy(self._prepared[several[candidate]], lon[at], lat[at])
            found[at[hit]] = self.numbers[several[candidate[hit]]]
            left = ~hit & (candidate + 1 < end)
            at, candidate, end = at[left], candidate[left] + 1, end[left]
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker process needs; it prepares the polygons itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_prepared"}

    @cached_property
    def _prepared(self) -> Shapes:
        import shapely

        shapely.prepare(self.shapes)
        return self.shapes

    @cached_property
    def _extent(self) -> tuple[float, float, float, float]:
        """West and south of the extent, and the width and height of a square."""
        import shapely

        west, south, east, north = shapely.total_bounds(self.shapes).tolist()
        return west, south, max(east - west, 1e-6) / _SIDE, max(north - south, 1e-6) / _SIDE

    @cached_property
    def _squares(self) -> tuple[npt.NDArray[np.int32], Ints, Ints]:
        """The content of each square, and the polygons to compare with.

        The content is the number of a polygon, `NOWHERE`, or ``-2 - g``: compare with the polygons at the positions
        ``several[first[g]:first[g + 1]]``.
        """
        square, shape = self._border_squares()
        mixed = np.zeros(_SIDE * _SIDE, dtype=bool)
        mixed[square] = True
        # Between two borders in a row of squares, all squares are in the same polygons.
        opens = np.ones(_SIDE * _SIDE, dtype=bool)
        opens[1:] = mixed[1:] | mixed[:-1]
        opens[::_SIDE] = True
        runs = np.flatnonzero(opens)
        run, hit = self._hits(runs)
        inside = np.full(len(runs), NOWHERE, dtype=np.int32)
        inside[run[::-1]] = self.numbers[hit[::-1]]  # the first one last, so that it stays
        content = inside[np.cumsum(opens) - 1]
        # A polygon that contains a whole square must be compared, too.
        around = mixed[runs[run]]
        square, shape = np.concatenate([square, runs[run[around]]]), np.concatenate([shape, hit[around]])
        square, shape = np.unique(np.stack([square, shape]), axis=1)
        squares, first = np.unique(square, return_index=True)
        content[squares] = -2 - np.arange(len(squares), dtype=np.int32)
        return content, np.append(first, len(shape)), shape

    def _border_squares(self) -> tuple[Ints, Ints]:
        """Return the squares that borders may meet, with the polygons, each pair at least once."""
        import shapely

        west, south, width, height = self._extent
        scaled = shapely.transform(self.shapes, lambda xy: (xy - (west, south)) / (width, height))
        parts, owner_of_part = shapely.get_parts(scaled, return_index=True)
        rings, part = shapely.get_rings(parts, return_index=True)
        points, ring = shapely.get_coordinates(shapely.segmentize(rings, 0.9), return_index=True)
        joined = ring[1:] == ring[:-1]
        ends = points[:-1][joined], points[1:][joined]
        low = _clipped(np.floor(np.minimum(*ends) - _MARGIN))
        high = _clipped(np.floor(np.maximum(*ends) + _MARGIN))
        shape = owner_of_part[part[ring[1:][joined]]]
        found = [row * _SIDE + column for column in (low[:, 0], high[:, 0]) for row in (low[:, 1], high[:, 1])]
        pairs = np.unique(np.concatenate([each * len(self.shapes) + shape for each in found]))
        return pairs // len(self.shapes), pairs % len(self.shapes)

    def _hits(self, squares: Ints) -> tuple[Ints, Ints]:
        """Return pairs of a position in ``squares`` and a polygon that contains the centre of that square, sorted."""
        import shapely

        west, south, width, height = self._extent
        lon, lat = west + (squares % _SIDE + 0.5) * width, south + (squares // _SIDE + 0.5) * height
        square, shape = shapely.STRtree(self.shapes).query(shapely.points(lon, lat), predicate="intersects")
        order = np.lexsort((shape, square))
        return square[order], shape[order]


def _clipped(positions: Floats) -> Ints:
    clipped: Ints = np.clip(positions, 0, _SIDE - 1).astype(np.int64)
    return clipped
