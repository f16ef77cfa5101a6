import json
from itertools import accumulate, islice
from pathlib import Path

import pyarrow as pa
import pytest

from odkanon.errors import InputError
from odkanon.model.axes import AXES
from odkanon.publish.report.packing import ShapeTable, pack_line
from odkanon.publish.report.page_model import build_model
from odkanon.release_format.folder import SavedRelease, open_release
from web import made


def unpack(ring: list[int]) -> list[list[float]]:
    points, x, y = [], 0, 0
    for dx, dy in zip(ring[::2], ring[1::2], strict=True):
        x, y = x + dx, y + dy
        points.append([x / 1e6, y / 1e6])
    return points


def test_flows_survive_packing(tmp_path: Path) -> None:
    saved = open_release(made.hexagons(tmp_path / "release"))
    (release,) = build_model([saved])["releases"]
    flows = release["flows"]
    origins = [
        zone for zone, many in zip(release["origin"]["id"], flows["per_origin"], strict=True) for _ in range(many)
    ]
    steps = iter(flows["destination_steps"])
    numbers = [end for many in flows["per_origin"] for end in accumulate(islice(steps, many))]
    destinations = [release["destination"]["id"][zone] for zone in numbers]
    packed = set(zip(origins, destinations, flows["trips"], flows["persons"], strict=True))
    assert packed == set(
        zip(
            *(saved.table.column(name).to_pylist() for name in ("origin", "destination", "trips", "persons")),
            strict=True,
        )
    )


def test_row_order_does_not_matter(tmp_path: Path) -> None:
    saved = open_release(made.hexagons(tmp_path / "release"))
    turned = SavedRelease(
        saved.name, saved.manifest, saved.features[::-1], saved.table.take(list(range(saved.table.num_rows))[::-1])
    )
    assert build_model([saved]) == build_model([turned])


def test_a_shape_is_stored_once_for_all_axes_and_releases(tmp_path: Path) -> None:
    first, second = (open_release(folder) for folder in made.pair(tmp_path))
    model = build_model([first, second])
    zones = {zone["properties"]["id"] for zone in (*first.features, *second.features)}
    above = {cell for release in model["releases"] for axis in AXES for cell in release[axis]["nest"]["id"]}
    assert len(model["shapes"]) == len({json.dumps(shape) for shape in model["shapes"]}) == len(zones | above)


def test_what_rows_say_besides_their_places_is_packed_once_a_value(tmp_path: Path) -> None:
    saved = open_release(made.cube(tmp_path / "cube"))
    flows = build_model([saved])["releases"][0]["flows"]
    mode = flows["attributes"]["mode"]
    assert mode["values"] == ["any", "bus", "car"]
    told: dict[str, int] = {}
    for value, trips in zip(mode["of"], flows["trips"], strict=True):
        told[mode["values"][value]] = told.get(mode["values"][value], 0) + trips
    wanted: dict[str, int] = {}
    for text, trips in zip(*(saved.table.column(name).to_pylist() for name in ("mode", "trips")), strict=True):
        wanted[text or ""] = wanted.get(text or "", 0) + trips
    assert told == wanted


def test_a_column_with_a_value_for_every_row_is_no_attribute(tmp_path: Path) -> None:
    saved = open_release(made.hexagons(tmp_path / "release"))
    numbered = saved.table.append_column("row", pa.array(range(len(saved.table))))
    flows = build_model([SavedRelease(saved.name, saved.manifest, saved.features, numbered)])["releases"][0]["flows"]
    assert "attributes" not in flows


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


def test_zones_without_weight_have_no_weight_column(tmp_path: Path) -> None:
    (release,) = build_model([open_release(made.boxes(tmp_path / "boxes"))])["releases"]
    assert "weight" not in release["origin"]
    assert "weight" not in release["flows"]
    assert release["origin"]["level"][0] is None


def test_levels_of_a_lookup_hierarchy_are_kept() -> None:
    zone = {"axis": "origin", "id": "75056", "resolution": None, "level": "commune", "trips": 10}
    zones = [{"properties": zone, "geometry": None}, {"properties": {**zone, "axis": "destination"}, "geometry": None}]
    saved = SavedRelease("r", {}, zones, pa.table({"origin": ["75056"], "destination": ["75056"], "trips": [10]}))
    (release,) = build_model([saved])["releases"]
    assert release["origin"]["level"] == ["commune"]
    assert not release["origin"]["h3"]


def test_a_class_of_an_unknown_zone_is_refused() -> None:
    saved = SavedRelease("r", {}, [], pa.table({"origin": ["a"], "destination": ["b"], "trips": [10]}))
    with pytest.raises(InputError, match="which zones"):
        build_model([saved])


def test_the_world_is_coarser_than_every_cell(tmp_path: Path) -> None:
    saved = open_release(made.hexagons(tmp_path / "release"))
    own = {"axis": "origin", "id": "world", "kind": "root", "resolution": None, "level": 11, "trips": 10, "weight": 1.0}
    zones = [*saved.features, {"type": "Feature", "properties": own, "geometry": None}]
    origin = build_model([SavedRelease(saved.name, saved.manifest, zones, saved.table)])["releases"][0]["origin"]
    assert dict(zip(origin["id"], origin["level"], strict=True))["world"] is None
    assert max(level for level in origin["level"] if level is not None) == 8


def test_releases_of_one_page_are_rolled_up_to_the_same_roof(tmp_path: Path) -> None:
    fine = open_release(made.hexagons(tmp_path / "fine"))
    coarse = open_release(made.save(tmp_path / "coarse", [(cell, cell, 12) for cell in made.disk(5, 1)]))
    model = build_model([fine, coarse])
    roofs = {min(release[axis]["nest"]["level"]) for release in model["releases"][:1] for axis in AXES}
    assert roofs == {5}
