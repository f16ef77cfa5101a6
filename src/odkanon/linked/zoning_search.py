"""The search for a zoning on which the whole and its segments fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from typing import Any

import numpy as np

from odkanon.attributes.dimensions import Dimension
from odkanon.core.arrays import Bools, Codes, Ints, group_sum
from odkanon.errors import RefusedError
from odkanon.linked.fixed_zoning import Zoning, zoning_of
from odkanon.linked.suppression_pattern import Plan, count_values, find_rare, make_plan
from odkanon.methods import anonymize
from odkanon.model.assemble import assemble
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec, satisfied_jointly
from odkanon.model.rule import Rule

STEPS_PER_DOUBLING = 4
"""Resolution of the search for the coarseness of the zoning."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """A zoning for thresholds raised by a factor, and the cells that may be published on it."""

    factor: float
    zoning: Zoning
    plan: Plan
    number_of: Ints
    width: int
    parameters: dict[str, Any]


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """The matrix and its dimensions, for which zonings are tried."""

    od: ODMatrix
    """One row for each pair and combination of values."""
    dimensions: Sequence[Dimension]
    """The dimensions, over the rows of the matrix."""
    parents: Sequence[int | None]
    """For each dimension, the coarser one that it refines."""
    rule: Rule
    intervals: bool = False
    """Whether feasibility intervals are protected."""

    @cached_property
    def pairs(self) -> ODMatrix:
        """The matrix of the whole."""
        return self.od.without_attributes()

    @cached_property
    def widths(self) -> Mapping[str, int]:
        """The least width of the feasibility intervals of cells below the rule, by measure, in units.

        It is the threshold; k distinct contributors have at least k trips. A measure without a threshold has width 0: a
        cell may be empty, but no more can be guaranteed, as all suppressed cells of a flow may have less of it.
        """
        if not self.intervals:
            return {}
        rule, scale = self.rule, self.od.flows.scale
        trips = max((rule.units(name, scale) for name in rule.measures if name != "weight"), default=0)
        widths = {"trips": trips, "weight": rule.units("weight", scale) if "weight" in rule.measures else 0}
        return {name: width for name, width in widths.items() if name in self.od.measures}

    def attempt(self, factor: float, method: str, options: dict[str, Any]) -> Attempt | str:
        """Choose zones for raised thresholds and plan what to publish; or return why nothing can be."""
        release = anonymize(self.pairs, self.rule.scaled(factor), method=method, **options)
        if release.refusal:
            return release.refusal
        return self.on(zoning_of(release), factor, dict(release.parameters))

    def on(self, zoning: Zoning, factor: float, parameters: dict[str, Any]) -> Attempt:
        """Plan what to publish on a zoning."""
        width = len(zoning.destinations.ids)
        key = _keys(*zoning.over(self.od)[2:], width)
        keys = np.unique(key[key >= 0])
        klass = np.where(key < 0, -1, np.searchsorted(keys, key))
        plan = make_plan(self.od.flows, klass, len(keys), self.dimensions, self.parents, self.rule, widths=self.widths)
        return Attempt(factor, zoning, plan, keys, width, parameters)

    def release(self, od: ODMatrix, spec: ReleaseSpec, attempt: Attempt, published: Bools) -> Release:
        """Return the release of a matrix on the zoning, limited to the classes that may be published."""
        origins, destinations, origin_zone, destination_zone = attempt.zoning.over(od)
        key = _keys(origin_zone, destination_zone, attempt.width)
        at = np.minimum(np.searchsorted(attempt.number_of, key), len(attempt.number_of) - 1)
        return assemble(
            od,
            spec,
            origins=origins,
            destinations=destinations,
            origin_zone=origin_zone,
            destination_zone=destination_zone,
            candidate=published[at] & (key >= 0),
        )


def _keys(origin_zone: Codes, destination_zone: Codes, width: int) -> Ints:
    inside = (origin_zone >= 0) & (destination_zone >= 0)
    return np.where(inside, origin_zone.astype(np.int64) * width + destination_zone, -1)


def search(tables: LinkedTables, budget: float, method: str, options: dict[str, Any]) -> Attempt:
    """Return the finest zoning on which every dimension keeps its budget, or the one that comes closest."""
    first = tables.attempt(1.0, method, options)
    if isinstance(first, str):
        raise RefusedError(f"nothing can be published: {first}")
    best, low, high = first, 0, ceil(STEPS_PER_DOUBLING * log2(max(tables.od.trips, 2)))
    if _worst(first) <= budget:
        return first
    while high - low > 1:
        middle = (low + high) // 2
        attempt = tables.attempt(2 ** (middle / STEPS_PER_DOUBLING), method, options)
        if isinstance(attempt, str) or _worst(attempt) <= budget:
            high = middle
        else:
            low = middle
        if not isinstance(attempt, str) and (_worst(attempt) <= budget or _worst(attempt) < _worst(best)):
            best = attempt
    return best


def _worst(attempt: Attempt) -> float:
    return max(attempt.plan.shares)


def join_rare(tables: LinkedTables) -> LinkedTables:
    """Join the values of each dimension that are below the rule, if they jointly meet it."""
    for number in _free(tables):
        dimension = tables.dimensions[number]
        rare = find_rare(tables.od.flows, dimension, tables.rule)
        totals = count_values(tables.od.flows, dimension)
        if rare.any() and satisfied_jointly(totals, rare[totals.destination], tables.rule):
            tables = _with(tables, number, dimension.join(rare))
    return tables


def search_joining(
    tables: LinkedTables, budget: float, method: str, options: dict[str, Any]
) -> tuple[LinkedTables, Attempt]:
    """Return the finest zoning on which every value has a table and every dimension keeps its budget.

    If there is none, the smallest values of a dimension are joined repeatedly, and the best attempt is returned.
    """
    best: tuple[tuple[float, int], LinkedTables, Attempt] | None = None
    while True:
        attempt = search(tables, budget, method, options)
        lacking = [
            (_sizes(tables, number) > 0) & ~np.any(cells, axis=0) for number, cells in enumerate(attempt.plan.cells)
        ]
        over = max(0.0, *(share - budget for share in attempt.plan.shares))
        score = over, sum(int(np.count_nonzero(each)) for each in lacking)
        if best is None or score < best[0]:
            best = score, tables, attempt
        following = _joined_further(tables, attempt, lacking, budget)
        if following is None:
            return best[1], best[2]
        tables = following


def _free(tables: LinkedTables) -> list[int]:
    """Return the dimensions that are not nested with another; joined values must stay within one value of a parent."""
    return [number for number, parent in enumerate(tables.parents) if parent is None and number not in tables.parents]


def _with(tables: LinkedTables, number: int, dimension: Dimension) -> LinkedTables:
    dimensions = [dimension if at == number else each for at, each in enumerate(tables.dimensions)]
    return replace(tables, dimensions=dimensions)


def _sizes(tables: LinkedTables, number: int) -> Ints:
    """Return the number of trips of each value."""
    return group_sum(tables.dimensions[number].value, len(tables.dimensions[number]), tables.od.flows.trips)


def _joined_further(tables: LinkedTables, attempt: Attempt, lacking: list[Bools], budget: float) -> LinkedTables | None:
    """Join the values without a table, or else the two smallest, of the worst dimension; None if none is left."""
    free = [number for number in _free(tables) if np.count_nonzero(_sizes(tables, number)) > 2]
    free = [number for number in free if lacking[number].any() or attempt.plan.shares[number] > budget]
    if not free:
        return None
    number = max(free, key=lambda each: (attempt.plan.shares[each], int(np.count_nonzero(lacking[each]))))
    dimension, which = tables.dimensions[number], lacking[number].copy()
    sizes = _sizes(tables, number)
    is_other = np.array([label == dimension.other for label in dimension.labels])
    if not np.any((sizes > 0) & ~which & ~is_other):  # if no value has a table, this does not determine which to join
        which[:] = False
    for value in np.argsort(sizes, kind="stable").tolist():
        if np.count_nonzero(which | is_other) > 1:
            break
        which[value] |= bool(sizes[value]) and not is_other[value]
    return _with(tables, number, dimension.join(which))
