"""The intervals attack: the feasibility interval of each group that is not a published row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from odkanon.audit.differencing.equations import EquationSystem, comparable_components, incidence_matrix
from odkanon.audit.pairwise_checks import overlapping_systems
from odkanon.audit.relations import find_relations
from odkanon.audit.release_reader import AXES, BETWEEN, rows
from odkanon.core.arrays import Ints
from odkanon.core.parsing import format_count
from odkanon.evidence.attack import MAX_EXAMPLES, Attack, AttackResult, does_not_apply, not_run
from odkanon.evidence.attack_context import AttackContext
from odkanon.evidence.attacks.cascade_reader import CascadeReader, CascadeVariant, LadderNode
from odkanon.methods.cascade.ladder import Ladder
from odkanon.methods.cascade.method import least_trips, ordered_ladder, without_rare_values
from odkanon.methods.cascade.roll_up import PublicationRule
from odkanon.methods.common import with_substeps
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import zones_of_tree

TOLERANCE = 1e-6


@dataclass(frozen=True)
class GroupInterval:
    """The feasibility interval of a group over all inputs with the same published rows, and its true trips."""

    least: float
    most: float
    truth: float


def intervals(context: AttackContext) -> AttackResult:
    """Compute the feasibility interval of each group that is too small to be published.

    For nested rows, the attacker follows the ladder. For rows of several releases that share trips, every published
    number is a linear equation, and two linear programmes give the minimum and maximum of a group. In a single table of
    disjoint flows, an unlisted group may be empty and has fewer trips than a rule on trips requires; nothing else
    follows.

    References
    ----------
    Fischetti, Salazar 2001, "Solving the cell suppression problem on tabular data with linear constraints" (the
    attacker's problem); Huangfu, Hall 2018, "Parallelizing the dual revised simplex method" (HiGHS).
    """
    if context.release.nested:
        return _nested_intervals(context)
    opened = context.opened
    atoms = opened.count_atoms(opened.releases)
    related = find_relations(opened.releases, atoms, opened.exact, cumulative=False, disjoint=False)
    usable = [
        each for each in related if each.kind not in ("disjoint", "unknown") and not each.one.nested | each.other.nested
    ]
    if not usable:
        return _single_table(context)
    return _linked_intervals(context, [*overlapping_systems(opened.connection, opened.places, atoms, usable)])


def _single_table(context: AttackContext) -> AttackResult:
    upper = _most_unlisted(context)
    zones = [len(zones) for zones in context.release.zones.values()]
    groups = max(zones[0] * zones[1] - context.trips.rows, 0) if not context.release.has_boxes else 0
    if not groups:
        every = "Rows are boxes of their own" if context.release.has_boxes else "Every pair of zones has a row"
        nothing = does_not_apply(f"{every}: there is no unlisted pair to bound.")
        return replace(nothing, numbers={"shown to exist": 0, "groups": 0, "most": upper})
    between = "may be empty, and nothing bounds its trips"
    if upper is not None:
        between = f"has between 0 and {upper:,} trips"
    return AttackResult(
        f"One table of separate flows: each of {groups:,} pairs of zones without a row {between}; none can be shown to "
        "have any.",
        tried=groups,
        of=groups,
        numbers={"shown to exist": 0, "groups": groups, "most": upper},
    )


def _most_unlisted(context: AttackContext) -> int | None:
    """Return the most trips between two zones without a row; None if neither the rule nor the rows bound them.

    A flow may fail a rule on weight or persons with any number of trips. Flows that were suppressed first, for a
    constraint or for linked tables, may exceed the threshold, and so may the flow of complementary suppression.
    """
    release = context.release
    unlisted = release.manifest.get("unlisted", {}).get("at_most_trips")
    upper = [] if unlisted is None else [int(unlisted)]
    single = not {"segment", "released_with"} & release.parameters.keys()
    if context.counts_trips_only and single and not release.constraints and not release.thinned:
        complementary = context.about.get("companion", {}).get("trips", 0)
        upper.append(max(context.min_trips - 1, int(complementary)))
    return min(upper, default=None)


def _linked_intervals(context: AttackContext, systems: Sequence[EquationSystem]) -> AttackResult:
    parts = [
        (system.take(which), columns)
        for system in systems
        for which in comparable_components(system.rows)
        for columns in [small_columns(system.take(which))]
        if len(columns)
    ]
    total = sum(len(columns) for _, columns in parts)
    if not total:
        return not_run("No group below the rule is part of rows of several releases, so no interval was tried.")
    found: list[GroupInterval] = []
    for system, columns in parts:
        found += solve_intervals(system, columns, context.timer.remaining)
        if not context.timer.keep_going(len(found), total, sum(each.least > TOLERANCE for each in found)):
            break
    disclosed = [each for each in found if each.least > TOLERANCE]
    narrow = [each for each in found if each.most - each.least < context.min_trips - TOLERANCE]
    return AttackResult(
        f"{len(found):,} of {total:,} groups below the rule were tried: {len(disclosed):,} can be shown to exist, and "
        f"{len(narrow):,} are known to within less than {context.min_trips:,} trips.",
        found=len(disclosed),
        tried=len(found),
        of=total,
        numbers={
            "shown to exist": len(disclosed),
            "narrow": len(narrow),
            "not finished": 1 - len(found) / total,
        },
        examples=tuple(f"{each.least:.4g} to {each.most:.4g} trips" for each in disclosed[:MAX_EXAMPLES]),
    )


def small_columns(system: EquationSystem) -> Ints:
    """Return the columns that have trips but are below the rule, other than those that are published rows."""
    trips = system.mass[:, 0]
    published = np.zeros(len(system.rows), dtype=bool)
    for row in system.rows.T:
        _, number, count = np.unique(row, return_inverse=True, return_counts=True)
        published |= (row >= 0) & (count[number] == 1)
    return np.flatnonzero((trips > 0) & (trips < system.least[0]) & ~published)


def solve_intervals(system: EquationSystem, columns: Ints, seconds: float) -> Iterator[GroupInterval]:
    """Yield the interval of each column, from two linear programmes; stop when the time is up."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    end = monotonic() + seconds
    _, matrix = incidence_matrix(system.rows)
    trips = system.mass[:, 0]
    equations = {"A_eq": csr_matrix(matrix.astype(float)), "b_eq": matrix @ trips, "bounds": (0, None)}
    for column in columns.tolist():
        objective = np.zeros(len(trips))
        objective[column] = 1
        remaining = end - monotonic()
        if remaining <= 0:
            return
        low = linprog(objective, method="highs", options={"time_limit": remaining}, **equations)
        high = linprog(-objective, method="highs", options={"time_limit": remaining}, **equations)
        if low.status not in (0, 3) or high.status not in (0, 3):
            return
        most = np.inf if high.status == 3 else -float(high.fun)
        yield GroupInterval(float(low.fun), most, float(trips[column]))


def _nested_intervals(context: AttackContext) -> AttackResult:
    """Look in every row of a cascade for a box that cannot be empty."""
    safe = context.options.get("allow_inference") is False
    if "budget" in context.options:
        return not_run(
            "Rows were left out by a budget; where that cut falls depends on the data, and was not attacked."
        )
    if "rows" in context.options:
        return not_run("Only rows of an earlier release were listed: that one is to be followed, not this.")
    if not safe and not context.counts_trips_only:
        return not_run("Rows without caps that are judged by more than trips cannot be followed.")
    k = least_trips(context.rule, safe=safe)
    od = with_substeps(context.od) if context.options.get("substeps") else context.od
    od = without_rare_values(od, PublicationRule(context.rule, k, safe))
    ladder, _ = ordered_ladder(od, context.options.get("coarsest"), context.options.get("drop_order"))
    listed = listed_nodes(context, ladder)
    weighted = "weight" in context.release.disclosed_thresholds
    variant: CascadeVariant = "plain" if not safe else "kept" if weighted else "capped"
    reader = CascadeReader(ladder, {node: trips for node, (trips, _) in listed.items()}, k, variant)
    disclosed, tried = [], 0
    # From the leaves up, so that results for lower nodes are cached already.
    for tried, node in enumerate(sorted(listed), 1):
        found = [(listed[node][1], box, least) for box, count, least in reader.nonempty(node) for _ in range(count)]
        disclosed += found
        if not context.timer.keep_going(tried, len(listed), len(disclosed)):
            break
    concerned = len({name for name, _, _ in disclosed})
    telling = rows_with_own_weight(context, reader) if safe else []
    outcome = "no box of places inside a row can be shown to have trips below the rule"
    if disclosed:
        outcome = (
            f"{len(disclosed):,} groups of fewer than {k:,} trips can be shown to exist, inside {concerned:,} rows"
        )
    if telling:
        outcome += f"; and {len(telling):,} rows at their cap have weights that disclose how many trips are above it"
    if variant == "capped" and ladder.reaches_root and not context.options.get("total_known"):
        outcome += _known_total(context, reader)
    axes = (*AXES, *context.release.axes)
    inside = [
        f"inside {name}: at least {format_count(least, 'trips')} in a part of its {axes[box.axis]}"
        for name, box, least in disclosed
    ]
    beside = [f"the weight of {listed[node][1]}" for node in telling]
    return AttackResult(
        f"A reader who knows the method compared {tried:,} of {len(listed):,} rows with those around them: {outcome}.",
        found=len(disclosed) + len(telling),
        tried=tried,
        of=len(listed),
        numbers={"shown to exist": len(disclosed) + len(telling), "rows concerned": concerned, "weights": len(telling)},
        examples=tuple([*inside, *beside][:MAX_EXAMPLES]),
    )


def _known_total(context: AttackContext, reader: CascadeReader) -> str:
    """Return whether a reader who also knows the total of the input may be shown a box, as the end of a sentence."""
    unlisted, most = context.od.trips - sum(reader.rows.values()), reader.withstands()
    if unlisted <= most:
        return f". {unlisted:,} trips are in no row; up to {most:,}, a reader who knows the total would learn no more"
    return (
        f". {unlisted:,} trips are in no row, more than the {most:,} up to which a known total of the input shows "
        "nothing: do not publish that total"
    )


def rows_with_own_weight(context: AttackContext, reader: CascadeReader) -> list[LadderNode]:
    """Return the rows at their cap with another weight than the trips and the other rows imply.

    A share of the weight of a group, ``W * B / c``, has digits that weights do not have, and so discloses ``c``.
    """
    if "weight" not in context.release.measures:
        return []
    found = context.opened.connection.execute(
        f"SELECT CAST(weight AS DOUBLE) FROM classes WHERE release = {context.release.number} "
        "ORDER BY origin, destination, attributes"
    )
    weight = dict(zip(reader.rows, (float(each) for (each,) in found.fetchall()), strict=True))
    at_cap = [node for node, trips in reader.rows.items() if node.rung and trips == reader.bound(node)]
    hides = set(at_cap)
    if reader.variant == "capped":
        hides |= {above for node in at_cap if (above := reader.row_above(node)) is not None}
    others = [node for node in reader.rows if node not in hides]
    trips = sum(reader.rows[node] for node in others)
    mean = float(f"{sum(weight[node] for node in others) / trips:.3g}") if trips else 0.0
    promised = context.release.disclosed_thresholds.get("weight", 0.0)
    expected = {node: max(mean * reader.rows[node], promised) for node in at_cap}
    return [node for node in at_cap if abs(weight[node] - expected[node]) > 1e-3 * weight[node]]


def listed_nodes(context: AttackContext, ladder: Ladder) -> dict[LadderNode, tuple[int, str]]:
    """Return the ladder nodes with a published row, each with the trips and the name of its row.

    A zone may stand on several levels of a lookup table under one code; its rows stand at the finest rung.
    """
    by_axis = [_codes_by_level(side.tree) for side in ladder.sides]
    listed = rows(
        context.opened.connection,
        "SELECT origin, destination, attributes, trips FROM classes "
        f"WHERE release = {context.release.number} ORDER BY 1, 2, 3",
    )
    nodes: dict[LadderNode, tuple[int, str]] = {}
    for row, label in zip(listed, context.trips.names, strict=True):
        values = [part.partition("=")[2] for part in row["attributes"].split(BETWEEN) if part]
        names = (row["origin"], row["destination"], *values)
        found = [codes[value] for codes, value in zip(by_axis, names, strict=True)]
        rung, at = next(
            (rung, at)
            for rung, at in enumerate(ladder.levels)
            if all(level in codes for level, codes in zip(at, found, strict=True))
        )
        node = LadderNode(rung, tuple(codes[level] for level, codes in zip(at, found, strict=True)))
        nodes[node] = (int(row["trips"]), label)
    return nodes


def _codes_by_level(tree: Hierarchy) -> dict[str, dict[int, int]]:
    """Return the numbers of the nodes of a tree, by name and level."""
    zones, first = zones_of_tree(tree)
    assert zones.level is not None
    levels: dict[str, dict[int, int]] = defaultdict(dict)
    for position, (name, level) in enumerate(zip(zones.ids.tolist(), zones.level.tolist(), strict=True)):
        levels[name][level] = position - first[level]
    return levels


INTERVALS = Attack(
    "intervals",
    "Intervals",
    asks="Can a group that is not listed be shown to exist?",
    question="inference",
    number="shown to exist",
    breaks=True,
    run=intervals,
)
