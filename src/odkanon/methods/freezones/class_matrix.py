"""The class matrix of a zoning as seen from one axis, with the contribution of each block of that axis."""

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
    """Flows between blocks, sorted by the blocks of one axis."""

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

    Contributors do not add up, so each counts in each flow as a share: 1 / (number of flows of the class that contain
    it). Sums over the current classes are then exact, and sums after a few moves nearly so. Every sheet computes the
    shares anew.
    """

    counting: Counting
    blocks: tuple[Blocks, Blocks]
    flows: Flows
    lines: tuple[Line, Line]
    zones: tuple[Ints, Ints]
    symmetric: bool = False
    """Whether both axes have the same blocks and always the same zones."""

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
        """Return the plan after moves of blocks of one axis, or of both if they have the same zones."""
        if self.symmetric:
            return self.with_zones((zone, zone))
        return self.with_zones((zone, self.zones[1]) if axis == 0 else (self.zones[0], zone))

    def sheets(self, axis: int) -> tuple[Sheet, ...]:
        """Return the class matrix as seen from an axis, and also from the other one if both have the same zones."""
        return (self.sheet(axis), self.sheet(1 - axis)) if self.symmetric else (self.sheet(axis),)

    def sheet(self, axis: int) -> Sheet:
        """Return the class matrix as seen from an axis, with its zones renumbered without gaps."""
        line = self.lines[axis]
        zone, partner = (
            number_groups(zones, int(zones.max()) + 1)[1].astype(np.int64)
            for zones in (self.zones[axis], self.zones[1 - axis])
        )
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
        """Return the share of each flow of a line in the contributors of its class."""
        contributions = self.flows.contributions[measure]
        class_of_flow = np.empty(len(self.flows), dtype=np.int64)
        class_of_flow[line.flow] = zone[line.own] * (int(partner.max()) + 1) + partner[line.other]
        keys = class_of_flow[contributions.flow] * contributions.people + contributions.contributor
        number = number_groups(keys, int(keys.max(initial=0)) + 1)[1]
        share = 1.0 / np.bincount(number)[number]
        return np.bincount(contributions.flow, share, len(self.flows)).astype(np.float64)[line.flow]


@dataclass(eq=False)
class Known:
    """Cached prices of the moves of a sheet, kept between sweeps; NaN if unknown."""

    multiplier: float
    """The price of a suppressed unit for which they are valid."""
    leave: Floats
    """For each block, the change when it leaves its row."""
    keys: Ints
    enter: Floats
    """Keys of blocks and rows, ascending, and the change when the block enters the row."""
    changed: Bools
    """Rows that blocks have left or entered since."""

    @classmethod
    def nothing(cls, sheet: Sheet, multiplier: float) -> Known:
        """Return an empty cache."""
        none, rows = np.empty(0), np.zeros(len(sheet.size), dtype=bool)
        return cls(multiplier, np.full(len(sheet.zone), np.nan), none.astype(np.int64), none, rows)

    def refresh(self, keys: Ints, zone: Ints) -> None:
        """Drop the entries of changed rows, and keep those of the given keys."""
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
    """A class matrix whose rows are zones between which blocks move; the partner's zones are fixed."""

    counting: Counting
    blocks: Blocks
    zone: Ints
    """For each block, its row."""
    width: Floats
    """The leaves of each column."""
    first: Ints
    column: Ints
    counts: Floats
    """The entries ``first[b]`` to ``first[b + 1]`` that block b adds: their columns and counts."""
    matrix: Floats
    """The counts of the classes, of shape (counts, rows, columns)."""
    size: Floats
    """The leaves of each row."""
    published: Floats
    """The published mass of each row."""
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
        """A view of the matrix with all classes on one axis."""
        return self.matrix.reshape(len(self.matrix), -1)

    def totals(self) -> tuple[float, float, float]:
        """Return the sum of G, the published mass, and the spent budget."""
        mass, cost = self.counting.published(self.matrix), self.matrix[self.counting.cost]
        spent = np.where(self.counting.met(self.matrix), 0.0, cost).sum()
        price = (self.published * self.size).sum() + (mass.sum(axis=0) * self.width).sum()
        return float(price), float(self.published.sum()), float(spent)

    def entries(self, blocks: Ints) -> tuple[Ints, Ints]:
        """Return the entries of some blocks in turn, and the number of entries of each block."""
        first, end = self.first[blocks], self.first[blocks + 1]
        return spans(first, end), end - first


Floats = npt.NDArray[np.float64]

_ALMOST = 1e-6
"""A tolerance: the shares of a contributor add up to 1 up to rounding."""


@dataclass(frozen=True, eq=False)
class Counting:
    """The counts of a class: those with a threshold, and the one that the budget is spent in."""

    names: tuple[str, ...]
    thresholds: tuple[tuple[int, float], ...]
    """Numbers of counts, and their thresholds."""
    mass: int
    cost: int
    """Numbers of the count in which G weighs classes, and of that in which the budget is spent."""

    @classmethod
    def of(cls, problem: Problem) -> Counting:
        """Return the counts that a problem needs, each once."""
        rule, scale = problem.rule, problem.od.flows.scale
        cost = problem.budget.column
        names = tuple(dict.fromkeys([problem.measure, cost, *rule.measures]))
        thresholds = tuple((names.index(name), rule.units(name, scale) - _ALMOST) for name in rule.measures)
        return cls(names, thresholds, names.index(problem.measure), names.index(cost))

    def met(self, counts: Floats) -> Bools:
        """Return which classes meet the rule; the first dimension of ``counts`` is that of the names."""
        good: Bools = counts[self.thresholds[0][0]] >= self.thresholds[0][1]
        for which, least in self.thresholds[1:]:
            good = good & (counts[which] >= least)
        return good

    def published(self, counts: Floats) -> Floats:
        """Return the mass of classes that meet the rule, and 0 for others."""
        return np.where(self.met(counts), counts[self.mass], 0.0)

    def price(self, counts: Floats, size: Floats, multiplier: float) -> Floats:
        """Return ``mass * (|o| + |d|)`` of classes that meet the rule, and ``multiplier * cost`` of others."""
        change = self.change(np.zeros_like(counts), counts, size, multiplier)
        return np.asarray(multiplier * counts[self.cost] + change)

    def change(self, old: Floats, new: Floats, size: Floats, multiplier: float) -> Floats:
        """Return the change in price of classes of constant size, without the term ``multiplier * cost``.

        A move takes that term from one row and adds it to another, so that it cancels out.
        """
        if self.mass == self.cost:
            return np.asarray((self.published(new) - self.published(old)) * (size - multiplier))
        before, after = (
            np.where(self.met(counts), counts[self.mass] * size - multiplier * counts[self.cost], 0.0)
            for counts in (old, new)
        )
        return after - before
