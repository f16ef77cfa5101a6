"""Privacy of a release: the smallest classes in each measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.core.parsing import check_result
from odkanon.model.measures import exact_masses
from odkanon.model.release import Release


@dataclass(frozen=True)
class Privacy:
    """The smallest classes of a release in one measure."""

    min: float | None
    """Mass of the smallest class; None if nothing is published."""
    threshold: float
    """The rule's threshold on the measure; if it has none, k (for weight, k times the mean weight of a trip)."""
    below: int
    """Number of classes below the threshold."""
    share: float
    """Share of classes below the threshold."""


def privacy(release: Release) -> dict[str, Privacy]:
    """Return the privacy of a release in every published measure, including those without a threshold.

    A threshold on trips admits ten trips of one person; the numbers of persons reveal such classes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, anonymize, read_hierarchy, read_matrix
    >>> tree = read_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}
    >>> od = read_matrix(pa.table(flows), hierarchy=tree)
    >>> privacy(anonymize(od, Rule(trips=10)))
    {'trips': Privacy(min=12, threshold=10, below=0, share=0.0)}
    """
    check_result("the release", release, "spec", "anonymize")
    return _in_every_measure(release, {})


def steward_privacy(release: Release) -> dict[str, Privacy]:
    """Return the `privacy` of a release, and the contributors to its nested rows, which are not published.

    For contributors in the rule, these are the lower bounds that were checked. Others are counted over the trips
    of which a row is the finest one, if the OD pairs are in memory.
    """
    classes, placed = release.classes, release.assignment
    counts = dict(classes.min_contributors)
    if release.is_nested and placed is not None:
        for measure, each in placed.od.flows.contributions.items():
            own = each.counting().relabel(placed.area_of_pair, len(classes)).flow
            counts.setdefault(measure, np.bincount(own, minlength=len(classes)).astype(np.int64))
    return _in_every_measure(release, counts)


def _in_every_measure(release: Release, counts: Mapping[str, Ints]) -> dict[str, Privacy]:
    """Return the privacy in every measure that is published or counted in ``counts``."""
    whole, rule = release.input, release.rule
    mean = None if whole.weight_units is None else whole.mean_weight
    found = {}
    for measure in whole.measures:
        published, own = exact_masses(release.classes, measure), getattr(rule, measure)
        masses = counts.get(measure) if published is None else published
        if masses is not None:
            threshold = rule.k_of(measure, mean) if own is None else Fraction(own)
            found[measure] = _privacy(measure, masses, threshold, whole.scale if measure == "weight" else 1)
    return found


def _privacy(measure: str, masses: Ints, threshold: Fraction, unit: int) -> Privacy:
    below = int(np.count_nonzero(masses < ceil(threshold * unit)))
    smallest = float(masses.min() / unit) if len(masses) else None
    if smallest is not None and measure != "weight":
        smallest = int(smallest)
    least = float(threshold) if measure == "weight" else ceil(threshold)
    return Privacy(smallest, least, below, below / max(len(masses), 1))
