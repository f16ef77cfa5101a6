from __future__ import annotations

from importlib import import_module
from itertools import count
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.errors import InputError
from odkanon.methods import anonymize
from odkanon.methods.treecut.dp import Floats, Goal, Objective, Problem, node_table, totals_of
from odkanon.methods.treecut.exchange import all_moves, exchange, interactions
from odkanon.methods.treecut.method import best_cuts
from odkanon.model.measures import exact_masses
from odkanon.model.od import ODMatrix
from odkanon.model.release_spec import Budget, BudgetOf
from odkanon.model.rule import Rule
from odkanon.quality.utility import UtilityMeasure, utility
from odkanon.zoning.hierarchy import Cut, level_cut
from worlds.matrices import all_cuts, golden_od, random_world, worlds
from worlds.tries import tries

RULES = (Rule(trips=6), Rule(trips=12), Rule(persons=4), Rule(trips=8, persons=3), Rule(weight=20.0))
SAME = 1 + 1e-9


def totals_of_all_cuts(problem: Problem) -> Floats:
    """Totals of every pair of cuts of a small problem, one column each."""
    tree = problem.od.origins
    offset = np.cumsum([0, *(len(ids) for ids in tree.ids)])
    cuts = all_cuts(tree)
    chosen = np.zeros((offset[-1], len(cuts)))
    for column, cut in enumerate(cuts):
        chosen[offset[cut.level] + cut.node, column] = 1
    tables = (node_table(problem, "origin", cut) for cut in all_cuts(problem.od.destinations))
    return np.concatenate([np.concatenate(table.levels, axis=1) @ chosen for table in tables], axis=1)


def gap(problem: Problem, iterations: int = 4) -> float | None:
    """How far the search is from the exact optimum; None if there is none."""
    goal = Goal("g", problem.allowance)
    best = float(goal.values(totals_of_all_cuts(problem)).min())
    cuts = best_cuts(problem, "g", iterations, None)
    if cuts is None:
        assert best == np.inf
        return None
    return goal.value(node_table(problem, "origin", cuts[1]).total(cuts[0])) / best - 1


def test_finds_the_optimum_of_small_problems() -> None:
    shapes = ((2, 3), (4, 2), (3, 2))
    gaps = []
    for seed in range(45):
        fan, levels = shapes[seed % len(shapes)]
        od = random_world(seed, records=30 + 3 * seed, fan=fan, levels=levels)
        problem = Problem(od, RULES[seed % len(RULES)], Budget((0.0, 0.05, 0.1, 0.2)[seed % 4], "trips"))
        gaps.append(gap(problem))
    found = np.array([value for value in gaps if value is not None])
    assert len(found) > 40
    assert found.min() > -1e-9
    assert np.mean(found < 1e-9) >= 0.97
    assert found.mean() < 0.001


def counted_totals(problem: Problem, cuts: tuple[Cut, Cut]) -> list[float]:
    """The totals of a pair of cuts by their definition, class by class and leaf pair by leaf pair."""
    flows, price, published, spent, classes, loss = problem.od.flows, 0.0, 0.0, 0.0, 0.0, 0.0
    zones = [cut.zone_of_leaf[leaf] for cut, leaf in zip(cuts, (flows.origin, flows.destination), strict=True)]
    for zone in set(zip(*(each.tolist() for each in zones), strict=True)):
        rows = (zones[0] == zone[0]) & (zones[1] == zone[1])
        part, mass = flows.take(rows), exact_masses(flows, problem.measure)[rows]
        contributors = len(set(part.contributions["persons"].contributor.tolist()))
        sums = {"trips": part.trips.sum(), "weight": part.weight_units.sum() / flows.scale, "persons": contributors}  # type: ignore[union-attr]
        sizes = [int((cut.zone_of_leaf == at).sum()) for cut, at in zip(cuts, zone, strict=True)]
        if all(sums[name] >= least for name, least in problem.rule.thresholds.items()):
            spread = mass.sum() / (sizes[0] * sizes[1])
            price, published, classes = price + mass.sum() * sum(sizes), published + mass.sum(), classes + 1
            loss += np.abs(mass - spread).sum() + (sizes[0] * sizes[1] - rows.sum()) * spread
        else:
            spent, loss = spent + (rows.sum() if problem.budget.of == "rows" else part.trips.sum()), loss + mass.sum()
    return [price, published, spent, classes, loss]


@given(
    st.integers(0, 999),
    st.sampled_from(RULES),
    st.sampled_from(["trips", "weight"]),
    st.sampled_from(["trips", "rows"]),
)
@tries(25)
def test_totals_are_those_of_the_merged_pairs(seed: int, rule: Rule, measure: UtilityMeasure, of: BudgetOf) -> None:
    od = random_world(seed, fan=3, levels=2)
    problem = Problem(od, rule, Budget(0.1, of), measure, with_loss=True)
    origins, destinations = all_cuts(od.origins), all_cuts(od.destinations)
    cuts = origins[seed % len(origins)], destinations[seed % len(destinations)]
    expected = counted_totals(problem, cuts)
    assert np.allclose(totals_of(problem, cuts), expected)
    assert np.allclose(node_table(problem, "destination", cuts[0]).total(cuts[1]), expected)


@given(st.integers(0, 999), st.floats(0, 30), st.floats(0, 30))
@tries(30)
def test_one_axis_is_solved_exactly(seed: int, level: float, price: float) -> None:
    od = random_world(seed, fan=2, levels=3)
    table = node_table(Problem(od, Rule(trips=6), Budget(0.1, "trips")), "origin", all_cuts(od.destinations)[seed % 5])
    weights = Goal("g", 0).weights(level, price)
    best = min(float(weights @ table.total(cut)) for cut in all_cuts(od.origins))
    assert weights @ table.total(table.cheapest(weights)) == pytest.approx(best, abs=1e-6)


@given(worlds(), st.sampled_from(RULES), st.integers(0, 9))
@tries(30)
def test_exchanges_keep_exact_account(od: ODMatrix, rule: Rule, level: int) -> None:
    problem = Problem(od, rule, Budget(0.2, "trips"))
    table = node_table(problem, "destination", level_cut(od.origins, level))
    goal = Goal("g", problem.allowance)
    start = table.cheapest(np.array([1e-9, 0, 1, 0, 0]))
    cut, totals = exchange(table, goal, start, table.total(start), 3.0)
    assert np.allclose(totals, table.total(cut))
    assert goal.value(totals) <= goal.value(table.total(start)) * SAME


@pytest.mark.parametrize(
    ("seed", "records", "fan", "levels", "rule", "budget"),
    [
        (260, 90, 3, 2, Rule(trips=6), 0.1),
        (36, 138, 2, 3, Rule(trips=12), 0.0),
        (33, 129, 2, 3, Rule(trips=8, persons=3), 0.2),
    ],
)
def test_joint_moves_reach_what_turns_between_the_axes_cannot(
    seed: int, records: int, fan: int, levels: int, rule: Rule, budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    od = random_world(seed, records=records, fan=fan, levels=levels)
    problem = Problem(od, rule, Budget(budget, "trips"))
    assert gap(problem, iterations=0) == pytest.approx(0, abs=1e-9)
    monkeypatch.setattr("odkanon.methods.treecut.search.joint_exchange", lambda *_: None)
    stuck = gap(problem, iterations=16)
    assert stuck is not None
    assert stuck > 0.03


@given(st.integers(0, 999), st.sampled_from(RULES), st.sampled_from(["trips", "weight"]))
@tries(25)
def test_pairs_of_moves_on_both_axes_are_accounted_exactly(seed: int, rule: Rule, measure: UtilityMeasure) -> None:
    od, random = random_world(seed, fan=2, levels=3), np.random.default_rng(seed)
    problem = Problem(od, rule, Budget(0.1, "trips"), measure, with_loss=True)
    origins, destinations = all_cuts(od.origins), all_cuts(od.destinations)
    cuts = (origins[random.integers(len(origins))], destinations[random.integers(len(destinations))])
    tables = (node_table(problem, "origin", cuts[1]), node_table(problem, "destination", cuts[0]))
    moves = (all_moves(tables[0], cuts[0]), all_moves(tables[1], cuts[1]))
    beyond = interactions(problem, cuts, moves)
    totals = tables[0].total(cuts[0])
    for first, second in random.integers(0, beyond.shape[1:], size=(12, 2)).tolist():
        new = (moves[0].apply(cuts[0], [first]), moves[1].apply(cuts[1], [second]))
        expected = node_table(problem, "origin", new[1]).total(new[0])
        change = moves[0].change[:, first] + moves[1].change[:, second] + beyond[:, first, second]
        assert np.allclose(totals + change, expected)


@given(st.integers(0, 999), st.sampled_from(RULES), st.sampled_from(["g", "c_avg"]))
@tries(8)
def test_joint_moves_never_make_it_worse(seed: int, rule: Rule, objective: Objective) -> None:
    od = random_world(seed, records=80, fan=3, levels=2)
    problem = Problem(od, rule, Budget(0.1, "trips"))
    goal = Goal(objective, problem.allowance)
    with patch("odkanon.methods.treecut.search.joint_exchange", lambda *_: None):
        before = best_cuts(problem, objective, 2, None)
    after = best_cuts(problem, objective, 2, None)
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        values = [goal.value(node_table(problem, "origin", cuts[1]).total(cuts[0])) for cuts in (before, after)]
        assert values[1] <= values[0]


@given(worlds(), st.sampled_from(RULES), st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from(["trips", "rows"]))
@tries(25)
def test_never_worse_than_odkanon_and_uniform_levels(od: ODMatrix, rule: Rule, budget: float, of: str) -> None:
    options = {"budget": budget, "budget_of": of}
    release = anonymize(od, rule, method="treecut", iterations=1, **options)
    ours = utility(od, release).g
    for method in ("odkanon", "oigh"):
        other = anonymize(od, rule, method=method, **options)
        theirs = utility(od, other).g
        assert ours is not None or theirs is None
        assert ours is None or theirs is None or ours <= theirs * SAME
    assert int(release.classes.trips.sum() + release.suppressed.trips) == od.trips


@pytest.mark.parametrize("objective", ["e", "c_avg"])
def test_other_objectives_improve_on_both_without_degenerating(objective: Objective) -> None:
    for seed in range(8):
        od, rule = random_world(seed, records=150, fan=4, levels=3), Rule(trips=8)
        ours = utility(od, anonymize(od, rule, method="treecut", objective=objective, iterations=2))
        others = [utility(od, anonymize(od, rule, method=name, budget=0.1)) for name in ("odkanon", "oigh")]
        assert all(getattr(ours, objective) <= getattr(other, objective) * SAME for other in others)
        assert ours.g is not None
        assert ours.g <= max(other.g or 0 for other in others) * SAME


def test_row_order_does_not_matter() -> None:
    releases = [
        anonymize(random_world(7, records=120, levels=3, shuffle=order), Rule(trips=8), method="treecut", iterations=3)
        for order in (None, 1, 2)
    ]
    for release in releases[1:]:
        assert release.origins.ids.tolist() == releases[0].origins.ids.tolist()
        assert release.classes.trips.tolist() == releases[0].classes.trips.tolist()


def test_zones_are_disjoint_and_cover_every_leaf() -> None:
    od = random_world(3, records=150, fan=4, levels=3)
    release = anonymize(od, Rule(trips=1), method="treecut", iterations=0)
    assert release.origins.leaves is not None
    assert release.origins.leaves.sum() == len(od.origins.leaves)


def test_a_time_limit_returns_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on by a second whenever it is looked at; a million turns would take it far beyond the limit."""
    od, looks = golden_od("paris-28k"), count()
    for name in ("treecut.method", "treecut.search"):
        clock = SimpleNamespace(monotonic=lambda: float(next(looks)))
        monkeypatch.setattr(import_module(f"odkanon.methods.{name}"), "time", clock)
    release = anonymize(od, Rule(trips=10), method="treecut", iterations=10**6, time_limit=20)
    assert 20 < next(looks) < 40
    g = utility(od, release).g
    assert g is not None
    assert g <= 608.3


def test_paris_beats_odkanon_and_uniform_levels() -> None:
    od = golden_od("paris-28k")
    g = utility(od, anonymize(od, Rule(trips=10), method="treecut", iterations=0)).g
    assert g is not None
    assert g < 490  # ODkAnon: 608, uniform levels: 512


def test_an_impossible_rule_is_refused() -> None:
    od = random_world(1)
    assert anonymize(od, Rule(trips=od.trips + 1), method="treecut").refusal


@pytest.mark.parametrize("wrong", [{"iterations": -1}, {"time_limit": 0}, {"objective": "f"}])
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        anonymize(random_world(1), Rule(trips=2), method="treecut", **wrong)
