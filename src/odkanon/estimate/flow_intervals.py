"""Intervals that contain a flow with a probability of four fifths."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc

from odkanon.core.arrays import Ints
from odkanon.zoning.cells import Floats

COVERAGE = 0.8
PER_TRIP, PER_ROW, PER_SQUARE, WITHIN = 1.6, 0.4, 0.03, 5.0
"""Variance per estimated trip, per squared row that is divided and per squared estimate (see `variance`), and the
factor for rows divided within one area. Fitted to one survey and checked on others; see docs/accuracy.md."""
_TAILS = np.linspace(0.0, 1 - COVERAGE, 9)
_STEPS = 40
_MOST = 1 << 40


def variance(mean: Floats, divided: Floats, within: Floats | float = 1.0) -> Floats:
    """Return the variance of a flow beyond what is sure.

    ``1.6 u + 0.4 sum x^2 + 0.03 u^2`` with the estimate u beyond what is sure, and ``x = n p (1 - p)`` for each row of
    n trips of which an estimated share p belongs to the flow.

    Parameters
    ----------
    mean : array of float
        Estimates beyond what is sure.
    divided : array of float
        The sum of squares of x.
    within : array of float
        5 for flows within one area, 1 for others.
    """
    return PER_TRIP * mean + PER_ROW * within * divided + PER_SQUARE * mean * mean


def shortest_interval(mean: Floats, spread: Floats) -> tuple[Ints, Ints]:
    """Return the shortest intervals that contain negative binomial counts with a probability of at least 0.8.

    Parameters
    ----------
    mean, spread : array of float
        Mean and variance; a variance below the mean counts as slightly more than it.

    Examples
    --------
    >>> low, high = shortest_interval(np.array([0.1, 20.0]), np.array([0.2, 32.0]))
    >>> low.tolist(), high.tolist()
    ([0, 11], [0, 25])
    """
    mean = np.maximum(mean, 1e-9)
    spread = np.maximum(spread, 1.001 * mean)
    size, chance = mean * mean / (spread - mean), mean / spread
    best_low = np.zeros(len(mean), dtype=np.int64)
    best_high = _quantile(size, chance, COVERAGE)
    for tail in _TAILS[1:].tolist():
        low = _quantile(size, chance, tail)
        high = _quantile(size, chance, _mass_below(low, size, chance) + COVERAGE)
        shorter = high - low < best_high - best_low
        best_low, best_high = np.where(shorter, low, best_low), np.where(shorter, high, best_high)
    return best_low, best_high


def _mass_below(count: Ints, size: Floats, chance: Floats) -> Floats:
    """Return the probability of fewer than a count."""
    found: Floats = np.where(count > 0, betainc(size, np.maximum(count, 1), chance), 0.0)
    return found


def _quantile(size: Floats, chance: Floats, wanted: Floats | float) -> Ints:
    """Return the smallest count that is not exceeded with a probability of at least `wanted`."""
    low = np.full(len(size), -1, dtype=np.int64)
    high = np.full(len(size), 1, dtype=np.int64)
    wanted = np.minimum(np.round(np.broadcast_to(wanted, size.shape), 9), 1 - 1e-9)
    for _ in range(_STEPS):
        short = (betainc(size, high + 1.0, chance) < wanted) & (high < _MOST)
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = betainc(size, middle + 1.0, chance) >= wanted
        low, high = np.where(enough, low, np.maximum(middle, low)), np.where(enough, middle, high)
    return np.maximum(high, 0)
