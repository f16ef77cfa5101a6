"""Dominance: rows of which one person made most of the trips."""

from __future__ import annotations

import numpy as np

from odkanon.core.arrays import group_sum
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import EXAMPLES, Finding, does_not_apply

MOST = 0.5
"""From which share of its trips on one person is said to dominate a row."""


def dominance(case: Case) -> Finding:
    """Find the largest share of a row's trips that one person made.

    Whoever knows the small contributors of such a row, as a colleague may, can estimate the large one.

    References
    ----------
    Hundepool et al. 2012, "Statistical Disclosure Control", section 4.2 (the (n, k) dominance rule).
    """
    trips = case.trips
    if trips.persons == 0:
        return does_not_apply("The trips name no persons, so that nobody can be said to dominate a row.")
    inside = (trips.row >= 0) & (trips.person >= 0)
    key = trips.row[inside] * trips.persons + trips.person[inside]
    keys, number = np.unique(key, return_inverse=True)
    of_person = group_sum(number, len(keys), trips.trips[inside])
    total = group_sum(trips.row[trips.row >= 0], trips.rows, trips.trips[trips.row >= 0])
    largest = np.zeros(trips.rows)
    row = keys // trips.persons
    np.maximum.at(largest, row, of_person / np.maximum(total[row], 1))
    many = np.flatnonzero(largest > MOST)
    worst = float(largest.max(initial=0.0))
    return Finding(
        f"One person makes up at most {worst:.0%} of the trips of a row, and more than half in {len(many):,} of "
        f"{trips.rows:,} rows.",
        found=len(many),
        tried=trips.rows,
        of=trips.rows,
        numbers={"largest share": worst, "rows above half": len(many), "median largest share": _median(largest)},
        examples=tuple(
            f"{trips.names[at]}: {largest[at]:.0%}" for at in many[np.argsort(-largest[many], kind="stable")][:EXAMPLES]
        ),
    )


def _median(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) else None
