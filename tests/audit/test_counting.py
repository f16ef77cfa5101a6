"""The audit counts for itself: releases that counted wrong are found, though all their files agree."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from audit.tamper import edit_json, read_rows, settle_accounts, write_rows
from odkanon import Rule, audit_releases, read_matrix, read_trips
from odkanon.audit import TripsSource
from odkanon.audit.counting.conditions import RawColumn, filter_sql
from odkanon.audit.counting.counted_measures import person_sql
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od
from worlds.people import findings, places

Row = dict[str, Any]


def rows_of(persons: Sequence[Any], weight: Any = 1.0) -> list[Row]:
    """Return a trip from one place to another for each person."""
    (lat, lon), (end_lat, end_lon) = (h3.cell_to_latlng(places()[at]) for at in (0, 8))
    return [
        {
            "person": person,
            "start_time": f"2024-01-01 08:{at // 60:02}:{at % 60:02}",
            "start_lat": lat,
            "start_lon": lon,
            "end_lat": end_lat,
            "end_lon": end_lon,
            "weight": weight,
        }
        for at, person in enumerate(persons)
    ]


def write_csv(rows: Sequence[Row], path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def release_as_if(rows: Sequence[Row], rule: Rule, folder: Path) -> Path:
    """Release what a wrong reader took the rows for."""
    path = write_csv(rows, folder.with_suffix(".csv"))
    return anonymize(build_od(read_trips(path)), rule).save(folder)


def messages(folder: Path, trips: Path) -> str:
    return "\n".join(each.message for each in findings(audit_releases([folder], trips=trips)))


PERSONS = Rule(trips=10, persons=10)
GOOD = [f"p{at}" for at in range(10)]


@pytest.mark.parametrize("word", ["nan", "NaN", "NULL", "NA", "None", "\\N", " null ", "\u200bnan"])
def test_a_word_for_nobody_that_was_counted_as_a_person(tmp_path: Path, word: str) -> None:
    folder = release_as_if(rows_of(GOOD), PERSONS, tmp_path / "release")
    trips = write_csv(rows_of([*GOOD[:9], word]), tmp_path / "trips.csv")
    found = messages(folder, trips)
    assert "10 trips and 10 persons in the release, but 9 persons in the data" in found
    assert "counted from the trips, 1 flows are below the rule of 10 persons" in found


def test_nan_in_a_column_of_floats_is_nobody(tmp_path: Path) -> None:
    folder = release_as_if(rows_of(GOOD), PERSONS, tmp_path / "release")
    persons = np.array([*range(9), np.nan])
    table = pa.Table.from_pylist(rows_of(GOOD))
    table = table.set_column(0, "person", pa.array(persons))
    pyarrow.parquet.write_table(table, tmp_path / "trips.parquet")
    assert "below the rule of 10 persons" in messages(folder, tmp_path / "trips.parquet")


@pytest.mark.parametrize(
    "spell",
    [
        lambda at: f"{at}.0",
        lambda at: f" {at}",
        lambda at: f"{at}\u00a0",
        lambda at: f"\ufeff{at}",
        lambda at: f"+{at}",
    ],
)
def test_one_person_in_two_spellings(tmp_path: Path, spell: Callable[[int], str]) -> None:
    folder = release_as_if(rows_of(GOOD), PERSONS, tmp_path / "release")
    persons = [*map(str, range(1, 6)), *(spell(at) for at in range(1, 6))]
    assert "has 5" in messages(folder, write_csv(rows_of(persons), tmp_path / "trips.csv"))


@pytest.mark.parametrize("name", ["ab{}f", "g{}", "anna{}@x.org", "mari\u00e9{}", "\u03b4\u03ae\u03bc\u03bf\u03c2{}"])
def test_ids_in_two_cases_are_one_person(tmp_path: Path, name: str) -> None:
    folder = release_as_if(rows_of(GOOD), PERSONS, tmp_path / "release")
    persons = [spelled.format(at) for spelled in (name, name.upper()) for at in range(5)]
    assert "has 5" in messages(folder, write_csv(rows_of(persons), tmp_path / "trips.csv"))


def test_names_that_differ_are_different_persons() -> None:
    names = ["Anna", "Hanna", "1", "2", "01-2", "1-2", "p1", "q1", "1.5", "NaNa"]
    connection = duckdb.connect()
    connection.register("people", pa.table({"person": names}))
    found = connection.execute(f"SELECT count(DISTINCT {person_sql('person')}) FROM people").fetchall()
    assert found == [(len(names),)]


def test_a_weight_that_a_coarse_unit_rounded_up(tmp_path: Path) -> None:
    """Ten trips of 0.6 weigh 6; in units of one they weigh ten."""
    folder = release_as_if(rows_of(GOOD, 1.0), Rule(weight=10), tmp_path / "release")
    huge = {**rows_of(["other"], "4e16")[0], "start_lat": ""}
    trips = write_csv([*rows_of(GOOD, "0.6"), huge], tmp_path / "trips.csv")
    found = messages(folder, trips)
    assert "10 trips and 10 weight in the release, but 6 weight in the data" in found
    assert "counted from the trips, 1 flows are below the rule of 10 weight" in found


def test_weights_are_added_up_exactly(tmp_path: Path) -> None:
    """A hundred tenths are ten, not a hair less."""
    rows = rows_of([f"p{at}" for at in range(100)], "0.1")
    folder = release_as_if(rows, Rule(weight=10), tmp_path / "release")
    assert messages(folder, tmp_path / "release.csv") == ""


@pytest.mark.parametrize(
    ("column", "spelling"),
    [("weight", "1"), ("weight", "1.00"), ("start_time", "2024-01-01T08:00:00"), ("person", " p0"), ("end_lat", None)],
)
def test_a_copy_in_another_spelling_that_was_counted(tmp_path: Path, column: str, spelling: str | None) -> None:
    folder = release_as_if(rows_of(GOOD), Rule(trips=10), tmp_path / "release")
    first = rows_of(GOOD[:9])
    copied = {**first[0], column: spelling or f"{first[0][column]}0"}
    found = messages(folder, write_csv([*first, copied], tmp_path / "trips.csv"))
    assert "9 remain after reading, the release is of 10" in found
    assert "copies" in found


def test_trips_of_nobody_at_one_time_are_no_copies(tmp_path: Path) -> None:
    rows = [{**row, "person": "", "start_time": "2024-01-01 08:00:00"} for row in rows_of(GOOD)]
    folder = release_as_if(rows, Rule(trips=10), tmp_path / "release")
    assert messages(folder, tmp_path / "release.csv") == ""


@pytest.mark.parametrize("bad", [{"start_lat": "95"}, {"end_lon": "x"}, {"start_lat": "0", "start_lon": "0"}])
def test_a_row_without_a_place_that_was_counted(tmp_path: Path, bad: Row) -> None:
    folder = release_as_if(rows_of(GOOD), Rule(trips=10), tmp_path / "release")
    rows = rows_of(GOOD)
    trips = write_csv([*rows[:9], {**rows[9], **bad}], tmp_path / "trips.csv")
    assert "9 remain after reading, the release is of 10" in messages(folder, trips)


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    folder = release_as_if(rows_of(GOOD), Rule(trips=10), tmp_path / "release")
    write_csv(rows_of(GOOD), tmp_path / "t1.csv")
    wrong = write_csv(rows_of(GOOD[:9]), tmp_path / "t[12].csv")
    assert "9 remain" in messages(folder, wrong)


def test_a_changed_weight_is_found_where_all_files_agree(tmp_path: Path) -> None:
    folder = release_as_if(rows_of(GOOD, 2.5), Rule(trips=10), tmp_path / "release")
    rows = read_rows(folder)
    rows[0]["weight"] += 1
    write_rows(folder, rows)
    settle_accounts(folder)

    def cover_up(content: Any) -> None:
        content["about"]["input"]["weight"] = 26
        content["about"]["suppressed"]["weight"] = 0

    edit_json(folder.with_name("release.recipe.json"), cover_up)
    assert "26 weight in the release, but 25 weight in the data" in messages(folder, tmp_path / "release.csv")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("age >= 18", [18, 19]),
        ("not (age >= 18)", [9]),
        ("age in [9, 19] and name != 'b'", [9, 19]),
        ("moment >= '09:30'", [9, 19]),
        ("moment < '09:30'", [18]),
        ("moment > '2024-01-01'", [19]),
        ("moment <= '2024-01-01 09:00'", [18]),
        ("name == 'b'", [18]),
    ],
)
def test_filters_are_read_by_rules_of_their_own(text: str, kept: list[int]) -> None:
    moments = [datetime(2024, 1, 1, 10), datetime(2024, 1, 1, 9), datetime(2024, 2, 1, 9, 30), None]
    table = pa.table({"age": ["9", "18", "19", None], "name": ["a", "b", "c", "d"], "moment": moments})
    connection = duckdb.connect()
    connection.register("source", table)
    condition = filter_sql([text], lambda name: RawColumn(name, name == "moment"))
    found = connection.execute(f"SELECT age FROM source WHERE {condition}").fetchall()
    assert sorted(int(row[0]) for row in found) == kept


def test_the_line_after_one_that_cannot_be_read_counts(tmp_path: Path) -> None:
    """The audit passed over it, and took a good release for a wrong one; mixed line ends it did not read at all."""
    for end in (b"\r\n", b"\n"):
        path = write_csv(rows_of([f"p{at}" for at in range(12)]), tmp_path / "trips.csv")
        lines = path.read_bytes().split(b"\r\n")[:-1]
        lines[3:3] = [b'"p"x' + lines[3][2:], b"too short"]
        path.write_bytes(b"\r\n".join(lines[:8]) + end + end.join(lines[8:]) + end)
        folder = anonymize(build_od(read_trips(path)), PERSONS).save(tmp_path / f"release{len(end)}")
        assert read_rows(folder)[0]["trips"] == 12
        assert not findings(audit_releases([folder], trips=path))


@pytest.mark.parametrize(("encoding", "end"), [("utf-16", "\n"), ("cp1251", "\n"), ("utf-8", "\r"), ("latin-1", "\n")])
def test_other_encodings_and_line_ends_can_be_audited(tmp_path: Path, encoding: str, end: str) -> None:
    """The audit took them for Latin-1, and found no header, or no trip that a filter keeps."""
    word = "Женский" if encoding == "cp1251" else "Féminin"
    rows = [{**row, "sex": word if at % 3 else "x"} for at, row in enumerate(rows_of([f"p{at}" for at in range(18)]))]
    lines = [",".join(["", *rows[0]]), *(",".join(map(str, [at, *row.values()])) for at, row in enumerate(rows))]
    path = tmp_path / "trips.csv"
    path.write_bytes(end.join([*lines, ""]).encode(encoding))
    how: dict[str, Any] = {"encoding": "cp1251"} if encoding == "cp1251" else {}
    filtered = read_trips(path, where=f"sex == {word!r}", **how)
    folder = anonymize(build_od(filtered), Rule(trips=12)).save(tmp_path / "release")
    source = TripsSource(path, where=f"sex == {word!r}", **how)
    assert findings(audit_releases([folder], trips=source)) == []


@pytest.mark.parametrize(
    ("ages", "where", "kept"),
    [
        ([20.0] * 12 + [float("nan")] * 5 + [10.0] * 3, "age >= 18", 12),
        ([20.0] * 12 + [None] * 5 + [10.0] * 3, 'age != "10"', 12),
        ([2**53 + 1] * 12 + [2**53] * 8, f"age == {2**53 + 1}", 12),
    ],
)
def test_a_filter_by_numbers_finds_the_same_trips(tmp_path: Path, ages: list[Any], where: str, kept: int) -> None:
    """NaN is no age, and long numbers are told apart, here as where trips are read."""
    trips = pa.Table.from_pylist(rows_of(range(20))).append_column("age", pa.array(ages, from_pandas=False))
    path = tmp_path / "trips.parquet"
    pyarrow.parquet.write_table(trips, path)
    od = build_od(read_trips(path, where=where))
    assert od.trips == kept
    assert messages(anonymize(od, Rule(trips=10, persons=10)).save(tmp_path / "release"), path) == ""


def test_a_fraction_of_a_trip_that_was_counted_as_one(tmp_path: Path) -> None:
    """A float takes 9.9999999999999999 for 10."""
    header, row = "origin,destination,trips", f"{places()[0]},{places()[8]},"
    path, taken = tmp_path / "trips.csv", tmp_path / "taken.csv"
    path.write_text(f"{header}\n{row}9.9999999999999999\n")
    taken.write_text(f"{header}\n{row}10\n")
    release = anonymize(read_matrix(taken, engine="memory"), Rule(trips=10)).save(tmp_path / "release")
    assert "0 remain after reading" in messages(release, path)
