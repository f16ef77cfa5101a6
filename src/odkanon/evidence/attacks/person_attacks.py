"""Attacks on persons and rows: membership, uniqueness, dominance and homogeneity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.audit.release_reader import rows
from odkanon.audit.row_nesting import box_table, zone_join
from odkanon.core.arrays import Ints, group_sum
from odkanon.evidence.attack import MAX_EXAMPLES, Attack, AttackResult
from odkanon.evidence.attack_context import AttackContext
from odkanon.zoning.cells import Floats

TARGETS, SAMPLES = 400, 64
"""How many persons the outsider targets, and how many samples of the population the outsider has seen."""
FALSE_POSITIVE_RATE = 1e-3
KNOWN_TRIPS = (1, 2, 4)
"""How many trips of a person the attacker knows."""
PERSONS = 1000  # how many persons are tested for uniqueness


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
    """Return, for each number of known trips, the share of persons who are the only ones to have made all of them."""
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


DOMINANT = 0.5  # the share of a row's trips above which one person dominates it


def dominance(context: AttackContext) -> AttackResult:
    """Find the largest shares of a row's trips that one person made, and two.

    Somebody who knows the small contributors to such a row can estimate the large one. Trips are counted in their
    finest row; a nested row may list more trips than these, which were passed on to it.

    References
    ----------
    Hundepool et al. 2012, "Statistical Disclosure Control", section 4.2 (the (n, k) dominance rule).
    """
    trips = context.trips
    inside = (trips.row >= 0) & (trips.person >= 0)
    keys, number = np.unique(trips.row[inside] * trips.persons + trips.person[inside], return_inverse=True)
    of_person = group_sum(number, len(keys), trips.trips[inside])
    total = group_sum(trips.row[trips.row >= 0], trips.rows, trips.trips[trips.row >= 0])
    row = keys // trips.persons
    order = np.lexsort((-of_person, row))
    row, share = row[order], (of_person / np.maximum(total, trips.published)[row])[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    largest, two = (np.bincount(row[rank < n], share[rank < n], minlength=trips.rows) for n in (1, 2))
    dominated = np.flatnonzero(largest > DOMINANT)
    worst = dominated[np.argsort(-largest[dominated], kind="stable")][:MAX_EXAMPLES]
    most = float(largest.max(initial=0.0))
    return AttackResult(
        f"One person makes up at most {most:.0%} of the trips of a row, and more than half in {len(dominated):,} of "
        f"{trips.rows:,} rows; two persons make up at most {two.max(initial=0.0):.0%}.",
        found=len(dominated),
        tried=trips.rows,
        of=trips.rows,
        numbers={
            "largest share": most,
            "two largest": float(two.max(initial=0.0)),
            "rows above half": len(dominated),
            "median largest share": float(np.median(largest)) if len(largest) else None,
        },
        examples=tuple(f"{trips.names[at]}: {largest[at]:.0%}" for at in worst),
    )


def homogeneity(context: AttackContext) -> AttackResult:
    """Count the places whose trips can only be in one row: knowing the start of such a trip discloses its destination.

    A row can hold trips from a place if its origin zone contains the place, whatever the data.

    References
    ----------
    Machanavajjhala et al. 2007, "l-diversity: privacy beyond k-anonymity".
    """
    number = context.release.number
    places = f"(SELECT origin, sum(trips) AS trips FROM scope{number} GROUP BY origin)"
    if context.release.has_boxes:
        table = box_table(context.opened.connection, context.release)
        zones = (
            f"JOIN centres l ON l.leaf = p.origin JOIN {table} c ON l.lon >= c.o_west AND l.lon < c.o_east "
            "AND l.lat >= c.o_south AND l.lat < c.o_north"
        )
    else:
        prefix = "" if context.spec.tree is None else "'0:' || "
        zones = f"{zone_join('p.origin', 'origin', prefix, number)} JOIN classes c ON c.release = {number} "
        zones += "AND c.origin = n_origin.zone"
    found = rows(
        context.opened.connection,
        "SELECT p.origin, any_value(p.trips)::BIGINT AS trips, count(DISTINCT c.destination) AS zones, "
        f"min(c.origin) AS zone, min(c.destination) AS destination FROM {places} p {zones} GROUP BY 1 ORDER BY 1",
    )
    single = [row for row in found if row["zones"] == 1]
    trips, whole = sum(row["trips"] for row in single), sum(row["trips"] for row in found)
    destination = {row["zone"]: row["destination"] for row in single}
    message = "From every place there are at least two zones that a trip may have gone to."
    if single:
        message = (
            f"From {len(single):,} of {len(found):,} places every listed trip goes to one zone ({trips:,} trips, "
            f"{trips / max(whole, 1):.2%}): whoever is known to start there is known to go there."
        )
    return AttackResult(
        message,
        found=len(single),
        tried=len(found),
        of=len(found),
        numbers={"places": len(single), "origin zones": len(destination), "share of trips": trips / max(whole, 1)},
        examples=tuple(f"{zone} -> {to}" for zone, to in sorted(destination.items())[:MAX_EXAMPLES]),
    )


DOMINANCE = Attack(
    "dominance",
    "Dominance",
    asks="Did one person make most of the trips of a row?",
    question="inference",
    number="largest share",
    breaks=False,
    run=dominance,
    needs={"persons": "The trips name no persons, so dominance cannot be measured."},
    decision="may one person have made most of the trips of some rows?",
)
HOMOGENEITY = Attack(
    "homogeneity",
    "Homogeneity",
    asks="Is where somebody starts also where they go?",
    question="inference",
    number="share of trips",
    breaks=False,
    run=homogeneity,
    decision="may where somebody starts disclose where they go?",
)
