"""Intervals: the least and the most trips that each group can have which no row lists by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from odkanon.audit.differencing.equations import EquationSystem, comparable_components, incidence_matrix
from odkanon.audit.pairwise_checks import overlapping_systems
from odkanon.audit.relations import Relation, count_atoms, find_relations
from odkanon.core.arrays import Bools, Ints
from odkanon.evidence.attack_context import Case
from odkanon.evidence.attacks.cascade_intervals import groups_on_ladder
from odkanon.evidence.finding import EXAMPLES, Finding

SURE = 1e-6


@dataclass(frozen=True)
class Interval:
    """What all worlds with the same rows agree on for a group: its least and most trips, and what it truly has."""

    least: float
    most: float
    truth: float


def intervals(case: Case) -> Finding:
    """Work out between which numbers each group must lie that is too small to be listed.

    For rows that lie in each other, the attacker follows the ladder. For rows of several releases that share trips,
    every published number is an equation over what the rows tell apart, and two linear programmes give the least and
    the most that a group can have. In a single table of separate flows a group that is not listed may be empty, and has
    fewer trips than a rule on trips asks for; nothing else follows.

    References
    ----------
    Fischetti, Salazar 2001, "Solving the cell suppression problem on tabular data with linear constraints" (the
    attacker's problem); Huangfu, Hall 2018, "Parallelizing the dual revised simplex method" (HiGHS).
    """
    if case.release.nested:
        return groups_on_ladder(case)
    related = find_relations(
        case.opened.releases,
        count_atoms(
            case.opened.connection,
            [each for each in case.opened.releases if each.number in case.opened.exact],
            case.opened.places.areas,
        ),
        case.opened.exact,
        cumulative=False,
        disjoint=False,
    )
    usable = [
        each for each in related if each.kind not in ("disjoint", "unknown") and not each.one.nested | each.other.nested
    ]
    if not usable:
        return _alone(case)
    return _together(case, usable)


def _alone(case: Case) -> Finding:
    upper = _most(case)
    zones = [len(zones) for zones in case.release.zones.values()]
    groups = max(zones[0] * zones[1] - case.trips.rows, 0) if not case.release.has_boxes else 0
    between = "may be empty, and nothing says how many trips it has at most"
    if upper is not None:
        between = f"has between 0 and {upper:,} trips"
    return Finding(
        f"One table of separate flows: each of {groups:,} pairs of zones without a row {between}; none can be shown to "
        "have any.",
        tried=groups,
        of=groups,
        numbers={"shown to exist": 0, "groups": groups, "most": upper},
    )


def _most(case: Case) -> int | None:
    """Return the most trips of two zones between which no row is; None where neither the rule nor the rows bound them.

    A flow may fail a rule on weight or persons with any number of trips, and what was suppressed before, for a share or
    because of other tables may have more than the rule asks for. So may one flow that went with the rest.
    """
    release = case.release
    told = release.manifest.get("unlisted", {}).get("at_most_trips")
    bounds = [] if told is None else [int(told)]
    alone = not {"segment", "released_with"} & release.parameters.keys()
    if case.by_trips and alone and not release.constraints and not release.thinned:
        beside = case.about.get("companion", {}).get("trips", 0)
        bounds.append(max(case.few - 1, int(beside)))
    return min(bounds, default=None)


def _together(case: Case, related: Sequence[Relation]) -> Finding:
    opened = case.opened
    atoms = count_atoms(
        opened.connection, [each for each in opened.releases if each.number in opened.exact], opened.places.areas
    )
    parts = [
        (system.take(which), columns)
        for system in overlapping_systems(opened.connection, opened.places, atoms, related)
        for which in comparable_components(system.rows)
        for columns in [small_columns(system.take(which))]
        if len(columns)
    ]
    of = sum(len(columns) for _, columns in parts)
    found: list[Interval] = []
    for system, columns in parts:
        found += bounds(system, columns, case.watch.left)
        if not case.watch.goes_on(len(found), of, sum(each.least > SURE for each in found)):
            break
    shown = [each for each in found if each.least > SURE]
    narrow = [each for each in found if each.most - each.least < case.few - SURE]
    finished = f"{len(found):,} of {of:,} groups below the rule were tried"
    return Finding(
        f"{finished}: {len(shown):,} can be shown to exist, and {len(narrow):,} are known to within less than "
        f"{case.few:,} trips.",
        found=len(shown),
        tried=len(found),
        of=of,
        numbers={
            "shown to exist": len(shown),
            "narrow": len(narrow),
            "not finished": 1 - len(found) / of if of else 0.0,
        },
        examples=tuple(f"{each.least:.4g} to {each.most:.4g} trips" for each in shown[:EXAMPLES]),
    )


def small_columns(system: EquationSystem) -> Ints:
    """Return the columns that have trips, and too few; what is a row by itself is published and meets its rule."""
    trips = system.mass[:, 0]
    return np.flatnonzero((trips > 0) & (trips < system.least[0]) & ~_listed_alone(system))


def _listed_alone(system: EquationSystem) -> Bools:
    alone = np.zeros(len(system.rows), dtype=bool)
    for side in range(system.rows.shape[1]):
        rows = system.rows[:, side]
        _, number, count = np.unique(rows, return_inverse=True, return_counts=True)
        alone |= (rows >= 0) & (count[number] == 1)
    return alone


def bounds(system: EquationSystem, columns: Ints, seconds: float) -> Iterator[Interval]:
    """Yield the interval of each of some columns, by two linear programmes each; stop when the time is over."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    end = monotonic() + seconds
    _, matrix = incidence_matrix(system.rows)
    trips = system.mass[:, 0]
    equations = {"A_eq": csr_matrix(matrix.astype(float)), "b_eq": matrix @ trips, "bounds": (0, None)}
    for column in columns.tolist():
        goal = np.zeros(len(trips))
        goal[column] = 1
        left = end - monotonic()
        if left <= 0:
            return
        low = linprog(goal, method="highs", options={"time_limit": left}, **equations)
        high = linprog(-goal, method="highs", options={"time_limit": left}, **equations)
        if low.status not in (0, 3) or high.status not in (0, 3):
            return
        most = np.inf if high.status == 3 else -float(high.fun)
        yield Interval(float(low.fun), most, float(trips[column]))
