"""What is counted of the classes of free zones, what the counts must reach, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools
from odkanon.methods.treecut.dp import Problem

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
