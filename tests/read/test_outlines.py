"""Zonings that bring their own polygons: larger zones are put together from smaller ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("shapely")

import pyarrow as pa
import shapely

from cli.runner import odkanon, output
from odkanon.errors import InputError
from odkanon.read.zone_hierarchy import with_outlines
from odkanon.zoning.lookup import lookup_hierarchy

LOOKUP = pa.table({"block": ["1", "2", "3", "4"], "commune": ["x", "x", "y", "y"]})


def square(column: int) -> dict[str, Any]:
    return dict(json.loads(shapely.to_geojson(shapely.box(column, 0, column + 1, 1))))


def geojson(path: Path, key: str = "code", skip: int = 0) -> Path:
    features = [
        {"type": "Feature", "properties": {"name": f"Block {n}", key: n}, "geometry": square(n)}
        for n in range(1 + skip, 5)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_larger_zones_are_unions(tmp_path: Path) -> None:
    tree = with_outlines(lookup_hierarchy(LOOKUP), geojson(tmp_path / "zones.geojson"))
    assert tree.outlines is not None
    areas = {zone: shapely.from_geojson(json.dumps(outline)).area for zone, outline in tree.outlines.items()}
    assert areas == {"1": 1, "2": 1, "3": 1, "4": 1, "x": 2, "y": 2, "world": 4}


def test_a_zone_with_a_part_missing_has_no_outline(tmp_path: Path) -> None:
    """Half of a zone would be a lie."""
    tree = with_outlines(lookup_hierarchy(LOOKUP), geojson(tmp_path / "zones.geojson", skip=1))
    assert set(tree.outlines or {}) == {"2", "3", "4", "y"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "as a GeoJSON FeatureCollection"),
        ('{"type": "FeatureCollection", "features": []}', "has no polygons"),
        (
            json.dumps({"features": [{"properties": {"code": "9"}, "geometry": square(0)}]}),
            "no polygon .* has the code of a zone; its properties are code, and a zone is called '1'",
        ),
        (
            json.dumps({"features": [{"id": 1, "geometry": square(0)}, {"id": 1, "geometry": square(1)}]}),
            "several polygons for zone '1'",
        ),
    ],
)
def test_unusable_polygons_say_why(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "zones.geojson"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        with_outlines(lookup_hierarchy(LOOKUP), path)


def test_zone_codes_with_polygons_through_the_commands(tmp_path: Path) -> None:
    """Blocks 1 and 2 alone have too few trips, so that their commune is published, with its outline."""
    rows = [("1", "3")] * 6 + [("2", "3")] * 6 + [("4", "3")] * 20 + [("9", "3")]
    (tmp_path / "trips.csv").write_text("origin,destination\n" + "\n".join(",".join(row) for row in rows) + "\n")
    (tmp_path / "zones.csv").write_text("block,commune\n1,x\n2,x\n3,y\n4,y\n")
    polygons = geojson(tmp_path / "zones.geojson")
    common = ("anonymize", tmp_path / "trips.csv", "-o", tmp_path / "out")
    alone = odkanon(*common, "--boundaries", polygons)
    assert alone.returncode == 2
    assert "--boundaries does not apply without --hierarchy" in output(alone)
    zoning = ("--hierarchy", tmp_path / "zones.csv", "--boundaries", polygons, "--budget", 0)
    done = odkanon(*common, *zoning)
    assert done.returncode == 0, done.stderr
    assert "rejected 1 row with a zone that the lookup table does not list" in output(done)
    features = json.loads((tmp_path / "out" / "zones.geojson").read_text())["features"]
    areas = {
        (f["properties"]["axis"], f["properties"]["id"]): shapely.from_geojson(json.dumps(f["geometry"])).area
        for f in features
    }
    assert areas[("origin", "x")] == 2
    exported = odkanon("export", tmp_path / "out", "--to", "flowmap", "-o", tmp_path / "flowmap")
    assert exported.returncode == 0, exported.stderr
    assert "\nx,x,0.5,2.0\n" in (tmp_path / "flowmap" / "locations.csv").read_text()
