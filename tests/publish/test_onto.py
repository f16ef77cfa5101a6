"""A release on zones of one's own: nothing is lost, files are read by others, months have the same shape."""

from __future__ import annotations

import csv
import json
from collections import Counter
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("geopandas")
pytest.importorskip("h5py")
pytest.importorskip("openmatrix")
pytest.importorskip("shapely")

import geopandas
import h3
import numpy as np
import openmatrix
import pyarrow as pa
import pyarrow.parquet
import shapely
from hypothesis import given
from hypothesis import strategies as st

from cli.runner import odkanon, output
from odkanon import read_matrix
from odkanon.errors import InputError
from odkanon.estimate.zone_shares import WeightedPoints, read_weights, zone_shares
from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.publish.export.formats import export_release
from odkanon.publish.onto.apportionment import apportion
from odkanon.publish.onto.zone_matrix import ZoneMatrix, release_onto
from odkanon.read.tables.geo_files import ZonePolygons, read_polygons
from odkanon.read.zone_hierarchy import with_outlines
from odkanon.zoning.lookup import lookup_hierarchy
from worlds.matrices import by_mode, town
from worlds.polygons import square
from worlds.tries import tries

METHODS = ["odkanon", "atg-soft", "mondrian", "freezones", "cascade"]
RELEASES = [*METHODS, "cube"]
BOX = (2.25, 48.80, 2.45, 48.91)
"""Around most of the town."""


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("releases")
    od = town(7)
    made = {method: anonymize(od, Rule(trips=10), method=method) for method in METHODS}
    made["cube"] = anonymize(by_mode(od), Rule(trips=10), method="cascade", drop_order="place:6,mode,place")
    return {name: release.save(folder / name) for name, release in made.items()}


def voronoi(seed: int, count: int) -> ZonePolygons:
    """Zones around random points, inside the box."""
    random = np.random.default_rng(seed)
    points = shapely.multipoints(random.uniform(BOX[:2], BOX[2:], size=(count, 2)))
    cells = shapely.get_parts(shapely.voronoi_polygons(points, extend_to=shapely.box(*BOX)))
    shapes = shapely.intersection(cells, shapely.box(*BOX))
    return ZonePolygons([str(number) for number in range(1, len(shapes) + 1)], shapes)


def published(release: Path) -> dict[str, Decimal]:
    with (release / "classes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: sum((Decimal(f"{float(row[name]):.6f}") for row in rows), Decimal(0)) for name in ("trips", "weight")}


def matrices(found: ZoneMatrix) -> dict[str, Any]:
    """All cells, by what they say."""
    return {name: np.concatenate([block.values[name] for block in found.blocks()]) for name in found.names}


def total(matrix: Any) -> Decimal:
    return sum((Decimal(f"{value:.6f}") for value in matrix[matrix != 0]), Decimal(0))


@tries(12)
@given(
    seed=st.integers(0, 2**32 - 1), count=st.integers(2, 40), method=st.sampled_from(RELEASES), weighed=st.booleans()
)
def test_sums_are_kept_to_the_last_digit(
    releases: dict[str, Path], seed: int, count: int, method: str, weighed: bool
) -> None:
    random = np.random.default_rng(seed)
    lon, lat = random.uniform(BOX[:2], BOX[2:], size=(500, 2)).T
    weights = WeightedPoints(lat, lon, random.integers(0, 20, 500).astype(np.float64)) if weighed else None
    found = release_onto(releases[method], voronoi(seed, count), weights=weights)
    cells = matrices(found)
    for name in ("trips", "weight"):
        assert cells[name].shape == (count + 1, count + 1)
        assert total(cells[name]) == published(releases[method])[name]
        assert (cells[f"{name}_exact"] >= 0).all()
        assert (cells[f"{name}_exact"] <= cells[name]).all()
    assert len(found.codes) == count + 1


def test_what_lies_inside_one_zone_is_exact(releases: dict[str, Path]) -> None:
    everything = ZonePolygons(["all"], np.array([shapely.box(-5, 40, 10, 55)]))
    found = release_onto(releases["odkanon"], everything)
    assert found.table().to_pylist() == [
        {"origin": "all", "destination": "all"}
        | {name: float(published(releases["odkanon"])[name.removesuffix("_exact")]) for name in found.names}
    ]
    elsewhere = ZonePolygons(["7"], np.array([shapely.box(10, 40, 11, 41)]))
    found = release_onto(releases["odkanon"], elsewhere)
    assert found.table().column("origin").to_pylist() == [0]
    assert found.codes == ["7", "outside"]


def test_a_row_is_spread_by_area_and_by_weight() -> None:
    zone = np.array([shapely.box(2.0, 48.0, 2.4, 48.2), None])
    halves = np.array([shapely.box(1.9, 47.9, 2.1, 48.3), shapely.box(2.1, 47.9, 2.3, 48.3)])
    shares = zone_shares(zone, halves)
    assert shares.share[shares.source == 0] == pytest.approx([0.25, 0.5, 0.25], rel=1e-3)
    assert shares.target[shares.source == 1].tolist() == [2]
    people = WeightedPoints(np.array([48.1, 48.1, 48.1]), np.array([2.05, 2.15, 2.5]), np.array([3.0, 1.0, 100.0]))
    weighed = zone_shares(zone, halves, people)
    assert weighed.share[weighed.source == 0].tolist() == [0.75, 0.25]
    nobody = WeightedPoints(np.array([50.0]), np.array([2.05]), np.array([3.0]))
    assert zone_shares(zone, halves, nobody).share.tolist() == shares.share.tolist()
    zero, one = np.zeros(1, dtype=np.int64), np.array([10_000_000])
    (cells,) = apportion(zero, zero, one, one, weighed, 3).blocks()
    assert cells.units.tolist() == [[5_625_000, 1_875_000, 0], [1_875_000, 625_000, 0], [0, 0, 0]]
    assert not cells.exact.any()


def test_cells_equal_a_brute_force_over_all_rows(releases: dict[str, Path]) -> None:
    polygons = voronoi(3, 12)
    found = release_onto(releases["odkanon"], polygons)
    zones = json.loads((releases["odkanon"] / "zones.geojson").read_text())["features"]
    frame = geopandas.GeoSeries(polygons.shapes, crs="EPSG:4326").to_crs("EPSG:32631")
    share = {}
    for zone in zones:
        shape = geopandas.GeoSeries([shapely.geometry.shape(zone["geometry"])], crs="EPSG:4326").to_crs("EPSG:32631")
        parts = frame.intersection(shape[0]).area.to_numpy() / shape.area[0]
        share[zone["properties"]["axis"], zone["properties"]["id"]] = np.append(parts, 1 - parts.sum())
    expected = np.zeros((13, 13))
    with (releases["odkanon"] / "classes.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            pair = np.outer(share["origin", row["origin"]], share["destination", row["destination"]])
            expected += float(row["trips"]) * pair
    assert np.abs(matrices(found)["trips"] - expected).max() < 0.002 * expected.max()


def test_a_cube_is_spread_as_a_whole_and_by_mode(releases: dict[str, Path], tmp_path: Path) -> None:
    """Modes and what tells none add up to the whole, cell by cell; a mode has the trips that its view has."""
    cube, polygons = releases["cube"], voronoi(5, 9)
    whole = matrices(release_onto(cube, polygons))["trips"]
    rows = pyarrow.parquet.read_table(cube / "classes.parquet").to_pylist()
    told = sorted({row["mode"] for row in rows})
    assert told[0] == "any"
    assert told[-2:] == ["bus", "car"]
    parts = []
    for mode in told[1:]:
        part = matrices(release_onto(cube, polygons, where=f'mode == "{mode}"'))["trips"]
        assert total(part) == sum(row["trips"] for row in rows if row["mode"] == mode)
        parts.append(part)
    rest = whole - sum(parts)
    assert rest.sum() == pytest.approx(sum(row["trips"] for row in rows if row["mode"] == "any"))
    assert rest.min() > -0.01
    write(polygons, tmp_path / "zones.geojson")
    asked = ["--onto", "zones.geojson", "--even", "--to", "csv", "-o", "out", "--where", 'mode == "car"']
    done = odkanon("export", cube, *asked, cwd=tmp_path)
    assert done.returncode == 0, done
    assert "more trips may match" in output(done)
    with (tmp_path / "out" / "flows.csv").open(newline="", encoding="utf-8") as file:
        assert sum(Decimal(row["trips"]) for row in csv.DictReader(file)) == total(parts[-1])


def test_rows_of_polygons_stand_for_what_finer_rows_leave(tmp_path: Path) -> None:
    """A cascade of a lookup table: on its own leaves each pair gets what the finest row over it has for it."""
    zone, districts = "abcdefgh", "wwxxyyzz"
    trips = {"ac": 30, "ad": 5, "bc": 6, "bd": 4, "eg": 3, "fc": 20, "ah": 2, "ce": 5, "df": 7}
    tree = lookup_hierarchy(pa.table({"zone": [*zone], "district": [*districts], "all": ["all"] * 8}))
    shapes = {leaf: square(column, 0) for column, leaf in enumerate(zone)}
    path = tmp_path / "zones.geojson"
    features = [{"type": "Feature", "properties": {"id": leaf}, "geometry": shapes[leaf]} for leaf in zone]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    ends = [pair for pair, count in trips.items() for _ in range(count)]
    table = pa.table({"origin": [pair[0] for pair in ends], "destination": [pair[1] for pair in ends]})
    od = read_matrix(table, hierarchy=with_outlines(tree, path), engine="memory")
    release = anonymize(od, Rule(trips=10), method="cascade", allow_inference=True)
    rows = release.to_arrow().to_pylist()
    assert {("a", "c", 30), ("w", "x", 15)} < {tuple(row.values())[:3] for row in rows}
    below = {leaf: leaf for leaf in zone} | {name: zone[2 * at : 2 * at + 2] for at, name in enumerate("wxyz")}
    below["all"] = zone
    finest = {
        pair: min(
            (row for row in rows if pair[0] in below[row["origin"]] and pair[1] in below[row["destination"]]),
            key=lambda row: len(below[row["origin"]]) * len(below[row["destination"]]),
            default=None,
        )
        for pair in product(zone, zone)
    }
    own = Counter(id(row) for row in finest.values() if row is not None)
    expected = [
        [0.0 if row is None else row["trips"] / own[id(row)] for row in (finest[a, b] for b in zone)] for a in zone
    ]
    found = matrices(release_onto(release.save(tmp_path / "release"), read_polygons(path, None)))["trips"]
    assert found[:-1, :-1] == pytest.approx(np.array(expected), rel=1e-3, abs=1e-3)


def write(polygons: ZonePolygons, path: Path, crs: str = "EPSG:4326") -> Path:
    frame = geopandas.GeoDataFrame({"CODE": polygons.codes}, geometry=polygons.shapes, crs="EPSG:4326").to_crs(crs)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_file(path)
    return path


@pytest.mark.parametrize(
    ("name", "crs"),
    [("z.geojson", "EPSG:4326"), ("z.gpkg", "EPSG:2154"), ("z.shp", "EPSG:32631"), ("z.parquet", "EPSG:3035")],
)
def test_polygons_come_in_any_format_and_reference_system(tmp_path: Path, name: str, crs: str) -> None:
    polygons = voronoi(1, 20)
    found = read_polygons(write(polygons, tmp_path / name, crs), "CODE")
    assert found.codes == polygons.codes
    difference = shapely.area(shapely.symmetric_difference(found.shapes, polygons.shapes)) / shapely.area(
        polygons.shapes
    )
    assert difference.max() < 0.001


def test_two_months_have_the_same_shape_and_numbers_in_openmatrix(tmp_path: Path) -> None:
    polygons = voronoi(5, 30)
    codes = [str(number) for number in np.random.default_rng(0).permutation(30) + 101]
    path = write(ZonePolygons(codes, polygons.shapes), tmp_path / "zones.gpkg", "EPSG:2154")
    for month in (1, 2):
        release = anonymize(town(month), Rule(trips=10)).save(tmp_path / f"month{month}")
        target = tmp_path / f"month{month}.omx"
        done = odkanon("export", release, "--onto", path, "--id", "CODE", "--even", "--to", "omx", "-o", target)
        assert done.returncode == 0, done
        with openmatrix.open_file(str(target)) as file:
            assert tuple(file.shape()) == (31, 31)
            assert list(file.map_entries("zone")) == [*map(int, codes), 0]
            assert file.mapping("zone")[int(codes[3])] == 3
            assert sorted(file.list_matrices()) == ["trips", "trips_exact", "weight", "weight_exact"]
            assert np.asarray(file["trips"]).sum() == pytest.approx(float(published(release)["trips"]), abs=1e-6)
            assert (np.asarray(file["trips_exact"]) <= np.asarray(file["trips"])).all()


def test_tables_list_every_zone_in_the_order_of_the_file(releases: dict[str, Path], tmp_path: Path) -> None:
    polygons = voronoi(5, 10)
    codes = ["010", "b", "c", "far", *"defghi"]
    shapes = polygons.shapes.copy()
    shapes[3] = shapely.box(20, 20, 21, 21)
    path = write(ZonePolygons(codes, shapes), tmp_path / "zones.geojson")
    people = tmp_path / "people.csv"
    people.write_text(
        "cell,weight\n" + "".join(f"{h3.latlng_to_cell(48.85, 2.3 + n / 100, 9)},{n}\n" for n in range(9))
    )
    for to in ("csv", "parquet"):
        export_release(releases["atg-soft"], to, tmp_path / to, onto=path, code="CODE", weights=people)
    with (tmp_path / "csv/zones.csv").open(newline="") as file:
        zones = list(csv.DictReader(file))
    assert [zone["zone"] for zone in zones] == [*codes, "outside"]
    assert float(zones[3]["trips_from"]) == 0
    flows: Any = geopandas.pd.read_parquet(tmp_path / "parquet/flows.parquet")
    assert flows["trips"].sum() == pytest.approx(float(published(releases["atg-soft"])["trips"]), abs=1e-6)
    for name in ("trips_from", "trips_to", "weight_from", "weight_to"):
        measure = name.partition("_")[0]
        assert sum(Decimal(zone[name]) for zone in zones) == published(releases["atg-soft"])[measure]
    with (tmp_path / "csv/flows.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["weight"]) for line in lines] == flows["weight"].tolist()


@pytest.mark.parametrize("to", ["omx", "csv", "parquet"])
def test_cells_do_not_depend_on_how_many_are_worked_on_at_once(
    releases: dict[str, Path], tmp_path: Path, to: str
) -> None:
    path = write(voronoi(2, 12), tmp_path / "zones.geojson")
    folder = [] if to == "omx" else ["flows." + to]
    for name, at_once in (("one", 1 << 21), ("again", 1 << 21), ("few", 50)):
        with patch("odkanon.publish.onto.apportionment._MAX_CELLS", at_once):
            export_release(releases["cascade"], to, tmp_path / name, onto=path, code="CODE", even=True)
    one, again, few = (Path(tmp_path / name, *folder) for name in ("one", "again", "few"))
    assert one.read_bytes() == again.read_bytes()
    if to == "omx":
        read = [openmatrix.open_file(str(file)) for file in (one, few)]
        assert all((np.asarray(read[0][name]) == np.asarray(read[1][name])).all() for name in read[0].list_matrices())
        for file in read:
            file.close()
    elif to == "parquet":
        assert geopandas.pd.read_parquet(one).equals(geopandas.pd.read_parquet(few))
    else:
        assert one.read_bytes() == few.read_bytes()


def test_parts_of_a_zone_are_put_together(tmp_path: Path) -> None:
    shapes = np.array([shapely.box(0, 0, 1, 1), shapely.box(5, 5, 6, 6), shapely.box(1, 0, 2, 1)])
    found = read_polygons(write(ZonePolygons(["a", "b", "a"], shapes), tmp_path / "z.gpkg"))
    assert found.codes == ["a", "b"]
    assert found.numbers is None
    assert shapely.area(found.shapes).tolist() == [2, 1]


def test_codes_lose_and_gain_nothing(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"CODE": [52.0, 7.0]}, geometry=list(voronoi(1, 2).shapes), crs="EPSG:4326")
    frame.to_file(tmp_path / "z.gpkg")
    found = read_polygons(tmp_path / "z.gpkg")
    assert found.codes == ["52", "7"]
    assert found.numbers is not None
    assert ZonePolygons(["007", "8"], found.shapes).numbers is None


RING = [[2, 48], [3, 48], [3, 49], [2, 48]]
CLOSED, OPEN = (
    {"type": "Feature", "properties": {"id": at}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    for at, ring in enumerate((RING, RING[:3]))
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--onto", "zones.geojson", "--id", "COD"], "did you mean 'CODE'?"),
        (["--onto", "none.gpkg"], "there is no file"),
        (["--onto", "points.geojson"], "should hold polygons"),
        (["--onto", "text.geojson"], "cannot be read"),
        (["--onto", "open.geojson"], "should hold polygons, but row 2 is none"),
        (["--onto", "empty.geojson"], "should hold polygons, but is empty"),
        (["--id", "CODE"], "--id does not apply without --onto"),
        (["--onto", "zones.geojson", "--to", "skmob"], "choose from omx, csv, parquet"),
        (["--onto", "zones.geojson", "--weights", "bad.csv"], "row 2 has no valid coordinates"),
        (["--onto", "zones.geojson", "--weights", "worse.csv"], "should have the columns lat, lon, weight"),
        (["--to", "csv"], "is for a matrix on zones of your own"),
    ],
)
def test_what_cannot_be_done_is_said(
    releases: dict[str, Path], tmp_path: Path, options: list[str], message: str
) -> None:
    write(voronoi(1, 3), tmp_path / "zones.geojson")
    points = geopandas.GeoDataFrame({"CODE": [1]}, geometry=[shapely.Point(1, 1)], crs="EPSG:4326")
    points.to_file(tmp_path / "points.geojson")
    (tmp_path / "text.geojson").write_text("nothing")
    (tmp_path / "empty.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    (tmp_path / "open.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [CLOSED, OPEN]}))
    (tmp_path / "bad.csv").write_text("lat,lon,weight\n48,2,1\n95,2,1\n")
    (tmp_path / "worse.csv").write_text("place,weight\n1,2\n")
    to = [] if "--to" in options else ["--to", "omx"]
    done = odkanon("export", releases["odkanon"], *to, "-o", "out", *options, cwd=tmp_path)
    assert done.returncode == 2, done
    assert message in output(done)
    assert not (tmp_path / "out").exists()


def test_weights_are_read_from_points_and_cells(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("lat,lon,weight\n48.5,2.5,3\n")
    cell = h3.latlng_to_cell(48.5, 2.5, 10)
    (tmp_path / "cells.csv").write_text(f"cell,weight\n{cell},3\n")
    first, second = read_weights(tmp_path / "points.csv"), read_weights(tmp_path / "cells.csv")
    assert (first.lat[0], first.lon[0]) == pytest.approx((second.lat[0], second.lon[0]), abs=0.001)
    (tmp_path / "none.csv").write_text(f"cell,weight\n{cell},\n")
    with pytest.raises(InputError, match="no weight"):
        read_weights(tmp_path / "none.csv")
