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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.errors import InputError
from odkanon.model.budget import Budget, BudgetOf, cost_column
from odkanon.model.od import Matrix
from odkanon.model.provenance import Summary
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.lower_bounds.bounds import homogeneous_bound, least_ratio, loss_bound
from odkanon.quality.lower_bounds.minimal_cost import Floats, Spread, climb, minimal_costs
from odkanon.quality.lower_bounds.stored_costs import stored_minimal_costs
from odkanon.quality.utility import UtilityMeasure


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

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, anonymize, lookup_hierarchy, read_od
    >>> tree = lookup_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}
    >>> od = read_od(pa.table(flows), hierarchy=tree)
    >>> round(limit(od, Rule(trips=10)).g, 2)  # no method over this tree gets below
    2.52
    """
    allowed = Budget(budget, budget_of)
    return limit_within(od, rule, allowed, allowed.allowance(od.summary), measure, thorough=thorough)


def limit_within(
    od: Matrix, rule: Rule, allowed: Budget, allowance: int, measure: UtilityMeasure, *, thorough: bool = False
) -> Limit:
    """Return the bounds for so many suppressed rows or trips, whatever share of the input they are; see `limit`."""
    whole, budget, budget_of = od.summary, allowed.share, allowed.of
    if measure not in whole.measures:
        raise InputError(f"a limit in {measure} needs an input with {measure}")
    rule.check_available(whole.measures)
    rule = rule.asking()  # a bound for the thresholds alone holds for whoever is asked for more
    if measure == "weight" or thorough:
        od = od.in_memory()
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
    pairs = od.in_memory()
    sharper = homogeneous_bound(pairs, rule, allowance, g) if budget_of == measure == "trips" else g
    loss = loss_bound(pairs, rule, allowed, measure)
    return Limit(g, max(g, sharper), size, loss, lost, budget, budget_of, measure)


def limit_of(release: Release) -> Limit | None:
    """Return what the best release over the same hierarchies, with the same rule and budget, could reach in trips.

    None where it does not bind the release; see `binds`. C_AVG of classes that lie in each other is not bound.
    """
    if release.matrix is None or not binds(release):
        return None
    found = limit_within(release.matrix, release.rule, *spending(release), "trips")
    return found if not release.is_nested else replace(found, c_avg=None)


def binds(release: Release, measure: UtilityMeasure = "trips") -> bool:
    """Tell whether the limit of G holds for a release: its zones are nodes of the hierarchies of its input.

    Not for a cube, whose flows of other kinds could be published at other places. A class that lies in another may list
    part of a pair: that is so many trips, but neither a row of the budget nor a weight of its own.
    """
    if release.matrix is None or release.matrix.axes or release.refusal is not None:
        return False
    nested = release.is_nested
    if nested and (measure != "trips" or spending(release)[0].of != "trips"):
        return False
    return release.origins.are_nodes and release.destinations.are_nodes


def spending(release: Release) -> tuple[Budget, int]:
    """Return the budget of a release, and how many rows or trips the best one may suppress.

    That is what the budget allows, and no less than what is suppressed: there may be no budget (on given zones, up to a
    coarsest rung, in tables released together), or a class had to go with the rest beyond it.
    """
    budget = release.budget or Budget(0.0, "trips")
    return budget, max(budget.allowance(release.input), budget.mass(release.suppressed))


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
    if measure == "trips":
        if isinstance(od, SqlMatrix) and not od.is_small:
            found = stored_minimal_costs(od, rule)
        else:
            found = minimal_costs(od.in_memory(), rule)
        return _counted(found[0], budget_of), _counted(found[1], budget_of)
    pairs = od.in_memory()
    flows = pairs.flows
    price, smallest = climb(pairs, rule, measure).descend()
    mass = getattr(flows, measure).astype(np.float64)
    cost = getattr(flows, cost_column(budget_of)).astype(np.float64)
    return _Offers(price, mass, cost, flows.trips), _Offers(smallest, mass, cost, flows.trips)


def _counted(found: Spread, budget_of: BudgetOf) -> _Offers:
    trips = found.trips * found.pairs
    mass = trips.astype(np.float64)
    return _Offers(found.value, mass, found.pairs.astype(np.float64) if budget_of == "rows" else mass, trips)


def _k(whole: Summary, rule: Rule, measure: UtilityMeasure) -> float:
    """Return what C_AVG divides by, in the units of the flows."""
    k = float(rule.k_of(measure, whole.mean_weight if whole.weight is not None else None))
    return k * whole.scale if measure == "weight" else k
