"""Flows less flows, by hand: which are subtracted from which, and what is too small to be left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audit.by_hand import Flows, release, tables
from odkanon.audit.differences import Breakdown, find_breakdowns, find_differences, find_few_contributors
from odkanon.audit.relations import Relation
from odkanon.audit.release_reader import PublishedRelease

WHOLE: Flows = {("A", "B"): (25, 30.0)}


def differences(flows: Sequence[Flows], family: Breakdown) -> list[str]:
    return [each.message for each in find_differences(tables(*flows), [family])]


def of(*releases: PublishedRelease, complete: bool = False, same: bool = False) -> Breakdown:
    """The first release as a whole, the others as its parts."""
    return Breakdown(releases[0], releases[1:], complete, same)


def made(*rules: dict[str, float], **options: Any) -> tuple[PublishedRelease, ...]:
    return tuple(release(number, rule=rule, **options) for number, rule in enumerate(rules))


TRIPS = {"trips": 10.0}


def test_a_flow_less_all_that_lie_inside_it() -> None:
    inside: Flows = {("a1", "b1"): (12,), ("a2", "b2"): (10,)}
    assert differences([WHOLE, inside], of(*made(TRIPS, TRIPS))) == [
        "A -> B: r0 25 - r1 (2 flows inside it) 22 = 3 trips of somebody else"
    ]
    both: list[Flows] = [{("a1", "b1"): (12,)}, {("A", "b1"): (11,)}]
    assert differences([WHOLE, *both], of(*made(TRIPS, TRIPS, TRIPS))) == [
        "A -> B: r0 25 - r1 - r2 23 = 2 trips of somebody else"
    ]


@pytest.mark.parametrize(("inside", "found"), [(24, True), (16, True), (15, False), (25, False), (26, False)])
def test_a_residual_is_too_small_below_the_rule(inside: int, found: bool) -> None:
    assert bool(differences([WHOLE, {("a1", "B"): (inside,)}], of(*made(TRIPS, TRIPS)))) is found


@pytest.mark.parametrize("strict", [0, 1])
def test_the_strictest_rule_counts(strict: int) -> None:
    rules = [{"trips": 20.0 if at == strict else 5.0} for at in range(2)]
    assert differences([WHOLE, {("A", "B"): (10,)}], of(*made(*rules))) == [
        "A -> B: r0 25 - r1 10 = 15 trips of somebody else"
    ]
    assert differences([WHOLE, {("A", "B"): (10,)}], of(*made({"trips": 15.0}, {"trips": 5.0}))) == []


@pytest.mark.parametrize("strict", [0, 1])
def test_a_residual_of_too_little_weight(strict: int) -> None:
    rules = [TRIPS | ({"weight": 8.0} if at == strict else {}) for at in range(2)]
    assert differences([WHOLE, {("A", "B"): (15, 22.5)}], of(*made(*rules))) == [
        "A -> B: r0 25 - r1 15 = 10 trips of weight 7.500, below 8, of somebody else"
    ]
    assert differences([WHOLE, {("A", "B"): (15, 22.0)}], of(*made(*rules))) == []


def test_little_weight_is_none_where_nobody_counts_it() -> None:
    assert differences([WHOLE, {("A", "B"): (15, 29.5)}], of(*made(TRIPS, TRIPS))) == []


BLOCK: list[Flows] = [{("a1", "B"): (30, 30.0)}, {("A", "B"): (16, 18.0)}, {("A", "B"): (17, 18.0)}]
"""All in a finer table, and two parts of it."""
SUPPRESSED = "A -> B: r1 + r2 33 - r0 30 = 3 trips that r0 suppressed"


def test_complete_parts_minus_their_whole() -> None:
    releases = made(TRIPS, TRIPS, TRIPS)
    assert differences(BLOCK, of(*releases, complete=True)) == [SUPPRESSED]
    assert differences(BLOCK, of(*releases)) == []
    assert differences(BLOCK, of(*releases, complete=True, same=True)) == []
    assert differences([*BLOCK[:2], {("B", "B"): (17,)}], of(*releases, complete=True)) == []


def test_weight_that_a_whole_suppressed() -> None:
    rules = [TRIPS, TRIPS | {"weight": 7.0}, TRIPS]
    heavy: list[Flows] = [{("a1", "B"): (20, 30.0)}, *BLOCK[1:]]
    assert differences(heavy, of(*made(*rules), complete=True)) == [
        "A -> B: r1 + r2 33 - r0 20 = 13 trips of weight 6, below 7, that r0 suppressed"
    ]


FINE: Flows = {("a1", "b1"): (12, 12.0), ("a2", "b1"): (13, 13.0)}
"""A whole on finer zones than its part."""
COARSE: Flows = {("A", "b1"): (22, 22.0)}
OUTSIDE = "A -> b1: r0 25 - r1 22 = 3 trips of somebody else"


def test_a_whole_that_suppresses_nothing_less_a_block_of_a_part() -> None:
    part = release(1, 30)
    assert differences([FINE, COARSE], of(release(0, 25), part)) == [OUTSIDE]
    assert differences([FINE, COARSE], of(release(0, 25), part, same=True)) == []
    assert differences([FINE, COARSE], of(release(0, 26, suppressed=1), part)) == []
    assert differences([FINE, COARSE], of(release(0), part)) == []


def test_each_part_is_such_a_block() -> None:
    other: Flows = {("A", "b1"): (16,)}
    found = differences([FINE, COARSE, other], of(release(0, 25), release(1, 30), release(2, 30)))
    assert found == [OUTSIDE, OUTSIDE.replace("r1 22 = 3", "r2 16 = 9")]


def test_a_block_that_lies_in_a_zone_of_the_whole_may_have_its_trips_there() -> None:
    """The whole lists some trips from anywhere in the district."""
    whole: Flows = {("a1", "b1"): (20,), ("A", "b1"): (30,)}
    found = differences([whole, {("a1", "b1"): (17,)}], of(release(0, 50), release(1, 17)))
    assert found == ["a1 -> b1: r0 20 - r1 17 = 3 trips of somebody else"]  # as a rest of the whole's own flow
    assert differences([whole, {("a1", "B"): (17,)}], of(release(0, 50), release(1, 17))) == []


def test_breakdowns_are_subtracted_separately_and_reported_once() -> None:
    whole, one, other = made(TRIPS, TRIPS, TRIPS)
    connection = tables(WHOLE, {("A", "B"): (22,)}, {("A", "B"): (21,)})
    asked = [of(whole, one), of(whole, other), of(whole, one)]
    assert [each.message for each in find_differences(connection, asked)] == [
        "A -> B: r0 25 - r1 22 = 3 trips of somebody else",
        "A -> B: r0 25 - r2 21 = 4 trips of somebody else",
    ]


PEOPLE = ("trips", "persons")
FORTY: Flows = {("A", "B"): (40, 40.0, 20, 9)}
FEW = "A -> B: r0 - r1 = 20 trips of somebody else, by the numbers of perhaps {} persons; give the trips to count them"


def few_contributors(
    flows: Sequence[Flows], measures: Sequence[tuple[str, ...]] = (PEOPLE, PEOPLE), **rules: dict[str, float]
) -> list[str]:
    both = [
        release(at, measures=measures[at], rule=rules.get(f"r{at}", {"trips": 10.0, "persons": 10.0}))
        for at in range(2)
    ]
    return [each.message for each in find_few_contributors(tables(*flows), [of(*both)])]


@pytest.mark.parametrize(("inside", "left"), [(15, 5), (11, 9), (10, None), (20, 1), (21, 1)])
def test_persons_that_may_be_left(inside: int, left: int | None) -> None:
    found = few_contributors([FORTY, {("A", "B"): (20, 20.0, inside)}])
    assert found == ([] if left is None else [FEW.format(left)])


def test_few_trips_are_reported_elsewhere_and_several_flows_share_contributors() -> None:
    assert few_contributors([FORTY, {("A", "B"): (31, 31.0, 15)}]) == []
    assert len(few_contributors([FORTY, {("A", "B"): (30, 30.0, 15)}])) == 1
    assert few_contributors([FORTY, {("a1", "B"): (10, 10.0, 7), ("a2", "B"): (10, 10.0, 8)}]) == []


def test_contributors_need_one_rule_and_counts_in_all_releases() -> None:
    flows: list[Flows] = [FORTY, {("A", "B"): (20, 20.0, 15, 8)}]
    assert few_contributors(flows, r0=TRIPS) == few_contributors(flows, r1=TRIPS) == [FEW.format(5)]
    assert few_contributors(flows, r0=TRIPS, r1=TRIPS) == []
    nobody: list[Flows] = [FORTY, {("A", "B"): (20, 20.0, 20)}]
    assert few_contributors(nobody, r0=TRIPS, r1=TRIPS) == []
    for silent in ((PEOPLE, ("trips",)), (("trips",), PEOPLE)):
        assert few_contributors(flows, silent) == []
    homes = [("trips", "households")] * 2
    rule = {"trips": 10.0, "households": 2.0}
    assert few_contributors(flows, homes, r0=rule, r1=rule) == [FEW.format(1).replace("persons", "households")]


def test_contributors_of_segments_that_were_made_together_are_safe_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"whole": "r0", "segments": [{"folder": "r1"}]}')
    rule = {"trips": 10.0, "persons": 10.0}
    both = [replace(release(at, measures=PEOPLE, rule=rule), folder=tmp_path / f"r{at}") for at in range(2)]
    connection = tables(FORTY, {("A", "B"): (20, 20.0, 15)})
    assert find_few_contributors(connection, [of(*both)]) == []
    assert len(find_few_contributors(connection, [of(both[0], replace(both[1], folder=tmp_path / "r2"))])) == 1


def told(*totals: int | None, folder: Path | None = None, dimensions: Sequence[str] = ()) -> set[tuple[str, ...]]:
    """Return the families of a whole and parts of it, of which it is not known whether they share trips."""
    about: list[dict[str, Any]] = [{}, *({"dimension": each} for each in dimensions)]
    releases = [
        replace(release(at, total, **(about[at] if dimensions else {})), folder=(folder or Path()) / f"r{at}")
        for at, total in enumerate(totals)
    ]
    found = find_breakdowns([Relation(each, releases[0], "part", "said") for each in releases[1:]])
    return {tuple(part.name for part in each.parts) for each in found}


ALONE = {("r1",), ("r2",)}


@pytest.mark.parametrize(
    ("totals", "halves"),
    [
        ((100, 60, 40), True),
        ((40, 40, 0), True),
        ((40, 0, 40), True),
        ((100, 60, 41), False),
        ((100, 60, 39), False),
        ((None, 60, 40), False),
        ((60, 60, None), False),
        ((60, None, 60), False),
    ],
)
def test_two_parts_that_add_up_are_probably_complements(totals: tuple[int | None, ...], halves: bool) -> None:
    assert told(*totals) == ALONE | ({("r1", "r2")} if halves else set())


@pytest.mark.parametrize(
    ("dimensions", "listed", "halves"),
    [
        (("sex", "sex"), True, True),
        (("sex", "age"), True, False),
        (("age", "sex"), True, False),
        (("sex", "age"), False, True),
        (("sex", "sex"), False, True),
    ],
)
def test_segments_of_two_dimensions_are_no_complements(
    tmp_path: Path, dimensions: tuple[str, str], listed: bool, halves: bool
) -> None:
    if listed:
        (tmp_path / "index.json").write_text('{"whole": "r0", "segments": [{"folder": "r1"}, {"folder": "r2"}]}')
    found = told(100, 60, 40, folder=tmp_path, dimensions=dimensions)
    assert (("r1", "r2") in found) is halves


def test_a_part_is_grouped_with_mutually_disjoint_parts() -> None:
    """The second shares none with the first and the third, which share some with each other."""
    whole, *parts = (release(at, 100 - at) for at in range(4))
    related = [Relation(part, whole, "part", "said") for part in parts]
    related += [Relation(parts[1], other, "disjoint", "said") for other in (parts[0], parts[2])]
    found = {tuple(part.name for part in each.parts) for each in find_breakdowns(related)}
    assert found == {("r1", "r2"), ("r2", "r3")}
