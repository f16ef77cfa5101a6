import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from odkanon.publish.report.packing import ShapeTable, pack_line
from odkanon.publish.report.page_model import build_model
from odkanon.release_format.folder import SavedRelease, open_release
from odkanon.zoning.cells import cell_to_parent, cell_to_resolution, str_to_cell
from web import made
from worlds.columns import unpacked

NUMBERS = ("low", "interval_low", "trips", "interval_high", "high")


def unpack(ring: list[int]) -> list[list[float]]:
    points, x, y = [], 0, 0
    for dx, dy in zip(ring[::2], ring[1::2], strict=True):
        x, y = x + dx, y + dy
        points.append([x / 1e6, y / 1e6])
    return points


def test_row_order_does_not_matter(tmp_path: Path) -> None:
    saved = open_release(made.hexagons(tmp_path / "release"))
    turned = SavedRelease(
        saved.name, saved.manifest, saved.features[::-1], saved.table.take(list(range(saved.table.num_rows))[::-1])
    )
    assert json.dumps(build_model([saved])) == json.dumps(build_model([turned]))


def test_a_shape_is_stored_once_for_all_levels_and_releases(tmp_path: Path) -> None:
    first, second = (open_release(folder) for folder in made.pair(tmp_path))
    model = build_model([first, second])
    assert len(model["shapes"]) == len({json.dumps(shape) for shape in model["shapes"]})


@pytest.mark.parametrize("make", [made.nested, made.hexagons, made.cube])
def test_bounds_hold_what_rows_certainly_and_possibly_count(tmp_path: Path, make: object) -> None:
    """Brute force: a row counts for sure where both its zones lie inside, and may wherever both meet."""
    saved = open_release(make(tmp_path / "release"))  # type: ignore[operator]
    most = saved.manifest["unlisted"]["at_most_trips"]
    zones = [str_to_cell(saved.table.column(axis)) for axis in ("origin", "destination")]
    trips = saved.measure("trips")
    for level in build_model([saved])["levels"]:
        resolution, table = int(level["level"]), level["tables"][0][""]
        places = str_to_cell(pa.array(level["id"]))
        inside, meets = [], []
        for zone in zones:
            fine = cell_to_resolution(zone) >= resolution
            parent = cell_to_parent(np.where(fine, zone, places[0]), resolution)
            within = fine[:, None] & (parent[:, None] == places)
            around = np.array(
                [cell_to_parent(places, int(each)) for each in cell_to_resolution(np.where(fine, places[0], zone))]
            )
            inside.append(within)
            meets.append(within | (~fine[:, None] & (around == zone[:, None])))
        pairs = {name: unpacked(table["pairs"][name]) for name in NUMBERS}
        for number, (origin, destination) in enumerate(
            zip(unpacked(table["origin"]), unpacked(table["destination"]), strict=True)
        ):
            own = [pairs[name][number] for name in NUMBERS]
            assert own == sorted(own)
            sure = trips[inside[0][:, int(origin)] & inside[1][:, int(destination)]].sum()
            possible = trips[meets[0][:, int(origin)] & meets[1][:, int(destination)]].sum() + most
            assert pairs["low"][number] == sure
            assert pairs["high"][number] >= possible - most
            assert pairs["high"][number] <= possible + 1
        for side, end in enumerate(("starts", "ends")):
            for place in range(len(places)):
                assert unpacked(table[end]["low"])[place] == trips[inside[side][:, place]].sum()


def test_values_of_attributes_never_claim_the_rows_that_do_not_state_them(tmp_path: Path) -> None:
    saved = open_release(made.cube(tmp_path / "cube"))
    modes, trips = np.array(saved.table.column("mode").to_pylist()), saved.measure("trips")
    tables = build_model([saved])["levels"][0]["tables"][0]
    totals = {value: tables[f"mode={value}"]["total"] for value in ("bus", "car")}
    for value, total in totals.items():
        assert total["low"] == trips[modes == value].sum()
        assert total["low"] < total["trips"] < total["high"]
        assert total["high"] >= trips[(modes == value) | (modes == "any")].sum()
    assert sum(total["trips"] for total in totals.values()) == pytest.approx(trips.sum(), rel=0.02)


def test_zones_that_are_no_cells_are_places_themselves() -> None:
    zone = {"axis": "origin", "id": "75056", "resolution": None, "level": "commune", "trips": 10}
    zones = [{"properties": zone, "geometry": None}, {"properties": {**zone, "axis": "destination"}, "geometry": None}]
    saved = SavedRelease("r", {}, zones, pa.table({"origin": ["75056"], "destination": ["75056"], "trips": [10]}))
    (level,) = build_model([saved])["levels"]
    assert level["level"] == "zones"
    assert level["name"] == ["75056"]
    assert level["tables"][0][""]["pairs"]["low"] == [10]


def test_shapes_keep_their_corners() -> None:
    shapes = ShapeTable()
    square = made.box(2.25, 48.5, 2.75, 49.0)
    assert shapes.number(square) == shapes.number(square) == 0
    # Of a box two corners are enough; of anything else all of them, each once.
    assert unpack(shapes.packed[0][0][0]) == [square["coordinates"][0][0], square["coordinates"][0][2]]
    slanted = {
        "type": "Polygon",
        "coordinates": [[[2.25, 48.5], [2.75, 48.5], [2.8, 49.0], [2.25, 49.0], [2.25, 48.5]]],
    }
    assert unpack(shapes.packed[shapes.number(slanted)][0][0]) == slanted["coordinates"][0][:-1]
    assert shapes.number(None) == shapes.number({"type": "Point", "coordinates": [0, 0]}) == -1


def test_a_ring_over_the_date_line_stays_in_one_piece() -> None:
    ring = unpack(pack_line([[179.5, 0], [-179.5, 0], [-179.5, 1], [179.5, 0]]))
    assert max(x for x, _ in ring) - min(x for x, _ in ring) == 1
