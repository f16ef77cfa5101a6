"""Cautions about a valid release: the terminal prints them, and Python issues them as warnings."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Literal

from odkanon.linked import LinkedReleases
from odkanon.methods import anonymize as run_method
from odkanon.methods.cascade.method import counts_contributors_or_trips, forecast
from odkanon.methods.common import with_substeps
from odkanon.methods.method_registry import METHODS
from odkanon.model.measures import DISTINCT
from odkanon.model.od import Matrix
from odkanon.model.release import Release
from odkanon.quality.privacy import privacy, steward_privacy
from odkanon.quality.utility import utility
from odkanon.read.tables.column_names import probable_columns
from odkanon.read.trips import MANY_REJECTED, rejected_share, unusable_rows

MANY_PAIRS = 1_000_000
"""The number of OD pairs up to which a cascade is fast enough to be tried beside another method."""
FEW_PAIRS = 300_000
"""The number of OD pairs up to which a release is made again to measure the cost of a stricter rule."""
FEW_COUNTED = 0.7
"""A smaller share of the trips that count with noise is a caution."""
MUCH_EPSILON = 10.0
"""Beyond it, epsilon is a caution."""
MUCH_FINER, MUCH_MORE = 0.7, 0.05
"""What is worth a hint: the share of G that remains, and the share of trips that is published in addition."""


def cautions(result: Release | LinkedReleases) -> list[str]:
    """Return the cautions about a release, each in one or two sentences."""
    if isinstance(result, LinkedReleases):
        texts = [
            *_lost_rows(result.whole),
            *_over_budget(result),
            *_uneven_suppression(result),
            *_weak_rule(result.whole),
            *_few(result.whole),
        ]
        return texts + _few_in_segments(result)
    if result.refusal:
        return []
    if result.is_noisy:
        return _of_noise(result)
    texts = [
        *_lost_rows(result),
        *_unused_columns(result),
        *_few(result),
        *_weak_rule(result),
        *_residual(result),
    ]
    return [result.subject.words(text) for text in texts]


def verdict(
    result: Release | LinkedReleases, texts: Sequence[str], *, doubts: int = 0
) -> Literal["pass", "review", "fail"]:
    """Return whether a release can be published: as it is, after its cautions were weighed, or not at all.

    ``doubts`` is the number of warnings of coordinates that are probably wrong.
    """
    release = result.whole if isinstance(result, LinkedReleases) else result
    if release.refusal or _protects_nobody(release) or (release.budget is not None and release.is_nested):
        return "fail"
    return "review" if texts or doubts else "pass"


def _lost_rows(release: Release) -> list[str]:
    """Rows that cannot be used, where these are many."""
    source = release.input.source
    if not source.rejected or rejected_share(source) <= MANY_REJECTED:
        return []
    lost = sum(unusable_rows(source).values())
    return [f"{lost:,} rows of the input cannot be used, so every flow lacks their trips. Correct them first."]


def _unused_columns(release: Release) -> list[str]:
    """Return cautions about columns that look like weights or person ids, where none was recognised."""
    return [
        f"column {column!r} looks like the {ours} of a trip and is not used; if it is, name it "
        f"(--column {ours}={column})."
        for ours, column in probable_columns(release.input.source.unused, release.input.measures).items()
    ]


def _of_noise(release: Release) -> list[str]:
    """Return cautions about weak promises of noise, and about noisy releases without a ledger."""
    texts, epsilon, spent = [], release.parameters["epsilon"], release.parameters.get("spent")
    if epsilon > MUCH_EPSILON:
        texts.append(
            f"epsilon = {epsilon:g} promises little: a result may be {exp(min(epsilon, 700)):,.2g} times as "
            "likely with a person's trips as without."
        )
    counted = float(release.classes.trips.sum()) / max(release.input.trips, 1)
    if counted < FEW_COUNTED:
        texts.append(
            f"the estimate is {counted:.0%} of the trips of the input: many persons made more than the "
            f"{release.parameters['trips_per_person']} that count. Let more count (trips per person), with more noise, "
            "or take a shorter period. This compares with the trips and is not for publication."
        )
    if spent is not None and spent["epsilon"] is None:
        texts.append(
            f"nothing bounds what all releases disclose about persons: {spent['ledger']} has one that protects single "
            "trips only."
        )
    if spent is None:
        texts.append(
            "no ledger adds up the noisy releases of these people, because the input is no file; name one "
            "(ledger) if there are others."
        )
    return texts


def _few(release: Release) -> list[str]:
    """Return cautions about flows of few contributors that the rule does not count, and the price of counting them."""
    found = steward_privacy(release)
    counting = " Each trip is counted in its finest row." if release.is_nested else ""
    known, required = release.input.measures, release.rule.measures
    counted = any(measure in required for measure in DISTINCT)
    texts = []
    for measure, contributor in DISTINCT.items():
        if measure not in known or measure in required or not len(release.classes):
            continue
        report = found.get(measure)
        if report is not None and report.below:
            texts.append(
                f"{report.below:,} of {len(release.classes):,} flows have fewer than {report.threshold:,} "
                f"{contributor.title} (the smallest has {report.min}). {_price(release, measure)}{counting}"
            )
        elif report is None and (not counted or measure == "households"):
            texts.append(f"all trips of a flow may be of one {contributor.column}. {_price(release, measure)}")
            counted = True
    return texts


def _price(release: Release, measure: str) -> str:
    """Return how to protect contributors as well, with the cost where it can be measured quickly.

    The cost comes first: the terminal shortens cautions from their end.
    """
    who, matrix, method = DISTINCT[measure].target, release.matrix, METHODS.get(release.method)
    advice = f"Protect {who} as well to rule that out."
    if (
        matrix is None
        or release.assignment is None
        or matrix.summary.pairs > FEW_PAIRS
        or method is None
        or method.slow
    ):
        return advice
    options = {name: value for name, value in release.parameters.items() if name in method.options}
    rule = release.rule.with_contributors(measure)
    if "rows" in release.parameters or not rule.thresholds_only:
        return advice
    dearer = run_method(matrix, rule, method=release.method, **options)
    shares = [f"{1 - suppressed_share(each):.1%}" for each in (dearer, release)]
    instead = "" if shares[0] == shares[1] else f" instead of {shares[1]}"
    price = (
        f"With {who} protected, {shares[0]}{instead} of the trips would be published, in {len(dearer.classes):,} flows"
    )
    if not release.is_nested and dearer.refusal is None:
        before, after = (utility(matrix.summary, each).g for each in (release, dearer))
        price += f" between zones of {after:,.0f} instead of {before:,.0f} finest cells on average (G)"
    return f"{price}. {advice}"


def _few_in_segments(linked: LinkedReleases) -> list[str]:
    """Return cautions about flows of few contributors in the tables of segments, where the rule does not count them."""
    parts = [part.release for part in linked.parts if part.release is not None]
    found = [privacy(part) for part in parts]
    flows, texts = sum(len(part.classes) for part in parts), []
    for measure, contributor in DISTINCT.items():
        below = sum(each[measure].below for each in found if measure in each)
        if below and measure not in linked.whole.rule.measures:
            k = next(each[measure].threshold for each in found if measure in each)
            texts.append(
                f"{below:,} of {flows:,} flows in the tables of segments have fewer than {k:,} {contributor.title}. "
                f"Protect {contributor.target} as well to rule that out."
            )
    return texts


def _protects_nobody(release: Release) -> bool:
    rule = release.rule
    least = max(rule.thresholds.get(name, 0) for name in ("trips", *DISTINCT))
    return least <= 1 and rule.k <= 1 and not release.is_noisy


def _weak_rule(release: Release) -> list[str]:
    """Return cautions about rules that protect nobody or allow flows of few trips."""
    if _protects_nobody(release):
        return ["k = 1 protects nobody: a flow may consist of a single trip."]
    if release.rule.thresholds.keys() != {"weight"}:
        return []
    trips = privacy(release).get("trips")
    if trips is None or not trips.below:
        return []
    return [
        f"the rule counts the population only, and {trips.below:,} of {len(release.classes):,} flows have fewer than "
        f"{trips.threshold:,} trips (the smallest has {trips.min:,}): somebody who knows of one of these trips learns "
        "where it went. Protect participants or persons as well to rule that out."
    ]


def _residual(release: Release) -> list[str]:
    """Return cautions about trips that a cascade cannot list, and about a budget that discloses groups."""
    if not release.is_nested:
        return []
    parameters = release.parameters
    if parameters.get("allow_inference"):
        return [
            "whoever knows the method can infer that groups below the rule exist inside published rows. Leave out the "
            "permission to infer to rule that out."
        ]
    if release.budget is not None:
        return [
            "which rows a cascade suppresses for a budget depends on the data, so smaller groups can be shown to "
            "exist. Use a budget to compare methods; publish without one, or with a coarsest level."
        ]
    if parameters.get("allow_inference") is not False or parameters.get("coarsest") is not None:
        return []
    residual = 1 - float(release.classes.trips.sum()) / release.input.trips
    if residual < MUCH_MORE:
        return []
    return [
        f"{residual:.1%} of the trips are in no row: they would show that some group is below the rule. A rule on one "
        "of weight, persons and households, allowing inference, or another method publishes more."
    ]


def _over_budget(linked: LinkedReleases) -> list[str]:
    return [
        f"the tables by {name} suppress {share:.1%} of the trips, more than the {linked.budget:.1%} allowed: no zones "
        "need less. Use broader groups or fewer of them, or a larger segment budget."
        for name, share in linked.over_budget.items()
    ]


def _uneven_suppression(linked: LinkedReleases) -> list[str]:
    """Return cautions about segments that suppress more than the budget of all tables of their dimension."""
    texts = []
    for name, share in linked.suppressed.items():
        shares = {
            part.title: 1.0 if part.release is None else suppressed_share(part.release)
            for part in linked.parts
            if part.dimension == name
        }
        more = [title for title, own in shares.items() if linked.budget is not None and own > linked.budget]
        if more and name not in linked.over_budget:
            worst = max(more, key=lambda title: shares[title])
            texts.append(
                f"the budget of {linked.budget:.1%} is for all tables by {name} together, which suppress {share:.1%}. "
                f"{len(more):,} of {len(shares):,} suppress more individually, {worst} the most ({shares[worst]:.1%})."
            )
    return texts


def suppressed_share(release: Release) -> float:
    """Return the share of trips that a release does not publish."""
    return 1 - float(release.classes.trips.sum()) / max(release.input.trips, 1)


def cascade_hint(release: Release) -> str | None:
    """Return the gain of a cascade, where it is large; for the steward only, as it compares with the data."""
    method, matrix = METHODS.get(release.method), release.matrix
    if method is None or method.nested or matrix is None or matrix.axes or release.refusal:
        return None
    if matrix.summary.pairs > MANY_PAIRS or release.assignment is None:  # too slow for a hint
        return None
    if not release.rule.thresholds_only or not counts_contributors_or_trips(release.rule):
        return None
    tree = (with_substeps(matrix) if release.parameters.get("substeps") else matrix).in_memory()
    found = forecast(tree, release.rule, release.budget)
    return _gain(matrix, release, found.trips, found.g)


def _gain(matrix: Matrix, release: Release, trips: int, g: float | None) -> str | None:
    share, more = (published / release.input.trips for published in (int(release.classes.trips.sum()), trips))
    gains = []
    if more >= share + MUCH_MORE:
        gains.append(f"publish {more:.1%} of the trips")
    own = utility(matrix.summary, release).g
    if g is not None and own is not None and g <= MUCH_FINER * own:
        gains.append(f"be finer if it left out as much as the budget allows (G {g:,.0f} instead of {own:,.0f})")
    if not gains:
        return None
    return f"A cascade (--method cascade) would {', or '.join(gains)}; its zones overlap."
