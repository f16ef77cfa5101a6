"""An equal-area map of the surroundings of some places, in metres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.zoning.cells import Floats

EARTH_RADIUS = 6_371_008.8
"""Mean radius, in metres."""


@dataclass(frozen=True)
class Projection:
    """The cylindrical equal-area projection whose standard parallel runs through a centre.

    ``x = R cos(lat0) (lon - lon0)`` and ``y = R (sin(lat) - sin(lat0)) / cos(lat0)``. Areas are right everywhere,
    shapes and lengths near the centre: at ten degrees of latitude from it lengths are off by about a tenth. Boxes of
    latitudes and longitudes stay boxes, so that their shares of squares have a closed form.

    Attributes
    ----------
    lat, lon : float
        The centre, in degrees; it lies at (0, 0).
    """

    lat: float
    lon: float

    @classmethod
    def around(cls, lat: Floats, lon: Floats) -> Projection:
        """Return the map around the middle of some points, to a tenth of a degree."""
        # Far enough round the globe, the shorter way from the first point is across the antimeridian.
        near = lon[0] + _wrapped(lon - lon[0])
        middle = [(float(side.min()) + float(side.max())) / 2 for side in (lat, near)]
        return cls(round(middle[0], 1), float(_wrapped(np.array([round(middle[1], 1)]))[0]))

    @property
    def _shrink(self) -> float:
        # Around a pole the parallel has no length; 85 degrees is as far as anybody counts trips.
        return float(np.cos(np.radians(min(abs(self.lat), 85.0))))

    def to_metres(self, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
        """Return x and y of points in degrees."""
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
