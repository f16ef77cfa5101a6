"""The rule of a release as it may be published: thresholds, and the statements made about them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import exp
from typing import Any

from odkanon.model.measures import DISTINCT
from odkanon.model.published_flows import disclosed_weights
from odkanon.model.release import Release
from odkanon.model.rule import Rule

EXACT = "A row lists the trips that no finer row lists."
AT_LEAST = (
    "A row lists trips that no finer row lists: at least so many where at_cap is true, otherwise exactly so many."
)
NO_BOX = (
    "No box (one public zone on each axis, at any level) can be shown to hold trips other than those of the rows "
    "inside it, to a reader who knows the rows, the method and all zones, but not the total of the input."
)
CORRECTED = (
    " It corrects {}: trips were added to a flow, or taken out of it, only where these are as many by themselves; all "
    "other flows are as they were."
)
ADDED = " It adds trips to {}; no trip is in both."

EVEN_WITH_TOTAL = (
    "A row lists at least so many of the trips that no finer row lists: a secret share of the input was left out. "
    "No box (one public zone on each axis, at any level, except everything) can be shown to hold trips other than "
    "those of the rows inside it, to a reader who knows the rows, the method, all zones and the total of the input."
)


def publishable_rule(release: Release, *segments: Release) -> Rule:
    """Return the rule of a release, and of segments released with it, with a publishable weight threshold.

    A threshold of k mean weights discloses the mean weight of all trips, and every unlisted trip changes it. The
    published threshold is therefore k times the mean weight of the listed trips, or the weight of the lightest row if
    that is less: every row has at least as much. The mean of a larger data set discloses nothing about these trips,
    unless it is that of an earlier release of them.
    """
    rule, classes = release.rule, release.classes
    earlier = rule.weight_from_data and {"corrects", "adds_to"} & release.parameters.keys()
    own = earlier or rule.uses_mean_weight(release.input.own_mean_weight)
    if classes.weight_units is None or not len(classes) or not own:
        return rule
    weight = disclosed_weights(classes.trips, classes.weight_units, classes.hides_weight)
    mean = Fraction(int(weight.sum()), int(classes.trips.sum()) * classes.scale)
    others = [each.classes.weight_units for each in (release, *segments) if not each.is_nested and len(each.classes)]
    least = min(int(rows.min()) for rows in (weight, *others) if rows is not None)
    return rule.with_weight(min(Fraction(rule.k) * mean, Fraction(least, classes.scale)), mean)


def public_rule(rule: Rule) -> dict[str, Any]:
    """Return the publishable thresholds of a rule, and the k that they derive from.

    The k that a requested weight threshold amounts to is left out: it would disclose the mean weight of the data.
    """
    return ({} if rule.k_from_data else {"k": rule.k}) | rule.disclosed_thresholds | rule.constraints


def statement(rule: Rule) -> str:
    """Return the guarantee of a rule in one plain sentence for each of its parts."""
    thresholds = " and ".join(_threshold_phrase(*each) for each in rule.disclosed_thresholds.items())
    sentences = [f"Every published flow is shared by at least {thresholds}."]
    if rule.max_share is not None:
        of_what = "trips or of the weight" if "weight" in rule.measures else "trips"
        contributors = " or ".join(measure.column or name for name, measure in DISTINCT.items())
        sentences.append(
            f"No {contributors} that the data names has more than {100 * rule.max_share:.10g} % of the {of_what} of a "
            "flow."
        )
    if rule.min_destinations is not None:
        sentences.append(
            f"From every origin zone flows to at least {rule.min_destinations} destinations are published."
        )
    return " ".join(sentences)


def _threshold_phrase(measure: str, value: float) -> str:
    if measure == "trips":
        return f"{value:,} trips"
    if measure == "weight":
        return f"a weight of {float(value):,.10g} (people that the trips stand for)"
    return f"{value:,} {DISTINCT[measure].title}"


def promise(release: Release) -> str:
    """Return the statement of a release: its rule, and what its rows imply where they nest."""
    words = release.subject.words
    if release.is_noisy:
        return noise_promise(release.parameters)
    stated = words(statement(publishable_rule(release)))
    if "corrects" in release.parameters:
        stated += words(CORRECTED.format(release.parameters["corrects"]))
    if "adds_to" in release.parameters:
        stated += words(ADDED.format(release.parameters["adds_to"]))
    if not release.is_nested:
        return stated
    safe = release.parameters.get("allow_inference") is False
    if release.parameters.get("total_known"):
        return words(f"{stated} {EVEN_WITH_TOTAL}")
    lists = AT_LEAST if safe and release.parameters.get("rows") != "given" else EXACT
    if release.budget is not None:
        implied = "The choice of rows depends on the data and discloses some of it: for comparing, not for publishing."
    elif safe:
        implied = NO_BOX
    else:
        implied = "Whoever knows the method can work out smaller groups from several rows."
    return words(f"{stated} {lists} {implied}")


def noise_promise(parameters: Mapping[str, Any]) -> str:
    """Return the statement of a noisy release, given epsilon, delta, the unit and the most trips of a person.

    Examples
    --------
    >>> asked = {"epsilon": 1.0, "delta": 1e-6, "unit": "trip", "trips_per_person": 1}
    >>> noise_promise(asked)[:72]
    'Differential privacy of a trip, with epsilon = 1 and delta = 1e-06: what'
    """
    unit, epsilon, delta, most = (parameters[name] for name in ("unit", "epsilon", "delta", "trips_per_person"))
    whose = "a person's trips" if unit == "person" else "a trip"
    bounded = f" At most {most:,} trips of each person count." if unit == "person" else ""
    factor = exp(min(epsilon, 700.0))
    return (
        f"Differential privacy of a {unit}, with epsilon = {epsilon:g} and delta = {delta:g}: whatever somebody knows "
        f"already, no result is more than {factor:,.3g} times as likely, or less likely, with {whose} in the data as "
        f"without, except with a probability of {delta:g}.{bounded} Rows are estimates with a standard error; none "
        "is a count. Every other release of the same people adds to what is known of them: so do their epsilon and "
        "delta."
    )


def short_promise(release: Release) -> str:
    """Return the promise in fewer words, for the terminal; the full statement is in ``release.json``."""
    full = promise(release)
    if NO_BOX not in full:
        return full
    stated = statement(publishable_rule(release))
    return release.subject.words(
        f"{stated} A trip is in at most one row. The number of a row is exact or, where at_cap is true, a minimum. A "
        "reader who does not know the total cannot show that a pair of zones holds trips other than those of its rows."
    )


def linked_promise(whole: Release) -> str:
    """Return the statement of linked releases, given the unsegmented one."""
    stated = f"{statement(whole.rule)} So is every group that sums and differences of these tables single out."
    if not whole.parameters.get("protect_intervals"):
        return stated
    return (
        f"{stated} By the tables and their totals alone, no flow below that can be shown to exist, or to lie within "
        "less than is asked for. A reader who knows the method may conclude more: a flow of the whole that no segment "
        "lists has trips of several segments if it just meets the rule."
    )
