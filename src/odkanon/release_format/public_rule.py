"""The rule of a release as it may be told to anybody."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from odkanon.model.release import Release
from odkanon.model.rule import Rule


def publishable_rule(release: Release) -> Rule:
    """Return the rule of a release as it may be told: that of a cascade on k mean weights goes by its rows.

    The mean weight of all trips, compared with that of the listed ones, tells of the others: that there are some, and
    how heavy they are. A cascade promises that this cannot be shown. So its k trips are told with the mean weight of
    the listed ones, or as the smallest row, if that is less (where groups may be worked out); every row has as much.
    Where the mean is that of a larger data set, it does not tell of these trips. Elsewhere what is missing is nothing,
    or meets the rule.
    """
    rule, classes = release.rule, release.classes
    if not release.is_nested or classes.weight is None or not len(classes):
        return rule
    if not rule.uses_mean_weight(release.input.own_mean_weight):
        return rule
    mean = Fraction(int(classes.weight.sum()), int(classes.trips.sum()) * classes.scale)
    least = min(Fraction(rule.k) * mean, Fraction(int(classes.weight.min()), classes.scale))
    return rule.with_weight(least, mean)


def public_rule(rule: Rule) -> dict[str, Any]:
    """Return the thresholds of a rule as they may be told, and the k that they come from.

    The k of a threshold on weight that was asked for is not told: it would tell the mean weight of the data.
    """
    return ({} if rule.k_from_data else {"k": rule.k}) | rule.disclosed_thresholds | rule.constraints
