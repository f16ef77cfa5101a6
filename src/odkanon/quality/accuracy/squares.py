"""Places to compare flows on, independent of any method: squares of a map, or the user's own zones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Ints, number_groups, sort_keys
from odkanon.zoning.cells import Floats

_HALF = 1 << 25
"""Squares on each side of the centre; the circumference of the globe is 40,075 km."""
_BOX_GRID = 8
_MOST_SQUARES, _LARGE_BOX_GRID = 4096, 64
"""Boxes that touch more squares are sampled on a grid of points; some span an ocean."""


@dataclass(frozen=True, eq=False)
class Shares:
    """The share of each zone in each place, sorted by zone and place."""

    zone: Ints
    place: Ints
    """Numbers of both; each combination occurs once."""
    share: Floats
    """Above 0; the shares of a zone add up to 1, unless its location is unknown."""
    zones: int
    """Number of zones."""


class MapZones(Protocol):
    """A partition of a map into numbered places."""

    @property
    def name(self) -> str:
        """Name of the partition."""
        ...

    def locate(self, x: Floats, y: Floats) -> Ints:
        """Return the number of the place of each point."""
        ...

    def box_shares(self, sides: Floats) -> Shares:
        """Return the shares of boxes (west, south, east, north) in each place."""
        ...


@dataclass(frozen=True)
class Squares:
    """Squares of a map, with a corner at its centre, so that those of 1 km lie inside those of 2 km."""

    km: float
    """Length of a side."""

    @property
    def name(self) -> str:
        """Name of the partition."""
        return f"{self.km:g} km"

    def locate(self, x: Floats, y: Floats) -> Ints:
        """Return the number of the square of each point."""
        column, row = (np.floor(side / (1000 * self.km)).astype(np.int64) for side in (x, y))
        return _number(column, row)

    def centres(self, place: Ints) -> tuple[Floats, Floats]:
        """Return the centres of squares by their numbers, in metres."""
        x, y = ((side + 0.5) * np.float64(1000 * self.km) for side in square_position(place))
        return x, y

    def box_shares(self, sides: Floats) -> Shares:
        """Return the shares of boxes in each square: the product of the shares along both sides."""
        columns, rows = (self._along(sides[:, side], sides[:, side + 2]) for side in (0, 1))
        (first_column, many_columns), (first_row, many_rows) = columns, rows
        large = np.flatnonzero(many_columns * many_rows > _MOST_SQUARES)
        count = many_columns * many_rows
        count[large] = 0
        box = np.repeat(np.arange(len(sides)), count)
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        column = first_column[box] + offset // many_rows[box]
        row = first_row[box] + offset % many_rows[box]
        share = self._covered(column, sides[box][:, 0], sides[box][:, 2])
        share *= self._covered(row, sides[box][:, 1], sides[box][:, 3])
        found = (box, _number(column, row), share), _by_points(self, large, sides, _LARGE_BOX_GRID)
        box, place, share = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return merge_shares(box, place, share, len(sides))

    def _along(self, low: Floats, high: Floats) -> tuple[Ints, Ints]:
        """Return the first square that each interval touches, and the number of squares that it touches."""
        first = np.floor(low / (1000 * self.km)).astype(np.int64)
        last = np.maximum(np.ceil(high / (1000 * self.km)).astype(np.int64) - 1, first)
        return first, last - first + 1

    def _covered(self, square: Ints, low: Floats, high: Floats) -> Floats:
        side = 1000 * self.km
        covered = np.minimum((square + 1) * side, high) - np.maximum(square * side, low)
        return np.where(high > low, covered / np.where(high > low, high - low, 1.0), 1.0)


@dataclass(frozen=True, eq=False)
class GivenZones:
    """The user's own places."""

    name: str
    """Name of the partition."""
    function: Callable[[Floats, Floats], Ints]
    """From x and y of points to the numbers of their places; the area outside is a place, too."""

    def locate(self, x: Floats, y: Floats) -> Ints:
        """Return the number of the place of each point."""
        return self.function(x, y)

    def box_shares(self, sides: Floats) -> Shares:
        """Return the shares of boxes in each place, estimated from a grid of points."""
        return merge_shares(*_by_points(self, np.arange(len(sides)), sides, _BOX_GRID), len(sides))


def _by_points(places: MapZones, box: Ints, sides: Floats, grid: int) -> tuple[Ints, Ints, Floats]:
    """Return boxes, places and shares, estimated from ``grid`` points along each side of a box."""
    steps = (np.arange(grid) + 0.5) / grid
    u, v = (side.ravel() for side in np.meshgrid(steps, steps))
    west, south, east, north = (side[:, None] for side in sides[box].T)
    x, y = (west + u * (east - west)).ravel(), (south + v * (north - south)).ravel()
    return np.repeat(box, len(u)), places.locate(x, y), np.full(len(x), 1 / len(u))


def number_pairs(zone: Ints, place: Ints, many: Ints) -> tuple[tuple[Ints, Ints], Ints]:
    """Return the combinations of zone and place, sorted, and the sum of ``many`` over each."""
    if len(place) == 0:
        return (zone, place), many
    low, span = int(place.min()), int(place.max()) - int(place.min()) + 1
    if span > 2**62 // (int(zone.max()) + 1):  # squares far from each other have numbers far apart
        distinct, rank = np.unique(place, return_inverse=True)
        (zone, rank), many = number_pairs(zone, rank, many)
        return (zone, distinct[rank]), many
    keys = zone * span + (place - low)
    order, ordered = sort_keys(keys, (int(zone.max()) + 1) * span)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    key = ordered[starts]
    return (key // span, key % span + low), np.add.reduceat(many[order], starts)


def merge_shares(zone: Ints, place: Ints, share: Floats, zones: int) -> Shares:
    """Return shares with repetitions added up and zeros left out."""
    known = share > 0
    zone, place, share = zone[known], place[known], share[known]
    order = np.lexsort((place, zone))
    zone, place, share = zone[order], place[order], share[order]
    opens = np.concatenate([[True], (zone[1:] != zone[:-1]) | (place[1:] != place[:-1])])[: len(zone)]
    starts = np.flatnonzero(opens)
    total = np.add.reduceat(share, starts) if len(starts) else share
    return Shares(zone[starts], place[starts], total, zones)


def square_position(place: Ints) -> tuple[Ints, Ints]:
    """Return column and row of squares by their numbers."""
    return place // (2 * _HALF) - _HALF, place % (2 * _HALF) - _HALF


def _number(column: Ints, row: Ints) -> Ints:
    return (column + _HALF) * (2 * _HALF) + row + _HALF


def rank_numbers(*numbers: Ints) -> list[Ints]:
    """Return for each array the ranks of its numbers among those of all arrays."""
    everything = np.concatenate(numbers)
    _, rank = number_groups(everything, int(everything.max(initial=0)) + 1)
    ends = np.cumsum([len(part) for part in numbers])[:-1]
    return [part.astype(np.int64) for part in np.split(rank, ends)]
