"""What must hold of every release, whatever the data."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from odkanon import Release, Rule, UnsafeReleaseError, make_survey, read_matrix, read_recipe, read_trips, utility
from odkanon.methods.method_registry import anonymize
from odkanon.model.flows import Totals
from odkanon.model.published_flows import Deviation
from odkanon.model.release_spec import ReleaseSpec
from odkanon.publish.manifests import full_manifest
from odkanon.read.od_matrix import build_od
from worlds.records import World, budgets, h3_worlds, rules, table_of, worlds
from worlds.tries import tries

when = st.sampled_from(["before", "after"])


@tries(25)
@given(worlds, rules(), when, budgets)
def test_nothing_is_lost_and_every_class_meets_the_rule(world: World, rule: Rule, suppress: Any, budget: float) -> None:
    release = anonymize(world.od, rule, suppress=suppress, budget=budget)
    assert rule.satisfied(release.classes).all()
    told = full_manifest(release) if not release.refusal else None
    pairs = world.pairs
    assert int(release.classes.trips.sum()) + release.suppressed.trips == len(world.trips)
    if told is not None:
        total = sum(mass.weight for mass in pairs.values())
        assert told["published"]["weight"] + told["suppressed"]["weight"] == pytest.approx(float(total), abs=1e-6)
        assert told["published"]["trips"] + told["suppressed"]["trips"] == told["input"]["trips"] == len(world.trips)


@tries(25)
@given(h3_worlds(), rules(), when)
def test_zones_are_disjoint_and_cover_every_published_leaf(world: World, rule: Rule, suppress: Any) -> None:
    release = anonymize(world.od, rule, suppress=suppress)
    for axis, zones in (("origin", release.origins), ("destination", release.destinations)):
        tree = world.od.tree(axis)  # type: ignore[arg-type]
        published = np.unique(getattr(world.od.flows, axis)[release.published])
        paths = [{name for _, name in world.path(str(leaf))} for leaf in tree.labels(0)[published]]
        names = {0 if zone == "world" else int(zone, 16) for zone in zones.ids.tolist()}
        assert all(len(path & names) == 1 for path in paths)


@tries(25)
@given(worlds, when)
def test_k_of_one_changes_nothing(world: World, suppress: Any) -> None:
    release = anonymize(world.od, Rule(trips=1), suppress=suppress)
    assert len(release.classes) == len(world.od)
    assert release.published.all()
    score = utility(world.od, release, measure="trips")
    assert (score.g, score.e) == (2.0, 0.0)


@tries(12)
@given(h3_worlds(), rules(), st.randoms(use_true_random=False))
def test_row_order_and_repetition_do_not_change_a_byte(
    tmp_path_factory: pytest.TempPathFactory, world: World, rule: Rule, random: Any
) -> None:
    shuffled = list(world.trips)
    random.shuffle(shuffled)
    again = read_matrix(table_of(shuffled), engine="memory")
    first, second = (anonymize(od, rule, budget=0.3) for od in (world.od, again))
    if first.refusal:
        assert second.refusal
        return
    folder = tmp_path_factory.mktemp("bytes")
    contents = [_bytes(release.save(folder / name / "release")) for name, release in (("a", first), ("b", second))]
    assert contents[0] == contents[1]


def _bytes(folder: Path) -> dict[str, Any]:
    files: dict[str, Any] = {path.name: path.read_bytes() for path in folder.iterdir()}
    files["recipe"] = read_recipe(folder)
    del files["recipe"]["about"]["seconds"]
    return files


@tries(25)
@given(worlds, rules())
def test_e_lies_between_0_and_2(world: World, rule: Rule) -> None:
    release = anonymize(world.od, rule, budget=0.2)
    score = utility(world.od, release, measure="weight").e
    assert score is not None
    assert -1e-9 <= score <= 2 + 1e-9


def test_a_release_cannot_be_built_below_its_rule() -> None:
    od = read_matrix(table_of([oracle.Trip("8a1fb4640017fff", "8a1fb466ed0ffff", Fraction(1), "a")]), engine="memory")
    release = anonymize(od, Rule(trips=1))
    fields = {name: getattr(release, name) for name in release.__dataclass_fields__}
    with pytest.raises(UnsafeReleaseError, match="below"):
        Release(**fields | {"spec": ReleaseSpec(Rule(trips=2))})
    assignment = release.assignment_in_memory
    with pytest.raises(UnsafeReleaseError, match="not that of the unpublished pairs"):
        Release(**fields | {"assignment": replace(assignment, published=np.array([False]))})
    with pytest.raises(UnsafeReleaseError, match="in no class"):
        Release(**fields | {"assignment": replace(assignment, area_of_pair=np.array([-1]))})
    with pytest.raises(UnsafeReleaseError, match="not those of the input"):
        Release(**fields | {"suppressed": Totals(1, 1, 1), "assignment": None})
    nowhere = Deviation(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), 0)
    with pytest.raises(UnsafeReleaseError, match="compared"):
        Release(**fields | {"deviations": {"trips": nowhere}, "assignment": None})


def test_weights_are_in_the_unit_of_the_input() -> None:
    survey = make_survey().slice(0, 4000)
    od = build_od(read_trips(survey), resolution=7)
    total = pc.sum(survey.column("weight")).as_py()
    assert od.weight == pytest.approx(total)
    assert od.summary.weight == pytest.approx(total)
    classes = anonymize(od, Rule(trips=10), method="cascade").classes
    assert classes.weight.sum() == pytest.approx(total)
    assert round(od.flows.weight.sum() * od.flows.scale) == od.weight_units
