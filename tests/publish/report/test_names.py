from pathlib import Path

import pytest

from odkanon.estimate import town_names
from odkanon.publish.report import basemap
from odkanon.publish.report.packing import ShapeTable
from web import made

pytestmark = pytest.mark.usefixtures("page_built")


def towns(*box: float) -> list[str]:
    shapes = ShapeTable()
    shapes.number(made.box(*box))
    found = basemap.build_labels(shapes.packed)
    assert found is not None
    assert len(found["place"]) == 2 * len(found["name"]) == 2 * len(found["people"])
    west, south, east, north = box
    for x, y in zip(found["place"][::2], found["place"][1::2], strict=True):
        assert west <= x / found["unit"] <= east
        assert south <= y / found["unit"] <= north
    assert found["people"] == sorted(found["people"], reverse=True)
    listed: list[str] = found["name"]
    return listed


def test_only_towns_in_view_are_named_the_largest_first() -> None:
    assert towns(2.2, 48.8, 2.5, 48.95)[0] == "Paris"
    assert "Santiago" in towns(-70.8, -33.6, -70.5, -33.3)
    assert towns(-30.0, 40.0, -29.0, 41.0) == []


def test_a_page_carries_no_more_than_a_few_hundred() -> None:
    assert len(towns(-10.0, 36.0, 30.0, 60.0)) == basemap.MAX_TOWNS


def test_nothing_to_draw_has_no_names() -> None:
    assert basemap.build_labels([]) is None


def test_without_the_built_file_there_are_no_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(town_names, "TOWNS", tmp_path / "missing.gz")
    shapes = ShapeTable()
    shapes.number(made.box(2.2, 48.8, 2.5, 48.95))
    assert basemap.build_labels(shapes.packed) is None
