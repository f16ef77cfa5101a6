"""The reader of nested rows against one who tries every input of a small world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attacks.cascades import Mode, Replay, World, every_input
from odkanon.evidence.attacks.cascade_reader import CascadeReader, CascadeVariant, LadderNode
from odkanon.methods.cascade.ladder import Ladder
from odkanon.methods.cascade.method import ladder_of
from worlds.cubes import Cube, tree_of

THREE, PAIR, SINGLE = (0, 0, 0), (0, 0), (0,)
WORLDS = [
    (World((THREE, THREE)), 2),
    (World((THREE, (PAIR, SINGLE))), 2),
    (World(((SINGLE, PAIR), (PAIR, SINGLE))), 2),
    (World((PAIR, (0, 0, 0, 0))), 3),
    (Cube((PAIR, SINGLE, THREE), (2, 0, 1)), 2),
    (Cube((PAIR, SINGLE, (PAIR, SINGLE)), (0, 2, 1, 2), spare=1), 2),
    (Cube((PAIR, PAIR, PAIR), (0, 2, 1), spare=1), 2),
]


def outputs(replay: Replay) -> list[tuple[int, bool]]:
    """Return an input for each different output, and whether its rows show any box to have trips outside of them."""
    _, first, number = np.unique(replay.signature(), return_index=True, return_inverse=True)
    shown = np.zeros(len(first), dtype=bool)
    for box in replay.world.boxes:
        least = np.full(len(first), np.iinfo(np.int16).max, dtype=np.int16)
        np.minimum.at(least, number, replay.residual(box))
        shown |= least > 0
    return list(zip(first.tolist(), shown.tolist(), strict=True))


def reader_of(replay: Replay, at: int, mode: Mode) -> CascadeReader:
    world = replay.world
    places = [[{box: code for code, box in enumerate(level)} for level in levels] for levels in world.levels]
    rows = {
        LadderNode(rung, tuple(places[axis][world.rungs[rung][axis]][part] for axis, part in enumerate(box))): trips
        for (rung, box), listed in replay.listed.items()
        if (trips := int(listed[at]))
    }
    trees = [tree_of(levels) for levels in world.levels]
    if isinstance(world, Cube):
        leaves = trees[-1].leaves.tolist()
        trees[-1] = replace(trees[-1], spare=frozenset(leaves[len(leaves) - world.spare :]))
    ladder = ladder_of(trees, None)
    ladder = Ladder(ladder.sides, world.order) if isinstance(world, Cube) else ladder
    assert ladder.levels == world.rungs
    variant: CascadeVariant = "plain" if mode == "plain" else "capped" if mode == "capped" else "kept"
    return CascadeReader(ladder, rows, replay.k, variant)


@pytest.mark.parametrize(("world", "k"), WORLDS)
@pytest.mark.parametrize("mode", ["plain", "capped", "kept"])
def test_the_reader_shows_what_trying_every_input_shows(world: World, k: int, mode: Mode) -> None:
    """On a sample of the outputs: a row with a part that cannot be empty is there if any box is shown at all."""
    replay = Replay(world, every_input(world, k), k, mode).run()
    found = outputs(replay)
    random = np.random.default_rng(0)
    some = [found[at] for at in random.permutation(len(found))[:120]]
    assert any(shown for _, shown in some) == (mode == "plain")
    for at, shown in some:
        reader = reader_of(replay, at, mode)
        assert any(True for node in reader.rows for _ in reader.nonempty(node)) == shown


@pytest.mark.parametrize(("world", "k"), WORLDS)
def test_the_reader_works_out_the_caps(world: World, k: int) -> None:
    replay = Replay(world, every_input(world, k), k, "capped").run()
    for at, _ in outputs(replay)[:40]:
        reader = reader_of(replay, at, "capped")
        for node, listed in reader.rows.items():
            assert node.rung == 0 or listed <= reader.bound(node)
