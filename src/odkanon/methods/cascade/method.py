"""Cascade: every trip once, at the finest place that k share.

A ladder coarsens origins and destinations in turns. At each rung the trips left are grouped by the rung's nodes; a
group that meets the rule becomes a row, and all other trips move on. A row counts the trips that no finer row lists, or
at least so many if it is at its cap. Caps keep readers from concluding that a smaller group exists: docs/methods-own.md
states the promise, docs/proofs.md proves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil
from secrets import randbits
from typing import Any

import numpy as np
from numpy.random import default_rng

from odkanon.attributes.hierarchies import join_rare_values
from odkanon.attributes.spec import MISSING, OTHER
from odkanon.core.arrays import Bools
from odkanon.engine.dispatch import open_workspace
from odkanon.engine.memory.residual import MemoryResidual, leave_out
from odkanon.engine.protocols import Workspace
from odkanon.errors import InputError, InvalidValueError, OptionConflictError
from odkanon.methods.cascade.ladder import Ladder, drop_steps, in_turns, side_of
from odkanon.methods.cascade.reuse import EarlierRows
from odkanon.methods.cascade.roll_up import PublicationRule, RollUp, roll_up
from odkanon.model.flows import Totals
from odkanon.model.measures import BY_CONTRIBUTOR, DISTINCT
from odkanon.model.od import Matrix, ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.published_flows import disclosed_weights
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Hierarchy


def cascade(
    od: Matrix,
    rule: Rule,
    *,
    coarsest: int | None = None,
    budget: float | None = None,
    budget_of: BudgetOf | None = None,
    allow_inference: bool = False,
    drop_order: str | None = None,
    rows: EarlierRows | None = None,
    total_known: bool = False,
) -> Release:
    """Anonymise with a cascade.

    * ``coarsest``: publish nothing coarser: an H3 resolution, or the level of a lookup table (0 for its leaves).
    * ``budget``: share of the input in [0, 1) that may stay unpublished; the coarsest rows, by ``|o| + |d|``, are left
      out up to it. For comparison with methods that suppress: which rows are left out depends on the data and discloses
      some.
    * ``budget_of``: with a budget: share of OD pairs, or of trips (default).
    * ``allow_inference``: by default no box of public zones can be shown to hold trips that no row inside it lists. If
      allowed, every row still meets the rule, but a reader who knows the method can derive smaller groups from several
      rows.
    * ``drop_order``: for a matrix with attributes: the drop order, such as ``place:7,hour,mode,place``; see
      `odkanon.methods.cascade.ladder.drop_steps`.
    * ``rows``: list only rows of an earlier cascade of other trips. A trip goes to the finest of them that contains it,
      and from a row with too few trips to the next coarser one.
    * ``total_known``: leave out a secret set of some 1 % of the persons first, so that the total of the input may be
      public.

    Returns
    -------
    Release
        Rows at several levels. Each trip is in one row at most; a row lists trips that no finer row lists, all of
        them unless it is at its cap (``classes.at_cap``).
    """
    if not isinstance(allow_inference, bool):
        raise InvalidValueError.expected("allow_inference", "true or false", allow_inference)
    rule.check_available(od.summary.measures)
    safe = not allow_inference
    parameters: dict[str, Any] = {"allow_inference": allow_inference}
    if coarsest is not None:
        parameters["coarsest"] = coarsest
    if budget is None and budget_of is not None:
        raise OptionConflictError.between("budget_of", "a budget", "it names the unit of a budget", missing=True)
    allowed = None if budget is None else Budget(budget, budget_of or "trips")
    if allowed is not None:
        parameters |= {"budget": budget, "budget_of": allowed.of}
    if rows is not None:
        if not safe or od.axes or coarsest is not None or budget is not None:
            raise InputError("a cascade on the rows of an earlier one takes no further options; leave them out")
        parameters["rows"] = "given"
    if total_known and (not safe or coarsest is not None or budget is not None or rows is not None):
        raise InputError(
            "where the total is known, all rows of a cascade are published: drop the budget, the coarsest level, the "
            "rows of an earlier release, and the permission to infer"
        )
    terms = PublicationRule(rule, least_trips(rule, safe=safe), safe and rows is None)
    od = without_rare_values(od, terms)
    work = open_workspace(od)
    ladder, order = ordered_ladder(od, coarsest, drop_order)
    if order is not None:
        parameters["drop_order"] = order
    given, nodes = None if rows is None else rows.on(ladder), [side.nodes(0) for side in ladder.sides]
    if total_known:
        return _released_without_some(od.in_memory(), rule, parameters | {"total_known": True}, terms, ladder)
    rolled_up = settled(
        lambda now: roll_up(ladder, work.residual_trips(nodes, rule.measures), now, given), terms, od.summary, safe=safe
    )
    if rolled_up.withstands is not None:
        parameters["withstands"] = rolled_up.withstands
    return _released(work, od, ReleaseSpec(rule, allowed, "cascade", parameters), rolled_up)


LEFT_OUT, DRAWS = 0.01, 100
"""The mean share of persons left out where the total is known, and the largest number of draws."""


def _released_without_some(
    od: ODMatrix, rule: Rule, parameters: dict[str, Any], terms: PublicationRule, ladder: Ladder
) -> Release:
    """Return the release without a secret set of persons, whose trips could be any of the unlisted ones.

    The share is drawn uniformly up to twice its mean, and drawn again until enough trips could be left out to explain
    all unlisted ones. Neither the number of draws nor of trips left out follows from the rows and the total.
    """
    work, random, spec = open_workspace(od), default_rng(randbits(128)), ReleaseSpec(rule, None, "cascade", parameters)
    nodes, unit = [side.nodes(0) for side in ladder.sides], _unit_left_out(od, rule)
    for _ in range(DRAWS):
        share = 2 * LEFT_OUT * random.random()
        flows, gone = leave_out(od.flows, unit, share, random)
        residual = MemoryResidual.from_flows(flows, nodes, rule.measures)
        rolled_up = settled(partial(roll_up, ladder, residual), terms, od.summary)
        if gone.trips + rolled_up.unlisted.trips <= 2 * LEFT_OUT * od.summary.trips:
            parameters["secretly_left_out"] = gone.trips
            return _released(work, od, spec, rolled_up, gone)
    return work.refuse(spec, od.summary.source.subject.words(_refusal(rolled_up, spec)))


def _unit_left_out(od: ODMatrix, rule: Rule) -> str | None:
    """Return the contributors whose trips are left out as one: those that the rule counts, else persons if known."""
    counted = [name for name in rule.measures if name in DISTINCT]
    if len(counted) > 1:
        raise InputError("no persons can be left out if the rule counts persons and households; protect one of the two")
    return counted[0] if counted else "persons" if "persons" in od.flows.contributions else None


def without_rare_values(od: Matrix, terms: PublicationRule) -> Matrix:
    """Return a matrix in which values of observed attributes are ``other`` if all their trips could not form a row.

    The public tree of such an attribute consists of the values that occur. A value of a single trip, such as a ferry,
    would be one more part that might hold trips, and so change the bound of unlisted trips. A value with too few trips
    is rare whatever their weight.
    """
    if not any(axis.observed for axis in od.axes):
        return od
    sizes = [len(tree.leaves) for tree in (od.origins, od.destinations, *(axis.tree for axis in od.axes))]
    residual = open_workspace(od).residual_trips(sizes, terms.rule.measures)
    for place in (0, 1):
        residual = residual.lift(place, np.zeros(sizes[place], dtype=np.int64), 1)
    joined = []
    for at, axis in enumerate(od.axes, 2):
        rare, by_value = np.full(sizes[at], axis.observed), residual
        for other in [number for number in range(2, len(sizes)) if number != at and axis.observed]:
            by_value = by_value.lift(other, np.zeros(sizes[other], dtype=np.int64), 1)
        if axis.observed:
            groups = by_value.at_least(0)
            common = terms.rule.satisfied(groups) & (groups.trips >= terms.k)
            rare[groups.codes[at][common]] = False
            rare &= ~np.isin(axis.tree.leaves, (MISSING, OTHER))
        joined.append(join_rare_values(axis, rare) if rare.any() else (axis, np.arange(sizes[at], dtype=np.int32)))
    if all(new is old for (new, _), old in zip(joined, od.axes, strict=True)):
        return od
    return od.with_axes([axis for axis, _ in joined], [number for _, number in joined])


@dataclass(frozen=True)
class Forecast:
    """The outcome of a cascade, without the release."""

    trips: int
    """The number of trips it lists."""
    g: float | None
    """Its mean generalisation error if it leaves out as much as a budget allows; None without a budget or any row."""


def forecast(od: ODMatrix, rule: Rule, budget: Budget | None) -> Forecast:
    """Return the outcome of a cascade without assigning pairs or making a release, in a fraction of the time."""
    ladder = ladder_of((od.origins, od.destinations), None)
    flows = od.flows.only(rule.required_measures | {BY_CONTRIBUTOR})
    nodes, terms = [side.nodes(0) for side in ladder.sides], PublicationRule(rule, least_trips(rule, safe=True))
    rolled_up = settled(
        lambda now: roll_up(ladder, MemoryResidual.from_flows(flows, nodes, rule.measures, placing=False), now),
        terms,
        od.summary,
    )
    trips, g = rolled_up.rows.groups.trips, None
    if budget is not None:
        kept = within_budget(rolled_up, budget, budget.allowance(od.summary))
        if kept.any():
            size = np.sum(rolled_up.rows.sizes(), axis=0)
            g = float(np.sum(size[kept] * trips[kept].astype(np.float64))) / float(trips[kept].sum())
    return Forecast(int(trips.sum()), g)


def _released(
    work: Workspace, od: Matrix, spec: ReleaseSpec, rolled_up: RollUp, left_out: Totals | None = None
) -> Release:
    published = np.ones(len(rolled_up.rows), dtype=bool)
    safe = not spec.parameters["allow_inference"]
    if safe and spec.rule.uses_mean_weight(od.summary.own_mean_weight) and rolled_up.rows.hides_weight.all():
        # Where no row discloses its weight, k times the mean weight of the rows cannot be promised.
        published[:] = False
    if spec.budget is not None:
        published = within_budget(rolled_up, spec.budget, spec.budget.allowance(od.summary))
    if not published.any():
        return work.refuse(spec, od.summary.source.subject.words(_refusal(rolled_up, spec)))
    nested = replace(rolled_up.nested(published), axes=od.axes)
    if left_out is not None:
        at_least = np.ones_like(nested.at_cap)
        nested = replace(nested, suppressed=nested.suppressed + left_out, at_cap=at_least, unlisted=None)
    return work.nested_release(spec, nested)


def counts_contributors_or_trips(rule: Rule) -> bool:
    """Return whether a rule by itself implies a minimum of trips per row; a weight alone does so only with the data."""
    return not rule.k_from_data or len(rule.measures) > 1


def least_trips(rule: Rule, *, safe: bool) -> int:
    """Return the minimum of trips of a row.

    Caps count trips, so a safe cascade needs a threshold on trips that no smaller group meets: the largest of those on
    trips and contributors, and k for k mean weights. A weight threshold implies none, because a single heavy trip could
    meet it. Converting it by the mean weight would disclose unlisted weights through the rows.
    """
    if safe and not counts_contributors_or_trips(rule):
        raise InputError(
            "a cascade on a weight alone cannot keep its promise, as caps count trips: ask for a number of trips or "
            "persons too, or protect the population with a k, or allow inference"
        )
    counted = max((int(value) for name, value in rule.thresholds.items() if name != "weight"), default=1)
    if rule.weight is None or rule.k_from_data or not safe:
        return counted
    return max(counted, ceil(rule.k_of("trips")))


def settled(
    falls: Callable[[PublicationRule], RollUp], terms: PublicationRule, whole: Summary, *, safe: bool = True
) -> RollUp:
    """Return a roll-up in which every row has k times the mean weight of the listed trips, if the rule requires it.

    That mean can exceed the mean of all trips. A row between the two would disclose that trips are unlisted and light:
    with them in the mean, the row meets the rule; without them it would not.
    """
    rolled_up, rule = falls(terms), terms.rule
    while safe and rule.uses_mean_weight(whole.own_mean_weight) and len(rolled_up.rows):
        groups, hides = rolled_up.rows.groups, rolled_up.rows.hides_weight
        weight = groups.weight_units
        assert weight is not None
        if hides.all():
            break
        disclosed = disclosed_weights(groups.trips, weight, hides)
        mean = Fraction(int(disclosed.sum()), int(groups.trips.sum()) * whole.scale)
        # Published rounded down, so that rows of k trips of equal weight meet it in any number of digits.
        published = rule.with_weight(Fraction(rule.k) * mean, mean).disclosed_thresholds["weight"]
        asked = rule.with_weight(max(Fraction(str(published)), Fraction(terms.rule.thresholds["weight"])), mean)
        if int(weight.min()) >= asked.units("weight", whole.scale):
            break
        terms = replace(terms, rule=asked)
        rolled_up = falls(terms)
    return rolled_up


def ordered_ladder(od: Matrix, coarsest: int | None, drop_order: str | None) -> tuple[Ladder, str | None]:
    """Return the ladder of a matrix, and the order in which it drops attributes; None if there are none."""
    ladder = ladder_of((od.origins, od.destinations, *(axis.tree for axis in od.axes)), coarsest)
    if not od.axes:
        if drop_order is not None:
            raise InputError("the drop order is of attributes, and the matrix has none; publish by an attribute")
        return ladder, None
    tops = [*ladder.levels[-1][:2], *(side.top for side in ladder.sides[2:])]
    names, trees = [axis.name for axis in od.axes], [side.tree for side in ladder.sides]
    steps, text = drop_steps(drop_order, names, trees, tops)
    return Ladder(ladder.sides, steps), text


def ladder_of(trees: Sequence[Hierarchy], coarsest: int | None) -> Ladder:
    """Return the ladder over some trees, up to their public roots or to the coarsest level requested."""
    sides = tuple(side_of(tree) for tree in trees)
    return Ladder(sides, in_turns([_last(side.tree, coarsest if at < 2 else None) for at, side in enumerate(sides)]))


def _last(tree: Hierarchy, coarsest: int | None) -> int:
    if coarsest is None:
        return tree.top
    level = coarsest if tree.resolution is None else tree.level_of_resolution(coarsest)
    if not 0 <= level <= tree.top:
        kind = "level" if tree.resolution is None else "H3 resolution"
        finest, last = (0, tree.top) if tree.resolution is None else (tree.resolution, 0)
        raise InputError(f"the coarsest {kind} to publish must lie between {finest} and {last}, not {coarsest}")
    return level


def within_budget(rolled_up: RollUp, budget: Budget, allowance: int) -> Bools:
    """Return the rows that remain when the coarsest are left out within the budget; none if it does not suffice."""
    rows = rolled_up.rows
    size = np.sum(rows.sizes(), axis=0)
    left = allowance - budget.mass(rolled_up.unlisted)
    if left < 0:
        return np.zeros(len(rows), dtype=bool)
    order = np.lexsort((np.arange(len(rows)), -rows.rung, -size))
    spent = np.cumsum(budget.cost(rows.groups)[order])
    kept = np.ones(len(rows), dtype=bool)
    kept[order[spent <= left]] = False
    return kept


def _refusal(rolled_up: RollUp, spec: ReleaseSpec) -> str:
    missing = rolled_up.unlisted.trips
    within = "" if spec.budget is None else " within the budget"
    left_out = "" if spec.budget is None else ", leave out the budget,"
    return (
        f"a cascade leaves {missing:,} trips in groups that cannot be published under {spec.rule}{within}; lower the "
        f"thresholds{left_out} or bring more data"
    )
