"""Streets out of a PMTiles file of the user's: the lines in view, at one zoom, few enough for a page.

Vector tiles cut what they draw at their sides; those cuts are no lines of the world and are left out.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from odkanon.errors import InputError
from odkanon.publish.report.basemap import UNIT, corners_of
from odkanon.publish.report.page_model import Shape, pack_line

MOST_TILES = 64
MOST_POINTS = 60_000
"""About half a megabyte of a page; a file with more at one zoom is read one zoom coarser."""
_NORTH = 85.0511

Line = list[tuple[float, float]]


def read_tiles(path: Path, shapes: Sequence[Shape]) -> dict[str, list[Any]]:
    """Read the lines of vector tiles around some shapes: no attributes, no points, nothing from any network.

    Parameters
    ----------
    path : Path
        A PMTiles file (version 3) with vector tiles.
    shapes : sequence of Shape
        What the page shows. Tiles are read around the smaller half of them, where the map opens.

    Returns
    -------
    dict
        As `odkanon.publish.report.basemap.read_beneath` returns it.

    Raises
    ------
    InputError
        If the file is not PMTiles with vector tiles, or what reads them is not installed.
    """
    try:
        from pmtiles.reader import MmapSource, Reader
        from pmtiles.tile import Compression, TileType
    except ImportError:
        raise InputError("PMTiles need two more packages: pip install 'odkanon[tiles]'") from None
    try:
        with path.open("rb") as file:
            reader = Reader(MmapSource(file))
            header = reader.header()
            packed = header["tile_compression"]
            if header["tile_type"] != TileType.MVT or packed not in (Compression.NONE, Compression.GZIP):
                raise InputError(f"{path} does not hold plain or gzipped vector tiles, which is what can be drawn")
            return {"shapes": [], "lines": _lines(reader, header, shapes, zipped=packed == Compression.GZIP)}
    except InputError:
        raise
    except Exception as error:
        # Whatever its reader stumbles over: the file is not what its name says.
        raise InputError(f"{path} cannot be read as PMTiles ({error})") from None


def _lines(reader: Any, header: dict[str, Any], shapes: Sequence[Shape], *, zipped: bool) -> list[list[int]]:
    box = _view(shapes)
    if box is None:
        return []
    for zoom in range(header["max_zoom"], header["min_zoom"] - 1, -1):
        columns, rows = _covering(box, zoom)
        if len(columns) * len(rows) > MOST_TILES:
            continue
        lines = [line for x, y in product(columns, rows) for line in _tile(reader, zoom, x, y, zipped=zipped)]
        if sum(map(len, lines)) <= MOST_POINTS:
            return [pack_line(line) for line in lines]
    return []


def _view(shapes: Sequence[Shape]) -> tuple[float, float, float, float] | None:
    """Return west, south, east and north of the smaller half of some shapes, in degrees."""
    boxes = []
    for shape in shapes:
        corners = np.array(list(corners_of([shape])), dtype=np.float64) / UNIT
        boxes.append([*corners.min(axis=0), *corners.max(axis=0)])
    if not boxes:
        return None
    found = np.array(boxes)
    size = (found[:, 2] - found[:, 0]) * (found[:, 3] - found[:, 1])
    small = found[size <= np.median(size)]
    return (*small[:, :2].min(axis=0).tolist(), *small[:, 2:].max(axis=0).tolist())


def _covering(box: tuple[float, float, float, float], zoom: int) -> tuple[range, range]:
    """Return the columns and rows of tiles over a box."""
    many = 1 << zoom
    west, south, east, north = box

    def column(longitude: float) -> int:
        return min(many - 1, max(0, math.floor((longitude + 180) / 360 * many)))

    def row(latitude: float) -> int:
        sine = math.sin(math.radians(min(_NORTH, max(-_NORTH, latitude))))
        return min(many - 1, max(0, math.floor((0.5 - math.atanh(sine) / (2 * math.pi)) * many)))

    return range(column(west), column(east) + 1), range(row(north), row(south) + 1)


def _tile(reader: Any, zoom: int, column: int, row: int, *, zipped: bool) -> Iterator[Line]:
    try:
        from mapbox_vector_tile import decode
    except ImportError:
        raise InputError("PMTiles need two more packages: pip install 'odkanon[tiles]'") from None
    content = reader.get(zoom, column, row)
    if content is None:
        return
    plain = gzip.decompress(content) if zipped else content
    for layer in decode(plain, default_options={"y_coord_down": True}).values():
        size = layer["extent"]
        for feature in layer["features"]:
            for line in _inside(feature["geometry"], size):
                yield _place(line, size, zoom, column, row)


def _inside(geometry: dict[str, Any], size: int) -> Iterator[list[Sequence[float]]]:
    """Yield the lines of a geometry without what runs along or beyond a side of the tile."""
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
            if part and _beyond(part[-1], point, size):
                if len(part) > 1:
                    yield part
                part = []
            part.append(point)
        if len(part) > 1:
            yield part


def _beyond(one: Sequence[float], two: Sequence[float], size: int) -> bool:
    return any(max(one[axis], two[axis]) <= 0 or min(one[axis], two[axis]) >= size for axis in (0, 1))


def _place(line: Sequence[Sequence[float]], size: int, zoom: int, column: int, row: int) -> Line:
    """Turn the steps of a tile into longitudes and latitudes (Web Mercator)."""
    points = np.asarray([point[:2] for point in line], dtype=np.float64) / size + (column, row)
    turned = points / 2**zoom
    latitude = np.degrees(np.arctan(np.sinh(math.pi * (1 - 2 * turned[:, 1]))))
    return list(zip((turned[:, 0] * 360 - 180).tolist(), latitude.tolist(), strict=True))
