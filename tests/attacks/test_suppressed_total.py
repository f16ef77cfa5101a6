"""What the total of the suppressed tells: all that there is, less all that is published."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import oracle
from odkanon import Release, Rule, UnsafeReleaseError, read_matrix
from odkanon.engine.dispatch import load_table
from odkanon.engine.duckdb.backend import DuckDb, DuckInput
from odkanon.methods.method_registry import anonymize
from odkanon.model.flows import Totals
from odkanon.model.release_spec import TOO_FEW_SUPPRESSED, ReleaseSpec
from odkanon.publish.manifests import full_manifest
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.open_table import open_table
from worlds.records import World, budgets, h3_worlds, limits_of, rules, table_of, worlds
from worlds.tries import tries

first = settings(max_examples=300, phases=(Phase.generate,), database=None)
METHODS = ["odkanon", "oigh", "atg-soft", "treecut"]


def residual_of(world: World, published: set[tuple[str, str]]) -> oracle.Mass:
    """What the attacker is after: all trips together that are not published."""
    return sum((mass for pair, mass in world.pairs.items() if pair not in published), oracle.NOTHING)


def is_hidden(residual: oracle.Mass, rule: Rule) -> bool:
    return residual.trips == 0 or limits_of(rule).met(residual)


def naive(world: World, rule: Rule) -> set[tuple[str, str]]:
    """Publish the pairs that meet the rule, and leave out the others."""
    return {pair for pair, mass in world.pairs.items() if limits_of(rule).met(mass)}


@pytest.mark.parametrize("rule", [Rule(trips=4), Rule(weight=20), Rule(persons=3)], ids=str)
def test_the_residual_of_a_naive_release_is_told(rule: Rule) -> None:
    def told(world: World) -> bool:
        published = naive(world, rule)
        return bool(published) and not is_hidden(residual_of(world, published), rule)

    assert told(find(h3_worlds(), told, settings=first))


def pairs_published(world: World, release: Release) -> set[tuple[str, str]]:
    flows, trees = world.od.flows, (world.od.origins, world.od.destinations)
    ends = [tree.labels(0)[leaf].tolist() for tree, leaf in zip(trees, (flows.origin, flows.destination), strict=True)]
    return {(o, d) for o, d, out in zip(*ends, release.published.tolist(), strict=True) if out}


@tries(80)
@given(worlds, rules(), st.sampled_from(METHODS), budgets, st.sampled_from(["before", "after"]))
def test_what_is_suppressed_is_nothing_or_meets_the_rule(
    world: World, rule: Rule, method: str, budget: float, suppress: Any
) -> None:
    options = {"suppress": suppress} if method == "odkanon" else {}
    release = anonymize(world.od, rule, method=method, budget=budget, **options)
    if release.refusal is None:
        assert is_hidden(residual_of(world, pairs_published(world, release)), rule)


def small(counts: list[int], *, persons: int = 100) -> World:
    """Flows from one place to several, one cell each and far apart, with so many trips."""
    ids = ["8a1fb4640017fff", "8a1fb466ed0ffff", "8a1fb4674d0ffff", "8a1fb475400ffff"]
    cells = list(dict.fromkeys(ids))
    trips = [
        oracle.Trip(cells[0], cell, Fraction(1), (number * 1000 + n) % persons)
        for number, (cell, count) in enumerate(zip(cells, counts, strict=False))
        for n in range(count)
    ]
    return World(trips, read_matrix(table_of(trips), engine="memory"), lambda leaf: [])


def test_the_smallest_class_goes_with_what_is_too_few_and_may_go_beyond_the_budget() -> None:
    world = small([40, 13, 12, 4])
    release = anonymize(world.od, Rule(trips=10), budget=0.10)
    assert sorted(release.classes.trips.tolist()) == [13, 40]
    assert release.companion == Totals(1, 12, 12 * release.classes.scale)
    assert release.suppressed.trips == 16
    assert full_manifest(release, with_limit=False)["companion"]["trips"] == 12
    assert "companion" not in full_manifest(anonymize(world.od, Rule(trips=10), budget=0.0), with_limit=False)
    assert release.budget is not None
    assert release.budget.allowance(release.input) == 6


def test_of_equal_classes_the_first_by_id_goes() -> None:
    world = small([12, 12, 12, 4])
    release = anonymize(world.od, Rule(trips=10), budget=0.10)
    gone = set(world.pairs) - pairs_published(world, release)
    first_id = min(pair[1] for pair, mass in world.pairs.items() if mass.trips == 12)
    assert first_id in {pair[1] for pair in gone}
    assert Counter(mass.trips for pair, mass in world.pairs.items() if pair in gone) == Counter([12, 4])


def test_where_nothing_would_be_left_odkanon_merges_on_and_labels_are_refused() -> None:
    od = small([60, 4]).od
    whole = anonymize(od, Rule(trips=10), budget=0.10)
    assert (whole.refusal, whole.classes.trips.tolist()) == (None, [64])
    zones = [od.origins.labels(0), od.destinations.labels(0)]
    assert Release.from_labels(od, Rule(trips=10), *zones, budget=0.10).refusal == TOO_FEW_SUPPRESSED
    assert "a budget of 0" in TOO_FEW_SUPPRESSED
    assert anonymize(small([60, 4]).od, Rule(trips=10), budget=0.0).published.all()


@pytest.mark.parametrize("rule", [Rule(trips=10), Rule(weight=10), Rule(trips=3, persons=3)], ids=str)
@pytest.mark.parametrize("counts", [[40, 13, 12, 4], [12, 12, 12, 4], [60, 4], [60, 13, 12]])
def test_a_database_leaves_out_the_same(rule: Rule, counts: list[int]) -> None:
    world = small(counts, persons=7)
    mine = anonymize(world.od, rule, budget=0.15)
    stored = load_table(DuckInput(open_table(table_of(world.trips)), DuckDb(fetchable=0)), InputSpec())
    theirs = anonymize(stored, rule, budget=0.15)
    assert theirs.assignment is None
    assert mine.refusal == theirs.refusal
    assert mine.classes.trips.tolist() == theirs.classes.trips.tolist()
    assert mine.suppressed == theirs.suppressed
    assert mine.companion == theirs.companion


def test_a_release_cannot_be_built_with_too_few_suppressed() -> None:
    """In memory and elsewhere: four trips, or four units of weight, or the trips of two persons."""
    world = small([40, 13, 12, 4], persons=12)
    release = anonymize(world.od, Rule(trips=3), budget=0.10)
    few = release.published & (world.od.flows.trips > 4)
    classes = release.classes
    kept = classes.trips > 4
    fields: dict[str, Any] = {name: getattr(release, name) for name in release.__dataclass_fields__} | {
        "classes": replace(
            classes,
            **{name: getattr(classes, name)[kept] for name in ("origin", "destination", "trips", "weight_units")},
            contributors={name: counts[kept] for name, counts in classes.contributors.items()},
        ),
        "suppressed": world.od.flows.totals(~few),
    }
    assignment = replace(release.assignment_in_memory, published=few)
    for rule in (Rule(trips=5), Rule(weight=5), Rule(persons=5)):
        with pytest.raises(UnsafeReleaseError, match="its total would disclose it"):
            Release(**fields | {"spec": ReleaseSpec(rule), "assignment": assignment})
        if rule.persons is None:
            with pytest.raises(UnsafeReleaseError, match="its total would disclose it"):
                Release(**fields | {"spec": ReleaseSpec(rule), "assignment": None})
    assert len(Release(**fields | {"spec": ReleaseSpec(Rule(trips=4)), "assignment": assignment}).classes) == 3
