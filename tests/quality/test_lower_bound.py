from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.errors import InputError
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.methods import anonymize
from odkanon.methods.treecut.dp import Goal, Problem, node_table
from odkanon.model.assemble import release_of_cuts
from odkanon.model.od import ODMatrix
from odkanon.model.release_spec import Budget, BudgetOf, ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.quality.lower_bound import bound_applies, lower_bound, release_bound
from odkanon.quality.utility import UtilityMeasure, utility
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at
from worlds.matrices import all_cuts, effort, golden_od, random_world, worlds
from worlds.tries import tries

RULES = st.one_of(
    st.builds(lambda k: Rule(trips=k), st.integers(1, 30)),
    st.builds(lambda k: Rule(persons=k), st.integers(1, 8)),
    st.builds(lambda k, n: Rule(trips=k, persons=n), st.integers(1, 20), st.integers(1, 5)),
    st.builds(lambda w: Rule(weight=w, k=2), st.floats(0.5, 60)),
)
BUDGETS = st.sampled_from([0.0, 0.05, 0.1, 0.3])


def at_most(lower: float | None, upper: float | None) -> bool:
    """Whether both are known and in order, but for rounding."""
    return lower is not None and upper is not None and lower <= upper * (1 + 1e-9)


def naive_limit(od: ODMatrix, rule: Rule, budget: float) -> float | None:
    """The definition, pair by pair: cheapest class over each pair, worst ones dropped trip by trip."""
    flows = od.flows
    price = np.full(len(od), np.inf)
    for up, across in product(range(od.origins.top + 1), range(od.destinations.top + 1)):
        classes, number = flows.merge(
            od.origins.codes[up][flows.origin], od.destinations.codes[across][flows.destination]
        )
        size = od.origins.sizes[up][classes.origin] + od.destinations.sizes[across][classes.destination]
        price = np.minimum(price, np.where(rule.satisfied(classes), size, np.inf)[number])
    trips = np.sort(np.repeat(price, flows.trips))
    kept = trips[: len(trips) - Budget(budget, "trips").allowance(flows)]
    return None if np.isinf(kept).any() else float(kept.mean())


@given(worlds(), RULES, BUDGETS)
@tries(60)
def test_is_the_mean_of_the_cheapest_classes(od: ODMatrix, rule: Rule, budget: float) -> None:
    expected = naive_limit(od, rule, budget)
    assert lower_bound(od, rule, budget=budget).g == (None if expected is None else pytest.approx(expected, rel=1e-12))


def random_cut(tree: Hierarchy, random: np.random.Generator) -> Cut:
    """A cut that merges each node with some probability, from the top down."""
    level = np.zeros(len(tree.leaves), dtype=np.int8)
    for at in range(1, tree.top + 1):
        level[(random.random(len(tree.ids[at])) < 0.4)[tree.codes[at]]] = at
    return cut_at(tree, level)


@given(
    worlds(),
    RULES,
    BUDGETS,
    st.sampled_from(["trips", "rows"]),
    st.sampled_from(["trips", "weight"]),
    st.integers(0, 99),
)
@tries(100)
def test_no_pair_of_cuts_is_better(
    od: ODMatrix, rule: Rule, budget: float, of: BudgetOf, measure: UtilityMeasure, seed: int
) -> None:
    bound = lower_bound(od, rule, budget=budget, budget_of=of, measure=measure, thorough=True)
    random = np.random.default_rng(seed)
    allowed = Budget(budget, of)
    for _ in range(8):
        cuts = random_cut(od.origins, random), random_cut(od.destinations, random)
        spent = node_table(Problem(od, rule, allowed), "origin", cuts[1]).total(cuts[0])[2]
        if spent > allowed.allowance(od.flows):
            continue
        result = utility(od, release_of_cuts(od, ReleaseSpec(rule, allowed), *cuts), measure=measure)
        assert at_most(bound.g, bound.g_homogeneous)
        assert at_most(bound.g_homogeneous, result.g)
        assert at_most(bound.c_avg, result.c_avg)
        assert at_most(bound.e, result.e)


@given(worlds(), RULES, BUDGETS)
@tries(40)
def test_no_method_over_the_tree_is_better(od: ODMatrix, rule: Rule, budget: float) -> None:
    by_rows = lower_bound(od, rule, budget=budget, budget_of="rows")
    early = anonymize(od, rule, method="odkanon", suppress="before", budget=budget)
    own = by_rows if early.companion is None else release_bound(early)
    assert own is not None
    assert early.refusal or at_most(own.g, utility(od, early).g)
    by_trips = lower_bound(od, rule, budget=budget, thorough=True)
    for method in ("odkanon", "oigh", "atg-soft"):
        release = anonymize(od, rule, method=method, budget=budget)
        result = utility(od, release)
        if release.companion is not None:  # it may have gone beyond the budget
            own = release_bound(release)
            assert own is not None
            assert at_most(own.g, result.g)
            assert at_most(own.c_avg, result.c_avg)
            continue
        assert result.g is None or at_most(by_trips.g, result.g)
        assert result.c_avg is None or at_most(by_trips.c_avg, result.c_avg)
        assert result.g is None or at_most(by_trips.e, result.e)


@given(worlds(), RULES, st.integers(0, 2**16))
@tries(40)
def test_no_release_without_a_budget_is_better_than_its_own_limit(od: ODMatrix, rule: Rule, seed: int) -> None:
    resolution = od.origins.resolution
    assert resolution is not None
    releases = [anonymize(od, rule, method="cascade", coarsest=resolution - up) for up in (0, 1, 2)]
    finer = anonymize(od, Rule(trips=1), method="oigh", budget=0.0)
    thinned = od.take(np.random.default_rng(seed).random(len(od)) < 0.6)
    releases += [release_on_zones(part, rule, zoning_of(finer)) for part in (od, thinned) if len(part)]
    for release in releases:
        if release.refusal is None:
            own, found = release_bound(release), utility(release.od, release)
            assert own is not None
            assert at_most(own.g, found.g)
            assert own.c_avg is None or at_most(own.c_avg, found.c_avg)


def test_what_is_left_out_without_a_budget_counts_as_allowed() -> None:
    od = golden_od("turin-3k")
    fine = anonymize(od, Rule(trips=10), method="cascade", coarsest=8)
    assert fine.suppressed.trips > od.trips / 3
    own, found, strict = release_bound(fine), utility(od, fine).g, lower_bound(od, Rule(trips=10), budget=0.0).g
    assert own is not None
    assert own.g is not None
    assert strict is not None
    assert found is not None
    assert own.g <= found < strict
    assert own.c_avg is None


@pytest.mark.parametrize("method", ["freezones", "mondrian"])
def test_zones_that_are_no_nodes_have_no_limit(method: str) -> None:
    od = golden_od("tiny")
    release = anonymize(od, Rule(trips=5), method=method, **effort(method))
    assert release.refusal is None
    assert release_bound(release) is None
    if method == "freezones":
        assert release_bound(release_on_zones(od, Rule(trips=5), zoning_of(release))) is None


def test_the_weight_of_rows_inside_rows_has_no_limit() -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=5), method="cascade")
    assert bound_applies(release)
    assert not bound_applies(release, "weight")
    assert not bound_applies(
        anonymize(golden_od("tiny"), Rule(trips=5), method="cascade", budget=0.2, budget_of="rows")
    )
    assert bound_applies(anonymize(golden_od("tiny"), Rule(trips=5)), "weight")


def brute_force(problem: Problem) -> float:
    goal = Goal("g", problem.allowance)
    origin_cuts = all_cuts(problem.od.origins)
    tables = (node_table(problem, "origin", cut) for cut in all_cuts(problem.od.destinations))
    return min(goal.value(table.total(cut)) for table in tables for cut in origin_cuts)


def test_lies_below_the_exact_optimum_and_is_sometimes_tight() -> None:
    tight = 0
    for seed in range(25):
        od, rule = random_world(seed, records=40 + 4 * seed, fan=2, levels=2), Rule(trips=4)
        bound = lower_bound(od, rule, budget=0, thorough=True)
        best = brute_force(Problem(od, rule, Budget(0, "trips")))
        assert at_most(bound.g, bound.g_homogeneous)
        assert at_most(bound.g_homogeneous, best)
        tight += at_most(best, bound.g_homogeneous)
    assert tight >= 5


def test_leaves_are_as_good_as_it_gets() -> None:
    bound = lower_bound(random_world(1), Rule(trips=1), thorough=True)
    assert (bound.g, bound.e) == (2, 0)


def test_is_none_where_nothing_can_be_published() -> None:
    od = random_world(1)
    bound = lower_bound(od, Rule(trips=od.trips + 1))
    assert bound.g is bound.g_homogeneous is bound.c_avg is bound.e is None
    assert bound.unreachable == od.trips


def test_a_measure_that_the_input_lacks_is_refused() -> None:
    od = random_world(1)
    without = ODMatrix(od.origins, od.destinations, od.flows.only(frozenset()), od.source)
    with pytest.raises(InputError, match="weight"):
        lower_bound(without, Rule(trips=3), measure="weight")


def test_paris() -> None:
    bound = lower_bound(golden_od("paris-28k"), Rule(trips=10), thorough=True)
    assert bound.g == pytest.approx(213.088, abs=1e-3)
    assert bound.g_homogeneous == pytest.approx(315.272, abs=1e-2)
    achieved = utility(golden_od("paris-28k"), anonymize(golden_od("paris-28k"), Rule(trips=10))).e
    assert achieved is not None
    assert bound.e is not None
    assert 0.9 * achieved < bound.e < achieved
