"""GNSS points to trips: the same as the naive version, in any order, batch and file."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.core.sql import write_csv
from odkanon.errors import InputError
from odkanon.read.points import segmentation as points_module
from odkanon.read.points.cutting import COPY, SAME_TIME, PauseCutter, TripRule
from odkanon.read.points.fixes import open_fixes
from odkanon.read.points.segmentation import points_to_trips, write_trips
from read.points.naive import Point, naive_trips
from worlds.tries import tries

START = np.datetime64("2022-11-14T06:00:00", "us")


def table_of(points: list[Point]) -> pa.Table:
    seconds = np.array([point.seconds for point in points])
    return pa.table(
        {
            "person": [point.person for point in points],
            "time": START + (seconds * 1e6).astype("timedelta64[us]"),
            "lat": [point.lat for point in points],
            "lon": [point.lon for point in points],
        }
    )


def tuples(trips: pa.Table) -> list[tuple[Any, ...]]:
    def seconds(name: str) -> list[float]:
        return [float(value) for value in (trips.column(name).to_numpy() - START) / np.timedelta64(1, "s")]

    columns = [trips.column(name).to_pylist() for name in ("start_lat", "start_lon", "end_lat", "end_lon")]
    return sorted(
        zip(trips.column("person").to_pylist(), seconds("start_time"), seconds("end_time"), *columns, strict=True)
    )


def random_points(count: int, persons: int, seed: int) -> list[Point]:
    rng = np.random.default_rng(seed)
    person, seconds = rng.integers(0, persons, count), rng.integers(0, 40 * count // persons, count)
    lat, lon = 48 + rng.integers(0, 50, count) / 100, 2 + rng.integers(0, 50, count) / 100
    return [Point(f"p{p}", float(s), float(y), float(x)) for p, s, y, x in zip(person, seconds, lat, lon, strict=True)]


def test_trips_equal_the_naive_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points_module, "_BATCH", 2048)  # so that persons and trips run across batches
    points = random_points(30_000, 7, seed=1)
    trips, account = points_to_trips(table_of(points))
    expected = naive_trips(points)
    assert tuples(trips) == expected
    assert account.trips == len(expected) > 300
    assert account.persons == 7


@pytest.mark.parametrize("gap", [60.0, 180.0, 600.0])
def test_the_gap_is_respected_to_the_second(gap: float) -> None:
    points = [Point("a", seconds, 48.0, 2.0) for seconds in (0.0, gap, 2 * gap + 1, 3 * gap + 1)]
    trips, _ = points_to_trips(table_of(points), rule=TripRule(gap=gap))
    assert [(row[1], row[2]) for row in tuples(trips)] == [(0.0, gap), (2 * gap + 1, 3 * gap + 1)]


fixes = st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(0, 1), st.integers(0, 1))


@tries(150)
@given(st.lists(fixes, min_size=1, max_size=60), st.integers(1, 60))
def test_batches_of_any_size_give_the_same_trips(raw: list[tuple[str, int, int, int]], size: int) -> None:
    points = sorted(Point(person, 100.0 * time, 48.0 + lat, 2.0 + lon) for person, time, lat, lon in raw)
    table = table_of(points).rename_columns(["person", "instant", "lat", "lon"])
    table = table.set_column(1, "instant", table.column("instant").cast(pa.int64()))
    table = table.append_column("clock", table.column("instant"))
    cutter = PauseCutter(TripRule())
    parts = [cutter.feed(table.slice(at, size)) for at in range(0, len(table), size)]
    last = cutter.finish()
    assert last is not None
    trips = pa.concat_tables([*parts, last])
    assert tuples(trips) == naive_trips(points)
    distinct = {(point.person, point.seconds) for point in points}
    assert cutter.copies + cutter.same_time == len(points) - len(distinct)
    assert cutter.persons == len({point.person for point in points})
    assert cutter.persons_with_trips == len(set(trips.column("person").to_pylist()))


def test_short_and_circular_runs_are_counted() -> None:
    points = [Point("a", t, 48.0, 2.0) for t in (0.0, 60.0)]
    points += [Point("b", 0.0, 48.0, 2.0), Point("b", 300.0, 48.0, 2.0), Point("b", 400.0, 48.01, 2.0)]
    points += [Point("c", 0.0, 48.0, 2.0), Point("c", 5.0, 48.1, 2.0)]
    rule = TripRule(min_duration=30.0, min_distance=100.0)
    trips, account = points_to_trips(table_of(points), rule=rule)
    assert [row[0] for row in tuples(trips)] == ["b"]
    assert list(account.dropped.values()) == [1, 1, 1]
    assert account.persons_without_trips == 2


def test_every_bad_fix_has_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    rows = [
        "a,2022-11-14 08:00:00,48.8,2.3,true",
        "a,2022-11-14 08:00:00,48.8,2.3,true",
        "a,2022-11-14 08:00:00,48.9,2.3,true",
        "a,2022-11-14 08:02:00,48.81,2.31,true",
        ",2022-11-14 08:01:00,48.8,2.3,true",
        "a,,48.8,2.3,true",
        "a,yesterday,48.8,2.3,true",
        "a,2022-11-14 08:01:00,,2.3,true",
        "a,2022-11-14 08:01:00,north,2.3,true",
        'a,2022-11-14 08:01:00,"48,8",2.3,true',
        "a,2022-11-14 08:01:00,nan,2.3,true",
        "a,2022-11-14 08:01:00,148.8,2.3,true",
        "a,2022-11-14 08:01:00,148.8,182.3,true",
        "a,2022-11-14 08:01:00,0,0,true",
        "a,2022-11-14 08:01:00,48.8,2.3,false",
        "a,2022-11-14 08:01:00,48.8",
    ]
    path.write_text("person,time,lat,lon,valid\n" + "\n".join(rows) + "\n")
    trips, account = points_to_trips(path)
    assert account.points == len(rows)
    assert set(account.rejected.values()) == {1}
    assert len(account.rejected) == len(rows) - 2
    assert {COPY, SAME_TIME} <= set(account.rejected)
    assert trips.select(["start_lat", "end_lat"]).to_pylist() == [{"start_lat": 48.8, "end_lat": 48.81}]


def test_a_folder_has_a_file_for_each_person(tmp_path: Path) -> None:
    points = random_points(600, 3, seed=2)
    for number, person in enumerate(("p0", "p1", "p2")):
        table = table_of([point for point in points if point.person == person]).drop_columns("person")
        if number == 1:  # another layout of columns is no obstacle
            table = table.select(["lon", "lat", "time"])
        write_csv(table, tmp_path / f"{person}{('.csv', '.CSV', '.csv.gz')[number]}")
    (tmp_path / "p3.csv").write_text("time,lat,lon\n2022-11-14 08:00:00,48.8,2.3\n")  # one point: no trip
    (tmp_path / "p4.csv").write_text("")
    trips, account = points_to_trips(tmp_path)
    assert tuples(trips) == naive_trips(points)
    assert (account.persons, account.persons_without_trips) == (4, 1)


def test_times_with_offsets_are_put_in_order(tmp_path: Path) -> None:
    """Half past eight in Paris comes before eight in London, and both keep the time on the wall."""
    path = tmp_path / "points.csv"
    path.write_text(
        "person,time,lat,lon\n"
        "a,2022-11-14T08:00:00Z,48.82,2.32\n"
        "a,2022-11-14T08:58:30+01:00,48.81,2.31\n"
        "a,2022-11-14T02:57:00-05:00,48.80,2.30\n"
    )
    trips, _ = points_to_trips(path)
    (trip,) = trips.to_pylist()
    assert (trip["start_lat"], trip["end_lat"]) == (48.80, 48.82)
    assert (str(trip["start_time"]), str(trip["end_time"])) == ("2022-11-14 02:57:00", "2022-11-14 08:00:00")


def test_copies_with_another_offset_give_one_clock_in_any_order() -> None:
    times = ["2022-11-14T08:00:00Z", "2022-11-14T09:00:00+01:00", "2022-11-14T08:01:00Z"]
    points = pa.table({"person": ["a"] * 3, "time": times, "lat": [48.8] * 3, "lon": [2.3] * 3})
    (one, account), (other, _) = (points_to_trips(points.take(order)) for order in ([0, 1, 2], [2, 1, 0]))
    assert one.equals(other)
    assert account.rejected == {COPY: 1}


def test_offsets_on_some_times_only_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("person,time,lat,lon\na,2022-11-14T08:00:00Z,48.8,2.3\na,2022-11-14T08:01:00,48.8,2.3\n")
    with pytest.raises(InputError, match=r"with a UTC offset \(1 rows\) and without one \(1 rows\)"):
        points_to_trips(path)


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_times_may_be_counts_since_1970(unit: int) -> None:
    seconds = [1_372_636_858, 1_372_636_900]
    table = pa.table({"uid": [7, 7], "timestamp": [s * unit for s in seconds], "lat": [1.0, 2.0], "lng": [1.0, 2.0]})
    trips, _ = points_to_trips(table)
    expected = [np.datetime64(second, "s") for second in seconds]
    assert [trips.column(name)[0].as_py() for name in ("start_time", "end_time")] == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("person,time,lat\na,2022-11-14,48\n", r"no column for lon; name the column"),
        ("person,time,lat,lon\n", "no usable point"),
        ("person,time,lat,lon\na,never,48,2\n", r"1 with a time that cannot be read"),
        ("person time lat lon\na 2022-11-14 48 2\n", "no column for person"),
    ],
)
def test_unusable_files_say_why(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "points.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        points_to_trips(path)


@pytest.mark.parametrize("rule", [TripRule(gap=0), TripRule(min_points=0)])
def test_rules_out_of_range_are_refused(rule: TripRule) -> None:
    with pytest.raises(InputError, match="not"):
        points_to_trips(table_of([Point("a", 0.0, 48.0, 2.0)]), rule=rule)


def test_a_failed_run_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "points.csv").write_text("person,time,lat,lon\n")
    with pytest.raises(InputError):
        write_trips(open_fixes(tmp_path / "in" / "points.csv"), tmp_path / "out" / "trips.csv")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_command_writes_trips_that_anonymize_reads(tmp_path: Path) -> None:
    points = random_points(4_000, 5, seed=3)
    pq.write_table(table_of(points), tmp_path / "points.parquet")
    command = [sys.executable, "-m", "odkanon", "trips", "points.parquet", "-o", "trips.csv.gz", "--gap", "100"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Read 4,000 points of 5 persons" in done.stdout
    expected = naive_trips(points, gap=100.0)
    with gzip.open(tmp_path / "trips.csv.gz", "rt") as file:
        assert len(file.readlines()) == len(expected) + 1
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "--force" in again.stderr


@pytest.mark.parametrize("nobody", ["NA", "null", " nan ", float("nan")])
def test_points_of_nobody_are_not_those_of_one_person(nobody: Any) -> None:
    """They made trips that began where one went and ended where somebody else did."""
    somebody = [1.0, 1.0] if isinstance(nobody, float) else ["a", "a"]
    times = [f"2022-11-14 08:0{minute}:00" for minute in range(4)]
    columns = {"person": [*somebody, nobody, nobody], "time": times, "lat": [48.8, 48.9, 49.5, 50.5], "lon": [2.3] * 4}
    trips, account = points_to_trips(pa.table(columns))
    assert trips.column("person").to_pylist() == somebody[:1]
    assert account.rejected == {"without a person": 2}
