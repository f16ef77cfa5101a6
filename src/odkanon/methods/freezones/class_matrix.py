"""The class matrix of a zoning seen from one axis, with the contribution of each block of that axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Ints, number_groups, sort_keys, spans
from odkanon.methods.freezones.blocks import Blocks
from odkanon.methods.treecut.dp import Problem
from odkanon.model.flows import Flows
from odkanon.model.measures import DISTINCT, exact_masses


@dataclass(frozen=True, eq=False)
class Line:
    """Flows between blocks in the order of the blocks of one axis."""

    flow: Ints
    """The number of the flow."""
    own: Ints
    other: Ints
    """Its block on the axis, and on the other one."""
    counts: dict[str, Ints]
    """Its additive counts."""

    @classmethod
    def of(cls, flows: Flows, axis: int, names: tuple[str, ...]) -> Line:
        """Sort flows by the blocks of an axis."""
        ends = [each.astype(np.int64) for each in (flows.origin, flows.destination)]
        flow = np.lexsort((ends[1 - axis], ends[axis]))
        counts = {name: exact_masses(flows, name)[flow] for name in names if name not in DISTINCT}
        return cls(flow, ends[axis][flow], ends[1 - axis][flow], counts)


@dataclass(frozen=True, eq=False)
class ZonePlan:
    """The flows between the blocks of both axes, and a zone for each block.

    Contributors do not add up, so each counts as a share in each flow: 1 / (number of flows of the class that contain
    it). Sums over present classes are then exact, and sums after a few moves nearly so; shares are computed again for
    every sheet.
    """

    counting: Counting
    blocks: tuple[Blocks, Blocks]
    flows: Flows
    lines: tuple[Line, Line]
    zones: tuple[Ints, Ints]
    symmetric: bool = False
    """Whether both axes have the same blocks, and the same zones whatever moves."""

    @classmethod
    def of(cls, problem: Problem, blocks: tuple[Blocks, Blocks], zones: tuple[Ints, Ints]) -> ZonePlan:
        """Merge the pairs of a problem into flows between blocks."""
        pairs = problem.flows("origin")
        ends = (blocks[0].block_of_leaf[pairs.origin], blocks[1].block_of_leaf[pairs.destination])
        counting, flows = Counting.of(problem), pairs.merge(*ends)[0]
        lines = Line.of(flows, 0, counting.names), Line.of(flows, 1, counting.names)
        return cls(counting, blocks, flows, lines, zones, problem.counts is not None)

    def with_zones(self, zones: tuple[Ints, Ints]) -> ZonePlan:
        """Return the same flows under other zones."""
        return replace(self, zones=zones)

    def moved(self, axis: int, zone: Ints) -> ZonePlan:
        """Return the plan after the blocks of one axis have moved; of both, where they have the same zones."""
        if self.symmetric:
            return self.with_zones((zone, zone))
        return self.with_zones((zone, self.zones[1]) if axis == 0 else (self.zones[0], zone))

    def sheets(self, axis: int) -> tuple[Sheet, ...]:
        """Return the class matrix as seen from an axis, and from the other one where both move together."""
        return (self.sheet(axis), self.sheet(1 - axis)) if self.symmetric else (self.sheet(axis),)

    def sheet(self, axis: int) -> Sheet:
        """Return the class matrix as seen from an axis; its own zones are renumbered without gaps."""
        line = self.lines[axis]
        zone, partner = (_renumbered(self.zones[at]) for at in (axis, 1 - axis))
        width = int(partner.max()) + 1
        order, keys = sort_keys(line.own * width + partner[line.other], len(self.blocks[axis]) * width)
        opens = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        block = keys[opens] // width
        column = keys[opens] - block * width
        counts = np.empty((len(self.counting.names), len(opens)))
        for row, name in zip(counts, self.counting.names, strict=True):
            values = self._shares(name, line, zone, partner) if name in DISTINCT else line.counts[name]
            row[:] = np.add.reduceat(values[order], opens)
        sizes = np.bincount(partner, self.blocks[1 - axis].leaves, width).astype(np.float64)
        first = np.append(0, np.cumsum(np.bincount(block, minlength=len(self.blocks[axis]))))
        return Sheet.of(self.counting, self.blocks[axis], zone, sizes, first, column, counts)

    def _shares(self, measure: str, line: Line, zone: Ints, partner: Ints) -> Floats:
        """Return the share that each flow of a line has in the contributors of its class."""
        contributions = self.flows.contributions[measure]
        class_of_flow = np.empty(len(self.flows), dtype=np.int64)
        class_of_flow[line.flow] = zone[line.own] * (int(partner.max()) + 1) + partner[line.other]
        keys = class_of_flow[contributions.flow] * contributions.people + contributions.contributor
        number = number_groups(keys, int(keys.max(initial=0)) + 1)[1]
        share = 1.0 / np.bincount(number)[number]
        return np.bincount(contributions.flow, share, len(self.flows)).astype(np.float64)[line.flow]


def _renumbered(zones: Ints) -> Ints:
    """Return the same zones, numbered without gaps."""
    return number_groups(zones, int(zones.max()) + 1)[1].astype(np.int64)


@dataclass(eq=False)
class Known:
    """Cached prices of the moves of a sheet, kept from one sweep to the next; NaN where unknown."""

    multiplier: float
    """The price of a suppressed unit that it holds for."""
    leave: Floats
    """For each block, the change when it leaves its row."""
    keys: Ints
    enter: Floats
    """Blocks and rows as one number, rising, and what changes when the block enters the row."""
    changed: Bools
    """Rows that blocks have left or entered since."""

    @classmethod
    def nothing(cls, sheet: Sheet, multiplier: float) -> Known:
        """Return an empty cache for the moves of a sheet."""
        none = np.empty(0)
        rows = np.zeros(len(sheet.size), dtype=bool)
        return cls(multiplier, np.full(len(sheet.zone), np.nan), none.astype(np.int64), none, rows)

    def refresh(self, keys: Ints, zone: Ints) -> None:
        """Drop the entries of changed rows, and select other blocks and rows."""
        self.leave[self.changed[zone]] = np.nan
        stays = np.flatnonzero(~np.isnan(self.enter))
        stays = stays[~self.changed[self.keys[stays] % len(self.changed)]]
        enter = np.full(len(keys), np.nan)
        if len(stays) and len(keys):
            at = np.minimum(np.searchsorted(keys, self.keys[stays]), len(keys) - 1)
            same = keys[at] == self.keys[stays]
            enter[at[same]] = self.enter[stays[same]]
        self.keys, self.enter = keys, enter
        self.changed[:] = False


@dataclass(eq=False)
class Sheet:
    """A class matrix whose rows are zones that blocks move between; the partner's zones stand still.

    Attributes
    ----------
    zone : array of int
        For each block, its row.
    first, column, counts : arrays
        What each block adds: entries ``first[b]`` to ``first[b + 1]`` with their column and counts.
    matrix : array, shape (counts, rows, columns)
        The counts of the classes.
    size, width : array of float
        Leaves of the rows and of the columns.
    published : array of float
        The mass that each row publishes.
    known : Known or None
        What is remembered of its moves.
    """

    counting: Counting
    blocks: Blocks
    zone: Ints
    width: Floats
    first: Ints
    column: Ints
    counts: Floats
    matrix: Floats
    size: Floats
    published: Floats
    known: Known | None = None

    @classmethod
    def of(
        cls, counting: Counting, blocks: Blocks, zone: Ints, width: Floats, first: Ints, column: Ints, counts: Floats
    ) -> Sheet:
        """Sum the matrix."""
        rows = int(zone.max()) + 1
        place = np.repeat(zone, np.diff(first)) * len(width) + column
        matrix = np.stack([np.bincount(place, values, rows * len(width)) for values in counts])
        size = np.bincount(zone, blocks.leaves, rows).astype(np.float64)
        shaped = matrix.reshape(len(counts), rows, len(width)).astype(np.float64)
        published = counting.published(shaped).sum(axis=1)
        return cls(counting, blocks, zone, width, first, column, counts, shaped, size, published)

    @property
    def flat(self) -> Floats:
        """The matrix with its rows one after another; the same numbers, not a copy."""
        return self.matrix.reshape(len(self.matrix), -1)

    def totals(self) -> tuple[float, float, float]:
        """Return G's sum, the mass published, and the budget spent."""
        mass, cost = self.counting.published(self.matrix), self.matrix[self.counting.cost]
        spent = np.where(self.counting.met(self.matrix), 0.0, cost).sum()
        price = (self.published * self.size).sum() + (mass.sum(axis=0) * self.width).sum()
        return float(price), float(self.published.sum()), float(spent)

    def entries(self, blocks: Ints) -> tuple[Ints, Ints]:
        """Return the entries of some blocks one after another, and how many each block has."""
        first, end = self.first[blocks], self.first[blocks + 1]
        return spans(first, end), end - first


Floats = npt.NDArray[np.float64]

_ALMOST = 1e-6
"""The shares of a contributor add up to 1, up to rounding."""


@dataclass(frozen=True, eq=False)
class Counting:
    """The counts of a class: which must reach a threshold, and which one the budget is spent in."""

    names: tuple[str, ...]
    thresholds: tuple[tuple[int, float], ...]
    """Number of a count, and its threshold."""
    mass: int
    cost: int
    """Number of the count that G weighs by, and of the one that the budget is spent in."""

    @classmethod
    def of(cls, problem: Problem) -> Counting:
        """Return the counts that a problem needs, each once."""
        rule, scale = problem.rule, problem.od.flows.scale
        cost = problem.budget.column
        names = tuple(dict.fromkeys([problem.measure, cost, *rule.measures]))
        thresholds = tuple((names.index(name), rule.units(name, scale) - _ALMOST) for name in rule.measures)
        return cls(names, thresholds, names.index(problem.measure), names.index(cost))

    def met(self, counts: Floats) -> Bools:
        """Return which classes meet the rule; the first dimension numbers the counts."""
        good: Bools = counts[self.thresholds[0][0]] >= self.thresholds[0][1]
        for which, least in self.thresholds[1:]:
            good = good & (counts[which] >= least)
        return good

    def published(self, counts: Floats) -> Floats:
        """Return the mass of classes that meet the rule, and 0 for others."""
        return np.where(self.met(counts), counts[self.mass], 0.0)

    def price(self, counts: Floats, size: Floats, multiplier: float) -> Floats:
        """Return ``mass * (|o| + |d|)`` where the rule is met and ``multiplier * cost`` where it is not."""
        price: Floats = multiplier * counts[self.cost] + self.change(np.zeros_like(counts), counts, size, multiplier)
        return price

    def change(self, old: Floats, new: Floats, size: Floats, multiplier: float) -> Floats:
        """Return how the price of classes changes that keep their size, but for ``multiplier`` times what they cost.

        What one row loses of that another gains, so moves need not count it.
        """
        change: Floats
        if self.mass == self.cost:
            change = (self.published(new) - self.published(old)) * (size - multiplier)
            return change
        before, after = (
            np.where(self.met(counts), counts[self.mass] * size - multiplier * counts[self.cost], 0.0)
            for counts in (old, new)
        )
        change = after - before
        return change
