"""Streets out of a PMTiles file that the test writes itself."""

import gzip
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mapbox_vector_tile")
pytest.importorskip("pmtiles")
pytest.importorskip("shapely")

import mapbox_vector_tile
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import Writer

from odkanon.errors import InputError
from odkanon.publish.report import custom_basemap as module
from odkanon.publish.report import render
from odkanon.publish.report.custom_basemap import read_tiles, tiles_covering
from odkanon.publish.report.packing import pack_polygons
from web import made

ZOOM, COLUMN, ROW = 12, 2074, 1409
"""The tile of the middle of Paris."""
SHAPES = [pack_polygons(made.box(2.30, 48.84, 2.36, 48.88))]
STREET = {"type": "LineString", "coordinates": [[100, 100], [4000, 3000]]}
PARK = {"type": "Polygon", "coordinates": [[[-50, 500], [800, 500], [800, 900], [-50, 900], [-50, 500]]]}


def write(
    path: Path, *geometries: dict[str, Any], kind: TileType = TileType.MVT, zooms: tuple[int, ...] = (12,)
) -> Path:
    features = [{"geometry": one, "properties": {"name": "secret"}} for one in geometries]
    layer = [{"name": "streets", "features": features}]
    content = mapbox_vector_tile.encode(layer, default_options={"y_coord_down": True, "extents": 4096})
    with path.open("wb") as file:
        writer = Writer(file)
        for zoom in zooms:
            x, y = COLUMN >> (ZOOM - zoom), ROW >> (ZOOM - zoom)
            writer.write_tile(zxy_to_tileid(zoom, x, y), gzip.compress(content))
        box = {"min_lon_e7": 0, "min_lat_e7": 0, "max_lon_e7": 1, "max_lat_e7": 1}
        more = {"center_zoom": 12, "center_lon_e7": 0, "center_lat_e7": 0}
        attributes = {"tile_type": kind, "tile_compression": Compression.GZIP}
        writer.finalize({**attributes, "min_zoom": min(zooms), "max_zoom": max(zooms), **box, **more}, {})
    return path


def ends(lines: list[list[int]]) -> list[list[tuple[float, float]]]:
    found = []
    for line in lines:
        x = y = 0
        points = []
        for dx, dy in zip(line[::2], line[1::2], strict=True):
            x, y = x + dx, y + dy
            points.append((x / 1e6, y / 1e6))
        found.append(points)
    return found


def test_streets_lie_where_they_are(tmp_path: Path) -> None:
    ((start, end),) = ends(read_tiles(write(tmp_path / "streets.pmtiles", STREET), SHAPES)["lines"])
    # A tile of zoom 12 is 360 / 4096 degrees wide; north is up.
    west = COLUMN * 360 / 4096 - 180
    assert start[0] == pytest.approx(west + 100 / 4096 * 360 / 4096, abs=2e-6)
    assert end[0] > start[0]
    assert end[1] < start[1]
    covering = tiles_covering((start[0], start[1], start[0], start[1]), ZOOM)
    assert covering == (range(COLUMN, COLUMN + 1), range(ROW, ROW + 1))


def test_the_sides_of_tiles_are_no_lines(tmp_path: Path) -> None:
    (park,) = ends(read_tiles(write(tmp_path / "parks.pmtiles", PARK), SHAPES)["lines"])
    # Of four sides the one along the cut is missing.
    assert len(park) == 4


def test_too_much_for_a_page_is_read_one_zoom_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "streets.pmtiles", STREET, zooms=(11, 12))
    fine = read_tiles(path, SHAPES)["lines"]
    monkeypatch.setattr(module, "MAX_TILES", 1)
    wide = [pack_polygons(made.box(2.20, 48.84, 2.36, 48.88))]
    coarse = read_tiles(path, wide)["lines"]
    assert len(fine) == 1
    assert coarse != fine
    monkeypatch.setattr(module, "MAX_POINTS", 1)
    assert read_tiles(path, SHAPES)["lines"] == []


def test_a_page_carries_streets_and_nothing_else_of_the_file(tmp_path: Path, page_built: Path) -> None:
    folder = made.hexagons(tmp_path / "release")
    page = render([folder], basemap=write(tmp_path / "streets.pmtiles", STREET))
    assert '"beneath":{"shapes":[],"lines":[[' in page
    assert "secret" not in page.split('id="model">')[1].split("</script>")[0]


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="vector tiles"):
        read_tiles(write(tmp_path / "photos.pmtiles", STREET, kind=TileType.PNG), SHAPES)
    (tmp_path / "broken.pmtiles").write_bytes(b"PMTiles but not really" * 20)
    with pytest.raises(InputError, match="cannot be read as PMTiles"):
        read_tiles(tmp_path / "broken.pmtiles", SHAPES)
