"""The explorer in a real browser: the map and the numbers follow the controls."""

from __future__ import annotations

import json
import statistics
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser
from typer.testing import CliRunner

from odkanon.cli import app
from odkanon.explore import ExploreServer, open_in_browser
from odkanon.sample.crowd import write_crowd
from web.axe import look
from web.driver import NO_WEBGL, Opened
from web.exploring import WITHIN, ask, assert_same_release, first, serving


def contribution(browser: Browser, server: ExploreServer, *, draws: bool) -> Opened:
    """Open the explorer; one that does not draw has everything but the map, and sooner."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    if not draws:
        context.add_init_script(NO_WEBGL)
    opened = Opened(context.new_page())
    opened.page.on("console", opened.note)
    opened.page.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.page.on("request", opened.request)
    opened.page.goto(server.url)
    opened.page.wait_for_selector(".maps[data-drawn]" if draws else ".say", timeout=60_000)
    return opened


@pytest.fixture(scope="module")
def live(browser: Browser, server: ExploreServer) -> Iterator[Opened]:
    """The explorer with its map, wherever the test before left its controls."""
    opened = contribution(browser, server, draws=True)
    yield opened
    opened.page.context.close()


@pytest.fixture
def words(browser: Browser, server: ExploreServer) -> Iterator[Opened]:
    """The explorer without its map."""
    opened = contribution(browser, server, draws=False)
    yield opened
    opened.page.context.close()


def drag(opened: Opened, k: int) -> None:
    opened.page.get_by_role("slider", name="k", exact=True).fill(str(k))


def wait_for(opened: Opened, **wanted: Any) -> None:
    for name, value in wanted.items():
        asked = f"odkanon.shown()?.request[{json.dumps(name)}] === {json.dumps(value)}"
        opened.until(f"{asked} && odkanon.shown().whole", 60)


def numbers(opened: Opened) -> dict[str, str]:
    """The figures behind the promise."""
    opened.open_made()
    tiles = opened.page.locator(".tile").all()
    found = {tile.locator("h2").inner_text(): tile.locator(".big").inner_text() for tile in tiles}
    opened.press("Close")
    return found


def test_axe_finds_nothing_in_the_explorer(live: Opened) -> None:
    live.settle(60)
    for theme in ("Dark", "Light"):
        assert look(live.page)[0] == []
        live.press(theme)
        live.settle(60)


def test_moving_k_changes_zones_and_numbers(live: Opened, server: ExploreServer) -> None:
    live.settle(60)
    before, colours = numbers(live), live.colours()
    drag(live, 40)
    wait_for(live, k=40)
    live.settle(60)
    assert numbers(live)["Zones"] != before["Zones"]
    assert live.colours() != colours
    assert "at least 40 trips" in live.promise()
    live.until("document.querySelectorAll('.curve polyline').length === 1", 60)
    live.open_made()
    live.until("document.querySelector('.utility').textContent.includes('at best')", 60)
    live.until("document.querySelector('.utility').textContent.includes('Right between squares of 4 km')")
    live.press("Close")
    assert live.problems == []
    assert {url.rsplit("/", 1)[0] for url in live.requests if not url.startswith("data:")} == {server.url.rstrip("/")}


def test_fifty_quick_drags_leave_no_stale_result(live: Opened, server: ExploreServer) -> None:
    slider = live.page.get_by_role("slider", name="k", exact=True)
    slider.evaluate(
        """(slider) => {
          for (let k = 51; k <= 100; k++) {
            slider.value = k === 100 ? 17 : k;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
          }
        }"""
    )
    wait_for(live, k=17)
    live.page.wait_for_timeout(1500)
    assert live.page.evaluate("odkanon.shown().request.k") == 17
    assert "at least 17 trips" in live.promise()
    _, answer = ask(server, "anonymize", first(server, k=17))
    published = answer["releases"][0]["about"]["published"]
    assert numbers(live)["Zones"].replace(" ", "") == f"{published['origins']}×{published['destinations']}"
    assert live.problems == []


def test_participants_beside_population(words: Opened) -> None:
    words.page.get_by_role("checkbox", name="Participants | population").check()
    wait_for(words, split=True)
    assert words.text("h1") == "participants to population"
    assert words.state("view") == "change"
    words.page.get_by_role("checkbox", name="Participants | population").uncheck()
    wait_for(words, split=False)
    assert words.state("view") == "flows"
    assert words.problems == []


def test_a_slow_method_can_be_stopped(words: Opened) -> None:
    words.page.get_by_role("combobox", name="Method").select_option("freezones")
    stop = words.page.get_by_role("button", name="Stop")
    stop.wait_for(state="visible")
    stop.click()
    wait_for(words, method="odkanon")
    assert words.page.get_by_role("combobox", name="Method").input_value() == "odkanon"
    stop.wait_for(state="hidden")
    words.open_made()
    assert "ODkAnon" in words.text(".asked")


def test_a_state_is_saved_as_the_command_line_would_save_it(
    words: Opened, server: ExploreServer, survey: Path, tmp_path: Path
) -> None:
    drag(words, 12)
    words.page.get_by_role("radio", name="before merging").check()
    words.page.get_by_role("checkbox", name="Weighted trips").check()
    wait_for(words, k=12, suppress="before")
    words.until("odkanon.shown()?.request.targets.length === 2", 60)
    words.page.get_by_role("textbox", name="Name of the folder").fill("by hand")
    words.page.get_by_role("button", name="Save this release").click()
    words.page.get_by_text("Saved as by hand").wait_for(timeout=60_000)
    asked = ["--k", "12", "--protect", "participants", "--protect", "population", "--suppress", "before"]
    command = ["anonymize", str(survey), "-o", str(tmp_path / "by hand"), "--within", WITHIN, *asked]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert_same_release(server.session.folder / "by hand", tmp_path / "by hand")


@pytest.fixture(scope="module")
def crowd(page_built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExploreServer]:
    """An explorer of 50,000 trips."""
    folder = tmp_path_factory.mktemp("crowd")
    with serving(write_crowd(50_000, folder / "trips"), folder) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("method", ["odkanon", "cascade"])
def test_how_long_the_pixels_take_to_follow(
    browser: Browser, crowd: ExploreServer, record_property: Any, method: str
) -> None:
    live = contribution(browser, crowd, draws=True)
    live.page.get_by_role("combobox", name="Method").select_option(method)
    wait_for(live, method=method)
    live.settle(60)
    times = live.page.evaluate(
        """async () => {
          const slider = document.querySelector('input[aria-label="k"]'), maps = document.querySelector(".maps");
          const times = [], pause = (ms) => new Promise((go) => setTimeout(go, ms));
          const gl = document.querySelector(".canvas canvas").getContext("webgl2"), pixel = new Uint8Array(4);
          for (let k = 20; k < 41; k++) {
            await pause(1000);
            const start = performance.now();
            slider.value = k;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            while (odkanon.shown()?.request.k !== k || Number(maps.dataset.drawn) < odkanon.shown().at) await pause(4);
            // Reading a pixel back waits until it was really drawn.
            gl.readPixels(9, 9, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
            times.push(performance.now() - start);
          }
          return times;
        }"""
    )
    median = statistics.median(times)
    record_property("median_milliseconds_from_slider_to_pixels", round(median))
    print(
        f"slider to pixels, {method}: median {median:.0f} ms, fastest {min(times):.0f} ms, slowest {max(times):.0f} ms"
    )
    assert len(times) == 21
    # 300 ms is what it should be; however busy the machine, one step in 21 takes less than a second.
    assert min(times) <= 1000
    live.page.context.close()


def test_where_nothing_can_be_published_a_sentence_says_so_and_the_residual_stays(
    browser: Browser, page_built: Path, tmp_path: Path
) -> None:
    source = tmp_path / "few.csv"
    row = "{},2024-01-01 0{}:00,48.85,2.35,48.86,2.36"
    rows = [row.format(person, hour) for person in "abc" for hour in range(8)]
    source.write_text("\n".join(["person,start_time,start_lat,start_lon,end_lat,end_lon", *rows]) + "\n")
    with serving(source, tmp_path) as server:
        assert ask(server, "anonymize", first(server, targets=["persons"]))[0] == 422
        opened = contribution(browser, server, draws=False)
        drag(opened, 11)
        wait_for(opened, k=11)
        opened.page.get_by_role("checkbox", name="Different persons").check()
        problem = opened.page.get_by_text("Nothing can be published")
        problem.wait_for(timeout=60_000)
        said = problem.inner_text()
        assert "at least 11 trips and at least 11 different persons in every flow" in said
        assert "still shows k = 11" in said
        assert "Rule(" not in said
        assert opened.page.locator(".say").is_visible()
        opened.page.get_by_role("checkbox", name="Different persons").uncheck()
        problem.wait_for(state="hidden", timeout=60_000)
        opened.page.context.close()


@pytest.mark.parametrize("draws", [True, False])
def test_a_stopped_server_is_said_and_the_page_stays(
    browser: Browser, survey: Path, tmp_path: Path, draws: bool
) -> None:
    with serving(survey, tmp_path, within=WITHIN) as server:
        opened = contribution(browser, server, draws=draws)
    drag(opened, 33)
    opened.page.get_by_text("ODkAnon no longer answers").wait_for(timeout=60_000)
    assert opened.page.locator(".say").is_visible()
    assert "Failed to fetch" not in opened.text("body")
    opened.page.context.close()


def test_the_file_that_opens_the_browser_leads_to_the_page(
    browser: Browser, server: ExploreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = browser.new_context()
    context.add_init_script(NO_WEBGL)
    page = context.new_page()
    monkeypatch.setattr(webbrowser, "open", page.goto)
    with open_in_browser(server.url):
        page.wait_for_selector(".say", timeout=60_000)
        assert page.url == server.url
    context.close()


def test_attributes_are_controls_and_make_a_cube(words: Opened) -> None:
    words.page.get_by_role("checkbox", name="sex").check()
    wait_for(words, method="cascade")
    words.until("odkanon.shown()?.request.by.length === 1 && odkanon.shown().whole", 60)
    assert words.page.get_by_label("Method").input_value() == "cascade"
    assert words.page.locator('.chips[aria-label="sex"] .chip').count() >= 3
    # One zoning for all flows has no attributes: choosing such a method takes them back.
    words.page.get_by_label("Method").select_option("odkanon")
    wait_for(words, method="odkanon")
    assert not words.page.get_by_role("checkbox", name="sex").is_checked()
    words.until("document.querySelectorAll('.chip').length === 0")
    assert words.problems == []
