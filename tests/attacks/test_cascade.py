"""What the rows of a cascade imply: whoever knows the method tries every input that publishes the same rows.

The promise is that no group below the rule can be shown to exist: for every box of public nodes there is an input
with the same rows that has no trip there but those in rows inside the box.
"""

from __future__ import annotations

import numpy as np
import pytest

from attacks.cascades import PAIR, SINGLE, THREE, Mode, Reader, Replay, World, attack, inputs_up_to, lasting, shown
from attacks.judged import Judged, every_state, trips_of
from odkanon import Rule
from worlds.cubes import cube_matrix, rolled_up, rows_by_box

WORLDS = [
    (World(((THREE, THREE),)), 3),
    (World(((THREE, SINGLE, THREE),)), 3),
    (World(((THREE, THREE, THREE),)), 2),
    (World((((0, 0, 0, 0), THREE),)), 4),
    (World((THREE, THREE)), 2),
    (World((THREE, (PAIR, SINGLE))), 2),
    (World(((SINGLE, PAIR), (PAIR, SINGLE))), 2),
    (World(((PAIR, PAIR), THREE)), 2),
    (World((PAIR, (0, 0, 0, 0))), 3),
    (World((PAIR, (PAIR, PAIR))), 3),
    (World((PAIR, PAIR, PAIR)), 2),
    (World(((((PAIR, SINGLE), (PAIR,)), ((PAIR,),)),)), 3),
]


def test_no_group_can_be_shown_to_exist() -> None:
    tried, on, off = attack(WORLDS, "capped")
    assert tried > 800_000
    assert (on, off) == (0, 0)


def test_no_group_can_be_shown_where_rows_keep_what_is_above_their_caps() -> None:
    assert attack(WORLDS, "kept")[1:] == (0, 0)


def test_the_plain_cascade_shows_groups() -> None:
    _, on, off = attack(WORLDS, "plain")
    assert on > 1_000_000
    assert off > 1_000_000


def test_the_simpler_condition_shows_groups_off_the_ladder() -> None:
    """A row that falls where its unlisted parts might be told: enough for sums along the ladder, not beside it."""
    assert attack(WORLDS, "falling")[2] > 10_000


# Rows that are judged by weight or persons as well, and rows that show their weight.

WEIGHTS = [(0, 0), (1, 1), (1, 2), (2, 2), (2, 3), (2, 4)]
"""No trip, one, or two; of weight 1 or 2 each."""
PERSONS = [(len(who), trips_of(*who)) for who in ((), (0,), (1,), (0, 0), (1, 1), (0, 1))]
"""Trips, and which of two persons made them."""
SMALL = [World(((THREE, THREE),)), World((PAIR, THREE)), World(((PAIR, PAIR, PAIR),))]
WIDE = [World(((THREE, THREE, THREE),)), World((THREE, THREE)), World(((PAIR, PAIR), THREE))]
"""Here no leaf box has more than one trip, or there would be too many inputs."""


def weighted(world: World, mode: Mode, least: int) -> Judged:
    trips, weight = every_state(world, WEIGHTS[:3] if world in WIDE else WEIGHTS)
    judged = Judged(world, trips, 2, mode, weight=weight, least=(least, 0))
    judged.run()
    return judged


@pytest.mark.parametrize("world", SMALL + WIDE)
def test_no_group_can_be_shown_where_weight_counts(world: World) -> None:
    judged = weighted(world, "kept", 3)
    assert shown(judged, judged.told(shared=False)) == (0, 0)


@pytest.mark.parametrize("world", SMALL + WIDE)
def test_no_group_can_be_shown_by_weight_that_rows_share(world: World) -> None:
    judged = weighted(world, "capped", 0)
    assert shown(judged, judged.told(shared=True)) == (0, 0)


def test_weight_that_rows_do_not_share_shows_groups() -> None:
    """The excess of a row of heavy trips is heavy; a light row above it cannot have taken it in."""
    judged = (weighted(world, "capped", 0) for world in WIDE)
    assert any(shown(one, one.told(shared=False)) != (0, 0) for one in judged)


def test_passing_on_what_weight_must_judge_shows_groups() -> None:
    judged = (weighted(world, "capped", 3) for world in WIDE)
    assert any(shown(one, one.told(shared=False)) != (0, 0) for one in judged)


def counting_persons(world: World, states: list[tuple[int, int]]) -> Judged:
    trips, people = every_state(world, states)
    judged = Judged(world, trips, 2, people=people, least=(0, 2))
    judged.run()
    return judged


@pytest.mark.parametrize("world", SMALL)
def test_no_group_can_be_shown_where_persons_count(world: World) -> None:
    judged = counting_persons(world, PERSONS)
    assert shown(judged, judged.signature()) == (0, 0)


def test_no_group_can_be_shown_where_persons_leave_rows() -> None:
    """Six persons, so that rows of three have somebody to pass on; and rows of single places, with two of them."""
    world = World(((THREE, THREE),))
    judged = counting_persons(world, [(0, 0), *((1, trips_of(person)) for person in range(6)), (2, trips_of(0, 1))])
    assert shown(judged, judged.signature()) == (0, 0)
    passed = [judged.who[node] for node, rows in judged.listed.items() if node[0] and (rows > 0).any()]
    assert sum(int((who > 0).sum()) for who in passed) > 1_000


# Rows of an earlier cascade for other trips.

AGAIN = [
    (World(((THREE, THREE),)), 2, 6),
    (World(((THREE, SINGLE, PAIR),)), 2, 6),
    (World((PAIR, THREE)), 2, 6),
    (World((PAIR, (PAIR, PAIR))), 2, 5),
    (World((((PAIR, PAIR), (PAIR,)),)), 3, 8),
]


def attack_again(*, all_rows: bool) -> tuple[int, int]:
    """Return how many groups a reader is shown who knows which rows were given, and in how many of the sets of rows."""
    found, sets = 0, 0
    for world, k, trips in AGAIN:
        inputs, nodes = inputs_up_to(world, trips), [node for at in range(len(world.rungs)) for node in world.nodes(at)]
        for seed in range(12):
            chosen = np.random.default_rng(seed).random(len(nodes)) < (0.3, 0.5, 0.8)[seed % 3]
            rows = [node for node, takes in zip(nodes, chosen, strict=True) if takes]
            # Of two rungs that are the same places, a release has one row.
            rows = list({box: (rung, box) for rung, box in reversed(rows)}.values())
            only = frozenset(rows) if all_rows else lasting(world, rows)
            replay = Replay(world, inputs, k, "plain", only).run()
            leaks = sum(shown(replay, replay.signature()))
            found, sets = found + leaks, sets + (leaks > 0)
    return found, sets


def test_rows_that_last_show_no_group_of_other_trips() -> None:
    assert attack_again(all_rows=False) == (0, 0)


def test_any_rows_show_groups_of_other_trips() -> None:
    """A row whose own places all lie in one part of it tells of that part."""
    found, sets = attack_again(all_rows=True)
    assert found > 1_000
    assert sets > 10


# Larger worlds: an exact attacker, who works with sets of possible residuals instead of trying inputs.

SEVEN = (0,) * 7
LARGE = World(((SEVEN, SEVEN, SEVEN), ((0, 0, 0, 0), (0, 0, 0, 0, 0))))


def reader(seed: int, k: int, *, plain: bool) -> Reader:
    random = np.random.default_rng(seed)
    busy = random.random(LARGE.shape[0])[:, None] * random.random(LARGE.shape[1])[None, :]
    counts = random.poisson(busy**2 * k).astype(np.int16).reshape(1, -1)
    replay = Replay(LARGE, counts, k, "plain" if plain else "capped").run()
    rows = {node: int(listed[0]) for node, listed in replay.listed.items() if listed[0]}
    if not plain:
        assert rows == rows_by_box(LARGE, rolled_up(cube_matrix(LARGE, counts[0]), Rule(trips=k), k))
    return Reader(LARGE, rows, {node: int(bound[0]) for node, bound in replay.bounds.items()}, k, plain)


def boxes_to_try(seed: int) -> list[int]:
    return [int(at) for at in np.random.default_rng(seed).choice(len(LARGE.boxes), 60, replace=False)]


@pytest.mark.parametrize("seed", range(3))
def test_no_box_of_a_larger_world_is_known_to_hold_trips(seed: int) -> None:
    known = reader(seed, 4, plain=False)
    assert len(known.rows) > 5
    assert all(known.may_be_empty(LARGE.boxes[at]) for at in boxes_to_try(seed))


def test_boxes_of_a_larger_world_are_known_to_hold_trips_under_the_plain_cascade() -> None:
    known = reader(0, 4, plain=True)
    assert not all(known.may_be_empty(box) for box in LARGE.boxes)
