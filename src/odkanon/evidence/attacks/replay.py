"""Replay: look for another input, without a small group, for which the method publishes the very same rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import EXAMPLES, Finding, not_run
from odkanon.methods.method_registry import METHODS, anonymize
from odkanon.methods.mondrian.grid import Grid
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release

GROUPS = 256
"""How many groups are looked at."""
TOGETHER = 32
"""How many of them are emptied at once."""
AGAIN = 4
"""How often another world is looked for, for a group of which the first one did not do."""
LEVELS = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 2))
"""How far the ends of a pair are lifted to make a group: finer than any zone that is published, as a rule."""


@dataclass(frozen=True, eq=False)
class Group:
    """Some trips below the rule, inside one row.

    Attributes
    ----------
    pairs, others : array of int
        Which pairs of the row are of the group, and which are not.
    levels : tuple of int
        How far its ends are lifted.
    name : str
        What to call it.
    """

    pairs: Ints
    others: Ints
    levels: tuple[int, int]
    name: str


def replay(case: Case) -> Finding:
    """Empty small groups, give their trips to other pairs of the same row, and run the method again.

    If the rows come out the same, whoever knows the method, its merge order, its stopping point and its limits cannot
    tell the two inputs apart: the group has not been shown to exist, and that is certain, because the other world is at
    hand. Many groups are emptied at once, and halved where the rows differ.

    References
    ----------
    Cohen 2022, "Attacks on deidentification's defenses" (downcoding).
    """
    if case.method not in METHODS or not case.release.recipe or case.release.parameters.get("segment") is not None:
        return not_run(
            "How the release was made is not known well enough to make it again (no recipe, or one of several)."
        )
    od = case.od
    if not case.reads_alike:
        return not_run("The trips were not read as the release was made: give its filter and its area.")
    made = anonymize(od, case.rule, method=case.method, **case.options)
    if made.refusal is not None or not _is_release(case, made):
        return not_run("Made again from the trips, the release has other rows: it was made otherwise, or changed.")
    groups = small_groups(od, made, case.few, case.seed)
    random = np.random.default_rng(case.seed)
    held, unsettled = _settle(case, made, groups, random)
    of = len(groups)
    said = f"For {held:,} of {of:,} groups below the rule, another input without them publishes the same rows"
    more = f"; for {len(unsettled):,} none was found in {AGAIN} tries, which proves nothing" if unsettled else ""
    return Finding(
        f"{said}: the method's decisions do not show that they exist{more}.",
        tried=held + len(unsettled),
        of=of,
        unsettled=len(unsettled),
        numbers={"groups": of, "not shown": held, "no other world found": len(unsettled)},
        examples=tuple(group.name for group in unsettled[:EXAMPLES]),
    )


def _is_release(case: Case, made: Release) -> bool:
    """Tell whether a release in memory is the one on disk, row by row."""
    table = made.to_arrow()
    told = set(zip(*(table.column(name).to_pylist() for name in ("origin", "destination", "trips")), strict=True))
    listed = case.opened.connection.execute(
        f"SELECT origin, destination, trips FROM classes WHERE release = {case.release.number}"
    ).fetchall()
    return told == {(origin, destination, int(trips)) for origin, destination, trips in listed}


def _settle(case: Case, made: Release, groups: list[Group], random: np.random.Generator) -> tuple[int, list[Group]]:
    """Return how many groups another world is known without, and those for which none was found."""
    waiting = [(groups[at : at + TOGETHER], 0) for at in range(0, len(groups), TOGETHER)][::-1]
    held, unsettled = 0, list[Group]()
    square = squares_of(made.od) if case.release.has_boxes else None
    first = case.release.nested or square is not None
    while waiting and case.watch.goes_on(held + len(unsettled), len(groups)):
        some, tries = waiting.pop()
        other = emptied(made.od, some, random, case.few, square, beside=first != (tries % 2 == 1))
        if _same_rows(made, anonymize(other, case.rule, method=case.method, **case.options)):
            held += len(some)
        elif len(some) > 1:
            middle = len(some) // 2
            waiting += [(some[middle:], 0), (some[:middle], 0)]
        elif tries + 1 < AGAIN:
            waiting.append((some, tries + 1))
        else:
            unsettled += some
    return held, unsettled


def _same_rows(one: Release, other: Release) -> bool:
    """Tell whether two releases publish the same: rows, zones, and how many trips are missing at most."""
    return (
        other.refusal is None
        and one.unlisted == other.unlisted
        and one.to_arrow().equals(other.to_arrow())
        and all(
            np.array_equal(getattr(one, axis).ids, getattr(other, axis).ids)
            and (
                getattr(one, axis).bounds is None
                or np.array_equal(getattr(one, axis).bounds, getattr(other, axis).bounds)
            )
            for axis in ("origins", "destinations")
        )
    )


def small_groups(od: ODMatrix, made: Release, few: int, seed: int) -> list[Group]:
    """Draw groups below the rule, at most one from each row: all trips between two nodes of the trees."""
    random = np.random.default_rng(seed)
    area, flows = made.area_of_pair, od.flows
    chosen: dict[int, Group] = {}
    order = random.permutation(np.flatnonzero(made.published & (flows.trips < few)))
    by_row = np.argsort(area, kind="stable")
    ends = np.searchsorted(area[by_row], np.arange(len(made.classes) + 1))
    for at in order.tolist():
        row = int(area[at])
        if row in chosen:
            continue
        own = by_row[ends[row] : ends[row + 1]]
        up, down = (0, 0) if made.origins.bounds is not None else LEVELS[int(random.integers(len(LEVELS)))]
        inside = _within(od, own, at, up, down)
        if flows.trips[own[inside]].sum() >= few or inside.all():
            inside, up, down = own == at, 0, 0
        if not inside.all():
            name = f"{int(flows.trips[own[inside]].sum())} trips of row {row}"
            chosen[row] = Group(own[inside], own[~inside], (up, down), name)
        if len(chosen) == GROUPS:
            break
    return list(chosen.values())


def _within(od: ODMatrix, pairs: Ints, pair: int, up: int, down: int) -> Bools:
    """Tell which pairs lie between the ancestors of the ends of one pair."""
    found = np.ones(len(pairs), dtype=bool)
    for tree, leaf, level in ((od.origins, od.flows.origin, up), (od.destinations, od.flows.destination, down)):
        codes = tree.codes[min(level, tree.top)]
        found &= codes[leaf[pairs]] == codes[leaf[pair]]
    return found


def squares_of(od: ODMatrix) -> Ints:
    """Return for each origin its square of the public grid; borders do not tell places in one square apart."""
    assert od.origins.resolution is not None
    lat, lon = od.origins.centres
    column, row = Grid.of_resolution(od.origins.resolution).squares(lon, lat)
    return np.unique(column * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]


def emptied(
    od: ODMatrix, groups: list[Group], random: np.random.Generator, few: int, square: Ints | None, *, beside: bool
) -> ODMatrix:
    """Return the matrix in which the trips of some groups are made elsewhere.

    ``beside`` them: from a place next to theirs from which so many more are still below the rule; else between other
    pairs of their row.
    """
    origin, destination = od.flows.origin.copy(), od.flows.destination.copy()
    for group in groups:
        place = _place_beside(od, group, random, few, square) if beside else None
        if place is not None:
            origin[group.pairs] = place
            continue
        target = random.choice(group.others, len(group.pairs))
        origin[group.pairs], destination[group.pairs] = od.flows.origin[target], od.flows.destination[target]
    merged, _ = od.flows.merge(origin, destination)
    moved = replace(od, flows=replace(merged, pairs=np.ones_like(merged.pairs)))
    return moved.take(np.ones(len(merged), dtype=bool))


def _place_beside(od: ODMatrix, group: Group, random: np.random.Generator, few: int, square: Ints | None) -> int | None:
    """Return an origin next to that of a group, which has room for its trips; None for none.

    Next to it: with the same parent, or in the same square of a grid.
    """
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
    free = candidates[trips[own[candidates]] + flows.trips[group.pairs].sum() < few]
    return int(random.choice(free)) if len(free) else None
