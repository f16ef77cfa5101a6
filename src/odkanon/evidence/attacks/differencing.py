"""Differencing: what this release and others of the same trips give away together."""

from __future__ import annotations

from odkanon.audit.auditor import compare_releases
from odkanon.audit.release_reader import PublishedRelease
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import EXAMPLES, Finding, does_not_apply


def differencing(case: Case) -> Finding:
    """Look for groups below the rule among the sums and differences of rows of all releases given.

    The release is compared with each other one, then all at once. Which trips they share is known from the trips.

    References
    ----------
    Dinur, Nissim 2003, "Revealing information while preserving privacy"; Duncan, Mukherjee 2000, "Optimal disclosure
    limitation strategy in statistical databases: deterring tracker attacks through additive noise".
    """
    others = case.earlier
    if not others:
        return does_not_apply("No other release was given to compare with; those of the same trips belong here.")
    rounds: list[tuple[PublishedRelease, ...]] = [(case.release, each) for each in others]
    if len(others) > 1:
        rounds.append((case.release, *others))
    shown: dict[str, None] = {}
    unknown: dict[str, None] = {}
    tried = 0
    for tried, releases in enumerate(rounds, 1):
        _, findings = compare_releases(case.opened, releases)
        for each in findings:
            if each.severity == "finding":
                (shown if each.check == "difference" else unknown)[each.message] = None
        if not case.watch.goes_on(tried, len(rounds), len(shown)):
            break
    told = "no difference of rows shows a group below the rule"
    if shown:
        told = f"{len(shown):,} groups below the rule follow from differences, such as: {next(iter(shown))}"
    cannot = f" {len(unknown):,} comparisons could not be made: {next(iter(unknown))}." if unknown else ""
    return Finding(
        f"Compared with {len(others):,} other release{'s' if len(others) > 1 else ''}: {told}.{cannot}",
        found=len(shown),
        tried=tried,
        of=len(rounds),
        unsettled=len(unknown),
        numbers={"releases": len(others), "groups": len(shown), "not compared": len(unknown)},
        examples=tuple([*shown][:EXAMPLES]),
    )
