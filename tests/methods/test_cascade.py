"""The cascade against its definition, and what a release of it has to be."""

from __future__ import annotations

from fractions import Fraction

import h3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.cascades import PAIR, THREE, Replay, Tree, World
from odkanon import InputError, Rule, lower_bound, utility
from odkanon.engine.dispatch import open_workspace
from odkanon.engine.node_flows import NodeFlows
from odkanon.methods.cascade.method import forecast, least_trips
from odkanon.methods.cascade.roll_up import PublicationRule, roll_up, split
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import ODMatrix
from odkanon.model.published_flows import disclosed_weights
from odkanon.model.release_spec import Budget
from odkanon.release_format.public_rule import promise
from worlds.cubes import cube_matrix, rolled_up, rows_by_box
from worlds.matrices import golden_od, od_of_cells, published_rows, random_od, random_world, worlds
from worlds.tries import tries

few = tries(12)


def trees(depth: int) -> st.SearchStrategy[Tree]:
    """Return trees whose leaves are all equally deep, some of whose nodes have a single child."""
    if depth == 0:
        return st.just(0)
    return st.lists(trees(depth - 1), min_size=1, max_size=4 if depth < 3 else 3).map(tuple)


@tries(60)
@given(
    st.integers(1, 3).flatmap(trees),
    st.integers(1, 3).flatmap(trees),
    st.integers(2, 5),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["capped", "kept"]),
    st.sampled_from([0.2, 0.5, 0.9]),
)
def test_rows_are_those_of_the_definition(
    origins: Tree, destinations: Tree, k: int, seed: int, mode: str, busy: float
) -> None:
    world = World((origins, destinations))
    random = np.random.default_rng(seed)
    counts = random.integers(0, k + 2, (1, int(np.prod(world.shape))))
    counts *= random.random(counts.shape) < busy
    counts[0, 0] += 1
    replay = Replay(world, counts.astype(np.int16), k, "capped" if mode == "capped" else "kept").run()
    rule = Rule(trips=k) if mode == "capped" else Rule(trips=k, weight=1)
    found = rolled_up(cube_matrix(world, counts[0], 3 * counts[0]), rule, k)
    expected = {node: int(listed[0]) for node, listed in replay.listed.items() if listed[0]}
    assert rows_by_box(world, found) == expected
    root = world.nodes(len(world.rungs) - 1)[0]
    if mode == "capped":
        assert found.unlisted.trips == int(replay.passed[root][0])
        if expected:
            assert found.most == int(replay.cap(root, None)[0])


RULES = {
    "trips": lambda od: Rule(trips=4),
    "weight": lambda od: Rule.protect("population", k=3, of=od),
    "persons": lambda od: Rule(persons=3),
    "all": lambda od: Rule(trips=4, weight=3 * od.mean_weight, persons=3),
}


def holds(zone: str, leaf_cell: str) -> bool:
    return zone == "world" or h3.cell_to_parent(leaf_cell, h3.get_resolution(zone)) == zone


@few
@given(random_od(), st.sampled_from(sorted(RULES)), st.booleans())
def test_a_release_has_every_trip_once_and_tells_of_each_pair_its_finest_row(
    od: ODMatrix, rule: str, allow_inference: bool
) -> None:
    release = anonymize(od, RULES[rule](od), method="cascade", allow_inference=allow_inference)
    assert int(release.classes.trips.sum()) + release.suppressed.trips == od.trips
    if release.refusal:
        return
    assert not release.classes.contributors
    assert release.origins.leaves is not None
    assert release.destinations.leaves is not None
    size = release.origins.leaves[release.classes.origin] * release.destinations.leaves[release.classes.destination]
    rows = published_rows(release)
    labels = [tree.labels(0) for tree in (od.origins, od.destinations)]
    for pair in range(len(od)):
        cells = [str(labels[0][od.flows.origin[pair]]), str(labels[1][od.flows.destination[pair]])]
        around = [at for at, row in enumerate(rows) if holds(row[0], cells[0]) and holds(row[1], cells[1])]
        finest = min(around, key=lambda at: (size[at], -len(rows[at][0])), default=-1)
        area = int(release.area_of_pair[pair])
        assert (area == -1) == (finest == -1)
        assert finest == -1 or size[area] == size[finest]


@few
@given(worlds(records=40, fan=3, levels=2))
def test_reconstruction_loss_is_that_of_all_leaf_pairs(od: ODMatrix) -> None:
    release = anonymize(od, Rule(trips=3), method="cascade")
    rows = published_rows(release)
    labels = [tree.labels(0) for tree in (od.origins, od.destinations)]
    true = {
        (int(o), int(d)): int(t) for o, d, t in zip(od.flows.origin, od.flows.destination, od.flows.trips, strict=True)
    }
    finest: dict[tuple[int, int], int] = {}
    sizes = [
        len([1 for cell in labels[0] if holds(row[0], str(cell))])
        * len([1 for cell in labels[1] if holds(row[1], str(cell))])
        for row in rows
    ]
    for o, origin in enumerate(labels[0]):
        for d, destination in enumerate(labels[1]):
            around = [
                at for at, row in enumerate(rows) if holds(row[0], str(origin)) and holds(row[1], str(destination))
            ]
            depth = {
                at: sum(0 if zone == "world" else h3.get_resolution(zone) for zone in rows[at][:2]) for at in around
            }
            finest[o, d] = max(around, key=lambda at: depth[at], default=-1)
    own = [sum(1 for at in finest.values() if at == row) for row in range(len(rows))]
    assert not rows or np.array_equal(own, release.classes.finest_pairs)  # type: ignore[arg-type]
    loss = sum(abs((rows[at][2] / own[at] if at >= 0 else 0) - true.get(pair, 0)) for pair, at in finest.items())
    assert utility(od, release).e == pytest.approx(loss / od.trips)
    assert all(size >= mine for size, mine in zip(sizes, own, strict=True))


def test_a_budget_takes_the_promise_back() -> None:
    """Where its cut falls tells of groups, so that nothing may be said of what can be shown to exist."""
    od = golden_od("turin-3k")
    whole, part = (anonymize(od, Rule(trips=10), method="cascade", **how) for how in ({}, {"budget": 0.2}))
    assert promise(whole).endswith("but not the total of the input.")
    assert promise(part).endswith("for comparing, not for publishing.")
    assert "can be shown" not in promise(part)


@few
@given(random_od(), st.sampled_from(sorted(RULES)), st.sampled_from([0.05, 0.2, 0.5]))
def test_a_budget_leaves_out_the_coarsest_rows_and_the_limit_holds(od: ODMatrix, rule: str, budget: float) -> None:
    bound = RULES[rule](od)
    whole, part = (anonymize(od, bound, method="cascade", **options) for options in ({}, {"budget": budget}))
    if part.refusal:
        return
    assert part.suppressed.trips <= budget * od.trips
    assert set(published_rows(part)) <= set(published_rows(whole))
    assert part.unlisted is None or len(part.classes) == len(whole.classes)
    best, found = lower_bound(od, bound, budget=budget).g, utility(od, part).g
    assert best is None or (found is not None and found >= best - 1e-9)


@few
@given(random_od(), st.sampled_from(sorted(RULES)), st.sampled_from([None, 0.0, 0.05, 0.3, 0.9]))
def test_the_outlook_is_that_of_the_releases(od: ODMatrix, name: str, share: float | None) -> None:
    rule = RULES[name](od)
    found = forecast(od, rule, None if share is None else Budget(share, "trips"))
    whole = anonymize(od, rule, method="cascade")
    assert found.trips == int(whole.classes.trips.sum())
    within = None if share is None else utility(od, anonymize(od, rule, method="cascade", budget=share)).g
    assert found.g == (None if within is None else pytest.approx(within))


@few
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(RULES)))
def test_row_order_does_not_matter(seed: int, rule: str) -> None:
    first, second = (random_world(seed, shuffle=shuffle) for shuffle in (None, 1))
    releases = [anonymize(od, RULES[rule](od), method="cascade") for od in (first, second)]
    assert releases[0].to_arrow().equals(releases[1].to_arrow())


def test_k_of_1_changes_nothing() -> None:
    od = random_world(3)
    release = anonymize(od, Rule(trips=1), method="cascade")
    assert len(release.classes) == len(od)
    assert utility(od, release).e == 0


def test_unlisted_trips_are_at_most_what_the_rows_tell() -> None:
    for seed in range(10):
        release = anonymize(random_world(seed, records=200), Rule(trips=5), method="cascade")
        if not release.refusal:
            assert release.unlisted is not None
            assert release.suppressed.trips <= release.unlisted


@pytest.mark.parametrize("name", ["paris-28k"])
def test_the_promise_costs_next_to_nothing(name: str) -> None:
    od = golden_od(name)
    assert anonymize(od, Rule(trips=10), method="cascade").suppressed.trips <= 0.001 * od.trips
    found = utility(od, anonymize(od, Rule(trips=10), method="cascade", budget=0.1)).g
    assert found is not None
    assert found <= 238


def test_rows_that_may_have_exchanged_trips_have_the_mean_weight_of_the_others() -> None:
    rows = rolled_up(golden_od("paris-28k"), Rule(trips=10), 10).rows
    trips, weight, hides = rows.groups.trips, rows.groups.weight_units, rows.hides_weight
    assert weight is not None
    giving = np.flatnonzero(rows.at_cap)
    receiving = rows.above[giving]
    assert set(np.flatnonzero(hides)) == {*giving, *receiving[receiving >= 0]}
    told = disclosed_weights(trips, weight, hides)
    assert told[~hides] == pytest.approx(weight[~hides], rel=5e-4)
    assert told[hides] == pytest.approx(trips[hides] * told[~hides].sum() / trips[~hides].sum(), rel=6e-3)
    digits = [len(str(each).rstrip("0")) for each in told.tolist()]
    assert max(digits) == 4


def test_only_rows_that_list_as_much_as_they_may_have_given_trips() -> None:
    """The second row is at its cap, two parts of three; a row between leaves has none, and the third is below its."""
    world = World(((THREE, THREE), PAIR))
    counts = np.zeros(world.shape, dtype=np.int64)
    counts[5, 1], counts[:3, 0], counts[3:5, 0], counts[[0, 3], 1] = 5, 2, (2, 1), 2
    od = cube_matrix(world, counts)
    found = rolled_up(od, Rule(trips=3), 3).rows
    assert list(zip(found.rung.tolist(), found.groups.trips.tolist(), strict=True)) == [(0, 5), (1, 4), (1, 3)]
    assert found.at_cap.tolist() == [False, True, False]
    residual = open_workspace(od).residual_trips([side.nodes(0) for side in found.ladder.sides], ("trips",))
    assert not roll_up(found.ladder, residual, PublicationRule(Rule(trips=3), 3, capped=False)).rows.at_cap.any()


@pytest.mark.parametrize(
    ("rule", "safe", "least"),
    [
        (Rule(trips=5, persons=3), True, 5),
        (Rule(trips=3, persons=5), True, 5),
        (Rule(persons=3, households=4), False, 4),
        (Rule(weight=7), False, 1),
        (Rule(weight=7, k=4), True, 4),
        (Rule(weight=7, k=4), False, 1),
        (Rule(weight=7, persons=6, k=4), True, 6),
        (Rule(trips=2, weight=7), True, 2),
        (Rule(weight=7, persons=3), True, 3),
    ],
)
def test_a_row_has_as_many_trips_as_the_largest_threshold(rule: Rule, safe: bool, least: int) -> None:
    """Caps count trips: with fewer they would take a group for none that the rule takes for too small."""
    assert least_trips(rule, safe=safe) == least


@pytest.mark.parametrize("rule", [Rule(weight=4), Rule(weight=4, mean_weight=Fraction(2))])
def test_a_weight_alone_says_of_no_number_of_trips(rule: Rule) -> None:
    """Taken from the mean weight, it would tell of weights that are not listed: of the 10 of the first pair here."""
    cells = np.array([h3.str_to_int(cell) for cell in sorted(h3.cell_to_children("861fb4667ffffff", 7))[:3]], np.uint64)
    od = od_of_cells(cells, cells, trips=np.array([1, 2, 4]), weight=np.array([10, 4, 4]))
    with pytest.raises(InputError, match="ask for a number of trips or persons too"):
        anonymize(od, rule, method="cascade")
    assert anonymize(od, rule, method="cascade", allow_inference=True).refusal is None
    assert anonymize(od, Rule(weight=4, trips=2), method="cascade").refusal is None


@pytest.mark.parametrize(
    ("rule", "passes", "carries", "reassigned"),
    [
        (Rule(trips=2), True, True, None),
        (Rule(trips=2, weight=5), False, False, None),
        (Rule(persons=2), True, True, "persons"),
        (Rule(weight=5, persons=2), False, False, "persons"),
        (Rule(persons=2, households=2), True, False, "households"),
        (Rule(persons=3, households=2), True, False, "persons"),
    ],
)
def test_what_a_row_passes_on_counts_above_only_if_it_is_known(
    rule: Rule, passes: bool, carries: bool, reassigned: str | None
) -> None:
    """By weight nothing goes on; of two kinds of heads those that are not dealt out do not."""
    terms = PublicationRule(rule, 2)
    assert (terms.passes, terms.carries, terms.reassigned) == (passes, carries, reassigned)


def test_nothing_coarser_than_asked_is_published() -> None:
    od = golden_od("paris-28k")
    release = anonymize(od, Rule(trips=10), method="cascade", coarsest=7)
    coarsest = [zones.resolution for zones in (release.origins, release.destinations)]
    assert [int(np.min(each)) for each in coarsest if each is not None] == [7, 7]
    assert release.unlisted is None
    with pytest.raises(InputError, match="between 10 and 0"):
        anonymize(od, Rule(trips=10), method="cascade", coarsest=11)
    with pytest.raises(InputError, match="allow_inference must be true or false"):
        anonymize(od, Rule(trips=10), method="cascade", allow_inference="none")


# What is public: the whole tree, or the part of it where there are places at all; never what was observed.


# Finer steps between cells and their parents.


def test_persons_stay_where_trips_leave_a_row_and_households_may_be_any() -> None:
    """Of twelve trips three go: all of nine persons stay, and of eight households five certainly do."""
    codes = (np.array([0]), np.array([0]))
    contributors = {"persons": np.array([9]), "households": np.array([8])}
    group = NodeFlows(codes, np.array([4]), np.array([12]), np.array([24]), contributors, 1)
    stays, goes = split(group, np.array([9]), "persons")
    assert (int(stays.trips[0]), int(stays.pairs[0])) == (9, 4)
    assert {name: int(count[0]) for name, count in stays.contributors.items()} == {"persons": 9, "households": 5}
    assert (int(goes.trips[0]), int(goes.pairs[0])) == (3, 0)
    assert stays.weight_units is not None
    assert goes.weight_units is not None
    assert int(stays.weight_units[0]) + int(goes.weight_units[0]) == 24


@pytest.mark.parametrize("budget", [0.05, 0.1, 0.2, 0.3])
def test_rows_that_a_budget_leaves_out_share_their_weight_with_others(budget: float) -> None:
    """What left-out rows weigh may be above or below what their pairs do; nothing is lost either way."""
    od = golden_od("tiny")
    release = anonymize(od, Rule(trips=4), method="cascade", budget=budget)
    assert release.refusal is None
    assert release.classes.weight_units is not None
    assert od.weight_units is not None
    assert int(release.classes.weight_units.sum()) + (release.suppressed.weight_units or 0) == od.weight_units
    assert release.suppressed.trips <= budget * od.trips
