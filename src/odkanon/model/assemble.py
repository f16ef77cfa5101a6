"""From a zoning to a release: merge flows, publish the classes that meet the rule, and account for the others."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from odkanon.core.arrays import Bools, Codes, locate
from odkanon.model.flows import Flows, Totals
from odkanon.model.od import ODMatrix
from odkanon.model.published_flows import Assignment, published_classes
from odkanon.model.release import Release
from odkanon.model.release_spec import (
    TOO_FEW_SUPPRESSED,
    Budget,
    ReleaseSpec,
    Spendable,
    Structure,
    satisfied_jointly,
    smallest_class,
)
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut
from odkanon.zoning.zones import Zones, zones_of_cut


def assemble(
    od: ODMatrix,
    spec: ReleaseSpec,
    *,
    origins: Zones,
    destinations: Zones,
    origin_zone: Codes,
    destination_zone: Codes,
    candidate: Bools | None = None,
    structure: Structure = Structure.PARTITION,
) -> Release:
    """Return the release of a matrix on a zoning: the classes that meet the rule.

    * ``origins``, ``destinations``: the zones.
    * ``origin_zone``, ``destination_zone``: for each OD pair, the numbers of its zones; -1 if it lies in none.
    * ``candidate``: for each OD pair, whether it may be published; by default, all may.
    """
    rule, budget = spec.rule, spec.budget
    candidate = np.ones(len(od), dtype=bool) if candidate is None else candidate
    merged, number = od.flows.take(candidate).merge(origin_zone[candidate], destination_zone[candidate])
    published, good = candidate.copy(), rule.satisfied_jointly(merged)
    published[candidate] = good[number]
    companion = None
    while not satisfied_jointly(od.flows, ~published, rule):
        taken = add_companion(merged, good, origins, destinations, rule)
        if taken is None or not good.any():
            return Release.empty(od, spec, TOO_FEW_SUPPRESSED)
        companion = taken if companion is None else companion + taken
        published[candidate] = good[number]
    if not rule.thresholds_only and budget is not None:
        # Constraints are not monotone and may suppress any number of flows, so all suppressed flows count.
        companion, spent = None, budget.mass(od.flows, ~published)
        if spent > budget.allowance(od.flows):
            return Release.empty(od, spec, over_budget(rule, budget, od.flows, spent))
    origins, destinations, classes, rows = published_classes(merged, good, origins, destinations)
    class_of_merged = np.full(len(merged), -1, dtype=np.int32)
    class_of_merged[rows] = np.arange(len(rows))
    area = _area(merged, class_of_merged, origin_zone, destination_zone)
    return Release(
        od.summary,
        spec,
        origins,
        destinations,
        classes,
        od.flows.totals(~published),
        structure,
        Assignment(od, area, published),
        companion=companion,
    )


def over_budget(rule: Rule, budget: Budget, whole: Spendable, spent: int) -> str:
    """Return the message for constraints beyond thresholds that exceed the budget."""
    share = ceil(Fraction(spent, budget.mass(whole)) * 1000) / 1000
    enough = f"it takes a budget of about {share:g}" if share < 1 else "no budget would do"
    return (
        f"{rule} suppresses {spent:,} {budget.of}, and no more than {budget.allowance(whole):,} may be suppressed; "
        f"{enough}, or relax the constraints beyond the thresholds"
    )


def add_companion(merged: Flows, good: Bools, origins: Zones, destinations: Zones, rule: Rule) -> Totals | None:
    """Remove the smallest class from the ``good`` ones, in place; return its totals, or None if there is no class.

    If its origin then has too few destinations, its other classes are removed, too.
    """
    if not good.any():
        return None
    before = good.copy()
    _, _, classes, rows = published_classes(merged, good, origins, destinations)
    good[rows[smallest_class(classes, rule)]] = False
    good &= rule.with_destinations(merged.origin, good)
    return merged.totals(before & ~good)


def release_of_cuts(
    od: ODMatrix, spec: ReleaseSpec, origin_cut: Cut, destination_cut: Cut, candidate: Bools | None = None
) -> Release:
    """Return the homogeneous release of one cut per axis, of the full trees or of parts of them."""
    origins, zone_of_origin = zones_of_cut(od.origins, origin_cut)
    destinations, zone_of_destination = zones_of_cut(od.destinations, destination_cut)
    return assemble(
        od,
        spec,
        origins=origins,
        destinations=destinations,
        origin_zone=zone_of_origin[od.flows.origin],
        destination_zone=zone_of_destination[od.flows.destination],
        candidate=candidate,
    )


def _area(merged: Flows, class_of_merged: Codes, origin_zone: Codes, destination_zone: Codes) -> Codes:
    """Return for each pair the class between its zones, even if the pair itself was suppressed before."""
    width = int(destination_zone.max(initial=0)) + 1
    keys = merged.origin.astype(np.int64) * width + merged.destination
    at, found = locate(keys, origin_zone.astype(np.int64) * width + destination_zone)
    return np.append(class_of_merged, np.int32(-1))[np.where(found & (destination_zone >= 0), at, -1)]
