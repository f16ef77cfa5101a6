"""Uniqueness: how few trips it takes to tell a person from all others, before and after."""

from __future__ import annotations

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import Finding, does_not_apply

KNOWN = (1, 2, 4)
"""How many trips of a person the attacker knows."""
PERSONS = 1000
"""How many persons are tried."""


def uniqueness(case: Case) -> Finding:
    """Measure which share of persons is unique by some of their trips, in the input and if the input had rows only.

    The release does not say which trips are of one person; "after" is what it would be if somebody could link them.

    References
    ----------
    de Montjoye et al. 2013, "Unique in the Crowd: the privacy bounds of human mobility".
    """
    trips = case.trips
    if trips.persons == 0:
        return does_not_apply("The trips name no persons.")
    known = trips.person >= 0
    before = unique_shares(trips.person[known], trips.pair[known], case)
    listed = known & (trips.row >= 0)
    after = unique_shares(trips.person[listed], trips.row[listed], case)
    numbers: dict[str, float | int | None] = {}
    for count in KNOWN:
        numbers[f"unique by {count} trips, before"] = before[count]
        numbers[f"unique by {count} trips, by rows"] = after[count]
    first, last = KNOWN[0], KNOWN[-1]
    tried = min(PERSONS, trips.persons)
    return Finding(
        f"In the input, {_percent(before[first])} of persons are unique by one trip and {_percent(before[last])} by "
        f"{last}. By the rows of the release it would be {_percent(after[first])} and {_percent(after[last])}, if "
        "anybody could tell which trips are of one person; the release does not say.",
        found=round((before[last] or 0) * tried),
        tried=tried,
        of=tried,
        numbers=numbers,
    )


def unique_shares(person: Ints, place: Ints, case: Case) -> dict[int, float | None]:
    """Return for each number of known trips the share of persons that nobody else agrees with in all of them."""
    pairs = np.unique(np.stack([person, place], axis=1), axis=0)
    persons, first, count = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    by_place = pairs[np.argsort(pairs[:, 1], kind="stable")]
    starts = np.searchsorted(by_place[:, 1], np.arange(int(place.max(initial=-1)) + 2))
    random = np.random.default_rng(case.seed)
    chosen = np.sort(random.permutation(len(persons))[:PERSONS])
    alone: dict[int, list[bool]] = {known: [] for known in KNOWN}
    for at in chosen.tolist():
        own = random.permutation(pairs[first[at] : first[at] + count[at], 1])
        left: Ints | None = None
        for known, where in enumerate(own[: KNOWN[-1]].tolist(), 1):
            there = by_place[starts[where] : starts[where + 1], 0]
            left = there if left is None else np.intersect1d(left, there, assume_unique=True)
            if known in alone:
                alone[known].append(len(left) == 1)
    return {known: float(np.mean(found)) if found else None for known, found in alone.items()}


def _percent(share: float | None) -> str:
    return "nobody knows how many" if share is None else f"{share:.0%}"
