"""What a person should know before publishing, though nothing is wrong."""

from __future__ import annotations

from odkanon.cli.say import console
from odkanon.model.release import Release
from odkanon.quality.privacy import privacy


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
