"""The complement and differencing attacks: what sums and differences of published rows disclose."""

from __future__ import annotations

from odkanon.audit.auditor import compare_releases
from odkanon.audit.release_reader import PublishedRelease
from odkanon.evidence.attack import MAX_EXAMPLES, Attack, AttackResult
from odkanon.evidence.attack_context import AttackContext

CHECKS = ("rule", "totals", "margins", "zones", "persons", "recount", "files")


def complement(context: AttackContext) -> AttackResult:
    """Count the audit's findings on the release alone: rows below the rule, and totals that disclose unlisted groups.

    The audit reads the written files and recounts every row from the trips with its own arithmetic.

    References
    ----------
    Hundepool et al. 2012, "Statistical Disclosure Control", chapter 4 (primary and secondary disclosure in tables).
    """
    own = [each for each in context.opened.findings if context.release.name in each.releases and each.check in CHECKS]
    broken = [each for each in own if each.severity == "finding"]
    notes = [each.message for each in own if each.severity == "note"]
    rows = context.trips.rows
    message = "Every row was counted again from the trips; rows, margins and totals show no group below the rule."
    if broken:
        message = f"{len(broken):,} finding{'s' if len(broken) > 1 else ''} of the audit: {broken[0].message}."
    return AttackResult(
        message if not notes else f"{message} To weigh: {notes[0]}.",
        found=len(broken),
        tried=rows,
        of=rows,
        numbers={"rows": rows, "notes": len(notes)},
        examples=tuple(each.message for each in broken[:MAX_EXAMPLES]),
    )


def differencing(context: AttackContext) -> AttackResult:
    """Look for groups below the rule among sums and differences of the rows of all releases given.

    The release is compared with each of the others, then with all at once. The trips show which ones they share. Flows
    that a release does not list are bounded by its rule; see `odkanon.audit.absence_bounds`.

    References
    ----------
    Dinur, Nissim 2003, "Revealing information while preserving privacy"; Duncan, Mukherjee 2000, "Optimal disclosure
    limitation strategy in statistical databases: deterring tracker attacks through additive noise".
    """
    others = context.earlier
    rounds: list[tuple[PublishedRelease, ...]] = [(context.release, each) for each in others]
    if len(others) > 1:
        rounds.append((context.release, *others))
    disclosed: dict[str, None] = {}
    unknown: dict[str, None] = {}
    tried = 0
    for tried, releases in enumerate(rounds, 1):
        _, findings = compare_releases(context.opened, releases)
        for each in findings:
            if each.severity == "finding":
                (disclosed if each.check in ("difference", "absence") else unknown)[each.message] = None
        if not context.timer.keep_going(tried, len(rounds), len(disclosed)):
            break
    outcome = "no difference of rows shows a group below the rule"
    if disclosed:
        how = "from differences and from what is not listed"
        outcome = f"{len(disclosed):,} groups below the rule follow {how}: {next(iter(disclosed))}"
    missing = f" {len(unknown):,} comparisons could not be made: {next(iter(unknown))}." if unknown else ""
    return AttackResult(
        f"Compared with {len(others):,} other release{'s' if len(others) > 1 else ''}: {outcome}.{missing}",
        found=len(disclosed),
        tried=tried,
        of=len(rounds),
        unsettled=len(unknown),
        numbers={"releases": len(others), "groups": len(disclosed), "not compared": len(unknown)},
        examples=tuple([*disclosed][:MAX_EXAMPLES]),
    )


COMPLEMENT = Attack(
    "complement",
    "Complement",
    asks="Do rows, margins or totals show a group below the rule?",
    question="singling out",
    number="rows",
    breaks=True,
    run=complement,
)
DIFFERENCING = Attack(
    "differencing",
    "Differencing",
    asks="Do differences with other releases show a group below the rule?",
    question="linkability",
    number="groups",
    breaks=True,
    run=differencing,
    needs={
        "other releases": "No other release was given to compare with; those of the same trips belong here.",
    },
)
