"""Each check by itself: a bad release or rule, made by hand, that nothing but this check refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odkanon import Release, Rule, UnsafeReleaseError, read_matrix
from odkanon.model.flows import Totals
from odkanon.model.measures import exact_masses
from odkanon.model.od import ODMatrix
from odkanon.model.published_flows import Assignment, Classes, Deviation
from odkanon.model.release_spec import Budget, ReleaseSpec, Structure
from odkanon.zoning.zones import Zones

CELLS = ["8a1fb4640017fff", "8a1fb466ed0ffff", "8a1fb4674d0ffff", "8a1fb475400ffff"]
TRIPS = [20, 15, 6, 6]


@pytest.fixture(scope="module")
def od() -> ODMatrix:
    """Four flows from one cell: of 20, 15, 6 and 6 trips, each trip of another person, and of weight 2."""
    to = [cell for cell, count in zip(CELLS, TRIPS, strict=True) for _ in range(count)]
    persons = [str(number) for number in range(sum(TRIPS))]
    columns = {"origin": [CELLS[0]] * len(to), "destination": to, "weight": [2.0] * len(to), "person": persons}
    return read_matrix(pa.table(columns), engine="memory")


@pytest.fixture
def good(od: ODMatrix) -> dict[str, Any]:
    """A release of the two large flows, in parts; the two small ones, twelve trips together, are suppressed."""
    rows = np.flatnonzero(od.flows.trips > 10)
    published = np.isin(np.arange(len(od)), rows)
    area = np.full(len(od), -1, dtype=np.int32)
    area[rows] = [0, 1]
    trips = od.flows.trips[rows]
    assert od.flows.weight_units is not None
    classes = Classes(
        np.zeros(2, dtype=np.int32),
        np.arange(2, dtype=np.int32),
        trips,
        od.flows.weight_units[rows],
        {"persons": trips},
        od.flows.scale,
    )
    leaf = np.array([1, 1])
    return {
        "input": od.summary,
        "spec": ReleaseSpec(Rule(trips=10), Budget(0.3, "trips")),
        "origins": Zones(np.array(["o"]), leaf[:1]),
        "destinations": Zones(np.array(["a", "b"]), leaf),
        "classes": classes,
        "suppressed": Totals(2, 12, 24 * od.flows.scale),
        "assignment": Assignment(od, area, published),
    }


def within(budget: Budget) -> ReleaseSpec:
    return ReleaseSpec(Rule(trips=10), budget)


def refused(parts: dict[str, Any], why: str, **changes: Any) -> None:
    with pytest.raises(UnsafeReleaseError, match=why):
        Release(**{**parts, **changes})


def test_the_good_one_is_accepted(good: dict[str, Any]) -> None:
    assert len(Release(**good).classes) == 2
    assert Release(**good).seconds == 0  # the recipe has it, and nobody measured
    assert len(Release(**good | {"assignment": None}).classes) == 2


@pytest.mark.parametrize(
    ("rule", "fine"),
    [
        (Rule(trips=16), Rule(trips=12)),
        (Rule(weight=30.5), Rule(weight=24)),
        (Rule(persons=16), Rule(persons=12)),
        (Rule(trips=3, persons=16), Rule(trips=3, persons=12)),
    ],
    ids=str,
)
def test_a_class_below_its_rule(good: dict[str, Any], rule: Rule, fine: Rule) -> None:
    assert len(Release(**good | {"spec": ReleaseSpec(fine)}).classes) == 2
    refused(good, "1 classes are below", spec=ReleaseSpec(rule))


def test_one_trip_over_the_budget(good: dict[str, Any]) -> None:
    """Twelve of 47 trips: a quarter is eleven, and 25.6 % are twelve."""
    assert Release(**good | {"spec": within(Budget(0.256, "trips"))}).refusal is None
    refused(good, "12 trips suppressed, but the budget is 11", spec=within(Budget(0.25, "trips")))
    refused(good, "2 rows suppressed, but the budget is 1", spec=within(Budget(0.49, "rows")))
    assert Release(**good | {"spec": within(Budget(0.5, "rows"))}).refusal is None


def test_a_companion_is_not_counted_against_the_budget_but_nothing_else_is_spared(good: dict[str, Any]) -> None:
    scale = good["classes"].scale
    budget = Budget(0.13, "trips")
    assert Release(**good | {"spec": within(budget), "companion": Totals(1, 6, 12 * scale)}).refusal is None
    refused(good, "7 trips suppressed", spec=within(budget), companion=Totals(1, 5, 10 * scale))


@pytest.mark.parametrize("lost", [1, -1], ids=["lost", "invented"])
def test_trips_lost_and_trips_invented(good: dict[str, Any], lost: int) -> None:
    suppressed = replace(good["suppressed"], trips=12 - lost)
    refused(
        good, "the trips published and suppressed are not those of the input", suppressed=suppressed, assignment=None
    )
    classes = replace(good["classes"], trips=good["classes"].trips - np.array([lost, 0]))
    refused(good, "the trips published and suppressed are not those of the input", classes=classes, assignment=None)


@pytest.mark.parametrize("lost", [1, -1], ids=["lost", "invented"])
def test_weight_lost_and_weight_invented(good: dict[str, Any], lost: int) -> None:
    """By one unit, the millionth part of one."""
    weight = good["suppressed"].weight_units - lost
    suppressed = replace(good["suppressed"], weight_units=weight)
    refused(
        good, "the weight published and suppressed are not those of the input", suppressed=suppressed, assignment=None
    )
    refused(
        good, "the weight of input and classes", classes=replace(good["classes"], weight_units=None), assignment=None
    )
    without = replace(good["input"], weight_units=None)
    refused(good, "the weight of input and classes", input=without, assignment=None)


def test_what_is_suppressed_is_what_the_pairs_say(good: dict[str, Any]) -> None:
    refused(good, "not that of the unpublished pairs", suppressed=replace(good["suppressed"], pairs=3))
    assignment = good["assignment"]
    swapped = assignment.published[::-1].copy()
    refused(good, "not that of the unpublished pairs", assignment=replace(assignment, published=swapped))


def test_a_published_pair_lies_in_a_class(good: dict[str, Any]) -> None:
    area = good["assignment"].area_of_pair.copy()
    area[np.flatnonzero(good["assignment"].published)[0]] = -1
    refused(good, "lies in no class", assignment=replace(good["assignment"], area_of_pair=area))


@pytest.mark.parametrize("measure", ["trips", "weight"])
@pytest.mark.parametrize("moved", [1, -1])
def test_a_class_has_what_its_pairs_have(good: dict[str, Any], measure: str, moved: int) -> None:
    """What one class gets and another loses leaves every total as it was."""
    field = "weight_units" if measure == "weight" else measure
    changed = exact_masses(good["classes"], measure) + np.array([moved, -moved])
    refused(good, f"the {measure} of a class", classes=replace(good["classes"], **{field: changed}))


def test_too_few_suppressed(good: dict[str, Any]) -> None:
    """Twelve trips, of weight 24, of twelve persons."""
    for rule in (Rule(trips=13), Rule(weight=24.5), Rule(persons=13)):
        refused(good, "its total would disclose it", spec=ReleaseSpec(rule))
    for rule in (Rule(trips=13), Rule(weight=24.5)):
        refused(good, "its total would disclose it", spec=ReleaseSpec(rule), assignment=None)


@pytest.mark.parametrize("measure", ["trips", "weight"])
@pytest.mark.parametrize("lost", [1, -1])
def test_deviations_are_about_all_of_the_input(good: dict[str, Any], measure: str, lost: int) -> None:
    inside = exact_masses(good["classes"], measure)
    nothing = np.zeros(2, dtype=np.int64)
    outside = exact_masses(good["suppressed"], measure)
    fine = Deviation(nothing, nothing, inside, outside)
    assert Release(**good | {"deviations": {measure: fine}}).refusal is None
    refused(good, f"the {measure} compared", deviations={measure: replace(fine, outside=outside - lost)})


@pytest.mark.parametrize(("trips", "weight"), [(6, 12), (5, 12), (7, 12), (6, 11), (6, 13)])
def test_what_nested_classes_pass_on_is_accounted_for(
    good: dict[str, Any], od: ODMatrix, trips: int, weight: int
) -> None:
    """One of the two small flows lies in a class that is full: six trips are published nowhere."""
    small = np.flatnonzero(od.flows.trips < 10)
    published = np.ones(len(od), dtype=bool)
    published[small[1]] = False
    area = good["assignment"].area_of_pair.copy()
    area[small[0]] = 0
    passed_on = Totals(0, trips, weight * od.flows.scale)
    parts = {
        **good,
        "structure": Structure.NESTED,
        "classes": replace(good["classes"], finest_pairs=np.array([1, 1])),
        "suppressed": Totals(1, 12, 24 * od.flows.scale),
        "assignment": Assignment(od, area, published, excess=passed_on),
    }
    if (trips, weight) == (6, 12):
        assert len(Release(**parts).classes) == 2
    else:
        refused(parts, "not that of the unpublished pairs")


def test_classes_that_lie_in_each_other_are_of_a_nested_release_and_of_no_other(good: dict[str, Any]) -> None:
    assert Release(**good).structure == "partition"
    assert not Release(**good).is_nested
    refused(good, "for nested classes only", structure=Structure.NESTED)
    refused(good, "for nested classes only", classes=replace(good["classes"], finest_pairs=np.array([1, 1])))


def test_no_more_is_missing_than_is_told(good: dict[str, Any]) -> None:
    assert Release(**good, unlisted=12).unlisted == 12
    refused(good, "12 trips suppressed, more than 11 at most", unlisted=11)


def test_a_refused_release_needs_no_budget(good: dict[str, Any]) -> None:
    empty = Release.empty(good["assignment"].od, ReleaseSpec(Rule(trips=1000)), "too few")
    assert empty.suppressed.trips == 47
    assert len(empty.classes) == 0
    assert empty.origins.leaves is not None
    assert not len(empty.origins.leaves)
    assert not empty.published.any()
    assert (empty.area_of_pair == -1).all()


def test_pairs_that_are_in_memory_are_the_input(good: dict[str, Any], od: ODMatrix) -> None:
    assert Release(**good).matrix is od
    assert Release(**good | {"assignment": None}).matrix is None


@pytest.mark.parametrize("scale", [1, 10, 1_000_000])
def test_a_weight_threshold_is_never_rounded_down(scale: int) -> None:
    """Just below and just above a whole number of units, and at it."""
    for whole in (1, 7, 26_741):
        at = Fraction(whole)
        assert Rule(weight=at).units("weight", scale) == whole * scale
        assert Rule(weight=at + Fraction(1, 10**9)).units("weight", scale) == whole * scale + 1
        assert Rule(weight=at - Fraction(1, 10**9)).units("weight", scale) == whole * scale
        assert Fraction(Rule(weight=at / 3).units("weight", scale), scale) >= at / 3
    rule = Rule(weight=Fraction(2_674_16, 100) * 10)
    assert not rule.satisfied(_weighing(26_741, 1)).any()
    assert rule.satisfied(_weighing(26_742, 1)).all()


def _weighing(units: int, scale: int) -> Classes:
    codes = np.zeros(1, dtype=np.int32)
    return Classes(codes, codes, np.array([100]), np.array([units]), {}, scale)


@pytest.mark.parametrize("measure", ["trips", "persons", "households"])
def test_thresholds_are_met_from_exactly_there_on(measure: str) -> None:
    codes = np.zeros(3, dtype=np.int32)
    values = np.array([9, 10, 11])
    contributors = {"persons": values, "households": values}
    classes = Classes(codes, codes, values, None, contributors, 1)
    thresholds: dict[str, Any] = {measure: 10}
    assert Rule(**thresholds).satisfied(classes).tolist() == [False, True, True]
