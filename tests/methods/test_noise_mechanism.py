"""The mechanism of noise: what one person changes, by enumeration; how likely it makes results, by drawing.

The worlds are small enough to take every person out of every world. The attacker draws many results for two
neighbours, picks the event that separates them best on one half of the draws, and bounds epsilon from below on the
other half.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from odkanon.core.arrays import Ints
from odkanon.errors import InvalidValueError
from odkanon.methods.noise.mechanism import (
    NoisePromise,
    PersonTrips,
    Query,
    add_noise,
    composed_epsilon,
    count_queries,
    keep_trips,
    noise_scales,
)

FLOWS = 4
"""Kinds of trips of a small world: two places, both ways."""
QUERIES = {
    "origins": np.array([0, 0, 1, 1]),
    "destinations": np.array([0, 1, 0, 1]),
    "distances": np.array([0, 1, 1, 0]),
    "fine blocks": np.array([0, 1, 2, 3]),
    "coarse blocks": np.array([0, 0, 0, 0]),
    "attribute mode": np.array([1, 0, 1, 0]),
}
World = list[tuple[int, ...]]
"""For each person the flows of their trips."""


def trips_of(world: World) -> PersonTrips:
    rows = [(person, flow, own.count(flow)) for person, own in enumerate(world) for flow in sorted(set(own))]
    person, flow, trips = (np.array([row[at] for row in rows], dtype=np.int64) for at in range(3))
    return PersonTrips(person.astype(np.int32), flow, trips)


def measured(world: World, most: int) -> dict[str, Ints]:
    flows, trips = keep_trips(trips_of(world), most)
    queries = [Query(name, int(entry.max()) + 1, entry[flows]) for name, entry in QUERIES.items()]
    return count_queries(queries, trips)


def worlds(people: int, longest: int) -> Iterator[World]:
    """Every world of some people with up to some trips each."""
    own = [each for size in range(longest + 1) for each in combinations_with_replacement(range(FLOWS), size)]
    for world in combinations_with_replacement(own, people):
        yield list(world)


@pytest.mark.parametrize(("people", "longest", "most"), [(2, 3, 1), (2, 3, 2), (3, 2, 1), (2, 4, 3)])
def test_no_neighbour_is_farther_than_the_bound(people: int, longest: int, most: int) -> None:
    tight = dict.fromkeys(QUERIES, 0)
    cache = {}
    for world in worlds(people, longest):
        cache[tuple(sorted(world))] = measured(world, most)
    for world in worlds(people, longest):
        for leaver in range(people):
            rest = [(), *(own for at, own in enumerate(world) if at != leaver)]
            one, other = cache[tuple(sorted(world))], cache[tuple(sorted(rest))]
            for name in QUERIES:
                change = one[name] - other[name]
                assert (change >= 0).all()
                tight[name] = max(tight[name], int(change @ change))
    assert set(tight.values()) == {most**2}, "the bound of a query is never reached: the noise is larger than needed"


def test_who_else_is_there_does_not_decide_which_trips_count() -> None:
    apart = [(own, measured([own], 2)) for (own,) in worlds(1, 3)]
    for (one, first), (other, second) in product(apart, repeat=2):
        for name, counts in measured([one, other], 2).items():
            assert np.array_equal(counts, first[name] + second[name])


@given(st.lists(st.lists(st.integers(0, FLOWS - 1), max_size=400), max_size=6), st.integers(1, 6), st.randoms())
def test_hundreds_of_trips_in_any_order_of_persons_count_at_most_m_times(
    lists: list[list[int]], most: int, random: object
) -> None:
    world = [tuple(each) for each in lists]
    flows, trips = keep_trips(trips_of(world), most)
    assert trips.sum() == sum(min(len(own), most) for own in world)
    mixed = list(world)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    again = keep_trips(trips_of(mixed), most)
    assert [each.tolist() for each in again] == [flows.tolist(), trips.tolist()]


def test_every_trip_of_a_person_has_about_the_same_chance() -> None:
    """Over many persons with trips of their own, no flow is preferred."""
    random = np.random.default_rng(4)
    world = [tuple(random.choice(1000, 8, replace=False).tolist()) for _ in range(4000)]
    flows, trips = keep_trips(trips_of(world), 2)
    had = np.bincount(np.concatenate([np.array(own) for own in world]), minlength=1000)[flows]
    assert trips.sum() == 8000
    assert (((trips - had / 4) ** 2 / (had * 3 / 16)).mean()) == pytest.approx(1, abs=0.2)
    low = flows < 500
    assert trips[low].sum() == pytest.approx(4000, abs=4 * np.sqrt(2000))


@pytest.mark.parametrize(
    ("epsilon", "delta", "most"), [(1.0, 1e-6, 1), (3.0, 1e-6, 4), (0.1, 1e-9, 2), (10.0, 1e-3, 7)]
)
def test_the_noise_keeps_the_promise_and_is_no_larger_than_needed(epsilon: float, delta: float, most: int) -> None:
    shares = {"origins": 20, "blocks": 29, "distances": 2}
    scales = noise_scales(NoisePromise(epsilon, delta, "person", most), shares)
    relative = [scale / most for scale in scales.values()]
    assert epsilon * 0.999 < composed_epsilon(relative, delta) <= epsilon * (1 + 1e-9)
    assert composed_epsilon([scale * 0.99 for scale in relative], delta) > epsilon
    assert scales["distances"] == pytest.approx(scales["origins"] * np.sqrt(10))


def least_epsilon(draws: tuple[Ints, Ints], delta: float, confidence: float) -> float:
    """Return a lower bound of epsilon, by the event (a half line) that separates one half of the draws best."""
    halves = [np.split(each, 2) for each in draws]
    best, event = 0.0, (0, 1.0, 0)
    for threshold in np.unique(np.concatenate([halves[0][0], halves[1][0]])).tolist():
        for sign, first in product((1.0, -1.0), (0, 1)):
            likely, unlikely = (((sign * halves[which][0]) >= sign * threshold).mean() for which in (first, 1 - first))
            if likely - delta > best * unlikely and unlikely > 0.002:
                best, event = (likely - delta) / unlikely, (threshold, sign, first)
    threshold, sign, first = event
    hits = [int(((sign * halves[which][1]) >= sign * threshold).sum()) for which in (first, 1 - first)]
    count, doubt = len(halves[0][1]), (1 - confidence) / 2
    low = beta.ppf(doubt, hits[0], count - hits[0] + 1)
    high = beta.ppf(1 - doubt, hits[1] + 1, count - hits[1])
    return float(np.log(max((low - delta) / high, 1e-12)))


NEIGHBOURS: tuple[World, World] = ([(0, 1), (3,) * 9], [(0, 1)])


def draw(world: World, promise: NoisePromise, runs: int) -> Ints:
    """Return the statistic that tells a leaver best: the mean of all noisy entries, weighted by their noise."""
    counts = measured(world, promise.trips_per_person)
    shares = {name: 1 + at for at, name in enumerate(QUERIES)}
    # Entries are independent, so that many runs are one run over a long vector.
    long = {name: np.tile(values, runs) for name, values in counts.items()}
    noisy = add_noise(promise, shares, long)
    told = np.zeros(runs)
    for name, found in noisy.items():
        with_leaver = measured(NEIGHBOURS[0], promise.trips_per_person)[name]
        change = with_leaver - measured(NEIGHBOURS[1], promise.trips_per_person)[name]
        told += found.values.reshape(runs, -1) @ change / found.scale**2
    return np.round(told, 1)


def attack(runs: int, promise: NoisePromise, claimed: NoisePromise) -> float:
    draws = draw(NEIGHBOURS[0], promise, runs), draw(NEIGHBOURS[1], promise, runs)
    return least_epsilon(draws, claimed.delta, 0.999)


PROMISE = NoisePromise(1.0, 1e-6, "person", 2)


def test_an_attacker_shows_no_epsilon_above_the_claim() -> None:
    assert attack(4000, PROMISE, PROMISE) <= PROMISE.epsilon


def test_the_attacker_finds_too_little_noise() -> None:
    assert attack(4000, NoisePromise(10.0, 1e-6, "person", 2), PROMISE) > PROMISE.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_hundred_thousand_runs_show_no_epsilon_above_the_claim(epsilon: float) -> None:
    promise = NoisePromise(epsilon, 1e-6, "person", 2)
    found = attack(100_000, promise, promise)
    assert 0.05 * epsilon < found <= epsilon


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": True},
        {"delta": 0},
        {"delta": 1},
        {"unit": "household"},
        {"trips_per_person": 0},
        {"trips_per_person": 1.5},
        {"unit": "trip", "trips_per_person": 2},
    ],
)
def test_a_promise_is_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        NoisePromise(**{"epsilon": 1.0, **wrong})  # type: ignore[arg-type]
