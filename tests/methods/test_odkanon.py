"""ODkAnon against the authors' results and against a naive step-by-step version."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from odkanon import Release, Rule, read_matrix
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import AXES
from worlds.records import World, budgets, limits_of, rules, worlds
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
        levels=expected["max_levels"],
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
            getattr(release.classes, measure) // (release.classes.scale if measure == "weight" else 1),
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
    expected = oracle.odkanon(
        world.pairs,
        world.path,
        limits_of(rule),
        suppress=suppress,
        budget=Fraction(str(budget)),
        of=budget_of,
        levels=levels,
    )
    options: dict[str, Any] = {"levels": levels} if suppress == "before" else {}
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


def _classes(release: Release) -> dict[tuple[str, str], tuple[int, Fraction, int]]:
    classes = release.classes
    assert classes.weight is not None
    assert classes.persons is not None
    return {
        (str(release.origins.ids[o]), str(release.destinations.ids[d])): (
            int(t),
            Fraction(int(w), classes.scale),
            int(p),
        )
        for o, d, t, w, p in zip(
            classes.origin, classes.destination, classes.trips, classes.weight, classes.persons, strict=True
        )
    }


def _suppressed(world: World, release: Release) -> set[tuple[str, str]]:
    flows = world.od.flows
    names = [world.od.tree(axis).labels(0)[getattr(flows, axis)] for axis in AXES]
    return {(str(o), str(d)) for o, d, out in zip(*names, release.published, strict=True) if not out}
