"""Which polygon a point is in: as a plain search says, for any polygons and any points."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("shapely")

import shapely

from odkanon.zoning.point_location import PolygonFinder
from worlds.polygons import patchwork


def plainly(shapes: Any, lat: Any, lon: Any) -> list[int]:
    """Return the first polygon that meets each point, looking at all of them."""
    points = shapely.points(lon, lat)
    found = []
    for point in points:
        hits = np.flatnonzero(shapely.intersects(shapes, point))
        found.append(int(hits[0]) if len(hits) else -1)
    return found


def some_points(shapes: Any, seed: int) -> tuple[Any, Any]:
    """Points inside and outside, and corners, middles of sides and tangents, on which rules for borders matter."""
    random = np.random.default_rng(seed)
    west, south, east, north = shapely.total_bounds(shapes)
    free = random.uniform((west - 0.05, south - 0.05), (east + 0.05, north + 0.05), size=(1500, 2))
    corners = shapely.get_coordinates(shapes)
    sides = (corners[1:] + corners[:-1]) / 2
    frame = np.array([[west, south], [east, north], [west, (south + north) / 2], [(west + east) / 2, north]])
    lon, lat = np.concatenate([free, corners, sides, frame]).T
    return lat, lon


def with_holes_and_overlaps(shapes: Any) -> Any:
    """Lakes in some polygons, others that stick out into their neighbours, one inside another, one in two parts."""
    shapes = shapes.copy()
    shapes[::4] = shapely.difference(shapes[::4], shapely.buffer(shapely.centroid(shapes[::4]), 0.004))
    shapes[1::5] = shapely.buffer(shapes[1::5], 0.003)
    shapes[2] = shapely.buffer(shapely.centroid(shapes[3]), 0.001)
    shapes[6] = shapely.union_all([shapes[6], shapely.box(9.0, 48.0, 9.01, 48.01)])
    return shapes


@pytest.mark.parametrize("seed", range(4))
def test_polygons_of_points_are_those_of_a_plain_search(seed: int) -> None:
    shapes = patchwork(seed, (1, 7, 60, 90)[seed], 2.0, 48.0, 2.4, 48.2)
    if seed > 1:
        shapes = with_holes_and_overlaps(shapes)
    lat, lon = some_points(shapes, seed)
    number = np.random.default_rng(seed).permutation(len(shapes))
    expected = [-1 if at < 0 else int(number[at]) for at in plainly(shapes, lat, lon)]
    finder = PolygonFinder(shapes, number)
    assert finder.find(lat, lon).tolist() == expected
    assert pickle.loads(pickle.dumps(finder)).find(lat, lon).tolist() == expected


def test_results_do_not_depend_on_the_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = with_holes_and_overlaps(patchwork(5, 40, 2.0, 48.0, 2.4, 48.2))
    lat, lon = some_points(shapes, 5)
    found = []
    for side in (1, 3, 64, 700):
        monkeypatch.setattr("odkanon.zoning.point_location._SIDE", side)
        found.append(PolygonFinder(shapes, np.arange(len(shapes))).find(lat, lon).tolist())
    assert all(each == found[0] for each in found)


def test_polygons_across_the_antimeridian() -> None:
    """A file may write 181 degrees where a receiver writes -179."""
    shapes = np.array([shapely.box(179, -17, 180, -16), shapely.box(180, -17, 181, -16)])
    finder = PolygonFinder(shapes, np.arange(2))
    assert finder.find(np.full(4, -16.5), np.array([179.5, -179.5, 180.5, -178.0])).tolist() == [0, 1, 1, -1]
