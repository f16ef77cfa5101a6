"""From a zoning to a release: flows are merged, classes that meet the rule are kept, and nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odkanon.core.arrays import Bools, Codes
from odkanon.model.budget import Budget
from odkanon.model.classes import published_classes
from odkanon.model.companion import ALONE, met_together, smallest_class
from odkanon.model.flows import Flows, Totals
from odkanon.model.od import ODMatrix
from odkanon.model.placement import Placement
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut
from odkanon.zoning.zones import Zones, zones_of_cut


def assemble(
    od: ODMatrix,
    rule: Rule,
    *,
    origins: Zones,
    destinations: Zones,
    origin_zone: Codes,
    destination_zone: Codes,
    candidate: Bools,
    budget: Budget | None,
    method: str,
    parameters: Mapping[str, Any],
) -> Release:
    """Return the release that a zoning makes of a matrix: classes that meet the rule, and nothing else.

    Parameters
    ----------
    origins, destinations : Zones
        The zones.
    origin_zone, destination_zone : array of int
        For each OD pair, the numbers of its zones; -1 where it lies in none.
    candidate : array of bool
        For each OD pair, whether it may be published; the others are suppressed already.
    """
    merged, number = od.flows.take(candidate).merge(origin_zone[candidate], destination_zone[candidate])
    published, good = candidate.copy(), rule.met(merged)
    published[candidate] = good[number]
    companion = None
    if not met_together(od.flows, ~published, rule):
        companion = add_companion(merged, good, origins, destinations, rule)
        if not good.any():
            return Release.empty(od, rule, method, parameters, ALONE)
        published[candidate] = good[number]
    origins, destinations, classes, rows = published_classes(merged, good, origins, destinations)
    class_of_merged = np.full(len(merged), -1, dtype=np.int32)
    class_of_merged[rows] = np.arange(len(rows))
    area = _area(merged, class_of_merged, origin_zone, destination_zone)
    return Release(
        od.summary,
        rule,
        method,
        parameters,
        origins,
        destinations,
        classes,
        od.flows.totals(~published),
        budget,
        Placement(od, area, published),
        companion=companion,
    )


def add_companion(merged: Flows, good: Bools, origins: Zones, destinations: Zones, rule: Rule) -> Totals | None:
    """Take the smallest class out of the ``good`` ones, in place; return what it has, or None where there is none."""
    if not good.any():
        return None
    _, _, classes, rows = published_classes(merged, good, origins, destinations)
    smallest = rows[smallest_class(classes, rule)]
    good[smallest] = False
    return merged.totals(np.arange(len(merged)) == smallest)


def release_of_cuts(
    od: ODMatrix,
    rule: Rule,
    origin_cut: Cut,
    destination_cut: Cut,
    candidate: Bools,
    budget: Budget,
    method: str,
    parameters: Mapping[str, Any],
) -> Release:
    """Return the homogeneous release of one cut for each axis, of the full trees or of parts of them."""
    origins, zone_of_origin = zones_of_cut(od.origins, origin_cut)
    destinations, zone_of_destination = zones_of_cut(od.destinations, destination_cut)
    return assemble(
        od,
        rule,
        origins=origins,
        destinations=destinations,
        origin_zone=zone_of_origin[od.flows.origin],
        destination_zone=zone_of_destination[od.flows.destination],
        candidate=candidate,
        budget=budget,
        method=method,
        parameters=parameters,
    )


def _area(merged: Flows, class_of_merged: Codes, origin_zone: Codes, destination_zone: Codes) -> Codes:
    """For each pair, the class between its zones, also where the pair itself was suppressed before."""
    if len(merged) == 0:
        return np.full(len(origin_zone), -1, dtype=np.int32)
    width = int(destination_zone.max()) + 1
    keys = merged.origin.astype(np.int64) * width + merged.destination
    wanted = origin_zone.astype(np.int64) * width + destination_zone
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = (keys[at] == wanted) & (origin_zone >= 0) & (destination_zone >= 0)
    return np.where(found, class_of_merged[at], -1).astype(np.int32)
