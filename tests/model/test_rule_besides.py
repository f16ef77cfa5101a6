"""What a rule asks besides thresholds, exact at its boundaries: shares of one person, and numbers of destinations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odkanon import InputError, Rule, read_matrix
from odkanon.model.measures import BY_CONTRIBUTOR
from odkanon.model.od import ODMatrix

FROM, TO = "8a1fb4640017fff", "8a1fb466ed0ffff"


def flow(persons: list[str | None], trips: list[int], weight: list[float] | None = None) -> ODMatrix:
    """Return one flow, of which each person has so many trips and so much weight."""
    table: dict[str, Any] = {
        "origin": [FROM] * len(trips),
        "destination": [TO] * len(trips),
        "person": pa.array(persons, pa.string()),
        "trips": trips,
    }
    return read_matrix(pa.table(table if weight is None else {**table, "weight": weight}), engine="memory")


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, 2, float("nan")])
def test_shares_that_make_no_sense(share: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        Rule(trips=2, max_share=share)


@pytest.mark.parametrize("number", [0, -1, 1.5, 0.5])
def test_numbers_of_destinations_that_make_no_sense(number: Any) -> None:
    with pytest.raises(InputError, match="whole number"):
        Rule(trips=2, min_destinations=number)


def test_what_a_rule_says_of_itself() -> None:
    rule = Rule(trips=2, persons=2, max_share=0.5, min_destinations=1)
    assert rule.constraints == {"max_share": 0.5, "min_destinations": 1}
    assert not rule.thresholds_only
    assert Rule(trips=2).thresholds_only
    assert Rule(trips=2, max_share=0.5).constraints == {"max_share": 0.5}
    assert rule.required_measures == {"trips", "persons", "households", BY_CONTRIBUTOR}
    assert Rule(trips=2, min_destinations=3).required_measures == {"trips"}
    assert rule.with_constraints(min_destinations=3) == Rule(trips=2, persons=2, min_destinations=3)
    assert rule.with_constraints() == Rule(trips=2, persons=2) != rule
    remembering = Rule(k=7, mean_weight=Fraction(3), trips=2)
    assert remembering.with_constraints(max_share=0.5) == Rule(k=7, mean_weight=Fraction(3), trips=2, max_share=0.5)
    assert rule.scaled(2) == Rule(k=2, trips=4, persons=4, max_share=0.5, min_destinations=1)


def test_what_a_rule_says_in_words() -> None:
    plain = "the rule (at least 2 trips in every flow"
    assert str(Rule(trips=2)) == f"{plain})"
    assert str(Rule(trips=2, max_share=0.5)) == f"{plain}; no more than 0.5 of it of one person)"
    assert str(Rule(trips=2, min_destinations=3)) == f"{plain}; 3 destinations of every origin)"
    assert repr(Rule(trips=2, min_destinations=3)) == "Rule(trips >= 2, min_destinations >= 3)"


@pytest.mark.parametrize(("most", "met"), [(2, True), (3, True), (4, False)])
def test_a_share_is_met_by_as_much_and_not_by_more(most: int, met: bool) -> None:
    od = flow(["a", "b", "c", "d", "e"], [most, 2, 2, 2, 4 - most])
    assert od.trips == 10
    assert Rule(trips=10, max_share=0.3).satisfied(od.flows).tolist() == [met]


def test_a_share_needs_thresholds_as_well() -> None:
    assert not Rule(trips=11, max_share=0.3).satisfied(flow(["a", "b", "c", "d", "e"], [2, 2, 2, 2, 2]).flows).any()


def test_trips_of_nobody_are_of_whoever_has_most() -> None:
    assert Rule(trips=2, max_share=0.5).satisfied(flow(["a", "b", "c"], [4, 3, 3]).flows).all()
    assert Rule(trips=2, max_share=0.5).satisfied(flow(["a", "b", "c", None], [4, 3, 2, 1]).flows).all()
    assert not Rule(trips=2, max_share=0.5).satisfied(flow(["a", "b", None], [4, 3, 3]).flows).any()


def test_a_share_of_weight_counts_where_weight_does() -> None:
    od = flow(["a", "b", "c", "d"], [1, 1, 1, 1], [6.0, 1.0, 1.0, 2.0])
    assert Rule(trips=2, max_share=0.5).satisfied(od.flows).all()
    assert not Rule(trips=2, weight=2, max_share=0.5).satisfied(od.flows).any()
    assert Rule(trips=2, weight=2, max_share=0.6).satisfied(od.flows).all()


@pytest.mark.parametrize(("most", "met"), [(20_000_000_000_003, True), (20_000_000_000_004, False)])
def test_shares_of_large_flows_are_exact(most: int, met: bool) -> None:
    """Half of 40 million millions and seven: as a product it would not fit into 64 bits."""
    whole = 40_000_000_000_007
    od = flow(["a", "b", "c"], [most, 19_000_000_000_000, whole - most - 19_000_000_000_000])
    assert Rule(trips=2, max_share=0.5).satisfied(od.flows).tolist() == [met]


@pytest.mark.parametrize(("most", "met"), [(1_234_560, True), (1_234_561, False)])
def test_digits_of_a_share_beyond_the_sixth_are_dropped(most: int, met: bool) -> None:
    others = [1_200_000] * 7
    od = flow([*"abcdefgh", "i"], [most, *others, 10_000_000 - most - sum(others)])
    assert Rule(trips=2, max_share=0.1234567).satisfied(od.flows).tolist() == [met]


def test_shares_cannot_be_told_where_nobody_is_named() -> None:
    bare = read_matrix(pa.table({"origin": [FROM], "destination": [TO]}), engine="memory")
    with pytest.raises(InputError, match="max_share needs trips in memory"):
        Rule(trips=1, max_share=0.5).satisfied(bare.flows)
    with pytest.raises(InputError, match="max_share needs a column of persons"):
        Rule(trips=1, max_share=0.5).check_available(("trips", "weight"))
    Rule(trips=1, max_share=0.5).check_available(("trips", "households"))
    Rule(trips=1, min_destinations=2).check_available(("trips",))


def test_origins_need_so_many_good_destinations() -> None:
    origin, good = np.array([0, 0, 1, 1, 3], dtype=np.int32), np.array([True, True, True, False, True])
    assert Rule(trips=1).with_destinations(origin, good).tolist() == [True] * 5
    assert Rule(trips=1, min_destinations=1).with_destinations(origin, good).tolist() == [True] * 5
    asked = Rule(trips=1, min_destinations=2)
    assert asked.with_destinations(origin, good).tolist() == [True, True, False, False, False]
    assert asked.with_destinations(origin, good & (origin == 0)).tolist() == [True, True, False, False, False]
    assert asked.with_destinations(origin[:0], good[:0]).tolist() == []


def test_what_may_be_published_side_by_side() -> None:
    table = {"origin": [FROM, FROM, TO, TO], "destination": [FROM, TO, FROM, TO], "trips": [3, 4, 1, 5]}
    flows = read_matrix(pa.table(table), engine="memory").flows
    assert flows.trips.tolist() == [3, 4, 1, 5]
    assert Rule(trips=2).satisfied_jointly(flows).tolist() == [True, True, False, True]
    assert Rule(trips=2, min_destinations=2).satisfied_jointly(flows).tolist() == [True, True, False, False]
