"""``odkanon anonymize --by`` and ``odkanon export --where``, as a planner runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from cli.runner import odkanon, output
from odkanon import make_survey, open_release

TRIPS_ONLY = ("--protect", "participants")
BY = ("--by", "mode", "--by", "hour:0-7,7-9,9-17,17-20,20-24", "--resolution", "8")


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cube") / "survey.parquet"
    pyarrow.parquet.write_table(make_survey().slice(0, 9000), path)
    return path


def test_days_that_would_come_from_the_trips_are_refused(trips: Path, tmp_path: Path) -> None:
    since, until = ("--since", "2022-11-14"), ("--until", "2022-12-01")
    options = ("-o", tmp_path / "days", "--by", "date", "--resolution", "6", *TRIPS_ONLY)
    for days in ((), since):
        done = odkanon("anonymize", trips, *options, *days)
        assert done.returncode == 2
        assert "first day to be published (since)" in output(done)
    done = odkanon("anonymize", trips, *options, *since, *until)
    assert done.returncode == 0, done.stderr
    done = odkanon("audit", tmp_path / "days", "--trips", trips)
    assert "; 1 finding" in output(done), "there are fewer persons than trips, and nothing else"


def test_a_cube_and_its_views(trips: Path, tmp_path: Path) -> None:
    done = odkanon(
        "anonymize", trips, "-o", tmp_path / "cube", *BY, *TRIPS_ONLY, "--drop-order", "place:6,hour,mode,place"
    )
    assert done.returncode == 0, done.stderr
    assert "Trips by published attribute" in output(done)
    assert "mode and hour" in output(done)
    assert "With persons protected, " in output(done), "the price is not cut off"
    saved = open_release(tmp_path / "cube")
    assert saved.axes == ["mode", "hour"]
    assert saved.manifest["parameters"]["drop_order"] == "place:6,hour,mode,place"
    where = 'mode == "car" and hour == "09-17"'
    view = odkanon("export", tmp_path / "cube", "--where", where, "-o", tmp_path / "cars")
    assert view.returncode == 0, view.stderr
    about = json.loads((tmp_path / "cars" / "view.json").read_text())
    rows = [row for row in saved.table.to_pylist() if (row["mode"], row["hour"]) == ("car", "09-17")]
    assert about["sums"]["trips"] == sum(row["trips"] for row in rows) > 0
    report = odkanon("report", tmp_path / "cube", "-o", tmp_path / "page.html")
    assert report.returncode == 0, report.stderr
    done = odkanon("audit", tmp_path / "cube", "--trips", trips, "--resolution", "8")
    assert "flows have fewer than 10 different persons" in output(done)
    assert "; 1 finding" in output(done)
    done = odkanon("anonymize", trips, "-o", tmp_path / "next", "--zones-of", tmp_path / "cube")
    assert done.returncode == 2
    assert "depend on the attributes" in output(done)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--method", "oigh"), "--by publishes with cascade"),
        (("--segment", "sex"), "--segment does not apply with --by"),
        (("--substeps",), "--substeps does not apply with --by"),
        (("--drop-order", "colour"), "no 'colour' to drop"),
        (("--by", "colour"), "colour"),
    ],
)
def test_what_does_not_go_with_a_cube_is_said(trips: Path, tmp_path: Path, more: tuple[str, ...], said: str) -> None:
    done = odkanon("anonymize", trips, "-o", tmp_path / "cube", "--by", "mode", *more)
    assert done.returncode == 2
    assert said in output(done)
    assert not (tmp_path / "cube").exists()


def test_an_order_needs_a_cube(trips: Path, tmp_path: Path) -> None:
    done = odkanon("anonymize", trips, "-o", tmp_path / "cube", "--drop-order", "mode", "--method", "cascade")
    assert done.returncode == 2
    assert "--drop-order does not apply without --by" in output(done)


def test_a_table_without_times_has_no_hours(tmp_path: Path) -> None:
    table = pa.table({"origin": ["8a1fb4671017fff"] * 3, "destination": ["8a1fb4671007fff"] * 3, "trips": [5, 6, 7]})
    pyarrow.parquet.write_table(table, tmp_path / "od.parquet")
    done = odkanon("anonymize", tmp_path / "od.parquet", "-o", tmp_path / "cube", "--by", "hour")
    assert done.returncode == 2
    assert "hour needs a start time" in output(done)


def test_orders_are_compared_by_what_they_keep(trips: Path, tmp_path: Path) -> None:
    orders = ("place:6,hour,mode,place", "hour,mode,place")
    asked = [part for order in orders for part in ("--drop-order", order)]
    done = odkanon("compare", trips, *BY, *asked, "-o", tmp_path / "orders")
    assert done.returncode == 0, output(done)
    assert "Choose the order on other data" in output(done)
    kept = pyarrow.csv.read_csv(tmp_path / "orders" / "orders.csv").to_pylist()
    assert [row["drop_order"] for row in kept] == list(orders)
    assert kept[0]["mode and hour"] > 0.2 > kept[1]["mode and hour"]
    assert kept[0]["g"] > kept[1]["g"]
    again = odkanon("compare", trips, *BY, *asked, "-o", tmp_path / "orders")
    assert again.returncode == 2
    stricter = odkanon("compare", trips, *BY, *asked, "--protect", "persons", "-o", tmp_path / "persons")
    assert stricter.returncode == 0, output(stricter)
    fewer = pyarrow.csv.read_csv(tmp_path / "persons" / "orders.csv").to_pylist()
    assert fewer[0]["flows"] < kept[0]["flows"]


def test_a_cube_in_duckdb_is_the_same(trips: Path, tmp_path: Path) -> None:
    for engine in ("memory", "duckdb"):
        (tmp_path / engine).mkdir()
        done = odkanon("anonymize", trips, "-o", tmp_path / engine / "cube", *BY, "--engine", engine)
        assert done.returncode == 0, output(done)
    for file in ("classes.csv", "classes.parquet", "zones.geojson", "release.json"):
        assert len({(tmp_path / engine / "cube" / file).read_bytes() for engine in ("memory", "duckdb")}) == 1


def test_what_a_cascade_would_give_is_said_to_the_steward(trips: Path, tmp_path: Path) -> None:
    done = odkanon("anonymize", trips, "-o", tmp_path / "release", "--resolution", "8", "--method", "odkanon")
    assert done.returncode == 0, output(done)
    assert "A cascade (--method cascade) would publish" in output(done)
    assert all(b"--method cascade" not in file.read_bytes() for file in (tmp_path / "release").iterdir())
    done = odkanon("anonymize", trips, "-o", tmp_path / "nested", "--resolution", "8", "--method", "cascade")
    assert "A cascade" not in output(done)
    more = ("--resolution", "8", "--zones-of", tmp_path / "nested")
    done = odkanon("anonymize", trips, "-o", tmp_path / "next", *more)
    assert done.returncode == 0, output(done)
    assert "safe side by side if they share no trip" in output(done)
    rows = [
        {(row["origin"], row["destination"]) for row in open_release(tmp_path / name).table.to_pylist()}
        for name in ("nested", "next")
    ]
    assert rows[1] <= rows[0]
    assert len(rows[1]) > 0.9 * len(rows[0])
