"""Compact columns and geometries for the page: integers as steps, deflated, and each distinct shape once.

`web/src/columns.ts` reads the columns. Short columns stay plain lists, so that the model of a small release is
readable.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.zoning.spherical_geometry import list_polygons

LONG = 2000
"""Columns with fewer values than this stay plain lists."""
DECIMALS = 4
"""Numbers with up to this many decimals are packed as integers."""
PER_DEGREE = 1_000_000

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]
PackedRing = list[int]
PackedShape = list[list[PackedRing]]


def pack_numbers(values: Numbers) -> list[Any] | dict[str, Any]:
    """Pack a column of numbers: a list if it is short, otherwise its steps as deflated bytes.

    ``per`` is the number of packed units in one. Other numbers keep seven digits, as in single precision.

    Examples
    --------
    >>> pack_numbers(np.array([3, 1, 2]))
    [3, 1, 2]
    >>> sorted(pack_numbers(np.arange(5000)))
    ['count', 'of', 'per', 'steps']
    """
    if len(values) < LONG:
        listed: list[Any] = values.tolist()
        return listed if values.dtype.kind in "iu" else [_seven_digits(value) for value in listed]
    for decimals in range(DECIMALS + 1):
        units = np.rint(values * 10**decimals)
        if np.array_equal(np.round(units / 10**decimals, decimals), values) and np.abs(units).max() < 2**53:
            steps = np.diff(units.astype(np.int64), prepend=0)
            return {"of": "steps", "count": len(values), "per": 10**decimals, "steps": _deflate(_varints(steps))}
    return {"of": "single", "count": len(values), "per": 1, "steps": _deflate(values.astype("<f4").tobytes())}


def _seven_digits(value: float) -> float:
    """Round to seven significant digits, and write whole numbers as integers."""
    rounded = float(f"{value:.7g}")
    return int(rounded) if rounded.is_integer() else rounded


def _deflate(content: bytes) -> str:
    """Return bytes as gzip in base64, without time and operating system in the header.

    The bytes still depend on the version of zlib; pages are therefore never compared, only tables.
    """
    packed = bytearray(gzip.compress(content, mtime=0))
    packed[9] = 255  # unknown operating system
    return base64.b64encode(packed).decode()


def _varints(numbers: npt.NDArray[np.int64]) -> bytes:
    """Return numbers as zigzag varints: seven bits a byte, the last byte of each below 128."""
    signed = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    parts = [(signed >> np.uint64(7 * place)).astype(np.uint64) for place in range(10)]
    used = np.stack([part > 0 for part in parts])
    used[0] = True
    more = np.vstack([used[1:], np.zeros_like(used[:1])])
    content = np.stack([part & np.uint64(127) for part in parts]).astype(np.uint8) | (more.astype(np.uint8) << 7)
    return bytes(content.T[used.T].tobytes())


class ShapeTable:
    """The distinct shapes of all releases on a page, numbered in the order of first use."""

    def __init__(self) -> None:
        self.packed: list[PackedShape] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, geometry: dict[str, Any] | None) -> int:
        """Return the number of a GeoJSON (Multi)Polygon, or -1 if there is nothing to draw."""
        shape = pack_polygons(geometry)
        if not shape:
            return -1
        key = tuple(tuple(tuple(ring) for ring in polygon) for polygon in shape)
        number = self._numbers.setdefault(key, len(self.packed))
        if number == len(self.packed):
            self.packed.append(shape)
        return number


def pack_polygons(geometry: dict[str, Any] | None) -> PackedShape:
    """Pack the polygons of a GeoJSON geometry; other geometries give an empty list."""
    return [[pack_ring(ring) for ring in polygon] for polygon in list_polygons(geometry)]


def pack_ring(points: Sequence[Sequence[float]]) -> PackedRing:
    """Pack a ring without repeating its first corner; a box is packed as corner, width and height.

    Examples
    --------
    >>> pack_ring([[2.0, 48.0], [2.1, 48.0], [2.1, 48.2], [2.0, 48.2], [2.0, 48.0]])
    [2000000, 48000000, 100000, 200000]
    """
    packed = pack_line(points[:-1] if len(points) > 3 and list(points[0]) == list(points[-1]) else points)
    # Four corners are three steps; a box goes along, up and back.
    if len(packed) == 8 and packed[3] == packed[4] == packed[7] == 0 and packed[2] == -packed[6]:
        return [packed[0] + min(0, packed[2]), packed[1] + min(0, packed[5]), abs(packed[2]), abs(packed[5])]
    return packed


def pack_line(points: Iterable[Sequence[float]]) -> PackedRing:
    """Pack a line of longitudes and latitudes; one across the date line is unrolled first.

    Examples
    --------
    >>> pack_line([[2.0, 48.0], [2.000001, 48.0], [2.0, 47.999999]])
    [2000000, 48000000, 1, 0, -1, -1]
    """
    whole = [(round(point[0] * PER_DEGREE), round(point[1] * PER_DEGREE)) for point in points]
    if whole and max(x for x, _ in whole) - min(x for x, _ in whole) > 180 * PER_DEGREE:
        whole = [(x + 360 * PER_DEGREE if x < 0 else x, y) for x, y in whole]
    packed = [*whole[0]] if whole else []
    for (x0, y0), (x1, y1) in pairwise(whole):
        packed += (x1 - x0, y1 - y0)
    return packed
