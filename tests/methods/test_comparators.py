"""What must hold of the releases of every comparator, whatever the data: far apart, few, H3 or lookup zones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import InputError, Release, Rule, read_matrix
from odkanon.methods.method_registry import anonymize
from odkanon.publish.manifests import full_manifest
from worlds.records import World, budgets, h3_worlds, rules, table_of, worlds
from worlds.tries import tries


def run(world_od: Any, rule: Rule, method: str, budget: float) -> Release:
    return anonymize(world_od, rule, method=method, **({} if method == "mondrian" else {"budget": budget}))


@tries(25)
@given(worlds, rules(), st.sampled_from(["oigh", "atg-soft", "mondrian"]), budgets)
def test_nothing_is_lost_and_every_class_meets_the_rule(world: World, rule: Rule, method: str, budget: float) -> None:
    if method == "mondrian" and world.od.origins.resolution is None:
        with pytest.raises(InputError, match="coordinates"):
            run(world.od, rule, method, budget)
        return
    release = run(world.od, rule, method, budget)
    assert rule.satisfied(release.classes).all()
    assert int(release.classes.trips.sum() + release.suppressed.trips) == len(world.trips)
    if release.refusal is None:
        assert json.dumps(full_manifest(release), allow_nan=False)
        beside = 0 if release.companion is None else release.companion.trips
        assert release.suppressed.trips - beside <= budget * len(world.trips)


@tries(15)
@given(h3_worlds(), rules(), st.sampled_from(["oigh", "atg-soft", "mondrian"]), st.randoms(use_true_random=False))
def test_row_order_does_not_change_a_byte(
    tmp_path_factory: pytest.TempPathFactory, world: World, rule: Rule, method: str, random: Any
) -> None:
    shuffled = list(world.trips)
    random.shuffle(shuffled)
    first, second = (run(od, rule, method, 0.2) for od in (world.od, read_matrix(table_of(shuffled), engine="memory")))
    assert first.refusal == second.refusal
    if first.refusal is None:
        folder = tmp_path_factory.mktemp("bytes")
        assert _files(first.save(folder / "a/release")) == _files(second.save(folder / "b/release"))


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "release.json"}
