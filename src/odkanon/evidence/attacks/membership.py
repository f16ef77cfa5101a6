"""Membership: whether somebody can tell from the release that a person is in the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import Finding, does_not_apply
from odkanon.zoning.cells import Floats

TARGETS, WORLDS = 400, 64
"""How many persons an outsider goes after, and how many samples of the population he has seen."""
RATE = 1e-3
"""The rate of false alarms at which hits are counted."""


@dataclass(frozen=True)
class Guessing:
    """How well an attacker guesses who is in the data: area under the curve, hits at 1 false alarm in 1,000."""

    auc: float
    hits: float


def membership(case: Case) -> Finding:
    """Play the game of membership with two attackers.

    The *insider* knows every trip of everybody but one person, and subtracts. Counts are exact, so he is right about
    everyone with a trip in a row. The *outsider* knows the trips of the person, and how many trips rows usually have in
    samples of half of the persons; he compares that with what is published.

    References
    ----------
    Pyrgelis, Troncoso, De Cristofaro 2018, "Knock knock, who's there? Membership inference on aggregate location data";
    Carlini et al. 2022, "Membership inference attacks from first principles" (hits at few false alarms).
    """
    trips = case.trips
    if trips.persons < 2:
        return does_not_apply("The trips name no persons.")
    listed = (trips.row >= 0) & (trips.person >= 0)
    seen = len(np.unique(trips.person[listed]))
    share = seen / trips.persons
    inside = Guessing(0.5 + share / 2, share + (1 - share) * RATE)
    outside, tried = outsider(trips.person[listed], trips.row[listed], trips.trips[listed], trips.rows, case)
    return Finding(
        f"An insider who knows the trips of all others is right about {share:.0%} of persons (AUC {inside.auc:.2f}, "
        f"hits at 1 false alarm in 1,000: {inside.hits:.0%}): counts are exact, and no k changes that. An outsider who "
        f"knows the person's own trips and the usual size of rows guesses with an AUC of {outside.auc:.2f} (0.50 is "
        f"tossing a coin), hits at 1 false alarm in 1,000: {outside.hits:.1%}.",
        found=seen,
        tried=tried,
        of=min(TARGETS, seen),
        numbers={
            "insider AUC": inside.auc,
            "insider hits at 1/1000": inside.hits,
            "outsider AUC": outside.auc,
            "outsider hits at 1/1000": outside.hits,
        },
    )


def outsider(person: Ints, row: Ints, trips: Ints, rows: int, case: Case) -> tuple[Guessing, int]:
    """Return how well the outsider guesses, and how many persons he went after.

    Each world is a random half of the persons, counted on the same rows; rows below the rule are empty.
    """
    random = np.random.default_rng(case.seed)
    persons = np.unique(person)
    number = np.searchsorted(persons, person)
    present = random.random((WORLDS, len(persons))) < 0.5
    made = [np.bincount(row, weights=trips * world[number], minlength=rows) for world in present]
    counts = np.stack(made).astype(np.float64)
    counts[counts < case.few] = 0
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(len(persons) + 1))
    targets = random.permutation(len(persons))[:TARGETS].tolist()
    areas, scores_in, scores_out = [], [], []
    for tried, target in enumerate(targets, 1):
        own = order[ends[target] : ends[target + 1]]
        score, here = _scores(counts, row[own], trips[own], present[:, target]), present[:, target]
        if here.any() and not here.all():
            areas.append(_auc(score[here], score[~here]))
            scores_in.append(score[here])
            scores_out.append(score[~here])
        if not case.watch.goes_on(tried, len(targets)):
            break
    if not areas:
        return Guessing(0.5, RATE), len(areas)
    bar = np.quantile(np.concatenate(scores_out), 1 - RATE)
    return Guessing(float(np.mean(areas)), float(np.mean(np.concatenate(scores_in) > bar))), len(areas)


def _scores(counts: Floats, rows: Ints, trips: Ints, present: np.ndarray) -> Floats:
    """Return for each world how much rather the person is in it than not: a likelihood ratio of normal counts.

    What is usual is learnt from the worlds without the person.
    """
    distinct, at = np.unique(rows, return_inverse=True)
    own = group_sum(at, len(distinct), trips).astype(np.float64)
    without = counts[~present][:, distinct]
    mean, spread = without.mean(axis=0), without.var(axis=0) + 1e-3
    ratio: Floats = ((counts[:, distinct] - mean - own / 2) * own / spread).sum(axis=1)
    return ratio


def _auc(inside: Floats, outside: Floats) -> float:
    """Return the chance that a score from inside is above one from outside; ties count half."""
    above = (inside[:, None] > outside[None]).mean()
    return float(above + (inside[:, None] == outside[None]).mean() / 2)
