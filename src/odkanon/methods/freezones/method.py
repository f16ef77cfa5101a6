"""freezones: zones that are connected unions of neighbouring cells or polygons, the same for all partners.

The seven-fold steps of an H3 hierarchy limit its cuts: a zone is too small for its flows to reach the threshold, or
seven times larger. Free zones grow and shrink cell by cell. The search takes the zones of the best pair of cuts apart
into blocks (cells of mixed levels, some hundreds of them) and anneals: blocks move across borders, zones are split and
merged, all to make ``G_total + price * suppressed`` small; see `annealing`.

Two blocks are neighbours if their cells share an edge. Across empty land, they are neighbours if their ancestors, at
the finest level that bridges the gap, are equal or share an edge. Zones are connected in that sense. With a lookup
table, each polygon is a block; see `polygon_blocks`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints, group_sum
from odkanon.core.parsing import check_not_negative
from odkanon.methods.common import of_one_height
from odkanon.methods.freezones.annealing import Schedule, anneal
from odkanon.methods.freezones.blocks import Blocks, blocks_of, children_of
from odkanon.methods.freezones.class_matrix import ZonePlan
from odkanon.methods.freezones.polygon_blocks import Polygons, polygons_of
from odkanon.methods.odkanon import refusal
from odkanon.methods.treecut.dp import PRICE, PUBLISHED, Problem, totals_of
from odkanon.methods.treecut.method import best_cuts, check_effort, release_of_first
from odkanon.methods.treecut.search import Cuts
from odkanon.model.assemble import assemble
from odkanon.model.od import AXES, Axis, ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.quality.utility import UtilityMeasure
from odkanon.zoning.cells import Cells, cell_to_parent, cell_to_resolution, cell_to_str
from odkanon.zoning.polygon_neighbours import islands
from odkanon.zoning.zones import Zones

_BLOCKS_PER_ZONE = 5
"""A block that is not a leaf has at most this fraction of the mean zone's leaves and mass."""
_POLYGONS_PER_ZONE = 8
"""Polygons per zone for which the price of an edge is calibrated; zones of more polygons have more edges."""
_TREE_ITERATIONS = 6
"""Restarts of the search for the initial cuts; annealing forgets most of their detail."""


def freezones(
    od: ODMatrix,
    rule: Rule,
    *,
    budget: float = 0.10,
    budget_of: BudgetOf = "trips",
    measure: UtilityMeasure = "trips",
    compactness: float = 1.0,
    iterations: int = 200,
    time_limit: float | None = None,
    symmetric: bool = False,
) -> Release:
    """Anonymise with zones that are free unions of neighbouring cells or polygons.

    * ``od``: over H3 cells, or over a lookup table whose leaves have outlines.
    * ``budget``: share that may be suppressed, in [0, 1).
    * ``budget_of``: share of OD pairs or of trips.
    * ``measure``: what G, the objective, counts.
    * ``compactness``: preference for compact zones, in [0, inf). 0.05 makes G some 8 % smaller on surveys, with zones
      that wind around each other; 2 makes it 4 to 8 % larger.
    * ``iterations``: turns of annealing, in [0, inf). The result depends on nothing else; 0 returns the best cuts.
    * ``time_limit``: seconds after which the best result so far is returned, in (0, inf); at least ODkAnon's answer.
    * ``symmetric``: whether both ends share one zoning.
    """
    check_effort(iterations, time_limit)
    check_not_negative("compactness", compactness, whole=False)
    rule.check_available(od.measures)
    polygons = None if od.origins.resolution is not None else polygons_of(od.origins)
    allowed = Budget(budget, budget_of)
    parameters: dict[str, Any] = {
        "budget": budget,
        "budget_of": budget_of,
        "measure": measure,
        "compactness": compactness,
        "iterations": iterations,
    }
    spec = ReleaseSpec(rule, allowed, "freezones", parameters)
    deadline = inf if time_limit is None else time.monotonic() + time_limit
    joint = None
    if symmetric:
        od, parameters["symmetric"] = of_one_height(od).in_memory(), True
        problem, joint = Problem.square(od, rule, allowed, measure)
    else:
        problem = Problem(od, rule, allowed, measure)
    cuts = best_cuts(problem, "g", _TREE_ITERATIONS, None if time_limit is None else time_limit / 3, joint=False)
    if cuts is None:
        return Release.empty(od, spec, refusal(od, rule))
    plan = best_plan(problem, cuts, iterations, deadline, compactness, polygons)
    if plan is not None:
        of_plan = zones_of_plan if polygons is None else polygons.zones
        (origins, origin_zone), (destinations, destination_zone) = (of_plan(plan, axis) for axis in (0, 1))
        release = assemble(
            od,
            spec,
            origins=origins,
            destinations=destinations,
            origin_zone=origin_zone[problem.od.flows.origin],
            destination_zone=destination_zone[problem.od.flows.destination],
        )
        # Annealing considers thresholds only. If constraints suppress too much of its result, the cuts may still do.
        if release.refusal is None or rule.thresholds_only:
            return release
    return _as_free(release_of_first((cuts,), problem, joint, od, spec))


def _as_free(release: Release) -> Release:
    """Return a release of cuts in the form of free zones: the form would disclose which search succeeded."""
    origins, destinations = (
        zones if zones.resolution is None else replace(zones, cells=tuple((name,) for name in zones.ids.tolist()))
        for zones in (release.origins, release.destinations)
    )
    return replace(release, origins=origins, destinations=destinations)


def best_plan(
    problem: Problem,
    cuts: Cuts,
    iterations: int,
    deadline: float,
    compactness: float,
    polygons: Polygons | None = None,
) -> ZonePlan | None:
    """Return the best zoning found; None if the cuts themselves are at least as good."""
    g = _g(problem, cuts)
    if iterations == 0 or g <= 2:
        return None
    start = cuts[0].zone_of_leaf, cuts[1].zone_of_leaf
    if polygons is not None:
        start = _start_by_place(problem, polygons, g, deadline) or start
    od, (origin, destination) = problem.od, _blocks(problem, cuts, polygons)
    zones = (start_zones(origin, start[0]), start_zones(destination, start[1]))
    plan = ZonePlan.of(problem, (origin, destination), zones)
    mean_weight = od.mean_weight if od.weight_units is not None else None
    k = float(problem.rule.k_of(problem.measure, mean_weight)) * (od.flows.scale if problem.measure == "weight" else 1)
    if polygons is not None:
        compactness *= min(
            1.0, _POLYGONS_PER_ZONE * sum(len(np.unique(each)) for each in zones) / (len(origin) + len(destination))
        )
    found, least = anneal(plan, Schedule(iterations, deadline, k, problem.allowance, compactness))
    return plan.with_zones(found) if least < g else None


def _g(problem: Problem, cuts: Cuts) -> float:
    totals = totals_of(problem, cuts)
    return float(totals[PRICE] / totals[PUBLISHED])


def _start_by_place(problem: Problem, polygons: Polygons, g: float, deadline: float) -> tuple[Codes, Codes] | None:
    """Return the zone of each leaf in the best cuts of a spatial tree; None if they are no better than ``g``."""
    trees = polygons.nearby(problem.od.origins), polygons.nearby(problem.od.destinations)
    counts = problem.counts
    if counts is not None:
        counts = counts[0][trees[0][1]], counts[1][trees[1][1]]
    placed = replace(problem, od=problem.od.on_trees(*trees), counts=counts)
    left = None if deadline == inf else max((deadline - time.monotonic()) / 3, 1e-3)
    cuts = best_cuts(placed, "g", _TREE_ITERATIONS, left, joint=False)
    if cuts is None or not _g(placed, cuts) < g:
        return None
    first, second = (np.empty(len(order), dtype=np.int32) for _, order in trees)
    first[trees[0][1]], second[trees[1][1]] = cuts[0].zone_of_leaf, cuts[1].zone_of_leaf
    return first, second


def _blocks(problem: Problem, cuts: Cuts, polygons: Polygons | None) -> tuple[Blocks, Blocks]:
    """Return the blocks of both axes; for one zoning the same ones, each with the leaves of its axis."""
    od, measure = problem.od, problem.measure
    if polygons is not None and problem.counts is None:
        return polygons.blocks(od.origins), polygons.blocks(od.destinations)
    masses = [od.node_masses(axis, measure) for axis in AXES]
    enough = [enough_at(od, axis, problem.rule) for axis in AXES]
    if problem.counts is None:
        first, second = (
            blocks_of(od.tree(axis), mass, good, cut, _BLOCKS_PER_ZONE * len(cut))
            for axis, mass, good, cut in zip(AXES, masses, enough, cuts, strict=True)
        )
        return first, second
    if polygons is not None:
        both = polygons.blocks(od.origins)
    else:
        mass = tuple(one + other for one, other in zip(*masses, strict=True))
        good = [one | other for one, other in zip(*enough, strict=True)]
        both = blocks_of(od.origins, mass, good, cuts[0], _BLOCKS_PER_ZONE * len(cuts[0]))
    first, second = (
        replace(both, leaves=group_sum(both.block_of_leaf, len(both), counts)) for counts in problem.counts
    )
    return first, second


def enough_at(od: ODMatrix, axis: Axis, rule: Rule) -> list[Bools]:
    """Return for each level and node of an axis whether the trips that begin, or end, there meet the thresholds."""
    tree, flows = od.tree(axis), od.flows.only(rule.required_measures)
    node, found = (flows.origin if axis == "origin" else flows.destination), []
    for level, ids in enumerate(tree.ids):
        # Flows are at nodes of the level below, each given by its first leaf.
        at = tree.codes[level][node if level == 0 else tree.starts[level - 1][flows.origin]]
        flows = flows.merge(at, np.zeros(len(at), dtype=np.int32))[0]
        found.append(np.zeros(len(ids), dtype=bool))
        found[-1][flows.origin] = rule.meets_thresholds(flows)
    return found


def start_zones(blocks: Blocks, zone_of_leaf: Codes) -> Ints:
    """Return the zones of a cut for each block, each zone connected.

    Empty blocks join a neighbouring zone, from the borders inwards. A zone whose blocks are separated by other zones or
    empty land is divided.
    """
    zone = np.full(len(blocks), -1, dtype=np.int64)
    zone[blocks.block_of_leaf] = zone_of_leaf
    source, target = blocks.edges
    while (zone < 0).any():
        border = (zone[source] < 0) & (zone[target] >= 0)
        joining, first = np.unique(source[border], return_index=True)
        zone[joining] = zone[target[border][first]]
    return islands(len(blocks), blocks.edges[:, zone[source] == zone[target]])


def zones_of_plan(plan: ZonePlan, axis: int) -> tuple[Zones, Codes]:
    """Return the zones of one axis for publication, and for each leaf the number of its zone.

    A zone is named after the smallest of its cells and the number of its other cells.
    """
    blocks = plan.blocks[axis]
    zone = np.unique(plan.zones[axis], return_inverse=True)[1]
    cells, owner = compact(blocks.cells, zone)
    order = np.lexsort((cells, owner))
    cells, owner = cells[order], owner[order]
    text, first = cell_to_str(cells), np.flatnonzero(np.diff(owner, prepend=-1))
    count = np.diff(first, append=len(cells))
    lists = tuple(tuple(part.tolist()) for part in np.split(text, first[1:]))
    ids = [part[0] if len(part) == 1 else f"{part[0]}+{len(part) - 1}" for part in lists]
    leaves = np.bincount(zone, blocks.leaves).astype(np.int64)
    resolution = np.where(count == 1, cell_to_resolution(cells[first]), -1)
    zones = Zones(np.array(ids, dtype=np.str_), leaves, resolution, cells=lists)
    return zones, zone[blocks.block_of_leaf].astype(np.int32)


def compact(cells: Cells, owner: Ints) -> tuple[Cells, Ints]:
    """Replace the children of a cell by the cell if all of them have the same owner."""
    resolution = int(cell_to_resolution(cells).max(initial=0))
    while resolution > 0:
        here = cell_to_resolution(cells) == resolution
        parents, number = np.unique(cell_to_parent(cells[here], resolution - 1), return_inverse=True)
        if len(parents):
            expected = np.bincount(
                np.searchsorted(parents, cell_to_parent(children_of(parents), resolution - 1)), minlength=len(parents)
            )
            lowest, highest = np.full(len(parents), len(cells)), np.full(len(parents), -1)
            np.minimum.at(lowest, number, owner[here])
            np.maximum.at(highest, number, owner[here])
            whole = (lowest == highest) & (np.bincount(number, minlength=len(parents)) == expected)
            stay = ~here
            stay[here] = ~whole[number]
            cells = np.concatenate([cells[stay], parents[whole]])
            owner = np.concatenate([owner[stay], lowest[whole]])
        resolution -= 1
    return cells, owner
