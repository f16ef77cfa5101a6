"""Zonings tried on the whole and its segments, until the segments fit."""

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
from odkanon.linked.fixed_zoning import Zoning, lay_over, zoning_of
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
    """A zoning, for thresholds raised by a factor, and what can be published on it."""

    factor: float
    zoning: Zoning
    plan: Plan
    number_of: Ints
    width: int
    parameters: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Ground:
    """The data that zonings are tried on."""

    od: ODMatrix
    """One row for each pair and segment."""
    dimensions: Sequence[Dimension]
    """How the rows are split; where there are many trips, there are far fewer rows."""
    parents: Sequence[int | None]
    """For each dimension, the coarser one that it refines."""
    rule: Rule
    intervals: bool = False

    @cached_property
    def pairs(self) -> ODMatrix:
        """The matrix of the whole."""
        return self.od.of_any_attribute()

    @cached_property
    def widths(self) -> Mapping[str, int]:
        """To within how much no suppressed cell may be known, where intervals are protected."""
        return _widths(self.rule, self.od) if self.intervals else {}

    def attempt(self, factor: float, method: str, options: dict[str, Any]) -> Attempt | str:
        """Choose zones as if the thresholds were higher, and see what can be published; or return why nothing can."""
        release = anonymize(self.pairs, self.rule.scaled(factor), method=method, **options)
        if release.refusal:
            return release.refusal
        return self.on(zoning_of(release), factor, dict(release.parameters))

    def on(self, zoning: Zoning, factor: float, parameters: dict[str, Any]) -> Attempt:
        """See what can be published on a zoning."""
        _, origin_zone = lay_over(zoning.origins, self.od.origins)
        _, destination_zone = lay_over(zoning.destinations, self.od.destinations)
        width = len(zoning.destinations.ids)
        key = _keys(origin_zone[self.od.flows.origin], destination_zone[self.od.flows.destination], width)
        keys = np.unique(key[key >= 0])
        klass = np.where(key < 0, -1, np.searchsorted(keys, key))
        plan = make_plan(self.od.flows, klass, len(keys), self.dimensions, self.parents, self.rule, widths=self.widths)
        return Attempt(factor, zoning, plan, keys, width, parameters)

    def release(self, od: ODMatrix, spec: ReleaseSpec, attempt: Attempt, published: Bools) -> Release:
        """Return the release of a matrix on the zoning, of the classes that may be published."""
        origins, zone_of_origin = lay_over(attempt.zoning.origins, od.origins)
        destinations, zone_of_destination = lay_over(attempt.zoning.destinations, od.destinations)
        origin_zone, destination_zone = zone_of_origin[od.flows.origin], zone_of_destination[od.flows.destination]
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


def _widths(rule: Rule, od: ODMatrix) -> dict[str, int]:
    """Return to within how much a cell may not be known, in units: what the rule asks for, nothing where it does not.

    So many distinct contributors have at least so many trips. Of a measure that is not counted, nothing but that a
    cell may be empty can be kept: all that is suppressed of a flow may have less of it.
    """
    scale = od.flows.scale
    trips = max((rule.units(name, scale) for name in rule.measures if name != "weight"), default=0)
    widths = {"trips": trips, "weight": rule.units("weight", scale) if "weight" in rule.measures else 0}
    return {name: width for name, width in widths.items() if name in od.measures}


def _keys(origin_zone: Codes, destination_zone: Codes, width: int) -> Ints:
    inside = (origin_zone >= 0) & (destination_zone >= 0)
    return np.where(inside, origin_zone.astype(np.int64) * width + destination_zone, -1)


def search(ground: Ground, budget: float, method: str, options: dict[str, Any]) -> Attempt:
    """Return the finest zoning on which every dimension stays within its budget, or the one that comes closest."""
    first = ground.attempt(1.0, method, options)
    if isinstance(first, str):
        raise RefusedError(f"nothing can be published: {first}")
    best, low, high = first, 0, ceil(STEPS_PER_DOUBLING * log2(max(ground.od.trips, 2)))
    if _worst(first) <= budget:
        return first
    while high - low > 1:
        middle = (low + high) // 2
        attempt = ground.attempt(2 ** (middle / STEPS_PER_DOUBLING), method, options)
        if isinstance(attempt, str) or _worst(attempt) <= budget:
            high = middle
        else:
            low = middle
        if not isinstance(attempt, str) and (_worst(attempt) <= budget or _worst(attempt) < _worst(best)):
            best = attempt
    return best


def _worst(attempt: Attempt) -> float:
    return max(attempt.plan.shares)


def join_rare(ground: Ground) -> Ground:
    """Join the values of each dimension that are below the rule in all, where they meet it together."""
    for number in _free(ground):
        dimension = ground.dimensions[number]
        rare = find_rare(ground.od.flows, dimension, ground.rule)
        totals = count_values(ground.od.flows, dimension)
        if rare.any() and satisfied_jointly(totals, rare[totals.destination], ground.rule):
            ground = _with(ground, number, dimension.join(rare))
    return ground


def search_joining(ground: Ground, budget: float, method: str, options: dict[str, Any]) -> tuple[Ground, Attempt]:
    """Return the finest zoning on which every value has a table and every dimension stays within its budget.

    Where there is none, the smallest values of a dimension are joined, again and again; the best of all that was
    tried is returned in the end.
    """
    best: tuple[tuple[float, int], Ground, Attempt] | None = None
    while True:
        attempt = search(ground, budget, method, options)
        lacking = [_without_table(ground, attempt, number) for number in range(len(ground.dimensions))]
        over = max(0.0, *(share - budget for share in attempt.plan.shares))
        score = over, sum(int(np.count_nonzero(each)) for each in lacking)
        if best is None or score < best[0]:
            best = score, ground, attempt
        following = _joined_further(ground, attempt, lacking, budget)
        if following is None:
            return best[1], best[2]
        ground = following


def _free(ground: Ground) -> list[int]:
    """Return the dimensions that are tied to no other: joined values have to stay within one value above them."""
    return [number for number, parent in enumerate(ground.parents) if parent is None and number not in ground.parents]


def _with(ground: Ground, number: int, dimension: Dimension) -> Ground:
    dimensions = [dimension if at == number else each for at, each in enumerate(ground.dimensions)]
    return replace(ground, dimensions=dimensions)


def _without_table(ground: Ground, attempt: Attempt, number: int) -> Bools:
    """Return the values that occur, and of which nothing is published."""
    occurs = _sizes(ground, number) > 0
    return np.asarray(occurs & ~np.any(attempt.plan.cells[number], axis=0))


def _sizes(ground: Ground, number: int) -> Ints:
    """Return the trips of each value."""
    return group_sum(ground.dimensions[number].value, len(ground.dimensions[number]), ground.od.flows.trips)


def _joined_further(ground: Ground, attempt: Attempt, lacking: list[Bools], budget: float) -> Ground | None:
    """Join the values without a table, or else the two smallest, of the dimension that is worst off; None at last."""
    free = [number for number in _free(ground) if np.count_nonzero(_sizes(ground, number)) > 2]
    free = [number for number in free if lacking[number].any() or attempt.plan.shares[number] > budget]
    if not free:
        return None
    number = max(free, key=lambda each: (attempt.plan.shares[each], int(np.count_nonzero(lacking[each]))))
    dimension, which = ground.dimensions[number], lacking[number].copy()
    sizes = _sizes(ground, number)
    is_other = np.array([label == dimension.other for label in dimension.labels])
    if not np.any((sizes > 0) & ~which & ~is_other):  # nothing has a table, so this does not determine which to join
        which[:] = False
    for value in np.argsort(sizes, kind="stable").tolist():
        if np.count_nonzero(which | is_other) > 1:
            break
        which[value] |= bool(sizes[value]) and not is_other[value]
    return _with(ground, number, dimension.join(which))
