"""Intervals that contain a flow with a probability of four fifths."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc

from odkanon.core.arrays import Bools, Ints
from odkanon.zoning.cells import Floats

COVERAGE = 0.8
PER_TRIP, PER_ROW, PER_SQUARE = 1.6, 1.0, 0.007
"""Variance per estimated trip, per squared row that is divided and per squared estimate (see `variance`). Fitted to one
survey and checked on others; see docs/accuracy.md."""
_TAILS = np.linspace(0.0, 1 - COVERAGE, 9)
_MOST = 1 << 40


def variance(mean: Floats, divided: Floats) -> Floats:
    """Return the variance of a flow beyond what is sure.

    ``1.6 u + sum x^2 + 0.007 u^2`` with the estimate u beyond what is sure, and ``x = n p (1 - p)`` for each row of n
    trips of which an estimated share p belongs to the flow.

    Parameters
    ----------
    mean : array of float
        Estimates beyond what is sure.
    divided : array of float
        The sum of squares of x.
    """
    return PER_TRIP * mean + PER_ROW * divided + PER_SQUARE * mean * mean


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
    best_high = _quantile(size, chance, COVERAGE, best_low)
    # Where even the largest tail ends at 0, every interval begins there.
    some = np.flatnonzero(_mass_below(np.ones(len(mean), dtype=np.int64), size, chance) < float(_TAILS[-1]))
    low, high = best_low[some], best_high[some]
    for tail in _TAILS[1:].tolist():
        before, low = low, _quantile(size[some], chance[some], tail, low)
        moved = np.flatnonzero(low > before)
        at = some[moved]
        wanted = _mass_below(low[moved], size[at], chance[at]) + COVERAGE
        high[moved] = _quantile(size[at], chance[at], wanted, high[moved])
        shorter = moved[high[moved] - low[moved] < best_high[at] - best_low[at]]
        best_low[some[shorter]], best_high[some[shorter]] = low[shorter], high[shorter]
    return best_low, best_high


def _mass_below(count: Ints, size: Floats, chance: Floats) -> Floats:
    """Return the probability of fewer than a count."""
    found: Floats = np.where(count > 0, betainc(size, np.maximum(count, 1), chance), 0.0)
    return found


def _quantile(size: Floats, chance: Floats, wanted: Floats | float, least: Ints) -> Ints:
    """Return the smallest count, from `least` upward, that is not exceeded with a probability of at least `wanted`."""
    low, high, step = least - 1, least.copy(), 1
    wanted = np.minimum(np.round(np.broadcast_to(wanted, size.shape), 9), 1 - 1e-9)

    def are_short(which: Ints, count: Ints) -> Bools:
        found: Bools = betainc(size[which], count + 1.0, chance[which]) < wanted[which]
        return found

    open_ = np.arange(len(size))
    while len(open_):
        open_ = open_[are_short(open_, high[open_]) & (high[open_] < _MOST)]
        low[open_], high[open_], step = high[open_], high[open_] + step, 2 * step
    open_ = np.flatnonzero(high - low > 1)
    while len(open_):
        middle = (low[open_] + high[open_]) // 2
        short = are_short(open_, middle)
        low[open_], high[open_] = np.where(short, middle, low[open_]), np.where(short, high[open_], middle)
        open_ = open_[high[open_] - low[open_] > 1]
    return high
