"""Whom a release is about, by hand: what it says, and the trips that are found again by that."""

from __future__ import annotations

import hashlib
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

import duckdb
import h3
import pyarrow as pa
import pytest

from odkanon import InputError, read_area
from odkanon.audit import TripsSource
from odkanon.audit.counting.conditions import (
    age_condition,
    hour_condition,
    parse_age_band,
    parse_hour_slot,
    text_condition,
)
from odkanon.audit.counting.records import NoColumnError, Records
from odkanon.audit.counting.release_trips import (
    counting_resolution,
    disclosed_area,
    needed_columns,
    release_area,
    release_filters,
    scope_sql,
)
from odkanon.audit.relations import (
    has_unknown_filter,
    have_disjoint_periods,
    plain_value,
    read_identically,
    release_segment,
    share_lookup_table,
)
from odkanon.audit.release_reader import PublishedRelease
from odkanon.read.tables.filters import FILTERED


def release(
    source: dict[str, Any] | None = None, rejected: tuple[str, ...] | None = (), **told: dict[str, Any]
) -> PublishedRelease:
    """A release that says this of its input, and of how it was made; None of nobody."""
    parameters = told.pop("parameters", {})
    account = {"trips": 10, "rejected": {reason: {"trips": 1} for reason in rejected or ()}}
    about = None if rejected is None else {"input": account, "parameters": parameters}
    recipe = {} if source is None else {"input": source}
    return PublishedRelease(0, "r", Path("r"), {"rule": {}, **told}, about, recipe, {}, ("trips",))


@pytest.mark.parametrize(
    ("label", "ages"),
    [
        ("under 10", (0, 9)),
        ("20-29", (20, 29)),
        ("70+", (70, inf)),
        ("7", (7, 7)),
        *((label, None) for label in ("", "old", "20-", "-5", "under", "20 - 29", "other")),
    ],
)
def test_bands_of_ages(label: str, ages: tuple[int, float] | None) -> None:
    assert parse_age_band(label) == ages


AGES = ["-1", "0", "9", "9.9", "10", "19.5", "20", "nan", "inf", "x", None]


@pytest.mark.parametrize(
    ("label", "inside"),
    [
        ("under 10", ["0", "9", "9.9"]),
        ("10-19", ["10", "19.5"]),
        ("10+", ["10", "19.5", "20"]),
        ("9", ["9", "9.9"]),
        ("missing", ["-1", "nan", "inf", "x", None]),
    ],
)
def test_ages_in_a_band(label: str, inside: list[str | None]) -> None:
    connection = duckdb.connect()
    connection.register("trips", pa.table({"number": range(len(AGES)), "years": AGES}))
    found = connection.execute(f"SELECT years FROM trips WHERE {age_condition(label, 'years')} ORDER BY number")
    assert [row[0] for row in found.fetchall()] == inside


def test_an_invalid_age_band() -> None:
    with pytest.raises(InputError, match=r"an age band must be .*, not 'old'"):
        age_condition("old", "years")


@pytest.mark.parametrize(
    ("slot", "hours"),
    [
        ("07-09", [7, 8]),
        (" 7", [7]),
        ("22-2", [22, 23, 0, 1]),
        ("0-24", list(range(24))),
        ("6-6", [*range(6, 24), *range(6)]),
        ("23-0", [23]),
    ],
)
def test_hours_of_a_slot(slot: str, hours: list[int]) -> None:
    assert parse_hour_slot(slot) == hours


@pytest.mark.parametrize(("label", "inside"), [("07-09", [7, 8]), ("other", [6, 9]), ("missing", [None])])
def test_when_a_trip_starts(label: str, inside: list[int | None]) -> None:
    connection = duckdb.connect()
    hours = [6, 7, 8, 9, None]
    starts = [None if hour is None else datetime(2024, 1, 1, hour, 59) for hour in hours]
    connection.register("trips", pa.table({"hour": hours, "start_time": starts}))
    found = connection.execute(f"SELECT hour FROM trips WHERE {hour_condition(label, [7, 8])} ORDER BY hour")
    assert [row[0] for row in found.fetchall()] == inside


def test_values_as_text() -> None:
    written = ["1", "01", "+1.0", " 1. ", "1.5", "0", "00.0", "-1", "x ", "", " ", None]
    connection = duckdb.connect()
    connection.register("trips", pa.table({"number": range(len(written)), "mode": written}))
    found = connection.execute(f"SELECT {text_condition('mode')} FROM trips ORDER BY number").fetchall()
    assert [row[0] for row in found] == ["1"] * 4 + ["1.5", "0", "0", "-1", "x"] + ["missing"] * 3


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, []),
        ({}, []),
        ({"where": None}, []),
        ({"where": "age > 1"}, ["age > 1"]),
        ({"where": ["age > 1", "sex == 'W'"]}, ["age > 1", "sex == 'W'"]),
        ({"since": "2024-01-01"}, ['start_time >= "2024-01-01"']),
        (
            {"where": "age > 1", "since": "2024-01-01", "until": "2024-02-01"},
            ["age > 1", 'start_time >= "2024-01-01"', 'start_time < "2024-02-01"'],
        ),
    ],
)
def test_the_filters_of_a_release(source: dict[str, Any] | None, expected: list[str]) -> None:
    assert release_filters(release(source)) == expected


def test_unknown_filters() -> None:
    assert has_unknown_filter(release({}, (FILTERED,)))
    assert not has_unknown_filter(release({"where": "age > 1"}, (FILTERED,)))
    assert not has_unknown_filter(release({}, ("with no start",)))
    assert not has_unknown_filter(release({}, None))


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({"until": "2024-02-01"}, {"since": "2024-02-01"}, True),
        ({"until": "2024-02-02"}, {"since": "2024-02-01"}, False),
        ({"until": "2024-02-01"}, {"since": "2024-02-01", "timezone": "UTC"}, False),
        ({"since": "2024-01-01", "until": "2024-02-01"}, {"since": "2024-02-01", "until": "2024-03-01"}, True),
        ({"since": "2024-01-01", "until": "2024-02-01"}, {"since": "2024-02-01"}, True),
        ({"since": "2024-02-01"}, {"since": "2024-03-01"}, False),
        ({"until": "2024-02-01"}, {}, False),
        ({}, {}, False),
        ({"until": "sometime"}, {"since": "2024-02-01"}, False),
        ({"until": 7}, {"since": "2024-02-01"}, False),
    ],
)
def test_periods_that_exclude_each_other(one: dict[str, Any], other: dict[str, Any], apart: bool) -> None:
    first, second = release(period=one), release(period=other)
    assert have_disjoint_periods(first, second) == have_disjoint_periods(second, first) == apart
    clocks = (release(period={**each, "timezone": zone}) for each, zone in ((one, "UTC"), (other, "Europe/Rome")))
    first, second = clocks
    assert not have_disjoint_periods(first, second)
    assert not have_disjoint_periods(second, first)


def test_the_same_rows_of_a_file_are_the_same_trips_only_where_they_were_read_alike() -> None:
    assert read_identically(release(), release({}))
    for name in ("columns", "crs", "kind", "timezone", "decimal", "time_format", "within"):
        assert read_identically(release({name: "x"}), release({name: "x"}))
        assert not read_identically(release({name: "x"}), release({name: "y"}))
        assert not read_identically(release({name: "x"}), release())
    assert not read_identically(release({"within": "a shape in memory"}), release({"within": "a shape in memory"}))
    assert read_identically(release({"hierarchy": "a/zones.csv"}), release({"hierarchy": "b/zones.csv"}))
    assert not read_identically(release({"hierarchy": "zones.csv"}), release({"hierarchy": "others.csv"}))
    some, none = release(parameters={"left_out": [{"sex": "x"}]}), release()
    assert read_identically(some, some)
    assert not read_identically(some, none)


def test_a_given_area_takes_precedence() -> None:
    told, other = (str(h3.latlng_to_cell(48.85, lon, 7)) for lon in (2.35, 2.6))
    inside = pa.array([int(h3.cell_to_center_child(told, 10), 16)], pa.uint64())
    given = TripsSource("trips.csv", within=read_area(other))
    area = release_area(release({"within": told}), TripsSource("trips.csv"))
    assert area is not None
    assert area.contains(inside).tolist() == [True]
    assert release_area(release({"within": told}), given) is given.area
    assert release_area(release(), given) is given.area
    assert release_area(release(), TripsSource("trips.csv")) is None
    assert release_area(release({"within": "a shape in memory"}), TripsSource("trips.csv")) is None


def at(resolution: Any) -> PublishedRelease:
    return release(**({} if resolution is None else {"resolution": resolution}))


def test_a_given_resolution_takes_precedence() -> None:
    assert counting_resolution([at(8), at(8), at(None), at("x")], TripsSource("trips.csv")) == 8
    assert counting_resolution([at(8)], TripsSource("trips.csv", resolution=9)) == 9
    assert counting_resolution([at(8), at(7)], TripsSource("trips.csv", resolution=9)) == 9
    assert counting_resolution([at(None)], TripsSource("trips.csv")) == TripsSource("trips.csv").finest
    with pytest.raises(InputError, match="of resolution 7 and 8, which"):
        counting_resolution([at(8), at(7)], TripsSource("trips.csv"))


def test_segments_of_releases() -> None:
    assert release_segment(release()) == {}
    assert release_segment(release(parameters={"segment": {"sex": "W", "age": 7}})) == {"sex": "W", "age": "7"}
    filtered = release({"where": ["mode == 1.0", "age > 9"]}, parameters={"segment": {"sex": "W"}})
    assert release_segment(filtered) == {"sex": "W", "mode": "1", "filter age > 9": "yes"}


@pytest.mark.parametrize(
    ("value", "plain"),
    [(1, "1"), (1.0, "1"), (" 01 ", "1"), ("TRUE", "1"), ("false", "0"), ("1.50", "1.5"), (" x ", "x"), ("", "")],
)
def test_values_of_filters_are_written_in_one_way(value: object, plain: str) -> None:
    assert plain_value(value) == plain


PARTS = {"segment": {"sex": "W"}, "left_out": [{"mode": "1"}, {"age": "70+", "sex": "W"}]}


def test_columns_that_have_to_be_kept() -> None:
    assert needed_columns([], ["day == 1"]) == ["day"]
    assert needed_columns([release({"where": "car == 1"}, parameters=PARTS)], ["day == 1"]) == [
        *("age", "car", "day", "mode", "sex")
    ]
    assert needed_columns([release(parameters={"joined": [{"sex": "W"}, {"purpose": "1"}]})], []) == ["purpose", "sex"]


TRIPS = [("W", "69", "1", 7), ("W", "70", "2", 8), ("W", "30", "2", 9), ("M", "30", "2", 6), (None, None, None, None)]


@pytest.mark.parametrize(
    ("source", "parameters", "where", "rows"),
    [
        ({}, {}, [], [0, 1, 2, 3, 4]),
        ({}, {}, ["age < 70"], [0, 2, 3]),
        ({"where": "age >= 69"}, {}, ["age < 70"], [0, 1]),
        ({}, {"segment": {"sex": "W"}}, [], [0, 1, 2]),
        ({}, {"segment": {"sex": "W"}}, ["age < 70"], [0, 2]),
        ({}, {"segment": {"sex": "W", "mode": "2"}}, [], [1, 2]),
        ({}, {"segment": {"sex": "missing"}}, [], [4]),
        ({}, {"segment": {"age": "69+"}}, [], [0, 1]),
        ({}, PARTS, [], [2]),
        ({}, {"joined": [{"sex": "M"}, {"age": "70+"}], "segment": {"sex": "W"}}, [], [1, 3]),
        ({}, {"left_out": [{"hour": "07-09"}]}, [], [2, 3, 4]),
        ({}, {"segment": {"hour": "07-09"}, "dimension": "hour:07-09"}, [], [0, 1]),
        ({}, {"segment": {"hour": "other"}, "dimension": "sex* hour:06-07,8"}, [], [0, 2]),
        ({}, {"segment": {"hour": "missing"}}, [], [4]),
    ],
)
def test_the_trips_of_a_release_are_found_again(
    source: dict[str, Any], parameters: dict[str, Any], where: list[str], rows: list[int]
) -> None:
    sex, age, mode, hour = zip(*TRIPS, strict=True)
    starts = [None if each is None else datetime(2024, 1, 1, each) for each in hour]
    table = {"row": range(5), "raw sex": sex, "raw age": age, "raw mode": mode, "start_time": starts}
    connection = duckdb.connect()
    connection.register("records", pa.table({name: pa.array(values) for name, values in table.items()}))
    records = Records(None, ("trips",), [], dict.fromkeys(("sex", "age", "mode"), "VARCHAR"))
    condition = scope_sql(release(source, parameters=parameters), records, where)
    found = connection.execute(f"SELECT row FROM records WHERE {condition} ORDER BY row").fetchall()
    assert [row[0] for row in found] == rows
    if "mode" in condition:
        with pytest.raises(NoColumnError, match="'mode'"):
            scope_sql(release(source, parameters=parameters), Records(None, (), [], {"sex": "", "age": ""}), where)


def on_table(name: str, digest: str | None = None) -> PublishedRelease:
    """A release on a lookup table of this name, and with this digest where the recipe has one."""
    made = release({"hierarchy": name})
    made.recipe["command"] = {"files": {} if digest is None else {name: digest}}
    return made


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("zones.csv", "abc"), ("zones.csv", "abc"), True),
        (("zones.csv", "abc"), ("copy.csv", "abc"), True),
        (("zones.csv", "abc"), ("zones.csv", "xyz"), False),
        (("zones.csv", "abc"), ("zones.csv",), True),
        (("zones.csv", "abc"), ("copy.csv",), False),
        (("zones.csv",), ("zones.csv",), True),
        (("a Table in memory",), ("a Table in memory",), False),
    ],
)
def test_one_table_is_known_by_its_digest_or_else_by_its_name(
    one: tuple[str, ...], other: tuple[str, ...], same: bool
) -> None:
    assert share_lookup_table(on_table(*one), on_table(*other)) is same
    assert share_lookup_table(on_table(*other), on_table(*one)) is same


def test_an_area_is_known_in_cells_or_from_a_file_that_is_the_same(tmp_path: Path) -> None:
    cell = "861fb4667ffffff"
    area = disclosed_area(release({"within": cell}))
    assert area is not None
    assert area.cells is not None
    assert [h3.int_to_str(each) for each in area.cells.tolist()] == [cell]
    path = tmp_path / "cells.txt"
    path.write_text(cell)
    kept = release({"within": str(path)})
    assert disclosed_area(kept) is None
    kept.recipe["command"] = {"files": {str(path): hashlib.sha256(cell.encode()).hexdigest()}}
    assert disclosed_area(kept) is not None
    path.write_text("861fb4677ffffff")
    assert disclosed_area(kept) is None
    path.unlink()
    assert disclosed_area(kept) is None


@pytest.mark.parametrize("told", [None, 5, "no cell", "x" * 5000, ["861fb4667ffffff"]])
def test_what_is_no_area_is_none(told: Any) -> None:
    assert disclosed_area(release({"within": told})) is None
    assert disclosed_area(release()) is None
