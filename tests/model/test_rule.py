"""Rules, budgets and weights: exact at their boundaries."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import InputError, Rule, read_matrix
from odkanon.core.weights import from_units, to_units, weight_scale, whole_total
from odkanon.model.od import ODMatrix
from odkanon.model.release_spec import Budget
from worlds.tries import tries

FROM, TO = "8a1fb4640017fff", "8a1fb466ed0ffff"


def matrix(weights: list[float]) -> ODMatrix:
    return read_matrix(
        pa.table({"origin": [FROM] * len(weights), "destination": [TO] * len(weights), "weight": weights}),
        engine="memory",
    )


@tries(40)
@given(st.integers(1, 30), st.floats(0.001, 1e6))
def test_equal_weights_meet_the_population_rule_exactly_when_trips_do(k: int, weight: float) -> None:
    od = matrix([weight] * 20)
    assert Rule.protect("population", k=k, of=od).satisfied(od.flows).all() == (k <= 20)


def test_the_population_threshold_is_k_times_the_mean_weight() -> None:
    od = matrix([1.0, 2.0, 6.0])
    assert od.mean_weight == 3
    assert Rule.protect("population", k=2, of=od).weight == 6
    assert Rule.protect("population", k=4, of=od).weight == 12


def test_persons_are_counted_once() -> None:
    table = pa.table({"origin": [FROM] * 4, "destination": [TO] * 4, "person": ["a", "a", "b", None]})
    od = read_matrix(table, engine="memory")
    assert od.flows.persons is not None
    assert od.flows.persons.tolist() == [2]
    assert Rule(persons=2).satisfied(od.flows).all()
    assert not Rule(persons=3).satisfied(od.flows).any()


@pytest.mark.parametrize(
    "thresholds", [{}, {"trips": 0}, {"trips": -1}, {"trips": 2.5}, {"weight": float("nan")}, {"persons": 0}]
)
def test_rules_that_make_no_sense(thresholds: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Rule(**thresholds)  # type: ignore[arg-type]


@tries(40)
@given(st.integers(0, 1000), st.integers(0, 99))
def test_a_budget_is_the_decimal_number_it_is_written_as(trips: int, percent: int) -> None:
    od = matrix([1.0] * max(trips, 1))
    assert Budget(percent / 100, "trips").allowance(od.flows) == max(trips, 1) * percent // 100


@tries(40)
@given(st.lists(st.decimals(0, 10**6, places=6), min_size=1, max_size=50))
def test_decimal_weights_add_up_to_the_last_digit(weights: list[Fraction]) -> None:
    values = np.array([float(weight) for weight in weights])
    scale = weight_scale(whole_total(values))
    total = int(to_units(values, scale).sum())
    assert Fraction(total, scale) == sum(Fraction(str(weight)) for weight in weights)
    assert from_units(total, scale) == float(sum(Fraction(str(weight)) for weight in weights))


def test_weights_too_large_to_add_up() -> None:
    with pytest.raises(InputError, match="too large"):
        weight_scale(1e300)


@pytest.mark.parametrize(
    ("thresholds", "why"),
    [
        ({"trips": None}, "at least one threshold"),
        ({"trips": float("inf")}, "whole number"),
        ({"trips": "10"}, "must be a whole number of at least 1, not '10'"),
        ({"trips": True}, "must be a whole number of at least 1, not True"),
        ({"trips": 10, "max_share": "half"}, "a share between 0 and 1"),
        ({"trips": 10, "min_destinations": [2]}, "min_destinations must be a whole number"),
        ({"weight": float("inf")}, "positive number"),
        ({"weight": 0}, "positive number"),
        ({"persons": 2, "weight": -1}, "positive number"),
        ({"households": 1.5}, "whole number"),
    ],
)
def test_why_a_rule_makes_no_sense(thresholds: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Rule(**thresholds)


@pytest.mark.parametrize(
    ("targets", "k", "why"),
    [
        (["participants"], 2.5, "k must be a whole number"),
        (["population"], 2.5, "k must be a whole number"),
        (["participants"], 0, "at least 1"),
        (["participants"], -3, "at least 1"),
        (["people"], 3, "unknown target 'people'.*choose from participants"),
        (["participants", "people"], 3, "unknown target 'people'"),
        ([], 3, "choose from participants"),
    ],
)
def test_why_nothing_is_protected(targets: list[str], k: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Rule.protect(*targets, k=k, of=matrix([1.0, 2.0]))


def test_what_protection_means_and_what_a_rule_remembers() -> None:
    od = matrix([1.0, 2.0, 6.0])
    rule = Rule.protect("participants", "population", "persons", "households", k=5, of=od)
    assert rule.thresholds == {"trips": 5, "weight": 15, "persons": 5, "households": 5}
    assert rule.k == 5
    assert rule.mean_weight == 3
    assert Rule.protect("participants", k=1, of=od).mean_weight == 3
    unweighted = read_matrix(pa.table({"origin": [FROM], "destination": [TO]}), engine="memory")
    assert Rule.protect("participants", k=5, of=unweighted).mean_weight is None
    part = Rule.protect("population", k=5, of=od)
    assert part.k_of("trips", Fraction(100)) == 5
    assert part.k_of("weight", Fraction(100)) == 15


def test_weights_that_are_too_small_to_know_their_mean_protect_no_population() -> None:
    least = matrix([0.0001])
    assert Rule.protect("population", k=2, of=least).weight == Fraction(2, 10**4)
    small = matrix([0.0001, 0.00009])
    with pytest.raises(InputError, match=r"weights of 9\.5e-05 on average are too small to be counted"):
        Rule.protect("population", k=2, of=small)
    assert Rule.protect("participants", k=2, of=small).trips == 2


def test_whose_mean_weight_a_rule_goes_by() -> None:
    rule = Rule(weight=30, k=10, mean_weight=Fraction(3))
    assert rule.uses_mean_weight(Fraction(3))
    assert not rule.uses_mean_weight(Fraction(2))
    assert not rule.uses_mean_weight(Fraction(4))
    assert not rule.uses_mean_weight(None)
    assert not Rule(weight=30, mean_weight=Fraction(3)).uses_mean_weight(Fraction(3))
    assert not Rule(trips=10, k=10, mean_weight=Fraction(3)).uses_mean_weight(Fraction(3))


def test_k_of_rules_that_say_only_their_thresholds() -> None:
    assert (Rule(trips=10, persons=5).k, Rule(persons=5).k, Rule(households=3, persons=5).k) == (10, 5, 5)
    assert Rule(weight=30, trips=4, mean_weight=Fraction(3)).k == 4
    assert Rule(weight=30, mean_weight=Fraction(3)).k == 10
    assert Rule(weight=31, mean_weight=Fraction(3)).k == pytest.approx(31 / 3)
    assert isinstance(Rule(trips=10).k, int)
    assert Rule(weight=30).k == 1
    assert Rule(weight=30).k_of("trips", Fraction(5)) == 6
    assert Rule(weight=30, mean_weight=Fraction(3)).k_of("trips", Fraction(5)) == 10
    assert Rule(weight=30, persons=4).k_of("weight", Fraction(5)) == 30
    assert Rule(trips=10).k_of("weight", Fraction(5)) == 50
    assert Rule(trips=10).k_of("weight") == 10
    assert Rule(k=7, weight=30, mean_weight=Fraction(3)).k_of("weight") == 21


def test_the_first_measure_orders_merges() -> None:
    assert Rule(persons=3, trips=2).measures == ("trips", "persons")
    assert Rule(persons=3, trips=2).main_measure == "trips"
    assert Rule(persons=3, weight=2).main_measure == "weight"
    assert Rule(trips=2).persons is None
    with pytest.raises(AttributeError, match="nothing"):
        _ = Rule(trips=2).nothing  # type: ignore[attr-defined]


def test_a_raised_rule_keeps_k_and_rounds_up() -> None:
    rule = Rule(k=10, mean_weight=Fraction(3), trips=10, weight=30, persons=4)
    raised = rule.scaled(1.26)
    assert raised.thresholds == {"trips": 13, "weight": pytest.approx(37.8), "persons": 6}
    assert raised.k == 10
    assert raised.mean_weight == 3


@pytest.mark.parametrize(
    ("mean", "told"),
    [("223.2937", 2230), ("7.9999", 79.9), ("0.0123456", 0.123), ("100", 1000), ("0.9999", 9.99)],
)
def test_a_weight_worked_out_from_the_data_is_told_in_three_digits_rounded_down(mean: str, told: float) -> None:
    rule = Rule(trips=10, weight=10 * Fraction(mean), persons=10, k=10, mean_weight=Fraction(mean))
    assert rule.disclosed_thresholds == {"trips": 10, "weight": told, "persons": 10}
    assert all(type(rule.disclosed_thresholds[name]) is int for name in ("trips", "persons"))


def test_a_weight_that_was_asked_for_is_told_as_it_is() -> None:
    assert Rule(weight=1234.5678).disclosed_thresholds == {"weight": 1234.5678}
    assert Rule(weight=1234.5678, mean_weight=Fraction(3)).disclosed_thresholds == {"weight": 1234.5678}
    assert Rule(trips=7, k=5).disclosed_thresholds == {"trips": 7}


def test_what_the_input_lacks_is_said() -> None:
    bare = read_matrix(pa.table({"origin": [FROM], "destination": [TO]}), engine="memory")
    with pytest.raises(InputError, match="counts weight, but the input has no weight column"):
        Rule(weight=2).satisfied(bare.flows)
    with pytest.raises(InputError, match="counts persons, but the input has no person column"):
        Rule(trips=1, persons=2).check_available(("trips", "weight"))
    Rule(trips=1, weight=2).check_available(("trips", "weight"))


def test_rules_are_equal_if_all_that_they_remember_is() -> None:
    rule = Rule(trips=10, mean_weight=Fraction(3))
    assert rule == Rule(trips=10, mean_weight=Fraction(3))
    assert hash(rule) == hash(Rule(trips=10, mean_weight=Fraction(3)))
    assert rule != Rule(trips=10)
    assert rule != Rule(trips=10, k=9, mean_weight=Fraction(3))
    assert rule != Rule(trips=11, mean_weight=Fraction(3))
    assert rule != "Rule(trips >= 10)"


@pytest.mark.parametrize(
    ("share", "of", "why"), [(1.0, "trips", "below 1"), (-0.1, "trips", "from 0"), (0.1, "km", "rows or")]
)
def test_budgets_that_make_no_sense(share: float, of: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Budget(share, of)


def test_a_budget_counts_rows_or_trips_of_some_flows() -> None:
    od = matrix([1.0] * 7)
    assert (Budget(0.5, "rows").mass(od.flows), Budget(0.5, "trips").mass(od.flows)) == (1, 7)
    assert Budget(0.5, "trips").mass(od.flows, np.array([False])) == 0
    assert (Budget(0.5, "rows").allowance(od.flows), Budget(0.5, "trips").allowance(od.flows)) == (0, 3)
