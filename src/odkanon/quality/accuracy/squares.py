"""Places to compare flows on, which no method had a hand in: squares of a map, or zones of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Ints, number_groups, sort_keys
from odkanon.zoning.cells import Floats

_HALF = 1 << 25
"""Squares to each side of the centre that have a number of their own; the globe has 40,075 km."""
_BOX_GRID = 8
_MOST_SQUARES, _LARGE_BOX_GRID = 4096, 64
"""Boxes that touch more squares are counted in a grid of points; there are some that span an ocean."""


@dataclass(frozen=True, eq=False)
class Shares:
    """What share of each zone lies in each place, sorted by zone and then by place.

    Attributes
    ----------
    zone, place : array of int
        Numbers of both, without repetition.
    share : array of float
        Above 0; the shares of a zone add up to 1, or it lies nowhere.
    zones : int
        How many zones there are.
    """

    zone: Ints
    place: Ints
    share: Floats
    zones: int


class Places(Protocol):
    """A way to divide a map into numbered places."""

    @property
    def name(self) -> str:
        """What to call them."""
        ...

    def of(self, x: Floats, y: Floats) -> Ints:
        """Return the number of the place in which each point lies."""
        ...

    def of_boxes(self, sides: Floats) -> Shares:
        """Return what share of boxes (west, south, east, north) lies in each place."""
        ...


@dataclass(frozen=True)
class Squares:
    """Squares of a map; one corner is at its centre, so that those of 1 km lie inside those of 2 km.

    Attributes
    ----------
    km : float
        Length of a side.
    """

    km: float

    @property
    def name(self) -> str:
        """What to call them."""
        return f"{self.km:g} km"

    def of(self, x: Floats, y: Floats) -> Ints:
        """Return the number of the square in which each point lies."""
        column, row = (np.floor(side / (1000 * self.km)).astype(np.int64) for side in (x, y))
        return _number(column, row)

    def middle(self, place: Ints) -> tuple[Floats, Floats]:
        """Return the middle of squares by their numbers, in metres."""
        x, y = ((side + 0.5) * np.float64(1000 * self.km) for side in corner(place))
        return x, y

    def of_boxes(self, sides: Floats) -> Shares:
        """Return what share of boxes lies in each square: the product of those along both sides."""
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
        return collected(box, place, share, len(sides))

    def _along(self, low: Floats, high: Floats) -> tuple[Ints, Ints]:
        """Return the first square that each interval touches, and how many it touches."""
        first = np.floor(low / (1000 * self.km)).astype(np.int64)
        last = np.maximum(np.ceil(high / (1000 * self.km)).astype(np.int64) - 1, first)
        return first, last - first + 1

    def _covered(self, square: Ints, low: Floats, high: Floats) -> Floats:
        side = 1000 * self.km
        covered = np.minimum((square + 1) * side, high) - np.maximum(square * side, low)
        return np.where(high > low, covered / np.where(high > low, high - low, 1.0), 1.0)


@dataclass(frozen=True, eq=False)
class GivenPlaces:
    """Places of the user's own.

    Attributes
    ----------
    name : str
        What to call them.
    locate : callable
        From x and y of points to the numbers of their places; what lies outside is a place, too.
    """

    name: str
    locate: Callable[[Floats, Floats], Ints]

    def of(self, x: Floats, y: Floats) -> Ints:
        """Return the number of the place in which each point lies."""
        return self.locate(x, y)

    def of_boxes(self, sides: Floats) -> Shares:
        """Return what share of boxes lies in each place, by a grid of points."""
        return collected(*_by_points(self, np.arange(len(sides)), sides, _BOX_GRID), len(sides))


def _by_points(places: Places, box: Ints, sides: Floats, grid: int) -> tuple[Ints, Ints, Floats]:
    """Return some boxes, places and shares, each box counted in a grid of so many points along each side."""
    steps = (np.arange(grid) + 0.5) / grid
    u, v = (side.ravel() for side in np.meshgrid(steps, steps))
    west, south, east, north = (side[:, None] for side in sides[box].T)
    x, y = (west + u * (east - west)).ravel(), (south + v * (north - south)).ravel()
    return np.repeat(box, len(u)), places.of(x, y), np.full(len(x), 1 / len(u))


def number_pairs(zone: Ints, place: Ints, many: Ints) -> tuple[tuple[Ints, Ints], Ints]:
    """Return each zone and place that occur together, sorted, and how often, where each occurrence counts ``many``."""
    if len(place) == 0:
        return (zone, place), many
    low, span = int(place.min()), int(place.max()) - int(place.min()) + 1
    if span > 2**62 // (int(zone.max()) + 1):  # squares far apart have numbers far apart
        distinct, rank = np.unique(place, return_inverse=True)
        (zone, rank), many = number_pairs(zone, rank, many)
        return (zone, distinct[rank]), many
    keys = zone * span + (place - low)
    order, ordered = sort_keys(keys, (int(zone.max()) + 1) * span)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    key = ordered[starts]
    return (key // span, key % span + low), np.add.reduceat(many[order], starts)


def collected(zone: Ints, place: Ints, share: Floats, zones: int) -> Shares:
    """Return shares without repetition and without those of 0."""
    known = share > 0
    zone, place, share = zone[known], place[known], share[known]
    order = np.lexsort((place, zone))
    zone, place, share = zone[order], place[order], share[order]
    opens = np.concatenate([[True], (zone[1:] != zone[:-1]) | (place[1:] != place[:-1])])[: len(zone)]
    starts = np.flatnonzero(opens)
    total = np.add.reduceat(share, starts) if len(starts) else share
    return Shares(zone[starts], place[starts], total, zones)


def corner(place: Ints) -> tuple[Ints, Ints]:
    """Return column and row of squares by their numbers."""
    return place // (2 * _HALF) - _HALF, place % (2 * _HALF) - _HALF


def _number(column: Ints, row: Ints) -> Ints:
    return (column + _HALF) * (2 * _HALF) + row + _HALF


def compact(*numbers: Ints) -> list[Ints]:
    """Return for each array the ranks of its numbers among all that occur."""
    everything = np.concatenate(numbers)
    _, rank = number_groups(everything, int(everything.max(initial=0)) + 1)
    ends = np.cumsum([len(part) for part in numbers])[:-1]
    return [part.astype(np.int64) for part in np.split(rank, ends)]
