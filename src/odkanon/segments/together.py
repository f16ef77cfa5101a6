"""The whole and its segments on one zoning, released together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

import numpy as np

from odkanon.area import Area
from odkanon.arrays import Bools, Codes, Ints
from odkanon.cells import latlng_to_cell
from odkanon.errors import InputError, RefusedError
from odkanon.io.columns import COORDINATES
from odkanon.methods import anonymize
from odkanon.od import ODMatrix, Rejected, Source
from odkanon.release import Release, assemble
from odkanon.rule import Rule
from odkanon.segments.dimensions import Dimension, parent_of
from odkanon.segments.plan import Plan, make_plan, too_few
from odkanon.series import Zoning, lay_over, zoning_of
from odkanon.trips import Trips, build_od

STEPS_PER_DOUBLING = 4
"""How finely the coarseness of the zoning is searched."""

RARE = "of segments too small for a table, even together"


@dataclass(frozen=True, eq=False)
class Part:
    """A segment and its release; None where nothing of it can be published."""

    dimension: str
    segment: dict[str, str]
    title: str
    release: Release | None


@dataclass(frozen=True, eq=False)
class Together:
    """The whole and all segments, safe to publish side by side.

    Attributes
    ----------
    whole : Release
        The release of all trips.
    parts : tuple of Part
        Those of the segments, by dimension and value.
    coarseness : float
        By which factor the thresholds were raised when the zones were chosen, so that segments fit them too.
    suppressed : mapping of str to float
        Share of trips that the tables of each dimension suppress.
    """

    whole: Release
    parts: tuple[Part, ...]
    coarseness: float
    suppressed: dict[str, float]


def release_together(
    trips: Trips,
    rule: Rule,
    dimensions: Sequence[Dimension],
    *,
    resolution: int = 10,
    within: Area | None = None,
    segment_budget: float = 0.10,
    zoning: Zoning | None = None,
    method: str = "odkanon",
    **options: Any,
) -> Together:
    """Release trips as a whole and by segments, so that no sum or difference of the tables isolates a small group.

    Parameters
    ----------
    trips : Trips
        The trips.
    rule : Rule
        What every flow of every table meets, and every group that tables give away.
    dimensions : sequence of Dimension
        How to split the trips; see `odkanon.segments.dimensions.make_dimensions`.
    segment_budget : float
        Share of trips that the tables of a dimension may suppress, in [0, 1). Zones become as coarse as that takes,
        where it can be reached at all.
    zoning : Zoning, optional
        Given zones, instead of choosing them; see `odkanon.series.read_zoning`.
    method, **options
        How zones are chosen; see `odkanon.methods.anonymize`.
    """
    if not dimensions:
        raise InputError("segments released together need at least one --segment")
    if not 0 <= segment_budget < 1:
        raise InputError(f"the segment budget is a share from 0 up to below 1; not {segment_budget}")
    started = time.perf_counter()
    trips, dimensions = _inside(trips, dimensions, resolution, within)
    parents = [parent_of(dimensions, number) for number in range(len(dimensions))]
    before = dimensions
    trips, dimensions = _without_rare(trips, dimensions, parents, rule)
    left_out = [each.segment(value) for each, now in zip(before, dimensions, strict=True) for value in _gone(each, now)]
    ground = _Ground.of(trips, dimensions, parents, rule, resolution)
    if zoning is None:
        attempt = _search(ground, segment_budget, method, options)
        parameters = {**attempt.parameters, "coarseness": attempt.factor, "segment_budget": segment_budget}
    else:
        method, attempt, parameters = "zones", ground.on(zoning, 1.0, {}), {}
    if left_out:
        parameters["left_out"] = left_out
    if not attempt.plan.whole.any():
        raise RefusedError(f"nothing can be published: no flow between the zones meets {rule}")
    names = [dimension.name for dimension in dimensions]
    whole = ground.release(trips, attempt, attempt.plan.whole, method, {**parameters, "released_with": names})
    whole = replace(whole, seconds=time.perf_counter() - started)
    parts = [part for number in range(len(dimensions)) for part in _parts(ground, attempt, number, method, parameters)]
    shares = {each.name: share for each, share in zip(dimensions, attempt.plan.shares, strict=True)}
    return Together(whole, tuple(parts), attempt.factor, shares)


def _inside(
    trips: Trips, dimensions: Sequence[Dimension], resolution: int, within: Area | None
) -> tuple[Trips, list[Dimension]]:
    """Keep the trips inside an area, so that segments need no account of those outside."""
    if within is None:
        return trips, list(dimensions)
    lat_lon = [trips.table.column(name).to_numpy() for name in COORDINATES]
    inside = within.contains(latlng_to_cell(lat_lon[0], lat_lon[1], resolution))
    inside &= within.contains(latlng_to_cell(lat_lon[2], lat_lon[3], resolution))
    if not inside.any():
        raise InputError("no trip has both ends inside the area; check the cells or the outline")
    return _reject(trips, ~inside, "outside the area"), [each.select(inside) for each in dimensions]


def _reject(trips: Trips, which: Bools, reason: str) -> Trips:
    count = int(np.count_nonzero(which))
    if not count:
        return trips
    weight = 0 if trips.weight is None else int(trips.weight[which].sum())
    account = {**trips.source.rejected, reason: Rejected(count, count, weight)}
    return replace(trips.select(~which), source=replace(trips.source, rejected=account))


def _without_rare(
    trips: Trips, dimensions: list[Dimension], parents: Sequence[int | None], rule: Rule
) -> tuple[Trips, list[Dimension]]:
    everyone = trips
    keep = np.ones(len(trips), dtype=bool)
    while True:
        here, split = everyone.select(keep), [each.select(keep) for each in dimensions]
        gone = np.zeros(len(here), dtype=bool)
        for each, parent in zip(split, parents, strict=True):
            gone |= too_few(here, each, None if parent is None else split[parent], rule)
        if not gone.any():
            break
        keep[np.flatnonzero(keep)[gone]] = False
    if not keep.any():
        raise RefusedError(f"nothing can be published: no segment meets {rule}")
    return _reject(everyone, ~keep, RARE), split


def _gone(before: Dimension, now: Dimension) -> list[int]:
    return [int(value) for value in np.setdiff1d(before.value, now.value)]


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A zoning, for thresholds raised by a factor, and what can be published on it."""

    factor: float
    zoning: Zoning
    plan: Plan
    number_of: Ints
    width: int
    parameters: dict[str, Any]


@dataclass(frozen=True, eq=False)
class _Ground:
    """The data that zonings are tried on."""

    trips: Trips
    dimensions: Sequence[Dimension]
    parents: Sequence[int | None]
    rule: Rule
    resolution: int
    od: ODMatrix
    origin: Ints
    destination: Ints

    @classmethod
    def of(
        cls, trips: Trips, dimensions: Sequence[Dimension], parents: Sequence[int | None], rule: Rule, resolution: int
    ) -> _Ground:
        od = build_od(trips, resolution=resolution)
        lat_lon = [trips.table.column(name).to_numpy() for name in COORDINATES]
        origin = np.searchsorted(od.origins.leaves, latlng_to_cell(lat_lon[0], lat_lon[1], resolution))
        destination = np.searchsorted(od.destinations.leaves, latlng_to_cell(lat_lon[2], lat_lon[3], resolution))
        return cls(trips, dimensions, parents, rule, resolution, od, origin, destination)

    def attempt(self, factor: float, method: str, options: dict[str, Any]) -> _Attempt | str:
        """Choose zones as if the thresholds were higher, and see what can be published; a text says why nothing."""
        release = anonymize(self.od, _raised(self.rule, factor), method=method, **options)
        if release.refusal:
            return release.refusal
        return self.on(zoning_of(release), factor, dict(release.parameters))

    def on(self, zoning: Zoning, factor: float, parameters: dict[str, Any]) -> _Attempt:
        """See what can be published on a zoning."""
        _, origin_zone = lay_over(zoning.origins, self.od.origins)
        _, destination_zone = lay_over(zoning.destinations, self.od.destinations)
        width = len(zoning.destinations.ids)
        key = _keys(origin_zone[self.origin], destination_zone[self.destination], width)
        keys = np.unique(key[key >= 0])
        klass = np.where(key < 0, -1, np.searchsorted(keys, key))
        plan = make_plan(self.trips, klass, len(keys), self.dimensions, self.parents, self.rule)
        return _Attempt(factor, zoning, plan, keys, width, parameters)

    def release(
        self, trips: Trips, attempt: _Attempt, published: Bools, method: str, parameters: dict[str, Any]
    ) -> Release:
        """Return the release of some trips on the zoning, of the classes that may be published."""
        od = build_od(trips, resolution=self.resolution)
        origins, zone_of_origin = lay_over(attempt.zoning.origins, od.origins)
        destinations, zone_of_destination = lay_over(attempt.zoning.destinations, od.destinations)
        origin_zone, destination_zone = zone_of_origin[od.flows.origin], zone_of_destination[od.flows.destination]
        key = _keys(origin_zone, destination_zone, attempt.width)
        at = np.minimum(np.searchsorted(attempt.number_of, key), len(attempt.number_of) - 1)
        return assemble(
            od,
            self.rule,
            origins=origins,
            destinations=destinations,
            origin_zone=origin_zone,
            destination_zone=destination_zone,
            candidate=published[at] & (key >= 0),
            budget=None,
            method=method,
            parameters=parameters,
        )


def _keys(origin_zone: Codes, destination_zone: Codes, width: int) -> Ints:
    inside = (origin_zone >= 0) & (destination_zone >= 0)
    return np.where(inside, origin_zone.astype(np.int64) * width + destination_zone, -1)


def _raised(rule: Rule, factor: float) -> Rule:
    return Rule(
        trips=None if rule.trips is None else ceil(rule.trips * factor),
        weight=None if rule.weight is None else float(rule.weight) * factor,
        persons=None if rule.persons is None else ceil(rule.persons * factor),
    )


def _search(ground: _Ground, budget: float, method: str, options: dict[str, Any]) -> _Attempt:
    """Return the finest zoning on which every dimension stays within its budget, or the one that comes closest."""
    first = ground.attempt(1.0, method, options)
    if isinstance(first, str):
        raise RefusedError(f"nothing can be published: {first}")
    best, low, high = first, 0, ceil(STEPS_PER_DOUBLING * log2(max(len(ground.trips), 2)))
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


def _worst(attempt: _Attempt) -> float:
    return max(attempt.plan.shares)


def _parts(ground: _Ground, attempt: _Attempt, number: int, method: str, parameters: dict[str, Any]) -> list[Part]:
    dimension, published = ground.dimensions[number], attempt.plan.cells[number]
    parts = []
    for value in range(len(dimension)):
        segment = dimension.segment(value)
        release = None
        which = dimension.value == value
        if published[:, value].any():
            trips = ground.trips.select(which)
            # What was turned away on reading belongs to no segment; the account of the whole has it.
            trips = replace(trips, source=Source(len(trips), ground.trips.source.sha256))
            release = ground.release(
                trips,
                attempt,
                published[:, value],
                method,
                {**parameters, "dimension": dimension.name, "segment": segment},
            )
        if which.any():
            parts.append(Part(dimension.name, segment, dimension.title(value), release))
    return parts
