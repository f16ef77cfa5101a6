"""Zones as polygons and flows as lines, in GeoParquet and GeoJSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.outputs import write_text
from odkanon.publish.saved import SavedRelease, import_shapely, to_shapes

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
