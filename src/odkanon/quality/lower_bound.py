"""Lower bounds of G, C_AVG and E over all methods on the hierarchies.

For an OD pair p and a class (u, w) that contains it, let ``|u| + |w|`` be its cost. The class in which a method
publishes p must meet the rule and so, by monotonicity, must the whole class (u, w) of the input, even if the method has
suppressed part of it before. Hence p costs at least ::

    g(p) = min { |u| + |w| : (u, w) contains p, (u, w) meets the rule }

and G of the release is at least the mass-weighted mean of g over the published pairs. Which pairs are published is
unknown, except that the others fit the budget, so the bound takes the best case and may suppress fractions of pairs,
which no method can do: the bound remains valid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.core.parsing import check_result
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.errors import InputError
from odkanon.model.measures import MEASURES, exact_masses
from odkanon.model.od import Matrix, ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, BudgetOf, cost_column
from odkanon.model.rule import Rule
from odkanon.quality.minimal_cost import CostDistribution, Floats, climb_matrix, distinct_levels, minimal_costs
from odkanon.quality.stored_costs import stored_minimal_costs
from odkanon.quality.utility import UtilityMeasure

_PROBES = 9  # multipliers tried for the homogeneous bound; each gives a valid bound, more only sharpen it


@dataclass(frozen=True)
class LowerBound:
    """Lower bounds for releases on the hierarchies; None if nothing can be published.

    Notes
    -----
    Zones that are not nodes of the hierarchies (free zones, Mondrian's boxes) are out of scope, and may have a smaller
    G.
    """

    g: float | None
    """No method on the hierarchies, homogeneous or not, has a smaller G."""
    g_homogeneous: float | None
    """No pair of cuts has a smaller G. At least ``g``; sharper only if budget and measure both count trips. None unless
    requested."""
    c_avg: float | None
    """No method on the hierarchies that publishes whole classes has a smaller C_AVG. (One that suppresses single pairs
    of a class before generalisation may come closer to the threshold.)"""
    e: float | None
    """No method on the hierarchies that publishes whole classes has a smaller E. None unless requested."""
    unreachable: int
    """Trips of pairs that no class can publish; every method loses them."""
    budget: float
    budget_of: BudgetOf
    measure: UtilityMeasure
    """The settings of the bounds."""


def lower_bound(
    od: Matrix,
    rule: Rule,
    *,
    budget: float = 0.10,
    budget_of: BudgetOf = "trips",
    measure: UtilityMeasure = "trips",
    thorough: bool = False,
) -> LowerBound:
    """Return lower bounds of G, C_AVG and E over all methods on the hierarchies of a matrix.

    Parameters
    ----------
    od : Matrix
        The whole input, in memory or in a database.
    rule : Rule
        The rule of every published class.
    budget : float
        Share that may be suppressed, in [0, 1).
    budget_of : {"trips", "rows"}
        The unit of the budget: trips or OD pairs.
    measure : {"trips", "weight"}
        The measure of masses; with ``weight``, the pairs have to fit in memory.
    thorough : bool
        Also compute the bounds of G for pairs of cuts and of E; takes some ten times as long, and the pairs have to fit
        in memory.

    Notes
    -----
    *G.* Let x in {0, 1} indicate published pairs. With masses m and costs c (trips, or 1 per row),
    ``G >= sum(m g x) / sum(m x)`` and ``sum(c (1 - x)) <= allowance``. The minimum over x in [0, 1] is a lower bound;
    see `least_ratio`. If cost and mass are the same, it drops the pairs of largest g first.

    *C_AVG.* A class of mass M counts as one, which is m / M for each of its pairs. With M(p) the smallest class that
    contains p and meets the rule, there are at most ``sum(m x / M(p))`` classes, and the same argument applies.

    *G of a pair of cuts*: see `homogeneous_bound`. *E*: see `loss_bound`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, anonymize, read_hierarchy, read_matrix
    >>> tree = read_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}
    >>> od = read_matrix(pa.table(flows), hierarchy=tree)
    >>> round(lower_bound(od, Rule(trips=10)).g, 2)  # no method on this tree gets below
    2.52
    """
    check_result("the input", od, "in_memory", "read_matrix or build_od")
    allowed = Budget(budget, budget_of)
    return bound_within(od, rule, allowed, allowed.allowance(od.summary), measure, thorough=thorough)


def bound_within(
    od: Matrix, rule: Rule, allowed: Budget, allowance: int, measure: UtilityMeasure, *, thorough: bool = False
) -> LowerBound:
    """Return the bounds for an absolute number of suppressed rows or trips; see `lower_bound`."""
    whole, budget, budget_of = od.summary, allowed.share, allowed.of
    if measure not in whole.measures:
        raise InputError(f"a lower bound in {measure} needs an input with {measure}")
    rule.check_available(whole.measures)
    rule = rule.with_constraints()  # a bound for the thresholds alone is also valid with constraints
    if measure == "weight" or thorough:
        od = od.in_memory()
    costs, sizes = _candidates(od, rule, measure, budget_of)
    lost = int(costs.trips[~costs.able].sum())
    spare = allowance - costs.spend[~costs.able].sum()
    if spare < 0 or not costs.mass[costs.able].any():
        return LowerBound(None, None, None, None, lost, budget, budget_of, measure)
    able, mass = costs.able, costs.mass[costs.able]
    g = least_ratio(mass * costs.value[able], mass, costs.spend[able], spare)
    able, mass = sizes.able, sizes.mass[sizes.able]
    k = float(rule.k_of(measure, whole.mean_weight if whole.weight_units is not None else None))
    k *= whole.scale if measure == "weight" else 1
    size = least_ratio(mass, mass / sizes.value[able], sizes.spend[able], spare) / k
    if not thorough:
        return LowerBound(g, None, size, None, lost, budget, budget_of, measure)
    pairs = od.in_memory()
    sharper = homogeneous_bound(pairs, rule, allowance, g) if budget_of == measure == "trips" else g
    loss = loss_bound(pairs, rule, allowed, measure)
    return LowerBound(g, max(g, sharper), size, loss, lost, budget, budget_of, measure)


def release_bound(release: Release) -> LowerBound | None:
    """Return the bounds in trips for releases on the same hierarchies, with the same rule and budget.

    None if they do not apply to the release; see `bound_applies`. C_AVG of nested classes is not bounded.
    """
    if release.matrix is None or not bound_applies(release):
        return None
    found = bound_within(release.matrix, release.rule, *used_budget(release), "trips")
    return replace(found, c_avg=None) if release.is_nested else found


def bound_applies(release: Release, measure: UtilityMeasure = "trips") -> bool:
    """Return whether the lower bound of G applies to a release: its zones are nodes of the hierarchies of its input.

    It does not apply to a cube, whose flows of other attributes could be published elsewhere. It applies to nested
    classes in trips only: a class may list part of a pair, which is no row of the budget and has no weight of its own.
    """
    if release.matrix is None or release.matrix.axes or release.refusal is not None:
        return False
    if release.is_nested and (measure != "trips" or used_budget(release)[0].of != "trips"):
        return False
    return release.origins.are_nodes and release.destinations.are_nodes


def used_budget(release: Release) -> tuple[Budget, int]:
    """Return the budget of a release, and the number of rows or trips that the best release may suppress.

    This is the allowance of the budget, or what is suppressed if that is more: there may be no budget (on given zones,
    up to a coarsest rung, in linked tables), or complementary suppression may have exceeded it.
    """
    budget = release.budget or Budget(0.0, "trips")
    return budget, max(budget.allowance(release.input), budget.mass(release.suppressed))


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The best value of OD pairs, one or several per entry, and the budget that suppressing them takes."""

    value: Floats
    mass: Floats
    spend: Floats
    trips: Ints

    @cached_property
    def able(self) -> Bools:
        """Whether the pairs can be published at all."""
        return np.isfinite(self.value)


def _candidates(
    od: Matrix, rule: Rule, measure: UtilityMeasure, budget_of: BudgetOf
) -> tuple[_Candidates, _Candidates]:
    """Return the minimal costs of pairs, and the masses of their smallest classes."""
    if measure == "trips":
        trees = od.origins, od.destinations
        if not isinstance(od, SqlMatrix) or od.is_small:
            found = minimal_costs(od.in_memory().flows, trees, rule)
        elif od.pairs_fit and not any(MEASURES[name].counts_distinct for name in rule.measures):
            found = minimal_costs(od.pairs_in_memory.flows(), trees, rule, od.backend.fetchable)
        else:
            found = stored_minimal_costs(od, rule)
        return _counted(found[0], budget_of), _counted(found[1], budget_of)
    pairs = od.in_memory()
    flows = pairs.flows
    cost, smallest = climb_matrix(pairs, rule, measure).descend()
    mass = exact_masses(flows, measure).astype(np.float64)
    spend = getattr(flows, cost_column(budget_of)).astype(np.float64)
    return _Candidates(cost, mass, spend, flows.trips), _Candidates(smallest, mass, spend, flows.trips)


def _counted(found: CostDistribution, budget_of: BudgetOf) -> _Candidates:
    trips = found.trips * found.pairs
    mass = trips.astype(np.float64)
    return _Candidates(found.value, mass, found.pairs.astype(np.float64) if budget_of == "rows" else mass, trips)


def least_ratio(above: Floats, below: Floats, spend: Floats, allowance: float) -> float:
    """Return the least ``sum(above x) / sum(below x)`` over x in [0, 1] with ``sum(spend (1 - x)) <= allowance``.

    For a trial value t, dropping an entry gains ``above - t below``: a fractional knapsack, solved by dropping the
    entries with the best ratio of gain to spend. The resulting ratio is the next t, until it stops falling.

    References
    ----------
    Dinkelbach: "On nonlinear fractional programming", Management Science 13, 1967.
    """
    value = float(above.sum() / below.sum())
    while True:
        which, share = _best_to_drop(above - value * below, spend, allowance)
        left = float(below.sum() - (share * below[which]).sum())
        after = float(above.sum() - (share * above[which]).sum()) / left if left > 0 else value
        if not after < value * (1 - 1e-12):
            return min(after, value)
        value = after


def _best_to_drop(gain: Floats, spend: Floats, allowance: float) -> tuple[Ints, Floats]:
    """Solve a fractional knapsack: return the entries to drop, best ratio of gain to spend first, and their shares."""
    order = np.argsort(-gain / spend, kind="stable")
    order = order[gain[order] > 0]
    spent = np.cumsum(spend[order])
    return order, np.clip((allowance - (spent - spend[order])) / spend[order], 0.0, 1.0)


def homogeneous_bound(od: ODMatrix, rule: Rule, allowance: int, at_least: float) -> float:
    """Return a lower bound of G over all pairs of cuts, in trips with a budget of trips.

    Relax the problem: each pair chooses its destination zone, and only the origins share a cut. For a multiplier l, the
    least ``G_total + l * suppressed`` of the relaxation, L(l), is an exact dynamic programme over the origin tree: a
    node costs the sum of ``m min(|u| + |w|, l)`` with w the smallest zone that meets the rule. Every release with total
    N and suppressed S has ``N + l S >= L(l)``, so with T trips and ``S <= A`` ::

        G = N / (T - S) >= (L(l) - l S) / (T - S) >= (L(l) - l A) / (T - A)

    the last because ``L(l) <= l T`` makes the middle term fall in S. Every l gives a bound; L is concave with slope S,
    so a bisection on S finds a good one, here among those up to 8 times the bound for all methods (``at_least``). Both
    axes are tried.
    """
    best, trips = 0.0, od.trips
    for transposed in (False, True):
        climbed = climb_matrix(od, rule, "trips", transposed=transposed)
        # Without a budget nothing may be dropped, whatever it costs.
        low, high = 0.0, 8 * at_least if allowance else 2.0 * (len(od.origins.leaves) + len(od.destinations.leaves))
        for _ in range(_PROBES):
            middle = (low + high) / 2
            total, dropped = climbed.least_cost(middle)
            best = max(best, (total - middle * allowance) / (trips - allowance))
            low, high = (middle, high) if dropped > allowance else (low, middle)
    return best * (1 - 1e-12)


def loss_bound(od: ODMatrix, rule: Rule, budget: Budget, measure: UtilityMeasure) -> float:
    """Return a lower bound of E over all methods on the hierarchies that publish whole classes.

    A class of mass M whose loss over its leaf pairs is ``sum |v~ - v|`` loses m / M of that for each of its pairs. With
    e(p) the least loss over M of all classes that contain p and meet the rule, a published pair loses at least
    ``m e(p)``, and a suppressed one its whole m. Which pairs are suppressed is unknown, except that they fit the
    budget; a fractional knapsack takes the best case.
    """
    flows = od.flows
    mass = exact_masses(flows, measure).astype(np.float64)
    spend = budget.cost(flows).astype(np.float64)
    loss = least_loss(od, rule, measure)
    able = np.isfinite(loss)
    spare = budget.allowance(flows) - spend[~able].sum()
    gain = mass[able] * (loss[able] - 1)
    which, share = _best_to_drop(gain, spend[able], spare)
    return float((mass.sum() + gain.sum() - (share * gain[which]).sum()) / mass.sum()) * (1 - 1e-12)


def least_loss(od: ODMatrix, rule: Rule, measure: UtilityMeasure) -> Floats:
    """Return for each pair the least loss, relative to its mass, of a class that contains it and meets the rule."""
    flows = od.flows.only(rule.required_measures | {measure})
    value = exact_masses(flows, measure).astype(np.float64)
    least = np.full(len(flows), np.inf)
    for up in distinct_levels(od.origins).numbers:
        for across in distinct_levels(od.destinations).numbers:
            classes, number = flows.merge(
                od.origins.codes[up][flows.origin], od.destinations.codes[across][flows.destination]
            )
            sizes = od.origins.sizes[up][classes.origin] * od.destinations.sizes[across][classes.destination]
            mass = exact_masses(classes, measure)
            even = mass / sizes
            off = np.bincount(number, np.abs(value - even[number]), len(classes)) + (sizes - classes.pairs) * even
            least = np.minimum(least, np.where(rule.satisfied(classes), off / mass, np.inf)[number])
    return least
