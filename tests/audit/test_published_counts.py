"""Releases without their trips as equations, by hand: columns, masses and thresholds, and what is compared how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from audit.by_hand import Flows, Known, release, tables
from odkanon.audit import published_counts
from odkanon.audit.differencing.equations import EquationSystem, InconsistentCountsError
from odkanon.audit.equation_systems import number_rows
from odkanon.audit.published_counts import SystemBuilder, _inside_areas, compare_numbers
from odkanon.audit.relations import Relation, RelationKind, inside_mark
from odkanon.audit.release_reader import PublishedRelease

BOTH: Flows = {("a1", "b1"): (20, 20.5), ("a2", "b1"): (20, 25.0)}
"""Rows 0 and 1."""
WOMEN: Flows = {("a1", "b1"): (17, 12.5)}
"""Row 2."""


def told(
    releases: Sequence[PublishedRelease], flows: Sequence[Flows], *related: tuple[int, int, RelationKind]
) -> EquationSystem | None:
    """Return the system of releases, each on a side of its own."""
    connection, places = tables(*flows), Known(*flows)
    number_rows(connection)
    known = [Relation(releases[one], releases[other], kind, "said") for one, other, kind in related]
    make = SystemBuilder(connection, places, known)  # type: ignore[arg-type]
    return make([[each] for each in releases])


def columns(system: EquationSystem | None) -> dict[tuple[int, ...], float]:
    """Return the trips of each column."""
    assert system is not None
    return {tuple(row): mass for row, mass in zip(system.rows.tolist(), system.mass[:, 0].tolist(), strict=True)}


def test_columns_have_masses_that_fit() -> None:
    found = told([release(0), release(1)], [BOTH, WOMEN], (1, 0, "part"))
    assert columns(found) == {(0, -1): 3, (0, 2): 17, (1, -1): 20}
    assert found is not None
    assert (found.names, found.least.tolist(), found.contributors) == (("trips",), [9.5], ())


def test_without_suppression_every_trip_is_in_a_row() -> None:
    everybody: Flows = {("a1", "b1"): (20,)}
    expected = {(0, 2): 20.0, (1, -1): 20.0}
    for other in (release(1), release(1, 40, suppressed=20)):
        assert columns(told([release(0), other], [BOTH, everybody], (0, 1, "same"))) == expected
    assert columns(told([release(0), release(1, 20)], [BOTH, everybody], (0, 1, "same"))) == {(0, 2): 20}


def test_numbers_that_contradict_each_other() -> None:
    with pytest.raises(InconsistentCountsError):
        told([release(0), release(1)], [BOTH, {("a1", "b1"): (21,)}], (1, 0, "part"))


WEIGHT = ("trips", "weight")


@pytest.mark.parametrize(
    ("measures", "rules", "names"),
    [
        ((WEIGHT, WEIGHT), ({"weight": 10}, {"weight": 4}), WEIGHT),
        ((WEIGHT, WEIGHT), ({"trips": 10}, {"weight": 10}), WEIGHT),
        ((WEIGHT, WEIGHT), ({"trips": 10}, {"trips": 10}), ("trips",)),
        ((WEIGHT, ("trips",)), ({"weight": 10}, {"weight": 10}), ("trips",)),
        ((("trips",), ("trips",)), ({"weight": 10}, {"weight": 10}), ("trips",)),
    ],
)
def test_weight_counts_where_a_rule_has_it_and_all_publish_it(
    measures: tuple[tuple[str, ...], ...], rules: tuple[dict[str, float], ...], names: tuple[str, ...]
) -> None:
    releases = [release(at, measures=measures[at], rule=rules[at]) for at in range(2)]
    found = told(releases, [BOTH, WOMEN], (1, 0, "part"))
    assert found is not None
    assert found.names == names
    if len(names) == 2:
        # Weights have four digits: no more than their error below the threshold.
        assert 9.97 < found.least[1] < 10
        assert dict(zip(map(tuple, found.rows.tolist()), found.mass[:, 1].tolist(), strict=True)) == {
            (0, -1): 8,
            (0, 2): 12.5,
            (1, -1): 25,
        }


def test_the_strictest_rule_counts() -> None:
    found = told([release(0, rule={"trips": 3}), release(1, rule={"persons": 7.5})], [BOTH, WOMEN], (1, 0, "part"))
    assert found is not None
    assert found.least.tolist() == [7.5]  # eight persons have eight trips


def test_what_is_too_much_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    releases, flows = [release(number) for number in range(3)], [BOTH, WOMEN, WOMEN]
    related: list[tuple[int, int, RelationKind]] = [(1, 0, "part"), (2, 0, "part"), (1, 2, "same")]
    expected = {(0, -1, -1): 3, (0, 2, 3): 17, (1, -1, -1): 20}
    assert columns(told(releases, flows, *related)) == pytest.approx(expected)
    monkeypatch.setattr(published_counts, "MOST_VALUES", 1)
    assert told(releases, flows, *related) is None
    monkeypatch.undo()
    monkeypatch.setattr(published_counts, "MOST_ATOMS", 2)
    assert told(releases, flows) is None
    monkeypatch.undo()
    boxes = release(0)
    for about, _ in boxes.zones["origin"]:
        about["kind"] = "box"
    assert told([boxes, release(1)], [BOTH, WOMEN], (1, 0, "part")) is None


def said(
    releases: Sequence[PublishedRelease],
    flows: Sequence[Flows],
    compared: Sequence[tuple[int, int, RelationKind]],
    *constraints: tuple[int, int, RelationKind],
) -> list[tuple[str, str]]:
    """Return what is found where some two are compared, and more is known."""
    connection, places = tables(*flows), Known(*flows)
    known = [
        Relation(releases[one], releases[other], kind, "as claimed") for one, other, kind in (*compared, *constraints)
    ]
    found = compare_numbers(connection, places, known[: len(compared)], known)  # type: ignore[arg-type]
    return [(each.check, each.message) for each in found]


THREE = ("difference", "a1 -> b1: r0 20 - r1 17 = 3 trips of somebody else")


def test_a_part_is_subtracted_once() -> None:
    assert said([release(0), release(1)], [BOTH, WOMEN], [(1, 0, "part")]) == [THREE]


def test_where_a_trip_was_swapped_flows_are_subtracted_both_ways() -> None:
    """Nothing is known for certain of both; without more, equations say nothing."""
    swapped: Flows = {("a1", "b1"): (17,), ("a2", "b1"): (22,)}
    assert said([release(0), release(1)], [BOTH, swapped], [(0, 1, "overlap")]) == [
        THREE,
        ("difference", "a2 -> b1: r1 22 - r0 20 = 2 trips of somebody else"),
    ]


def test_contradictory_counts_are_reported_and_subtracted() -> None:
    flows: list[Flows] = [BOTH, {("a1", "b1"): (17,), ("a2", "b1"): (21,)}]
    (check, message), *residual = said([release(0), release(1)], flows, [(1, 0, "part")])
    assert check == "relation"
    assert "contradict" in message
    assert residual == [THREE]
    # The same beside two others, of which equations show something.
    others = [release(number) for number in range(4)]
    found = said(others, [*flows, BOTH, WOMEN], [(1, 0, "part"), (3, 2, "part")], (0, 2, "disjoint"))
    assert (check, message) in found
    assert THREE in found
    assert THREE[1].replace("r0", "r2").replace("r1", "r3") in [text for _, text in found]


def test_parts_that_share_no_trips_are_subtracted_together() -> None:
    """Of twenty, eleven are of the one and seven of the other; two are of neither."""
    releases = [release(0), release(1), release(2, rule={"trips": 5})]
    flows: list[Flows] = [BOTH, {("a1", "b1"): (11,)}, {("a1", "b1"): (7,)}]
    compared: list[tuple[int, int, RelationKind]] = [(1, 0, "part"), (2, 0, "part")]
    apart: tuple[int, int, RelationKind] = (1, 2, "disjoint")
    both = ("difference", "a1 -> b1: r0 20 - r1 11 - r2 7 = 2 trips of somebody else")
    assert said(releases, flows, compared, apart) == [both]
    assert both not in said(releases, flows, compared, (1, 2, "unknown"))
    assert both not in said(releases, flows, compared[:1], compared[1], apart)


def test_few_persons_are_also_checked() -> None:
    measures = ("trips", "persons")
    rule = {"trips": 10.0, "persons": 10.0}
    releases = [release(at, measures=measures, rule=rule) for at in range(2)]
    flows: list[Flows] = [{("a1", "b1"): (40, 40.0, 20)}, {("a1", "b1"): (20, 20.0, 15)}]
    ((check, message),) = said(releases, flows, [(1, 0, "part")])
    assert check == "difference"
    assert "20 trips of somebody else, by the numbers of perhaps 5 persons" in message
    assert said(releases, flows, [], (1, 0, "part")) == []


class Areas:
    """Places of which only the areas are asked."""

    def __init__(self, found: dict[int, set[int]] | None) -> None:
        self._found = found

    def areas_of(self, numbers: Iterable[int]) -> dict[int, set[int]] | None:
        assert sorted(numbers) == [0, 1, 2]
        return self._found


INSIDE, ELSEWHERE = inside_mark(0), inside_mark(2)


@pytest.mark.parametrize(
    ("areas", "expected"),
    [
        (None, [{0}, {1}]),
        ({}, [{0}, {1}]),
        ({0: {0}}, [{0, INSIDE}, {1, INSIDE}, {1}]),
        ({0: {0, 1}}, [{0, INSIDE}, {1, INSIDE}]),
        (
            {0: {0}, 2: {2}},
            [{0, INSIDE, ELSEWHERE}, {1, INSIDE, ELSEWHERE}, {1, ELSEWHERE}, {0, INSIDE}, {1, INSIDE}, {1}],
        ),
    ],
)
def test_trips_of_a_release_are_in_its_area_and_others_in_it_or_not(
    areas: dict[int, set[int]] | None, expected: list[set[int]]
) -> None:
    places: Any = Areas(areas)
    found = _inside_areas([frozenset({0}), frozenset({1})], [release(at) for at in range(3)], places)
    assert found == [frozenset(each) for each in expected]
