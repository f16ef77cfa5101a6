"""What the rows of a cube imply along attributes: readers who know the method, and readers who subtract views."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.cascades import PAIR, SINGLE, THREE, Mode, attack, listed
from attacks.views import SUBTRACTED, leaks, rows_of
from odkanon import Rule
from odkanon.methods.method_registry import anonymize
from worlds.cubes import Cube, cube_matrix, random_counts
from worlds.tries import tries

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


def test_no_group_can_be_shown_along_attributes() -> None:
    tried, on, off = attack(WORLDS, "capped")
    assert tried > 400_000
    assert (on, off) == (0, 0)


def test_no_group_can_be_shown_where_rows_are_weighed() -> None:
    assert attack(WORLDS, "kept")[1:] == (0, 0)


def test_the_plain_cascade_shows_groups_along_attributes() -> None:
    _, on, off = attack(WORLDS, "plain")
    assert on > 100_000
    assert off > 100_000


@tries(40)
@given(
    st.sampled_from(
        [
            Cube((PAIR, PAIR, THREE), (0, 1, 2)),
            Cube((PAIR, THREE, PAIR), (2, 0, 1)),
            Cube(((PAIR, PAIR), (PAIR, THREE), PAIR), (0, 1, 2, 0, 1)),
            Cube(((PAIR, PAIR), (PAIR, PAIR), THREE, (PAIR, PAIR)), (0, 1, 3, 2, 3, 0, 1)),
            Cube(((PAIR, PAIR), (PAIR, THREE), THREE), (0, 1, 2, 0, 1), spare=1),
            Cube((THREE, (PAIR, PAIR), (THREE, SINGLE)), (0, 1, 2, 2, 1), spare=1),
        ]
    ),
    st.integers(2, 4),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["capped", "plain", "kept"]),
)
def test_the_method_publishes_what_the_definition_says(world: Cube, k: int, seed: int, mode: Mode) -> None:
    counts = random_counts(world, k, seed)
    rule = Rule(trips=k, weight=0.5) if mode == "kept" else Rule(trips=k)
    release = anonymize(
        cube_matrix(world, counts, counts),
        rule,
        method="cascade",
        drop_order=world.drop_order(),
        allow_inference=mode == "plain",
    )
    expected = listed(world, counts, k, mode)
    assert release.unlisted is None or release.suppressed.trips <= release.unlisted
    assert len({box for _, box in expected}) == len(expected)
    assert ({} if release.refusal else rows_of(world, release)) == {box: trips for (_, box), trips in expected.items()}


def test_two_sexes_of_nine_are_not_told() -> None:
    """Eighteen of any sex between two places, each sex below ten: a reader would know that both are nine."""
    world = Cube((PAIR, PAIR, PAIR), (2, 0, 1))
    counts = np.zeros(world.shape, dtype=np.int64)
    counts[0, 0] = 9
    counts[1, 1] = 30
    od, pair = cube_matrix(world, counts), ((0, 1), (0, 1), (0, 2))
    plain = anonymize(od, Rule(trips=10), method="cascade", drop_order="a2", allow_inference=True)
    safe = anonymize(od, Rule(trips=10), method="cascade", drop_order="a2")
    assert rows_of(world, plain)[pair] == 18
    assert pair not in rows_of(world, safe)
    assert sum(rows_of(world, safe).values()) > 60


# A reader who adds and subtracts: rows, views and totals.


@pytest.mark.parametrize("world", SUBTRACTED)
def test_subtracting_rows_views_and_totals_leaves_nothing_below_k(world: Cube) -> None:
    found = [leaks(world, seed) for seed in range(60)]
    assert sum(one is not None for one in found) > 45
    assert all(one in (None, 0) for one in found)


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
