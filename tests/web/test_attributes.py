"""The map of a cube in a real browser: hours and modes are chips, sliders and small maps, and no trip is lost."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

import h3
from playwright.sync_api import Browser

from web import made
from web.axe import check_by_axe
from web.driver import PIXELS, Opened, answer, open_report


@pytest.fixture(scope="module")
def cube(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Opened, list[dict[str, str]]]]:
    folder = made.cube(tmp_path_factory.mktemp("made") / "cube")
    opened = open_report(browser, folder.parent / "cube.html", [folder])
    with (folder / "classes.csv").open(newline="") as file:
        yield opened, list(csv.DictReader(file))
    assert opened.problems == []
    opened.page.context.close()


def trips_of(rows: list[dict[str, str]], **wanted: set[str]) -> int:
    return sum(int(row["trips"]) for row in rows if all(row[name] in values for name, values in wanted.items()))


def test_attributes_are_chips_with_what_is_not_given(cube: tuple[Opened, list[dict[str, str]]]) -> None:
    opened, rows = cube
    chips = opened.page.locator('.chips[aria-label="mode"] .chip')
    assert [chip.locator("span").inner_text() for chip in chips.all()] == ["bus", "car", "not given"]
    for value in ("bus", "any"):
        opened.page.locator(f'.chips[aria-label="mode"] .chip[data-key="{value}"]').click()
        total, text = answer(opened)
        assert total == trips_of(rows, mode={value})
        loose = trips_of(rows, mode={"any"})
        assert (f"Another {loose:,} trips may be among them" in text) == (value == "bus")
        # Whoever chose with the keyboard is still there.
        assert opened.page.evaluate("document.activeElement.dataset.key") == value
        opened.page.keyboard.press("Enter")
    assert answer(opened)[0] == trips_of(rows)
    opened.page.locator(".part.place").click()
    told = {"bus", "car"}, {"06", "15", "06-09", "15-18"}
    assert answer(opened)[0] == trips_of(rows) - trips_of(rows, mode=told[0], hour=told[1])
    opened.page.locator(".part.place").click()


def test_hours_are_a_slider_and_lie_in_parts_of_the_day(cube: tuple[Opened, list[dict[str, str]]]) -> None:
    opened, rows = cube
    chips = opened.page.locator('.chips[aria-label="hour"] .chip')
    masses = [int(chip.locator("small").inner_text().replace(",", "").lstrip("≥\xa0")) for chip in chips.all()]
    assert masses == [trips_of(rows, hour={hour, slot}) for hour, slot in (("06", "06-09"), ("15", "15-18"))] + [
        trips_of(rows, hour={"any"})
    ]
    assert sum(masses) == trips_of(rows)
    slider = opened.page.locator("#kind-hour")
    slider.focus()
    before = opened.colours()
    opened.page.keyboard.press("ArrowRight")
    total, text = answer(opened)
    assert total == trips_of(rows, hour={"06"})
    assert text.startswith("Everywhere, hour 06: ")
    assert "within" in text
    assert f"Another {trips_of(rows, hour={'06-09', 'any'}):,} trips may be among them" in text
    assert slider.get_attribute("aria-valuetext") == f"06: at least {total:,} trips"
    assert opened.settle().colours() != before
    opened.page.keyboard.press("Home")
    assert answer(opened)[0] == trips_of(rows)


def test_each_value_has_a_small_map_on_one_scale(cube: tuple[Opened, list[dict[str, str]]]) -> None:
    opened, rows = cube
    opened.page.get_by_role("button", name="One map for each mode").click()
    titles = opened.settle().page.locator(".frame").all_inner_texts()
    titled = [("bus", "bus"), ("car", "car"), ("not given", "any")]
    assert titles == [f"{title} · {trips_of(rows, mode={value}):,} trips" for title, value in titled]
    assert opened.page.locator(".legend .scale").count() == 1
    assert answer(opened)[0] == trips_of(rows)
    opened.page.evaluate("document.querySelector('.maps').scrollIntoView()")
    # What is not given is only published for large cells, so its map is another picture of the same place.
    at = [h3.cell_to_latlng(max(rows, key=lambda row: int(row["trips"]))["destination"])[::-1]] * 3
    spots = [opened.page.evaluate("([n, at]) => odkanon.spot(`m${n}`, at)", [n, place]) for n, place in enumerate(at)]
    frames = [frame.bounding_box() for frame in opened.page.locator(".frame").all()]
    for (x, y), frame in zip(spots, frames, strict=True):
        assert frame is not None
        assert frame["x"] < x < frame["x"] + frame["width"]
        assert frame["y"] < y < frame["y"] + frame["height"]
    assert len({tuple(colour) for colour in opened.page.evaluate(PIXELS, spots)}) > 1
    opened.page.mouse.click(*spots[0])
    opened.until("odkanon.state().place !== null")
    total, text = answer(opened)
    assert text.startswith("From around ")
    assert total < trips_of(rows)
    opened.page.get_by_role("button", name="One map for each mode").click()
    assert opened.page.locator(".frame").count() == 1


def test_axe_finds_nothing_in_a_cube_and_what_it_leaves_open_can_be_read(
    cube: tuple[Opened, list[dict[str, str]]],
) -> None:
    check_by_axe(cube[0])
