"""The membership and uniqueness attacks: whether a person is in the data, and how few trips identify a person."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.evidence.attack import Attack, AttackResult
from odkanon.evidence.attack_context import AttackContext
from odkanon.zoning.cells import Floats

TARGETS, SAMPLES = 400, 64
"""How many persons the outsider targets, and how many samples of the population the outsider has seen."""
FALSE_POSITIVE_RATE = 1e-3
KNOWN_TRIPS = (1, 2, 4)
"""How many trips of a person the attacker knows."""
PERSONS = 1000
"""How many persons are tested for uniqueness."""


@dataclass(frozen=True)
class MembershipScore:
    """The success of an attacker: area under the ROC curve, and true positives at 1 false positive in 1,000."""

    auc: float
    hits: float


def membership(context: AttackContext) -> AttackResult:
    """Run a membership inference game with two attackers.

    The *insider* knows every trip of everybody but one person, and subtracts. Counts are exact, so the insider is right
    about every person with a trip in a row. The *outsider* knows the trips of the person and the usual sizes of rows in
    samples of half of the persons, and compares these with the published sizes.

    References
    ----------
    Pyrgelis, Troncoso, De Cristofaro 2018, "Knock knock, who's there? Membership inference on aggregate location data";
    Carlini et al. 2022, "Membership inference attacks from first principles" (hits at few false alarms).
    """
    trips = context.trips
    listed = (trips.row >= 0) & (trips.person >= 0)
    seen = len(np.unique(trips.person[listed]))
    share = seen / trips.persons
    inside = MembershipScore(0.5 + share / 2, share + (1 - share) * FALSE_POSITIVE_RATE)
    outside, tried = outsider(trips.person[listed], trips.row[listed], trips.trips[listed], trips.rows, context)
    return AttackResult(
        f"An insider who knows the trips of everybody else subtracts, and is right about {share:.0%} of persons: "
        "counts are exact, and no k changes that. An outsider who knows a person's own trips and how large rows "
        "usually are, shown one person in the data and one who is not, picks the right one "
        f"{100 * outside.auc:.0f} times in 100 (50 is tossing a coin), "
        f"and is sure of {outside.hits:.1%} of those in the data at one mistake in 1,000.",
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


def outsider(person: Ints, row: Ints, trips: Ints, rows: int, context: AttackContext) -> tuple[MembershipScore, int]:
    """Return the outsider's score, and the number of persons targeted.

    Each sample is a random half of the persons, counted on the same rows; rows below the rule are empty.
    """
    random = np.random.default_rng(context.seed)
    persons = np.unique(person)
    number = np.searchsorted(persons, person)
    present = random.random((SAMPLES, len(persons))) < 0.5
    made = [np.bincount(row, weights=trips * sample[number], minlength=rows) for sample in present]
    counts = np.stack(made).astype(np.float64)
    counts[counts < context.min_trips] = 0
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(len(persons) + 1))
    targets = random.permutation(len(persons))[:TARGETS].tolist()
    areas, scores_in, scores_out = [], [], []
    for tried, target in enumerate(targets, 1):
        own = order[ends[target] : ends[target + 1]]
        score, here = _likelihood_ratio(counts, row[own], trips[own], present[:, target]), present[:, target]
        if here.any() and not here.all():
            areas.append(_auc(score[here], score[~here]))
            scores_in.append(score[here])
            scores_out.append(score[~here])
        if not context.timer.keep_going(tried, len(targets)):
            break
    if not areas:
        return MembershipScore(0.5, FALSE_POSITIVE_RATE), len(areas)
    bar = np.quantile(np.concatenate(scores_out), 1 - FALSE_POSITIVE_RATE)
    return MembershipScore(float(np.mean(areas)), float(np.mean(np.concatenate(scores_in) > bar))), len(areas)


def _likelihood_ratio(counts: Floats, rows: Ints, trips: Ints, present: np.ndarray) -> Floats:
    """Return for each sample the log-likelihood ratio of the person being in it, with counts taken as normal.

    Mean and variance are estimated from the samples without the person.
    """
    distinct, at = np.unique(rows, return_inverse=True)
    own = group_sum(at, len(distinct), trips).astype(np.float64)
    without = counts[~present][:, distinct]
    mean, spread = without.mean(axis=0), without.var(axis=0) + 1e-3
    ratio: Floats = ((counts[:, distinct] - mean - own / 2) * own / spread).sum(axis=1)
    return ratio


def _auc(inside: Floats, outside: Floats) -> float:
    """Return the probability that a score from inside exceeds one from outside; ties count half."""
    above = (inside[:, None] > outside[None]).mean()
    return float(above + (inside[:, None] == outside[None]).mean() / 2)


def uniqueness(context: AttackContext) -> AttackResult:
    """Measure the share of persons identified by some of their trips, in the input and by rows of the release.

    The release does not link the trips of a person; the second share assumes that somebody could.

    References
    ----------
    de Montjoye et al. 2013, "Unique in the Crowd: the privacy bounds of human mobility".
    """
    trips = context.trips
    known = trips.person >= 0
    before = unique_shares(trips.person[known], trips.pair[known], context.seed)
    listed = known & (trips.row >= 0)
    after = unique_shares(trips.person[listed], trips.row[listed], context.seed)
    numbers: dict[str, float | int | None] = {}
    for count in KNOWN_TRIPS:
        numbers[f"unique by {count} trips, before"] = before[count]
        numbers[f"unique by {count} trips, by rows"] = after[count]
    first, last = KNOWN_TRIPS[0], KNOWN_TRIPS[-1]
    tried = min(PERSONS, trips.persons)
    return AttackResult(
        f"In the input, {_percent(before[first])} of persons are unique by one trip and {_percent(before[last])} by "
        f"{last}. By the rows of the release it would be {_percent(after[first])} and {_percent(after[last])}, if "
        "anybody knew which trips are of one person; the release does not disclose that.",
        found=round((before[last] or 0) * tried),
        tried=tried,
        of=tried,
        numbers=numbers,
    )


def unique_shares(person: Ints, place: Ints, seed: int) -> dict[int, float | None]:
    """Return for each number of known trips the share of persons that no other person shares all of them with."""
    pairs = np.unique(np.stack([person, place], axis=1), axis=0)
    persons, first, count = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    by_place = pairs[np.argsort(pairs[:, 1], kind="stable")]
    starts = np.searchsorted(by_place[:, 1], np.arange(int(place.max(initial=-1)) + 2))
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(len(persons))[:PERSONS])
    unique: dict[int, list[bool]] = {known: [] for known in KNOWN_TRIPS}
    for at in chosen.tolist():
        own = random.permutation(pairs[first[at] : first[at] + count[at], 1])
        matches: Ints | None = None
        for known, where in enumerate(own[: KNOWN_TRIPS[-1]].tolist(), 1):
            there = by_place[starts[where] : starts[where + 1], 0]
            matches = there if matches is None else np.intersect1d(matches, there, assume_unique=True)
            if known in unique:
                unique[known].append(len(matches) == 1)
    return {known: float(np.mean(found)) if found else None for known, found in unique.items()}


def _percent(share: float | None) -> str:
    return "nobody knows how many" if share is None else f"{share:.0%}"


MEMBERSHIP = Attack(
    "membership",
    "Membership",
    asks="Can an attacker infer whether a person is in the data?",
    question="inference",
    number="outsider AUC",
    breaks=False,
    run=membership,
    needs={"several persons": "The trips name no persons."},
    decision="may somebody who knows the trips of all others learn whether one person is in the data?",
)
UNIQUENESS = Attack(
    "uniqueness",
    "Uniqueness before",
    asks="How few trips single out a person in the input?",
    question="linkability",
    number="unique by 4 trips, before",
    breaks=False,
    run=uniqueness,
    needs={"persons": "The trips name no persons."},
    decision=None,
)
