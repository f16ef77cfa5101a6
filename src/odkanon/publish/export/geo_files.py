"""Zones as polygons and flows as lines, in GeoParquet and GeoJSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.atomic_write import write_text
from odkanon.errors import InputError
from odkanon.release_format.conversions import import_shapely, to_shapes
from odkanon.release_format.folder import SavedRelease

Shapes = npt.NDArray[Any]


def write_geoparquet(release: SavedRelease, folder: Path) -> None:
    """Write ``zones.parquet`` and ``flows.parquet``, both GeoParquet 1.1 in degrees (OGC:CRS84)."""
    shapes = to_shapes([feature["geometry"] for feature in release.zones])
    zones = pa.Table.from_pylist([feature["properties"] for feature in release.zones])
    _write(zones, shapes, folder / "zones.parquet")
    _write(release.flows, flow_lines(release), folder / "flows.parquet")


def write_geojson(release: SavedRelease, folder: Path) -> None:
    """Write ``zones.geojson`` and ``flows.geojson``."""
    shapely = import_shapely()
    lines = shapely.to_geojson(flow_lines(release))
    flows = [
        {"type": "Feature", "properties": row, "geometry": None if line is None else json.loads(line)}
        for row, line in zip(release.flows.to_pylist(), lines, strict=True)
    ]
    for name, features in (("zones", release.zones), ("flows", flows)):
        text = json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, allow_nan=False)
        write_text(folder / f"{name}.geojson", text + "\n")


def write_geopackage(release: SavedRelease, path: Path) -> None:
    """Write a GeoPackage with the layers ``zones`` and ``flows``, in degrees; the same bytes for the same release."""
    try:
        import pyogrio
    except ImportError:
        raise InputError("GeoPackage needs pyogrio: pip install 'odkanon[geo]'") from None
    zones = pa.Table.from_pylist([_flat(feature["properties"]) for feature in release.zones])
    layers = {
        "zones": (zones, to_shapes([feature["geometry"] for feature in release.zones]), "MultiPolygon"),
        "flows": (release.flows, flow_lines(release), "LineString"),
    }
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": "2000-01-01T00:00:00.000Z"})
    try:
        for name, (table, shapes, kind) in layers.items():
            pyogrio.raw.write(
                str(path),
                _as_wkb(shapes, kind),
                [np.asarray(table.column(each).to_numpy(zero_copy_only=False)) for each in table.column_names],
                table.column_names,
                layer=name,
                driver="GPKG",
                geometry_type=kind,
                crs="EPSG:4326",
                promote_to_multi=kind.startswith("Multi"),
            )
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})


def _flat(about: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a zone with lists as texts, which every program can show."""
    return {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in about.items()}


def _as_wkb(shapes: Shapes, kind: str) -> Shapes:
    shapely = import_shapely()
    if kind == "MultiPolygon":
        single = shapely.get_type_id(shapes) == shapely.GeometryType.POLYGON
        shapes = shapes.copy()
        shapes[single] = [shapely.multipolygons([shape]) for shape in shapes[single]]
    return np.asarray(shapely.to_wkb(shapes), dtype=object)


def flow_lines(release: SavedRelease) -> Shapes:
    """Return a line from the middle of the origin to that of the destination, for each flow.

    It has no length where both are the same zone, and is missing where one has no outline.
    """
    shapely = import_shapely()
    centres, places = release.centres, release.places
    ends = np.stack([centres[places.origin], centres[places.destination]], axis=1)
    lines = np.full(len(ends), None, dtype=object)
    known = np.isfinite(ends).all(axis=(1, 2))
    lines[known] = shapely.linestrings(ends[known])
    return lines


def _write(table: pa.Table, shapes: Shapes, path: Path) -> None:
    shapely = import_shapely()
    present = shapes[~shapely.is_missing(shapes)]
    about: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted({shape.geom_type for shape in present}),
    }
    if len(present):
        about["bbox"] = [float(side) for side in shapely.total_bounds(present)]
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}}
    table = table.append_column("geometry", pa.array(shapely.to_wkb(shapes), pa.binary()))
    metadata = {**(table.schema.metadata or {}), b"geo": json.dumps(geo).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)
