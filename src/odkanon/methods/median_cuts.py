"""The cuts of Mondrian: for each of many boxes, the most balanced cut after which both sides meet the rule.

The points of all boxes are stored in one array, box after box, sorted by one coordinate within each. A cut is then a
position, and what a rule counts to the left of each position is a running sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.methods.common import Volume
from odkanon.model.flows import Contributions, Flows
from odkanon.model.measures import ADDITIVE, DISTINCT, exact_masses
from odkanon.model.rule import Rule
from odkanon.zoning.cells import Floats, cell_radius


@dataclass(frozen=True, eq=False)
class Segments:
    """Consecutive segments of an array, one for each box."""

    starts: Ints
    sizes: Ints

    @property
    def number(self) -> Ints:
        """For each position, the number of its segment."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    def take(self, which: Ints) -> tuple[Segments, Ints]:
        """Return some of the segments moved next to each other, and the positions that they had."""
        starts, sizes = self.starts[which], self.sizes[which]
        moved = np.cumsum(sizes) - sizes
        return Segments(moved, sizes), np.repeat(starts - moved, sizes) + np.arange(int(sizes.sum()))

    def running(self, values: Ints) -> tuple[Ints, Ints]:
        """Return for each position the sum from the start of its segment, and for each segment its sum."""
        sums = np.cumsum(values)
        before = np.where(self.starts > 0, sums[self.starts - 1], 0)
        return sums - np.repeat(before, self.sizes), sums[self.starts + self.sizes - 1] - before


@dataclass(frozen=True, eq=False)
class Sums:
    """The masses of each point under a rule, and the thresholds for either side of a cut."""

    volume: Ints
    """The mass that a cut should halve."""
    additive: tuple[tuple[Ints, int], ...]
    """Additive masses, with their thresholds."""
    counts_distinct: tuple[tuple[Contributions, int], ...]
    """The contributors to each point, sorted by point, with the threshold on their number."""

    @classmethod
    def of(cls, flows: Flows, rule: Rule, volume: Volume) -> Sums:
        """Return the masses that a rule counts of each flow."""
        least = {name: rule.units(name, flows.scale) for name in rule.measures}
        additive = tuple((exact_masses(flows, name), least[name]) for name in least if name in ADDITIVE)
        counts_distinct = tuple((flows.contributions[name], least[name]) for name in least if name in DISTINCT)
        return cls(exact_masses(flows, volume), additive, counts_distinct)

    def can_be_cut(self, points: Ints, boxes: Segments) -> Bools:
        """Return which boxes have twice each additive threshold: a quick test that excludes most boxes late on."""
        enough = boxes.sizes > 1
        for mass, threshold in self.additive:
            enough &= np.add.reduceat(mass[points], boxes.starts) >= 2 * threshold
        return enough

    def allowed(self, points: Ints, boxes: Segments) -> Bools:
        """Return for each position whether both sides of a cut after it, within its box, meet the rule."""
        left, right = self.enough(points, boxes)
        return left & right

    def enough(self, points: Ints, boxes: Segments) -> tuple[Bools, Bools]:
        """Return for each position whether the points up to it meet the rule, and whether those after it do."""
        sides = np.ones((2, len(points)), dtype=bool)
        for mass, threshold in self.additive:
            left, total = boxes.running(mass[points])
            sides &= np.stack([left >= threshold, np.repeat(total - threshold, boxes.sizes) >= left])
        for contributions, threshold in self.counts_distinct:
            sides &= np.stack(_contributors_on_sides(contributions, points, boxes)) >= threshold
        return sides[0], sides[1]

    def inner(self, values: Ints) -> tuple[int, int]:
        """Return the lowest value up to which the points meet the rule, and the highest from which on they do.

        * ``values``: a coordinate of each point; all points together meet the rule.
        """
        points = np.argsort(values, kind="stable")
        left, right = self.enough(points, Segments(np.zeros(1, dtype=np.int64), np.array([len(points)])))
        return int(values[points[np.argmax(left)]]), int(values[points[np.count_nonzero(right)]])


def _contributors_on_sides(contributions: Contributions, points: Ints, boxes: Segments) -> tuple[Ints, Ints]:
    """Return for each position the number of contributors up to it and after it, within its box.

    A contributor is on the left from its first point on, and on the right until before its last one.
    """
    first_contribution = np.searchsorted(contributions.flow, np.arange(int(contributions.flow.max(initial=-1)) + 2))
    begin = first_contribution[np.minimum(points, len(first_contribution) - 1)]
    end = first_contribution[np.minimum(points + 1, len(first_contribution) - 1)]
    by_point, rows = Segments(begin, end - begin).take(np.arange(len(points)))
    position = by_point.number
    key = boxes.number[position] * contributions.people + contributions.contributor[rows]
    order = np.argsort(key, kind="stable")
    changes = key[order][1:] != key[order][:-1]
    opens = np.concatenate([[True], changes])[: len(order)]
    closes = np.concatenate([changes, [True]])[-len(order) :] if len(order) else opens
    seen, in_box = boxes.running(np.bincount(position[order[opens]], minlength=len(points)))
    gone, _ = boxes.running(np.bincount(position[order[closes]], minlength=len(points)))
    return seen, np.repeat(in_box, boxes.sizes) - gone


def median_cuts(sums: Sums, points: Ints, values: Ints, boxes: Segments) -> tuple[Ints, Ints]:
    """Return the boxes that can be cut, and for each the last position of its left side.

    * ``points``: the points of all boxes, sorted by value within each.
    * ``values``: the coordinate of each, in squares of the grid.
    * ``boxes``: which points belong together.
    """
    distinct = np.append(values[1:] != values[:-1], False)
    # No rule allows a cut after the last position of a box, which would leave the right side empty.
    possible = np.flatnonzero(distinct & sums.allowed(points, boxes))
    left, total = boxes.running(sums.volume[points])
    box = boxes.number[possible]
    unequal = np.abs(2 * left[possible] - total[box])
    # Sorted by box, imbalance and position: the first entry of each box is its cut.
    order = np.lexsort((unequal, box))
    opens = np.concatenate([[True], box[order][1:] != box[order][:-1]])[: len(order)]
    return box[order[opens]], possible[order[opens]]


_CORNER = np.array([-180.0, -90.0])
_MARGIN = 16
"""The frame ends at multiples of this many grid lines, or at coarser ones."""
_WIDER = [_MARGIN << more for more in range(1, 40)]


@dataclass(frozen=True)
class Grid:
    """Lines of longitude and latitude at multiples of a power of two degrees, counted from -180 and -90."""

    step: float
    """Degrees from line to line: exact in binary, so that borders are the same numbers everywhere."""

    @classmethod
    def of_resolution(cls, resolution: int) -> Grid:
        """Return the finest grid whose step is at least twice as wide as a cell: no square has a single cell."""
        return cls(2.0 ** ceil(log2(4 * cell_radius(resolution))))

    def squares(self, lon: Floats, lat: Floats) -> Ints:
        """Return the numbers of the lines to the left of and below each point, shape (2, points)."""
        lines: Ints = np.floor((np.stack([lon, lat]) - _CORNER[:, None]) / self.step).astype(np.int64)
        return lines

    def frame(self, squares: Ints, low: Ints, high: Ints) -> Ints:
        """Return the first and the last line around all squares, on a much coarser grid: shape (2, 2).

        The frame encloses the squares between ``low`` and ``high``. A few trips beyond them move it in large steps:
        the farther out they are, the coarser are the lines at which it may end, and the less it discloses.

        * ``squares``: all squares, of shape (2, points).
        * ``low``, ``high``: for each coordinate, the square up to which the trips meet the rule, and the square from
          which on they do, of shape (2,).
        """
        first, last = squares.min(axis=1).tolist(), squares.max(axis=1).tolist()
        below = [max(_below(near, far), 0) for near, far in zip(low.tolist(), first, strict=True)]
        above = [-_below(-1 - near, -1 - far) for near, far in zip(high.tolist(), last, strict=True)]
        return np.array([below, above], dtype=np.int64)

    def degrees(self, lines: Ints) -> Floats:
        """Return the coordinates of lines of longitude and latitude (the last axis), within the limits of the world."""
        places: Floats = np.minimum(lines * self.step + _CORNER, -_CORNER)
        return places


def _below(near: int, far: int) -> int:
    """Return the next line below a square; if ``far`` lies beyond that line, one of a coarser grid below both."""
    line = near // _MARGIN * _MARGIN
    return line if line <= far else next(line for wide in _WIDER if (line := (near // wide - 1) * wide) <= far)


def simplest_line(left: Ints, right: Ints) -> Ints:
    """Return the line after the squares ``left`` and before the squares ``right`` that belongs to the coarsest grid.

    All lines between two neighbouring values divide the points alike; the one with most trailing zeros in binary
    discloses least about these values.
    """
    _, bits = np.frexp((left ^ right).astype(np.float64))
    line: Ints = (right >> (bits - 1)) << (bits - 1)
    return line
