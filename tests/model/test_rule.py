"""Rules, budgets and weights: exact at their boundaries."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import InputError, Rule, read_od
from odkanon.core.weights import from_units, to_units, weight_scale
from odkanon.model.budget import Budget
from odkanon.model.od import ODMatrix

FROM, TO = "8a1fb4640017fff", "8a1fb466ed0ffff"


def matrix(weights: list[float]) -> ODMatrix:
    return read_od(pa.table({"origin": [FROM] * len(weights), "destination": [TO] * len(weights), "weight": weights}))


@given(st.integers(1, 30), st.floats(0.001, 1e6))
def test_equal_weights_meet_the_population_rule_exactly_when_trips_do(k: int, weight: float) -> None:
    od = matrix([weight] * 20)
    assert Rule.protect("population", k=k, of=od).met(od.flows).all() == (k <= 20)


def test_the_population_threshold_is_k_times_the_mean_weight() -> None:
    od = matrix([1.0, 2.0, 6.0])
    assert od.mean_weight == 3
    assert Rule.protect("population", k=2, of=od).weight == 6
    assert Rule.protect("population", k=4, of=od).weight == 12


def test_persons_are_counted_once() -> None:
    table = pa.table({"origin": [FROM] * 4, "destination": [TO] * 4, "person": ["a", "a", "b", None]})
    od = read_od(table)
    assert od.flows.persons is not None
    assert od.flows.persons.tolist() == [2]
    assert Rule(persons=2).met(od.flows).all()
    assert not Rule(persons=3).met(od.flows).any()


@pytest.mark.parametrize(
    "thresholds", [{}, {"trips": 0}, {"trips": -1}, {"trips": 2.5}, {"weight": float("nan")}, {"persons": 0}]
)
def test_rules_that_make_no_sense(thresholds: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Rule(**thresholds)  # type: ignore[arg-type]


@given(st.integers(0, 1000), st.integers(0, 99))
def test_a_budget_is_the_decimal_number_it_is_written_as(trips: int, percent: int) -> None:
    od = matrix([1.0] * max(trips, 1))
    assert Budget(percent / 100, "trips").allowance(od.flows) == max(trips, 1) * percent // 100


@given(st.lists(st.decimals(0, 10**6, places=6), min_size=1, max_size=50))
def test_decimal_weights_add_up_to_the_last_digit(weights: list[Fraction]) -> None:
    values = np.array([float(weight) for weight in weights])
    scale = weight_scale(len(values), float(values.max()))
    total = int(to_units(values, scale).sum())
    assert Fraction(total, scale) == sum(Fraction(str(weight)) for weight in weights)
    assert from_units(total, scale) == float(sum(Fraction(str(weight)) for weight in weights))


def test_weights_too_large_to_add_up() -> None:
    with pytest.raises(InputError, match="too large"):
        weight_scale(10, 1e300)
