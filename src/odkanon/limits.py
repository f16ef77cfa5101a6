"""What no method over the hierarchies can beat: lower bounds of G, of C_AVG and of E.

For an OD pair p and a class (u, w) over it, let ``|u| + |w|`` be its price. Whatever class a method publishes p in
must meet the rule, and by monotonicity so does the whole class (u, w) of the input, even where the method had
suppressed part of it before. Hence p pays at least ::

    g(p) = min { |u| + |w| : (u, w) over p, (u, w) meets the rule }

and G of the release is at least the mass-weighted mean of g over the published pairs. Which pairs are published
is not known, only that the rest fits the budget, so the bound takes the best case, with pairs dropped in fractions
if need be: more than any method can do, hence a valid bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odkanon.arrays import Bools, Ints
from odkanon.budget import Budget, BudgetOf
from odkanon.engine import Matrix, in_memory
from odkanon.errors import InputError
from odkanon.metrics import UtilityMeasure
from odkanon.od import ODMatrix, Summary
from odkanon.reach import Floats, Ladder, Spread, ladder, levels_of, spread
from odkanon.release import Release
from odkanon.rule import Rule

_PROBES = 9
"""Multipliers tried for the homogeneous bound; each of them gives a valid bound, more only sharpen it."""


@dataclass(frozen=True)
class Limit:
    """Lower bounds of what a release over the hierarchies can reach; None where nothing can be published.

    Attributes
    ----------
    g : float or None
        No method over the hierarchies, homogeneous or not, has a smaller G.
    g_homogeneous : float or None
        No pair of cuts has a smaller G. At least ``g``; sharper only where budget and measure both count trips. None
        where it was not asked for.
    c_avg : float or None
        No method over the hierarchies that publishes its classes whole has a smaller C_AVG. (One that suppresses
        single pairs of a class before generalising may come closer to the rule's own threshold.)
    e : float or None
        No method over the hierarchies that publishes its classes whole has a smaller E. None where it was not asked
        for.
    unreachable : int
        Trips of pairs that no class over them can publish; they are lost to every method.
    budget, budget_of, measure
        What the bounds hold for.

    Notes
    -----
    Zones that are not nodes of the hierarchies (free zones, Mondrian's boxes) are outside its scope, and may well
    have a smaller G.
    """

    g: float | None
    g_homogeneous: float | None
    c_avg: float | None
    e: float | None
    unreachable: int
    budget: float
    budget_of: BudgetOf
    measure: UtilityMeasure


def limit(
    od: Matrix,
    rule: Rule,
    *,
    budget: float = 0.10,
    budget_of: BudgetOf = "trips",
    measure: UtilityMeasure = "trips",
    thorough: bool = False,
) -> Limit:
    """Return lower bounds of G, C_AVG and E over all methods on the hierarchies of a matrix.

    Parameters
    ----------
    od : ODMatrix or SqlMatrix
        The whole input, in memory or in a database.
    rule : Rule
        What every published class must meet.
    budget : float
        Share that may be suppressed, in [0, 1).
    budget_of : {"trips", "rows"}
        Share of what.
    measure : {"trips", "weight"}
        What a class is counted in; for ``weight``, the pairs have to fit in memory.
    thorough : bool
        Look for the bounds of G for pairs of cuts and of E too; takes some ten times as long, and the pairs have to fit
        in memory.

    Notes
    -----
    *G.* Let x in {0, 1} say whether a pair is published. With masses m and costs c (trips, or 1 a row),
    ``G >= sum(m g x) / sum(m x)`` and ``sum(c (1 - x)) <= allowance``. The minimum over x in [0, 1] is a lower
    bound; see `least_ratio`. Where cost and mass are the same thing, it drops the pairs of largest g first.

    *C_AVG.* A class of mass M counts as one, which is m / M for each pair in it. With M(p) the smallest class over p
    that meets the rule, there are at most ``sum(m x / M(p))`` classes, and the same argument applies.

    *G of a pair of cuts*: see `homogeneous_bound`. *E*: see `loss_bound`.
    """
    whole = od.summary
    if measure not in whole.measures:
        raise InputError(f"a limit in {measure} needs an input with {measure}")
    rule.check_available(whole.measures)
    allowance = Budget(budget, budget_of).allowance(whole)
    if measure == "weight" or thorough:
        od = in_memory(od)
    prices, sizes = _offers(od, rule, measure, budget_of)
    lost = int(prices.trips[~prices.able].sum())
    spare = allowance - prices.cost[~prices.able].sum()
    if spare < 0 or not prices.mass[prices.able].any():
        return Limit(None, None, None, None, lost, budget, budget_of, measure)
    able, mass = prices.able, prices.mass[prices.able]
    g = least_ratio(mass * prices.value[able], mass, prices.cost[able], spare)
    able, mass = sizes.able, sizes.mass[sizes.able]
    size = least_ratio(mass, mass / sizes.value[able], sizes.cost[able], spare) / _k(whole, rule, measure)
    if not thorough:
        return Limit(g, None, size, None, lost, budget, budget_of, measure)
    pairs = in_memory(od)
    sharper = homogeneous_bound(pairs, rule, allowance, g) if budget_of == measure == "trips" else g
    loss = loss_bound(pairs, rule, Budget(budget, budget_of), measure)
    return Limit(g, max(g, sharper), size, loss, lost, budget, budget_of, measure)


def limit_of(release: Release) -> Limit | None:
    """Return what the best release over the same hierarchies, with the same rule and budget, could reach in trips."""
    if release.matrix is None:
        return None
    budget = release.budget or Budget(0.0, "trips")
    return limit(release.matrix, release.rule, budget=budget.share, budget_of=budget.of)


@dataclass(frozen=True, eq=False)
class _Offers:
    """What pairs, one or many to an entry, could be published for at best; infinite where they cannot be."""

    value: Floats
    mass: Floats
    cost: Floats
    trips: Ints

    @cached_property
    def able(self) -> Bools:
        return np.isfinite(self.value)


def _offers(od: Matrix, rule: Rule, measure: UtilityMeasure, budget_of: BudgetOf) -> tuple[_Offers, _Offers]:
    """Return the least prices of pairs, and the masses of their smallest classes."""
    if not isinstance(od, ODMatrix):
        from odkanon.engine.matrix import SqlMatrix
        from odkanon.engine.reach import spreads

        assert isinstance(od, SqlMatrix)
        if od.is_small:
            return _offers(od.collect(), rule, measure, budget_of)
        found = spreads(od, rule)
        return _counted(found[0], budget_of), _counted(found[1], budget_of)
    flows = od.flows
    price, smallest = _climb(od, rule, measure).descend()
    if measure == "trips":
        return _counted(spread(price, flows.trips), budget_of), _counted(spread(smallest, flows.trips), budget_of)
    mass = getattr(flows, measure).astype(np.float64)
    cost = (flows.pairs if budget_of == "rows" else flows.trips).astype(np.float64)
    return _Offers(price, mass, cost, flows.trips), _Offers(smallest, mass, cost, flows.trips)


def _counted(found: Spread, budget_of: BudgetOf) -> _Offers:
    trips = found.trips * found.pairs
    mass = trips.astype(np.float64)
    return _Offers(found.value, mass, found.pairs.astype(np.float64) if budget_of == "rows" else mass, trips)


def _climb(od: ODMatrix, rule: Rule, measure: UtilityMeasure, *, transposed: bool = False) -> Ladder:
    flows = od.flows.only(frozenset({*rule.measures, measure}))
    origins, destinations = levels_of(od.origins), levels_of(od.destinations)
    if transposed:
        origins, destinations = destinations, origins
        flows, _ = flows.merge(flows.destination, flows.origin)
    return ladder(flows, origins, destinations, lambda up, across, classes: rule.met(classes), measure)


def _k(whole: Summary, rule: Rule, measure: UtilityMeasure) -> float:
    """Return what C_AVG divides by, in the units of the flows."""
    k = rule.k(whole.mean_weight if whole.weight is not None else None)
    return k * float(whole.mean_weight) * whole.scale if measure == "weight" else k


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
        gain = above - value * below
        order = np.argsort(-gain / cost, kind="stable")
        order = order[gain[order] > 0]
        spent = np.cumsum(cost[order])
        dropped = np.clip((allowance - (spent - cost[order])) / cost[order], 0.0, 1.0)
        left = float(below.sum() - (dropped * below[order]).sum())
        after = float(above.sum() - (dropped * above[order]).sum()) / left if left > 0 else value
        if not after < value * (1 - 1e-12):
            return min(after, value)
        value = after


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
        climbed = _climb(od, rule, "trips", transposed=transposed)
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
    share = least_loss(od, rule, measure)
    able = np.isfinite(share)
    cost = (flows.pairs if budget.of == "rows" else flows.trips).astype(np.float64)
    spare = budget.allowance(flows) - cost[~able].sum()
    gain, cost = (mass * np.maximum(share - 1, 0))[able], cost[able]
    order = np.argsort(-gain / cost, kind="stable")
    spent = np.cumsum(cost[order])
    dropped = np.clip((spare - (spent - cost[order])) / cost[order], 0.0, 1.0)
    least = (mass * share)[able].sum() + mass[~able].sum() - (dropped * gain[order]).sum()
    return float(least / mass.sum()) * (1 - 1e-12)


def least_loss(od: ODMatrix, rule: Rule, measure: UtilityMeasure) -> Floats:
    """Return for each pair the least loss of a class over it that meets the rule, over its mass; at most 2."""
    flows = od.flows.only(frozenset({*rule.measures, measure}))
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
            least = np.minimum(least, np.where(rule.met(classes), off / mass, np.inf)[number])
    return least
