"""GNSS points on Spark give the same trips, the same account and the same release as in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from engine.needs import ON_SPARK, with_settings
from engine.same import WAYS, check_same
from odkanon import InputError, Rule, points_to_trips, read_trips, spark
from odkanon.read.od_matrix import build_od
from odkanon.read.points.cutting import COPY, SAME_TIME, TripRule

pytestmark = ON_SPARK

BY_PERSON = [("person", "ascending"), ("start_time", "ascending")]
START = np.datetime64("2022-11-14T06:00:00", "us")
RULES = [TripRule(), TripRule(gap=90, min_points=3, min_duration=120, min_distance=400)]


@pytest.fixture
def several(session: Any) -> Iterator[Any]:
    """Return the session, with persons on several partitions, and partitions in several batches."""
    settings = {"spark.sql.shuffle.partitions": "4", "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
    with with_settings(session, settings):
        yield session


def good_points(count: int = 4_000, persons: int = 30) -> dict[str, list[Any]]:
    """Points in no order, many of them at one time or exact copies, around a few places."""
    random = np.random.default_rng(8)
    seconds = random.integers(0, 50 * count // persons, count) // 10 * 10
    places = [48.8 + random.integers(0, 4, count) / 100, 2.3 + random.integers(0, 4, count) / 100]
    return {
        "person": [f"p{number}" for number in random.integers(0, persons, count)],
        "time": (START + seconds.astype("timedelta64[s]")).astype(object).tolist(),
        "lat": places[0].round(4).tolist(),
        "lon": places[1].round(4).tolist(),
    }


def messy_points() -> pa.Table:
    """Points as texts: with everything wrong that is checked, and times with several offsets."""
    columns = good_points()
    hours = [number % 3 - 1 for number in range(len(columns["time"]))]
    columns["time"] = [
        f"{time + timedelta(hours=offset):%Y-%m-%dT%H:%M:%S}{offset:+03d}:00"
        for time, offset in zip(columns["time"], hours, strict=True)
    ]
    texts = {name: [str(value) for value in values] for name, values in columns.items()} | {"valid": ["A"] * len(hours)}

    def put(name: str, first: int, values: list[Any]) -> None:
        texts[name][first : first + len(values)] = values

    put("person", 0, [None, "", "  ", " p3 ", "it's", "P3"])
    put("time", 10, [None, "", "yesterday", "2022-11-14 25:00:00Z", "1668412800", "2022-11-14"])
    put("lat", 20, [None, "north", "48,8", "nan", "inf", "95", "120", "0", " 48.8 ", "4.88e1"])
    put("lon", 25, ["48", "200", "0"])
    put("valid", 30, ["V", "false", None, "0", " No Fix "])
    # Times without an offset are refused beside others with one; here no such point is good.
    put("lat", 14, [None, None])
    return pa.table(texts)


def same_trips(session: Any, points: pa.Table, source: Any, rule: TripRule | None = None) -> tuple[Any, pa.Table]:
    """Check trips and account on Spark against those in memory; return both kinds of trips."""
    expected, account = points_to_trips(points, rule=rule)
    made = spark.trips(session, source, rule=rule)
    assert made.account == account
    assert list(made.account.rejected) == list(account.rejected)
    found = made.frame.toArrow()
    assert found.schema.equals(expected.schema)
    assert found.sort_by(BY_PERSON).equals(expected.sort_by(BY_PERSON))
    return made, expected


@pytest.mark.parametrize("rule", RULES, ids=["published", "strict"])
def test_messy_points_on_several_partitions(several: Any, tmp_path: Path, rule: TripRule) -> None:
    points = messy_points()
    for part in range(3):
        pyarrow.parquet.write_table(points.slice(part * 1_400, 1_400), tmp_path / f"{part}.parquet")
    made, _ = same_trips(several, points, tmp_path, rule)
    account = made.account
    assert {COPY, SAME_TIME} < set(account.rejected)
    assert len(account.rejected) == 13
    assert len(account.dropped) == (1 if rule == TripRule() else 3)
    assert made.frame.selectExpr("spark_partition_id() AS part").distinct().count() > 1


@pytest.mark.slow
def test_the_same_release_from_the_points_on(session: Any) -> None:
    points = pa.table(good_points())
    made, expected = same_trips(session, points, session.createDataFrame(points.to_pandas()))
    reference = build_od(read_trips(expected), resolution=8)
    on_spark = spark.read(session, made.frame, resolution=8)
    check_same(reference, on_spark, [Rule(trips=6, persons=4)], WAYS[:1])
    made.unpersist()
    assert made.frame.count() == made.account.trips


@pytest.mark.parametrize("kind", ["with a zone", "counts"])
def test_kinds_of_times_and_of_persons(session: Any, tmp_path: Path, kind: str) -> None:
    columns = good_points(300, 5)
    persons = pa.array([int(person[1:]) for person in columns["person"]], pa.int32())
    times = pa.array(columns["time"], pa.timestamp("us", "Europe/Paris"))
    points = pa.table(
        {
            "user id": persons,
            "UTC DATETIME": times if kind == "with a zone" else pa.array(times.cast(pa.int64()).to_numpy() // 1_000),
            "LATITUDE": columns["lat"],
            "x.y": columns["lon"],
            "unused": pa.array([None] * len(persons), pa.list_(pa.int8())),
        }
    )
    pyarrow.parquet.write_table(points, tmp_path / "points.parquet")
    names = {"lon": "x.y"}
    expected, account = points_to_trips(tmp_path / "points.parquet", columns=names)
    made = spark.trips(session, tmp_path / "points.parquet", columns=names)
    assert made.account == account
    assert made.frame.toArrow().sort_by(BY_PERSON).equals(expected.sort_by(BY_PERSON))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": ["2022-11-14T08:00:00Z", "2022-11-14T08:01:00"]}, r"offset \(1 rows\) and without one \(1 rows\)"),
        ({"time": ["never", None]}, r"the table has no usable point \(1 without a time; 1 with a time that cannot"),
        ({"person": None}, "the table has no column for person"),
    ],
)
def test_refused_as_in_memory(session: Any, change: dict[str, Any], message: str) -> None:
    columns = {"person": ["a", "a"], "time": ["2022-11-14"] * 2, "lat": [48.0, 48.1], "lon": [2.0, 2.1], **change}
    points = pa.table({name: values for name, values in columns.items() if values is not None})
    with pytest.raises(InputError, match=message) as in_memory:
        points_to_trips(points)
    with pytest.raises(InputError, match=message) as on_spark:
        spark.trips(session, session.createDataFrame(points))
    assert str(on_spark.value) == str(in_memory.value)


def test_what_cannot_be_points_is_one_clear_error(session: Any, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("person,time,lat,lon\n")
    with pytest.raises(InputError, match="cannot be read by Spark as Parquet files"):
        spark.trips(session, tmp_path / "points.csv")
    with pytest.raises(InputError, match="at least 1 point"):
        spark.trips(session, session.createDataFrame(pa.table({"a": [1]})), rule=TripRule(min_points=0))
