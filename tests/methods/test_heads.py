"""Rows that must have so many persons, where trips above a cap go on to a coarser row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.cascades import PAIR, SINGLE, THREE, Node, World
from attacks.judged import PERSONS, Judged, trips_of
from odkanon import ODMatrix, Rule
from odkanon.core.arrays import Ints
from odkanon.engine.memory.residual import choose_leaving_trips
from odkanon.model.flows import Contributions
from odkanon.model.od import od_matrix
from odkanon.model.provenance import Source
from worlds.cubes import rolled_up, rows_by_box, tree_of
from worlds.tries import tries

WORLDS = [World(((THREE, THREE), THREE)), World(((PAIR, PAIR, PAIR), (PAIR, PAIR)))]
K = 3


def crowded(world: World, seed: int) -> tuple[ODMatrix, np.ndarray, np.ndarray]:
    """Return a matrix of trips of few persons, and the leaf box and the person of each trip."""
    random = np.random.default_rng(seed)
    count = int(random.integers(10, 60))
    ends = np.stack([random.integers(0, size, count) for size in world.shape], axis=1)
    people = random.integers(0, int(random.integers(K, PERSONS + 1)), count)
    od = od_matrix(
        tree_of(world.levels[0]),
        tree_of(world.levels[1]),
        *(end.astype(np.int32) for end in ends.T),
        contributors={"persons": people.astype(np.int32)},
        source=Source(rows=count),
    )
    return od, ends, people


def by_definition(world: World, ends: np.ndarray, people: np.ndarray) -> Judged:
    """Return the rows of the definition, which knows the persons of every group."""
    at = np.ravel_multi_index(tuple(ends.T), world.shape)
    who = np.zeros((1, int(np.prod(world.shape))), dtype=np.int64)
    np.add.at(who[0], at, [trips_of(person) for person in people.tolist()])
    counts = np.bincount(at, minlength=who.shape[1]).astype(np.int16).reshape(1, -1)
    judged = Judged(world, counts, K, people=who, least=(0, K))
    judged.run()
    return judged


@tries(60)
@given(st.sampled_from(WORLDS), st.integers(0, 2**32 - 1))
def test_rows_are_those_of_the_definition(world: World, seed: int) -> None:
    od, ends, people = crowded(world, seed)
    expected = {node: int(rows[0]) for node, rows in by_definition(world, ends, people).listed.items() if rows[0]}
    assert rows_by_box(world, rolled_up(od, Rule(trips=K, persons=K), K)) == expected


def test_rows_pass_trips_on_in_these_worlds() -> None:
    worlds = [(world, *crowded(world, seed)) for world in WORLDS for seed in range(30)]
    assert sum(int(rolled_up(od, Rule(trips=K, persons=K), K).rows.at_cap.sum()) for _, od, _, _ in worlds) > 20


def contributions_of(trips: list[list[int]]) -> Contributions:
    """Return who takes part in which group, given the trips of each person in each group."""
    table = np.array(trips)
    flow, contributor = np.nonzero(table)
    return Contributions(
        flow.astype(np.int32), contributor.astype(np.int32), table.shape[1], {"trips": table[flow, contributor]}
    )


def gone_of(contributions: Contributions, trips: Ints, leave: Ints) -> Ints:
    """Return how many trips of each person leave each group."""
    table = np.zeros((len(trips), contributions.people), dtype=np.int64)
    table[contributions.flow, contributions.contributor] = choose_leaving_trips(contributions, trips, leave)
    return table


@pytest.mark.parametrize(
    ("leave", "expected"),
    [
        (0, [0, 0, 0]),  # the two trips of nobody go first
        (2, [0, 0, 0]),
        (3, [1, 0, 0]),  # then one trip each of those who have others
        (4, [1, 0, 1]),
        (7, [3, 0, 2]),  # then the others of them
        (8, [4, 0, 2]),  # then somebody leaves altogether
        (9, [4, 1, 2]),
    ],
)
def test_whose_trips_leave(leave: int, expected: list[int]) -> None:
    """Four, one and three trips of three persons, and two of nobody."""
    gone = gone_of(contributions_of([[4, 1, 3], [1, 1, 1]]), np.array([10, 3]), np.array([leave, 0]))
    assert gone.tolist() == [expected, [0, 0, 0]]


@tries(60)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(0, 100),
)
def test_as_many_persons_stay_as_there_is_room_for(trips: list[list[int]], nobody: list[int], share: int) -> None:
    contributions, own = contributions_of(trips), np.array(trips)
    total = own.sum(axis=1) + np.array(nobody[: len(trips)])
    leave = total * share // 100
    gone = gone_of(contributions, total, leave)
    assert ((gone >= 0) & (gone <= own)).all()
    assert np.array_equal(gone.sum(axis=1), np.maximum(leave - np.array(nobody[: len(trips)]), 0))
    stay = ((own - gone) > 0).sum(axis=1)
    assert np.array_equal(stay, np.minimum((own > 0).sum(axis=1), total - leave))


LONELY = World(((THREE, THREE, THREE, SINGLE), SINGLE))


def rows_of_two(leaves: Sequence[int], households: Sequence[int]) -> dict[Node, int]:
    """Return the rows under a rule on persons and households; every trip has a person of its own."""
    od = od_matrix(
        tree_of(LONELY.levels[0]),
        tree_of(LONELY.levels[1]),
        np.array(leaves, dtype=np.int32),
        np.zeros(len(leaves), dtype=np.int32),
        contributors={
            "persons": np.arange(len(leaves), dtype=np.int32),
            "households": np.array(households, dtype=np.int32),
        },
        source=Source(rows=len(leaves)),
    )
    return rows_by_box(LONELY, rolled_up(od, Rule(persons=2, households=2), 2))


def test_a_row_does_not_tell_of_persons_where_households_go_on() -> None:
    """Nobody knows which persons go on, so a row above must not need the two of one household in the lonely place."""
    seen = rows_of_two([0, 1, 2, 3, 4, 6, 7, 9, 9], [0, 1, 2, 3, 4, 5, 6, 7, 7])
    assert len(seen) >= 3
    lonely_is_empty = []
    for counts in product([(1, 1, 0), (1, 1, 1), (2, 1, 0)], repeat=3):
        leaves = np.repeat(np.arange(9), np.concatenate(counts)).tolist()
        lonely_is_empty.append(rows_of_two(leaves, range(len(leaves))))
    assert seen in lonely_is_empty
