"""One zoning for both ends, and one level and nowhere else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import read_matrix
from odkanon.errors import InputError
from odkanon.methods import METHODS, anonymize
from odkanon.methods.common import volume_measure
from odkanon.methods.treecut.dp import Goal, Problem, totals_of
from odkanon.methods.treecut.method import best_cuts
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import TOO_FEW_SUPPRESSED, Budget
from odkanon.model.rule import Rule
from odkanon.quality.utility import utility
from odkanon.zoning.cells import cell_to_parent, str_to_cell
from odkanon.zoning.lookup import lookup_hierarchy
from worlds.matrices import all_cuts, effort, random_od, random_world, town
from worlds.tries import tries

RULES = (Rule(trips=6), Rule(trips=12), Rule(persons=4), Rule(trips=8, persons=3), Rule(weight=20.0))
ABLE = [name for name, method in METHODS.items() if "symmetric" in method.options]


def cells_of(release: Release, axis: str, leaves: np.ndarray) -> dict[int, str]:
    """Return which published zone of an axis each cell lies in, worked out from the names of zones alone."""
    zones = getattr(release, axis)
    found: dict[int, str] = {}
    for number, name in enumerate(zones.ids.tolist()):
        for part in [name] if zones.cells is None else zones.cells[number]:
            cell = int(str_to_cell(pa.array([part]))[0]) if part != "world" else 0
            resolution = (cell >> 52) & 15
            inside = leaves if cell == 0 else leaves[cell_to_parent(leaves, resolution) == cell]
            for leaf in inside.tolist():
                assert leaf not in found
                found[leaf] = name
    return found


def assert_one_zoning(od: ODMatrix, release: Release) -> None:
    """A place that lies in published zones of both ends lies in the same; so no two zones overlap but are different."""
    leaves = np.union1d(od.origins.leaves, od.destinations.leaves)
    starts, ends = (cells_of(release, axis, leaves) for axis in ("origins", "destinations"))
    assert all(ends.get(leaf, zone) == zone for leaf, zone in starts.items())
    by_zone = {
        axis: {zone: {leaf for leaf in at if at[leaf] == zone} for zone in set(at.values())}
        for axis, at in (("origins", starts), ("destinations", ends))
    }
    for zone in by_zone["origins"].keys() & by_zone["destinations"].keys():
        assert by_zone["origins"][zone] == by_zone["destinations"][zone]
    assert bool(release.rule.satisfied(release.classes).all())


@pytest.mark.parametrize("method", ABLE)
@tries(12)
@given(random_od(), st.sampled_from(RULES), st.sampled_from([0.0, 0.1, 0.3]))
def test_both_ends_have_one_zoning(method: str, od: ODMatrix, rule: Rule, budget: float) -> None:
    release = anonymize(od, rule, method=method, budget=budget, symmetric=True, **effort(method, 4))
    assert_one_zoning(od, release)
    if release.refusal is None:
        assert release.parameters["symmetric"] is True
    elif release.refusal != TOO_FEW_SUPPRESSED:
        assert anonymize(od, rule, method="odkanon", budget=budget).refusal is not None


def test_without_it_the_ends_differ() -> None:
    od = town(1, trips=600)
    for method in ("odkanon", "treecut"):
        with pytest.raises(AssertionError):
            assert_one_zoning(od, anonymize(od, Rule(trips=8), method=method))


@pytest.mark.parametrize("method", ABLE)
def test_a_town_has_one_zoning(method: str) -> None:
    od = town(1, trips=600)
    release = anonymize(od, Rule(trips=8), method=method, symmetric=True, **effort(method))
    assert_one_zoning(od, release)
    assert len(release.classes) > 4


def test_free_zones_are_finer_than_cuts_also_with_one_zoning() -> None:
    od = town(1, trips=600)
    made = {name: anonymize(od, Rule(trips=8), method=name, symmetric=True) for name in ("odkanon", "treecut")}
    made["freezones"] = anonymize(od, Rule(trips=8), method="freezones", symmetric=True, iterations=60)
    g = {name: utility(od, release).g for name, release in made.items()}
    assert g["freezones"] < g["treecut"] <= g["odkanon"]  # type: ignore[operator]


@tries(25)
@given(random_od(), st.sampled_from(RULES), st.sampled_from([0.0, 0.1, 0.3]))
def test_uniform_levels_are_never_better_for_being_the_same(od: ODMatrix, rule: Rule, budget: float) -> None:
    free, same = (anonymize(od, rule, method="oigh", budget=budget, symmetric=each) for each in (False, True))
    assert (free.refusal in (None, TOO_FEW_SUPPRESSED)) == (same.refusal in (None, TOO_FEW_SUPPRESSED))
    if free.refusal is None and same.refusal is None:
        least, found = (utility(od, each, measure=volume_measure(rule)).g for each in (free, same))
        # A companion may be left out of either, which moves G a little without being chosen for it.
        if free.companion is None and same.companion is None:
            assert found >= least * (1 - 1e-12)  # type: ignore[operator]


def test_the_search_finds_the_best_cut_of_small_problems() -> None:
    near = []
    for seed in range(24):
        od = random_world(seed, records=30 + 3 * seed, fan=(2, 4, 3)[seed % 3], levels=(3, 2, 2)[seed % 3])
        rule, budget = RULES[seed % len(RULES)], Budget((0.0, 0.05, 0.1, 0.2)[seed % 4], "trips")
        problem, joint = Problem.square(od, rule, budget)
        goal = Goal("g", problem.allowance)
        best = min(goal.value(totals_of(problem, (cut, cut))) for cut in all_cuts(joint.tree))
        found = best_cuts(problem, "g", 4, None)
        if found is None:
            assert best == np.inf
            continue
        assert found[0] is found[1] or np.array_equal(found[0].zone_of_leaf, found[1].zone_of_leaf)
        near.append(goal.value(totals_of(problem, found)) / best - 1)
        # What the joint tree says of the cut is what the cuts of both axes are, on their own trees.
        alone = Problem(od, rule, budget)
        assert np.allclose(totals_of(alone, joint.cuts(found[0])), totals_of(problem, found))
    assert np.mean(np.array(near) < 1e-9) > 0.9
    assert max(near) < 0.1


def test_methods_whose_zones_depend_on_the_other_end_say_so() -> None:
    for method in METHODS.keys() - set(ABLE):
        with pytest.raises(InputError, match="depend on the other end"):
            anonymize(town(1, trips=100), Rule(trips=8), method=method, symmetric=True)


ZONES = {"block": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"], "region": ["r"] * 4}
FLOWS = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}


def at_level(level: str, budget: float = 0.1, rows: dict[str, list[object]] = FLOWS) -> Release:  # type: ignore[assignment]
    od = read_matrix(pa.table(rows), hierarchy=lookup_hierarchy(pa.table(ZONES)), engine="memory")
    return anonymize(od, Rule(trips=10), method="oigh", at_level=level, budget=budget)


def test_a_level_is_published_and_nothing_else() -> None:
    release = at_level("district")
    assert release.origins.ids.tolist() == release.destinations.ids.tolist() == ["a", "b"]
    assert release.classes.trips.tolist() == [13, 12]
    assert release.parameters["at_level"] == "district"
    fine = at_level("block", budget=0.6)
    assert (fine.origins.ids.tolist(), fine.classes.trips.tolist()) == (["b1"], [12])


def test_what_fails_at_a_level_is_said_where_it_is_too_much() -> None:
    refusal = at_level("block").refusal
    assert refusal is not None
    assert "at level block, flows with 13 trips do not meet" in refusal
    assert "no more than 2 may be suppressed" in refusal


def test_a_level_above_all_that_occurs_is_still_that_level() -> None:
    rows = {"origin": ["a1", "a1"], "destination": ["a1", "a2"], "trips": [20, 20]}
    assert at_level("region", rows=rows).origins.ids.tolist() == ["r"]  # type: ignore[arg-type]
    assert at_level("district", rows=rows).origins.ids.tolist() == ["a"]  # type: ignore[arg-type]


def test_levels_of_cells_are_resolutions() -> None:
    od = town(1, trips=600)
    release = anonymize(od, Rule(trips=4), method="oigh", at_level=7, budget=0.9)
    assert set(release.origins.resolution.tolist()) == {7}  # type: ignore[union-attr]
    for wrong in (11, -1, "commune"):
        with pytest.raises(InputError, match="a resolution from 0 to 10"):
            anonymize(od, Rule(trips=8), method="oigh", at_level=wrong)
    with pytest.raises(InputError, match="block, district, region"):
        at_level("distrct")
