"""The arithmetic of lower bounds, each with the reason why it holds; `odkanon.limit` puts them together."""

from __future__ import annotations

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.model.budget import Budget
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.quality.lower_bounds.minimal_cost import Floats, climb, levels_of
from odkanon.quality.utility import UtilityMeasure

_PROBES = 9
"""Multipliers tried for the homogeneous bound; each of them gives a valid bound, more only sharpen it."""


def least_ratio(above: Floats, below: Floats, cost: Floats, allowance: float) -> float:
    """Return the least ``sum(above x) / sum(below x)`` over x in [0, 1] with ``sum(cost (1 - x)) <= allowance``.

    For a trial value t, dropping an entry gains ``above - t below``: a fractional knapsack, solved by dropping the
    best gains for their cost. The ratio that is left is the next t, until it stops falling.

    References
    ----------
    Dinkelbach 1967, "On nonlinear fractional programming".
    """
    value = float(above.sum() / below.sum())
    while True:
        which, share = _best_to_drop(above - value * below, cost, allowance)
        left = float(below.sum() - (share * below[which]).sum())
        after = float(above.sum() - (share * above[which]).sum()) / left if left > 0 else value
        if not after < value * (1 - 1e-12):
            return min(after, value)
        value = after


def _best_to_drop(gain: Floats, cost: Floats, allowance: float) -> tuple[Ints, Floats]:
    """Solve a fractional knapsack: return which entries to drop, the best gains for their cost first, and how much."""
    order = np.argsort(-gain / cost, kind="stable")
    order = order[gain[order] > 0]
    spent = np.cumsum(cost[order])
    return order, np.clip((allowance - (spent - cost[order])) / cost[order], 0.0, 1.0)


def homogeneous_bound(od: ODMatrix, rule: Rule, allowance: int, at_least: float) -> float:
    """Return a lower bound of G over all pairs of cuts, counted in trips with a budget of trips.

    Let the destination zone of every pair be free, and only the origins share one cut. For a multiplier l, the
    least ``G_total + l * suppressed`` of this easier problem, call it L(l), is an exact dynamic programme over the
    origin tree: a node costs the sum of ``m min(|u| + |w|, l)`` with w the smallest zone that meets the rule.
    Every release with total N and suppressed S has ``N + l S >= L(l)``, so with T trips in all and ``S <= A`` ::

        G = N / (T - S) >= (L(l) - l S) / (T - S) >= (L(l) - l A) / (T - A)

    the last because ``L(l) <= l T`` makes the middle term fall in S. Any l gives a bound; L is concave and S its
    slope, so a bisection on S finds a good one, here among those up to 8 times the bound for all methods
    (``at_least``). Both axes are tried.
    """
    best, trips = 0.0, od.trips
    for transposed in (False, True):
        climbed = climb(od, rule, "trips", transposed=transposed)
        # Without a budget nothing may be dropped, however dear the pairs are.
        low, high = 0.0, 8 * at_least if allowance else 2.0 * (len(od.origins.leaves) + len(od.destinations.leaves))
        for _ in range(_PROBES):
            middle = (low + high) / 2
            total, dropped = climbed.least_cost(middle)
            best = max(best, (total - middle * allowance) / (trips - allowance))
            low, high = (middle, high) if dropped > allowance else (low, middle)
    return best * (1 - 1e-12)


def loss_bound(od: ODMatrix, rule: Rule, budget: Budget, measure: UtilityMeasure) -> float:
    """Return a lower bound of E over all methods on the hierarchies that publish classes whole.

    A class of mass M with a loss of ``sum |v~ - v|`` over its leaf pairs loses, for each pair p in it, m / M of that.
    With e(p) the least loss over M of all classes over p that meet the rule, a published pair loses at least
    ``m e(p)``, and a suppressed one its whole m. Which ones are suppressed is not known, only that they fit the budget;
    a fractional knapsack takes the best case.
    """
    flows = od.flows
    mass = getattr(flows, measure).astype(np.float64)
    cost = budget.cost(flows).astype(np.float64)
    loss = least_loss(od, rule, measure)
    able = np.isfinite(loss)
    spare = budget.allowance(flows) - cost[~able].sum()
    gain = mass[able] * (loss[able] - 1)
    which, share = _best_to_drop(gain, cost[able], spare)
    return float((mass.sum() + gain.sum() - (share * gain[which]).sum()) / mass.sum()) * (1 - 1e-12)


def least_loss(od: ODMatrix, rule: Rule, measure: UtilityMeasure) -> Floats:
    """Return for each pair the least loss of a class over it that meets the rule, over its mass; at most 2."""
    flows = od.flows.only(rule.required_measures | {measure})
    value = getattr(flows, measure).astype(np.float64)
    least = np.full(len(flows), np.inf)
    for up in levels_of(od.origins).numbers:
        for across in levels_of(od.destinations).numbers:
            classes, number = flows.merge(
                od.origins.codes[up][flows.origin], od.destinations.codes[across][flows.destination]
            )
            sizes = od.origins.sizes[up][classes.origin] * od.destinations.sizes[across][classes.destination]
            mass = getattr(classes, measure)
            even = mass / sizes
            off = np.bincount(number, np.abs(value - even[number]), len(classes)) + (sizes - classes.pairs) * even
            least = np.minimum(least, np.where(rule.satisfied(classes), off / mass, np.inf)[number])
    return least
