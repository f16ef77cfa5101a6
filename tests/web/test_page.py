"""The report in a real browser: opened from disk, with the network blocked."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser

from audit.tamper import edit_json
from odkanon import read_recipe
from odkanon.publish.report import write_full_report
from odkanon.release_format.recipe import recipe_path
from web import made
from web.driver import PHONE, Opened, open_page, open_report


def about(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "release.json").read_text())
    return content


def classes(folder: Path) -> list[dict[str, str]]:
    with (folder / "classes.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def hexagons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.hexagons(tmp_path_factory.mktemp("made") / "hexagons")


@pytest.fixture(scope="module")
def single(browser: Browser, hexagons: Path) -> Iterator[Opened]:
    opened = open_report(browser, hexagons.parent / "single.html", [hexagons])
    yield opened
    opened.page.context.close()


def test_opens_from_disk_without_a_request_or_an_error(single: Opened) -> None:
    assert single.problems == []
    assert [url for url in single.requests if not url.startswith("data:")] == [single.page.url]
    assert single.page.url.startswith("file:")


def test_the_policy_keeps_foreign_scripts_and_requests_out(browser: Browser, hexagons: Path) -> None:
    opened = open_report(browser, hexagons.parent / "policy.html", [hexagons], draws=False)
    opened.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.intruder = true";
          document.body.append(script);
          const picture = new Image();
          picture.src = "http://127.0.0.1:9/x.png";
          document.body.append(picture);
        }"""
    )
    opened.page.wait_for_timeout(200)
    assert opened.page.evaluate("window.intruder") is None
    assert any("Content Security Policy" in problem for problem in opened.problems)
    opened.page.context.close()


@pytest.mark.parametrize("axis", ["origin", "destination"])
def test_both_maps_are_drawn_and_more_trips_are_darker(single: Opened, hexagons: Path, axis: str) -> None:
    masses: dict[str, int] = {}
    for row in classes(hexagons):
        masses[row[axis]] = masses.get(row[axis], 0) + int(row["trips"])
    zones = sorted(masses, key=lambda zone: masses[zone])
    light = [sum(colour) for colour in single.zone_colours(f"r0-{axis}", zones).values()]
    assert light == sorted(light, reverse=True)
    assert light[0] > light[-1]
    assert len(single.colours()) > 50


def test_shows_the_numbers_of_the_release(single: Opened, hexagons: Path) -> None:
    told = about(hexagons)
    tiles = " ".join(single.text(".tiles").split())
    published, most = told["published"], told["unlisted"]["at_most_trips"]
    assert f"{published['trips']:,} trips in the published flows" in tiles
    assert f"{published['origins']} × {published['destinations']}" in tiles
    assert f"{published['classes']:,} flows" in tiles
    assert f"at most {most:,} trips the exact number is not published" in tiles
    assert {"850", "860", "1", "6.10"} <= set(single.text(".utility").split())
    assert "at best" not in single.text(".utility")
    smallest = min(int(row["persons"]) for row in classes(hexagons))
    assert {"10", str(smallest)} <= set(single.text(".privacy").split())
    assert f"at most {most:,}" in single.text(".account")
    assert f"Every published flow counts at least 10 trips; at most {most:,} trips" in single.text(".statement")
    for wrong in ("undefined", "NaN", "null"):
        assert wrong not in single.text("body")


def test_the_full_page_has_every_number_and_says_for_whom_it_is(browser: Browser, tmp_path: Path) -> None:
    folder = made.hexagons(tmp_path / "hexagons")
    squares = {"trips": {"squares": [{"name": "2 km", "cpc": 0.6173}]}}
    edit_json(recipe_path(folder), lambda content: content["about"].update(usefulness=squares))
    opened = open_page(browser, write_full_report(folder), draws=False)
    recipe = read_recipe(folder)
    assert recipe is not None
    told, tiles = recipe["about"], opened.text(".tiles")
    published, suppressed = told["published"], told["suppressed"]
    assert f"{published['trips']:,} trips of {published['trips'] + suppressed['trips']:,} usable" in tiles
    assert f"{published['share']:.1%}".replace("%", " %") in tiles
    assert f"{published['origins']} × {published['destinations']}" in tiles
    assert f"{published['classes']:,} flows" in tiles
    assert "besides rows that cannot be used: 312 with missing coordinates" in tiles
    assert "0.66 km²" in tiles
    assert f"{suppressed['trips']:,} trips, in {suppressed['pairs']:,} origin–destination pairs" in tiles
    assert {"852", "862", "1.02", "6.13"} <= set(opened.text(".utility").split())
    assert "at best 321" in opened.text(".utility")
    assert "Right between squares of 2 km" in opened.text(".utility")
    assert "61.7 %" in opened.text(".utility")
    assert {"11", "10", "552.8", "(1,005)", "42", "17"} <= set(opened.text(".privacy").split())
    account = opened.text(".account")
    assert f"{told['input']['rows']:,}" in account
    assert "312 rows" in account
    assert "Every published flow counts at least 10 trips; 10.0 % of the trips" in opened.text(".statement")
    assert "not for publication" in opened.text("footer")
    assert opened.problems == []
    opened.page.context.close()


def test_the_bars_count_every_class_and_show_the_threshold(single: Opened, hexagons: Path) -> None:
    charts = single.page.locator(".histogram")
    assert charts.count() == 3
    for chart in charts.all():
        titles = [title.text_content() or "" for title in chart.locator("title").all()]
        assert sum(int(title.split()[0].replace(",", "")) for title in titles) == len(classes(hexagons))
        # What k is in weight is not public where the rule does not count weight.
        weighted = "Weighted" in chart.locator("figcaption").inner_text()
        assert ("threshold" in (chart.text_content() or "")) != weighted


def test_switches_axes(single: Opened) -> None:
    single.pick("axes", "destination")
    assert single.page.locator(".frame").all_inner_texts() == ["Destinations: where trips end (13 zones)"]
    single.pick("axes", "origin")
    assert single.page.locator(".frame").all_inner_texts() == ["Origins: where trips start (19 zones)"]
    single.pick("axes", "both")
    assert single.page.locator(".frame").count() == 2


def test_colours_follow_what_is_counted(single: Opened) -> None:
    by_total = single.colours()
    by_area = single.pick("shade", "density").colours()
    assert "per km²" in single.text(".legend")
    assert by_area != by_total
    single.pick("shade", "total").pick("measure", "weight")
    assert "weighted trips" in single.text(".legend")
    single.pick("measure", "trips")


def test_a_click_on_a_zone_shows_its_flows(single: Opened, hexagons: Path) -> None:
    zone = classes(hexagons)[0]["origin"]
    before = single.colours()
    single.page.mouse.click(*single.place("r0-origin", zone))
    single.until("odkanon.state().selected !== null")
    single.settle()
    assert f"Origin zone {zone}" in single.text(".zones h2")
    expected = sorted(
        ((row["destination"], int(row["trips"])) for row in classes(hexagons) if row["origin"] == zone),
        key=lambda flow: -flow[1],
    )
    rows = single.page.locator(".zonelist tbody tr").all()
    ids = [row.locator("button").get_attribute("data-id") for row in rows]
    listed = [[zone, row.locator("td").first.inner_text().split()[0]] for zone, row in zip(ids, rows, strict=True)]
    assert sorted(listed) == sorted([destination, f"{trips:,}"] for destination, trips in expected)
    assert [trips for _, trips in listed] == [f"{trips:,}" for _, trips in expected]
    assert single.colours() != before
    single.page.get_by_role("button", name="Back to all zones").click()
    assert "All 19 origin zones" in single.text(".zones h2")


def test_a_tooltip_speaks_plainly(single: Opened, hexagons: Path) -> None:
    single.page.locator("#flows").fill("0")
    single.settle()
    zone = classes(hexagons)[-1]["origin"]
    single.page.mouse.move(*single.place("r0-origin", zone))
    tip = single.page.locator(".tip")
    tip.wait_for(state="visible")
    trips = sum(int(row["trips"]) for row in classes(hexagons) if row["origin"] == zone)
    assert f"Origin zone {zone}" in tip.inner_text()
    assert f"{trips:,} trips start here" in tip.inner_text()
    assert "H3 resolution 8" in tip.inner_text()


def test_the_keyboard_reaches_zones_and_map(single: Opened, hexagons: Path) -> None:
    button = single.page.locator(".zonelist tbody button").first
    zone = button.get_attribute("data-id") or ""
    button.focus()
    single.page.keyboard.press("Enter")
    assert single.page.evaluate("odkanon.state().selected.id") == zone
    single.page.get_by_role("button", name="Back to all zones").click()
    single.settle()  # what is drawn later takes the tip away
    single.page.locator(".maps").focus()
    before = single.place("r0-origin", zone)
    single.page.keyboard.press("ArrowRight")
    single.page.locator(".tip").wait_for(state="visible")
    assert single.page.locator(".pointer path").count() == 2
    assert single.place("r0-origin", zone)[0] < before[0]
    single.page.keyboard.press("0")
    single.page.locator('input[name="axes"]:checked').focus()
    single.page.keyboard.press("ArrowLeft")
    assert single.page.evaluate("odkanon.state().axes") == "destination"
    single.pick("axes", "both")


def test_a_phone_shows_everything_without_sideways_scrolling(browser: Browser, hexagons: Path) -> None:
    opened = open_report(browser, hexagons.parent / "phone.html", [hexagons], size=PHONE)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    frames = [frame.bounding_box() for frame in opened.page.locator(".frame").all()]
    assert len(frames) == 2
    upper, lower = frames
    assert upper is not None
    assert lower is not None
    assert upper["y"] + upper["height"] <= lower["y"]
    # A window of 1280 pixels at 200 %.
    opened.page.set_viewport_size({"width": 640, "height": 430})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 640
    assert opened.problems == []
    opened.page.context.close()


def test_boxes_are_drawn_and_what_they_lack_is_said(browser: Browser, tmp_path: Path) -> None:
    folder = made.boxes(tmp_path / "boxes")
    opened = open_report(browser, tmp_path / "boxes.html", [folder])
    assert "not defined" in opened.text(".utility")
    opened.page.locator("#flows").fill("0")
    opened.settle()
    opened.page.get_by_role("button", name="o59", exact=True).click()
    assert opened.page.locator(".zonelist tbody button").all_inner_texts() == ["d59"]
    assert opened.problems == []
    opened.page.context.close()


@pytest.mark.slow
def test_thousands_of_boxes_on_top_of_each_other_are_added_up(browser: Browser, tmp_path: Path) -> None:
    folder = made.boxes(tmp_path / "boxes", 2500)
    opened = open_report(browser, tmp_path / "many.html", [folder])
    assert "per km², an estimate" in opened.text(".legend")
    before = opened.colours()
    assert opened.pick("shade", "size").colours() != before
    x, y = opened.page.evaluate("odkanon.spot('r0-origin', [2.325, 48.865])")
    opened.page.mouse.click(x, y)
    opened.until("odkanon.state().selected !== null")
    zone = opened.page.evaluate("odkanon.state().selected.id")
    # Each box has one partner, and only these two are left on the map.
    assert opened.page.locator(".zonelist tbody button").all_inner_texts() == [zone.replace("o", "d")]
    assert opened.settle().colours() != before
    assert opened.problems == []
    opened.page.context.close()


def test_zones_without_shapes_are_listed(browser: Browser, tmp_path: Path) -> None:
    shapes: dict[str, dict[str, dict[str, Any] | None]] = {"origin": {"a": None}, "destination": {"</script>": None}}
    folder = made.save(tmp_path / "bare", [("a", "</script>", 12)], shapes, weights=False)
    opened = open_report(browser, tmp_path / "bare.html", [folder], wait=False)
    assert "no shapes to draw" in opened.text(".maps")
    opened.page.get_by_role("button", name="a", exact=True).click()
    assert opened.page.locator(".zonelist tbody button").all_inner_texts() == ["</script>"]
    assert opened.problems == []
    opened.page.context.close()


def test_two_releases_highlight_exactly_what_differs(browser: Browser, tmp_path: Path) -> None:
    folders = made.pair(tmp_path)
    opened = open_report(browser, tmp_path / "pair.html", folders)
    zones = [{row["origin"] for row in classes(folder)} for folder in folders]
    for number, (own, far) in enumerate([(zones[0], zones[1]), (zones[1], zones[0])]):
        listed = opened.page.locator(f'details[data-axis="origin"][data-only="{number}"] li').all_text_contents()
        assert set(listed) == own - far
        colours = opened.zone_colours(f"r{number}-origin", sorted(own))
        sign = 1 if number == 0 else -1  # blue stands out in the first release, vermilion in the second
        bright = {zone for zone, (red, _, blue) in colours.items() if sign * (blue - red) > 60}
        assert bright == own - far
    assert opened.page.locator('details[data-axis="destination"]').count() == 0
    assert opened.problems == []
    opened.page.context.close()


def test_several_releases_stand_side_by_side(browser: Browser, tmp_path: Path, hexagons: Path) -> None:
    opened = open_report(browser, tmp_path / "several.html", [*made.pair(tmp_path), hexagons])
    titles = opened.page.locator(".frame").all_inner_texts()
    assert [title.split(" · ")[0] for title in titles] == ["participants", "population", "hexagons"]
    # On paper no column may be cut off: there is nothing to scroll with.
    opened.page.set_viewport_size({"width": 680, "height": 960})
    opened.page.emulate_media(media="print")
    wide = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert opened.page.evaluate(wide) == 0
    assert opened.problems == []
    opened.page.context.close()


@pytest.mark.slow
def test_five_thousand_zones_and_two_hundred_thousand_flows_stay_usable(
    browser: Browser, single: Opened, tmp_path: Path, record_property: Any
) -> None:
    # `single` comes first: the graphics of a browser that has just started are not what is measured here.
    folder = made.large(tmp_path / "large")
    opened = open_report(browser, tmp_path / "large.html", [folder])
    assert about(folder)["published"]["classes"] == 200_000
    record_property("seconds_to_load", round(opened.seconds, 1))
    zone = classes(folder)[0]["origin"]
    opened.page.locator(".search input").fill(zone)
    opened.page.keyboard.press("Enter")
    assert opened.page.locator(".zonelist tbody tr").count() == 80
    assert opened.problems == []
    opened.page.context.close()
