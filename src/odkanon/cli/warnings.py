"""What a person should know before publishing, though nothing is wrong."""

from __future__ import annotations

from odkanon.cli.console import console
from odkanon.methods.cascade.method import counts_contributors_or_trips, outlook
from odkanon.methods.method_registry import METHODS
from odkanon.methods.trees import with_steps
from odkanon.model.od import Matrix
from odkanon.model.release import Release
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import utility

MANY_PAIRS = 1_000_000
"""Up to how many OD pairs a cascade takes so little time that it is tried beside another method."""
MUCH_FINER, MUCH_MORE = 0.7, 0.05
"""What is worth a remark: the share of G that is left, and the share of trips that is published in addition."""


def warn_of_rule(release: Release) -> None:
    """Say it plainly where the rule asks for next to nothing, or lets flows of few trips through."""
    if release.rule.k <= 1:
        console.print("Caution: k = 1 protects nobody; every trip may stand alone.", style="bold yellow")
        return
    trips = privacy(release).get("trips")
    if release.rule.measures == ("weight",) and trips is not None and trips.below:
        console.print(
            f"Caution: the rule counts the population only, and {trips.below:,} of {len(release.classes):,} flows have "
            f"fewer than {trips.threshold:,} trips (the smallest has {trips.min:,}): whoever knows of one of them "
            "learns where it went. Add --protect participants or --protect persons to rule that out.",
            style="bold yellow",
        )


def warn_of_residual(release: Release) -> None:
    """Say why a cascade leaves trips out that nobody asked it to leave out."""
    said = release.parameters
    if release.budget is not None and release.classes.finest_pairs is not None:
        console.print(
            "Caution: which rows a cascade leaves out for a budget depends on the data and tells of it, so that "
            "smaller groups can be shown to exist. Compare with it, but publish without --budget, or with --coarsest.",
            style="bold yellow",
        )
    if said.get("implications") != "safe" or said.get("coarsest") is not None or release.budget is not None:
        return
    residual = 1 - float(release.classes.trips.sum()) / release.input.trips
    if residual < MUCH_MORE:
        return
    console.print(
        f"Caution: {residual:.1%} of the trips are in no row: they would show that some group has fewer than the rule "
        "asks for. A rule on one of weight, persons and households, --implications allowed or another method publish "
        "more.",
        style="bold yellow",
    )


def warn_of_days(since: str | None, until: str | None) -> None:
    """Say that the days of a cube come from its trips, where no period says which days there are."""
    if since is None or until is None:
        console.print(
            "Caution: which days there are is taken from the first and the last trip, and what is published tells how "
            "many: a lone trip in another month can be shown to exist. Say the period: --since and --until.",
            style="bold yellow",
        )


def mention_cascade(od: Matrix, release: Release) -> None:
    """Say in one line what a cascade would give, where that is much better; for the steward alone."""
    method = METHODS.get(release.method)
    if method is None or method.nested or od.axes or release.refusal or od.summary.pairs > MANY_PAIRS:
        return
    if not release.rule.thresholds_only or not counts_contributors_or_trips(
        release.rule
    ):  # which a cascade does not keep
        return
    if release.assignment is None:  # where pairs are in a database, it takes longer than a remark is worth
        return
    found = outlook(
        with_steps(od, release.parameters.get("steps") or "plain").in_memory(), release.rule, release.budget
    )
    share, more = (trips / release.input.trips for trips in (int(release.classes.trips.sum()), found.trips))
    told = []
    if more >= share + MUCH_MORE:
        told.append(f"publish {more:.1%} of the trips")
    own = utility(od.summary, release).g
    if found.g is not None and own is not None and found.g <= MUCH_FINER * own:
        told.append(f"be finer within the same budget (G {found.g:,.0f} instead of {own:,.0f})")
    if told:
        console.print(f"A cascade (--method cascade) would {' and '.join(told)}; some of its flows contain others.")
