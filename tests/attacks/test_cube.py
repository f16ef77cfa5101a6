"""What the rows of a cube imply along attributes: readers who know the method, and readers who subtract views."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks.cascades import Box, Mode, Node, Replay, every_input, shown
from odkanon import Release, Rule, View, anonymize
from worlds.cubes import Cube, cube_matrix, random_counts

SINGLE, PAIR, THREE = (0,), (0, 0), (0, 0, 0)
WORLDS = [
    # One place axis (the other has a single leaf), and two sexes.
    (Cube(((PAIR, PAIR), (0,), PAIR), (0, 2, 0, 1)), 3),
    (Cube(((PAIR, PAIR), (0,), PAIR), (0, 1, 0, 2)), 3),
    (Cube((THREE, SINGLE, PAIR), (2, 0, 1)), 4),
    # Three modes.
    (Cube((THREE, SINGLE, THREE), (0, 1, 2)), 2),
    (Cube((THREE, SINGLE, THREE), (2, 0, 1)), 2),
    # Modes in groups.
    (Cube((PAIR, SINGLE, (PAIR, SINGLE)), (2, 0, 1, 2)), 3),
    # Two place axes; two sexes; sexes and modes.
    (Cube((PAIR, PAIR, PAIR), (0, 1, 2)), 3),
    (Cube((PAIR, PAIR, PAIR), (2, 0, 1)), 3),
    (Cube((PAIR, SINGLE, PAIR, PAIR), (3, 0, 1, 2)), 3),
    (Cube((PAIR, SINGLE, PAIR, PAIR), (0, 1, 3, 2)), 3),
]


def attack(mode: Mode) -> tuple[int, int, int]:
    """Return how many inputs were tried, and how many groups were shown on the ladder and off it."""
    tried, on, off = 0, 0, 0
    for world, k in WORLDS:
        replay = Replay(world, every_input(world, k), k, mode).run()
        found = shown(replay, replay.signature())
        tried, on, off = tried + len(replay.counts), on + found[0], off + found[1]
    return tried, on, off


def test_no_group_can_be_shown_along_attributes() -> None:
    tried, on, off = attack("capped")
    assert tried > 400_000
    assert (on, off) == (0, 0)


def test_no_group_can_be_shown_where_heads_are_counted() -> None:
    assert attack("kept")[1:] == (0, 0)


def test_the_plain_cascade_shows_groups_along_attributes() -> None:
    _, on, off = attack("plain")
    assert on > 100_000
    assert off > 100_000


def rows_of(world: Cube, release: Release) -> dict[Box, int]:
    """Return the rows of a release as boxes of public leaves."""
    named = [
        {("any" if axis > 1 and at == len(levels) - 1 else f"{at}:{part[0]}"): part for part in level}
        for axis, levels in enumerate(world.levels)
        for at, level in enumerate(levels)
    ]
    by_axis: list[dict[str, tuple[int, int]]] = []
    for levels in world.levels:
        by_axis.append({name: part for some in named[: len(levels)] for name, part in some.items()})
        named = named[len(levels) :]
    table = release.table()
    columns = [table.column(name).to_pylist() for name in ("origin", "destination", *world.names)]
    boxes = [tuple(by_axis[axis][value] for axis, value in enumerate(row)) for row in zip(*columns, strict=True)]
    return dict(zip(boxes, table.column("trips").to_pylist(), strict=True))


def listed(world: Cube, counts: np.ndarray, k: int, mode: Mode) -> dict[Node, int]:
    replay = Replay(world, counts.astype(np.int16).reshape(1, -1), k, mode).run()
    return {node: int(rows[0]) for node, rows in replay.listed.items() if rows[0]}


@settings(max_examples=40)
@given(
    st.sampled_from(
        [
            Cube((PAIR, PAIR, THREE), (0, 1, 2)),
            Cube((PAIR, THREE, PAIR), (2, 0, 1)),
            Cube(((PAIR, PAIR), (PAIR, THREE), PAIR), (0, 1, 2, 0, 1)),
            Cube(((PAIR, PAIR), (PAIR, PAIR), THREE, (PAIR, PAIR)), (0, 1, 3, 2, 3, 0, 1)),
        ]
    ),
    st.integers(2, 4),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["capped", "plain", "kept"]),
)
def test_the_method_publishes_what_the_definition_says(world: Cube, k: int, seed: int, mode: Mode) -> None:
    counts = random_counts(world, k, seed)
    rule = Rule(trips=k, persons=1) if mode == "kept" else Rule(trips=k)
    implications = "allowed" if mode == "plain" else "safe"
    release = anonymize(
        cube_matrix(world, counts), rule, method="cascade", give_up=world.give_up(), implications=implications
    )
    expected = listed(world, counts, k, mode)
    assert len({box for _, box in expected}) == len(expected)
    assert ({} if release.refusal else rows_of(world, release)) == {box: trips for (_, box), trips in expected.items()}


def test_two_sexes_of_nine_are_not_told() -> None:
    """Eighteen of any sex between two places, each sex below ten: a reader would know that both are nine."""
    world = Cube((PAIR, PAIR, PAIR), (2, 0, 1))
    counts = np.zeros(world.shape, dtype=np.int64)
    counts[0, 0] = 9
    counts[1, 1] = 30
    od, pair = cube_matrix(world, counts), ((0, 1), (0, 1), (0, 2))
    plain = anonymize(od, Rule(trips=10), method="cascade", give_up="a2", implications="allowed")
    safe = anonymize(od, Rule(trips=10), method="cascade", give_up="a2")
    assert rows_of(world, plain)[pair] == 18
    assert pair not in rows_of(world, safe)
    assert sum(rows_of(world, safe).values()) > 60


# A reader who adds and subtracts: rows, views and totals.


def questions(world: Cube, release: Release) -> Iterator[tuple[frozenset[tuple[int, ...]], View]]:
    """Yield views, with the combinations of values that each asks for: everybody, one value, two, and all but one."""
    leaves = [[f"0:{start}" for start, _ in levels[0]] for levels in world.levels[2:]]
    everything = list(np.ndindex(*(len(own) for own in leaves)))
    yield frozenset(everything), release.view()
    for axis, (name, own) in enumerate(zip(world.names, leaves, strict=True)):
        for at, value in enumerate(own):
            yield frozenset(kind for kind in everything if kind[axis] == at), release.view(f'{name} == "{value}"')
            yield frozenset(kind for kind in everything if kind[axis] != at), release.view(f'{name} != "{value}"')
    if len(leaves) > 1:
        for kind in everything:
            asked = " and ".join(
                f'{name} == "{own[at]}"' for name, own, at in zip(world.names, leaves, kind, strict=True)
            )
            yield frozenset([kind]), release.view(asked)


def told(view: View) -> dict[tuple[str, str], int]:
    rows = view.table.to_pylist()
    return {(row["origin"], row["destination"]): row["trips"] for row in rows} | {("", ""): int(view.total())}


def differences(tables: list[tuple[frozenset[tuple[int, ...]], dict[tuple[str, str], int]]]) -> Iterator[int]:
    """Yield what is left of every number of a table when a table of some of the same trips is taken from it."""
    for (one, whole), (other, part) in combinations(tables, 2):
        if other < one or one < other:
            large, small = (whole, part) if other < one else (part, whole)
            yield from (trips - small.get(pair, 0) for pair, trips in large.items())


SUBTRACTED = [
    Cube((PAIR, THREE, THREE), (0, 2, 1)),
    Cube(((PAIR, PAIR), (PAIR, PAIR), PAIR), (0, 1, 2, 0, 1)),
    Cube((THREE, PAIR, PAIR, THREE), (3, 0, 1, 2)),
]


@pytest.mark.parametrize("world", SUBTRACTED)
def test_subtracting_views_leaves_nothing_below_k(world: Cube) -> None:
    worlds = 0
    for seed in range(70):
        k = 2 + seed % 4
        release = anonymize(
            cube_matrix(world, random_counts(world, k, seed, 0.3 + 0.2 * (seed % 3))), Rule(trips=k), method="cascade"
        )
        if release.refusal:
            continue
        worlds += 1
        tables = [(kinds, told(view)) for kinds, view in questions(world, release)]
        assert all(left == 0 or left >= k for _, table in tables for left in table.values())
        assert all(left == 0 or left >= k for left in differences(tables))
    assert worlds > 50


def test_subtracting_tables_of_their_own_shows_small_groups() -> None:
    """Everybody's table and that of one kind, each with k in every cell: the difference is whoever else there is."""
    world, k, small = Cube((PAIR, THREE, THREE), (0, 2, 1)), 3, 0
    for seed in range(40):
        counts = random_counts(world, k, seed).reshape(world.shape)
        of_all, of_one = counts.sum(axis=2), counts[:, :, 0]
        both = (of_all >= k) & (of_one >= k)
        left = (of_all - of_one)[both]
        small += int(((left > 0) & (left < k)).sum())
    assert small > 10
