"""Outlines of zones as plain rings, for still pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from odkanon.zoning.spherical_geometry import list_polygons

Ring = list[tuple[float, float]]


@dataclass(frozen=True)
class Outline:
    """The shape of a zone and what is published of it.

    Attributes
    ----------
    rings : list of list of (float, float)
        Longitudes and latitudes; holes run the other way round.
    area : float
        In square degrees, holes taken off; only to compare zones of one picture.
    """

    id: str
    mass: float
    rings: list[Ring]
    area: float

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north."""
        xs, ys = zip(*(point for ring in self.rings for point in ring), strict=True)
        return min(xs), min(ys), max(xs), max(ys)


def outline_of(zone: dict[str, Any], measure: str) -> Outline | None:
    """Return the outline of a GeoJSON feature; None where it has no polygon."""
    own = zone["properties"]
    rings, area = [], 0.0
    for polygon in list_polygons(zone.get("geometry")):
        for number, ring in enumerate(polygon):
            turned, size = _turned(_unrolled(ring), inward=number > 0)
            rings.append(turned)
            area += -size if number else size
    return Outline(str(own["id"]), float(own[measure]), rings, area) if rings else None


def _unrolled(ring: list[list[float]]) -> Ring:
    """Return a ring that does not jump over the date line."""
    xs = [point[0] for point in ring]
    jumps = max(xs) - min(xs) > 180
    return [(x + 360 if jumps and x < 0 else x, point[1]) for x, point in zip(xs, ring, strict=True)]


def _turned(ring: Ring, *, inward: bool) -> tuple[Ring, float]:
    """Return a ring counter-clockwise, or clockwise for a hole, and its area."""
    twice = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairwise([*ring, ring[0]]))
    return (ring[::-1] if (twice < 0) != inward else ring), abs(twice) / 2


def bounds_of(outlines: Sequence[Outline]) -> tuple[float, float, float, float]:
    """West, south, east and north of some outlines together."""
    boxes = [outline.bounds for outline in outlines]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )
