"""Areas on the sphere, and an equal-area map of a region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import h3
import numpy as np
import numpy.typing as npt

from odkanon.zoning.cells import Floats

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth, in metres."""
RADIUS_KM = 6371.007180918475
"""Radius of the sphere with the Earth's surface area, as in H3."""
EARTH_KM2 = 4 * np.pi * RADIUS_KM**2


@dataclass(frozen=True)
class Projection:
    """The cylindrical equal-area projection whose standard parallel runs through a centre.

    ``x = R cos(lat0) (lon - lon0)`` and ``y = R (sin(lat) - sin(lat0)) / cos(lat0)``. Areas are exact everywhere,
    shapes and lengths near the centre: ten degrees of latitude away, lengths are off by about a tenth. Boxes of
    latitudes and longitudes remain boxes, so that their shares of squares have a closed form.
    """

    lat: float
    lon: float
    """The centre, in degrees, which is mapped to (0, 0)."""

    @classmethod
    def around(cls, lat: Floats, lon: Floats) -> Projection:
        """Return the map around the middle of some points, to a tenth of a degree."""
        # Beyond 180 degrees, the shorter way from the first point is across the antimeridian.
        near = lon[0] + _wrapped(lon - lon[0])
        middle = [(float(side.min()) + float(side.max())) / 2 for side in (lat, near)]
        return cls(round(middle[0], 1), float(_wrapped(np.array([round(middle[1], 1)]))[0]))

    @property
    def _shrink(self) -> float:
        # At a pole the parallel has no length; nobody counts trips beyond 85 degrees.
        return float(np.cos(np.radians(min(abs(self.lat), 85.0))))

    def to_metres(self, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
        """Return x and y of points in degrees, in metres."""
        x = EARTH_RADIUS * self._shrink * np.radians(_wrapped(lon - self.lon))
        y = EARTH_RADIUS * (np.sin(np.radians(lat)) - np.sin(np.radians(self.lat))) / self._shrink
        return x, y

    def to_degrees(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return latitude and longitude of points in metres."""
        sine = np.clip(y * self._shrink / EARTH_RADIUS + np.sin(np.radians(self.lat)), -1, 1)
        return np.degrees(np.arcsin(sine)), self.lon + np.degrees(x / (EARTH_RADIUS * self._shrink))


def _wrapped(degrees: Floats) -> Floats:
    """Return longitudes in [-180, 180)."""
    return (degrees + 180) % 360 - 180


@lru_cache(maxsize=1 << 15)
def cell_area_km2(cell: str) -> float:
    """Return the area of an H3 cell."""
    return float(h3.cell_area(cell, unit="km^2"))


def list_polygons(geometry: Mapping[str, Any] | None) -> list[list[list[list[float]]]]:
    """Return the polygons of a GeoJSON geometry, each as its rings; empty for other geometries."""
    coordinates: list[Any] = (geometry or {}).get("coordinates") or []
    found = {"Polygon": [coordinates], "MultiPolygon": coordinates}.get((geometry or {}).get("type", ""), [])
    return found if coordinates else []


def polygon_area_km2(geometry: dict[str, Any]) -> float:
    """Return the area of a GeoJSON polygon or multipolygon with straight sides in degrees; 0 for other geometries.

    The cylindrical equal-area projection preserves areas; sides are taken as straight there, too, which is exact for
    boxes and negligibly wrong for outlines of the size of a city.

    Examples
    --------
    >>> box = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    >>> round(polygon_area_km2({"type": "Polygon", "coordinates": [box]}), 1)
    12363.7
    """
    return sum(_ring(rings[0]) - sum(map(_ring, rings[1:])) for rings in list_polygons(geometry) if rings)


def _ring(points: list[list[float]]) -> float:
    degrees: npt.NDArray[np.float64] = np.radians(np.asarray([point[:2] for point in points], dtype=np.float64))
    x, y = np.unwrap(degrees[:, 0]), np.sin(degrees[:, 1])
    return abs(float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))) / 2 * RADIUS_KM**2
