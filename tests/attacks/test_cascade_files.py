"""All files of a folder: whoever reads them knows the rows, and nothing else that depends on the trips."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import h3
import numpy as np
import pytest

from attacks.cascades import Replay, World, every_input
from cli.runner import odkanon
from odkanon import Rule
from odkanon.methods.method_registry import anonymize
from worlds.cubes import Cube, cube_matrix

WORLDS = [World(((0, 0, 0), (0, 0, 0))), World((((0, 0), (0, 0)), (0, 0)))]

CUBES = [
    (Cube(((0, 0, 0), (0,), (0, 0, 0)), (2, 0, 1)), "a2,place"),
    (Cube(((0, 0), (0, 0), (0, 0)), (0, 1, 2)), "place,a2"),
]


def folder_of(world: World, counts: np.ndarray, path: Path, drop_order: str | None = None) -> dict[str, bytes]:
    """Return every file that the program publishes of one input."""
    od = cube_matrix(world, counts.astype(np.int64), 3 * counts.astype(np.int64) if drop_order is None else None)
    saved = anonymize(od, Rule(trips=2), method="cascade", drop_order=drop_order).save(path)
    return {file.name: file.read_bytes() for file in saved.iterdir()}


@pytest.mark.parametrize(("world", "drop_order"), [*((world, None) for world in WORLDS), *CUBES])
def test_inputs_with_the_same_rows_have_the_same_folder(world: World, drop_order: str | None, tmp_path: Path) -> None:
    inputs = every_input(world, 2)
    signature = Replay(world, inputs, 2).run().signature()
    distinct, number, sizes = np.unique(signature, return_inverse=True, return_counts=True)
    random = np.random.default_rng(0)
    groups = random.choice(np.flatnonzero((distinct != 0) & (sizes > 20)), 4, replace=False)
    for group in groups.tolist():
        chosen = random.choice(np.flatnonzero(number == group), 3, replace=False).tolist()
        first, *others = (
            folder_of(world, inputs[at], tmp_path / f"{group}-{at}" / "release", drop_order) for at in chosen
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


NORTH_AND_EAST = [48.85 + 0.01 * at for at in range(3)], [2.30 + 0.013 * at for at in range(3)]
ODD: dict[str, dict[str, object]] = {
    "far away, by ferry": {"start_lat": 40.7, "start_lon": -74.0, "end_lat": 35.6, "end_lon": 139.7, "mode": "ferry"},
    "near": {"start_lat": 48.9, "start_lon": 2.45, "end_lat": 48.95, "end_lon": 2.5},
    "a year later": {
        "start_lat": 43.0,
        "start_lon": 1.0,
        "start_time": "2025-01-12 03:10",
        "end_time": "2025-01-12 04:00",
    },
    "a weight of many decimals": {"start_lat": 44.0, "start_lon": 1.0, "weight": "0.123456789", "sex": "X"},
    "an unreadable time": {"start_time": "yesterday"},
    "no coordinates": {"start_lat": "", "start_lon": ""},
    "out of range": {"start_lat": "191"},
}
"""Trips that are in no row, or not usable."""


def dense(path: Path, odd: Iterable[dict[str, object]]) -> Path:
    """Write fourteen trips for each of 56 flows, all of which are rows, and a few odd ones."""
    ends = list(product(*NORTH_AND_EAST))
    table: list[dict[str, object]] = []
    for number, ((a, start), (b, end)) in enumerate(product(enumerate(ends), enumerate(ends))):
        if number % 4 and a != b:
            table += [
                {
                    **dict(zip(("start_lat", "start_lon", "end_lat", "end_lon"), (*start, *end), strict=True)),
                    "start_time": f"2024-03-0{4 + number % 5} {8 + 4 * (a % 3):02}:10",
                    "end_time": f"2024-03-0{4 + number % 5} {8 + 4 * (a % 3):02}:40",
                    "person": f"p{number}-{at}",
                    "weight": (2.5, 3, 1.75)[at % 3],
                    "mode": ("car", "bus", "walk")[(a + b) % 3],
                    "sex": ("f", "m")[number % 2],
                }
                for at in range(14)
            ]
    table += [table[0] | {"person": f"odd{at}"} | each for at, each in enumerate(odd)]
    lines = [",".join(table[0]), *(",".join(map(str, row.values())) for row in table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "options",
    ["--title X", "--protect participants --by mode --by weekday", "--by hour --by sex --engine duckdb"],
)
def test_odd_trips_that_no_row_lists_leave_no_trace_in_any_byte(options: str, tmp_path: Path) -> None:
    """Neither where, when, how or with what weight somebody travels nor what could not be read is in any file."""
    folders: list[dict[str, bytes]] = []
    for odd in ([], list(ODD.values())):
        release = tmp_path / str(len(folders)) / "release"
        release.parent.mkdir()
        done = odkanon("anonymize", dense(tmp_path / "trips.csv", odd), "-o", release, *options.split())
        assert done.returncode == 0, done.stderr
        folders.append({file.name: file.read_bytes() for file in release.iterdir()})
    plain, other = folders
    assert plain["classes.csv"].count(b"\n") > 50
    assert plain.keys() == other.keys() >= {"report.html", "matrix.csv"}
    assert [name for name in plain if plain[name] != other[name]] == []
