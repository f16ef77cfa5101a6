"""Homogeneity: places from which every listed trip goes to one zone."""

from __future__ import annotations

from odkanon.audit.release_reader import rows
from odkanon.audit.row_nesting import box_table, zone_join
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import EXAMPLES, Finding


def homogeneity(case: Case) -> Finding:
    """Count the places whose trips can only be in one row: whoever is known to start there went where that row goes.

    A row can hold trips of a place if its origin zone contains the place, whatever the data.

    References
    ----------
    Machanavajjhala et al. 2007, "l-diversity: privacy beyond k-anonymity".
    """
    number = case.release.number
    places = (
        f"(SELECT origin, count(DISTINCT person) AS persons, sum(trips) AS trips FROM scope{number} GROUP BY origin)"
    )
    if case.release.has_boxes:
        table = box_table(case.opened.connection, case.release)
        zones = (
            f"JOIN centres l ON l.leaf = p.origin JOIN {table} c ON l.lon >= c.o_west AND l.lon < c.o_east "
            "AND l.lat >= c.o_south AND l.lat < c.o_north"
        )
    else:
        prefix = "" if case.reading.tree is None else "'0:' || "
        zones = f"{zone_join('p.origin', 'origin', prefix, number)} JOIN classes c ON c.release = {number} "
        zones += "AND c.origin = n_origin.zone"
    found = rows(
        case.opened.connection,
        "SELECT p.origin, any_value(p.trips)::BIGINT AS trips, any_value(p.persons) AS persons, count(*) AS rows, "
        f"min(c.origin) AS zone, min(c.destination) AS destination FROM {places} p {zones} GROUP BY 1 ORDER BY 1",
    )
    single = [row for row in found if row["rows"] == 1]
    trips, whole = sum(row["trips"] for row in single), sum(row["trips"] for row in found)
    zones_of = {row["zone"]: row["destination"] for row in single}
    said = "From every place there are at least two zones that a trip may have gone to."
    if single:
        said = (
            f"From {len(single):,} of {len(found):,} places every listed trip goes to one zone ({trips:,} trips, "
            f"{trips / max(whole, 1):.2%}): whoever is known to start there is known to go there."
        )
    return Finding(
        said,
        found=len(single),
        tried=len(found),
        of=len(found),
        numbers={"places": len(single), "origin zones": len(zones_of), "share of trips": trips / max(whole, 1)},
        examples=tuple(f"{zone} -> {to}" for zone, to in sorted(zones_of.items())[:EXAMPLES]),
    )
