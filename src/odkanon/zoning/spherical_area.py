"""Areas on the sphere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import h3
import numpy as np
import numpy.typing as npt

RADIUS_KM = 6371.007180918475
"""Of the sphere with the Earth's surface, as H3 takes it."""
EARTH_KM2 = 4 * np.pi * RADIUS_KM**2


@lru_cache(maxsize=1 << 15)
def cell_area_km2(cell: str) -> float:
    """Return the area of an H3 cell."""
    return float(h3.cell_area(cell, unit="km^2"))


def polygons_of(geometry: Mapping[str, Any] | None) -> list[list[list[list[float]]]]:
    """Return the polygons of a GeoJSON geometry, each as its rings; none of anything else."""
    coordinates: list[Any] = (geometry or {}).get("coordinates") or []
    found = {"Polygon": [coordinates], "MultiPolygon": coordinates}.get((geometry or {}).get("type", ""), [])
    return found if coordinates else []


def polygon_area_km2(geometry: dict[str, Any]) -> float:
    """Return the area of a GeoJSON polygon or multipolygon whose sides are straight in degrees; 0 for anything else.

    The cylindrical equal-area projection maps a sphere without changing areas; sides are taken as straight there, too,
    which is exact for boxes and off by next to nothing for outlines of the size of a city.

    Examples
    --------
    >>> box = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    >>> round(polygon_area_km2({"type": "Polygon", "coordinates": [box]}), 1)
    12363.7
    """
    return sum(_ring(rings[0]) - sum(map(_ring, rings[1:])) for rings in polygons_of(geometry) if rings)


def _ring(points: list[list[float]]) -> float:
    degrees: npt.NDArray[np.float64] = np.radians(np.asarray([point[:2] for point in points], dtype=np.float64))
    x, y = np.unwrap(degrees[:, 0]), np.sin(degrees[:, 1])
    return abs(float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))) / 2 * RADIUS_KM**2
