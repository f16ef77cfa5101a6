"""Intervals of a cascade: every row followed up the ladder by a reader who knows the method."""

from __future__ import annotations

from odkanon.audit.release_reader import AXES, rows
from odkanon.evidence.attack_context import Case
from odkanon.evidence.attacks.reader import Mode, Node, Reader
from odkanon.evidence.finding import EXAMPLES, Finding, not_run
from odkanon.methods.cascade.ladder import Ladder
from odkanon.methods.cascade.method import ladder_of, least_trips
from odkanon.methods.trees import with_steps
from odkanon.zoning.zones import zones_of_tree


def groups_on_ladder(case: Case) -> Finding:
    """Look in every row of a cascade for a box that cannot be empty."""
    safe = case.options.get("implications") == "safe"
    if "budget" in case.options:
        return not_run(
            "Rows were left out by a budget; where that cut falls depends on the data, and was not attacked."
        )
    if "rows" in case.options:
        return not_run("Only rows of an earlier release were listed: that one is to be followed, not this.")
    if not safe and not case.by_trips:
        return not_run("Rows without caps that are judged by more than trips cannot be followed.")
    od = with_steps(case.od, case.options.get("steps", "plain"))
    ladder = ladder_of((od.origins, od.destinations), case.options.get("coarsest"))
    listed = listed_nodes(case, ladder)
    k = least_trips(case.rule, safe=safe)
    mode: Mode = "plain" if not safe else "kept" if "weight" in case.release.disclosed_thresholds else "capped"
    reader = Reader(ladder, {node: trips for node, (trips, _) in listed.items()}, k, mode)
    shown, tried = [], 0
    # From the leaves up, so that what is asked about nodes further down is known already.
    for tried, node in enumerate(sorted(listed), 1):
        shown += [(listed[node][1], box, least) for box, times, least in reader.shown(node) for _ in range(times)]
        if not case.watch.goes_on(tried, len(listed), len(shown)):
            break
    concerned = len({name for name, _, _ in shown})
    said = "no box of places inside a row can be shown to have trips below the rule"
    if shown:
        said = f"{len(shown):,} groups of fewer than {k:,} trips can be shown to exist, inside {concerned:,} rows"
    return Finding(
        f"A reader who knows the method followed {tried:,} of {len(listed):,} rows up the ladder: {said}.",
        found=len(shown),
        tried=tried,
        of=len(listed),
        numbers={"shown to exist": len(shown), "rows concerned": concerned},
        examples=tuple(
            f"inside {name}: at least {least} trips in a part of its {AXES[box.axis]}" for name, box, least in shown
        )[:EXAMPLES],
    )


def listed_nodes(case: Case, ladder: Ladder) -> dict[Node, tuple[int, str]]:
    """Return the nodes of the ladder that rows are about, with the trips and the name of each."""
    found: list[dict[str, tuple[int, int]]] = []
    for axis, side in zip(AXES, ladder.sides, strict=False):
        zones, first = zones_of_tree(side.tree)
        level = zones.level
        assert level is not None
        numbers = {
            (name, int(at)): (int(at), position - first[int(at)])
            for position, (name, at) in enumerate(zip(zones.ids.tolist(), level.tolist(), strict=True))
        }
        by_name = {name: node for (name, _), node in numbers.items()}
        found.append(
            {
                about["id"]: numbers.get((about["id"], about.get("level", -1)), by_name[about["id"]])
                for about, _ in case.release.zones[axis]
            }
        )
    rungs = {levels: rung for rung, levels in enumerate(ladder.levels)}
    listed = rows(
        case.opened.connection,
        f"SELECT origin, destination, trips FROM classes WHERE release = {case.release.number} ORDER BY 1, 2",
    )
    nodes: dict[Node, tuple[int, str]] = {}
    for row in listed:
        (up, origin), (down, destination) = found[0][row["origin"]], found[1][row["destination"]]
        name = f"{row['origin']} -> {row['destination']}"
        nodes[Node(rungs[up, down], (origin, destination))] = (int(row["trips"]), name)
    return nodes
