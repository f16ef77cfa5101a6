"""The class matrix of a zoning seen from one axis, with what each block of that axis adds to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Ints, number_groups, spans
from odkanon.methods.freezones.blocks import Blocks
from odkanon.methods.treecut.dp import Problem
from odkanon.model.flows import Flows
from odkanon.model.measures import HEADS

Floats = npt.NDArray[np.float64]

_ALMOST = 1e-6
"""Shares of a head add up to whole ones but for rounding."""


@dataclass(frozen=True, eq=False)
class Counting:
    """Which counts there are of a class, which must reach a threshold, and what they cost.

    Attributes
    ----------
    thresholds : tuple of (int, float)
        Number of a count, and what it must reach.
    mass, cost : int
        Number of the count that G weighs by, and of the one that the budget is spent in.
    """

    names: tuple[str, ...]
    thresholds: tuple[tuple[int, float], ...]
    mass: int
    cost: int

    @classmethod
    def of(cls, problem: Problem) -> Counting:
        """Work out what a problem needs counted, each thing once."""
        rule, scale = problem.rule, problem.od.flows.scale
        cost = problem.budget.column
        names = tuple(dict.fromkeys([problem.measure, cost, *rule.measures]))
        thresholds = tuple((names.index(name), rule.units(name, scale) - _ALMOST) for name in rule.measures)
        return cls(names, thresholds, names.index(problem.measure), names.index(cost))

    def met(self, counts: Floats) -> Bools:
        """Tell which classes meet the rule; the first dimension numbers the counts."""
        good: Bools = counts[self.thresholds[0][0]] >= self.thresholds[0][1]
        for which, least in self.thresholds[1:]:
            good = good & (counts[which] >= least)
        return good

    def price(self, counts: Floats, size: Floats, multiplier: float) -> Floats:
        """Return ``mass * (|o| + |d|)`` where the rule is met and ``multiplier * cost`` where it is not."""
        good = self.met(counts)
        price: Floats
        if self.mass == self.cost:
            price = counts[self.mass] * np.where(good, size, multiplier)
        else:
            price = np.where(good, counts[self.mass] * size, multiplier * counts[self.cost])
        return price


@dataclass(frozen=True, eq=False)
class Plan:
    """The flows between the blocks of both axes, and a zone for each block.

    Heads do not add up, so a person or household counts as a share in each flow: 1 / (how many flows of the class name
    it). Sums over present classes are then exact, and sums after a few moves nearly so; shares are worked out afresh
    for every sheet.

    Attributes
    ----------
    symmetric : bool
        Whether both axes have the same blocks, and the same zones whatever moves.
    """

    counting: Counting
    blocks: tuple[Blocks, Blocks]
    flows: Flows
    zones: tuple[Ints, Ints]
    symmetric: bool = False

    @classmethod
    def of(cls, problem: Problem, blocks: tuple[Blocks, Blocks], zones: tuple[Ints, Ints]) -> Plan:
        """Merge the pairs of a problem into flows between blocks."""
        pairs = problem.flows("origin")
        ends = (blocks[0].block_of_leaf[pairs.origin], blocks[1].block_of_leaf[pairs.destination])
        return cls(Counting.of(problem), blocks, pairs.merge(*ends)[0], zones, problem.counts is not None)

    def with_zones(self, zones: tuple[Ints, Ints]) -> Plan:
        """Return the same flows under other zones."""
        return replace(self, zones=zones)

    def moved(self, axis: int, zone: Ints) -> Plan:
        """Return the plan after the blocks of one axis have moved; of both, where they have the same zones."""
        if self.symmetric:
            return self.with_zones((zone, zone))
        return self.with_zones((zone, self.zones[1]) if axis == 0 else (self.zones[0], zone))

    def sheets(self, axis: int) -> tuple[Sheet, ...]:
        """Return the class matrix as seen from an axis, and from the other one where both move together."""
        return (self.sheet(axis), self.sheet(1 - axis)) if self.symmetric else (self.sheet(axis),)

    def sheet(self, axis: int) -> Sheet:
        """Return the class matrix as seen from an axis; its own zones are renumbered without gaps."""
        ends = (self.flows.origin, self.flows.destination)
        zone, partner = (np.unique(self.zones[at], return_inverse=True)[1] for at in (axis, 1 - axis))
        width = int(partner.max()) + 1
        place = partner[ends[1 - axis]]
        distinct, number = number_groups(ends[axis] * np.int64(width) + place, len(self.blocks[axis]) * width)
        counts = [
            np.bincount(
                number,
                self._shares(name, zone[ends[axis]] * width + place) if name in HEADS else getattr(self.flows, name),
                len(distinct),
            )
            for name in self.counting.names
        ]
        sizes = np.bincount(partner, self.blocks[1 - axis].leaves, width).astype(np.float64)
        block, column = distinct // width, (distinct % width).astype(np.int32)
        first = np.searchsorted(block, np.arange(len(self.blocks[axis]) + 1))
        return Sheet.of(self.counting, self.blocks[axis], zone, sizes, first, column, np.stack(counts).astype(float))

    def _shares(self, measure: str, class_of_flow: Ints) -> Floats:
        visits = self.flows.visits[measure]
        keys = class_of_flow[visits.flow] * visits.people + visits.head
        number = number_groups(keys, int(keys.max(initial=0)) + 1)[1]
        share = 1.0 / np.bincount(number)[number]
        return np.bincount(visits.flow, share, len(self.flows)).astype(np.float64)


@dataclass(eq=False)
class Known:
    """What is remembered of the moves of a sheet from one sweep to the next.

    Attributes
    ----------
    multiplier : float
        The price of a suppressed unit that it holds for.
    published : array of float
        The mass that each row publishes.
    leave : array of float
        For each block, what changes when it leaves its row; NaN where that is not known.
    keys, enter : array
        Blocks and rows as one number, rising, and what changes when the block enters the row.
    changed : array of bool
        Rows that blocks have left or entered since.
    """

    multiplier: float
    published: Floats
    leave: Floats
    keys: Ints
    enter: Floats
    changed: Bools

    def entering(self, keys: Ints) -> Floats:
        """Return what changes for some keys; NaN where that is not known."""
        at = np.searchsorted(self.keys, keys)
        same = np.append(self.keys, -1)[at] == keys
        return np.where(same, np.append(self.enter, np.nan)[at], np.nan)


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
    members : array of int
        Blocks in each row.
    known : Known or None
        What is remembered of its moves.
    """

    counting: Counting
    blocks: Blocks
    zone: Ints
    width: Floats
    first: Ints
    column: Codes
    counts: Floats
    matrix: Floats
    size: Floats
    members: Ints
    known: Known | None = None

    @classmethod
    def of(
        cls, counting: Counting, blocks: Blocks, zone: Ints, width: Floats, first: Ints, column: Codes, counts: Floats
    ) -> Sheet:
        """Add up the matrix."""
        rows = int(zone.max()) + 1
        place = np.repeat(zone, np.diff(first)) * len(width) + column
        matrix = np.stack([np.bincount(place, values, rows * len(width)) for values in counts])
        size = np.bincount(zone, blocks.leaves, rows).astype(np.float64)
        shaped = matrix.reshape(len(counts), rows, len(width)).astype(np.float64)
        return cls(counting, blocks, zone, width, first, column, counts, shaped, size, np.bincount(zone))

    def totals(self) -> tuple[float, float, float]:
        """Return G's sum, the mass published, and the budget spent."""
        good = self.counting.met(self.matrix)
        mass = np.where(good, self.matrix[self.counting.mass], 0.0)
        spent = self.matrix[self.counting.cost][~good].sum()
        return float((mass * (self.size[:, None] + self.width)).sum()), float(mass.sum()), float(spent)

    def entries(self, blocks: Ints) -> tuple[Ints, Ints]:
        """Return the entries of some blocks one after another, and how many each block has."""
        first, end = self.first[blocks], self.first[blocks + 1]
        return spans(first, end), end - first
