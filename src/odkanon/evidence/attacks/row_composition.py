"""The dominance and homogeneity attacks: rows with one main contributor, and places with one destination."""

from __future__ import annotations

import numpy as np

from odkanon.audit.release_reader import rows
from odkanon.audit.row_nesting import box_table, zone_join
from odkanon.core.arrays import group_sum
from odkanon.evidence.attack import MAX_EXAMPLES, Attack, AttackResult
from odkanon.evidence.attack_context import AttackContext

DOMINANT = 0.5
"""The share of a row's trips above which one person dominates it."""


def dominance(context: AttackContext) -> AttackResult:
    """Find the largest share of a row's trips that one person made.

    Somebody who knows the small contributors to such a row can estimate the large one.

    References
    ----------
    Hundepool et al. 2012, "Statistical Disclosure Control", section 4.2 (the (n, k) dominance rule).
    """
    trips = context.trips
    inside = (trips.row >= 0) & (trips.person >= 0)
    keys, number = np.unique(trips.row[inside] * trips.persons + trips.person[inside], return_inverse=True)
    of_person = group_sum(number, len(keys), trips.trips[inside])
    total = group_sum(trips.row[trips.row >= 0], trips.rows, trips.trips[trips.row >= 0])
    largest = np.zeros(trips.rows)
    row = keys // trips.persons
    np.maximum.at(largest, row, of_person / np.maximum(total[row], 1))
    dominated = np.flatnonzero(largest > DOMINANT)
    worst = dominated[np.argsort(-largest[dominated], kind="stable")][:MAX_EXAMPLES]
    most = float(largest.max(initial=0.0))
    return AttackResult(
        f"One person makes up at most {most:.0%} of the trips of a row, and more than half in {len(dominated):,} of "
        f"{trips.rows:,} rows.",
        found=len(dominated),
        tried=trips.rows,
        of=trips.rows,
        numbers={
            "largest share": most,
            "rows above half": len(dominated),
            "median largest share": float(np.median(largest)) if len(largest) else None,
        },
        examples=tuple(f"{trips.names[at]}: {largest[at]:.0%}" for at in worst),
    )


def homogeneity(context: AttackContext) -> AttackResult:
    """Count the places whose trips can only be in one row: knowing the start of such a trip discloses its destination.

    A row can hold trips from a place if its origin zone contains the place, whatever the data.

    References
    ----------
    Machanavajjhala et al. 2007, "l-diversity: privacy beyond k-anonymity".
    """
    number = context.release.number
    places = (
        f"(SELECT origin, count(DISTINCT person) AS persons, sum(trips) AS trips FROM scope{number} GROUP BY origin)"
    )
    if context.release.has_boxes:
        table = box_table(context.opened.connection, context.release)
        zones = (
            f"JOIN centres l ON l.leaf = p.origin JOIN {table} c ON l.lon >= c.o_west AND l.lon < c.o_east "
            "AND l.lat >= c.o_south AND l.lat < c.o_north"
        )
    else:
        prefix = "" if context.spec.tree is None else "'0:' || "
        zones = f"{zone_join('p.origin', 'origin', prefix, number)} JOIN classes c ON c.release = {number} "
        zones += "AND c.origin = n_origin.zone"
    found = rows(
        context.opened.connection,
        "SELECT p.origin, any_value(p.trips)::BIGINT AS trips, any_value(p.persons) AS persons, count(*) AS rows, "
        f"min(c.origin) AS zone, min(c.destination) AS destination FROM {places} p {zones} GROUP BY 1 ORDER BY 1",
    )
    single = [row for row in found if row["rows"] == 1]
    trips, whole = sum(row["trips"] for row in single), sum(row["trips"] for row in found)
    destination = {row["zone"]: row["destination"] for row in single}
    message = "From every place there are at least two zones that a trip may have gone to."
    if single:
        message = (
            f"From {len(single):,} of {len(found):,} places every listed trip goes to one zone ({trips:,} trips, "
            f"{trips / max(whole, 1):.2%}): whoever is known to start there is known to go there."
        )
    return AttackResult(
        message,
        found=len(single),
        tried=len(found),
        of=len(found),
        numbers={"places": len(single), "origin zones": len(destination), "share of trips": trips / max(whole, 1)},
        examples=tuple(f"{zone} -> {to}" for zone, to in sorted(destination.items())[:MAX_EXAMPLES]),
    )


DOMINANCE = Attack(
    "dominance",
    "Dominance",
    asks="Did one person make most of the trips of a row?",
    question="inference",
    number="largest share",
    breaks=False,
    run=dominance,
    needs={"persons": "The trips name no persons, so dominance cannot be measured."},
    decision="may one person have made most of the trips of some rows?",
)
HOMOGENEITY = Attack(
    "homogeneity",
    "Homogeneity",
    asks="Is where somebody starts also where they go?",
    question="inference",
    number="share of trips",
    breaks=False,
    run=homogeneity,
    decision="may where somebody starts disclose where they go?",
)
