"""What the page does over time: lists, tooltips, scales, paper, and browsers that cannot draw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, FilePayload

from web import made
from web.axe import check_by_axe, look
from web.driver import Opened, open_report

STOP_NAME = "`${stop.tagName}: ${stop.ariaLabel ?? stop.labels?.[0]?.textContent ?? stop.textContent}`"
STOP = f"(() => {{ const stop = document.activeElement; return {STOP_NAME}; }})()"


@pytest.fixture(scope="module")
def hexagons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.hexagons(tmp_path_factory.mktemp("made") / "hexagons")


@pytest.fixture(scope="module")
def opened(browser: Browser, hexagons: Path) -> Iterator[Opened]:
    opened = open_report(browser, hexagons.parent / "state.html", [hexagons])
    yield opened
    opened.page.context.close()


def test_the_list_is_complete_sorted_and_searched(opened: Opened) -> None:
    buttons = opened.page.locator(".zonelist tbody button")
    assert buttons.count() == 19
    first = [int(cell.split()[0]) for cell in opened.page.locator(".zonelist tbody td:nth-child(2)").all_inner_texts()]
    assert first == sorted(first, reverse=True)
    opened.page.locator(".sort", has_text="trips").click()
    assert opened.page.locator('th[aria-sort="ascending"]').inner_text() == "trips"
    again = [int(cell.split()[0]) for cell in opened.page.locator(".zonelist tbody td:nth-child(2)").all_inner_texts()]
    assert again == sorted(first)
    wanted = buttons.nth(4).get_attribute("data-id") or ""
    opened.page.locator(".search input").fill(wanted)
    assert [one.get_attribute("data-id") for one in buttons.all()] == [wanted]
    opened.page.locator(".search input").fill("")
    opened.page.locator(".sort", has_text="trips").click()


def test_the_flows_are_never_more_than_there_are(opened: Opened) -> None:
    slider = opened.page.locator("#flows")
    slider.fill(slider.get_attribute("max") or "")
    assert opened.text(".flows output") == "all 152"
    slider.fill("3")
    assert opened.text(".flows output") == "strongest 50 of 152"


def test_choosing_a_zone_does_not_change_the_scale_of_zones(opened: Opened) -> None:
    key = ".legend .scale"
    before = opened.page.locator(key).first.inner_text()
    opened.page.locator(".zonelist tbody button").first.click()
    assert opened.page.locator(key).first.inner_text() == before
    opened.page.keyboard.press("Escape")
    assert opened.page.evaluate("odkanon.state().selected") is None


def test_focus_stays_in_the_list(opened: Opened) -> None:
    button = opened.page.locator(".zonelist tbody button").nth(2)
    zone = button.get_attribute("data-id")
    button.focus()
    opened.page.keyboard.press("Enter")
    assert f"Origin zone {zone}" in opened.page.evaluate("document.activeElement.textContent")
    opened.page.keyboard.press("Escape")
    assert opened.page.evaluate("document.activeElement.dataset.id") == zone


def test_the_keyboard_reaches_every_control_and_each_has_a_name(opened: Opened) -> None:
    opened.page.evaluate("document.activeElement.blur()")
    opened.page.locator(".theme").focus()
    stops: list[str] = [opened.page.evaluate(STOP)]
    for _ in range(200):
        opened.page.keyboard.press("Tab")
        stops.append(opened.page.evaluate(STOP))
        if stops[-1].startswith("BODY"):
            break
    reached = set(stops)
    assert not [stop for stop in stops if stop.startswith("CANVAS") or stop.endswith(": ")]
    assert any(stop.startswith("DIV: Map of the zones") for stop in stops)
    # Of a group of radio buttons one is a stop, and arrow keys reach the others.
    controls = opened.page.evaluate(
        f"""[...document.querySelectorAll("button, select, summary, input")].flatMap((element) => {{
          if (!element.checkVisibility() || (element.type === "radio" && !element.checked)) return [];
          const stop = element;
          return [{STOP_NAME}];
        }})"""
    )
    assert len(controls) > 30
    assert set(controls) <= reached


def test_streets_of_ones_own_lie_over_the_zones(opened: Opened) -> None:
    before = opened.settle().colours()
    line = {"type": "LineString", "coordinates": [[2.30, 48.84], [2.40, 48.87]]}
    file: FilePayload = {"name": "street.geojson", "mimeType": "application/json", "buffer": json.dumps(line).encode()}
    opened.page.locator(".file input").set_input_files(file)
    opened.page.wait_for_timeout(300)
    assert opened.settle().colours() != before


def test_the_map_shows_the_size_of_zones(opened: Opened) -> None:
    opened.pick("shade", "size")
    assert "size in km²" in opened.text(".legend")
    opened.pick("shade", "total")


def test_a_tooltip_goes_when_the_map_changes(opened: Opened) -> None:
    zone = opened.page.locator(".zonelist tbody button").first.get_attribute("data-id") or ""
    opened.page.locator("#flows").fill("0")
    opened.settle()
    opened.page.mouse.move(*opened.place("r0-origin", zone))
    opened.page.locator(".tip").wait_for(state="visible")
    opened.page.locator("#flows").focus()
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.locator(".tip").is_hidden()


def test_the_theme_follows_the_system_and_the_button_and_paper_is_light_at_once(
    browser: Browser, hexagons: Path
) -> None:
    dark = open_report(browser, hexagons.parent / "dark.html", [hexagons], theme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    in_dark = dark.page.evaluate(background)
    zone = dark.page.locator(".zonelist tbody button").first.get_attribute("data-id") or ""
    dark.page.locator("#flows").fill("0")
    shown_dark = dark.settle().zone_colours("r0-origin", [zone])[zone]
    script = """([panel, zone]) => {
      const [x, y] = odkanon.place(panel, zone), source = document.querySelector(".canvas canvas");
      const frame = source.getBoundingClientRect(), scale = source.width / frame.width;
      dispatchEvent(new Event("beforeprint"));
      // Paper shows a plain copy: of the map itself it would get the last frame on the screen, which is dark.
      const context = document.querySelector("canvas.paper").getContext("2d");
      return [...context.getImageData((x - frame.left) * scale, (y - frame.top) * scale, 1, 1).data].slice(0, 3);
    }"""
    printed = dark.page.evaluate(script, ["r0-origin", zone])
    assert dark.page.evaluate("document.documentElement.dataset.theme") == "light"
    dark.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert dark.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert dark.page.locator("canvas.paper").count() == 0
    dark.page.get_by_role("button", name="Light").click()
    shown = dark.settle().zone_colours("r0-origin", [zone])[zone]
    assert all(abs(one - two) <= 2 for one, two in zip(printed, shown, strict=True))
    assert shown != shown_dark
    assert dark.page.evaluate(background) != in_dark
    assert dark.problems == []
    dark.page.context.close()


def test_without_webgl_the_page_says_so_and_has_everything_else(browser: Browser, hexagons: Path) -> None:
    page = open_report(browser, hexagons.parent / "words.html", [hexagons], draws=False)
    assert "WebGL is off" in page.text(".failed")
    assert page.page.locator(".zonelist tbody tr").count() == 19
    assert page.page.locator(".tiles").is_visible()
    assert page.problems == []
    page.page.context.close()


def test_segments_are_one_page_with_a_switch(browser: Browser, tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "by hour")
    opened = open_report(browser, tmp_path / "segments.html", [folder], draws=False)
    switch = opened.page.locator(".switch select")
    assert switch.locator("option").all_inner_texts() == ["whole", "hour: 06-09", "hour: 15-18"]
    before = opened.text(".tiles")
    switch.select_option(label="hour: 15-18")
    assert opened.text("h1") == "by hour · hour: 15-18"
    assert opened.text(".tiles") != before
    assert "{" not in opened.text(".asked")
    assert "hour 15-18" in opened.text(".asked")
    assert opened.problems == []
    opened.page.context.close()


@pytest.mark.slow
def test_axe_finds_nothing_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    cube = open_report(browser, tmp_path / "cube.html", [made.cube(tmp_path / "cube")], theme="dark")
    two = open_report(browser, tmp_path / "two.html", made.nested_pair(tmp_path), theme="dark")
    for page in (cube, two):
        check_by_axe(page)
        page.page.context.close()


def test_text_that_cannot_be_read_on_the_map_would_be_found(opened: Opened) -> None:
    for selector, pale in ((".ruler", "#ccc"), (".frame span", "#ddd")):
        opened.page.evaluate(f"document.querySelector('{selector}').style.color = '{pale}'")
        wrong, _ = look(opened.page, "color-contrast")
        opened.page.evaluate(f"document.querySelector('{selector}').style.color = ''")
        assert wrong
    assert look(opened.page)[0] == []


def test_forced_colours_keep_what_colours_mean(opened: Opened) -> None:
    script = """[...document.querySelectorAll('.swatch i')].map((i) => getComputedStyle(i).backgroundColor)"""
    before = opened.page.evaluate(script)
    opened.page.emulate_media(forced_colors="active")
    assert opened.page.evaluate(script) == before
    assert len(set(before)) > 3
    opened.page.emulate_media(forced_colors="none")
