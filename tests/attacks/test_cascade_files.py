"""All files of a folder: whoever reads them knows the rows, and nothing else that depends on the trips."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attacks.cascades import Replay, World, every_input
from methods.test_cascade import matrix
from odkanon import Rule, anonymize

WORLDS = [World(((0, 0, 0), (0, 0, 0))), World((((0, 0), (0, 0)), (0, 0)))]


def folder_of(world: World, counts: np.ndarray, path: Path) -> dict[str, bytes]:
    """Return every file that the program publishes of one input."""
    saved = anonymize(matrix(world, counts.astype(np.int64)), Rule(trips=2), method="cascade").save(path)
    return {file.name: file.read_bytes() for file in saved.iterdir()}


@pytest.mark.parametrize("world", WORLDS)
def test_inputs_with_the_same_rows_have_the_same_folder(world: World, tmp_path: Path) -> None:
    inputs = every_input(world, 2)
    signature = Replay(world, inputs, 2).run().signature()
    distinct, number, sizes = np.unique(signature, return_inverse=True, return_counts=True)
    random = np.random.default_rng(0)
    groups = random.choice(np.flatnonzero((distinct != 0) & (sizes > 20)), 4, replace=False)
    for group in groups.tolist():
        chosen = random.choice(np.flatnonzero(number == group), 3, replace=False).tolist()
        first, *others = (folder_of(world, inputs[at], tmp_path / f"{group}-{at}" / "release") for at in chosen)
        assert len(first) >= 4
        for other in others:
            assert other == first
