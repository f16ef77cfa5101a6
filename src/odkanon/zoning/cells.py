"""H3 cells as ``uint64`` arrays: coordinates and text in, parents, text and outlines out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import h3
import h3ronpy
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from h3ronpy import vector

from odkanon.core.arrays import number_groups
from odkanon.errors import InputError

Cells = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

MAX_RESOLUTION = 15
WORLD = np.uint64(0)
"""The id of the virtual root above resolution 0; no H3 cell has it."""

KM_PER_DEGREE = 111.195
"""Length of a degree of latitude."""

_SAMPLE = 4096
"""Points that are checked for duplicates."""
_RESOLUTION_SHIFT = np.uint64(52)
_RESOLUTION_MASK = np.uint64(0xF << 52)
_SIXES = np.uint64(int("6" * MAX_RESOLUTION, 8))
_HAS_PENTAGON = np.isin(np.arange(128), [4, 14, 24, 38, 49, 58, 63, 72, 83, 97, 107, 117])
"""For each base cell, whether it has a pentagon at its centre."""


def latlng_to_cell(lat: Floats, lng: Floats, resolution: int) -> Cells:
    """Return the H3 cell of each point.

    * ``lat``, ``lng``: degrees, finite and in range; callers must validate them, since no H3 library does.
    * ``resolution``: H3 resolution in [0, 15].

    Examples
    --------
    >>> import numpy as np
    >>> cell_to_str(latlng_to_cell(np.array([48.8566]), np.array([2.3522]), 6)).tolist()
    ['861fb4667ffffff']
    """
    check_resolution(resolution)
    if len(lat) == 0:
        return np.empty(0, dtype=np.uint64)
    if 3 * len(np.unique(lat[:_SAMPLE])) <= 2 * len(lat[:_SAMPLE]):
        return _cells_of_stops(lat, lng, resolution)
    return np.asarray(vector.coordinates_to_cells(np.ascontiguousarray(lat), np.ascontiguousarray(lng), resolution))


def _cells_of_stops(lat: Floats, lng: Floats, resolution: int) -> Cells:
    """Return the cell of each point if many points are equal, such as stations or homes."""
    (north, rows), (east, columns) = (_distinct(side) for side in (lat, lng))
    key, number = number_groups(rows * len(east) + columns, len(north) * len(east))
    place = np.divmod(key, len(east))
    return np.asarray(vector.coordinates_to_cells(north[place[0]], east[place[1]], resolution))[number]


def _distinct(values: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the distinct values, and for each entry the number of its value."""
    found = pc.dictionary_encode(pa.array(values))
    return found.dictionary.to_numpy(), found.indices.to_numpy().astype(np.int64)


def cell_to_latlng(cells: Cells) -> tuple[Floats, Floats]:
    """Return latitude and longitude of the centre of each cell, in degrees."""
    batch = pa.record_batch(vector.cells_to_coordinates(pa.array(cells)))
    return batch.column("lat").to_numpy(), batch.column("lng").to_numpy()


def cell_to_parent(cells: Cells, resolution: int) -> Cells:
    """Return the ancestor of each cell at a coarser (or its own) resolution, by bit arithmetic.

    An H3 index has its resolution in bits 52-55, followed by one 3-bit digit per level; the ancestor at resolution
    ``r`` has ``r`` there and its low ``3 * (15 - r)`` bits set.

    Examples
    --------
    >>> import numpy as np
    >>> child = np.array([0x8A1FB4671017FFF], dtype=np.uint64)
    >>> hex(cell_to_parent(child, 6)[0])
    '0x861fb4677ffffff'
    """
    check_resolution(resolution)
    unused_digits = np.uint64((1 << 3 * (MAX_RESOLUTION - resolution)) - 1)
    return (cells & ~_RESOLUTION_MASK) | (np.uint64(resolution) << _RESOLUTION_SHIFT) | unused_digits


def cell_to_children(cells: Cells, resolution: int) -> Cells:
    """Return the children of cells at a finer resolution."""
    return np.asarray(pa.array(h3ronpy.change_resolution(pa.array(cells), resolution)), dtype=np.uint64)


def cell_to_resolution(cells: Cells) -> npt.NDArray[np.int64]:
    """Return the resolution of each cell."""
    return ((cells & _RESOLUTION_MASK) >> _RESOLUTION_SHIFT).astype(np.int64)


def cell_to_span(cells: Cells, resolution: int) -> tuple[Cells, Cells]:
    """Return the first and last index of the descendants of each cell at a finer (or its own) resolution.

    No other cells lie between them, since the indices of a resolution are in tree order.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = cell_to_span(np.array([0x861FB4677FFFFFF], dtype=np.uint64), 7)
    >>> hex(low[0]), hex(high[0])
    ('0x871fb4670ffffff', '0x871fb4676ffffff')
    """
    check_resolution(resolution)
    unused = np.uint64(3) * (np.uint64(MAX_RESOLUTION) - cell_to_resolution(cells).astype(np.uint64))
    digits = ((np.uint64(1) << unused) - np.uint64(1)) & ~np.uint64((1 << 3 * (MAX_RESOLUTION - resolution)) - 1)
    low = cell_to_parent(cells, resolution) & ~digits
    return low, low | (_SIXES & digits)


def is_pentagon(cells: Cells) -> npt.NDArray[np.bool_]:
    """Return for each cell whether it is one of the twelve pentagons of its resolution.

    They are the central descendants of twelve base cells (bits 45-51), so all of their digits are 0.
    """
    base = (cells >> np.uint64(45)) & np.uint64(0x7F)
    unused = np.uint64(3) * (np.uint64(MAX_RESOLUTION) - cell_to_resolution(cells).astype(np.uint64))
    digits = (cells & np.uint64((1 << 45) - 1)) >> unused
    found: npt.NDArray[np.bool_] = _HAS_PENTAGON[base] & (digits == 0)
    return found


def is_valid_cell(cells: Cells) -> npt.NDArray[np.bool_]:
    """Return for each number whether it is the index of an H3 cell."""
    return np.asarray(pa.array(h3ronpy.cells_valid(pa.array(cells), booleanarray=True)))


def str_to_cell(text: pa.Array) -> Cells:
    """Return cells from hexadecimal or decimal text; 0 for text that cannot be parsed."""
    looks_right = pc.match_substring_regex(pc.utf8_trim_whitespace(text), "^[0-9a-fA-F]{15,20}$")
    candidates = pc.if_else(looks_right, pc.utf8_trim_whitespace(text), None)
    parsed = pa.array(h3ronpy.cells_parse(pc.fill_null(candidates, "-"), set_failing_to_invalid=True))
    return np.asarray(pc.fill_null(parsed, 0), dtype=np.uint64)


def cell_to_str(cells: Cells) -> npt.NDArray[np.str_]:
    """Return the hexadecimal text of each cell; that of the virtual root is ``world``."""
    text = np.full(len(cells), "world", dtype="<U16")
    real = cells != WORLD
    if real.any():
        text[real] = pa.array(h3ronpy.cells_to_string(pa.array(cells[real]))).to_numpy(zero_copy_only=False)
    return text


def cell_to_polygon(cell: str) -> dict[str, Any]:
    """Return the outline of a cell as a GeoJSON polygon, continuous where it crosses the antimeridian."""
    return {"type": "Polygon", "coordinates": [[list(point) for point in _corners(cell)]]}


@lru_cache(maxsize=1 << 15)
def _corners(cell: str) -> tuple[tuple[float, float], ...]:
    """Return the corners of a cell as a closed ring; cached, since the explorer draws the same cells many times."""
    ring = [(round(lng, 7), round(lat, 7)) for lat, lng in h3.cell_to_boundary(cell)]
    longitudes = [point[0] for point in ring]
    if max(longitudes) - min(longitudes) > 180:
        ring = [(lng + 360 if lng < 0 else lng, lat) for lng, lat in ring]
    # GeoJSON requires closed, counter-clockwise outer rings; H3 has this orientation.
    return *ring, ring[0]


def cell_radius(resolution: int) -> float:
    """Return the approximate distance from the centre of a cell to its corners, in degrees of latitude."""
    check_resolution(resolution)
    return float(h3.average_hexagon_edge_length(resolution, unit="km")) / KM_PER_DEGREE


def cells_to_polygons(cells: Sequence[str]) -> dict[str, Any]:
    """Return the union of cells, possibly of several resolutions, as a GeoJSON polygon or multipolygon."""
    finest = max(h3.get_resolution(cell) for cell in cells)
    outline: dict[str, Any] = h3.cells_to_geo(h3.uncompact_cells(cells, finest))
    several = outline["type"] == "MultiPolygon"
    polygons = [list(polygon) for polygon in (outline["coordinates"] if several else [outline["coordinates"]])]
    longitudes = [point[0] for polygon in polygons for ring in polygon for point in ring]
    wraps = max(longitudes) - min(longitudes) > 180
    # One side of the antimeridian is shifted, so that a zone across it remains one piece.
    shaped = [
        [[[lng + 360 if wraps and lng < 0 else lng, lat] for lng, lat in ring] for ring in polygon]
        for polygon in polygons
    ]
    return {"type": outline["type"], "coordinates": shaped if several else shaped[0]}


def check_resolution(resolution: int) -> None:
    """Raise unless ``resolution`` is an H3 resolution."""
    if not 0 <= resolution <= MAX_RESOLUTION:
        raise InputError(f"resolution {resolution} does not exist: H3 has 0 (coarsest) to 15 (finest)")
