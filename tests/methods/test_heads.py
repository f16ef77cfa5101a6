"""Rows that must have so many persons, where a trip above a cap may stand in a coarser row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from attacks.cascades import PAIR, THREE, World, within
from odkanon import ODMatrix, Rule
from odkanon.core.arrays import Ints
from odkanon.engine.rest import Groups, MemoryRest
from odkanon.methods.cascade import fall
from odkanon.model.account import Source
from odkanon.model.od import od_matrix
from worlds.cubes import fallen, rows_by_box, tree_of

WORLDS = [World(((THREE, THREE), THREE)), World(((PAIR, PAIR, PAIR), (PAIR, PAIR)))]
K = 3


def crowded(world: World, seed: int) -> tuple[ODMatrix, np.ndarray, np.ndarray]:
    """Return a matrix of trips of few persons, and the leaf box and the person of each trip."""
    random = np.random.default_rng(seed)
    count = int(random.integers(10, 60))
    ends = np.stack([random.integers(0, size, count) for size in world.shape], axis=1)
    people = random.integers(0, int(random.integers(K, 25)), count)
    od = od_matrix(
        tree_of(world.levels[0]),
        tree_of(world.levels[1]),
        *(end.astype(np.int32) for end in ends.T),
        heads={"persons": people.astype(np.int32)},
        source=Source(rows=count),
    )
    return od, ends, people


def can_be_made_of_persons(world: World, seed: int) -> tuple[bool, int]:
    """Tell whether trips can be dealt out so that each row has K persons; and how many rows may have passed trips on.

    A flow: each row takes K trips of different persons, and the rest of its trips from anybody.
    """
    od, ends, people = crowded(world, seed)
    found = fallen(od, Rule(trips=K, persons=K), K)
    rows = rows_by_box(world, found)
    trips, persons = len(ends), int(people.max()) + 1
    source, sink, first = 0, 1, 2 + trips
    edges = [(2 + trip, sink, 1) for trip in range(trips)]
    for number, ((_, box), listed) in enumerate(rows.items()):
        distinct, anybody, of = (first + number * (persons + 2) + at for at in range(3))
        edges += [(source, distinct, K), (source, anybody, listed - K)]
        edges += [(distinct, of + person, 1) for person in range(persons)]
        for trip, leaf in enumerate(ends.tolist()):
            if within(tuple((at, at + 1) for at in leaf), box):
                edges += [(anybody, 2 + trip, 1), (of + int(people[trip]), 2 + trip, 1)]
    size = first + len(rows) * (persons + 2)
    start, end, most = (np.array(part, dtype=np.int32) for part in zip(*edges, strict=True))
    graph = csr_array((most, (start, end)), shape=(size, size))
    return int(maximum_flow(graph, source, sink).flow_value) == sum(rows.values()), int(found.rows.gives.sum())


@settings(max_examples=60)
@given(st.sampled_from(WORLDS), st.integers(0, 2**32 - 1))
def test_every_row_can_be_of_so_many_persons(world: World, seed: int) -> None:
    assert can_be_made_of_persons(world, seed)[0]


def test_rows_pass_trips_on_in_these_worlds() -> None:
    assert sum(can_be_made_of_persons(world, seed)[1] for world in WORLDS for seed in range(30)) > 20


def test_heads_must_not_be_counted_in_a_row_and_again_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four trips of three persons one goes on: either the row has three persons, or somebody new is above."""

    exact = fall.split

    def generous(groups: Groups, bound: Ints) -> tuple[Groups, Groups]:
        stays, left = exact(groups, bound)
        return replace(stays, heads=groups.heads), left

    def all_heads(rest: MemoryRest, groups: Groups) -> Mapping[str, Ints]:
        return groups.heads

    monkeypatch.setattr(MemoryRest, "own_heads", all_heads)
    monkeypatch.setattr(fall, "split", generous)
    assert not all(can_be_made_of_persons(world, seed)[0] for world in WORLDS for seed in range(100))
