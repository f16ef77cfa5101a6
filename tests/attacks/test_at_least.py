"""Rows at their cap: what the files say of them is *at least*, and which they are follows from the rows alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from attacks.cascades import THREE, Replay, World, every_input, within
from odkanon import Rule, open_release
from odkanon.methods.method_registry import anonymize
from worlds.cubes import Cube, cube_matrix

WORLDS = [
    (World((THREE, THREE)), None),
    (World((((0, 0), (0, 0)), (0, 0))), None),
    (Cube((THREE, (0,), THREE), (2, 0, 1)), "a2,place"),
]


@pytest.mark.parametrize(("world", "drop_order"), WORLDS)
def test_a_row_that_is_not_at_its_cap_is_exact(world: World, drop_order: str | None) -> None:
    inputs = every_input(world, 2)[:: 7 if world.shape == (3, 3) else 3]
    replay = Replay(world, inputs, 2).run()
    listed = {box: rows for (_, box), rows in replay.listed.items()}
    capped = {box: rows == replay.bounds[rung, box] for (rung, box), rows in replay.listed.items() if rung}
    beyond = 0
    for box, rows in listed.items():
        finer = [other for other in listed if other != box and within(other, box)]
        own = replay.total(box) - sum((listed[other] for other in finer), np.zeros(len(inputs), dtype=np.int16))
        at_cap = capped.get(box, np.zeros(len(inputs), dtype=bool))
        assert (own >= rows)[rows > 0].all()
        assert (own == rows)[(rows > 0) & ~at_cap].all()
        beyond += int((own > rows)[(rows > 0) & at_cap].sum())
    assert beyond > 20


@pytest.mark.parametrize(("world", "drop_order"), WORLDS)
def test_the_folder_marks_the_rows_at_their_cap(world: World, drop_order: str | None, tmp_path: Path) -> None:
    inputs = every_input(world, 2)
    replay = Replay(world, inputs, 2).run()
    capped = sum((rows > 0) & (rows == replay.bounds[node]) for node, rows in replay.listed.items() if node[0])
    marked = 0
    for at in np.random.default_rng(1).choice(np.flatnonzero(capped > 0), 6, replace=False).tolist():
        od = cube_matrix(world, inputs[at].astype(np.int64))
        folder = anonymize(od, Rule(trips=2), method="cascade", drop_order=drop_order).save(tmp_path / f"{at}")
        rows = list(csv.DictReader((folder / "classes.csv").read_text(encoding="utf-8").splitlines()))
        assert sum(row["at_cap"] == "true" for row in rows) == capped[at]
        assert {row["at_cap"] for row in rows} <= {"true", "false"}
        assert open_release(folder).table.column("at_cap").to_pylist() == [row["at_cap"] == "true" for row in rows]
        marked += int(capped[at])
        account = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        assert "at least so many where at_cap is true" in account["statement"]
        assert "box" in account["statement"]
        assert "not the total of the input" in account["statement"]
        fields = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))["resources"][0]["schema"][
            "fields"
        ]
        described = {field["name"]: field for field in fields}
        assert described["at_cap"]["type"] == "boolean"
        assert "at least" in described["trips"]["description"]
    assert marked >= 6


def test_without_caps_rows_are_exact() -> None:
    world = World((THREE, THREE))
    od = cube_matrix(world, np.full(9, 3))
    release = anonymize(od, Rule(trips=2), method="cascade", allow_inference=True)
    assert release.classes.at_cap is not None
    assert not release.classes.at_cap.any()
    assert anonymize(od, Rule(trips=2), budget=0.3).classes.at_cap is None
