"""As a library: tables of any kind in, Arrow out, and something to look at in between."""

from __future__ import annotations

import html
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("polars")

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

import odkanon
from odkanon import Rule
from odkanon.sample.survey import make_survey

# What is made here is not published, and its flows may have few persons.
pytestmark = pytest.mark.filterwarnings("ignore::odkanon.errors.ReleaseWarning")


@pytest.fixture(scope="module")
def survey() -> pa.Table:
    return make_survey().slice(0, 4_000)


def sources(survey: pa.Table) -> dict[str, Any]:
    connection = duckdb.connect()
    connection.register("survey", survey)
    return {
        "arrow": survey,
        "batches": survey.to_reader(),
        "pandas": survey.to_pandas(),
        "polars": pl.from_arrow(survey),
        "duckdb": connection.sql("SELECT * FROM survey"),
    }


@pytest.mark.parametrize("kind", ["arrow", "batches", "pandas", "polars", "duckdb"])
def test_tables_of_any_kind_give_the_same_matrix(survey: pa.Table, kind: str) -> None:
    expected = odkanon.build_od(odkanon.read_trips(survey), resolution=8)
    got = odkanon.build_od(odkanon.read_trips(sources(survey)[kind]), resolution=8)
    assert (len(got), got.trips, got.weight_units, got.persons) == (
        len(expected),
        expected.trips,
        expected.weight_units,
        expected.persons,
    )


def test_aware_times_do_not_depend_on_the_machine(survey: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    table = survey.slice(0, 1)
    start = table.column("start_time").cast(pa.timestamp("us", "UTC"))
    trips = odkanon.read_trips(table.set_column(1, "start_time", start))
    assert trips.table.column("start_time")[0].as_py() == table.column("start_time")[0].as_py()


def test_points_in_memory_become_trips(survey: pa.Table) -> None:
    points = pd.DataFrame(
        {
            "user_id": [1, 1, 1],
            "timestamp": pd.to_datetime(["2022-11-14 08:02", "2022-11-14 08:00", "2022-11-14 08:01"]),
            "latitude": [48.82, 48.80, 48.81],
            "longitude": [2.32, 2.30, 2.31],
        }
    )
    trips, account = odkanon.points_to_trips(points)
    assert account.trips == 1
    assert trips.column("end_lat").to_pylist() == [48.82]


def test_results_are_arrow(survey: pa.Table) -> None:
    od = odkanon.build_od(odkanon.read_trips(survey), resolution=7)
    release = odkanon.anonymize(od, Rule(trips=10))
    table = release.to_arrow()
    frame = table.to_pandas()
    assert list(frame.columns) == ["origin", "destination", "trips", "weight", "at_cap"]
    assert int(frame["trips"].sum()) == int(release.classes.trips.sum())
    assert pl.DataFrame(table)["trips"].sum() == frame["trips"].sum()
    with duckdb.connect() as connection:  # of its own: an unfinished result would hold up the shared one
        row = connection.execute("SELECT sum(trips) FROM frame").fetchone()
    assert row == (frame["trips"].sum(),)


def test_a_notebook_shows_small_tables_and_no_raw_text(survey: pa.Table) -> None:
    od = odkanon.build_od(odkanon.read_trips(survey, where='sex != "<b>"'), resolution=7)
    release = odkanon.anonymize(od, Rule(trips=10))
    shown = od._repr_html_() + release._repr_html_()
    assert "<b>" not in shown
    assert f"{od.trips:,}" in shown
    assert "Every published flow is shared by at least 10 trips." in shown
    assert len(shown) < 6_000
    filtered = odkanon.read_trips(survey, where='category != "<i>" and age > 30')
    told = odkanon.build_od(filtered, resolution=7)._repr_html_()
    assert "not matched by the filter" in told
    assert "<i>" not in told
    refused = odkanon.anonymize(od, Rule(trips=10**9))
    assert "nothing is published" in refused._repr_html_()


def test_a_map_is_the_page_in_a_frame_of_its_own(survey: pa.Table) -> None:
    release = odkanon.anonymize(odkanon.build_od(odkanon.read_trips(survey), resolution=7), Rule(trips=10))
    shown = release.map(height=300)
    frame = shown._repr_html_()
    assert shown.page.startswith("<!doctype html>")
    assert html.unescape(frame.split('srcdoc="', 1)[1].split('" sandbox', 1)[0]) == shown.page
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    with pytest.raises(odkanon.InputError, match="10,000 pixels"):
        release.map(height=0)
    with pytest.raises(odkanon.RefusedError, match="no map to show"):
        odkanon.anonymize(odkanon.build_od(odkanon.read_trips(survey)), Rule(trips=10**6)).map()
