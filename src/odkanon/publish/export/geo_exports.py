"""Zones as polygons and flows as lines, in GeoParquet, GeoJSON, GeoPackage and PMTiles."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.atomic_write import write_text
from odkanon.core.registry import import_extra
from odkanon.model.measures import MEASURES
from odkanon.release_format.conversions import to_shapes
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats

Geometries = npt.NDArray[Any]
_ZOOMS, _TILE = 5, 4096
_BUFFER = 1 / 64
"""How far a tile reaches beyond its sides, so that lines along them are in it."""
_FIRST_FLOWS = 500
"""How many flows the first zoom level of a web map has."""


def write_geoparquet(release: SavedRelease, folder: Path) -> None:
    """Write ``zones.parquet`` and ``flows.parquet``, both GeoParquet 1.1 in degrees (OGC:CRS84)."""
    zones = pa.Table.from_pylist([feature["properties"] for feature in release.features])
    _write_geoparquet(zones, _polygons(release), folder / "zones.parquet")
    _write_geoparquet(release.table, flow_lines(release), folder / "flows.parquet")


def write_geojson(release: SavedRelease, folder: Path) -> None:
    """Write ``zones.geojson`` and ``flows.geojson``."""
    import shapely

    lines = shapely.to_geojson(flow_lines(release))
    flows = [
        {"type": "Feature", "properties": row, "geometry": None if line is None else json.loads(line)}
        for row, line in zip(release.table.to_pylist(), lines, strict=True)
    ]
    for name, features in (("zones", release.features), ("flows", flows)):
        text = json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, allow_nan=False)
        write_text(folder / f"{name}.geojson", text + "\n")


def write_geopackage(release: SavedRelease, path: Path) -> None:
    """Write a GeoPackage with the layers ``zones`` and ``flows``, in degrees; the same bytes for the same release."""
    pyogrio = import_extra("pyogrio", purpose="GeoPackage", extra="geo")
    zones = pa.Table.from_pylist([_flat(feature["properties"]) for feature in release.features])
    layers = {
        "zones": (zones, _polygons(release), "MultiPolygon"),
        "flows": (release.table, flow_lines(release), "LineString"),
    }
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": "2000-01-01T00:00:00.000Z"})
    try:
        for name, (table, geometries, geometry_type) in layers.items():
            pyogrio.raw.write(
                str(path),
                _as_wkb(geometries, geometry_type),
                [np.asarray(table.column(each).to_numpy(zero_copy_only=False)) for each in table.column_names],
                table.column_names,
                layer=name,
                driver="GPKG",
                geometry_type=geometry_type,
                crs="EPSG:4326",
                promote_to_multi=geometry_type.startswith("Multi"),
            )
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})


def write_pmtiles(release: SavedRelease, path: Path) -> None:
    """Write a web map: PMTiles (version 3) with vector tiles of ``zones``, ``flows`` and ``stays``.

    Flows are lines, or points where these would have no length. Tiles cover the middle nine tenths of the ends of
    flows, as a few zones may span a continent. Each zoom level has the largest flows only, four times as many as the
    one before; the last has all of them.
    """
    extra: dict[str, Any] = {"purpose": "PMTiles", "extra": "tiles", "package": "pmtiles and mapbox_vector_tile"}
    writing, tile = (import_extra(f"pmtiles.{module}", **extra) for module in ("writer", "tile"))
    encode = import_extra("mapbox_vector_tile", **extra).encode
    import shapely

    release = release.with_outlines("a web map")
    index, order = release.zone_index, np.argsort(-release.measure("trips"), kind="stable")
    ends = release.centroids[np.concatenate([index.origin, index.destination])]
    (west, south), (east, north) = np.quantile(ends, [0.05, 0.95], axis=0).tolist()
    corners = _to_mercator(shapely.points([[west, north], [east, south]]))
    first = int(np.clip(np.floor(np.log2(360 / max(east - west, north - south, 1e-9))), 0, 12))
    zooms = range(first, first + _ZOOMS)
    stays = _length(release)[order] < 2 * 360 / 2 ** zooms[-1] / _TILE
    layers = {"zones": (_to_mercator(release.shapes), [{"id": zone} for zone in index.ids])}
    for name, rows, shapes in (
        ("flows", order[~stays], flow_lines(release)[order[~stays]]),
        ("stays", order[stays], shapely.points(release.centroids[index.origin[order[stays]]])),
    ):
        layers[name] = _to_mercator(shapes), release.table.take(pa.array(rows)).to_pylist()
    with path.open("wb") as file:
        writer = writing.Writer(file)
        for zoom in zooms:
            most = len(order) if zoom == zooms[-1] else _FIRST_FLOWS * 4 ** (zoom - first)
            parts = {"zones": len(index.ids), "flows": most, "stays": most}
            for (x, y), content in _tiles(layers, zoom, parts, shapely.total_bounds(corners), encode):
                writer.write_tile(tile.zxy_to_tileid(zoom, x, y), gzip.compress(content, mtime=0))
        box = {"min_lon_e7": west, "min_lat_e7": south, "max_lon_e7": east, "max_lat_e7": north}
        middle = {"center_lon_e7": (west + east) / 2, "center_lat_e7": (south + north) / 2}
        header = {name: int(degrees * 1e7) for name, degrees in (box | middle).items()}
        header |= {"min_zoom": first, "max_zoom": zooms[-1], "center_zoom": first}
        content_type = {"tile_type": tile.TileType.MVT, "tile_compression": tile.Compression.GZIP}
        columns = {name: _field(name) for name in release.table.column_names}
        fields = {"zones": {"id": "String"}, "flows": columns, "stays": columns}
        listed = [{"id": name, "fields": each, "minzoom": first, "maxzoom": zooms[-1]} for name, each in fields.items()]
        writer.finalize({**header, **content_type}, {"name": release.name, "vector_layers": listed})


def _length(release: SavedRelease) -> Floats:
    """Return the length of each flow in degrees."""
    index, place = release.zone_index, release.centroids
    length: Floats = np.abs(place[index.origin] - place[index.destination]).max(axis=1)
    return length


def _field(name: str) -> str:
    return "Number" if name in MEASURES else "String"


def _to_mercator(geometries: Geometries) -> Geometries:
    """Return geometries on the map of web tiles, the unit square with its origin in the north-west."""

    def project(points: Floats) -> Floats:
        sine = np.clip(np.sin(np.radians(points[:, 1])), -0.9999, 0.9999)
        return np.stack([points[:, 0] / 360 + 0.5, 0.5 - np.arctanh(sine) / (2 * np.pi)], axis=1)

    import shapely

    projected: Geometries = shapely.transform(geometries, project)
    return projected


def _on_tile(points: Floats, side: float, corner: tuple[int, int]) -> Floats:
    return (points / side - corner) * _TILE


def _tiles(
    layers: Mapping[str, tuple[Geometries, list[dict[str, Any]]]],
    zoom: int,
    most: Mapping[str, int],
    box: Floats,
    encode: Any,
) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield the tiles of a zoom level that meet a box and have something in them, in order."""
    import shapely

    side = 1 / 2**zoom
    trees = {name: shapely.STRtree(shapes[: most[name]]) for name, (shapes, _) in layers.items()}
    low, high = (np.floor(corner / side).astype(int) for corner in np.split(box, 2))
    for x, y in product(range(low[0], high[0] + 1), range(low[1], high[1] + 1)):
        west, north = (x - _BUFFER) * side, (y - _BUFFER) * side
        bounds = (west, north, west + (1 + 2 * _BUFFER) * side, north + (1 + 2 * _BUFFER) * side)
        around = shapely.box(*bounds)
        content = []
        for name, (shapes, properties) in layers.items():
            here = np.sort(trees[name].query(around, predicate="intersects"))
            clipped = shapely.clip_by_rect(shapes[here], *bounds)
            clipped = shapely.transform(clipped, partial(_on_tile, side=side, corner=(x, y)))
            features = [
                {"geometry": shape, "properties": properties[at]}
                for at, shape in zip(here.tolist(), clipped, strict=True)
                if not shape.is_empty
            ]
            content.append({"name": name, "features": features})
        if any(layer["features"] for layer in content):
            yield (x, y), encode(content, default_options={"y_coord_down": True, "extents": _TILE})


def _polygons(release: SavedRelease) -> Geometries:
    return to_shapes([feature["geometry"] for feature in release.features])


def _flat(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a zone with lists as text, which every program can display."""
    return {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in properties.items()}


def _as_wkb(geometries: Geometries, geometry_type: str) -> Geometries:
    import shapely

    if geometry_type == "MultiPolygon":
        single = shapely.get_type_id(geometries) == shapely.GeometryType.POLYGON
        geometries = geometries.copy()
        geometries[single] = [shapely.multipolygons([polygon]) for polygon in geometries[single]]
    return np.asarray(shapely.to_wkb(geometries), dtype=object)


def flow_lines(release: SavedRelease) -> Geometries:
    """Return a line between the centroids of the origin and the destination of each flow.

    Its length is 0 where both are the same zone, and it is missing where one has no outline.
    """
    import shapely

    centroids, index = release.centroids, release.zone_index
    ends = np.stack([centroids[index.origin], centroids[index.destination]], axis=1)
    lines = np.full(len(ends), None, dtype=object)
    known = np.isfinite(ends).all(axis=(1, 2))
    lines[known] = shapely.linestrings(ends[known])
    return lines


def _write_geoparquet(table: pa.Table, geometries: Geometries, path: Path) -> None:
    import shapely

    present = geometries[~shapely.is_missing(geometries)]
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted({geometry.geom_type for geometry in present}),
    }
    if len(present):
        column["bbox"] = [float(side) for side in shapely.total_bounds(present)]
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = table.append_column("geometry", pa.array(shapely.to_wkb(geometries), pa.binary()))
    metadata = {**(table.schema.metadata or {}), b"geo": json.dumps(geo).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)
