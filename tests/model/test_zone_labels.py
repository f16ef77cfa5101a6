"""Releases of labelled zones: nothing below its rule can be published, whatever the labels."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pandas")

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from odkanon import InputError, ODMatrix, Release, Rule, accuracy, utility
from odkanon.methods.method_registry import anonymize
from odkanon.model.release_spec import TOO_FEW_SUPPRESSED, satisfied_jointly
from worlds.records import World, rules, worlds
from worlds.towns import people, town
from worlds.tries import tries


def four_flows(small: int = 5) -> ODMatrix:
    """Between four zones in two districts: 20, 20, 20 trips, and a few."""
    ends = (("a1", "a1"), ("a1", "b2"), ("a2", "b2"))
    return town(*((start, end, people(20)) for start, end in ends), ("b1", "b2", people(small, "q"))).od


def labels_at(od: ODMatrix, level: int) -> list[Any]:
    return [tree.labels(level)[tree.codes[level]] for tree in (od.origins, od.destinations)]


@tries(60)
@given(worlds, rules(), st.integers(0, 2**32 - 1), st.sampled_from([None, 0.0, 0.1, 0.5]), st.booleans())
def test_no_label_publishes_a_class_below_the_rule(
    world: World, rule: Rule, seed: int, budget: float | None, overlapping: bool
) -> None:
    """Random labels of leaves and of pairs; the residual meets the rule, too, and the budget is kept."""
    od, random = world.od, np.random.default_rng(seed)
    sizes = [len(od)] * 2 if overlapping else [len(od.origins.leaves), len(od.destinations.leaves)]
    origin, destination = (random.integers(0, 3, size) for size in sizes)
    release = Release.from_labels(
        od, rule, origin, destination, budget=budget, structure="overlapping" if overlapping else "partition"
    )
    if release.refusal is not None:
        assert not len(release.classes)
        return
    assert rule.meets_thresholds(release.classes).all()
    assert satisfied_jointly(od.flows, ~release.published, rule)
    assert release.classes.trips.sum() + release.suppressed.trips == od.trips
    extra = 0 if release.companion is None else release.companion.trips
    assert budget is None or release.suppressed.trips - extra <= budget * od.trips


@tries(30)
@given(worlds, rules())
def test_the_labels_of_a_release_make_the_same_release(world: World, rule: Rule) -> None:
    """One of cuts by leaf, one of overlapping zones by OD pair."""
    for method in ("odkanon", "atg-soft"):
        made = anonymize(world.od, rule, method=method, budget=0.2)
        if made.refusal is not None or (made.area_of_pair < 0).any():
            continue
        ends = [
            zones.ids[number[made.area_of_pair]]
            for zones, number in ((made.origins, made.classes.origin), (made.destinations, made.classes.destination))
        ]
        assert made.budget is not None
        again = Release.from_labels(
            world.od, rule, *ends, budget=made.budget.share, budget_of=made.budget.of, structure="overlapping"
        )
        assert again.structure == "overlapping"
        assert again.refusal is None
        assert again.origins.ids.tolist() == made.origins.ids.tolist()
        assert again.classes.trips.tolist() == made.classes.trips.tolist()
        assert utility(world.od, again) == utility(world.od, made)


def test_nodes_of_the_hierarchy_keep_their_level_and_size() -> None:
    od = four_flows()
    release = Release.from_labels(od, Rule(trips=10), *labels_at(od, 1))
    assert release.structure == "partition"
    assert release.origins.ids.tolist() == ["a"]
    assert release.origins.level is not None
    assert release.origins.level.tolist() == [1]
    assert release.classes.trips.tolist() == [40]
    assert release.suppressed.trips == 25  # five from b to b, and the smallest class with them
    assert release.lower_bound is not None


def test_free_labels_have_a_name_and_no_place() -> None:
    od = four_flows(20)
    release = Release.from_labels(od, Rule(trips=10), [7, 7, 8], ["west", "east"], method="mine", parameters={"n": 2})
    assert (release.method, release.parameters) == ("mine", {"n": 2})
    assert release.origins.ids.tolist() == ["7", "8"]
    assert release.destinations.ids.tolist() == ["east", "west"]
    assert release.classes.trips.tolist() == [40, 20, 20]
    assert release.origins.describe(0) == {"id": "7", "kind": "place", "resolution": None, "area_km2": None}
    assert release.lower_bound is None  # its zones are no nodes, and could be better
    assert accuracy(release) == {}
    assert utility(od, release).g == pytest.approx((40 * 3 + 20 * 3 + 20 * 2) / 80)


@pytest.mark.parametrize("labels", [pd.Series, pa.array, list, np.array, lambda values: np.array(values, dtype=object)])
def test_labels_come_in_any_array(labels: Any) -> None:
    od = four_flows(20)
    release = Release.from_labels(od, Rule(trips=10), labels(["x", "x", "y"]), labels(["x", "y"]))
    assert release.classes.trips.tolist() == [20, 40, 20]


def test_what_exceeds_the_budget_is_refused() -> None:
    od = four_flows(12)
    rule, finest = Rule(trips=15), labels_at(od, 0)
    release = Release.from_labels(od, rule, *finest, budget=0.1)
    assert release.refusal == (
        "classes with 12 trips do not meet the rule (at least 15 trips in every flow), and no more than 7 may be "
        "suppressed; choose coarser zones, or raise the budget"
    )
    assert not release.published.any()
    wide = Release.from_labels(od, rule, *finest, budget=0.2)
    assert wide.refusal is None
    assert wide.companion is not None  # twelve alone are below the rule
    assert wide.suppressed.trips == 32
    rows = Release.from_labels(od, rule, *finest, budget=0.25, budget_of="rows")
    assert rows.refusal is None


def test_where_no_class_or_only_one_meets_the_rule_nothing_is_published() -> None:
    od = four_flows()
    nothing = Release.from_labels(od, Rule(trips=100), *labels_at(od, 1))
    assert nothing.refusal is not None
    assert nothing.refusal.startswith("no class meets the rule (at least 100 trips in every flow)")
    single = town(("a1", "a1", people(20)), ("a1", "b2", people(3, "q"))).od
    assert Release.from_labels(single, Rule(trips=10), *labels_at(single, 0)).refusal == TOO_FEW_SUPPRESSED


@pytest.mark.parametrize(
    ("origin", "destination", "said"),
    [
        (["a", "a"], ["x", "y"], "origin labels must be 3 in number, one for each leaf, not 2"),
        (["a", "a", None], ["x", "y"], "origin labels must be text or whole numbers, none missing"),
        ([1.0, 2.0, 3.0], ["x", "y"], "origin labels must be text or whole numbers, none missing, not 'double'"),
        (["a", "a1", "b1"], ["x", "y"], "origin label 'a' is no node of the hierarchy that has just the leaves"),
        (["a", "a", "a"], ["x", "y"], "origin label 'a' is no node"),
        (["a1", "mine", "mine"], ["x", "y"], "origin label 'mine' is no node"),
        (["a", "a", "b2"], ["x", "y"], "origin label 'b2' is no node"),
    ],
)
def test_labels_that_mislead_are_refused(origin: Any, destination: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Release.from_labels(four_flows(20), Rule(trips=10), origin, destination)


def test_overlapping_zones_have_a_label_for_each_pair_and_no_pair_in_two_classes() -> None:
    od = four_flows(20)
    assert od.origins.leaves[od.flows.origin].tolist() == ["a1", "a1", "a2", "b1"]
    fine = Release.from_labels(
        od, Rule(trips=10), ["a1", "a1", "a2", "b1"], ["a1", "b2", "b2", "b2"], structure="overlapping"
    )
    assert fine.classes.trips.tolist() == [20, 20, 20, 20]
    with pytest.raises(InputError, match="1 OD pairs lie between the zones of more than one class"):
        Release.from_labels(
            od, Rule(trips=10), ["a1", "a1", "a", "b1"], ["a1", "b2", "b2", "b2"], structure="overlapping"
        )
    with pytest.raises(InputError, match="origin labels must be 4 in number, one for each OD pair, not 3"):
        Release.from_labels(od, Rule(trips=10), ["a"] * 3, ["b"] * 4, structure="overlapping")


def test_only_places_are_labelled_side_by_side() -> None:
    od = four_flows(20)
    with pytest.raises(InputError, match="must be partition or overlapping, not 'nested'"):
        Release.from_labels(od, Rule(trips=10), *labels_at(od, 0), structure="nested")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="this rule counts households"):
        Release.from_labels(od, Rule(households=10), *labels_at(od, 0))
