"""The rule of a release as it may be told to anybody."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from odkanon.model.release import Release
from odkanon.model.rule import Rule

ENOUGH_TRIPS = 10_000
"""Of an input with fewer trips, no rounding of a number that counts them all was found that shows nothing."""


def told_rule(release: Release) -> Rule:
    """Return the rule of a release as it may be told: one on k mean weights goes by the weights that are published.

    The mean weight of all trips, compared with that of the published ones, tells of those that are not: that there are
    some, and how heavy they are. So the k trips are those of the mean published weight, or the smallest row, if that is
    less; both follow from the rows, and every row has as much. Where many trips are published side by side, three
    digits of the true mean tell next to nothing. Tables that are released together have one rule for all.
    """
    rule, classes = release.rule, release.classes
    trips = int(classes.trips.sum())
    if not rule.weight_from_data or classes.weight is None or not trips:
        return rule
    if "released_with" in release.parameters or "dimension" in release.parameters:
        return rule
    if classes.own_pairs is None and trips >= ENOUGH_TRIPS:
        return rule
    mean = Fraction(int(classes.weight.sum()), trips * classes.scale)
    least = min(Fraction(rule.k) * mean, Fraction(int(classes.weight.min()), classes.scale))
    return rule.with_weight(least, mean)


def public_rule(rule: Rule) -> dict[str, Any]:
    """Return the thresholds of a rule as they may be told, and the k that they come from.

    The k of a threshold on weight that was asked for is not told: it would tell the mean weight of the data.
    """
    return ({} if rule.k_from_data else {"k": rule.k}) | rule.promised | rule.besides
