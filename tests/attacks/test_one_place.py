"""Tables by one place: what the definition says comes out of a file, and its rows show no group.

The other axis of the matrix is a single point, which has no level to coarsen and no smaller box. The attacker of
`attacks.cascades` knows the method, the trees and the rows, and tries every input with the same rows.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from attacks.cascades import PAIR, SINGLE, THREE, Box, World, attack, listed
from odkanon import Release, anonymize, read_hierarchy
from worlds.cubes import Cube, random_counts

POINT = 0
TWO_TIERS = ((PAIR, PAIR), (PAIR, THREE))
WORLDS = [
    (Cube((THREE, POINT, PAIR), (0, 2)), 3),
    (Cube((THREE, POINT, PAIR), (2, 0)), 4),
    (Cube(((PAIR, PAIR), POINT, PAIR), (0, 2, 0)), 3),
    (Cube((THREE, POINT, (PAIR, SINGLE)), (2, 0, 2)), 2),
    (Cube((PAIR, POINT, PAIR, PAIR), (3, 0, 2)), 3),
    (Cube(((PAIR, SINGLE), POINT, PAIR), (2, 0, 0)), 3),
    (Cube(((PAIR, THREE), POINT), (0, 0)), 3),
    (Cube(((PAIR, PAIR), POINT, PAIR), (2, 0, 0)), 2),
]
DRAWN = [
    Cube((THREE, POINT, THREE), (0, 2)),
    Cube(((PAIR, PAIR), POINT, PAIR), (0, 2, 0)),
    Cube(((THREE, PAIR), POINT, PAIR, THREE), (0, 3, 2, 0)),
    Cube((TWO_TIERS, POINT, THREE), (0, 2, 0, 0)),
]


def test_no_group_can_be_shown_in_a_table_by_one_place() -> None:
    tried, on, off = attack(WORLDS, "capped")
    assert tried > 25_000
    assert (on, off) == (0, 0)


def test_without_caps_groups_are_shown() -> None:
    assert min(attack(WORLDS, "plain")[1:]) > 1_000


def lookup(world: World, axis: int) -> pa.Table:
    """Return the tree of an axis as a table: a column a level, each id the level and the first leaf."""
    names = [
        [f"{at}:{next(part[0] for part in level if part[0] <= leaf < part[1])}" for leaf in range(world.shape[axis])]
        for at, level in enumerate(world.levels[axis])
    ]
    return pa.table({f"level{at}": own for at, own in enumerate(names)})


def people(world: World, counts: np.ndarray) -> pa.Table:
    """Return a row for each combination that occurs, with its number of residents."""
    found = np.nonzero(counts.reshape(world.shape))
    columns = {"home": [f"0:{leaf}" for leaf in found[0].tolist()]}
    columns |= {f"a{axis}": [f"0:{leaf}" for leaf in found[axis].tolist()] for axis in range(2, len(world.shape))}
    return pa.table(columns | {"residents": counts.reshape(world.shape)[found]})


def boxes_of(world: World, release: Release) -> dict[Box, int]:
    """Return the rows of a table as boxes of public leaves."""
    table, found = release.to_arrow(), {}
    for row in table.to_pylist():
        box: list[tuple[int, int]] = []
        for axis, levels in enumerate(world.levels):
            value = {0: row["home"], 1: "0:0"}.get(axis) or row[f"a{axis}"]
            level, _, first = str(value).partition(":")
            at = len(levels) - 1 if value in ("any", "world") else int(level)
            box.append(
                levels[at][0] if value in ("any", "world") else next(p for p in levels[at] if p[0] == int(first))
            )
        found[tuple(box)] = row["residents"]
    return found


@pytest.mark.filterwarnings("ignore::odkanon.ReleaseWarning")
def test_a_file_becomes_what_the_definition_says() -> None:
    found = 0
    for world, seed in product(DRAWN, range(2)):
        k, counts = 2 + seed, random_counts(world, 2 + seed, seed, busy=0.8)
        release = released(world, counts, k)
        expected = {box: count for (_, box), count in listed(world, counts, k).items()}
        assert ({} if release.refusal else boxes_of(world, release)) == expected
        found += len(expected)
    assert found > 25


def released(world: Cube, counts: np.ndarray, k: int) -> Release:
    """Return the table of one input, read from a table of residents; every value of an attribute is a public group."""
    release = anonymize(
        people(world, counts),
        min_trips=k,
        place="home",
        unit="residents",
        hierarchy=read_hierarchy(lookup(world, 0)),
        by=[f"a{axis}:{','.join(f'{each}={each}' for each in leaves(world, axis))}" for axis in attributes(world)],
        drop_order=",".join(f"{'place' if axis == 0 else f'a{axis}'}:{level}" for axis, level in steps(world)),
    )
    assert isinstance(release, Release)
    return release


def attributes(world: World) -> range:
    """Return the axes of attributes."""
    return range(2, len(world.shape))


def steps(world: Cube) -> list[tuple[int, int]]:
    """Return the axis and the level of each rung."""
    return [(axis, world.order[: at + 1].count(axis)) for at, axis in enumerate(world.order)]


def leaves(world: World, axis: int) -> list[str]:
    return [f"0:{leaf}" for leaf in range(world.shape[axis])]
