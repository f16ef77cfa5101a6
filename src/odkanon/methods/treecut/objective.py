"""What a search over zonings tries to make small, and within which bounds."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from odkanon.methods.treecut.dp import CLASSES, LOSS, PRICE, PUBLISHED, SPENT, Floats

Objective = Literal["g", "e", "c_avg"]

ROUNDING = 1e-12
"""Relative difference below which two values count as equal."""


@dataclass(frozen=True)
class Goal:
    """An objective over the totals of `odkanon.methods.treecut.dp.COLUMNS`, with the constraints it is under.

    E and C_AVG alone have degenerate answers: a single origin zone lets the destinations be so fine that all classes
    sit right above the threshold, and tells nothing. They are therefore minimised among releases whose G does not
    exceed a ceiling.

    Attributes
    ----------
    objective : {"g", "e", "c_avg"}
        What to minimise.
    allowance : int
        What may be suppressed at most.
    ceiling : float
        What G may be at most.
    """

    objective: Objective
    allowance: int
    ceiling: float = inf

    def values(self, totals: Floats) -> Floats:
        """Return the objective of each column of totals; infinite where a constraint is broken."""
        published = totals[PUBLISHED]
        broken = (published <= 0) | (totals[SPENT] > self.allowance)
        if self.ceiling < inf:
            broken |= totals[PRICE] > self.ceiling * published * (1 + ROUNDING)
        return np.where(broken, inf, self.raw(totals))

    def value(self, totals: Floats) -> float:
        """Return the objective; infinite where a constraint is broken or nothing is published."""
        return float(self.values(totals))

    def raw(self, totals: Floats) -> Floats:
        """Return the objective, whatever the constraints."""
        if self.objective == "e":
            return np.asarray(totals[LOSS])
        above, below = (PRICE, PUBLISHED) if self.objective == "g" else (PUBLISHED, CLASSES)
        return np.asarray(totals[above] / np.maximum(totals[below], ROUNDING))

    def weights(self, level: float, budget_price: float, ceiling_price: float = 0.0) -> Floats:
        """Return the linear stand-in for the objective around a value, with prices on the constraints.

        A ratio a / b is below ``level`` exactly where ``a - level * b`` is below zero.
        """
        weights = np.zeros(5)
        if self.objective == "g":
            weights[[PRICE, PUBLISHED]] = 1.0, -level
        elif self.objective == "e":
            weights[LOSS] = 1.0
        else:
            weights[[PUBLISHED, CLASSES]] = 1.0, -level
        weights[SPENT] += budget_price
        if ceiling_price:
            weights[[PRICE, PUBLISHED]] += ceiling_price, -ceiling_price * self.ceiling
        return weights

    @property
    def ceiling_prices(self) -> tuple[float, ...]:
        """Prices to try on the ceiling, in units of mass for a unit of G; none where there is no ceiling."""
        if self.ceiling == inf:
            return (0.0,)
        return tuple(price / self.ceiling for price in (0.0, 0.1, 1.0))
