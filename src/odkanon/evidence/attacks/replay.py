"""The replay attack: search for an input without a small group from which the method makes the very same release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from odkanon.audit.row_nesting import join_attributes
from odkanon.core.arrays import Bools, Ints
from odkanon.evidence.attack import MAX_EXAMPLES, Attack, AttackResult, not_run
from odkanon.evidence.attack_context import AttackContext
from odkanon.methods.median_cuts import Grid
from odkanon.methods.method_registry import METHODS, anonymize
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.zoning.zones import Zones

GROUPS = 256  # the number of groups to try
BATCH = 32  # the number of groups that are emptied at once
ATTEMPTS = 4  # the number of alternative inputs to try for a single group
LEVELS = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 2))
"""By how many levels the ends of a pair are coarsened to form a group; mostly finer than any published zone."""


@dataclass(frozen=True, eq=False)
class SmallGroup:
    """A group below the rule, inside one row."""

    pairs: Ints
    others: Ints
    """The pairs of the row in the group, and those outside it."""
    levels: tuple[int, int]  # by how many levels the ends of the group are coarsened
    name: str  # a label


def replay(context: AttackContext) -> AttackResult:
    """Empty small groups, move their trips to other pairs of the same row, and run the method again.

    If the rows stay the same, not even an attacker who knows the method, its merge order, its stopping criterion and
    its lower bounds can distinguish the two inputs, so the group is certainly not disclosed. Groups are emptied in
    batches, and a batch is split in two if the rows differ.

    References
    ----------
    Cohen 2022, "Attacks on deidentification's defenses" (downcoding).
    """
    segment = context.release.parameters.get("segment")
    if context.method not in METHODS or not context.release.recipe or segment is not None:
        return not_run(
            "How the release was made is not known well enough to make it again (no recipe, or one of several)."
        )
    if "rows" in context.options:
        return not_run("Only rows of an earlier release were listed, so this one cannot be repeated alone.")
    od = context.od
    if not context.matrix_matches:
        return not_run("The trips were not read as the release was made: give its filter and its area.")
    made = anonymize(od, context.rule, method=context.method, **context.options)
    if made.refusal is not None or not _is_published(context, made):
        return not_run("Made again from the trips, the release has other rows: it was made otherwise, or changed.")
    groups = small_groups(od, made, context.min_trips, context.seed)
    if not groups:
        return not_run("No group of these trips is below the rule, so there is none to do without.")
    hidden, unsettled = _find_alternatives(context, made, groups, np.random.default_rng(context.seed))
    total = len(groups)
    message = f"For {hidden:,} of {total:,} groups below the rule, another input without them publishes the same rows"
    more = f"; for {len(unsettled):,} none was found in {ATTEMPTS} tries, which proves nothing" if unsettled else ""
    return AttackResult(
        f"{message}: the method's decisions do not show that they exist{more}.",
        tried=hidden + len(unsettled),
        of=total,
        unsettled=len(unsettled),
        numbers={"groups": total, "not shown": hidden, "no other world found": len(unsettled)},
        examples=tuple(group.name for group in unsettled[:MAX_EXAMPLES]),
    )


def _is_published(context: AttackContext, made: Release) -> bool:
    """Return whether a release in memory has the rows of the release on disk."""
    table, names = made.to_arrow(), context.release.axes
    columns = ("origin", "destination", "trips", *names)
    rows = {
        (origin, destination, join_attributes(names, values), trips)
        for origin, destination, trips, *values in zip(*(table[name].to_pylist() for name in columns), strict=True)
    }
    published = context.opened.connection.execute(
        f"SELECT origin, destination, attributes, trips::BIGINT FROM classes WHERE release = {context.release.number}"
    ).fetchall()
    return rows == set(published)


def _find_alternatives(
    context: AttackContext, made: Release, groups: list[SmallGroup], random: np.random.Generator
) -> tuple[int, list[SmallGroup]]:
    """Return for how many groups an alternative input was found, and the groups for which none was."""
    waiting = [(groups[at : at + BATCH], 0) for at in range(0, len(groups), BATCH)][::-1]
    hidden, unsettled = 0, list[SmallGroup]()
    square = squares_of_origins(made.od) if context.release.has_boxes else None
    first = context.release.nested or square is not None
    while waiting and context.timer.keep_going(hidden + len(unsettled), len(groups)):
        batch, attempts = waiting.pop()
        adjacent = first != (attempts % 2 == 1)
        other = move_trips(made.od, batch, random, context.min_trips, square, adjacent=adjacent)
        if _same_rows(made, anonymize(other, context.rule, method=context.method, **context.options)):
            hidden += len(batch)
        elif len(batch) > 1:
            middle = len(batch) // 2
            waiting += [(batch[middle:], 0), (batch[:middle], 0)]
        elif attempts + 1 < ATTEMPTS:
            waiting.append((batch, attempts + 1))
        else:
            unsettled += batch
    return hidden, unsettled


def _same_rows(one: Release, other: Release) -> bool:
    """Return whether two releases publish the same rows, zones and upper bound of unlisted trips."""
    return (
        other.refusal is None
        and one.unlisted == other.unlisted
        and one.to_arrow().equals(other.to_arrow())
        and _same_zones(one.origins, other.origins)
        and _same_zones(one.destinations, other.destinations)
    )


def _same_zones(one: Zones, other: Zones) -> bool:
    if one.bounds is not None and (other.bounds is None or not np.array_equal(one.bounds, other.bounds)):
        return False
    return np.array_equal(one.ids, other.ids)


def small_groups(od: ODMatrix, made: Release, min_trips: int, seed: int) -> list[SmallGroup]:
    """Sample groups below the rule, at most one per row: all trips between two nodes of the hierarchies."""
    random = np.random.default_rng(seed)
    area, flows = made.area_of_pair, od.flows
    chosen: dict[int, SmallGroup] = {}
    order = random.permutation(np.flatnonzero(made.published & (flows.trips < min_trips)))
    by_row = np.argsort(area, kind="stable")
    ends = np.searchsorted(area[by_row], np.arange(len(made.classes) + 1))
    for at in order.tolist():
        row = int(area[at])
        if row in chosen:
            continue
        own = by_row[ends[row] : ends[row + 1]]
        up, down = (0, 0) if made.origins.bounds is not None else LEVELS[int(random.integers(len(LEVELS)))]
        inside = _within(od, own, at, up, down, [bool(random.integers(2)) for _ in od.axes])
        if flows.trips[own[inside]].sum() >= min_trips or inside.all():
            inside, up, down = own == at, 0, 0
        if not inside.all():
            name = f"{int(flows.trips[own[inside]].sum())} trips of row {row}"
            chosen[row] = SmallGroup(own[inside], own[~inside], (up, down), name)
        if len(chosen) == GROUPS:
            break
    return list(chosen.values())


def _within(od: ODMatrix, pairs: Ints, pair: int, up: int, down: int, same: Sequence[bool]) -> Bools:
    """Return which pairs lie between the ancestors of the ends of one pair, with the same value of some attributes."""
    found = np.ones(len(pairs), dtype=bool)
    for tree, leaf, level in ((od.origins, od.flows.origin, up), (od.destinations, od.flows.destination, down)):
        codes = tree.codes[min(level, tree.top)]
        found &= codes[leaf[pairs]] == codes[leaf[pair]]
    for values in compress(od.flows.attributes, same):
        found &= values[pairs] == values[pair]
    return found


def squares_of_origins(od: ODMatrix) -> Ints:
    """Return the square of the public grid of each origin; borders do not separate places in the same square."""
    assert od.origins.resolution is not None
    lat, lon = od.origins.centres
    column, row = Grid.of_resolution(od.origins.resolution).squares(lon, lat)
    return np.unique(column * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]


def move_trips(
    od: ODMatrix,
    groups: list[SmallGroup],
    random: np.random.Generator,
    min_trips: int,
    square: Ints | None,
    *,
    adjacent: bool,
) -> ODMatrix:
    """Return the matrix with the trips of some groups moved elsewhere.

    With ``adjacent`` they move to a neighbouring origin where the group stays below the rule, else (or without such an
    origin) to other pairs of their row.
    """
    flows = od.flows
    origin, destination, *attributes = (each.copy() for each in (flows.origin, flows.destination, *flows.attributes))
    for group in groups:
        place = _adjacent_origin(od, group, random, min_trips, square) if adjacent else None
        if place is not None:
            origin[group.pairs] = place
            continue
        target = random.choice(group.others, len(group.pairs))
        for each in (origin, destination, *attributes):
            each[group.pairs] = each[target]
    merged = replace(flows, origin=origin, destination=destination, attributes=tuple(attributes)).merge_attributes()
    moved = replace(od, flows=replace(merged, pairs=np.ones_like(merged.pairs)))
    return moved.take(np.ones(len(merged), dtype=bool))


def _adjacent_origin(
    od: ODMatrix, group: SmallGroup, random: np.random.Generator, min_trips: int, square: Ints | None
) -> int | None:
    """Return an origin with the same parent, or in the same square, that can take the trips of a group; else None."""
    up, down = group.levels
    origins, flows, first = od.origins, od.flows, group.pairs[0]
    if square is None and up >= origins.top:
        return None
    own, around = origins.codes[up], origins.codes[up + 1] if square is None else square
    start = flows.origin[first]
    candidates = np.flatnonzero((around == around[start]) & (own != own[start]))
    end = od.destinations.codes[min(down, od.destinations.top)]
    there = end[flows.destination] == end[flows.destination[first]]
    trips = np.bincount(own[flows.origin[there]], weights=flows.trips[there], minlength=int(own.max()) + 1)
    free = candidates[trips[own[candidates]] + flows.trips[group.pairs].sum() < min_trips]
    return int(random.choice(free)) if len(free) else None


REPLAY = Attack(
    "replay",
    "Replay",
    asks="Do the method's own decisions show that a finer group exists?",
    question="inference",
    number="no other world found",
    breaks=True,
    run=replay,
)
