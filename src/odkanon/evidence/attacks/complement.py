"""Complement: what the release gives away by itself, by its rows, margins and totals."""

from __future__ import annotations

from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import EXAMPLES, Finding

CHECKS = ("rule", "totals", "margins", "zones", "persons", "recount", "files")


def complement(case: Case) -> Finding:
    """Count what the audit finds in the release alone: rows below the rule, and sums that tell of what is not listed.

    The audit reads the written files and counts every row again from the trips, by arithmetic of its own.

    References
    ----------
    Hundepool et al. 2012, "Statistical Disclosure Control", chapter 4 (primary and secondary disclosure in tables).
    """
    own = [each for each in case.opened.findings if case.release.name in each.releases and each.check in CHECKS]
    broken = [each for each in own if each.severity == "finding"]
    notes = [each.message for each in own if each.severity == "note"]
    rows = case.trips.rows
    said = "Every row was counted again from the trips; rows, margins and totals show no group below the rule."
    if broken:
        said = f"{len(broken):,} finding{'s' if len(broken) > 1 else ''} of the audit: {broken[0].message}."
    return Finding(
        said if not notes else f"{said} To weigh: {notes[0]}.",
        found=len(broken),
        tried=rows,
        of=rows,
        numbers={"rows": rows, "notes": len(notes)},
        examples=tuple(each.message for each in broken[:EXAMPLES]),
    )
