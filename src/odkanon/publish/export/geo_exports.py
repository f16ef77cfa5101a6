"""Zones as polygons and flows as lines, in GeoParquet, GeoJSON and GeoPackage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.atomic_write import write_text
from odkanon.core.extras import import_extra
from odkanon.release_format.conversions import import_shapely, to_shapes
from odkanon.release_format.folder import SavedRelease

Geometries = npt.NDArray[Any]


def write_geoparquet(release: SavedRelease, folder: Path) -> None:
    """Write ``zones.parquet`` and ``flows.parquet``, both GeoParquet 1.1 in degrees (OGC:CRS84)."""
    zones = pa.Table.from_pylist([feature["properties"] for feature in release.features])
    _write_geoparquet(zones, _polygons(release), folder / "zones.parquet")
    _write_geoparquet(release.table, flow_lines(release), folder / "flows.parquet")


def write_geojson(release: SavedRelease, folder: Path) -> None:
    """Write ``zones.geojson`` and ``flows.geojson``."""
    shapely = import_shapely()
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


def _polygons(release: SavedRelease) -> Geometries:
    return to_shapes([feature["geometry"] for feature in release.features])


def _flat(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a zone with lists as text, which every program can display."""
    return {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in properties.items()}


def _as_wkb(geometries: Geometries, geometry_type: str) -> Geometries:
    shapely = import_shapely()
    if geometry_type == "MultiPolygon":
        single = shapely.get_type_id(geometries) == shapely.GeometryType.POLYGON
        geometries = geometries.copy()
        geometries[single] = [shapely.multipolygons([polygon]) for polygon in geometries[single]]
    return np.asarray(shapely.to_wkb(geometries), dtype=object)


def flow_lines(release: SavedRelease) -> Geometries:
    """Return a line between the centroids of the origin and the destination of each flow.

    Its length is 0 where both are the same zone, and it is missing where one has no outline.
    """
    shapely = import_shapely()
    centroids, index = release.centroids, release.zone_index
    ends = np.stack([centroids[index.origin], centroids[index.destination]], axis=1)
    lines = np.full(len(ends), None, dtype=object)
    known = np.isfinite(ends).all(axis=(1, 2))
    lines[known] = shapely.linestrings(ends[known])
    return lines


def _write_geoparquet(table: pa.Table, geometries: Geometries, path: Path) -> None:
    shapely = import_shapely()
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
