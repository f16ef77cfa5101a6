"""The map of places in a real browser: one place is answered by rows of every size, and no trip is lost on the way."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("playwright")

import h3
from playwright.sync_api import Browser

from odkanon.publish.report import write_full_report
from web import made
from web.driver import PHONE, Opened, answer, open_page, open_report, plain

DETAILS = range(4)
LIMITS = {"within 1 km²": (0, 1), "within 1 to 7 km²": (1, 7), "only roughly (over 7 km²)": (7, math.inf)}
"""What the parts of the card are called, and how large a cell of theirs may be."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.nested(tmp_path_factory.mktemp("made") / "nested")


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[tuple[str, str, int]]:
    with (folder / "classes.csv").open(newline="") as file:
        return [(row["origin"], row["destination"], int(row["trips"])) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def opened(browser: Browser, folder: Path) -> Iterator[Opened]:
    opened = open_report(browser, folder.parent / "nested.html", [folder])
    yield opened
    opened.page.context.close()


@pytest.fixture
def places(opened: Opened) -> Opened:
    """The map as it opens, whatever the test before did to it."""
    opened.page.keyboard.press("Escape")
    opened.page.locator('input[name="view"][value="places"]').check()
    opened.page.locator('input[name="towards"][value="destination"]').check()
    opened.page.locator("#detail").fill("3")
    opened.page.locator("#flows").fill("0")
    opened.page.locator(".maps").focus()
    opened.page.keyboard.press("Escape")
    return opened.settle()


def spot(opened: Opened, cell: str) -> tuple[float, float]:
    latitude, longitude = h3.cell_to_latlng(cell)
    x, y = opened.page.evaluate("(at) => odkanon.spot('r0-destination', at)", [longitude, latitude])
    return x, y


def choose(opened: Opened, cell: str) -> None:
    opened.page.mouse.click(*spot(opened, cell))
    opened.until("odkanon.state().place !== null")
    opened.settle()


def within(cell: str, area: str) -> bool:
    level = h3.get_resolution(area)
    return h3.get_resolution(cell) >= level and bool(h3.cell_to_parent(cell, level) == area)


def busiest(rows: list[tuple[str, str, int]], level: int) -> str:
    masses: dict[str, int] = {}
    for origin, _, trips in rows:
        if h3.get_resolution(origin) == level:
            masses[origin] = masses.get(origin, 0) + trips
    return max(sorted(masses), key=lambda cell: masses[cell])


def test_rows_at_several_resolutions_open_as_one_map(places: Opened) -> None:
    assert places.page.locator(".frame").count() == 1
    assert places.page.locator('input[name="view"][value="places"]').is_checked()
    assert places.problems == []


def test_the_slider_keeps_the_total_and_the_pixels_follow(places: Opened, rows: list[tuple[str, str, int]]) -> None:
    total = sum(trips for _, _, trips in rows)
    seen = []
    for detail in DETAILS:
        places.page.locator("#detail").fill(str(detail))
        seen.append(places.settle().colours())
        assert answer(places)[0] == total
    assert all(one != two for one, two in pairwise(seen))


def test_a_place_is_answered_by_every_row_that_covers_it(places: Opened, rows: list[tuple[str, str, int]]) -> None:
    fine = busiest(rows, 9)
    choose(places, fine)
    for detail in reversed(DETAILS):
        places.page.locator("#detail").fill(str(detail))
        area = h3.cell_to_parent(fine, 6 + detail)
        inside = sum(trips for origin, _, trips in rows if within(origin, area))
        around = sum(trips for origin, _, trips in rows if origin != area and within(area, origin))
        total, text = answer(places)
        assert total == inside
        far: dict[str, int] = {}
        for origin, destination, trips in rows:
            if within(origin, area) and h3.get_resolution(destination) >= 6 + detail:
                cell = h3.cell_to_parent(destination, 6 + detail)
                far[cell] = far.get(cell, 0) + (trips if cell != area else 0)
        # The answer names where most of the others go, as the list beside it does.
        most = 100 * max(far.values()) / total
        share = f"{f'{most + 1e-9:.0f}' if most >= 0.5 else '< 1'} % go to "
        assert (share in text) == (most > 0), text
        assert (f"Larger areas around it have {around:,} more" in text) == (around > 0)
        assert "within 1 km²" in text


def test_coarser_rows_are_never_hidden(places: Opened, rows: list[tuple[str, str, int]]) -> None:
    labels = places.page.locator(".names .rough")
    coarse = {f"somewhere in here: {mass}" for mass in _masses(rows, finest=8).values()}
    assert labels.count() > 0
    assert set(labels.all_inner_texts()) <= coarse
    places.page.locator("#detail").fill("0")
    places.settle()
    assert labels.count() == 0


def _masses(rows: list[tuple[str, str, int]], finest: int) -> dict[str, int]:
    masses: dict[str, int] = {}
    for _, destination, trips in rows:
        if h3.get_resolution(destination) <= finest:
            masses[destination] = masses.get(destination, 0) + trips
    return masses


def test_the_pointer_shows_the_ladder(places: Opened, rows: list[tuple[str, str, int]]) -> None:
    masses = _masses(rows, finest=9)
    chains = {
        cell: [h3.cell_to_parent(cell, level) for level in range(h3.get_resolution(cell), 5, -1)] for cell in masses
    }
    cell = max(sorted(masses), key=lambda one: (sum(part in masses for part in chains[one]), masses[one]))
    rungs = [masses[part] for part in chains[cell] if part in masses]
    assert len(rungs) >= 3
    places.page.mouse.move(*spot(places, cell))
    tip = places.page.locator(".tip")
    tip.wait_for(state="visible")
    told = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+)(?: trips?)? in", tip.inner_text())]
    assert told == rungs
    assert "in the surrounding" in tip.inner_text()
    assert "estimate" in tip.inner_text()
    # At a glance: how many (larger cells by their share of the area), and how finely; and the cell itself is marked.
    title, _, placed = plain(tip.inner_text()).split("\n")[:3]
    here = {part: masses[part] * h3.cell_area(cell) / h3.cell_area(part) for part in chains[cell] if part in masses}
    found = re.fullmatch(r"About ([\d,]+) trips end here", title)
    assert found
    assert int(found[1].replace(",", "")) == pytest.approx(sum(here.values()), abs=1)
    assert re.match(r"of these ([<>] )?\d+ % within", placed)
    x, y = spot(places, cell)
    box = places.page.locator(".pointer path").first.bounding_box()
    assert box
    assert box["x"] < x < box["x"] + box["width"]
    assert box["y"] < y < box["y"] + box["height"]
    places.page.mouse.move(2, 2)
    places.until("document.querySelectorAll('.pointer path').length === 0")
    assert "estimate" in places.text(".legend")


def parts_of(opened: Opened) -> dict[str, str]:
    """What the card beside the map says of each part: "within 1 km²" and its share."""
    parts = [plain(part).split("\n") for part in opened.page.locator(".part").all_inner_texts()]
    return {part[-1]: part[0] for part in parts}


def largest(origin: str, destination: str) -> float:
    return float(max(h3.cell_area(origin), h3.cell_area(destination)))


def test_one_answer_says_how_coarse_it_is_everywhere(places: Opened, rows: list[tuple[str, str, int]]) -> None:
    total = sum(trips for _, _, trips in rows)
    out = int(re.search(r"at most ([\d,]+) left out", places.text(".here"))[1].replace(",", ""))  # type: ignore[index]
    told = parts_of(places)
    assert list(told) == [*LIMITS, "left out"]
    masses = {
        name: sum(trips for start, end, trips in rows if low < largest(start, end) <= high)
        for name, (low, high) in LIMITS.items()
    }
    assert {name: told[name] for name in masses} == {
        name: f"{100 * mass / (total + out) + 1e-9:.0f} %" for name, mass in masses.items()
    }
    # One word that the shares bear out, and no other size beside it that answers for everything.
    known = (masses["within 1 km²"] + masses["within 1 to 7 km²"]) / total
    word = "Fine" if known > 0.8 else "Mostly fine" if known > 0.6 else "Partly fine" if known > 0.4 else "Coarse"
    assert places.text(".verdict b") in ({word} if masses["within 1 km²"] < 0.5 * total else {"Very fine"})
    assert "How fine overall" not in places.text(".tiles")
    # The bar is to scale, each part can be seen alone, and the sentence below counts the same rows.
    shares = [places.page.locator(f".share.{part}").bounding_box() for part in ("precise", "coarse", "rough")]
    wide = [share["width"] for share in shares if share]
    for width, mass in zip(wide, masses.values(), strict=True):
        assert width / sum(wide) == pytest.approx(mass / total, abs=0.01)
    for part, mass in zip(("precise", "coarse", "rough"), masses.values(), strict=True):
        places.page.locator(f".part.{part}").click()
        assert answer(places)[0] == mass
        assert parts_of(places) == told
        places.page.locator(f".part.{part}").click()
    places.page.locator(".part.out").click()
    assert "are left out" in places.text(".here")


def test_one_answer_says_how_coarse_it_is_at_a_place(places: Opened, rows: list[tuple[str, str, int]]) -> None:
    fine = busiest(rows, 9)
    choose(places, fine)
    for detail in reversed(DETAILS):
        places.page.locator("#detail").fill(str(detail))
        area = h3.cell_to_parent(fine, 6 + detail)
        masses = dict.fromkeys(LIMITS, 0.0)
        for origin, destination, trips in rows:
            share = 1.0 if within(origin, area) else h3.cell_area(area) / h3.cell_area(origin)
            size = largest(origin, destination)
            name = next(name for name, (low, high) in LIMITS.items() if low < size <= high)
            masses[name] += trips * share * (within(origin, area) or within(area, origin))
        told = parts_of(places)
        for name, mass in masses.items():
            share, whole = 100 * mass / sum(masses.values()), told.get(name, "0 %").removesuffix(" %")
            limits = {"< 1": (0, 0.55), "> 99": (99.45, 100)}.get(whole)
            low, high = limits or (int(whole) - 0.55, int(whole) + 0.55)
            assert low < share < high, (detail, name)
        # Where it stands it is read aloud as well, and nothing else on the page gives other shares of this place.
        assert "".join(f"{share} {name}, " for name, share in told.items() if name in masses)[:-2] in answer(places)[1]
        assert "Left out anywhere: at most" in places.text(".here")
        # One total for one place: what else is known of it is only in larger areas, and said to be.
        assert re.search(rf"Of the {answer(places)[0]:,} trips of this cell", places.text(".here"))


def test_rings_and_arrows_show_the_twenty_strongest(places: Opened) -> None:
    without = places.colours()
    places.page.locator("#flows").fill("2")
    # An arrow is all that goes between two cells: not a row, so their numbers do not stand beside each other.
    assert places.text(".flows output") == "up to 20, the strongest"
    assert places.settle().colours() != without
    assert "Rings: trips that stay inside" in places.text(".legend")
    places.page.locator("#flows").fill("0")
    assert "Rings" not in places.text(".legend")


def test_trips_to_here_count_the_other_way(places: Opened, rows: list[tuple[str, str, int]]) -> None:
    place = busiest([(destination, origin, trips) for origin, destination, trips in rows], 9)
    choose(places, place)
    places.page.locator('input[name="towards"][value="origin"]').check()
    total, text = answer(places)
    assert text.startswith("To around")
    assert total == sum(trips for _, destination, trips in rows if destination == place)


def test_the_keyboard_chooses_a_place_and_lets_go(places: Opened) -> None:
    places.page.locator(".maps").focus()
    places.page.keyboard.press("Enter")
    assert places.page.evaluate("odkanon.state().place") is not None
    places.page.keyboard.press("Escape")
    assert places.page.evaluate("odkanon.state().place") is None
    places.page.locator(".zonelist tbody button").first.focus()
    places.page.keyboard.press("Enter")
    assert places.page.evaluate("odkanon.state().place") is not None
    assert places.page.evaluate("document.activeElement.tagName") == "H2"


def test_towns_have_names_and_are_found_by_them(places: Opened) -> None:
    names = places.page.locator(".names .town").all_inner_texts()
    assert {"Vincennes", "Clichy"} & set(names)
    # The name comes first, the code after it.
    assert re.match(
        r"\D+(, \d+ km [NESW]+)?\n8[0-9a-f]{14}$", plain(places.page.locator(".zonelist button").nth(3).inner_text())
    )
    places.page.locator(".search input").fill("paris")
    places.page.keyboard.press("Enter")
    assert answer(places)[1].startswith("From around Paris")
    frame = places.page.locator(".frame").bounding_box()
    assert frame is not None
    x, y = places.page.evaluate("odkanon.spot('r0-destination', odkanon.state().place)")
    assert frame["x"] + 0.2 * frame["width"] < x < frame["x"] + 0.8 * frame["width"]
    assert frame["y"] + 0.2 * frame["height"] < y < frame["y"] + 0.8 * frame["height"]
    assert "GeoNames, CC BY 4.0" in places.text("footer")


def test_the_zones_of_the_same_release_are_one_switch_away(places: Opened) -> None:
    places.pick("view", "zones")
    assert places.page.locator(".frame").count() == 2
    assert places.page.evaluate("document.activeElement.value") == "zones"


def test_a_homogeneous_release_has_the_map_too(browser: Browser, tmp_path: Path) -> None:
    folder = made.hexagons(tmp_path / "hexagons")
    opened = open_report(browser, tmp_path / "plain.html", [folder])
    opened.pick("view", "places")
    with (folder / "classes.csv").open(newline="") as file:
        total = sum(int(row["trips"]) for row in csv.DictReader(file))
    for detail in range(int(opened.page.locator("#detail").get_attribute("max") or 0) + 1):
        opened.page.locator("#detail").fill(str(detail))
        assert answer(opened)[0] == total
    opened.settle()
    assert opened.problems == []
    opened.page.context.close()


def test_a_phone_shows_it_without_sideways_scrolling(places: Opened) -> None:
    before = places.page.viewport_size
    assert before is not None
    places.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    assert places.settle().page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert places.problems == []
    places.page.set_viewport_size(before)


def test_a_public_page_says_what_it_may_and_a_full_one_everything(browser: Browser, tmp_path: Path) -> None:
    folder = made.nested(tmp_path / "release")
    public = open_report(browser, tmp_path / "public.html", [folder], draws=False)
    told = json.loads((folder / "release.json").read_text())
    text = public.text("body")
    most = told["unlisted"]["at_most_trips"]
    assert f"at most {most:,} trips could not reach this and are left out" in text
    assert not {"undefined", "NaN"} & set(re.findall(r"\w+", text))
    public.page.locator(".part.out").click()
    assert f"At most {most:,} trips in all are left out" in public.text(".here")
    full = open_page(browser, write_full_report(folder), draws=False)
    full.page.locator(".part.out").click()
    assert "1,234 origin–destination pairs" in full.text(".here")
    assert "1,234" not in public.text("body")
    assert [*public.problems, *full.problems] == []
    for opened in (public, full):
        opened.page.context.close()
