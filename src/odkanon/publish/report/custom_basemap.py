"""A basemap of the user's own, such as streets, from GeoJSON or PMTiles: shapes and lines, no attributes."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from odkanon.core.parsing import parse_json
from odkanon.core.registry import import_extra
from odkanon.errors import InputError, UnreadableFileError
from odkanon.estimate.town_names import UNIT
from odkanon.publish.report.basemap import shape_corners
from odkanon.publish.report.packing import PackedShape, pack_line, pack_polygons
from odkanon.read.coordinates import check_degrees

MAX_TILES = 64
MAX_POINTS = 60_000
"""About half a megabyte of a page; a file with more at one zoom level is read one level coarser."""
_MAX_LATITUDE = 85.0511
"""Of Web Mercator."""

LonLatLine = list[tuple[float, float]]


def read_basemap(path: Path, shapes: Sequence[PackedShape]) -> dict[str, list[Any]]:
    """Read the packed shapes and lines of a GeoJSON or PMTiles file, for a map of some shapes.

    Raises `InputError` if the file is missing, cannot be read, or is not in degrees.
    """
    return read_tiles(path, shapes) if path.suffix.lower() == ".pmtiles" else read_geojson(path)


def read_geojson(path: Path) -> dict[str, list[Any]]:
    """Read the packed shapes and lines of a GeoJSON file."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        geometries = list(_geometries(content))
        points = [point for geometry in geometries for point in _points(geometry["coordinates"])]
        if points:
            x, y = zip(*points, strict=True)
            check_degrees([min(x), min(y), max(x), max(y)], path)
        lines = [line for geometry in geometries for line in _line_strings(geometry)]
        return {
            "shapes": [shape for geometry in geometries if (shape := pack_polygons(geometry))],
            "lines": [pack_line(line) for line in lines],
        }
    except (OSError, ValueError, AttributeError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise UnreadableFileError.because(path, error, as_="GeoJSON") from None


def _geometries(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = content.get("type")
    if kind == "FeatureCollection":
        for feature in content["features"]:
            yield from _geometries(feature)
    elif kind == "Feature":
        if content["geometry"] is not None:
            yield from _geometries(content["geometry"])
    elif kind == "GeometryCollection":
        for geometry in content["geometries"]:
            yield from _geometries(geometry)
    elif "coordinates" in content:
        yield content
    else:
        raise ValueError(f"unknown type {kind!r}")


def _points(coordinates: list[Any]) -> Iterator[tuple[float, float]]:
    """Yield the points of a geometry, at any depth of nesting."""
    if coordinates and not isinstance(coordinates[0], list):
        yield float(coordinates[0]), float(coordinates[1])
        return
    for part in coordinates:
        yield from _points(part)


def _line_strings(geometry: dict[str, Any]) -> list[Any]:
    coordinates: list[Any] = geometry["coordinates"]
    return {"LineString": [coordinates], "MultiLineString": coordinates}.get(geometry["type"], [])


def read_tiles(path: Path, shapes: Sequence[PackedShape]) -> dict[str, list[Any]]:
    """Read the packed lines of PMTiles (version 3) with vector tiles, around the smaller half of some shapes.

    That is where the map opens. Vector tiles clip geometries at their sides; those edges are left out.
    """
    extra: dict[str, Any] = {"purpose": "PMTiles", "extra": "tiles", "package": "pmtiles and mapbox_vector_tile"}
    reading, tile = (import_extra(f"pmtiles.{module}", **extra) for module in ("reader", "tile"))
    decode = import_extra("mapbox_vector_tile", **extra).decode
    try:
        with path.open("rb") as file:
            reader = reading.Reader(reading.MmapSource(file))
            header = reader.header()
            packed, compression = header["tile_compression"], tile.Compression
            if header["tile_type"] != tile.TileType.MVT or packed not in (compression.NONE, compression.GZIP):
                raise InputError(f"{path} does not hold plain or gzipped vector tiles; convert it to these")

            def tile_lines(zoom: int, x: int, y: int) -> Iterator[LonLatLine]:
                content = reader.get(zoom, x, y)
                if content is not None:
                    plain = gzip.decompress(content) if packed == compression.GZIP else content
                    yield from _tile_lines(decode(plain, default_options={"y_coord_down": True}), zoom, x, y)

            return {"shapes": [], "lines": _lines(tile_lines, header, shapes)}
    except InputError:
        raise
    except Exception as error:
        # The reader raises errors of all types on a file that is not what its name suggests.
        raise UnreadableFileError.because(path, error, as_="PMTiles") from None


def _lines(tile_lines: Any, header: dict[str, Any], shapes: Sequence[PackedShape]) -> list[list[int]]:
    """Return the lines at the finest zoom level with few enough tiles and points."""
    box = _bounds(shapes)
    if box is None:
        return []
    for zoom in range(header["max_zoom"], header["min_zoom"] - 1, -1):
        columns, rows = tiles_covering(box, zoom)
        if len(columns) * len(rows) > MAX_TILES:
            continue
        lines = [line for x, y in product(columns, rows) for line in tile_lines(zoom, x, y)]
        if sum(map(len, lines)) <= MAX_POINTS:
            return [pack_line(line) for line in lines]
    return []


def _bounds(shapes: Sequence[PackedShape]) -> tuple[float, float, float, float] | None:
    """Return west, south, east and north of the smaller half of some shapes, in degrees."""
    boxes = []
    for shape in shapes:
        corners = np.array(list(shape_corners([shape])), dtype=np.float64) / UNIT
        boxes.append([*corners.min(axis=0), *corners.max(axis=0)])
    if not boxes:
        return None
    found = np.array(boxes)
    size = (found[:, 2] - found[:, 0]) * (found[:, 3] - found[:, 1])
    small = found[size <= np.median(size)]
    return (*small[:, :2].min(axis=0).tolist(), *small[:, 2:].max(axis=0).tolist())


def tiles_covering(box: tuple[float, float, float, float], zoom: int) -> tuple[range, range]:
    """Return the columns and rows of the tiles that cover a box."""
    count = 1 << zoom
    west, south, east, north = box

    def column(longitude: float) -> int:
        return min(count - 1, max(0, math.floor((longitude + 180) / 360 * count)))

    def row(latitude: float) -> int:
        sine = math.sin(math.radians(min(_MAX_LATITUDE, max(-_MAX_LATITUDE, latitude))))
        return min(count - 1, max(0, math.floor((0.5 - math.atanh(sine) / (2 * math.pi)) * count)))

    return range(column(west), column(east) + 1), range(row(north), row(south) + 1)


def _tile_lines(tile: dict[str, Any], zoom: int, x: int, y: int) -> Iterator[LonLatLine]:
    for layer in tile.values():
        extent = layer["extent"]
        for feature in layer["features"]:
            for line in _without_edges(feature["geometry"], extent):
                yield _to_degrees(line, extent, zoom, x, y)


def _without_edges(geometry: dict[str, Any], extent: int) -> Iterator[list[Sequence[float]]]:
    """Yield the lines of a geometry without the segments along or beyond a side of the tile."""
    coordinates = geometry["coordinates"]
    lines = {
        "LineString": [coordinates],
        "MultiLineString": coordinates,
        "Polygon": coordinates,
        "MultiPolygon": [ring for polygon in coordinates for ring in polygon] if coordinates else [],
    }.get(geometry["type"], [])
    for line in lines:
        part: list[Sequence[float]] = []
        for point in line:
            if part and _is_edge(part[-1], point, extent):
                if len(part) > 1:
                    yield part
                part = []
            part.append(point)
        if len(part) > 1:
            yield part


def _is_edge(start: Sequence[float], end: Sequence[float], extent: int) -> bool:
    return any(max(start[axis], end[axis]) <= 0 or min(start[axis], end[axis]) >= extent for axis in (0, 1))


def _to_degrees(line: Sequence[Sequence[float]], extent: int, zoom: int, x: int, y: int) -> LonLatLine:
    """Convert coordinates of a tile to longitudes and latitudes (Web Mercator)."""
    points = (np.asarray([point[:2] for point in line], dtype=np.float64) / extent + (x, y)) / 2**zoom
    latitude = np.degrees(np.arctan(np.sinh(math.pi * (1 - 2 * points[:, 1]))))
    return list(zip((points[:, 0] * 360 - 180).tolist(), latitude.tolist(), strict=True))
