"""What the files of one release say of themselves, each check by itself, on a release written by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from audit.by_hand import Flows, tables
from odkanon.audit.findings import Finding
from odkanon.audit.release_checks import check_homogeneity, check_margins, check_persons, check_rule, check_totals
from odkanon.audit.release_reader import PublishedRelease

FLOWS: Flows = {
    ("a1", "a1"): (10, 15.5, 4, 3),
    ("a1", "b1"): (12, 24.0, 12, 6),
    ("b1", "a1"): (20, 20.0, 10, 5),
    ("b1", "b1"): (11, 10.5, 11, 2),
}
BESIDE: Flows = {("a1", "a2"): (1, 0.5, 1, 1)}
"""The flows of another release, which no check may look at."""
RULE: dict[str, float] = {"k": 10, "trips": 10}


class Told:
    """A release that is as it should be, until it is changed."""

    def __init__(self, flows: Flows = FLOWS) -> None:
        self.flows = flows
        self.manifest: dict[str, Any] = {
            "rule": dict(RULE),
            "statement": "Every flow has at least 10 trips.",
            "published": {"classes": 4, "trips": 53, "weight": 70.0, "origins": 2, "destinations": 2},
        }
        self.provenance: dict[str, Any] = {
            "rule": dict(RULE),
            "input": {"trips": 60, "weight": 80.0, "rejected": {"no start": {"trips": 4, "weight": 6.0}}},
            "published": {"trips": 53, "weight": 70.0},
            "suppressed": {"trips": 3, "weight": 4.0},
            "privacy": {
                "trips": {"min": 10, "below": 0, "threshold": 10},
                "persons": {"min": 4, "below": 1, "threshold": 10},
            },
        }
        self.zones: dict[str, list[dict[str, Any]]] = {
            "origin": [{"id": "a1", "trips": 22, "weight": 39.5}, {"id": "b1", "trips": 31, "weight": 30.5}],
            "destination": [{"id": "a1", "trips": 30, "weight": 35.5}, {"id": "b1", "trips": 23, "weight": 34.5}],
        }
        self.measures: tuple[str, ...] = ("trips", "weight", "persons", "households")
        self.demanded: dict[str, float] = {}
        self.bare = False
        self.steward = True

    @property
    def published(self) -> PublishedRelease:
        zones = {axis: [({"level": 0, **about}, None) for about in zones] for axis, zones in self.zones.items()}
        return PublishedRelease(
            1,
            "r",
            Path("r"),
            self.manifest,
            self.provenance if self.steward else None,
            {},
            zones,
            self.measures,
            self.demanded,
            self.bare,
        )

    def rule(self, *, with_trips: bool = False) -> list[str]:
        return said(check_rule(tables(BESIDE, self.flows), self.published, with_trips=with_trips))

    def totals(self) -> list[str]:
        return said(check_totals(tables(BESIDE, self.flows), self.published))

    def margins(self) -> list[str]:
        return said(check_margins(tables(BESIDE, self.flows), self.published))

    def persons(self) -> list[str]:
        return said(check_persons(tables(BESIDE, self.flows), self.published))

    def homogeneity(self) -> list[str]:
        return said(check_homogeneity(tables(BESIDE, self.flows), self.published))


def said(findings: Iterable[Finding]) -> list[str]:
    """Return what is found; notes begin with a sign of their own."""
    return [("- " if each.severity == "note" else "") + each.message for each in findings]


@pytest.fixture
def told() -> Told:
    return Told()


def test_an_intact_release(told: Told) -> None:
    assert told.rule() == told.totals() == told.margins() == told.homogeneity() == []


def test_the_smallest_of_the_flows_below_the_rule_is_named(told: Told) -> None:
    told.manifest["rule"]["trips"] = 12
    told.manifest["statement"] = "at least 12 trips"
    assert told.rule() == ["2 flows are below the rule of 12 trips: a1 -> a1 has 10"]
    told.manifest["statement"] = "at least 11 trips"
    told.manifest["rule"]["trips"] = 11
    assert told.rule() == ["1 flows are below the rule of 11 trips: a1 -> a1 has 10"]


def test_a_rule_that_the_steward_has_in_full_is_the_one_that_counts(told: Told) -> None:
    told.provenance["rule"]["trips"] = 12
    assert told.rule() == ["2 flows are below the rule of 12 trips: a1 -> a1 has 10"]
    told.provenance["rule"]["trips"] = 8
    assert told.rule() == []


def test_the_rule_of_the_auditor_is_named_as_such(told: Told) -> None:
    told.demanded = {"trips": 11}
    assert told.rule() == ["1 flows are below your rule of 11 trips: a1 -> a1 has 10"]


@pytest.mark.parametrize(
    ("weight", "below"), [(0.5, False), (0.5 * (1 - 1e-13), False), (0.5 * (1 - 1e-11), True), (0.499, True)]
)
def test_a_threshold_of_less_than_one_is_one_to_the_last_digit(weight: float, below: bool) -> None:
    told = Told({("a1", "b1"): (12, weight)})
    told.manifest |= {"rule": {"weight": 0.5, "trips": 10}, "statement": "at least 0.5 weight and 10 trips"}
    told.provenance["rule"] = {}
    assert bool(told.rule()) is below


@pytest.mark.parametrize("weight", [None, float("nan"), float("inf")])
def test_a_flow_without_a_number_is_below_every_rule(weight: float) -> None:
    told = Told({("a1", "b1"): (12, weight)})
    told.manifest |= {"rule": {"weight": 5}, "statement": "at least 5 weight"}
    (found,) = told.rule()
    assert found.startswith("1 flows are below the rule of 5 weight: a1 -> b1 has")


def test_unpublished_measures_are_left_to_the_trips(told: Told) -> None:
    told.measures = ("trips", "weight")
    told.manifest |= {"rule": {"persons": 10, "trips": 11}, "statement": "10 persons and 11 trips"}
    few = "1 flows are below the rule of 11 trips: a1 -> a1 has 10"
    unknown = "the rule counts persons, but no flow lists them; give the trips to count them"
    assert told.rule() == [few, unknown]
    assert told.rule(with_trips=True) == [few]
    told.manifest["nested"] = True
    assert told.rule() == [few, f"- {unknown}"]


def test_more_contributors_than_trips_cannot_be(told: Told) -> None:
    told.flows = FLOWS | {("a1", "a1"): (10, 15.5, 11, 12)}
    assert told.rule() == [
        f"1 flows have more {contributors} than trips, which cannot be: a1 -> a1 with 10 trips"
        for contributors in ("persons", "households")
    ]
    told.measures = ("trips", "weight")
    assert told.rule() == []


def test_rows_that_begin_nowhere(told: Told) -> None:
    told.flows = FLOWS | {("", "b1"): (30, 30.0, 30, 30)}
    assert told.rule() == ["1 flows have no origin or destination, and may be totals of others:  -> b1 with 30 trips"]


def test_a_flow_that_is_listed_twice(told: Told) -> None:
    connection = tables(BESIDE, FLOWS)
    connection.execute("INSERT INTO classes SELECT * FROM classes WHERE release = 1 AND destination = 'b1'")
    found = said(check_rule(connection, told.published, with_trips=False))
    assert found == ["a1 -> b1 is listed 2 times"]
    connection.execute("UPDATE classes SET attributes = 'mode=' || rowid")
    assert not list(check_rule(connection, told.published, with_trips=False))


@pytest.mark.parametrize(("least", "few"), [(2, ""), (3, "1 origin zones"), (4, "2 origin zones")])
def test_promised_destinations_are_counted(told: Told, least: int, few: str) -> None:
    told.flows = FLOWS | {("a1", "b2"): (10, 10.0, 10, 10)}
    told.manifest["rule"]["min_destinations"] = least
    told.manifest["statement"] += f" Every origin has at least {least} destinations."
    end = f" have flows to fewer than the {least} destinations that are promised: b1 has 2"
    assert told.rule() == ([few + end] if few else [])


def test_one_destination_is_enough_where_none_are_promised() -> None:
    assert Told({("a1", "b1"): (12, 24.0, 12, 6)}).rule() == []


MISSING_WORDS = "that a flow has 1 of what it counts, which every flow has: it protects nobody"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"trips": 1}, [f"it promises {MISSING_WORDS}"]),
        ({"trips": 1, "persons": 1}, [f"it promises {MISSING_WORDS}"]),
        ({"trips": 1, "persons": 2}, []),
        ({"trips": 2}, []),
        ({}, [f"it promises {MISSING_WORDS}"]),
    ],
)
def test_a_promise_that_every_flow_keeps(told: Told, rule: dict[str, float], found: list[str]) -> None:
    told.manifest |= {"rule": rule, "statement": "1 and 2"}
    told.provenance["rule"] = {}
    assert told.rule() == found


@pytest.mark.parametrize(
    ("weight", "k", "nobody"), [(0.5, 10, False), (0.5, 1, True), (1.0, None, True), (1.5, None, False)]
)
def test_one_of_a_weight_is_the_weight_of_a_trip(told: Told, weight: float, k: int | None, nobody: bool) -> None:
    """Weights may be shares of a whole, so that ten trips weigh less than 1."""
    told.manifest |= {"rule": {"weight": weight} | ({"k": k} if k else {}), "statement": f"{weight:g}"}
    told.steward = False
    assert told.rule() == ([f"it promises {MISSING_WORDS}"] if nobody else [])


def test_of_a_bare_table_it_is_the_auditor_who_asks(told: Told) -> None:
    told.bare, told.steward = True, False
    told.manifest = {"rule": {}}
    told.demanded = {"trips": 1}
    assert told.rule() == [f"you ask {MISSING_WORDS}"]
    told.demanded = {"trips": 2}
    assert told.rule() == []


@pytest.mark.parametrize(
    ("rule", "statement", "missing"),
    [
        ({"trips": 10}, "Every flow has at least 11 trips.", "10 trips"),
        ({"weight": 5.0}, "at least 5 weight", ""),
        ({"weight": 5.25}, "at least 5.25 weight", ""),
        ({"weight": 5.25}, "at least 5.2 weight", "5.250 weight"),
        ({"weight": 7.123456789012}, "at least 7.123456789 weight", ""),
        ({"weight": 7.123456789012}, "at least 7.123456789012 weight", ""),
        ({"trips": 10, "max_share": 0.5}, "10 trips; nobody has more than 50 % of the trips", ""),
        ({"trips": 10, "max_share": 0.5}, "10 trips; nobody has more than 60 % of the trips", "max_share 0.5"),
        ({"trips": 10, "min_destinations": 2}, "10 trips to at least 2 destinations", ""),
        ({"trips": 10, "min_destinations": 2}, "10 trips to at least 3 destinations", "min_destinations 2"),
    ],
)
def test_the_words_of_a_promise_are_its_numbers(
    told: Told, rule: dict[str, float], statement: str, missing: str
) -> None:
    told.manifest |= {"rule": rule, "statement": statement}
    told.provenance["rule"] = {}
    assert told.rule() == (
        [f"the statement {statement!r} does not promise {missing}, which is the rule"] if missing else []
    )


def test_a_release_without_words(told: Told) -> None:
    del told.manifest["statement"]
    assert told.rule() == ["the statement '' does not promise 10 trips, which is the rule"]


@pytest.mark.parametrize("name", ["classes", "trips", "weight", "origins", "destinations"])
def test_flows_that_do_not_add_up(told: Told, name: str) -> None:
    told.manifest["published"][name] += 1
    is_now = told.manifest["published"][name]
    assert told.totals() == [f"the flows have {is_now - 1:g} {name} in all, but release.json states {is_now:g}"]
    del told.manifest["published"][name]
    assert told.totals() == []


def test_totals_without_flows(told: Told) -> None:
    told.flows, told.steward = {}, False
    told.manifest["published"] = dict.fromkeys(("classes", "trips", "weight", "origins", "destinations"), 0)
    assert told.totals() == []


@pytest.mark.parametrize("part", ["published", "suppressed"])
@pytest.mark.parametrize(("name", "more"), [("trips", 1), ("weight", 0.25), ("weight", -0.25)])
def test_an_account_with_a_hole(told: Told, part: str, name: str, more: float) -> None:
    told.provenance[part][name] += more
    (found,) = told.totals()
    assert found.startswith(f"input {told.provenance['input'][name]:g} {name} is not published")
    assert "+ rejected " in found
    told.steward = False
    assert told.totals() == []


def test_reasons_that_say_nothing_of_weight_have_none(told: Told) -> None:
    told.provenance["input"]["rejected"]["nowhere"] = {"trips": 0}
    assert told.totals() == []


def test_what_the_input_does_not_count_is_not_in_the_account(told: Told) -> None:
    for part in ("input", "suppressed"):
        del told.provenance[part]["weight"]
    assert told.totals() == []


@pytest.mark.parametrize(
    "claim",
    [
        {"min": 5, "below": 1, "threshold": 10},
        {"min": 4, "below": 0, "threshold": 10},
        {"min": 4, "below": 2, "threshold": 10},
        {"min": 4, "below": 1, "threshold": 11},
    ],
)
def test_a_claim_about_the_smallest_flow(told: Told, claim: dict[str, int]) -> None:
    told.provenance["privacy"]["persons"] = claim
    below = 2 if claim["threshold"] == 11 else 1
    assert told.totals() == [
        f"release.json states that the smallest flow has {claim['min']} persons and {claim['below']} are below "
        f"{claim['threshold']}; it is 4, and {below} are"
    ]


@pytest.mark.parametrize("steward", [False, True])
def test_minima_of_unpublished_measures_are_not_checked(told: Told, steward: bool) -> None:
    told.provenance["privacy"] = {"households": {"min": 99, "below": 0, "threshold": 10}}
    told.measures, told.steward = ("trips", "weight"), steward
    assert told.totals() == []
    told.measures = ("trips", "weight", "households")
    assert bool(told.totals()) is steward


def test_a_claim_that_there_is_no_flow(told: Told) -> None:
    told.provenance["privacy"]["persons"] = {"min": None, "below": 0, "threshold": 10}
    assert told.totals() == []


def test_a_claim_about_flows_that_are_not_there(told: Told) -> None:
    told.flows = {}
    del told.provenance["privacy"]["persons"]
    assert told.totals()[-1] == (
        "release.json states that the smallest flow has 10 trips and 0 are below 10; it is 0, and 0 are"
    )


def test_zones_without_flows_and_flows_without_zones(told: Told) -> None:
    told.zones["origin"].append({"id": "a2", "trips": 0, "weight": 0.0})
    del told.zones["destination"][0]
    assert told.margins() == [
        "origin zone a2 has no published flow: it discloses a suppressed one",
        "destination zone a1 has flows but is missing from zones.geojson",
    ]


@pytest.mark.parametrize("more", [-1, 1])
def test_a_zone_with_other_trips_than_its_flows(told: Told, more: int) -> None:
    told.zones["destination"][1]["trips"] += more
    assert told.margins() == [
        f"zones.geojson gives destination zone b1 {23 + more} trips, its published flows have 23: the difference of "
        f"{more} is what was suppressed there, or the file was edited"
    ]


def test_a_zone_of_another_weight_than_its_flows(told: Told) -> None:
    told.zones["origin"][0]["weight"] *= 1.001
    assert told.margins() == ["zones.geojson gives origin zone a1 another weight than its published flows have"]
    del told.zones["origin"][0]["weight"]
    assert told.margins() == []


@pytest.mark.parametrize(
    ("rule", "left", "told_of"),
    [
        ({"trips": 10}, {"trips": 9}, "9 trips"),
        ({"trips": 10}, {"trips": 1}, "1 trips"),
        ({"trips": 10}, {"trips": 10}, ""),
        ({"trips": 10}, {"trips": 0}, ""),
        ({"trips": 10}, {"trips": 10, "weight": 3.0}, ""),
        ({"trips": 10, "weight": 5.0}, {"trips": 10, "weight": 0.5}, "0.500 weight"),
        ({"trips": 10, "weight": 0.5}, {"trips": 10}, ""),
        ({"trips": 10, "persons": 2}, {"trips": 10}, ""),
    ],
)
def test_a_remainder_in_the_folder_is_noted(
    told: Told, rule: dict[str, float], left: dict[str, float], told_of: str
) -> None:
    told.manifest |= {"rule": rule, "suppressed": left}
    found = told.margins()
    assert [each.partition(", below the rule")[0] for each in found] == (
        [f"- input - rejected - published = {told_of}"] if told_of else []
    )


def test_a_remainder_known_only_to_the_steward_is_not_noted(told: Told) -> None:
    assert told.provenance["suppressed"]["trips"] == 3
    assert told.margins() == []


def test_flows_of_few_persons_are_noted(told: Told) -> None:
    assert told.persons() == [
        "- 1 flows have fewer than 10 different persons, which the rule does not cover: a1 -> a1 has 10 trips of 4"
    ]
    told.manifest["rule"]["k"] = 11
    assert told.persons() == [
        "- 2 flows have fewer than 11 different persons, which the rule does not cover: a1 -> a1 has 10 trips of 4"
    ]
    told.manifest["rule"]["k"] = 4
    assert told.persons() == []


def test_persons_are_not_noted_without_counts_or_under_a_rule(told: Told) -> None:
    told.bare = True
    assert told.persons() == []
    told.bare, told.demanded = False, {"persons": 2}
    assert told.persons() == []
    told.demanded, told.measures = {}, ("trips", "weight", "households")
    assert told.persons() == []


def test_zones_that_all_leave_for_one_place_are_noted(told: Told) -> None:
    told.flows = {flow: FLOWS[flow] for flow in FLOWS if flow != ("a1", "a1")}
    told.zones["origin"].append({"id": "b2", "trips": 0, "weight": 0.0})
    found = (
        "- 1 of 3 origin zones have a single published destination: whoever is known to leave a1 went to b1",
        "- 2 of 3 origin zones have a single published destination: whoever is known to leave a1 went to b1",
    )
    assert told.homogeneity() == [found[0]]
    told.flows = {("b1", "a1"): (20,), ("a1", "b1"): (12,)}
    assert told.homogeneity() == [found[1]]
    told.manifest["nested"] = True
    assert told.homogeneity() == []
    told.manifest["nested"] = False
    told.zones["origin"][0]["kind"] = "box"
    assert told.homogeneity() == []


@pytest.mark.parametrize(("origins", "noted"), [(1, False), (2, True)])
def test_a_single_origin_zone_is_not_noted(told: Told, origins: int, noted: bool) -> None:
    told.flows = {("a1", "b1"): (12,)}
    del told.zones["origin"][origins:]
    assert bool(told.homogeneity()) is noted
