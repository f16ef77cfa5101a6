"""ODkAnon against the authors' results and against a naive step-by-step version."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from odkanon import Release, Rule, read_matrix
from odkanon.methods.method_registry import anonymize
from odkanon.model.measures import exact_masses
from odkanon.model.od import AXES
from worlds.records import World, budgets, cells, limits_of, od_of_trips, path_to_root, rules, worlds
from worlds.tries import tries

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(GOLDEN.glob("*/expected-*.json"))


def test_golden_cases_are_there() -> None:
    assert len(CASES) == 6


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem[9:]}")
def test_golden(case: Path) -> None:
    expected = json.loads(case.read_text())
    od = read_matrix(case.parent / "od.csv", engine="memory")
    release = anonymize(
        od,
        Rule(**{expected["measure"]: expected["k"]}),
        suppress="before",
        budget=expected["budget"],
        budget_of="rows",
        max_levels=expected["max_levels"],
    )
    assert release.origins.ids.tolist() == expected["origins"]
    assert release.destinations.ids.tolist() == expected["destinations"]
    assert release.parameters["merges"] == expected["steps"]
    assert np.count_nonzero(~release.published) == expected["suppressed_pairs"]
    measure = expected["measure"]
    got = [
        (str(o), str(d), int(mass))
        for o, d, mass in zip(
            release.origins.ids[release.classes.origin],
            release.destinations.ids[release.classes.destination],
            exact_masses(release.classes, measure) // (release.classes.scale if measure == "weight" else 1),
            strict=True,
        )
    ]
    assert got == sorted((row["origin"], row["destination"], row[measure]) for row in expected["classes"])


@tries(60)
@given(
    worlds,
    rules(),
    st.sampled_from(["before", "after"]),
    budgets,
    st.sampled_from(["rows", "trips"]),
    st.integers(0, 4),
)
def test_equals_the_naive_version(
    world: World, rule: Rule, suppress: Any, budget: float, budget_of: Any, levels: int
) -> None:
    expected = None
    for share in sorted({Fraction(str(budget)), Fraction(0)}, reverse=True):
        # Where nothing can be left out unseen, merging goes on until nothing is left out.
        expected = expected or oracle.odkanon(
            world.pairs, world.path, limits_of(rule), suppress=suppress, budget=share, of=budget_of, levels=levels
        )
    options: dict[str, Any] = {"max_levels": levels} if suppress == "before" else {}
    release = anonymize(world.od, rule, suppress=suppress, budget=budget, budget_of=budget_of, **options)
    if expected is None:
        assert release.refusal
        assert len(release.classes) == 0
        assert not release.published.any()
        return
    assert release.parameters["merges"] == expected.steps
    assert _suppressed(world, release) == expected.suppressed
    assert _classes(release) == {
        (oracle.name(o), oracle.name(d)): (mass.trips, mass.weight, len(mass.persons))
        for (o, d), mass in expected.classes.items()
    }


def test_differs_from_the_plain_algorithm_by_the_flow_that_goes_with_too_small_a_residual() -> None:
    """docs/methods.md and docs/differences.md: the only difference to Algorithms 1 to 3, and how often it occurs."""
    rng, ids, worlds, differing = random.Random(7), cells("Paris", 10), 0, 0
    path = partial(path_to_root, resolution=10)
    while worlds < 100:
        places = ids[: rng.choice([5, 9, 17])]
        trips = [
            oracle.Trip(rng.choice(places), rng.choice(places), Fraction(1), "p") for _ in range(rng.randint(10, 80))
        ]
        k, pairs = rng.randint(2, 6), oracle.pairs_of(trips)
        rule = Rule(trips=k)
        plain = oracle.odkanon(
            pairs,
            path,
            limits_of(rule),
            suppress="before",
            budget=Fraction(1, 10),
            of="rows",
            levels=1,
            complementary=False,
        )
        if plain is None:
            continue
        worlds += 1
        world = World(trips, od_of_trips(trips), path)
        release = anonymize(world.od, rule, suppress="before", budget=0.1, max_levels=1)
        also = _suppressed(world, release) - plain.suppressed
        residual = sum(pairs[pair].trips for pair in plain.suppressed)
        entire = 0 < residual < k and len(plain.classes) == 1  # merging goes on until nothing is suppressed
        assert bool(also) == (0 < residual < k and not entire)
        differing += bool(also) or entire
        if entire:
            assert release.refusal is None
            assert not _suppressed(world, release)
        elif not also:
            assert _trips(release) == _by_name(plain)
        else:
            (gone,) = set(_by_name(plain).items()) - set(_trips(release).items())
            assert _trips(release) == {zones: mass for zones, mass in _by_name(plain).items() if zones != gone[0]}
            assert gone[1] == min(_by_name(plain).values())
            assert gone[1] == sum(pairs[pair].trips for pair in also)
    assert differing == 32  # as docs/differences.md has it


def _trips(release: Release) -> dict[tuple[str, str], int]:
    return {zones: trips for zones, (trips, _, _) in _classes(release).items()}


def _by_name(outcome: oracle.Outcome) -> dict[tuple[str, str], int]:
    return {(oracle.name(o), oracle.name(d)): mass.trips for (o, d), mass in outcome.classes.items()}


def _classes(release: Release) -> dict[tuple[str, str], tuple[int, Fraction, int]]:
    classes = release.classes
    assert classes.weight_units is not None
    assert classes.persons is not None
    return {
        (str(release.origins.ids[o]), str(release.destinations.ids[d])): (
            int(t),
            Fraction(int(w), classes.scale),
            int(p),
        )
        for o, d, t, w, p in zip(
            classes.origin, classes.destination, classes.trips, classes.weight_units, classes.persons, strict=True
        )
    }


def _suppressed(world: World, release: Release) -> set[tuple[str, str]]:
    flows = world.od.flows
    names = [world.od.tree(axis).labels(0)[getattr(flows, axis)] for axis in AXES]
    return {(str(o), str(d)) for o, d, out in zip(*names, release.published, strict=True) if not out}
