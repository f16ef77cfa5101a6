"""Tables with geometry (GeoPackage, Shapefile, GeoParquet, GeoJSON, GPX, GeoDataFrame) as tables with coordinates.

A point becomes ``lat, lon``; a line, which is a trip, ``start_lat, start_lon, end_lat, end_lon``. All in degrees.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.parsing import parse_json
from odkanon.errors import InputError

GEOPACKAGE, SHAPEFILE = b"SQLi", b"\x00\x00\x27\x0a"
_NEEDS = "files with geometry need pyogrio, pyproj and shapely: pip install 'odkanon[geo]'"
_DEGREES = ("EPSG:4326", "OGC:CRS84")
_POINT, _LINES = 0, (1, 5)
_TRACK = "track_points"
_FEATURES = re.compile(rb'\{\s*(?:"[^"]*"\s*:\s*(?:"[^"]*"|[\d.]+)\s*,\s*)*"type"\s*:\s*"FeatureCollection"')
"""A document that is a collection itself; one that holds some inside is another kind."""
Shapes = npt.NDArray[Any]


def is_geo(head: bytes) -> bool:
    """Tell by its first bytes whether a file is read as geometry: GeoPackage, Shapefile, GPX or GeoJSON."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    gpx = text.startswith(b"<") and b"<gpx" in text
    return head[:4] in (GEOPACKAGE, SHAPEFILE) or gpx or _FEATURES.match(text) is not None


def read_geo(path: Path, name: str) -> pa.Table:
    """Return a file of points or lines as a table with coordinates; the tracks of a GPX are those of its name."""
    try:
        import pyogrio
        from pyogrio.raw import read
    except ImportError:
        raise InputError(_NEEDS) from None
    source = f"/vsizip/{path}" if path.suffix.lower() == ".zip" else str(path)
    try:
        layers = [str(layer) for layer, _ in pyogrio.list_layers(source)]
        layer = _TRACK if _TRACK in layers else layers[0]
        if len(layers) > 1 and layer != _TRACK:
            raise InputError(f"{name} has the layers {', '.join(layers)}; keep the one that you mean")
        about, _, wkb, values = read(source, layer=layer)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, ValueError, IndexError) as error:
        raise InputError(f"{name} cannot be read as points or lines ({error})") from None
    columns = {
        str(field): pa.array(column, from_pandas=True) for field, column in zip(about["fields"], values, strict=True)
    }
    filled = {field: column for field, column in columns.items() if column.null_count < len(column)}
    if layer == _TRACK:
        person = Path(name).stem
        filled = {"person": pa.array([person] * len(wkb)), "time": columns["time"]}
    return with_places(pa.table(filled), _shapes(wkb), about["crs"], name)


def parquet_names(path: Path) -> list[str]:
    """Return what the columns of a Parquet file are called; DuckDB would give one of two like names another."""
    try:
        return list(pyarrow.parquet.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return []  # reading it will say what is wrong with it


def is_geoparquet(path: Path) -> bool:
    """Tell whether a Parquet file has geometry, and no coordinates of its own in degrees."""
    try:
        return b"geo" in (pyarrow.parquet.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False  # reading it will say what is wrong with it


def read_geoparquet(path: Path, name: str) -> pa.Table:
    """Return GeoParquet as a table with coordinates."""
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
        about = parse_json((table.schema.metadata or {})[b"geo"])
        primary = about["primary_column"]
        crs = about["columns"][primary].get("crs")
        wkb = np.array(table.column(primary).to_pylist(), dtype=object)
    except (OSError, pa.ArrowException, KeyError, ValueError):
        raise InputError(f"{name} is not GeoParquet that can be read; write it again") from None
    others = [column for column in table.column_names if column not in about["columns"]]
    return with_places(table.select(others), _shapes(wkb), None if crs is None else json.dumps(crs), name)


def of_geodataframe(frame: Any) -> pa.Table:
    """Return a GeoDataFrame as a table with coordinates."""
    geometry = frame.geometry
    table = pa.Table.from_pandas(frame.drop(columns=[geometry.name]), preserve_index=False)
    crs = None if frame.crs is None else frame.crs.to_wkt()
    return with_places(table, np.asarray(geometry.to_numpy(), dtype=object), crs, "the GeoDataFrame")


def with_places(table: pa.Table, shapes: Shapes, crs: str | None, name: str) -> pa.Table:
    """Return a table with the coordinates of points, or of the ends of lines; those that it has itself go first."""
    try:
        import shapely
    except ImportError:
        raise InputError(_NEEDS) from None
    attributes = {int(kind) for kind in np.unique(shapely.get_type_id(shapes)) if kind >= 0}
    if attributes == {_POINT}:
        ends = {"": shapes}
    elif attributes and attributes <= {*_LINES}:
        lines = np.array([_one_line(shape, name) for shape in shapes], dtype=object)
        ends = {"start_": shapely.get_point(lines, 0), "end_": shapely.get_point(lines, -1)}
    else:
        raise InputError(f"{name} should hold points, or lines that are trips; it holds other shapes, or none")
    for prefix, points in ends.items():
        lon, lat = _in_degrees(shapely.get_x(points), shapely.get_y(points), crs)
        for column, values in ((f"{prefix}lat", lat), (f"{prefix}lon", lon)):
            if column not in table.column_names:
                table = table.append_column(column, pa.array(values, from_pandas=True))
    return table


def _one_line(shape: Any, name: str) -> Any:
    """Return the line of a trip; one in several parts has no certain beginning and end."""
    if shape is None or shape.geom_type == "LineString":
        return shape
    if len(shape.geoms) != 1:
        raise InputError(f"{name} has a line in {len(shape.geoms)} parts; a trip is one line, so join or split them")
    return shape.geoms[0]


def _shapes(wkb: Shapes) -> Shapes:
    try:
        import shapely
    except ImportError:
        raise InputError(_NEEDS) from None
    return np.asarray(shapely.force_2d(shapely.from_wkb(wkb)), dtype=object)


def _in_degrees(x: Shapes, y: Shapes, crs: str | None) -> tuple[Shapes, Shapes]:
    if crs is None or crs in _DEGREES:
        return x, y
    try:
        import pyproj
    except ImportError:
        raise InputError(_NEEDS) from None
    to_degrees = pyproj.Transformer.from_crs(pyproj.CRS.from_user_input(crs), "EPSG:4326", always_xy=True)
    lon, lat = to_degrees.transform(x, y)
    return np.asarray(lon), np.asarray(lat)
