"""Two releases on one page: what changed, how certain that is, and the same trips published twice."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser

from web import made
from web.axe import look
from web.driver import FREE, Opened, open_report

ZONES = made.disk(8, 1)
GROWN, SHRUNK = ZONES[1], ZONES[2]


def pair(folder: Path) -> tuple[Path, ...]:
    """Two releases on the same zones; the second has one origin that grew and one that shrank."""
    first = [(origin, ZONES[0], 100) for origin in ZONES]
    change = {GROWN: 300, SHRUNK: 20}
    second = [(origin, ZONES[0], change.get(origin, 100)) for origin in ZONES]
    names = ("march", "april")
    return tuple(
        made.save(folder / name, sorted(rows), weights=False, unlisted={"at_most_trips": 0})
        for name, rows in zip(names, (first, second), strict=True)
    )


@pytest.fixture(scope="module")
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folders = pair(tmp_path_factory.mktemp("pair"))
    opened = open_report(browser, folders[0].parent / "change.html", folders)
    yield opened
    assert opened.problems == []
    opened.page.context.close()


def test_two_releases_open_as_a_map_of_change(opened: Opened) -> None:
    assert opened.state("view") == "change"
    assert opened.text("h1") == "march to april"
    assert opened.text(".say") == "700 trips in march, 820 in april."
    opened.page.evaluate(f"location.hash = 'view=change&from={GROWN}&to={ZONES[0]}'")
    opened.until("odkanon.state().to !== null")
    assert opened.text(".say") == "100 before, 300 after: +200. This change is certain."
    opened.page.evaluate(f"location.hash = 'view=change&from={SHRUNK}'")
    opened.until("odkanon.state().to === null")
    assert "100 before, 20 after: −80. This change is certain." in opened.text(".say")


def test_more_is_warm_and_less_is_cold(opened: Opened) -> None:
    opened.page.evaluate("location.hash = 'view=change'")
    opened.until("odkanon.state().from === null")
    opened.settle()
    colours = opened.colours()
    warm = sum(many for colour, many in colours.items() if (colour >> 16) - (colour & 255) > 60)
    cold = sum(many for colour, many in colours.items() if (colour & 255) - (colour >> 16) > 60)
    assert warm > cold > 0
    assert {"more", "less"} <= {text.strip() for text in opened.page.locator(".sign").all_inner_texts()}


def test_either_release_can_be_looked_at_alone(opened: Opened) -> None:
    opened.press("Flows")
    assert opened.text(".switch output") == "march"
    assert opened.text(".say").startswith("700 trips")
    opened.page.get_by_role("slider", name="Show").fill("1")
    assert opened.text(".say").startswith("820 trips")
    opened.press("Change")
    assert look(opened.page)[0] == []


def test_the_same_trips_published_twice_are_said_to_be_that(browser: Browser, tmp_path: Path) -> None:
    cells = made.disk(8, 1)
    rows = [(one, cells[0], 40) for one in cells]
    finer = made.save(tmp_path / "fine", rows, unlisted={"at_most_trips": 0})
    coarser = made.save(tmp_path / "coarse", [(cells[0], cells[0], 40 * len(cells))], unlisted={"at_most_trips": 0})
    opened = open_report(browser, tmp_path / "same.html", [finer, coarser], draws=False)
    assert "probably the same trips, published differently" in opened.text(".say")
    for (width, height), least in {(1280, 720): 0.85, (390, 844): 0.6}.items():
        opened.page.set_viewport_size({"width": width, "height": height})
        assert opened.page.evaluate(FREE) >= least, (width, height)
    opened.page.context.close()


def test_a_change_within_what_is_unknown_is_no_change(browser: Browser, tmp_path: Path) -> None:
    folders = made.nested_pair(tmp_path)
    opened = open_report(browser, tmp_path / "nested.html", folders, draws=False)
    texts = []
    for row in opened.page.locator(".ranked button").all()[:4]:
        row.click()
        texts.append(opened.text(".say"))
        opened.page.keyboard.press("Escape")
    assert all(text.endswith(("is certain.", "is likely.", "no change at all.")) for text in texts)
    rows = [csv.DictReader((folder / "classes.csv").read_text().splitlines()) for folder in folders]
    totals = [sum(int(row["trips"]) for row in own) for own in rows]
    assert f"{totals[0]:,} trips in march, {totals[1]:,} in april." in opened.text(".say")
    opened.page.context.close()


def test_a_series_has_a_slider_a_sparkline_and_changes_from_one_to_the_next(browser: Browser, tmp_path: Path) -> None:
    months = {"january": 100, "february": 300, "march": 250}
    folders = [
        made.save(
            tmp_path / name, [(zone, ZONES[0], size) for zone in ZONES], weights=False, unlisted={"at_most_trips": 0}
        )
        for name, size in months.items()
    ]
    opened = open_report(browser, tmp_path / "series.html", folders, draws=False)
    assert "january: 700" in opened.page.locator(".spark svg").get_attribute("aria-label")  # type: ignore[operator]
    opened.page.get_by_role("slider", name="Show").fill("2")
    assert opened.text(".say").startswith("1,750 trips")
    opened.press("Change")
    assert opened.text("h1") == "february to march"
    assert opened.text(".say").startswith("2,100 trips in february, 1,750 in march.")
    with opened.page.expect_download() as told:
        opened.press("CSV")
    rows = list(csv.DictReader(Path(told.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    assert {(row["before_trips"], row["trips"], row["certainty"]) for row in rows} == {("300", "250", "surely")}
    assert opened.problems == []
    opened.page.context.close()
