"""Two releases side by side: one scale for both, and a map of what changed."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

import h3
from playwright.sync_api import Browser

from web import made
from web.axe import check_by_axe
from web.driver import PIXELS, Opened, open_report, plain

ZONES = made.disk(8, 1)


def masses(folder: Path, end: str) -> dict[str, int]:
    found: dict[str, int] = {}
    with (folder / "classes.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found[row[end]] = found.get(row[end], 0) + int(row["trips"])
    return found


def pair(folder: Path) -> tuple[Path, Path]:
    """Two releases on the same zones; the second has one origin that grew, one that shrank, one as before."""
    shared = [(ZONES[5], ZONES[1], 50), (ZONES[5], ZONES[2], 50)]
    first = [(origin, ZONES[0], 100) for origin in ZONES] + [(ZONES[3], ZONES[1], 11), *shared]
    grown, shrunk = ZONES[1], ZONES[2]
    change = {grown: 300, shrunk: 20}
    second = [(origin, ZONES[0], change.get(origin, 100)) for origin in ZONES] + [(ZONES[3], ZONES[2], 11)]
    more = [*second, *shared, (ZONES[4], ZONES[1], 11)]
    return made.save(folder / "march", sorted(first)), made.save(folder / "april", sorted(more))


def warm(colour: tuple[int, int, int]) -> int:
    return colour[0] - colour[2]


def test_the_same_zones_open_as_a_map_of_signed_change(browser: Browser, tmp_path: Path) -> None:
    folders = pair(tmp_path)
    opened = open_report(browser, tmp_path / "change.html", folders)
    assert opened.page.locator('input[name="shade"][value="change"]').is_checked()
    assert opened.page.locator(".frame").count() == 1
    assert "april minus march" in opened.text(".legend")
    before, after = (masses(folder, "origin") for folder in folders)
    colours = opened.zone_colours("r1-origin", ZONES)
    for zone, colour in colours.items():
        by = after[zone] - before[zone]
        assert (warm(colour) > 40) == (by > 0), (zone, by, colour)
        assert (warm(colour) < -40) == (by < 0), (zone, by, colour)
    changes = opened.page.locator(".flowchanges")
    changes.locator("summary").click()
    told = changes.inner_text()
    assert "9 flows in both, 2 only in april, 1 only in march" in told
    assert {"+200", "−80", "newly listed", "no longer listed"} <= {
        cell for row in changes.locator("tbody tr").all() for cell in row.locator("td").all_inner_texts()
    }
    _check_one_zone(opened)
    assert opened.problems == []
    opened.page.context.close()


def _check_one_zone(opened: Opened) -> None:
    """The flows of a chosen zone: newly and no longer listed ones have colours of their own."""
    opened.pick("axes", "destination")
    opened.page.evaluate("document.activeElement.blur()")
    opened.pick("axes", "both")
    opened.page.locator(".search input").fill(ZONES[3])
    opened.page.locator(".search input").press("Enter")
    opened.settle()
    legend = opened.text(".legend")
    assert "only listed in april" in legend
    assert "only listed in march: none in the other, or too few" in legend
    colours = opened.zone_colours("r1-destination", [ZONES[1], ZONES[2]])
    assert len(set(colours.values())) == 2


def _by_cell(folder: Path, level: int) -> tuple[dict[str, int], dict[str, int]]:
    """Trips to each cell of a resolution, and those that are only known to go to a coarser one."""
    fine: dict[str, int] = {}
    rough: dict[str, int] = {}
    for cell, trips in masses(folder, "destination").items():
        coarser = h3.get_resolution(cell) < level
        key = cell if coarser else h3.cell_to_parent(cell, level)
        found = rough if coarser else fine
        found[key] = found.get(key, 0) + trips
    return fine, rough


@pytest.fixture(scope="module")
def cascades(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Opened, tuple[Path, Path]]]:
    folders = made.nested_pair(tmp_path_factory.mktemp("cascades"))
    opened = open_report(browser, folders[0].parent / "cascades.html", folders)
    yield opened, folders
    assert opened.problems == []
    opened.page.context.close()


def test_two_cascades_are_compared_on_the_same_cells(cascades: tuple[Opened, tuple[Path, Path]]) -> None:
    opened, folders = cascades
    assert opened.page.locator('input[name="view"][value="places"]').is_checked()
    # Rows that lie in each other are not subtracted one by one, anywhere on the page.
    assert opened.page.locator(".differences, .flowchanges").count() == 0
    totals = [sum(masses(folder, "destination").values()) for folder in folders]
    opened.pick("unit", "trips")
    assert opened.page.locator(".frame").all_inner_texts() == ["Trips ending here: april against march"]
    for detail in (1, 3):
        opened.page.locator("#detail").fill(str(detail))
        opened.settle()
        (before, coarse), (after, coarser) = (_by_cell(folder, 6 + detail) for folder in folders)
        by = {cell: after.get(cell, 0) - before.get(cell, 0) for cell in {*before, *after}}
        assert f"{totals[0]:,} published trips in march, {totals[1]:,} in april" in opened.text(".answer")
        opened.page.locator(".search input").fill("8")
        opened.page.locator(".search input").fill("")
        rows = opened.page.locator(".zonelist tbody tr").all()
        assert len(rows) == min(100, len(by))
        for row in rows[:12]:
            cell = row.locator("button").get_attribute("data-id") or ""
            told = row.locator("td").first.inner_text().split()[0]
            assert told == (f"{by[cell]:+,}".replace("-", "−") if by[cell] else "0")
        labels = opened.page.locator(".names .rough").all_inner_texts()
        both = {cell: (coarse.get(cell, 0), coarser.get(cell, 0)) for cell in {*coarse, *coarser}}
        assert set(labels) <= {f"somewhere in here: {one:,}, then {two:,}" for one, two in both.values()}
        assert bool(labels) == bool(both)
    listed = {cell: change for cell, change in by.items() if cell in before and cell in after}
    _check_colours(opened, listed)
    opened.pick("unit", "percent")
    _check_colours(opened, listed)
    assert "in % of march" in opened.text(".legend")
    for row in opened.page.locator(".zonelist tbody tr").all()[:12]:
        cell = row.locator("button").get_attribute("data-id") or ""
        told = plain(row.locator("td").first.inner_text()).split("\n")[0]
        if cell in listed and by[cell]:
            assert told == f"{'+' if by[cell] > 0 else '−'}{abs(100 * by[cell]) / before[cell] + 1e-9:.0f} %"
    # As shares of all trips, which do not change where the totals alone do.
    opened.pick("unit", "share")
    assert opened.page.locator(".frame").all_inner_texts() == ["Share of all trips ending here: april against march"]
    assert "april minus march, in percentage points" in opened.text(".legend")
    assert "urely" not in opened.text(".answer")
    for row in opened.page.locator(".zonelist tbody tr").all()[:12]:
        cell = row.locator("button").get_attribute("data-id") or ""
        share = plain(row.locator("td").first.inner_text()).split("\n")[0].removesuffix(" %")
        shares = [100 * many.get(cell, 0) / total for many, total in zip((before, after), totals, strict=True)]
        assert [float(each) for each in share.split(" to ")] == pytest.approx(shares, abs=0.051)
    texts = opened.page.locator(".zonelist tbody tr").all_inner_texts()
    assert any("not sure" in text for text in texts)
    assert not any("surely" in text for text in texts)
    opened.pick("view", "zones")
    assert opened.page.locator('input[name="shade"][value="change"]').count() == 0


def test_axe_finds_nothing_in_two_cascades_and_what_it_leaves_open_can_be_read(
    cascades: tuple[Opened, tuple[Path, Path]],
) -> None:
    check_by_axe(cascades[0])


def _check_colours(opened: Opened, changes: dict[str, int]) -> None:
    """Warm where there are surely more, cold where there are fewer, grey where nobody can be sure.

    Names and hatched lines can be in the way of one pixel.
    """
    rows = "rows => Object.fromEntries(rows.map((row) => [row.querySelector('button').dataset.id, row.textContent]))"
    said = opened.page.locator(".zonelist tbody tr").evaluate_all(rows)
    spots = {}
    for cell in changes:
        latitude, longitude = h3.cell_to_latlng(cell)
        x, y = opened.page.evaluate("(at) => odkanon.spot('r0-destination', at)", [longitude, latitude])
        spots[cell] = [[x + dx, y + dy] for dx in (-3, 0, 3) for dy in (-3, 0, 3)]
    seen = {cell: [warm(colour) for colour in opened.page.evaluate(PIXELS, points)] for cell, points in spots.items()}
    assert {"surely" in text for text in said.values()} == {True, False}
    for cell, change in changes.items():
        typical, sure = sorted(seen[cell])[4], "surely" in said[cell]
        assert (typical > 10) == (sure and change > 0), (cell, change, seen[cell])
        # The lines of a hatching are bluish themselves, about -15; the palest blue of the scale is at -50.
        assert (typical < -30) == (sure and change < 0), (cell, change, seen[cell])


def test_arrows_of_two_releases_share_one_scale(browser: Browser, tmp_path: Path) -> None:
    one = made.save(tmp_path / "much", [(ZONES[0], ZONES[3], 400), (ZONES[1], ZONES[4], 400)])
    two = made.save(tmp_path / "little", [(ZONES[0], ZONES[3], 20), (ZONES[1], ZONES[4], 20)])
    opened = open_report(browser, tmp_path / "arrows.html", [one, two])
    opened.pick("shade", "total").page.locator("#flows").fill("1")
    opened.settle()
    assert "400 trips at the widest" in opened.text(".legend")
    widths = [_red_across(opened, f"r{number}-origin") for number in (0, 1)]
    assert widths[0] > 2 * widths[1] > 0, widths
    opened.page.context.close()


def _red_across(opened: Opened, panel: str) -> int:
    """How many pixels of an arrow lie on a line across it, in the middle between its ends."""
    places = [h3.cell_to_latlng(zone)[::-1] for zone in (ZONES[0], ZONES[3])]
    (ax, ay), (bx, by) = (
        opened.page.evaluate("([panel, at]) => odkanon.spot(panel, at)", [panel, at]) for at in places
    )
    length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5
    x, y = (-(by - ay) / length, (bx - ax) / length)
    middle = [(ax + bx) / 2, (ay + by) / 2]
    # Arrows swing out to one side, the further the longer they are.
    reach = round(length / 2)
    points = [[middle[0] + step / 2 * x, middle[1] + step / 2 * y] for step in range(-reach, reach + 1)]
    return sum(red - blue > 110 for red, _, blue in opened.page.evaluate(PIXELS, points))
