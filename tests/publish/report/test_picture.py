"""Still pictures, read back from the files."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import h3
import pytest
from typer.testing import CliRunner

from odkanon.cli import app
from odkanon.errors import InputError
from odkanon.publish.report.map_drawing import MapWindow, axis_outlines, draw_map, map_window, zone_outline
from odkanon.publish.report.pictures import write_picture
from odkanon.release_format.folder import open_release
from web import made

SVG = "{http://www.w3.org/2000/svg}"


def svg(folders: list[Path], target: Path) -> tuple[ElementTree.Element, str]:
    root = ElementTree.parse(write_picture(folders, target)).getroot()
    return root, " ".join(text.text or "" for text in root.iter(f"{SVG}text"))


def fills(root: ElementTree.Element) -> list[str]:
    styles = [element.get("style", "") for element in root.iter() if element.tag in (f"{SVG}path", f"{SVG}use")]
    return [found[1] for style in styles if (found := re.search(r"fill: (#\w+)", style))]


def pixels(path: Path) -> tuple[tuple[int, int], int]:
    """Size of a PNG and how many different bytes its picture has: a blank one has a few."""
    data, position, packed, size = path.read_bytes(), 8, b"", (0, 0)
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        content = data[position + 8 : position + 8 + length]
        size = struct.unpack(">II", content[:8]) if kind == b"IHDR" else size
        packed += content if kind == b"IDAT" else b""
        position += 12 + length
    return size, len(set(zlib.decompress(packed)))


def test_zones_of_both_axes_and_the_histogram(tmp_path: Path) -> None:
    root, text = svg([made.hexagons(tmp_path / "release")], tmp_path / "picture.svg")
    assert "Origin zones (19)" in text
    assert "Destination zones (13)" in text
    assert "threshold 10" in text
    assert "sizes of 152 published flows" in text
    assert len(set(fills(root))) > 10


def test_every_format_can_be_read_back(tmp_path: Path) -> None:
    folder = made.hexagons(tmp_path / "release")
    size, different = pixels(write_picture([folder], tmp_path / "picture.png"))
    assert min(size) > 800
    assert different > 100
    pdf = write_picture([folder], tmp_path / "picture.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_same_release_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    folder = made.hexagons(tmp_path / "release")
    once, twice = (write_picture([folder], tmp_path / f"{name}.{kind}").read_bytes() for name in "ab")
    assert once == twice


def test_two_releases_show_which_zones_differ(tmp_path: Path) -> None:
    root, text = svg(list(made.pair(tmp_path)), tmp_path / "picture.svg")
    assert "participants: 1 of 7 origin zones only here" in text
    assert "population: 7 of 13 origin zones only here" in text
    assert "participants: 0 of 7 destination zones only here" in text
    assert fills(root).count("#0072b2") == 1
    assert fills(root).count("#d55e00") == 7


def test_boxes_that_overlap_are_drawn_large_first(tmp_path: Path) -> None:
    root, text = svg([made.boxes(tmp_path / "release")], tmp_path / "picture.svg")
    assert "Origin zones (60)" in text
    assert len(fills(root)) >= 120


def test_zones_without_shapes_are_said_to_have_none(tmp_path: Path) -> None:
    shapes = {axis: {"a": None, "b": None} for axis in made.AXES}
    folder = made.save(tmp_path / "release", [("a", "b", 12), ("b", "a", 30)], shapes)
    _, text = svg([folder], tmp_path / "picture.svg")
    assert text.count("These zones have no shapes to draw.") == 2
    assert "sizes of 2 published flows" in text


def test_a_hole_is_not_filled_and_takes_its_area_off() -> None:
    ring, hole = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]
    zone = {"geometry": {"type": "Polygon", "coordinates": [ring, hole]}, "properties": {"id": "x", "trips": 9}}
    outline = zone_outline(zone, "trips")
    assert outline is not None
    assert outline.area == 15
    assert outline.rings[1] == [tuple(point) for point in hole[::-1]]


def test_what_cannot_be_drawn_is_said_plainly(tmp_path: Path) -> None:
    folder = made.boxes(tmp_path / "release")
    with pytest.raises(InputError, match=r"ends in \.png, \.svg or \.pdf"):
        write_picture([folder], tmp_path / "picture.gif")
    with pytest.raises(InputError, match="has no weight"):
        write_picture([folder], tmp_path / "picture.png", measure="weight")
    with pytest.raises(InputError, match="is not a folder"):
        write_picture([tmp_path / "nowhere"], tmp_path / "picture.png")
    empty = made.save(tmp_path / "empty", [])
    with pytest.raises(InputError, match="publishes nothing"):
        write_picture([empty], tmp_path / "picture.png")


def test_the_command_never_overwrites_unasked(tmp_path: Path) -> None:
    folder, target = made.hexagons(tmp_path / "release"), tmp_path / "picture.png"
    assert CliRunner().invoke(app, ["report", str(folder), "--picture", str(target)]).exit_code == 0
    again = CliRunner().invoke(app, ["report", str(folder), "--picture", str(target)])
    assert isinstance(again.exception, InputError)
    assert CliRunner().invoke(app, ["report", str(folder), "--picture", str(target), "--force"]).exit_code == 0


def test_a_picture_of_one_axis_around_a_town_has_its_names(tmp_path: Path, page_built: Path) -> None:
    folder = made.hexagons(tmp_path / "release")
    near = write_picture([folder], tmp_path / "near.svg", axis="destination", near="paris", km=8)
    text = " ".join(text.text or "" for text in ElementTree.parse(near).getroot().iter(f"{SVG}text"))
    assert "Paris" in text
    assert "Destination zones (13)" in text
    assert "Origin zones" not in text
    by_degrees = write_picture([folder], tmp_path / "degrees.svg", axis="destination", near="2.43,48.84", km=8)
    assert by_degrees.read_bytes() != near.read_bytes()
    with pytest.raises(InputError, match="no town named 'Atlantis' among these zones"):
        write_picture([folder], tmp_path / "nowhere.svg", near="Atlantis")
    with pytest.raises(InputError, match="a positive number"):
        write_picture([folder], tmp_path / "nothing.svg", near="2.43,48.84", km=0)
    for away in ("48.84,2.43", "2.43,50.84", "nan,48.84"):
        with pytest.raises(InputError, match=r"no zones around .* longitude before latitude"):
            write_picture([folder], tmp_path / "sea.svg", near=away)
    with pytest.raises(InputError, match="have no outlines, so there is no map around 'Paris'"):
        map_window([], "Paris")


def test_the_figures_of_the_paper_come_from_one_command(tmp_path: Path) -> None:
    target = tmp_path / "paper.svg"
    one, two = made.pair(tmp_path)
    done = CliRunner().invoke(app, ["report", str(one), str(two), "--picture", str(target), "--paper"])
    assert done.exit_code == 0, done.output
    root = ElementTree.parse(target).getroot()
    text = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    assert "participants: 7 origin zones" in text
    assert "population: 13 origin zones" in text
    assert all(f"resolution {level}:" in text for level in range(5, 11))
    assert fills(root).count("#0072b2") == 7
    assert fills(root).count("#d55e00") >= 13
    with pytest.raises(InputError, match="two releases"):
        write_picture([one], tmp_path / "alone.svg", paper=True)


def test_segments_have_a_map_each(tmp_path: Path) -> None:
    _, text = svg([made.segments(tmp_path / "linked")], tmp_path / "picture.svg")
    for name in ("whole", "hour: 06-09", "hour: 15-18"):
        assert f"{name}: " in text
    assert "destination zones" in text
    assert "trips published in a zone" in text


def test_segments_of_zones_without_shapes_are_refused(tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "linked")
    for path in folder.glob("*/zones.geojson"):
        path.write_text(re.sub(r'"geometry": ?\{.*?\]\]\]\}', '"geometry": null', path.read_text()))
    with pytest.raises(InputError, match="no shapes to draw"):
        write_picture([folder], tmp_path / "picture.svg")
    assert not (tmp_path / "picture.svg").exists()


def test_flows_are_drawn_with_a_legend_and_a_scale_and_framed_on_nearly_all_trips(tmp_path: Path) -> None:
    near = made.disk(8, 2)
    far = h3.latlng_to_cell(47.0, 5.0, 8)
    flows = [*made.some_flows(near, near, 8), (far, near[0], 10)]
    folder = made.save(tmp_path / "release", flows, weights=False)
    _, text = svg([folder], tmp_path / "picture.svg")
    assert "estimated trips" in text
    assert " km" in text
    assert f"release: {sum(trips for *_, trips in flows):,} published trips" in text
    outlines = axis_outlines(open_release(folder), "origin", "trips")
    window = map_window(outlines)
    assert window is not None
    assert window.east < 3
    assert window.south > 48


def test_a_few_coarse_rows_do_not_paint_the_map(tmp_path: Path) -> None:
    """Seen before: 0.3 % of the trips, known between large areas only, painted the whole canvas."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    release = open_release(made.nested(tmp_path / "nested"))
    outlines = axis_outlines(release, "origin", "trips")
    figure, axes = pyplot.subplots()
    draw_map(axes, outlines, ["#ffff00"] * len(outlines), MapWindow(2.2, 48.75, 2.5, 48.95))
    filled = [each for each in axes.collections if len(each.get_facecolor()) and each.get_edgecolor().any()]
    small = sum(len(each.get_paths()) for each in filled if tuple(each.get_facecolor()[0][:3]) == (1.0, 1.0, 0.0))
    assert 0 < small < len(outlines)
    pyplot.close(figure)
