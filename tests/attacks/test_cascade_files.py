"""All files of a folder: whoever reads them knows the rows, and nothing else that depends on the trips."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h3
import numpy as np
import pytest

from attacks.cascades import Replay, World, every_input
from odkanon import Rule
from odkanon.methods.method_registry import anonymize
from worlds.cubes import Cube, cube_matrix

WORLDS = [World(((0, 0, 0), (0, 0, 0))), World((((0, 0), (0, 0)), (0, 0)))]

CUBES = [
    (Cube(((0, 0, 0), (0,), (0, 0, 0)), (2, 0, 1)), "a2,place"),
    (Cube(((0, 0), (0, 0), (0, 0)), (0, 1, 2)), "place,a2"),
]


def folder_of(world: World, counts: np.ndarray, path: Path, give_up: str | None = None) -> dict[str, bytes]:
    """Return every file that the program publishes of one input."""
    od = cube_matrix(world, counts.astype(np.int64), 3 * counts.astype(np.int64) if give_up is None else None)
    saved = anonymize(od, Rule(trips=2), method="cascade", give_up=give_up).save(path)
    return {file.name: file.read_bytes() for file in saved.iterdir()}


@pytest.mark.parametrize(("world", "give_up"), [*((world, None) for world in WORLDS), *CUBES])
def test_inputs_with_the_same_rows_have_the_same_folder(world: World, give_up: str | None, tmp_path: Path) -> None:
    inputs = every_input(world, 2)
    signature = Replay(world, inputs, 2).run().signature()
    distinct, number, sizes = np.unique(signature, return_inverse=True, return_counts=True)
    random = np.random.default_rng(0)
    groups = random.choice(np.flatnonzero((distinct != 0) & (sizes > 20)), 4, replace=False)
    for group in groups.tolist():
        chosen = random.choice(np.flatnonzero(number == group), 3, replace=False).tolist()
        first, *others = (
            folder_of(world, inputs[at], tmp_path / f"{group}-{at}" / "release", give_up) for at in chosen
        )
        assert len(first) >= 4
        for other in others:
            assert other == first


def far_apart(path: Path, rows: int, k: int, unlisted: list[int]) -> Path:
    """Write flows of k trips each near Paris, and some smaller ones elsewhere."""
    cells = sorted(h3.cell_to_children(h3.latlng_to_cell(48.8, 2.3, 5), 9))
    elsewhere = sorted(h3.cell_to_children(h3.latlng_to_cell(43.0, -1.0, 5), 9))
    flows = [*((cells[at], cells[at - 7], k) for at in range(rows))]
    flows += [(elsewhere[at], elsewhere[-1 - at], trips) for at, trips in enumerate(unlisted)]
    lines = ["origin,destination,trips", *(f"{origin},{end},{trips}" for origin, end, trips in flows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_command_publishes_no_number_that_unlisted_trips_turn_over(tmp_path: Path) -> None:
    folders = []
    for unlisted in ([], [51], [99]):
        trips, release = far_apart(tmp_path / "trips.csv", 120, 100, unlisted), tmp_path / f"{unlisted}" / "release"
        release.parent.mkdir()
        command = ["anonymize", str(trips), "-o", str(release), "--method", "cascade", "--k", "100"]
        subprocess.run([sys.executable, "-m", "odkanon", *command], check=True, capture_output=True)
        folders.append({file.name: file.read_bytes() for file in release.iterdir()})
    assert json.loads(folders[0]["release.json"])["published"]["trips"] == 12_000
    assert folders[1:] == folders[:1] * 2
