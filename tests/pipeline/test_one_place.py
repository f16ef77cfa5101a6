"""Tables by one place: residents by home and attributes, from the input to the files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from odkanon import InputError, Release, anonymize, export_release, make_survey, open_release, read_hierarchy
from odkanon.cli.commands import every_command
from odkanon.core.sql import connect
from odkanon.errors import InvalidValueError
from worlds.residents import counted, residents, tiers

pytestmark = pytest.mark.filterwarnings("ignore:.*residents are in no row:odkanon.errors.ReleaseWarning")
BY = ["age", "sex", "education"]
PEOPLE = residents(4_000)
TREE = read_hierarchy(tiers())


def ask(query: str, **tables: pa.Table) -> pa.Table:
    """Return the result of a query over some tables."""
    with connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(query).to_arrow_table()


def table_of(source: Any = PEOPLE, **options: Any) -> Release:
    given: dict[str, Any] = {"place": "home", "unit": "residents", "by": BY, "hierarchy": TREE, "k": 5} | options
    release = anonymize(source, **given)
    assert isinstance(release, Release)
    return release


def test_rows_are_counts_by_place_and_add_up() -> None:
    release = table_of()
    table = release.to_arrow()
    assert table.column_names == ["home", *BY, "residents", "weight", "at_cap"]
    assert min(table.column("residents").to_pylist()) >= 5
    assert sum(table.column("residents").to_pylist()) + release.suppressed.trips == PEOPLE.num_rows
    assert release.suppressed.trips < 0.03 * PEOPLE.num_rows


def test_the_page_has_the_counts_of_every_place_for_everybody_and_for_each_value(tmp_path: Path) -> None:
    folder = table_of().save(tmp_path / "<b>table")
    page, rows = (folder / "report.html").read_text(), pa.parquet.read_table(folder / "classes.parquet").to_pylist()
    assert "<b>table" not in page
    model = json.loads(re.search(r'id="model">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    choices = {"all": rows} | {f"{axis} = {row[axis]}": [] for axis in BY for row in rows}
    for name, found in choices.items():
        if name != "all":
            axis, value = name.split(" = ")
            found = [row for row in rows if row[axis] == value]
        expected: dict[str, int] = {}
        for row in found:
            expected[row["home"]] = expected.get(row["home"], 0) + row["residents"]
        places, counts = model["counts"][name]
        assert {model["id"][place]: count for place, count in zip(places, counts, strict=True)} == expected
    assert model["counts"].keys() == choices.keys()


def test_the_map_of_a_table_by_place_has_every_cell(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    homes = {
        "home_lat": 48.85 + 0.02 * random.standard_normal(900),
        "home_lon": 2.35 + 0.02 * random.standard_normal(900),
    }
    people = pa.table(homes | {"sex": random.choice(["f", "m"], 900)})
    folder = table_of(people, by=["sex"], hierarchy=None, resolution=8).save(tmp_path / "cells")
    zones = json.loads((folder / "zones.geojson").read_text())["features"]
    drawn = re.findall(r'<path data-zone="(\d+)"', (folder / "report.html").read_text())
    assert sorted(map(int, drawn)) == [number for number, zone in enumerate(zones) if zone["geometry"]]


def test_no_row_lists_more_than_there_are() -> None:
    table, zones = table_of(by=["sex", "education"]).to_arrow(), tiers()
    query = (
        "SELECT t.home, t.sex, t.education, any_value(t.residents) AS listed, count(*) AS n FROM rows t JOIN zones z "
        "ON t.home IN (z.municipality, z.district, z.county, 'world') JOIN people p ON p.home = z.municipality "
        "AND t.sex IN (p.sex, 'any') AND t.education IN (p.education, 'any') GROUP BY ALL"
    )
    assert table.num_rows > 100
    found = ask(query, rows=table, zones=zones, people=PEOPLE)
    over = np.subtract(found.column("listed"), found.column("n"))
    assert len(over) == table.num_rows
    assert over.max() == 0
    assert (over == 0).mean() > 0.5


@pytest.mark.parametrize(
    "options",
    [{}, {"by": []}, {"place": "cell", "hierarchy": None}, {"hierarchy": None, "resolution": 7}],
    ids=["lookup", "no attributes", "cells", "coordinates"],
)
def test_every_engine_writes_the_same_bytes(options: dict[str, Any], tmp_path: Path) -> None:
    source = PEOPLE.drop_columns(["home"]) if options.get("hierarchy", TREE) is None else PEOPLE
    saved = [
        table_of(source, engine=engine, **options).save(tmp_path / engine / "table") for engine in ("memory", "duckdb")
    ]
    for name in ("classes.csv", "classes.parquet", "zones.geojson", "release.json", "datapackage.json"):
        assert (saved[0] / name).read_bytes() == (saved[1] / name).read_bytes()


def test_no_file_speaks_of_trips_or_of_another_end(tmp_path: Path) -> None:
    folder = table_of().save(tmp_path / "table")
    assert sorted(each.name for each in folder.iterdir()) == [
        "classes.csv",
        "classes.parquet",
        "datapackage.json",
        "release.json",
        "report.html",
        "zones.geojson",
    ]
    for path in folder.iterdir():
        if path.suffix != ".parquet":
            assert not re.search(r"trip|destination|origin|flow", path.read_text(), re.IGNORECASE), path.name
    zones = json.loads((folder / "zones.geojson").read_text())["features"]
    assert {zone["properties"]["axis"] for zone in zones} == {"home"}
    assert sum(zone["properties"]["residents"] for zone in zones) == open_release(folder).measure("trips").sum()


def test_rows_that_stand_for_several_are_counted_alike() -> None:
    """Each combination once, with its number in a column of the unit, is the same table as one row a resident."""
    people = PEOPLE.select(["home", *BY])
    first, second = (table_of(each).to_arrow() for each in (people, counted(people, ["home", *BY], "residents")))
    assert first.equals(second)


def test_the_order_of_rows_does_not_matter() -> None:
    shuffled = PEOPLE.take(pa.array(np.random.default_rng(3).permutation(PEOPLE.num_rows)))
    assert table_of(shuffled).to_arrow().equals(table_of().to_arrow())


def test_a_view_is_the_sum_of_its_rows(tmp_path: Path) -> None:
    release = table_of()
    view = release.view('sex == "f"').table
    rows = release.to_arrow()
    assert view.column_names[:3] == ["home", "residents", "residents_possible"]
    women = ask("SELECT sum(residents)::BIGINT AS n FROM rows WHERE sex = 'f'", rows=rows).column("n").to_pylist()
    assert [sum(view.column("residents").to_pylist())] == women
    folder = release.view('sex == "f"').save(tmp_path / "view")
    assert "trips" not in (folder / "view.json").read_text()


def test_what_shows_flows_is_refused_with_a_reason(tmp_path: Path) -> None:
    folder = table_of().save(tmp_path / "table")
    with pytest.raises(InputError, match="between two places; table counts residents by home only"):
        export_release(folder, "flowmap", tmp_path / "flows")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"place": None}, "a unit applies to a table by one place"),
        ({"unit": "persons"}, "a unit cannot be called 'persons'"),
        ({"unit": "home"}, "place and unit are both called 'home'"),
        ({"place": "hom"}, "no column 'hom'.*did you mean 'home'"),
        ({"by": ["sex", "residents"]}, "the release has a column of that name"),
        ({"method": "odkanon", "by": []}, "published with cascade, not with odkanon"),
        ({"segment": "sex", "by": []}, "has no segments"),
        ({"columns": {"origin": "cell"}}, "has no origin"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, InvalidValueError), match=message):
        table_of(**options)


def test_a_refusal_counts_residents() -> None:
    release = table_of(PEOPLE.slice(0, 4), k=10)
    assert release.refusal is not None
    assert "4 residents" in release.refusal


def test_the_command_writes_what_python_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.parquet.write_table(PEOPLE, tmp_path / "residents.parquet")
    pyarrow.parquet.write_table(tiers(), tmp_path / "zones.parquet")
    words = [str(tmp_path / "residents.parquet"), "--place", "home", "--unit", "residents", "--k", "5"]
    words += ["--hierarchy", str(tmp_path / "zones.parquet"), "-o", str(tmp_path / "command" / "table")]
    words += [word for name in BY for word in ("--by", name)]
    every_command()["anonymize"].main(words, standalone_mode=False)
    printed = capsys.readouterr().out
    assert "4,000 residents in 60 places" in printed
    assert not re.search(r"trip|flow|destination", printed.replace("--trips", ""))
    folder = table_of().save(tmp_path / "python" / "table")
    for name in ("classes.csv", "release.json"):
        assert (folder / name).read_bytes() == (tmp_path / "command" / "table" / name).read_bytes()


def test_trips_are_unchanged_by_a_place_of_their_own() -> None:
    """A table by origin is the same as one by its cell, whatever the destinations."""
    survey = make_survey()
    starts = pa.table({"at_lat": survey["start_lat"], "at_lon": survey["start_lon"]})
    release = anonymize(starts, place="at", unit="starts", resolution=8)
    assert isinstance(release, Release)
    assert release.to_arrow().column_names == ["at", "starts", "at_cap"]
    assert release.to_arrow().column("starts").to_numpy().sum() > 0.99 * starts.num_rows
