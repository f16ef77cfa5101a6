import h3
import numpy as np
import pyarrow as pa
import pytest

from odkanon.estimate.town_names import find_home
from odkanon.publish.report.place_names import Districts, main_town, name_places
from odkanon.release_format.folder import SavedRelease
from web import made

pytestmark = pytest.mark.usefixtures("page_built")


def names(*places: tuple[float, float], area: float = 0.7) -> list[str | None]:
    lat, lon = np.array(places).T
    found: list[str | None] = name_places(lat, lon, np.ones(len(places)), area, None)["name"]
    return found


def test_a_place_across_a_border_has_no_name_from_there() -> None:
    """Grove Street and Exchange Place are nearer to the middle of New York than to that of Jersey City."""
    jersey = [(40.7196, -74.0431), (40.7162, -74.0334), (40.7324, -74.0628), (40.7273, -74.0793)]
    assert set(names(*jersey)) <= {"Jersey City", "Hoboken"}
    assert "New York City" not in names(*jersey)


def test_a_place_in_the_middle_of_nowhere_has_no_name() -> None:
    assert names((0.0, -150.0)) == [None]


def test_districts_come_before_towns_and_only_for_what_lies_in_them() -> None:
    pytest.importorskip("shapely")
    square = {"type": "Polygon", "coordinates": [[[2.2, 48.8], [2.4, 48.8], [2.4, 48.9], [2.2, 48.9], [2.2, 48.8]]]}
    districts = Districts(["d0"], ["Centre"], [square])
    found = name_places(np.array([48.81, 48.89, 48.7]), np.array([2.3, 2.3, 2.3]), np.ones(3), 1.0, districts)
    assert found["name"] == ["Centre", "Centre", None]
    assert found["direction"] == [6, 2, -1]  # south and north


def test_a_city_is_not_named_after_a_larger_one_across_the_river() -> None:
    stations = [(40.7196, -74.0431), (40.7162, -74.0334), (40.7324, -74.0628), (40.7273, -74.0793)]
    cells = [h3.latlng_to_cell(lat, lon, 8) for lat, lon in stations]
    zones = [
        {"properties": {"axis": axis, "id": cell, "trips": 20}, "geometry": made.hexagon(cell)}
        for axis in ("origin", "destination")
        for cell in cells
    ]
    table = pa.table({"origin": cells, "destination": cells, "trips": [20] * 4})
    release = SavedRelease("bikes", {}, zones, table)
    assert main_town([release]) == "Jersey City"
    # Seen before: on the larger cells of a page all of it was so and so many km west of New York City.
    for resolution in (8, 7, 6, 5):
        larger = sorted({h3.cell_to_parent(cell, resolution) for cell in cells})
        lat, lon = np.array([h3.cell_to_latlng(cell) for cell in larger]).T
        area = h3.average_hexagon_area(resolution, unit="km^2")
        found = name_places(lat, lon, np.ones(len(larger)), area, None, find_home([release]))
        assert set(found["name"]) <= {"Jersey City", "Hoboken", "Newark"}
