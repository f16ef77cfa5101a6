"""A published table is corrected: nobody who has both tables, and knows how they were made, learns of fewer than k.

Every possible story of a few flows is tried: trips that stay (K), that are taken out (A), that are added (B). A reader
holds every story possible that gives the same two tables. Shown is a group of trips, of one flow or of several, that
exists in all of these and is below k in all of them.
"""

from __future__ import annotations

from itertools import chain, combinations, product

import numpy as np
import numpy.typing as npt
import pytest

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def stories(flows: int, most: int) -> tuple[Counts, Counts, Counts]:
    """All numbers of trips that stay, go and come in some flows."""
    numbers = np.array(list(product(range(most + 1), repeat=3 * flows)), dtype=np.int64)
    return numbers[:, :flows], numbers[:, flows : 2 * flows], numbers[:, 2 * flows :]


def enough(counts: Counts, k: int) -> Flags:
    """None at all, or k."""
    fine: Flags = (counts == 0) | (counts >= k)
    return fine


def listed_flows(counts: Counts, k: int) -> Flags:
    """The flows of a table: those of k and more, and the smallest of them goes with a remainder below k."""
    listed = counts >= k
    left = np.where(listed, 0, counts).sum(axis=1)
    taken = ~enough(left, k) & listed.any(axis=1)
    smallest = np.where(listed, counts, 10**6).argmin(axis=1)
    listed[np.flatnonzero(taken), smallest[taken]] = False
    return listed & (taken | enough(left, k))[:, None]


def corrected(stay: Counts, gone: Counts, come: Counts, k: int) -> tuple[Counts, Counts]:
    """The first table and its correction, as the definition reads; an unlisted flow is 0."""
    before = stay + gone
    first = listed_flows(before, k)
    taken = np.where((gone >= k) & enough(stay, k), gone, 0)
    added = np.where(come >= k, come, 0)
    return np.where(first, before, 0), np.where(first, before - taken, 0) + added


def naive(stay: Counts, gone: Counts, come: Counts, k: int) -> tuple[Counts, Counts]:
    """Count the same flows again."""
    before, after = stay + gone, stay + come
    return (np.where(listed_flows(counts, k), counts, 0) for counts in (before, after))  # type: ignore[return-value]


def by_difference(stay: Counts, gone: Counts, come: Counts, k: int) -> tuple[Counts, Counts]:
    """Count a flow again once it has k more or k fewer, whatever came and went."""
    before, after = stay + gone, stay + come
    first = listed_flows(before, k)
    now = np.where(abs(after - before) >= k, after, before)
    return np.where(first, before, 0), np.where(first & (now >= k), now, 0)


def shown(tables: list[Counts], groups: list[Counts], k: int, limit: int, *, small: bool = False) -> int:
    """In how many stories a reader of the tables knows that a group exists, and not that it has k trips.

    ``small``: in how many the reader also knows that it has fewer than k.
    """
    signature = np.concatenate(tables, axis=1) + 2
    keys = np.zeros(len(signature), dtype=np.uint64)
    for column in signature.T:
        keys = keys * np.uint64(1_000_003) + column.astype(np.uint64)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) != 0]))
    sizes = np.diff(starts, append=len(order))
    # Where a number exceeds what one part may have, it shows that others exist; no world is bounded like that.
    sizes[(signature[order][starts] - 2 > limit).any(axis=1)] = 0
    found = 0
    flows = groups[0].shape[1]
    for some in chain.from_iterable(combinations(range(flows), many) for many in range(1, flows + 1)):
        for counts in groups:
            total = counts[:, some].sum(axis=1)[order]
            least, most = np.minimum.reduceat(total, starts), np.maximum.reduceat(total, starts)
            found += int(sizes[(least > 0) & ((most if small else least) < k)].sum())
    return found


def published(first: Counts) -> Flags:
    return np.asarray((first > 0).any(axis=1))


WORLDS = [(1, 2, 5), (1, 3, 8), (2, 2, 4), (2, 3, 6), (3, 2, 3)]
"""Flows, k, and the most trips of each part of a flow."""


@pytest.mark.parametrize(("flows", "k", "most"), WORLDS)
@pytest.mark.parametrize("knowing", ["nothing", "that none went", "that none came", "what came"])
def test_an_attacker_who_tries_every_story(flows: int, k: int, most: int, knowing: str) -> None:
    """Counting again leaks; waiting for a difference of k leaks to whoever delivered the trips that came."""
    parts = stories(flows, most)
    which = {"that none went": parts[1], "that none came": parts[2]}.get(knowing, np.zeros_like(parts[0]))
    stay, gone, come = (part[(which == 0).all(axis=1)] for part in parts)
    there = published(corrected(stay, gone, come, k)[0])
    stay, gone, come = (part[there] for part in (stay, gone, come))
    delivered = knowing == "what came"
    changes, trips = (
        [gone] if delivered else [gone, come, gone + come],
        [stay, stay + gone, stay + come][: 3 - delivered],
    )
    known = [come] if delivered else []
    found = []
    for way in (corrected, naive, by_difference):
        tables = [*way(stay, gone, come, k), *known]
        found.append(shown(tables, changes, k, most) + shown(tables, trips, k, most, small=True))
    assert found[0] == 0
    assert found[1] > 0
    assert (found[2] > 0) == (knowing == "what came")


def test_two_corrections_of_one_release_leak() -> None:
    """The reason why a release is corrected once: the second time, what came since may be a single trip."""
    k, most = 2, 4
    stay, first, second = stories(1, most)
    none = np.zeros_like(stay)
    once, twice = (corrected(stay, none, come, k) for come in (first, first + second))
    seen = published(once[0])
    tables = [table[seen] for table in (*once, twice[1])]
    assert shown(tables[:2], [first[seen]], k, most) == 0
    assert shown(tables, [second[seen]], k, most) > 0


def test_late_trips_that_a_correction_left_out_are_not_published_on_their_own() -> None:
    """They are below the rule in each flow: a row over two flows may show both; with other trips it cannot."""
    k, most = 3, 4
    come, june, _ = stories(2, most)
    late = np.where(come >= k, 0, come)
    alone = late.sum(axis=1, keepdims=True)
    mixed = (late + june).sum(axis=1, keepdims=True)
    for table, leaks in ((alone, True), (mixed, False)):
        row = np.where(table >= k, table, 0)
        assert (shown([row], [late], k, 2 * most) > 0) == leaks
