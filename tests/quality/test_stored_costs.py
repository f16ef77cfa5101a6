"""Lower bounds are the same on every engine, however small the parts are in which pairs are processed."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.same import survey
from engine.test_duckdb import in_duckdb
from odkanon import Rule, read_matrix, read_trips
from odkanon.model.release_spec import BudgetOf
from odkanon.quality import stored_costs as reach
from odkanon.quality.lower_bound import lower_bound
from odkanon.read.od_matrix import build_od
from worlds.records import World, budgets, h3_worlds, rules, table_of
from worlds.tries import tries

PARIS = Path(__file__).parent.parent / "golden/paris-28k/od.csv"


@tries(12)
@given(h3_worlds(), rules(), budgets, st.sampled_from(["trips", "rows"]), st.sampled_from([1, 3, 20]))
def test_random_worlds(world: World, rule: Rule, budget: float, budget_of: BudgetOf, rows: int) -> None:
    stored = in_duckdb(table_of(world.trips[::-1]), fetchable=0)
    with patch.object(reach, "_LEAST_ROWS", rows):
        found = lower_bound(stored, rule, budget=budget, budget_of=budget_of)
    assert found == lower_bound(world.od, rule, budget=budget, budget_of=budget_of)


@pytest.mark.parametrize("rule", [Rule(trips=10), Rule(persons=4), Rule(trips=8, weight=9_000, persons=3)])
def test_a_survey_in_parts(rule: Rule) -> None:
    expected = lower_bound(build_od(read_trips(survey())), rule)
    assert expected.g is not None
    assert lower_bound(in_duckdb(survey(), fetchable=0), rule) == expected
    assert lower_bound(in_duckdb(survey()), rule) == expected


@pytest.mark.parametrize("fetchable", [3_000, 7_000])
def test_paris_in_parts(fetchable: int) -> None:
    rule, stored = Rule(trips=10), in_duckdb(PARIS, fetchable=fetchable)
    assert stored.pairs_fit == (fetchable == 7_000)  # then the pairs are fetched at once, and climbed in four parts
    assert lower_bound(stored, rule) == lower_bound(read_matrix(PARIS, engine="memory"), rule)
