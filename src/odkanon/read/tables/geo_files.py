"""Geometry as tables and zones: GeoPackage, Shapefile, GeoParquet, GeoJSON, GPX and GeoDataFrames.

Points become ``lat, lon``; lines, which are trips, ``start_lat, start_lon, end_lat, end_lon``; polygons are zones with
a code. Any reference system is converted to degrees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.parsing import parse_json
from odkanon.core.registry import import_extra
from odkanon.errors import (
    FileMissingError,
    InputError,
    InvalidValueError,
    UnknownNameError,
    UnreadableFileError,
    nearest,
)

GEOPACKAGE, SHAPEFILE = b"SQLi", b"\x00\x00\x27\x0a"
POLYGON_FILES = (".gpkg", ".shp", ".zip", ".parquet", ".geoparquet")
"""Suffixes of polygon files other than GeoJSON."""
_DEGREES = ("EPSG:4326", "OGC:CRS84")
_LONG = 1_000
"""Metres, or other units of a projection, between the points of a line that is converted to degrees."""
_POINT, _LINES, _POLYGONS = {0}, {1, 5}, {3, 6}
_TRACK, _POLYGON = "track_points", "Polygon"
_FEATURES = re.compile(rb'\{\s*(?:"[^"]*"\s*:\s*(?:"[^"]*"|[\d.]+)\s*,\s*)*"type"\s*:\s*"FeatureCollection"')
"""Start of a document that is a FeatureCollection itself, rather than one that contains some."""
Shapes = npt.NDArray[Any]


class Layer(NamedTuple):
    """Geometries with their attributes and reference system."""

    name: str
    table: pa.Table
    wkb: Shapes
    crs: str | None


@dataclass(frozen=True, eq=False)
class ZonePolygons:
    """Polygons of zones with their codes."""

    codes: list[str]
    """In file order; 52 and 52.0 are the same code."""
    shapes: Shapes
    """Outlines in degrees (longitude, latitude)."""
    parents: Mapping[str, list[str]] = field(default_factory=dict)
    """Values of further properties, by name."""

    @property
    def numbers(self) -> npt.NDArray[np.int64] | None:
        """The codes as integers; None unless all survive the conversion (007 would come back as 7)."""
        if not all(code.lstrip("-").isdigit() and str(int(code)) == code for code in self.codes):
            return None
        return np.array([int(code) for code in self.codes], dtype=np.int64)


def is_geo(begin: bytes) -> bool:
    """Return whether a file with these first bytes is read as geometry: GeoPackage, Shapefile, GPX or GeoJSON."""
    text = begin.removeprefix(b"\xef\xbb\xbf").lstrip()
    gpx = text.startswith(b"<") and b"<gpx" in text
    return begin[:4] in (GEOPACKAGE, SHAPEFILE) or gpx or _FEATURES.match(text) is not None


def is_geodataframe(source: Any) -> bool:
    """Return whether a table has geometry."""
    return hasattr(source, "geometry") and hasattr(source, "crs")


def parquet_names(path: Path) -> list[str]:
    """Return the column names of a Parquet file; DuckDB would rename one of two that differ in case only."""
    try:
        return list(pyarrow.parquet.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return []  # reading it reports the cause


def is_geoparquet(path: Path) -> bool:
    """Return whether a Parquet file has geometry."""
    try:
        return b"geo" in (pyarrow.parquet.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False  # reading it reports the cause


def read_geo(path: Path, name: str, layer: str | None) -> pa.Table:
    """Return a file of points or lines as a table with coordinates; a GPX track is named after its file."""
    read = _read_ogr(path, name, "points or lines", layer)
    values = {field: read.table.column(field) for field in read.table.column_names}
    filled = {field: column for field, column in values.items() if column.null_count < len(column)}
    if read.name == _TRACK:
        filled = {"person": pa.array([Path(name).stem] * len(read.wkb)), "time": values["time"]}
    return with_coordinates(pa.table(filled), _shapes(read.wkb), read.crs, name)


def read_geoparquet(path: Path, name: str) -> pa.Table:
    """Return GeoParquet as a table with coordinates."""
    layer = _read_geoparquet(path, name)
    return with_coordinates(layer.table, _shapes(layer.wkb), layer.crs, name)


def geodataframe_to_table(frame: Any) -> pa.Table:
    """Return a GeoDataFrame of points or lines as a table with coordinates."""
    layer = _frame_layer(frame)
    return with_coordinates(layer.table, _shapes(layer.wkb), layer.crs, layer.name)


def with_coordinates(table: pa.Table, shapes: Shapes, crs: str | None, name: str) -> pa.Table:
    """Return a table with the coordinates of points, or of the ends of lines; columns that it already has win."""
    import shapely

    types = {int(each) for each in np.unique(shapely.get_type_id(shapes)) if each >= 0}
    if types == _POINT:
        ends = {"": shapes}
    elif types and types <= _LINES:
        lines = np.array([_single_line(shape, name) for shape in shapes], dtype=object)
        ends = {"start_": shapely.get_point(lines, 0), "end_": shapely.get_point(lines, -1)}
    else:
        raise InputError(f"{name} should hold points, or lines that are trips; it holds other shapes, or none")
    for prefix, points in ends.items():
        lon, lat = _to_degrees(shapely.get_x(points), shapely.get_y(points), crs)
        for column, values in ((f"{prefix}lat", lat), (f"{prefix}lon", lon)):
            if column not in table.column_names:
                table = table.append_column(column, pa.array(values, from_pandas=True))
    return table


def _single_line(shape: Any, name: str) -> Any:
    """Return the line of a trip; start and end of a line in several parts are ambiguous."""
    if shape is None or shape.geom_type == "LineString":
        return shape
    if len(shape.geoms) != 1:
        raise InputError(f"{name} has a line in {len(shape.geoms)} parts; a trip is one line, so join or split them")
    return shape.geoms[0]


def read_polygons(
    source: Any,
    code: str | None = None,
    *,
    any_code: bool = False,
    parents: Sequence[str] = (),
    option: str | None = None,
) -> ZonePolygons:
    """Read polygons and their codes.

    Parameters
    ----------
    source : path or GeoDataFrame
        A GeoJSON, GeoPackage, Shapefile (``.shp`` or zipped) or GeoParquet file. Without a reference system it is taken
        to be in WGS 84.
    code : str, optional
        The property with the codes; optional if there is only one, or one called ``id``.
    any_code : bool
        Number the polygons instead of reading codes.
    parents : sequence of str
        Properties with the codes of larger zones, which all parts of a zone must share.
    option : str, optional
        The option that names the property with the codes, for messages.

    Notes
    -----
    Polygons with the same code are parts of one zone, which takes the place of its first part.
    """
    layer = _polygon_layer(source)
    shapes = _polygons(layer)
    if any_code:
        return ZonePolygons(list(map(str, range(len(shapes)))), shapes)
    columns = layer.table.column_names
    codes = _codes(layer, _code_column(columns, code, layer.name, option))
    above = {name: _codes(layer, _code_column(columns, name, layer.name, None)) for name in parents}
    return _merge_parts(codes, shapes, above)


def _codes(layer: Layer, name: str) -> list[str]:
    codes = [code_text(value) for value in layer.table.column(name).to_pylist()]
    absent = [number for number, text in enumerate(codes, start=1) if text in ("", "None", "nan")]
    if absent:
        raise InputError(f"{layer.name}: polygon {absent[0]} has no {name}; give every zone a code")
    return codes


def polygon_features(source: Any) -> list[dict[str, Any]]:
    """Return polygons as GeoJSON features in degrees, with all their properties."""
    layer = _polygon_layer(source)
    import shapely

    outlines = shapely.to_geojson(_polygons(layer))
    properties = layer.table.to_pylist() or [{}] * len(outlines)
    return [
        {"type": "Feature", "properties": each, "geometry": json.loads(outline)}
        for each, outline in zip(properties, outlines, strict=True)
    ]


def code_text(value: Any) -> str:
    """Return a zone code as text: 8320 and 8320.0 are the same."""
    number = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if number else str(value).strip()


def _polygon_layer(source: Any) -> Layer:
    if is_geodataframe(source):
        return _frame_layer(source)
    if not isinstance(source, str | Path):
        raise InvalidValueError.expected("polygons", "a path or a GeoDataFrame", source)
    path = Path(source)
    if not path.exists():
        raise FileMissingError.at(path)
    if path.suffix in (".parquet", ".geoparquet"):
        return _read_geoparquet(path, str(path))
    return _read_ogr(path, str(path), _POLYGON)


def _read_ogr(path: Path, name: str, content: str, asked: str | None = None) -> Layer:
    """Return the only layer of a file with the geometry that is wanted, or the one asked for."""
    pyogrio = import_extra("pyogrio", purpose="reading geometry", extra="geo")
    source = f"/vsizip/{path}" if path.suffix.lower() == ".zip" else str(path)
    try:
        geometry = {str(layer): str(shape) for layer, shape in pyogrio.list_layers(source) if shape is not None}
        fit = {
            each: shape for each, shape in geometry.items() if (_POLYGON in shape) == (content == _POLYGON)
        } or geometry
        if asked is None and len(fit) > 1 and _TRACK not in fit:
            advice = "keep only the one to read" if content == _POLYGON else "choose one"
            option = None if content == _POLYGON else "sheet NAME"
            raise InputError(f"{name} has several layers ({', '.join(fit)}); {advice}", option=option)
        layer = asked or (_TRACK if _TRACK in fit else next(iter(fit), None))
        if layer is not None and layer not in geometry:
            raise UnknownNameError(f"{name}: {UnknownNameError.among('layer', layer, geometry)}")
        about, _, wkb, values = pyogrio.raw.read(source, layer=layer)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, ValueError, IndexError) as error:
        raise UnreadableFileError.because(name, error, as_=content) from None
    columns = {
        str(field): pa.array(each, from_pandas=True) for field, each in zip(about["fields"], values, strict=True)
    }
    return Layer(layer or name, pa.table(columns), wkb, about["crs"])


def _read_geoparquet(path: Path, name: str) -> Layer:
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
        about = parse_json((table.schema.metadata or {})[b"geo"])
        primary = about["primary_column"]
        crs = about["columns"][primary].get("crs")
        wkb = np.array(table.column(primary).to_pylist(), dtype=object)
    except (OSError, pa.ArrowException, KeyError, ValueError):
        raise InputError(f"{name} is not valid GeoParquet; export it again") from None
    others = [column for column in table.column_names if column not in about["columns"]]
    return Layer(name, table.select(others), wkb, None if crs is None else json.dumps(crs))


def _frame_layer(frame: Any) -> Layer:
    geometry = frame.geometry
    table = pa.Table.from_pandas(frame.drop(columns=[geometry.name]), preserve_index=False)
    wkb = np.asarray(geometry.to_wkb().to_numpy(), dtype=object)
    return Layer("the GeoDataFrame", table, wkb, None if frame.crs is None else frame.crs.to_wkt())


def _code_column(columns: list[str], code: str | None, name: str, option: str | None) -> str:
    if code is not None and code not in columns:
        raise InputError(f"{name} has no property {code!r}{nearest(code, columns)}; it has {', '.join(columns)}")
    chosen = code or next((each for each in columns if len(columns) == 1 or each.lower() == "id"), None)
    if chosen is None:
        listed = ", ".join(columns) or "none"
        raise InputError(f"{name} has several properties; name the one with the codes: {listed}", option=option)
    return chosen


def _shapes(wkb: Shapes) -> Shapes:
    import shapely

    return np.asarray(shapely.force_2d(shapely.from_wkb(wkb)), dtype=object)


def _polygons(layer: Layer) -> Shapes:
    """Return the polygons of a layer in degrees."""
    import shapely

    shapes = shapely.force_2d(shapely.from_wkb(layer.wkb, on_invalid="ignore"))  # such as a ring that is not closed
    others = [number for number, each in enumerate(shapely.get_type_id(shapes), start=1) if each not in _POLYGONS]
    if len(shapes) == 0 or others:
        raise InputError(
            f"{layer.name} should hold polygons, but {f'row {others[0]} is none' if others else 'is empty'}"
        )
    try:
        valid = np.asarray(shapely.make_valid(shapes))
    except shapely.errors.ShapelyError as error:  # such as coordinates that are not numbers
        raise InputError(f"{layer.name} has an invalid polygon ({error})") from None

    def transform(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.stack(_to_degrees(points[:, 0], points[:, 1], layer.crs), axis=1)

    if layer.crs is not None and layer.crs not in _DEGREES:
        valid = shapely.segmentize(valid, _LONG)  # straight lines of a projection are curves in degrees
    valid = np.asarray(shapely.transform(valid, transform))
    west, south, east, north = bounds = shapely.total_bounds(valid)
    if not (np.isfinite(bounds).all() and -360 <= west <= east <= 360 and -90 <= south <= north <= 90):
        raise InputError(f"{layer.name}: the polygons are not on the globe; does the file name its reference system?")
    return valid


def _merge_parts(codes: list[str], shapes: Shapes, above: Mapping[str, list[str]]) -> ZonePolygons:
    parts: dict[str, list[int]] = {}
    for at, code in enumerate(codes):
        parts.setdefault(code, []).append(at)
    for name, parents in above.items():
        for code, own in parts.items():
            found = sorted({parents[at] for at in own})
            if len(found) > 1:
                listed = " and ".join(map(repr, found[:3]))
                raise InputError(
                    f"the parts of zone {code!r} lie in several {name}: {listed}; give each zone one {name}"
                )
    first = [own[0] for own in parts.values()]
    import shapely

    joined = [shapes[own[0]] if len(own) == 1 else shapely.union_all(shapes[own]) for own in parts.values()]
    merged = {name: [parents[at] for at in first] for name, parents in above.items()}
    return ZonePolygons(list(parts), np.array(joined, dtype=object), merged)


def _to_degrees(x: Shapes, y: Shapes, crs: str | None) -> tuple[Shapes, Shapes]:
    if crs is None or crs in _DEGREES:
        return x, y
    pyproj = import_extra("pyproj", purpose="reading geometry", extra="geo")
    transformer = pyproj.Transformer.from_crs(pyproj.CRS.from_user_input(crs), "EPSG:4326", always_xy=True)
    lon, lat = transformer.transform(x, y)
    return np.asarray(lon), np.asarray(lat)
