"""The same trips in every kind of file that people have them in; each is read without an option, or refused plainly."""

from __future__ import annotations

import gzip
import io
import json
import logging
import sys
import zipfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("geopandas")
pytest.importorskip("pyogrio")
pytest.importorskip("shapely")

import geopandas
import pandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import shapely

from odkanon import (
    InputError,
    InputSpec,
    anonymize,
    audit_releases,
    points_to_trips,
    read_area,
    read_hierarchy,
    read_trips,
)
from odkanon.engine.dispatch import load
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.number_formats import FORMATS
from odkanon.read.tables.open_table import open_table
from odkanon.read.trip_checks import NO_WEIGHT
from odkanon.read.zone_hierarchy import with_outlines
from worlds.files import spreadsheet, trips_table, trips_text, write

ROWS = [line.split(",") for line in trips_text().splitlines()]
NUMBERS = slice(3, None)


def typed() -> list[dict[str, Any]]:
    header, *rows = ROWS
    return [
        {**dict(zip(header[:3], row[:3], strict=True)), **dict(zip(header[3:], map(float, row[3:]), strict=True))}
        for row in rows
    ]


def zipped(path: Path, **parts: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("_csv", ".csv").replace("MAC_", "__MACOSX/"), content)
    return path


def local(time: str, **how: Any) -> str:
    """Trips whose times are written in another way."""
    return trips_text(time=time, **how)


FILES: dict[str, Any] = {
    "csv": lambda p: write(p / "t.csv", trips_text()),
    "csv.gz": lambda p: write(p / "t.csv.gz", gzip.compress(trips_text().encode())),
    "csv without a name that says so": lambda p: write(p / "trips", trips_text()),
    "semicolons": lambda p: write(p / "t.csv", trips_text().replace(",", ";")),
    "tabs": lambda p: write(p / "t.tsv", trips_text().replace(",", "\t")),
    "pipes": lambda p: write(p / "t.txt", trips_text().replace(",", "|")),
    "quotes": lambda p: write(p / "t.csv", "\n".join(",".join(f'"{v}"' for v in row) for row in ROWS)),
    "decimal commas": lambda p: write(p / "t.csv", trips_text().replace(",", ";").replace(".", ",")),
    "quoted decimal commas": lambda p: write(
        p / "t.csv", "\n".join(",".join(f'"{v}"' for v in row) for row in [ROWS[0], *_commas()])
    ),
    "Windows": lambda p: write(p / "t.csv", b"\xef\xbb\xbf" + trips_text().replace("\n", "\r\n").encode()),
    "UTF-16": lambda p: write(p / "t.csv", trips_text().encode("utf-16")),
    "Excel's Unicode text": lambda p: write(p / "t.txt", trips_text().replace(",", "\t").encode("utf-16")),
    "day, month, year": lambda p: write(p / "t.csv", local("25/07/2024 {hour:02}:30")),
    "dots": lambda p: write(p / "t.csv", local("25.07.2024 {hour:02}:30:00")),
    "month, day, year": lambda p: write(p / "t.csv", local("07/25/2024 {hour:02}:30:00")),
    "slashes from the year on": lambda p: write(p / "t.csv", local("2024/07/25 {hour:02}:30:00")),
    "the clock alone": lambda p: write(p / "t.csv", local("{hour:02}:30")),
    "zip": lambda p: zipped(p / "t.zip", trips_csv=trips_text()),
    "zip from a Mac": lambda p: zipped(p / "t.zip", trips_csv=trips_text(), MAC_trips_csv="rubbish"),
    "parquet": lambda p: _parquet(p / "t.parquet"),
    "zipped parquet": lambda p: _zipped_parquet(p),
    "feather": lambda p: _feather(p / "t.feather"),
    "json lines": lambda p: write(p / "t.jsonl", "\n".join(map(json.dumps, typed()))),
    "json lines, gzipped": lambda p: write(p / "t.gz", gzip.compress("\n".join(map(json.dumps, typed())).encode())),
    "spreadsheet": lambda p: spreadsheet(p / "t.xlsx", [ROWS[0], *_cells()]),
    "two files": lambda p: [_part(p / "a.csv", 0, 30), _part(p / "b.csv", 30, 48)],
    "a pattern of files": lambda p: _pattern(p),
    "folder of parquet": lambda p: _parquet(p / "set" / "a.parquet").parent,
    "UTF-8 with accents": lambda p: write(p / "t.csv", accented()),
    "Windows-1252": lambda p: write(p / "t.csv", accented().encode("cp1252")),
    "Latin-1, as French programs write it": lambda p: write(
        p / "t.csv", accented().replace(",", ";").replace(".", ",").encode("latin-1")
    ),
    "UTF-16, the other way round": lambda p: write(p / "t.csv", b"\xfe\xff" + accented().encode("utf-16-be")),
    "the letter T": lambda p: write(p / "t.csv", local("2024-07-01T{hour:02}:30:00")),
    "the letter Z": lambda p: write(p / "t.csv", local("2024-07-01T{hour:02}:30:00Z")),
    "an offset": lambda p: write(p / "t.csv", local("2024-07-01 {hour:02}:30:00+02:00")),
    "days since 1900 in a spreadsheet": lambda p: spreadsheet(p / "t.xlsx", [ROWS[0], *_serials()]),
    "days since 1900 as text": lambda p: write(p / "t.csv", "\n".join(",".join(map(str, r)) for r in _serial_rows())),
    "parquet with moments": lambda p: _moments(p / "t.parquet"),
    "zipped json lines": lambda p: zipped(p / "t.zip", trips_csv="\n".join(map(json.dumps, typed()))),
    "json array": lambda p: write(p / "t.json", json.dumps(typed())),
    "json document": lambda p: write(p / "t.json", json.dumps({"v": "2", "data": {"trips": typed()}}, indent=2)),
    "geopackage": lambda p: _drawn(p, "t.gpkg"),
    "shapefile": lambda p: _drawn(p, "t.shp"),
    "zipped shapefile": lambda p: _zipped_shapes(p),
    "geojson": lambda p: _drawn(p, "t.geojson"),
    "geoparquet": lambda p: _drawn(p, "t.parquet"),
    "GeoDataFrame": lambda p: lines(),
}


ON_DISK = (
    "csv",
    "decimal commas",
    "spreadsheet",
    "days since 1900 as text",
    "json document",
    "two files",
    "geopackage",
)
"""Of each family one, for DuckDB as well; it opens them in the same way."""


def accented() -> str:
    """Trips with one column more, of which the encoding shows."""
    header, *rows = trips_text().splitlines()
    return "\n".join([f"{header},ville", *(f"{row},Évry-Courcouronnes" for row in rows)]) + "\n"


def _serials() -> list[list[Any]]:
    return [[*row[:2], _serial(row[2]), *map(float, row[3:])] for row in ROWS[1:]]


def _serial_rows() -> list[list[Any]]:
    return [ROWS[0], *_serials()]


def _serial(time: str) -> float:
    return (datetime.fromisoformat(time) - datetime(1899, 12, 30)) / timedelta(days=1)


def _moments(path: Path) -> Path:
    table = trips_table()
    at = table.column_names.index("start_time")
    moments = pa.array([datetime.fromisoformat(text) for text in table.column(at).to_pylist()], pa.timestamp("us"))
    pyarrow.parquet.write_table(table.set_column(at, "start_time", moments), path)
    return path


def lines(crs: str = "EPSG:2154") -> geopandas.GeoDataFrame:
    """The trips as lines, in the metres of France."""
    frame = trips_table().to_pandas()
    ends = frame[["start_lon", "start_lat", "end_lon", "end_lat"]].astype(float).to_numpy()
    shapes = [shapely.LineString([row[:2], row[:2] + 0.001, row[2:]]) for row in ends]
    kept = frame[["person", "sex", "start_time", "weight"]]
    return geopandas.GeoDataFrame(kept, geometry=shapes, crs="EPSG:4326").to_crs(crs)


def _drawn(folder: Path, name: str) -> Path:
    frame = lines("EPSG:4326" if name.endswith("json") else "EPSG:2154")
    (frame.to_parquet if name.endswith("parquet") else frame.to_file)(folder / name)
    return folder / name


def _zipped_shapes(folder: Path) -> Path:
    _drawn(folder, "t.shp")
    with zipfile.ZipFile(folder / "t.zip", "w") as archive:
        for path in sorted(folder.glob("t.*")):
            if path.suffix != ".zip":
                archive.write(path, path.name)
    return folder / "t.zip"


def _commas() -> list[list[str]]:
    return [[*row[:3], *(value.replace(".", ",") for value in row[3:])] for row in ROWS[1:]]


def _cells() -> list[list[Any]]:
    return [[*row[:3], *map(float, row[3:])] for row in ROWS[1:]]


def _parquet(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(trips_table(), path)
    return path


def _zipped_parquet(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "t.zip", "w") as archive:
        archive.write(_parquet(folder / "t.parquet"), "t.parquet")
    return folder / "t.zip"


def _feather(path: Path) -> Path:
    pyarrow.feather.write_feather(trips_table(), str(path))
    return path


def _part(path: Path, begin: int, end: int) -> Path:
    lines = trips_text().splitlines()
    return write(path, "\n".join([lines[0], *lines[1 + begin : 1 + end]]))


def _pattern(folder: Path) -> str:
    _part(folder / "jan.csv", 0, 24)
    _part(folder / "feb.csv", 24, 48)
    return str(folder / "*.csv")


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_holds_the_same_trips(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    source = FILES[kind](tmp_path)
    trips = read_trips(source)
    plain = read_trips(trips_table())
    assert (len(trips), trips.source.rows, dict(trips.source.rejected)) == (48, 48, {})
    for name in ("start_lat", "start_lon", "end_lat", "end_lon", "sex"):
        found, expected = (sorted(each.table.column(name).to_pylist()) for each in (trips, plain))
        assert found == (expected if name == "sex" else pytest.approx(expected, abs=1e-9))
    assert trips.weight is not None
    assert sum(trips.weight.tolist()) / trips.scale == 48 * 11
    assert len(set(trips.contributors["persons"].tolist())) == 48
    hours = [time.hour for time in trips.table.column("start_time").to_pylist()]
    assert sorted(hours) == sorted([*range(24)] * 2)
    if kind in ON_DISK:
        assert spec_to_matrix(InputSpec(source, where="hour in [7, 8]")).trips == 4
        assert load(InputSpec(source, where="hour in [7, 8]"), engine="duckdb").summary.trips == 4


@pytest.mark.parametrize("hour", ["%I:%M %p", "%I:%M:%S %p"])
def test_mornings_and_evenings(tmp_path: Path, hour: str) -> None:
    lines = trips_text().splitlines()
    twelve = [
        line.replace("2024-07-01", "07/25/2024").replace(":30:00", ":30:00 AM" if "%S" in hour else ":30 AM")
        for line in lines
    ]
    path = write(tmp_path / "t.csv", "\n".join(twelve[:1] + [line for line in twelve[1:] if " 00:" not in line][:11]))
    assert len(read_trips(path, where="hour < 12")) == 11
    evening = write(tmp_path / "e.csv", path.read_text().replace(" AM", " PM"))
    assert len(read_trips(evening, where="hour > 12")) == 11


def test_a_date_that_can_be_read_in_two_ways_is_refused_with_both(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", trips_text(time="03/04/2024 {hour:02}:30"))
    with pytest.raises(InputError, match=r"'03/04/2024 00:30'.*03 April 2024 \(%d/%m/%Y %H:%M\) or 04 March 2024"):
        read_trips(path)
    first = read_trips(path, time_format="%d/%m/%Y %H:%M").table.column("start_time")[0].as_py()
    assert (first.month, first.day) == (4, 3)
    # Far down, one line settles it.
    late = write(
        tmp_path / "l.csv",
        trips_text(1500, time="03/04/2024 {hour:02}:30") + trips_text(1, time="13/04/2024 08:00").splitlines()[1],
    )
    assert read_trips(late).table.column("start_time")[0].as_py().month == 4


def test_what_was_understood_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    content = trips_text(time="25/07/2024 {hour:02}:30").replace(",", ";").replace(".", ",")
    read_trips(write(tmp_path / "t.csv", content))
    assert "numbers are read with a decimal comma (48,8566)" in caplog.text
    assert "times in start_time are read as %d/%m/%Y %H:%M" in caplog.text


def test_where_the_comma_is_decimal_a_point_is_not_a_number(tmp_path: Path) -> None:
    """1.234 would be 1234 in such a file; nobody knows."""
    content = trips_text().replace(",", ";").replace(".", ",").replace(";11\n", ";1.234\n")
    trips = read_trips(write(tmp_path / "t.csv", content))
    ((reason, part),) = trips.source.rejected.items()
    assert (reason, part.rows) == ("with a weight that is not a finite number", 16)


def test_columns_in_another_language_are_named_ready_to_paste(tmp_path: Path) -> None:
    header = "ID_Hogar;ID_Persona;HoraIni;LatOrigen;LonOrigen;LatDestino;LonDestino;Edad;FactorExpansion"
    path = write(tmp_path / "viajes.csv", f"{header}\nh;p;07:00;-33,4;-70,6;-33,5;-70,7;40;1,5\n")
    with pytest.raises(
        InputError, match="has no column called start_lat, start_lon, end_lat, end_lon; others"
    ) as error:
        read_trips(path)
    assert error.value.option is not None
    named = dict(part.split("=") for part in error.value.option.removeprefix("column ").split(" --column "))
    assert named == {
        "start_time": "HoraIni",
        "start_lat": "LatOrigen",
        "start_lon": "LonOrigen",
        "end_lat": "LatDestino",
        "end_lon": "LonDestino",
        "household": "ID_Hogar",
        "person": "ID_Persona",
        "weight": "FactorExpansion",
    }


def test_a_note_beside_the_table_of_an_archive_is_no_table(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("readme.txt", "Notes on the survey.")
        archive.writestr("trips.csv", trips_text())
    assert len(read_trips(tmp_path / "t.zip")) == 48


@pytest.mark.filterwarnings("ignore::odkanon.errors.ReleaseWarning")
def test_the_sheet_with_trips_is_read(tmp_path: Path) -> None:
    """Beside a code book the trips are found; of two sheets with trips, or where no name is known, one is chosen."""
    codes: list[list[Any]] = [["variable", "code", "meaning"], ["mode", 1, "car"]]
    book = spreadsheet(tmp_path / "book.xlsx", codes, ROWS, [["notes"]])
    assert len(read_trips(book)) == len(ROWS) - 1
    saved = anonymize(book, k=2, protect=["participants"]).save(tmp_path / "release")
    assert audit_releases([saved], trips=InputSpec(book)).clean
    both = spreadsheet(tmp_path / "both.xlsx", ROWS, ROWS[:6])
    with pytest.raises(InputError, match="2 of them look like trips; choose one"):
        read_trips(both)
    assert spec_to_matrix(InputSpec(both, sheet="S2")).trips == 5
    with pytest.raises(InputError, match=r"unknown sheet with rows 'S3'.*choose from S1, S2"):
        spec_to_matrix(InputSpec(both, sheet="S3"))
    own: list[list[Any]] = [["a", "b", "c", "d", "e", ""], *([48.8, 2.3, 48.9, 2.4, "p", ""] for _ in range(12))]
    mapped = dict(zip(("start_lat", "start_lon", "end_lat", "end_lon"), "abcd", strict=True))
    assert len(read_trips(spreadsheet(tmp_path / "own.xlsx", codes, own), columns=mapped)) == 12
    june = spreadsheet(tmp_path / "june.xlsx", ROWS[:6], codes)
    assert spec_to_matrix(InputSpec([book, june])).source.rows == len(ROWS) + 4


def test_a_declared_decimal_sign_settles_it(tmp_path: Path) -> None:
    header, *lines = trips_text().replace(",", ";").replace(".", ",").splitlines()
    lines[0] = trips_text(1).splitlines()[1].replace(",", ";")
    path = write(tmp_path / "t.csv", "\n".join([header, *lines]))
    assert len(read_trips(path, decimal=",")) == 47
    # Undeclared, commas and points together are in doubt: points are numbers, and the others are counted.
    assert len(read_trips(path)) == 1
    with pytest.raises(InputError, match="the decimal separator must be"):
        InputSpec(path, decimal=";")


def test_times_that_nothing_needs_cost_no_trip(tmp_path: Path) -> None:
    """Without persons there are no copies to look for; a filter by time does need them."""
    content = trips_text(time="sometime {hour}").replace("person", "ride", 1)
    path = write(tmp_path / "t.csv", content)
    assert len(read_trips(path)) == 48
    assert load(InputSpec(path), engine="duckdb").summary.trips == 48
    with pytest.raises(InputError, match="48 whose start_time cannot be read"):
        read_trips(path, where="hour == 7")
    with pytest.raises(InputError, match="no usable row"):
        read_trips(write(tmp_path / "p.csv", trips_text(time="sometime {hour}")))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: zipped(p / "t.zip", a_csv="x", b_csv="y"), "should contain one table, but contains a.csv, b.csv"),
        (lambda p: write(p / "t.zip", b"PK\x03\x04 and nothing else"), "cannot be unpacked"),
        (
            lambda p: spreadsheet(p / "t.xlsx", [["a"], [1]], [["b"], [2]]),
            "'S1', 'S2'., and none of them looks",
        ),
        (lambda p: spreadsheet(p / "t.xlsx", [["a", "a"], [1, 2]]), "has column 'a' twice"),
        (lambda p: write(p / "t.jsonl", '{"a": 1}\n{"a": '), "t.jsonl cannot be read"),
        (lambda p: write(p / "t.arrow", b"ARROW1 and nothing else"), "t.arrow cannot be read"),
        (lambda p: [write(p / "a.csv", trips_text()), write(p / "b.csv", "x,y\n1,2\n")], "have different columns"),
        (lambda p: [write(p / "a.csv", trips_text()), p / "a.csv"], "is listed twice"),
        (lambda p: [write(p / "a.csv", trips_text()), _parquet(p / "b.parquet")], "files of several types"),
        (lambda p: p / "*.csv", "no file that matches"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_trips(make(tmp_path))


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_refusal_shows_one_value_and_its_line(tmp_path: Path, engine: Any) -> None:
    path = write(tmp_path / "t.csv", trips_text().replace("48.8566", "north"))
    with pytest.raises(
        InputError, match=r"48 with coordinates that are not numbers\); for instance in line 2: start_lat = 'north'"
    ):
        load(InputSpec(path), engine=engine)
    metres = write(tmp_path / "m.csv", trips_text().replace("48.8566", "6861000"))
    with pytest.raises(InputError, match=r"for instance in line 2: start_lat = '6861000'"):
        load(InputSpec(metres), engine=engine)


def test_there_are_forty_kinds() -> None:
    assert len(FILES) >= 40


MDS = {
    "trip_id": "{n}",
    "device_id": "d",
    "start_time": 1719815400000,
    "end_time": 1719817200000,
    "start_location": {"lat": 48.8566, "lng": 2.3522},
    "end_location": {"lat": 48.86, "lng": 2.36},
}
ROUTE = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {"timestamp": 1}, "geometry": {"type": "Point", "coordinates": place}}
        for place in ([2.3522, 48.8566], [2.3, 48.8], [2.36, 48.86])
    ],
}


@pytest.mark.parametrize("version", ["1", "2", "2 as CSV"])
def test_trips_of_the_mobility_data_specification(tmp_path: Path, version: str) -> None:
    rides: list[dict[str, Any]] = [{**MDS, "trip_id": str(n)} for n in range(12)]
    if version == "1":
        rides = [
            {"route": ROUTE, **{name: value for name, value in ride.items() if "location" not in name}}
            for ride in rides
        ]
    if version.endswith("CSV"):
        texts = [[json.dumps(v) if isinstance(v, dict) else str(v) for v in ride.values()] for ride in rides]
        quoted = [",".join('"' + text.replace('"', '""') + '"' for text in row) for row in texts]
        path = write(tmp_path / "t.csv", "\n".join([",".join(MDS), *quoted]))
    else:
        path = write(tmp_path / "t.json", json.dumps({"version": "2.0.0", "data": {"trips": rides}}))
    trips = read_trips(path, timezone="Europe/Paris")
    assert len(trips) == 12
    first = {name: trips.table.column(name)[0].as_py() for name in trips.table.column_names}
    assert [first[name] for name in ("start_lat", "start_lon", "end_lat", "end_lon")] == [48.8566, 2.3522, 48.86, 2.36]
    assert (first["start_time"].hour, first["start_time"].minute) == (8, 30)
    assert "persons" not in trips.contributors


def test_points_from_tracks_and_layers(tmp_path: Path) -> None:
    places = [(48.85, 2.35), (48.851, 2.351), (48.852, 2.352)]
    written = "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><time>2024-07-01T08:0{n}:00Z</time></trkpt>'
        for n, (lat, lon) in enumerate(places)
    )
    track = f'<gpx version="1.1" creator="t" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{written}</trkseg></trk></gpx>'
    gpx = write(tmp_path / "ann.gpx", f'<?xml version="1.0"?>\n{track}')
    layer = geopandas.GeoDataFrame(
        {"person": ["ann"] * 3, "time": [f"2024-07-01T08:0{n}:00Z" for n in range(3)]},
        geometry=[shapely.Point(lon, lat) for lat, lon in places],
        crs="EPSG:4326",
    ).to_crs("EPSG:2154")
    layer.to_file(tmp_path / "points.gpkg")
    for source in (gpx, tmp_path / "points.gpkg", layer):
        trips, account = points_to_trips(source)
        assert account.points == 3
        (trip,) = trips.to_pylist()
        assert trip["person"] == "ann"
        assert (trip["start_lat"], trip["end_lon"]) == pytest.approx((48.85, 2.352), abs=1e-9)


def test_shapes_that_are_no_trips(tmp_path: Path) -> None:
    square = geopandas.GeoDataFrame({"a": [1]}, geometry=[shapely.box(2, 48, 3, 49)], crs="EPSG:4326")
    square.to_file(tmp_path / "zones.gpkg")
    with pytest.raises(InputError, match="should hold points, or lines"):
        read_trips(tmp_path / "zones.gpkg")
    parts = shapely.MultiLineString([[(2, 48), (2, 49)], [(3, 48), (3, 49)]])
    with pytest.raises(InputError, match="a line in 2 parts"):
        read_trips(geopandas.GeoDataFrame({"a": [1]}, geometry=[parts], crs="EPSG:4326"))
    area = read_area(str(tmp_path / "zones.gpkg"))
    assert area.shape.bounds == (2, 48, 3, 49)


def test_outlines_of_zones_from_a_geopackage(tmp_path: Path) -> None:
    squares = geopandas.GeoDataFrame(
        {"code": ["a", "b"]}, geometry=[shapely.box(2, 48, 3, 49), shapely.box(3, 48, 4, 49)], crs="EPSG:4326"
    )
    squares.to_crs("EPSG:2154").to_file(tmp_path / "zones.gpkg")
    tree = read_hierarchy(pa.table({"zone": ["a", "b"], "district": ["x", "x"]}))
    outlines = with_outlines(tree, tmp_path / "zones.gpkg").outlines
    assert outlines is not None
    assert sorted(outlines) == ["a", "b", "x"]
    assert shapely.from_geojson(json.dumps(outlines["x"])).bounds == pytest.approx(
        (2, 48, 4, 49), abs=2e-3
    )  # straight lines there bend here


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (trips_text().encode(), gzip.compress(trips_text().encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        trips = read_trips("-")
        assert len(trips) == 48
    assert InputSpec("-").name == "-"


def test_lookup_tables_come_in_every_kind_too(tmp_path: Path) -> None:
    path = spreadsheet(tmp_path / "zones.xlsx", [["leaf", "parent"], [7, "x"], [8, "x"]])
    assert read_hierarchy(path).leaves.tolist() == ["7", "8"]


def test_every_format_tells_the_days_of_a_year_apart() -> None:
    assert len(set(FORMATS)) == len(FORMATS)
    assert pa.__version__


@pytest.mark.parametrize("indent", [None, 1])
def test_objects_of_an_array_need_not_all_have_each_column(tmp_path: Path, indent: int | None) -> None:
    """Columns that the first object does not have were lost, weights among them."""
    rows = [{**each, "weight": 2.5} if at else dict(each) for at, each in enumerate(typed())]
    _ = rows[0].pop("weight", None)
    trips = read_trips(write(tmp_path / "t.json", json.dumps(rows, indent=indent)))
    assert trips.weight is not None
    assert trips.source.rejected[NO_WEIGHT].rows == 1
    mixed = [{"person": "a"}, {"person": 1}]
    with pytest.raises(InputError, match=r"'person' of .*t\.json has values of several types"):
        open_table(write(tmp_path / "t.json", json.dumps(mixed, indent=1)))


@pytest.mark.parametrize("names", [("weight", "weight"), ("weight", "WEIGHT"), ("WEIGHT", "weight")])
def test_two_columns_of_one_name_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    """The first was taken without a word, as databases do not tell cases apart."""
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([9.0])], names=list(names))
    parquet, feather = tmp_path / "t.parquet", tmp_path / "t.feather"
    pyarrow.parquet.write_table(table, parquet)
    pyarrow.feather.write_feather(table, feather)
    pyarrow.parquet.write_table(table.rename_columns(["weight", "other"]), tmp_path / "first.parquet")
    several = [tmp_path / "first.parquet", parquet]
    text = write(tmp_path / "t.csv", f"{','.join(names)}\n1,9\n")
    for source in (table, parquet, feather, several, text):
        with pytest.raises(InputError, match=r"twice(, as 'weight')?; give each column one name"):
            open_table(source)


def test_a_data_frame_that_is_no_table_is_refused() -> None:
    frame = pandas.DataFrame([[1, 2]], columns=["weight", "weight"])
    for each in (frame, pandas.DataFrame({"person": [2**70]}), pandas.DataFrame({"weight": [1 + 2j]})):
        with pytest.raises(InputError, match="an object of type DataFrame cannot be read as a table"):
            open_table(each)


def test_large_numbers_of_a_spreadsheet_are_numbers(tmp_path: Path) -> None:
    table = open_table(spreadsheet(tmp_path / "t.xlsx", [["person", "weight"], [1e20, 1], [2, 2**60]]))
    assert table.fetch({name: f'"{name}"' for name in table.columns}).to_pydict() == {
        "person": [1e20, 2.0],
        "weight": [1, 2**60],
    }
