"""The report in a real browser: opened from disk, with the network blocked."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

import numpy as np
from PIL import Image
from playwright.sync_api import Browser

from audit.tamper import edit_json
from odkanon import read_recipe
from odkanon.publish.report import PageTexts, write_full_report
from odkanon.publish.report.place_names import Districts
from odkanon.release_format.recipe import recipe_path
from web import made
from web.axe import check_by_axe, look
from web.driver import FREE, PHONE, PIXELS, Opened, open_page, open_report, plain

STOP_NAME = "`${stop.tagName}: ${stop.ariaLabel ?? stop.labels?.[0]?.textContent ?? stop.textContent}`"
STOP = f"(() => {{ const stop = document.activeElement; return {STOP_NAME}; }})()"
HEX = re.compile(r"8[0-9a-f]{14}")


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


@pytest.fixture(scope="module")
def cube(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder = made.cube(tmp_path_factory.mktemp("made") / "cube")
    opened = open_report(browser, folder.parent / "cube.html", [folder])
    yield opened
    assert opened.problems == []
    opened.page.context.close()


@pytest.fixture
def city(single: Opened) -> Opened:
    """The map as it opens, whatever the test before did to it."""
    single.page.evaluate("location.hash = 'count=trips'")
    single.until("odkanon.state().from === null && odkanon.state().view === 'flows'")
    single.page.locator(".zoom button").nth(2).click()
    return single


def number(text: str) -> int:
    """The first number of a sentence."""
    found = re.search(r"[\d,]+", text)
    assert found, text
    return int(found[0].replace(",", ""))


def bounds(text: str) -> tuple[int, int]:
    found = re.search(r"Certainly (?:between )?([\d,]+)(?: and ([\d,]+))?", text)
    assert found, text
    low, high = found[1], found[2] or found[1]
    return int(low.replace(",", "")), int(high.replace(",", ""))


def test_opens_from_disk_without_a_request_or_an_error(single: Opened) -> None:
    assert single.problems == []
    assert [url for url in single.requests if not url.startswith("data:")] == [single.page.url.split("#")[0]]
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


def test_the_map_fills_the_window(city: Opened) -> None:
    size = city.page.viewport_size
    frame = city.page.locator(".canvas canvas").bounding_box()
    assert size is not None
    assert frame is not None
    assert frame["width"] * frame["height"] >= 0.85 * size["width"] * size["height"]
    assert city.page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    # The title is that of a place, not that of a folder.
    assert city.text("h1") == "Where Paris travels"
    assert "hexagons" not in city.text("main")


@pytest.mark.parametrize("made_by", [made.cube, made.hexagons])
def test_the_map_lies_free_at_every_size(browser: Browser, tmp_path: Path, made_by: Callable[[Path], Path]) -> None:
    texts = PageTexts(title="Where Paris travels", source="A household travel survey", period="2012, working day")
    opened = open_report(browser, tmp_path / "free.html", [made_by(tmp_path / "release")], draws=False, texts=texts)
    sizes = {(1440, 900): 0.85, (1280, 720): 0.85, (390, 844): 0.6}
    for (width, height), least in sizes.items():
        opened.page.set_viewport_size({"width": width, "height": height})
        assert opened.page.evaluate(FREE) >= least, (width, height)
    # All of the list is there on request, and the card shrinks to its title.
    opened.page.set_viewport_size({"width": 1440, "height": 900})
    rows = opened.page.locator(".ranked li")
    assert [row.is_visible() for row in rows.all()] == [number < 4 for number in range(rows.count())]
    opened.page.get_by_role("button", name=re.compile("All .* places")).click()
    assert all(row.is_visible() for row in rows.all())
    opened.press("Fewer places").press("Show only the title")
    assert opened.page.locator(".say").is_hidden()
    opened.press("Show the whole card")
    assert opened.page.locator(".say").is_visible()
    opened.page.context.close()


def test_the_first_sentence_counts_all_trips(city: Opened, hexagons: Path) -> None:
    total = sum(int(row["trips"]) for row in classes(hexagons))
    assert f"{total:,} trips" in city.text(".say")
    listed = [number(text) for text in city.page.locator(".ranked em").all_inner_texts()]
    # Each has as many digits as it deserves.
    assert all(one >= 0.9 * other for one, other in pairwise(listed))
    for wrong in ("undefined", "NaN", "null", "Infinity"):
        assert wrong not in city.text("body")


def busiest(folder: Path, end: str) -> str:
    sums: dict[str, int] = {}
    for row in classes(folder):
        sums[row[end]] = sums.get(row[end], 0) + int(row["trips"])
    return max(sorted(sums), key=lambda zone: sums[zone])


def test_clicks_ask_from_and_to_and_escape_steps_back(city: Opened, hexagons: Path) -> None:
    zone = busiest(hexagons, "origin")
    row = max((row for row in classes(hexagons) if row["origin"] == zone), key=lambda row: int(row["trips"]))
    origin, destination = ((each if each in city.places() else None) for each in (zone, row["destination"]))
    assert origin is not None
    city.page.mouse.click(*city.place(origin))
    city.until("odkanon.state().from !== null")
    started = sum(int(each["trips"]) for each in classes(hexagons) if each["origin"] == origin)
    assert f"{started:,} trips start in " in city.text(".say")
    assert city.text("h1").startswith("Trips from ")
    assert all(line["ends"][0] == city.places().index(origin) for line in city.page.evaluate("odkanon.lines()"))
    other = next(each for each in city.places() if each != origin) if destination is None else destination
    city.page.mouse.click(*city.place(other))
    city.until("odkanon.state().to !== null")
    assert city.state("from") == origin
    assert city.state("to") == other
    city.page.keyboard.press("Escape")
    assert (city.state("from"), city.state("to")) == (origin, None)
    city.page.keyboard.press("Escape")
    assert city.state("from") is None
    assert "Where" in city.text("h1")


def test_a_pair_is_told_with_its_interval_and_what_is_certain(city: Opened, hexagons: Path) -> None:
    known = set(city.places())
    rows = [row for row in classes(hexagons) if {row["origin"], row["destination"]} <= known]
    assert len(rows) > 20
    for row in rows[:8]:
        city.page.evaluate(f"location.hash = 'count=trips&from={row['origin']}&to={row['destination']}'")
        city.until(f"odkanon.state().to === {json.dumps(row['destination'])}")
        low, high = bounds(city.text(".say"))
        estimate = number(city.text(".say"))
        assert low == int(row["trips"])
        assert low <= estimate <= high or "about" in city.text(".say").lower()


def test_places_are_found_by_typing_and_nothing_else_is_guessed(city: Opened) -> None:
    field = city.page.get_by_role("combobox", name="From")
    field.fill("pari")
    options = city.page.locator("#options-from li")
    assert options.first.inner_text().startswith("Paris")
    field.press("Enter")
    city.until("odkanon.state().from !== null")
    assert field.input_value().startswith("Paris")
    city.page.get_by_role("button", name="Clear From").click()
    city.until("odkanon.state().from === null")
    # "Mission" is not Mission Viejo, nor anything else: it is not here.
    field.fill("Mission")
    assert options.all_inner_texts() == ["No place of that name here. Click the map instead."]
    field.press("Enter")
    assert city.state("from") is None
    field.press("Escape")


def test_no_id_is_ever_shown(city: Opened) -> None:
    place = city.places()[0]
    city.page.mouse.move(*city.place(place))
    tip = city.page.locator(".tip")
    tip.wait_for(state="visible")
    assert not HEX.search(tip.inner_text())
    city.page.mouse.click(*city.place(place))
    city.until("odkanon.state().from !== null")
    city.press("Matrix")
    assert not HEX.search(city.page.locator("main").inner_text())
    titles = city.page.locator("[title]").evaluate_all("all => all.map((one) => one.title).join(' ')")
    assert not HEX.search(titles)


def test_the_pointer_names_both_ends(city: Opened) -> None:
    origin = busiest_of(city)
    city.page.mouse.click(*city.place(origin))
    city.until("odkanon.state().from !== null")
    other = next(each for each in city.places() if each != origin)
    city.page.mouse.move(*city.place(other))
    tip = city.page.locator(".tip")
    tip.wait_for(state="visible")
    assert " to " in tip.locator("strong").inner_text()
    assert re.search(r"trips|<", tip.inner_text())


def busiest_of(opened: Opened) -> str:
    """The place where most of the drawn flows start."""
    ends = [line["ends"][0] for line in opened.page.evaluate("odkanon.lines()")]
    most: int = max(sorted(set(ends)), key=ends.count)
    return opened.places()[most]


def test_zooming_in_shows_finer_places(city: Opened) -> None:
    levels = set()
    for _ in range(5):
        levels.add(city.page.evaluate("odkanon.level().name"))
        city.page.get_by_role("button", name="Zoom out").click()
    assert len(levels) > 1
    city.page.get_by_role("button", name="Whole area").click()


def test_all_choices_are_in_the_address(city: Opened, browser: Browser, hexagons: Path) -> None:
    origin = busiest_of(city)
    city.page.mouse.click(*city.place(origin))
    city.until("odkanon.state().from !== null")
    city.press("Matrix").press("Dark")
    city.open_menu("select")
    city.page.get_by_role("combobox", name="Language").select_option("es")
    again = open_page(browser, hexagons.parent / "single.html", draws=False, end="#" + city.page.url.partition("#")[2])
    assert again.page.evaluate("odkanon.state()") == city.page.evaluate("odkanon.state()")
    assert again.page.locator("html").get_attribute("lang") == "es"
    again.page.evaluate("location.hash = 'from=nowhere&only=mode:flying&view=none&at=x'")
    again.until("odkanon.state().from === null")
    assert again.problems == []
    again.page.context.close()
    city.page.get_by_role("combobox", name="Idioma").select_option("en")
    city.press("Light").press("Flows")


def test_no_english_is_left_in_another_language(browser: Browser, hexagons: Path) -> None:
    english = {"Flows", "Copy link", "Where trips end", "How it was made", "anywhere", "Whole area", "trips", "Most"}
    for language in ("es", "fr"):
        opened = open_report(
            browser, hexagons.parent / f"{language}.html", [hexagons], draws=False, end=f"#language={language}"
        )
        shown = opened.page.evaluate(
            """[document.querySelector("main").innerText, ...[...document.querySelectorAll("main *")].flatMap((one) =>
            [one.ariaLabel, one.title, one.placeholder])].filter(Boolean).join("\\n")"""
        )
        assert not [word for word in english if re.search(rf"\b{word}\b", shown)]
        opened.page.context.close()


def test_what_is_seen_can_be_taken_along(city: Opened, hexagons: Path) -> None:
    origin = busiest_of(city)
    city.page.mouse.click(*city.place(origin))
    city.until("odkanon.state().from !== null")
    with city.page.expect_download() as told:
        city.press("CSV")
    content = Path(told.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(content)))
    assert {row["from"] for row in rows} == {origin}
    assert len(rows) == len(city.page.locator(".ranked li").all())
    listed = sum(int(row["trips"]) for row in classes(hexagons) if row["origin"] == origin)
    assert sum(int(row["trips"]) for row in rows) == pytest.approx(listed, rel=0.05)
    assert all(int(row["low"]) <= int(row["trips"]) <= int(row["high"]) for row in rows)
    with city.page.expect_download() as told:
        city.press("PNG")
    assert Path(told.value.path()).read_bytes()[:4] == b"\x89PNG"
    city.press("Copy link")
    city.page.get_by_role("button", name="Copied").wait_for()


def test_a_row_of_the_list_is_outlined_on_the_map(city: Opened) -> None:
    assert city.page.locator(".pointer path").count() == 0
    city.page.locator(".ranked button").first.hover()
    assert city.page.locator(".pointer path").count() > 0
    city.page.mouse.move(700, 400)
    city.until("!document.querySelector('.pointer path') || !document.querySelector('.tip').hidden")


def test_the_matrix_lists_the_largest_places_and_leads_to_the_map(city: Opened) -> None:
    city.press("Matrix")
    names = city.page.locator(".heat tbody th").all_inner_texts()
    assert names == city.page.locator(".heat thead th span").all_inner_texts()
    city.press("by name")
    assert city.page.locator(".heat tbody th").all_inner_texts() == sorted(names)
    cell = city.page.locator(".heat td button").first
    value = cell.inner_text()
    cell.click()
    city.until("odkanon.state().view === 'flows' && odkanon.state().to !== null")
    assert value in city.text(".say")


def test_how_it_was_made_has_the_numbers_of_the_release(city: Opened, hexagons: Path) -> None:
    told: dict[str, Any] = json.loads((hexagons / "release.json").read_text())
    city.open_made()
    tiles = " ".join(city.text(".tiles").split())
    published, most = told["published"], told["unlisted"]["at_most_trips"]
    assert f"{published['trips']:,} trips in the published flows" in tiles
    assert f"{published['origins']} × {published['destinations']}" in tiles
    assert f"at most {most:,} trips the exact number is not published" in tiles
    assert {"850", "860", "1", "6.10"} <= set(city.text(".utility").split())
    assert "at best" not in city.text(".utility")
    smallest = min(int(row["persons"]) for row in classes(hexagons))
    assert {"10", str(smallest)} <= set(city.text(".privacy").split())
    assert f"Every published flow counts at least 10 trips; at most {most:,} trips" in city.text(".statement")
    charts = city.page.locator(".histogram")
    assert charts.count() == 3
    for chart in charts.all():
        titles = [title.text_content() or "" for title in chart.locator("title").all()]
        assert sum(int(title.split()[0].replace(",", "")) for title in titles) == len(classes(hexagons))
    city.press("Close")
    assert "at least 10 trips" in city.promise()


def test_the_full_page_has_every_number_and_says_for_whom_it_is(browser: Browser, tmp_path: Path) -> None:
    folder = made.hexagons(tmp_path / "hexagons")
    squares = {"trips": {"squares": [{"name": "2 km", "cpc": 0.6173}]}}
    edit_json(recipe_path(folder), lambda content: content["about"].update(usefulness=squares))
    opened = open_page(browser, write_full_report(folder), draws=False).open_made()
    recipe = read_recipe(folder)
    assert recipe is not None
    told, tiles = recipe["about"], opened.text(".tiles")
    published, suppressed = told["published"], told["suppressed"]
    assert f"{published['trips']:,} trips of {published['trips'] + suppressed['trips']:,} usable" in tiles
    assert "besides rows that cannot be used: 312 with missing coordinates" in tiles
    assert f"{suppressed['trips']:,} trips, in {suppressed['pairs']:,} origin–destination pairs" in tiles
    assert {"852", "862", "1.02", "6.13"} <= set(opened.text(".utility").split())
    assert "at best 321" in opened.text(".utility")
    assert "61.7 %" in opened.text(".utility")
    assert {"11", "10", "552.8", "(1,005)", "42", "17"} <= set(opened.text(".privacy").split())
    assert "312 rows" in opened.text(".account")
    assert "not for publication" in opened.text("footer")
    assert opened.problems == []
    opened.page.context.close()


def test_values_of_attributes_are_chips_and_hours_are_bars(cube: Opened) -> None:
    chips = cube.page.locator('.chips[aria-label="mode"] .chip')
    assert set(chips.all_inner_texts()) == {"any mode", "bus", "car"}
    everything = number(cube.text(".say"))
    parts = []
    for value in ("bus", "car"):
        cube.press(value)
        assert cube.state("only") == {"mode": value}
        parts.append(number(cube.text(".say")))
        # Never as if it were exact: some rows do not say the mode.
        assert re.search(r"^About [\d,]+ trips \([\d,]+ to [\d,]+\)", cube.text(".say"))
    assert sum(parts) == pytest.approx(everything, rel=0.1)
    bars = cube.page.locator(".hour")
    assert bars.count() == 4
    bars.first.click()
    assert set(cube.state("only")) <= {"mode", "hour"}
    cube.press("any mode")
    cube.page.keyboard.press("Escape")
    assert cube.state("only") == {}
    assert number(cube.text(".say")) == everything


def test_a_place_stays_chosen_when_two_values_are_known_of_other_places_only(cube: Opened) -> None:
    levels = cube.page.evaluate(
        "JSON.parse(document.getElementById('model').textContent).levels.map(({tables}) => tables[0])"
    )
    both = [any("&" in key for key in tables) for tables in levels]
    assert sum(both) == 1
    finer = cube.page.get_by_role("button", name="Zoom in")
    while cube.page.evaluate("odkanon.view().zoom") < 15 and cube.page.evaluate("odkanon.level().places.length") < 50:
        finer.click()
    cube.page.locator(".ranked button").first.click()
    cube.press("car")
    cube.page.locator(".hour").first.click()
    assert set(cube.state("only")) == {"mode", "hour"}
    assert " end in " in cube.text(".say")
    for _ in range(2):
        cube.page.keyboard.press("Escape")
    cube.page.get_by_role("button", name="Whole area").click()
    assert cube.state("only") == {}


def test_the_day_plays_hour_by_hour_until_somebody_stops_it(cube: Opened) -> None:
    cube.press("Play the day")
    seen = [cube.state("only")["hour"]]
    cube.until(f"odkanon.state().only.hour !== {json.dumps(seen[0])}")
    seen.append(cube.state("only")["hour"])
    assert seen == sorted(seen)
    cube.press("Stop")
    assert cube.page.get_by_role("button", name="Play the day").count() == 1
    cube.press("Play the day")
    cube.page.locator(".hour").last.click()
    assert cube.page.get_by_role("button", name="Play the day").count() == 1
    cube.page.keyboard.press("Escape")
    assert cube.state("only") == {}


def test_axe_finds_nothing_and_what_it_leaves_open_can_be_read(cube: Opened) -> None:
    check_by_axe(cube)


def test_the_keyboard_reaches_every_control_and_each_has_a_name(cube: Opened) -> None:
    cube.page.locator(".maps").focus()
    stops: list[str] = [cube.page.evaluate(STOP)]
    for _ in range(200):
        cube.page.keyboard.press("Tab")
        stops.append(cube.page.evaluate(STOP))
        if stops[-1].startswith("BODY"):
            break
    assert not [stop for stop in stops if stop.startswith("CANVAS") or stop.endswith(": ")]
    assert any(stop.startswith("DIV: Map of trips") for stop in stops)
    controls = cube.page.evaluate(
        f"""[...document.querySelectorAll("main :is(button, select, input)")].flatMap((element) => {{
          if (!element.checkVisibility()) return [];
          const stop = element;
          return [{STOP_NAME}];
        }})"""
    )
    assert len(controls) > 20
    assert set(controls) <= set(stops)


def test_the_map_answers_to_the_keyboard(city: Opened) -> None:
    city.page.locator(".maps").focus()
    before = city.page.evaluate("odkanon.view()")
    city.page.keyboard.press("ArrowRight")
    assert city.page.evaluate("odkanon.view().longitude") > before["longitude"]
    city.page.keyboard.press("0")
    city.page.keyboard.press("Enter")
    city.until("odkanon.state().from !== null")
    city.page.keyboard.press("Escape")
    assert city.state("from") is None


def test_a_phone_shows_the_map_and_a_sheet(browser: Browser, hexagons: Path) -> None:
    opened = open_report(browser, hexagons.parent / "phone.html", [hexagons], size=PHONE)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    tools, sheet = (opened.page.locator(each).bounding_box() for each in (".tools", ".sheet"))
    assert tools is not None
    assert sheet is not None
    free = sheet["y"] - tools["y"] - tools["height"]
    assert free >= 0.6 * PHONE[1]
    assert sheet["height"] <= 0.35 * PHONE[1]
    # Nothing of the page lies over the map: a scrolled sheet once hid half of it behind its own colour.
    with_map = np.array(Image.open(io.BytesIO(opened.page.screenshot())).convert("RGB")).astype(int)
    points = [[x, y] for x in range(20, 330, 31) for y in range(120, int(sheet["y"]) - 20, 31)]
    drawn = np.array(opened.page.evaluate(PIXELS, points))
    shown = np.array([with_map[y, x] for x, y in points])
    assert (np.abs(drawn - shown).max(axis=1) < 12).mean() > 0.8
    # The question, its answer and the first places of the list are in sight without scrolling.
    say, first = (opened.page.locator(each).first.bounding_box() for each in (".say", ".ranked li"))
    assert say is not None
    assert first is not None
    assert first["y"] + first["height"] <= PHONE[1]
    # A window of 1280 pixels at 200 %.
    opened.page.set_viewport_size({"width": 640, "height": 430})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 640
    assert opened.problems == []
    opened.page.context.close()


def test_an_embedded_page_shows_the_map_and_one_sentence(browser: Browser, hexagons: Path) -> None:
    opened = open_report(browser, hexagons.parent / "embed.html", [hexagons], size=(720, 480), end="?embed")
    assert opened.page.locator(".say").is_visible()
    for hidden in (".ranked", ".strip", ".tools", ".question"):
        assert opened.page.locator(hidden).is_hidden()
    card = opened.page.locator(".main").bounding_box()
    assert card is not None
    assert card["height"] < 0.2 * 480
    opened.page.context.close()


def test_the_theme_follows_the_system_and_the_button_and_paper_is_light(browser: Browser, hexagons: Path) -> None:
    dark = open_report(browser, hexagons.parent / "dark.html", [hexagons], theme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    in_dark, shown_dark = dark.page.evaluate(background), dark.colours()
    dark.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert dark.page.evaluate("document.documentElement.dataset.theme") == "light"
    # Paper shows a plain copy: of the map itself it would get the last frame on the screen, which is dark.
    assert dark.page.locator("canvas.paper").count() == 1
    dark.page.emulate_media(media="print")
    assert dark.page.locator(".utility").is_visible()
    wide = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert dark.page.evaluate(wide) == 0
    dark.page.emulate_media(media="screen")
    dark.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert dark.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert dark.page.locator("canvas.paper").count() == 0
    dark.press("Light").settle()
    assert dark.page.evaluate(background) != in_dark
    assert dark.colours() != shown_dark
    assert look(dark.page, "color-contrast")[0] == []
    assert dark.problems == []
    dark.page.context.close()


def test_without_webgl_the_page_says_so_and_has_everything_else(browser: Browser, hexagons: Path) -> None:
    opened = open_report(browser, hexagons.parent / "words.html", [hexagons], draws=False)
    assert "WebGL is off" in opened.text(".failed")
    assert opened.page.locator(".ranked li").count() > 3
    opened.page.locator(".ranked button").first.click()
    assert " trips end in " in opened.text(".say")
    assert opened.problems == []
    opened.page.context.close()


def test_zones_without_shapes_are_listed(browser: Browser, tmp_path: Path) -> None:
    shapes: dict[str, dict[str, dict[str, Any] | None]] = {"origin": {"a": None}, "destination": {"</script>": None}}
    folder = made.save(tmp_path / "bare", [("a", "</script>", 12)], shapes, weights=False)
    opened = open_report(browser, tmp_path / "bare.html", [folder], wait=False)
    opened.page.locator(".ranked").wait_for()
    assert "no shapes to draw" in opened.text(".failed")
    opened.page.get_by_role("button", name="</script>").click()
    assert "12 trips end in </script>" in opened.text(".say")
    assert opened.problems == []
    opened.page.context.close()


def test_boxes_that_overlap_are_read_on_cells(browser: Browser, tmp_path: Path) -> None:
    folder = made.boxes(tmp_path / "boxes")
    opened = open_report(browser, tmp_path / "boxes.html", [folder])
    assert plain(opened.text(".foot")).lower().startswith("places of about")
    assert number(opened.text(".say")) == sum(int(row["trips"]) for row in classes(folder))
    opened.open_made()
    assert "not defined" in opened.text(".utility")
    assert opened.problems == []
    opened.page.context.close()


def test_segments_are_one_page_with_a_slider(browser: Browser, tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "by hour")
    opened = open_report(browser, tmp_path / "segments.html", [folder], draws=False)
    slider = opened.page.get_by_role("slider", name="Show")
    assert opened.text(".switch output") == "whole"
    before = opened.text(".say")
    slider.fill("2")
    assert opened.text(".switch output") == "hour: 15-18"
    assert opened.text(".say") != before
    assert opened.problems == []
    opened.page.context.close()


@pytest.mark.slow
def test_five_thousand_zones_and_two_hundred_thousand_flows_stay_usable(
    browser: Browser, single: Opened, tmp_path: Path, record_property: Any
) -> None:
    # `single` comes first: the graphics of a browser that has just started are not what is measured here.
    folder = made.large(tmp_path / "large")
    opened = open_report(browser, tmp_path / "large.html", [folder])
    record_property("seconds_to_load", round(opened.seconds, 1))
    assert number(opened.text(".say")) == sum(int(row["trips"]) for row in classes(folder))
    assert opened.problems == []
    opened.page.context.close()


def test_districts_of_the_steward_are_found_listed_and_told(browser: Browser, hexagons: Path) -> None:
    """Seen before: eleven of fifteen districts of a city were "no such place here"."""
    names = ["\u00d1u\u00f1oa", "Maip\u00fa", "La Reina", "Lo Prado"]
    sides = [
        (2.30, 48.80, 2.352, 48.857),
        (2.352, 48.80, 2.41, 48.857),
        (2.30, 48.857, 2.352, 48.92),
        (2.352, 48.857, 2.41, 48.92),
    ]
    districts = Districts([f"d{each}" for each in range(4)], names, [made.box(*side) for side in sides])
    texts = PageTexts(title="D\u00f3nde va la gente", source="Encuesta 2012", language="es", districts=districts)
    target = hexagons.parent / "districts.html"
    opened = open_report(browser, target, [hexagons], draws=False, texts=texts)
    assert opened.text("h1") == "D\u00f3nde va la gente"
    assert opened.text(".sub") == "Encuesta 2012"
    listed = {plain(each).split("\n")[0] for each in opened.page.locator(".ranked span").all_inner_texts()}
    assert listed <= set(names)
    for text, name in (("nunoa", names[0]), ("MAIPU", names[1]), ("prado", names[3])):
        field = opened.page.get_by_role("combobox", name="Desde")
        field.fill(text)
        assert opened.page.locator("#options-from li").first.inner_text() == name
        field.press("Enter")
        assert f"empiezan en {name}" in opened.text(".say")
        assert "No hay" not in opened.text(".question")
    assert opened.problems == []
    opened.page.context.close()


def test_the_bounds_of_a_place_are_told_on_request(city: Opened) -> None:
    city.page.locator(".ranked button").first.click()
    assert "Certainly" not in city.text(".main")
    city.press("What is certain?")
    low, high = bounds(city.text(".bounds"))
    assert low <= number(city.text(".say")) <= high


def test_weights_are_counted_first_and_trips_on_request(city: Opened, hexagons: Path) -> None:
    weight = sum(float(row["weight"]) for row in classes(hexagons))
    trips = sum(int(row["trips"]) for row in classes(hexagons))
    assert number(city.text(".say")) == pytest.approx(trips)
    city.press("whole population")
    assert number(city.text(".say")) == pytest.approx(weight, rel=0.005)
    assert f"from {trips:,} published" in city.text(".say")
    with city.page.expect_download() as told:
        city.press("CSV")
    rows = list(csv.DictReader(io.StringIO(Path(told.value.path()).read_text(encoding="utf-8-sig"))))
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(weight, rel=0.05)
    assert sum(int(row["trips"]) for row in rows) == pytest.approx(trips, rel=0.05)
    # No bound of a weight is certain: what is certain is said of the trips in the data.
    city.page.locator(".ranked button").first.click()
    for ask in city.page.get_by_role("button", name="What is certain?").all():
        ask.click()
    assert city.text(".bounds").startswith("Of the trips in the data: certainly")
    city.page.keyboard.press("Escape")


def test_the_page_prints_on_two_sheets(browser: Browser, hexagons: Path) -> None:
    opened = open_report(browser, hexagons.parent / "print.html", [hexagons], draws=False)
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(re.findall(rb"/Type\s*/Page\b", opened.page.pdf(format="A4"))) == 2
    opened.page.context.close()


def test_bars_are_seen_in_forced_colours(browser: Browser, hexagons: Path) -> None:
    context = browser.new_context(forced_colors="active", offline=True)
    page = context.new_page()
    page.goto((hexagons.parent / "single.html").as_uri())
    page.locator(".ranked .certain").first.wait_for(state="attached")
    seen = "getComputedStyle(document.querySelector('{}')).{}"
    assert page.evaluate(seen.format(".ranked .certain", "backgroundColor")) not in ("rgba(0, 0, 0, 0)", "transparent")
    assert page.evaluate(seen.format(".card.main", "borderTopStyle")) == "solid"
    context.close()
