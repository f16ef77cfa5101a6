"""What two releases are to each other, as far as they say, or as the auditor says for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odkanon.audit.differences import Breakdown, find_breakdowns
from odkanon.audit.relations import Relation, find_relations, find_unknown_relations
from odkanon.audit.release_reader import PublishedRelease
from odkanon.read.tables.filters import FILTERED

READING = ("where", "within", "columns", "hierarchy", "encoding", "delimiter", "time_format")


def said(number: int = 0, total: int | None = 100, **about: Any) -> PublishedRelease:
    """A release that says this of itself: its segment, dimension, filters, digest, period, reasons of rejection."""
    parameters = {name: about[name] for name in ("segment", "dimension") if name in about}
    rejected = {reason: {"trips": 7} for reason in about.get("rejected", ())}
    account = {"sha256": about.get("sha256", "abc"), "trips": (total or 0) + 7 * len(rejected), "rejected": rejected}
    return PublishedRelease(
        number,
        f"r{number}",
        Path(f"r{number}"),
        {"rule": {"trips": 10}, "period": about.get("period", {})},
        None if total is None else {"input": account, "parameters": parameters},
        {
            "input": {name: about[name] for name in READING if name in about},
            "command": {"files": about.get("files", {})},
        },
        {},
        ("trips",),
    )


def relation(one: dict[str, Any], other: dict[str, Any], **says: Any) -> tuple[str, str]:
    """Return the kind of a relation, and which release is the first of it; both ways round are the same."""
    says = {"cumulative": False, "disjoint": False, **says}
    (first,) = find_relations([said(0, **one), said(1, **other)], [], set(), **says)
    (second,) = find_relations([said(1, **other), said(0, **one)], [], set(), **says)
    assert first.kind == second.kind
    if first.kind == "part":
        assert first.names == second.names
    return first.kind, first.one.name


def of(segment: dict[str, str], dimension: str = "sex") -> dict[str, Any]:
    return {"segment": segment, "dimension": dimension}


WOMEN, MEN = of({"sex": "W"}), of({"sex": "M"})
JANUARY = {"since": "2026-01-01", "until": "2026-02-01", "timezone": "UTC"}
FEBRUARY = {"since": "2026-02-01", "until": "2026-03-01", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (WOMEN, MEN, "disjoint"),
        (WOMEN, of({"sex": "M", "age": "20-29"}, "sex*age"), "disjoint"),
        (of({"age": "20-29"}, "age"), of({"age": "30-39"}, "age"), "disjoint"),
        (of({"age": "20-29"}, "age"), of({"age": "25-34"}, "age"), "unknown"),
        (of({"age": "20-29"}, "age"), of({"age": "29-34"}, "age"), "unknown"),
        (of({"age": "20-29"}, "age"), of({"age": "under 20"}, "age"), "disjoint"),
        (of({"age": "20-29"}, "age"), of({"age": "under 21"}, "age"), "unknown"),
        (of({"age": "20-29"}, "age"), of({"age": "30+"}, "age"), "disjoint"),
        (of({"age": "20-29"}, "age"), of({"age": "29+"}, "age"), "unknown"),
        (of({"age": "20-29"}, "age"), of({"age": "missing"}, "age"), "disjoint"),
        (of({"age": "20-29"}, "age"), of({"age": "other"}, "age"), "unknown"),
        (of({"age": "young"}, "age"), of({"age": "old"}, "age"), "unknown"),
        (of({"hour": "07-09"}, "hour"), of({"hour": "10-12"}, "hour"), "unknown"),
        (of({"mode": "bike"}, "mode"), of({"mode": "other"}, "mode"), "unknown"),
        ({"where": ["mode == 1"]}, {"where": ["mode == 1.0"]}, "same"),
        ({"where": ["mode == 1"]}, {"where": ["mode == '01'"]}, "same"),
        ({"where": ["mode == 1"]}, {"where": ["mode == 2.0"]}, "disjoint"),
        ({"where": ["day == '2026-01-05'"]}, {"where": ["day == 'monday'"]}, "unknown"),
        ({"where": ["mode == 'car'"]}, {"where": ["mode == ' car '"]}, "same"),
        ({"where": ["mode == 'car'"]}, {"where": ["mode == 'Car'"]}, "unknown"),
        ({"where": ["mode == 10"]}, {"where": ["mode == 1_0"]}, "same"),
        ({"where": ["mode == 1.5"]}, {"where": ["mode == 1.50"]}, "same"),
        ({"where": ["mode == 1"]}, {"where": ["mode == 'true'"]}, "same"),
        ({"where": ["mode == 'car'"]}, {"where": [r"mode == '\x63ar'"]}, "same"),
        ({"where": ["mode == ''"]}, of({"mode": "missing"}, "mode"), "unknown"),
        ({"where": ["mode == 'car'"]}, {"where": ["mode == 'bus'"]}, "disjoint"),
        ({"where": ["day == '2026-01-01'"]}, {"where": ["day == '08:00'"]}, "unknown"),
        ({"where": ["mode == 'car'"], "within": "a"}, {"where": ["mode == 'bus'"], "within": "a"}, "disjoint"),
        ({"where": ["mode == 'car'"], "within": "a"}, {"within": "b", "total": 200}, "unknown"),
        ({"where": ["mode == 'car'"]}, {"where": ["mode == 'bus'"], "columns": {"mode": "next"}}, "unknown"),
        ({"within": "a Area in memory"}, {"within": "a Area in memory"}, "unknown"),
        ({"where": ["hour == 7"]}, {"where": ["hour == 8"]}, "unknown"),
        ({"where": ["start_time == '2026-01-01'"]}, {"where": ["start_time == '2026-01-02'"]}, "unknown"),
        ({"where": ["age == 20"]}, {"where": "age == 30"}, "disjoint"),
        ({"where": ["age == 20"]}, of({"age": "30-39"}, "age"), "disjoint"),
        ({"where": ["age == 30"]}, of({"age": "30-39"}, "age"), "unknown"),
        ({"where": ["age >= 18"]}, {"where": ["age >= 19"]}, "unknown"),
        ({"where": ["age == -1"]}, of({"age": "missing"}, "age"), "unknown"),
        ({"where": ["age == 'unknown'"]}, of({"age": "missing"}, "age"), "unknown"),
        ({"where": ["age == 20"]}, of({"age": "missing"}, "age"), "disjoint"),
        ({"where": ["town == 'x'"]}, {"where": ["town == 'y'"], "encoding": "latin-1"}, "unknown"),
        ({"where": ["town == 'x'"]}, {"where": ["town == 'y'"], "delimiter": ";"}, "unknown"),
        ({"within": "a.geojson", "files": {"a.geojson": "1"}}, {"within": "a.geojson"}, "same"),
        *(
            ({name: "a.csv", "files": {"a.csv": "1"}}, {name: "a.csv", "files": {"a.csv": digest}}, kind)
            for name in ("within", "hierarchy")
            for digest, kind in (("1", "same"), ("2", "unknown"))
        ),
        ({"where": ["sex == 'W'"]}, MEN, "disjoint"),
        ({}, {}, "same"),
        (WOMEN, WOMEN, "same"),
        ({}, {"total": 90}, "unknown"),
        ({}, {"sha256": "xyz"}, "unknown"),
        ({"sha256": None}, {"sha256": None}, "unknown"),
        ({"total": None}, {"total": None}, "unknown"),
        ({}, {"rejected": [FILTERED]}, "unknown"),
        ({}, {"rejected": ["no coordinates"]}, "same"),
        (WOMEN, of({"age": "20-29"}, "age"), "unknown"),
        ({"period": JANUARY}, {"period": FEBRUARY}, "disjoint"),
        ({"period": JANUARY}, {"period": JANUARY}, "same"),
        *(
            ({"period": JANUARY, **one}, {"period": FEBRUARY, **other}, kind)
            for one, other, kind in (
                ({"columns": {"start_time": "left"}}, {"columns": {"start_time": "left"}}, "disjoint"),
                ({"columns": {"start_time": "left"}}, {"columns": {"left": "start_time"}}, "disjoint"),
                ({"columns": {"start_time": "left"}}, {"columns": {"start_time": "came"}}, "unknown"),
                ({"columns": {"left": "start_time"}}, {"columns": {"came": "start_time"}}, "unknown"),
                ({"columns": {"person": "who"}}, {"columns": {"person": "id"}}, "disjoint"),
                ({"time_format": "%d/%m/%Y"}, {"time_format": "%m/%d/%Y"}, "unknown"),
            )
        ),
        ({"period": JANUARY}, {"period": FEBRUARY | {"timezone": "Europe/Rome"}}, "same"),
        ({"period": JANUARY}, {"period": {"since": "2026-01-31", "timezone": "UTC"}}, "same"),
        ({"period": {"until": "2026-02-01"}}, {"period": {"since": "2026-02-01"}, "sha256": "xyz"}, "disjoint"),
        ({"period": {"until": "2026-02-01"}}, {"period": {"since": "20260115"}, "sha256": "xyz"}, "unknown"),
        ({"period": {"until": "2026-02-01"}}, {"period": {"since": "2026-W05-7"}, "sha256": "xyz"}, "disjoint"),
        ({"period": {"until": "2026-02-01"}}, {"period": {"since": 7}, "sha256": "xyz"}, "unknown"),
    ],
)
def test_stated_relations(one: dict[str, Any], other: dict[str, Any], kind: str) -> None:
    assert relation(one, other)[0] == kind


def test_a_segment_is_part_of_the_whole_if_it_is_no_larger() -> None:
    assert relation({}, {**WOMEN, "total": 60}) == ("part", "r1")
    assert relation({**WOMEN, "total": 60}, {}) == ("part", "r0")
    assert relation({}, WOMEN) == ("part", "r1")
    assert relation({}, {**WOMEN, "total": 101})[0] == "unknown"
    assert relation(WOMEN, {**of({"sex": "W", "age": "20-29"}, "sex*age"), "total": 30}) == ("part", "r1")


@pytest.mark.parametrize(
    ("totals", "expected"), [((100, 100), ("overlap", "r0")), ((90, 100), ("part", "r0")), ((100, 90), ("part", "r1"))]
)
def test_a_series_contains_what_came_before(totals: tuple[int, int], expected: tuple[str, str]) -> None:
    one, other = ({"total": total, "sha256": str(total)} for total in totals)
    assert relation(one, {**other, "sha256": "other"}, cumulative=True) == expected
    assert relation(one, {"total": None}, cumulative=True)[0] == "unknown"


def test_claims_of_the_auditor_apply_only_to_unknown_relations() -> None:
    assert relation({}, {"sha256": "xyz"}, disjoint=True)[0] == "disjoint"
    assert relation({}, {}, disjoint=True)[0] == "same"
    assert relation({}, {"total": None}, disjoint=True, cumulative=True)[0] == "disjoint"


def test_more_trips_than_the_file_has_contradict_disjoint_releases() -> None:
    one: dict[str, Any] = {"where": ["age >= 18"], "total": 93, "rejected": [FILTERED]}
    few: dict[str, Any] = {"where": ["age >= 19"], "total": 7}
    many = {**few, "total": 8}
    assert relation(one, few, disjoint=True)[0] == "disjoint"
    assert relation(one, many, disjoint=True)[0] == "unknown"
    assert relation(one, {**many, "sha256": "xyz"}, disjoint=True)[0] == "disjoint"
    releases = [said(0, **one), said(1, **many)]
    (found,) = find_unknown_relations(find_relations(releases, [], set(), cumulative=False, disjoint=True))
    assert "--disjoint is wrong" in found.message


@pytest.mark.parametrize(
    ("known", "kind", "first"),
    [
        ([({0}, 5), ({1}, 5)], "disjoint", "r0"),
        ([({0, 1}, 5)], "same", "r0"),
        ([({0, 1}, 5), ({1}, 1)], "part", "r0"),
        ([({0, 1}, 5), ({0}, 1)], "part", "r1"),
        ([({0, 1}, 5), ({0}, 1), ({1, 2}, 1)], "overlap", "r0"),
    ],
)
def test_trips_override_statements(known: list[tuple[set[int], int]], kind: str, first: str) -> None:
    releases = [said(0), said(1, sha256="xyz")]
    atoms = [(frozenset(members), count) for members, count in known]
    (found,) = find_relations(releases, atoms, {0, 1}, cumulative=False, disjoint=True)
    assert (found.kind, found.one.name, found.how) == (kind, first, "by the trips")
    (found,) = find_relations(releases, atoms, {0}, cumulative=False, disjoint=True)
    assert (found.kind, found.how) == ("disjoint", "as claimed")


def test_each_two_that_cannot_be_compared_are_a_finding() -> None:
    found = find_relations([said(0), said(1, sha256="xyz"), said(2)], [], set(), cumulative=False, disjoint=False)
    assert [each.releases for each in find_unknown_relations(found)] == [("r0", "r1"), ("r1", "r2")]


def family_names(*related: Relation) -> set[tuple[str, tuple[str, ...], bool, bool]]:
    return {
        (each.whole.name, tuple(part.name for part in each.parts), each.complete, each.same)
        for each in find_breakdowns(related)
    }


def test_parts_that_share_no_trips_are_subtracted_together() -> None:
    whole, women, men, old = said(0), said(1, 60), said(2, 40), said(3, 30)
    part = [Relation(each, whole, "part", "said") for each in (women, men, old)]
    apart = Relation(women, men, "disjoint", "said")
    both = ("r0", ("r1", "r2"), True, False)
    assert family_names(*part, apart) == {both, ("r0", ("r3",), False, False)}
    # Whether they share trips is not known, but together they have as many as the whole.
    assert family_names(*part) == {both, *(("r0", (name,), False, False) for name in ("r1", "r2", "r3"))}


def test_parts_of_which_nobody_knows_the_trips_are_not_complete() -> None:
    whole, women = said(0), said(1, None)
    (found,) = find_breakdowns([Relation(women, whole, "part", "said")])
    assert found == Breakdown(whole, (women,), complete=False)


def test_the_same_trips_are_parts_of_each_other_and_a_swapped_one_too() -> None:
    one, other = said(0), said(1)
    for kind, how, same in (("same", "said", True), ("overlap", "as claimed", False)):
        found = find_breakdowns([Relation(one, other, kind, how)])  # type: ignore[arg-type]
        assert [(each.whole.name, each.parts[0].name, each.complete, each.same) for each in found] == [
            ("r0", "r1", False, same),
            ("r1", "r0", False, same),
        ]
    assert find_breakdowns([Relation(one, other, "overlap", "released linked")]) == []


def test_segments_of_one_run_are_those_that_its_index_lists(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"whole": "women", "segments": [{"folder": "young"}, {"folder": null}]}')
    women = replace(said(0, **WOMEN), folder=tmp_path / "women")
    young = replace(said(1, **of({"age": "20-29"}, "age")), folder=tmp_path / "young")
    (found,) = find_relations([women, young], [], set(), cumulative=False, disjoint=False)
    assert (found.kind, found.how) == ("overlap", "released linked")
    elsewhere = replace(young, folder=tmp_path / "old")
    (found,) = find_relations([women, elsewhere], [], set(), cumulative=False, disjoint=False)
    assert (found.kind, found.how) == ("unknown", "by their statements")
    (tmp_path / "young.recipe.json").write_text("{}")
    (found,) = find_relations([women, young], [], set(), cumulative=False, disjoint=False)
    assert (found.kind, found.how) == ("unknown", "by their statements")
