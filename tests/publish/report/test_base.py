import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.errors import InputError
from odkanon.publish.report.basemap import Extent, build_basemap, clip_line, clip_ring
from odkanon.publish.report.custom_basemap import read_geojson
from odkanon.publish.report.packing import ShapeTable
from web import made

WINDOW = Extent(-10, -10, 10, 10)
POINTS = st.tuples(st.integers(-30, 30), st.integers(-30, 30))


def surroundings_of(*places: tuple[float, float]) -> dict[str, list[list[int]]] | None:
    shapes = ShapeTable()
    for latitude, longitude in places:
        shapes.number(made.box(longitude, latitude, longitude + 0.1, latitude + 0.1))
    return build_basemap(shapes.packed)


@given(st.lists(POINTS, min_size=3, max_size=12))
def test_a_clipped_ring_stays_inside(ring: list[tuple[int, int]]) -> None:
    for x, y in clip_ring(np.array(ring), WINDOW):
        assert -10 <= x <= 10
        assert -10 <= y <= 10


def test_a_ring_around_the_window_becomes_the_window() -> None:
    clipped = clip_ring(np.array([(-90, -90), (90, -90), (90, 90), (-90, 90)]), WINDOW)
    assert set(map(tuple, clipped.tolist())) == {(-10, -10), (10, -10), (10, 10), (-10, 10)}


def test_a_line_keeps_only_what_comes_near() -> None:
    line = np.array([(-50, 0), (-40, 0), (-5, 0), (5, 0), (40, 0), (50, 0), (50, 5), (0, 5), (0, 50)])
    parts = [[x for x, _ in part.tolist()] for part in clip_line(line, WINDOW)]
    assert parts == [[-40, -5, 5, 40], [50, 0, 0]]


@pytest.mark.usefixtures("page_built")
class TestWorld:
    def test_a_city_carries_a_few_kilobytes(self) -> None:
        assert len(json.dumps(surroundings_of((48.8, 2.3)))) < 5_000

    def test_lisbon_has_a_coast_and_madrid_only_land(self) -> None:
        lisbon, madrid = surroundings_of((38.7, -9.2)), surroundings_of((40.4, -3.7))
        assert lisbon is not None
        assert madrid is not None
        assert max(map(len, lisbon["land"])) > 50
        assert [len(ring) for ring in madrid["land"]] == [8]

    def test_the_river_between_jersey_city_and_new_york_is_where_it_is(self) -> None:
        base = surroundings_of((40.7, -74.1))
        assert base is not None
        rings = [np.cumsum(np.array(ring).reshape(-1, 2), axis=0) / base["unit"] for ring in base["land"]]
        shapely = pytest.importorskip("shapely")
        land = shapely.union_all([shapely.Polygon(ring).buffer(0) for ring in rings])
        dry = {"Grove Street": (-74.043, 40.7196), "City Hall": (-74.006, 40.7128), "Hoboken": (-74.033, 40.744)}
        wet = {"off Exchange Place": (-74.024, 40.716), "Upper Bay": (-74.045, 40.67)}
        assert all(land.contains(shapely.Point(place)) for place in dry.values())
        assert not any(land.contains(shapely.Point(place)) for place in wet.values())

    def test_a_great_lake_is_water(self) -> None:
        base = surroundings_of((41.85, -87.65))
        assert base is not None
        rings = [np.cumsum(np.array(ring).reshape(-1, 2), axis=0) / base["unit"] for ring in base["water"]]
        assert max(np.ptp(ring[:, 1]) for ring in rings) > 1

    def test_the_whole_world_stays_small(self) -> None:
        assert len(json.dumps(surroundings_of((-40.0, -120.0), (60.0, 140.0)))) < 700_000

    def test_nothing_to_draw_needs_no_base(self) -> None:
        assert build_basemap([]) is None


def test_a_users_geojson_is_reduced_to_its_lines(tmp_path: Path) -> None:
    features = [
        {"type": "Feature", "properties": {"secret": 1}, "geometry": made.box(0, 0, 1, 1)},
        {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}},
        {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [0, 0]}},
        {"type": "Feature", "properties": {}, "geometry": None},
    ]
    path = tmp_path / "streets.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    beneath = read_geojson(path)
    assert (len(beneath["shapes"]), len(beneath["lines"])) == (1, 1)
    assert "secret" not in json.dumps(beneath)


@pytest.mark.parametrize("content", ["{", "[]", '{"type": "Nothing"}', '{"type": "FeatureCollection"}'])
def test_what_is_no_geojson_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "streets.geojson"
    path.write_text(content)
    with pytest.raises(InputError, match="GeoJSON"):
        read_geojson(path)


def test_islands_on_the_date_line_leave_no_line_across_the_map(page_built: Path) -> None:
    base = surroundings_of((-25.0, -75.0), (-10.0, -60.0))
    assert base is not None
    west, _, east, _ = base["box"]
    steps = [abs(step) for ring in base["land"] for step in ring[2::2]]
    assert max(steps) < east - west  # type: ignore[operator]


@pytest.mark.parametrize(
    ("geometry", "said"),
    [
        (
            {"type": "Polygon", "coordinates": [[[650e3, 6.8e6], [660e3, 6.8e6], [660e3, 6.9e6], [650e3, 6.8e6]]]},
            "degrees",
        ),
        ({"type": "LineString", "coordinates": [["a", "b"], ["c", "d"]]}, "cannot be read"),
        ({"type": "LineString", "coordinates": [[10**400, 1], [2, 1]]}, "cannot be read"),
        ({"type": "Polygon", "coordinates": [None]}, "cannot be read"),
        ({"type": ["Polygon"], "coordinates": []}, "cannot be read"),
        ({"type": "FeatureCollection", "features": None}, "cannot be read"),
    ],
)
def test_what_cannot_be_drawn_is_said(tmp_path: Path, geometry: object, said: str) -> None:
    path = tmp_path / "streets.geojson"
    path.write_text(json.dumps(geometry))
    with pytest.raises(InputError, match=said):
        read_geojson(path)
