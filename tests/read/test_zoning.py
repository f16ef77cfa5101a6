"""Trips on the polygons of a file, from files and commands: joined, counted, told, and the same on every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyogrio")
pytest.importorskip("pyproj")

import pyogrio
import shapely

import odkanon as library
from cli.runner import odkanon, output
from engine.layouts import UTM, projected
from engine.same import messy, said
from odkanon import InputError, Rule, read_matrix, read_recipe
from odkanon.read.polygon_zoning import read_zoning
from worlds.polygons import patchwork, write_zones

PARIS = (2.2, 48.8, 2.5, 48.92)


def paris_zones(path: Path, crs: str = "EPSG:4326", **more: Any) -> Path:
    """Forty zones over a part of the survey's area, in districts of west and east."""
    shapes = more.pop("shapes", None)
    shapes = patchwork(3, 40, *PARIS) if shapes is None else shapes
    east = shapely.centroid(shapes)
    codes = [f"Z{at:02}" for at in range(len(shapes))]
    district = ["east" if shapely.get_x(each) > 2.35 else "west" for each in east]
    return write_zones(path, shapes, crs, **({"code": codes, "district": district} | more))


def survey_file(folder: Path, rows: int = 4_000) -> Path:
    path = folder / "trips.parquet"
    pq.write_table(library.make_survey().slice(0, rows), path)
    return path


def flows_of(folder: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(folder / "classes.parquet")
    return list(zip(*(table.column(name).to_pylist() for name in ("origin", "destination", "trips")), strict=True))


def joined_by_hand(trips: pa.Table, shapes: Any) -> list[tuple[int, int]]:
    """Return the first polygon around both ends of each trip, one polygon after the other."""
    ends = []
    for end in ("start", "end"):
        with np.errstate(invalid="ignore"):  # numpy may see a flag that an earlier computation of the thread set
            points = shapely.points(trips.column(f"{end}_lon").to_numpy(), trips.column(f"{end}_lat").to_numpy())
        place = np.full(len(points), -1)
        for at, shape in reversed(list(enumerate(shapes))):
            place[shapely.intersects(shape, points)] = at
        ends.append(place.tolist())
    return list(zip(*ends, strict=True))


def test_a_release_on_polygons_from_the_file_to_the_audit(tmp_path: Path) -> None:
    trips, zones = survey_file(tmp_path), paris_zones(tmp_path / "zones.gpkg", UTM)
    options = ("--zoning", zones, "--id", "code", "--parent", "district")
    done = odkanon("anonymize", trips, *options, "--method", "cascade", "--k", 10, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    pairs = joined_by_hand(pq.read_table(trips), patchwork(3, 40, *PARIS))
    outside = sum(-1 in pair for pair in pairs)
    assert f"rejected {outside:,} rows with an end outside all zones" in output(done)
    flows = flows_of(tmp_path / "out")
    assert {origin for origin, _, _ in flows} & {"east", "west"}
    assert all(trips >= 10 for *_, trips in flows)
    recipe = read_recipe(tmp_path / "out")
    assert recipe is not None
    about = recipe["about"]
    assert about["published"]["trips"] + about["suppressed"]["trips"] == len(pairs) - outside
    outlines = json.loads((tmp_path / "out" / "zones.geojson").read_text())["features"]
    assert all(each["geometry"] is not None for each in outlines)
    # The matrix, and tables for planners, are between all zones of the file, whether they have trips or not.
    places = [
        each["properties"]["id"] for each in json.loads((tmp_path / "out/matrix_zones.geojson").read_text())["features"]
    ]
    assert places == sorted(pyogrio.read_dataframe(zones)["code"])
    assert set(pq.read_table(tmp_path / "out/matrix.parquet").column("origin").to_pylist()) <= set(places)
    planned = odkanon("export", tmp_path / "out", "--to", "xlsx", "-o", tmp_path / "plan.xlsx")
    assert f"between {len(places)} places" in output(planned)
    audited = odkanon("audit", tmp_path / "out", "--trips", trips, *options, "--min-trips", 10)
    assert "recount" in output(audited)
    assert not any(check in output(audited) for check in ("finding  recount", "finding  zones", "finding  totals"))
    for command in (
        ("rerun", tmp_path / "out"),
        ("export", tmp_path / "out", "--to", "geojson", "-o", tmp_path / "flows"),
        ("report", tmp_path / "out", "-o", tmp_path / "page.html"),
        ("explain", tmp_path / "out", "--trips", trips, *options, "-o", tmp_path / "loss.html"),
    ):
        again = odkanon(*command)
        assert again.returncode == 0, output(again)


def test_the_audit_joins_points_by_itself(tmp_path: Path) -> None:
    """With other polygons its counts differ from those of the release."""
    trips, zones = survey_file(tmp_path, 2_000), paris_zones(tmp_path / "zones.gpkg")
    made = odkanon("anonymize", trips, "--zoning", zones, "--id", "code", "-o", tmp_path / "out", "--budget", 0.2)
    assert made.returncode == 0, made.stderr
    other = paris_zones(tmp_path / "other.gpkg", shapes=patchwork(3, 40, *PARIS)[::-1])
    found = [
        odkanon("audit", tmp_path / "out", "--trips", trips, "--zoning", path, "--id", "code", "--json")
        for path in (zones, other)
    ]
    checks = [{each["check"] for each in json.loads(each.stdout)["result"]["findings"]} for each in found]
    assert "recount" not in checks[0]
    assert "recount" in checks[1]


@pytest.mark.parametrize("crs", [None, UTM])
def test_the_same_bytes_in_memory_and_in_duckdb(tmp_path: Path, crs: str | None) -> None:
    """A messy survey: copies of trips, also outside all zones, missing values, and points nowhere on earth."""
    zones = paris_zones(tmp_path / "zones.gpkg")
    table = messy(1_500) if crs is None else projected(1_500)
    read: dict[str, Any] = {"zoning": zones, "zone_id": "code", "crs": crs}
    memory, duckdb = (read_matrix(table, engine=engine, **read) for engine in ("memory", "duckdb"))
    assert memory.summary.source.rejected == duckdb.summary.source.rejected
    assert "with an end outside all zones" in memory.summary.source.rejected
    assert memory.summary.mean_weight == duckdb.summary.mean_weight
    for rule in (Rule(trips=5), Rule(weight=9_000.5, k=3), Rule(trips=5, persons=3)):
        for method in ("cascade", "odkanon"):
            assert said(memory, rule, {"method": method}) == said(duckdb, rule, {"method": method})


@pytest.mark.filterwarnings("ignore::odkanon.errors.ReleaseWarning")
def test_reference_systems_and_the_order_of_features_change_nothing(tmp_path: Path) -> None:
    trips = library.make_survey().slice(0, 4_000)
    shapes = patchwork(3, 40, *PARIS)
    order = np.random.default_rng(1).permutation(40)
    files = [
        paris_zones(tmp_path / "degrees.geojson", shapes=shapes),
        paris_zones(tmp_path / "metres.gpkg", "EPSG:2154", shapes=shapes),
        paris_zones(tmp_path / "mixed.gpkg", shapes=shapes[order], code=[f"Z{at:02}" for at in order]),
    ]
    rows = [
        library.anonymize(trips, k=5, protect="persons", method="cascade", zoning=file, zone_id="code")
        .to_arrow()
        .to_pylist()
        for file in files
    ]
    assert rows[0] == rows[1] == rows[2]


def test_a_cube_and_segments_on_polygons(tmp_path: Path) -> None:
    trips, zones = survey_file(tmp_path, 6_000), paris_zones(tmp_path / "zones.gpkg")
    options = ("--zoning", zones, "--id", "code", "--parent", "district")
    cube = odkanon("anonymize", trips, *options, "--by", "sex", "-o", tmp_path / "cube")
    assert cube.returncode == 0, cube.stderr
    assert "sex" in pq.read_schema(tmp_path / "cube" / "classes.parquet").names
    linked = odkanon("anonymize", trips, *options, "--segment", "sex", "--budget", 0.3, "-o", tmp_path / "parts")
    assert linked.returncode == 0, linked.stderr
    assert len(list((tmp_path / "parts").glob("*/classes.parquet"))) == 3


def test_compare_uses_the_polygons(tmp_path: Path) -> None:
    from odkanon.study.method_comparison import compare

    zones = paris_zones(tmp_path / "zones.gpkg")
    found = compare(library.make_survey().slice(0, 3_000), ["odkanon"], k=5, budget=0.2, zoning=zones, zone_id="code")
    assert found.to_pandas()["origins"].max() <= 40


def test_what_is_wrong_with_borders_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    west, gap, east = (shapely.box(x, 48.8, x + 0.1, 48.9) for x in (2.2, 2.3, 2.4))
    frame = shapely.difference(shapely.box(2.1, 48.7, 2.6, 49.0), shapely.union_all([west, gap, east]))
    wide = shapely.union(west, shapely.box(2.29, 48.8, 2.31, 48.9))
    file = write_zones(tmp_path / "zones.gpkg", np.array([frame, wide, east, gap]), code=["a", "b", "c", "b"])
    read_matrix(library.make_survey().slice(0, 500), zoning=file, zone_id="code")
    assert not caplog.text  # parts of one zone may overlap
    file = write_zones(tmp_path / "other.gpkg", np.array([frame, wide, east]), code=["a", "b", "c"])
    read_matrix(library.make_survey().slice(0, 500), zoning=file, zone_id="code")
    assert "the zones enclose a gap (73.2 km2 in all); trips there are outside all zones" in caplog.text
    caplog.clear()
    file = write_zones(tmp_path / "third.gpkg", np.array([frame, wide, east, gap]), code=["a", "b", "c", "d"])
    read_matrix(library.make_survey().slice(0, 500), zoning=file, zone_id="code")
    assert "2 zones overlap (most, 8.14 km2: b and d)" in caplog.text
    outlines = read_zoning(file, "code").tree.outlines
    assert outlines is not None
    drawn = {name: shapely.from_geojson(json.dumps(one)) for name, one in outlines.items()}
    assert drawn["d"].equals(shapely.difference(gap, wide)), "a zone is drawn where its trips are"
    assert drawn["b"].equals(wide)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "has several properties; name the one with the codes: code, district"),
        ({"zone_id": "cod"}, "has no property 'cod' (did you mean 'code'?); it has code, district"),
        ({"zone_id": "code", "zone_parents": "town"}, "has no property 'town'"),
        ({"zone_id": "code", "resolution": 8}, "resolution does not apply with zoning: the zones are your polygons"),
        ({"zone_id": "code", "within": "paris-centre"}, "within does not apply with zoning"),
        ({"zoning": None, "zone_id": "code"}, "a property of polygons does not apply without zoning"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    given = {"zoning": paris_zones(tmp_path / "zones.gpkg")} | options
    with pytest.raises(InputError) as error:
        read_matrix(library.make_survey().slice(0, 100), **given)
    assert message in str(error.value)


def test_a_zone_in_two_districts_is_named(tmp_path: Path) -> None:
    shapes = patchwork(3, 4, *PARIS)
    file = write_zones(tmp_path / "a.gpkg", shapes, code=list("1123"), district=list("xyxx"), region=list("rrrr"))
    with pytest.raises(InputError, match="parts of zone '1' lie in several district: 'x' and 'y'"):
        read_matrix(library.make_survey().slice(0, 100), zoning=file, zone_id="code", zone_parents="district")
    file = write_zones(tmp_path / "b.gpkg", shapes, code=list("1234"), district=list("xxyy"), region=list("rsrr"))
    with pytest.raises(InputError, match=r"district 'x' is in more than one region \('r', 's'\)"):
        read_matrix(library.make_survey().slice(0, 9), zoning=file, zone_id="code", zone_parents=["district", "region"])


def test_codes_of_zones_and_districts_may_be_the_same_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    numbers = [str(at) for at in range(40)]
    file = paris_zones(tmp_path / "zones.gpkg", code=numbers, district=[str(at % 3) for at in range(40)])
    od = read_matrix(library.make_survey().slice(0, 900), zoning=file, zone_id="code", zone_parents=["district"])
    assert set(od.in_memory().origins.ids[1]) == {"district 0", "district 1", "district 2"}
    assert "codes of district, such as 0, are codes of code, too" in caplog.text


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_trips_of_another_city(tmp_path: Path, engine: Any) -> None:
    zones = write_zones(tmp_path / "zones.gpkg", patchwork(3, 9, -70.8, -33.6, -70.5, -33.3), code=list("abcdefghi"))
    with pytest.raises(InputError, match=r"lie between longitude -70.80 and -70.50, latitude -33.60 and -33.30; check"):
        read_matrix(library.make_survey().slice(0, 100), zoning=zones, zone_id="code", engine=engine)


def test_tables_of_codes_are_counted_on_the_polygons_as_well(tmp_path: Path) -> None:
    zones = paris_zones(tmp_path / "zones.gpkg")
    flows = pa.table({"origin": ["Z00", "Z01"], "destination": ["Z02", "nowhere"], "trips": [12, 5]})
    od = read_matrix(flows, zoning=zones, zone_id="code", engine="memory")
    assert od.trips == 12
