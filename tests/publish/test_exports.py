"""Exports, read back by other libraries: the same totals, the same ids, whatever kind of zones."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("geopandas")
pytest.importorskip("pmtiles")
pytest.importorskip("mapbox_vector_tile")
pytest.importorskip("h5py")
pytest.importorskip("openmatrix")
pytest.importorskip("pyogrio")
pytest.importorskip("shapely")

import geopandas
import h3
import mapbox_vector_tile
import numpy as np
import openmatrix
import pmtiles.reader
import pyogrio

from cli.runner import odkanon, output
from odkanon.errors import InputError
from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.publish.export.formats import FILES, export_release
from odkanon.release_format.folder import open_release
from worlds.matrices import effort, golden_od
from worlds.people import Trip, crowd, together, write

METHODS = ["odkanon", "atg-soft", "mondrian", "freezones"]  # one zoning, overlapping zones, boxes, sets of cells


@pytest.fixture(scope="module", params=METHODS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "release"
    return anonymize(golden_od("turin-3k"), Rule(trips=10), method=request.param, **effort(request.param)).save(folder)


def published(release: Path) -> dict[str, Any]:
    return dict(json.loads((release / "release.json").read_text())["published"])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_omx_is_read_by_openmatrix(release: Path, tmp_path: Path) -> None:
    (path,) = export_release(release, "omx", tmp_path / "matrix.omx")
    flows = rows(release / "classes.csv")
    with openmatrix.open_file(str(path)) as file:
        assert file.version() == b"0.2"
        (lookup,) = file.list_mappings()  # ActivitySim refuses a second one
        ids = [f"{zone:x}" if lookup == "h3" else zone.decode() for zone in file.map_entries(lookup)]
        assert tuple(file.shape()) == (len(ids), len(ids))
        assert set(ids) == {flow[axis] for flow in flows for axis in ("origin", "destination")}
        assert file.list_matrices() == ["trips", "weight"]
        for measure in ("trips", "weight"):
            matrix = np.asarray(file[measure])
            assert matrix.sum() == pytest.approx(published(release)[measure], rel=5e-4)
            flow = flows[len(flows) // 2]
            cell = matrix[ids.index(flow["origin"]), ids.index(flow["destination"])]
            assert cell == pytest.approx(float(flow[measure]))
        assert lookup == "h3" or any(zone.startswith(("d", "o")) or "+" in zone for zone in ids)


def test_a_map_of_kepler_has_the_flows_and_a_layer_over_their_columns(release: Path, tmp_path: Path) -> None:
    export_release(release, "kepler", tmp_path / "map")
    saved, table = json.loads((tmp_path / "map" / "kepler.json").read_text()), rows(tmp_path / "map" / "flows.csv")
    (dataset,), (layer,) = saved["datasets"], saved["config"]["config"]["visState"]["layers"]
    names = [field["name"] for field in dataset["data"]["fields"]]
    assert sum(row[names.index("trips")] for row in dataset["data"]["allData"]) == published(release)["trips"]
    assert len(table) == len(dataset["data"]["allData"]) == len(rows(release / "classes.csv"))
    assert set(layer["config"]["columns"].values()) <= set(names) == set(table[0])
    cells = all(h3.is_valid_cell(row["origin"]) for row in table)
    assert layer["config"]["columnMode"] == ("H3" if cells else "LAT_LNG")


def test_tiles_of_the_last_zoom_level_have_every_flow_in_the_middle(release: Path, tmp_path: Path) -> None:
    (path,) = export_release(release, "pmtiles", tmp_path / "flows.pmtiles")
    found: dict[int, set[tuple[str, str, int]]] = {}
    with path.open("rb") as file:
        header = pmtiles.reader.Reader(pmtiles.reader.MmapSource(file)).header()
        for (zoom, _, _), tile in pmtiles.reader.all_tiles(pmtiles.reader.MmapSource(file)):
            layers = mapbox_vector_tile.decode(gzip.decompress(tile))
            shown = [layers[name]["features"] for name in ("flows", "stays") if name in layers]
            flows = [each["properties"] for features in shown for each in features]
            found.setdefault(zoom, set()).update((each["origin"], each["destination"], each["trips"]) for each in flows)
    saved = open_release(release)
    sides = [header[name] / 1e7 for name in ("min_lon_e7", "min_lat_e7", "max_lon_e7", "max_lat_e7")]
    lon, lat = saved.centroids.T
    inside = (sides[0] < lon) & (lon < sides[2]) & (sides[1] < lat) & (lat < sides[3])
    here = inside[saved.zone_index.origin] & inside[saved.zone_index.destination] & (saved.measure("trips") > 0)
    columns = (saved.table.column(name).to_pylist() for name in ("origin", "destination", "trips"))
    middle = {flow for flow, shown in zip(zip(*columns, strict=True), here.tolist(), strict=True) if shown}
    assert middle
    assert middle <= found[header["max_zoom"]]
    assert len(found[header["min_zoom"]]) <= 1000


def test_geoparquet_is_read_by_geopandas(release: Path, tmp_path: Path) -> None:
    export_release(release, "geoparquet", tmp_path / "gis")
    flows = geopandas.read_parquet(tmp_path / "gis" / "flows.parquet")
    zones = geopandas.read_parquet(tmp_path / "gis" / "zones.parquet")
    for measure in ("trips", "weight"):
        assert flows[measure].sum() == pytest.approx(published(release)[measure], rel=5e-4)
        assert zones[measure].sum() == pytest.approx(2 * published(release)[measure], rel=5e-4)
    assert set(flows.geom_type) == {"LineString"}
    assert zones.crs.to_authority() == ("OGC", "CRS84")
    assert zones.geometry.is_valid.all()
    first = flows.iloc[0]
    origin = zones[(zones["axis"] == "origin") & (zones["id"] == first["origin"])].geometry.iloc[0]
    assert origin.contains(first.geometry.boundary.geoms[0] if first.geometry.length else first.geometry.centroid)


def test_geojson_is_read_by_gdal(release: Path, tmp_path: Path) -> None:
    export_release(release, "geojson", tmp_path / "gis")
    for name, factor in (("flows", 1), ("zones", 2)):
        table = pyogrio.read_dataframe(tmp_path / "gis" / f"{name}.geojson")
        assert table["trips"].sum() == factor * published(release)["trips"]


def test_geopackage_is_read_by_gdal(release: Path, tmp_path: Path) -> None:
    for name in ("one.gpkg", "two.gpkg"):
        export_release(release, "gpkg", tmp_path / name)
    assert (tmp_path / "one.gpkg").read_bytes() == (tmp_path / "two.gpkg").read_bytes()
    assert {name for name, _ in pyogrio.list_layers(tmp_path / "one.gpkg")} == {"zones", "flows"}
    for layer, factor, kind in (("flows", 1, "LineString"), ("zones", 2, "MultiPolygon")):
        table = pyogrio.read_dataframe(tmp_path / "one.gpkg", layer=layer)
        assert table["trips"].sum() == factor * published(release)["trips"]
        assert set(table.geom_type) == {kind}
        assert table.crs.to_epsg() == 4326


def test_segments_are_exported_each_by_itself(tmp_path: Path) -> None:
    trips = [Trip(person, n % 2, 2) for sex in ("Woman", "Man") for n, person in enumerate(crowd(30, sex, prefix=sex))]
    made = together(write(trips, tmp_path / "trips.parquet"), tmp_path / "parts", Rule(trips=5), ["sex"])
    shown = [part for part in made.parts if part.release is not None]
    assert shown
    written = export_release(tmp_path / "parts", "omx", tmp_path / "matrices")
    assert written[0].name == "whole.omx"
    assert len(written) == 1 + len(shown)
    tables = export_release(tmp_path / "parts", "flowmap", tmp_path / "tables")
    assert {path.parent.name for path in tables} == {path.stem for path in written}
    whole = sum(int(row["count"]) for row in rows(tmp_path / "tables" / "whole" / "flows.csv"))
    assert whole == sum(row["trips"] for row in open_release(tmp_path / "parts" / "whole").table.to_pylist())


def test_flowmap_tables_refer_to_each_other(release: Path, tmp_path: Path) -> None:
    export_release(release, "flowmap", tmp_path / "flowmap")
    locations, flows = rows(tmp_path / "flowmap" / "locations.csv"), rows(tmp_path / "flowmap" / "flows.csv")
    assert list(locations[0]) == ["id", "name", "lat", "lon"]
    assert list(flows[0]) == ["origin", "dest", "count"]
    assert {flow[end] for flow in flows for end in ("origin", "dest")} == {place["id"] for place in locations}
    assert sum(int(flow["count"]) for flow in flows) == published(release)["trips"]
    assert all(44 < float(place["lat"]) < 46 and 7 < float(place["lon"]) < 9 for place in locations)


def test_skmob_has_a_tile_for_each_end(release: Path, tmp_path: Path) -> None:
    export_release(release, "skmob", tmp_path / "skmob", measure="weight")
    tiles = geopandas.read_file(tmp_path / "skmob" / "tessellation.geojson")
    flows = rows(tmp_path / "skmob" / "flows.csv")
    assert {flow[end] for flow in flows for end in ("origin", "destination")} == set(tiles["tile_ID"])
    assert sum(float(flow["flow"]) for flow in flows) == pytest.approx(published(release)["weight"], rel=5e-4)


def test_the_command_replaces_only_what_it_may(tmp_path: Path) -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    done = odkanon("export", release, "--to", "skmob", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "out" / "mine.txt").write_text("mine")
    again = odkanon("export", release, "--to", "skmob", "-o", "out", cwd=tmp_path)
    assert again.returncode == 2
    assert "--force" in output(again)
    assert odkanon("export", release, "--to", "skmob", "-o", "out", "--force", cwd=tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*FILES["skmob"], "mine.txt"}
    assert {path.name for path in tmp_path.iterdir()} == {"out", "release", "release.recipe.json"}


def test_requests_that_cannot_be_met(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a release"):
        export_release(tmp_path, "omx", tmp_path / "matrix.omx")
    with pytest.raises(InputError, match="did you mean 'omx'"):
        export_release(tmp_path, "omxx", tmp_path / "matrix.omx")
    with pytest.raises(InputError, match="needs a file"):
        export_release(tmp_path, "omx", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="needs a folder"):
        export_release(tmp_path, "flowmap", tmp_path / "file")


def test_zones_without_outlines_are_no_obstacle_to_matrices(tmp_path: Path) -> None:
    import pyarrow as pa

    from odkanon import read_hierarchy, read_matrix

    tree = read_hierarchy(pa.table({"zone": ["é", "b"], "region": ["r", "r"]}))
    od = read_matrix(
        pa.table({"origin": ["é", "b"], "destination": ["b", "b"], "trips": [10, 20]}), hierarchy=tree, engine="memory"
    )
    saved = anonymize(od, Rule(trips=5)).save(tmp_path / "release")
    (path,) = export_release(saved, "omx", tmp_path / "matrix.omx")
    with openmatrix.open_file(str(path)) as file:
        assert [zone.decode() for zone in file.map_entries("id")] == ["b", "é"]
        assert np.asarray(file["trips"]).tolist() == [[20, 0], [10, 0]]
        assert file.list_mappings() == ["id"]
    with pytest.raises(InputError, match="2 have none"):
        export_release(saved, "flowmap", tmp_path / "flowmap")
    with pytest.raises(InputError, match="has no weight; choose from trips"):
        export_release_of_weights(saved, tmp_path)
    export_release(saved, "geoparquet", tmp_path / "gis")
    flows = geopandas.read_parquet(tmp_path / "gis" / "flows.parquet")
    assert flows["trips"].sum() == 30
    assert flows.geometry.isna().all()


def export_release_of_weights(saved: Path, tmp_path: Path) -> None:
    features = json.loads((saved / "zones.geojson").read_text())
    for feature in features["features"]:
        feature["geometry"] = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    (saved / "zones.geojson").write_text(json.dumps(features))
    try:
        export_release(saved, "skmob", tmp_path / "skmob", measure="weight")
    finally:
        for feature in features["features"]:
            feature["geometry"] = None
        (saved / "zones.geojson").write_text(json.dumps(features))


def test_one_name_for_two_places_is_told_apart(tmp_path: Path) -> None:
    saved = anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    content = json.loads((saved / "zones.geojson").read_text())
    shared = {f["properties"]["id"] for f in content["features"] if f["properties"]["axis"] == "origin"}
    feature = next(
        f for f in content["features"] if f["properties"]["axis"] == "destination" and f["properties"]["id"] in shared
    )
    ring = feature["geometry"]["coordinates"][0]
    feature["geometry"]["coordinates"] = [[[lon + 1, lat] for lon, lat in ring]]
    (saved / "zones.geojson").write_text(json.dumps(content))
    export_release(saved, "flowmap", tmp_path / "flowmap")
    ids = {place["id"] for place in rows(tmp_path / "flowmap" / "locations.csv")}
    zone = feature["properties"]["id"]
    assert {f"origin:{zone}", f"destination:{zone}"} <= ids
    flows = rows(tmp_path / "flowmap" / "flows.csv")
    assert sum(int(flow["count"]) for flow in flows) == published(saved)["trips"]
