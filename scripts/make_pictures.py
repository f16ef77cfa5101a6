"""Make the pictures of the README and the docs: real screenshots of the report and the explorer, and a still picture.

Everything is drawn from the built-in sample survey. PNG files go to `docs/images`, each small enough to commit.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images"
MOST_BYTES = 300_000
WIDE, PHONE = (1280, 900), (390, 844)

sys.path.insert(0, str(ROOT / "tests"))

from odkanon.explore import ExploreServer, Session, data_of_input  # noqa: E402
from odkanon.methods import anonymize  # noqa: E402
from odkanon.model.rule import Rule  # noqa: E402
from odkanon.publish.report import render  # noqa: E402
from odkanon.publish.report.picture import write_picture  # noqa: E402
from odkanon.read.matrix import matrix_of  # noqa: E402
from odkanon.read.reading import Reading  # noqa: E402
from odkanon.sample.survey import CENTRAL_CELLS, make_survey  # noqa: E402
from web.conftest import FLAGS, find_browser  # noqa: E402
from web.driver import Opened  # noqa: E402


@contextmanager
def opened(browser: Browser, url: str, size: tuple[int, int], theme: str) -> Iterator[Page]:
    """Open a page and wait until its map has come to rest."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if theme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(".maps[data-drawn]", timeout=60_000)
    Opened(page).settle(60)
    yield page
    context.close()


def shoot(page: Page, name: str) -> None:
    """Take a picture once the map has come to rest."""
    Opened(page).settle(60)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur()")
    page.screenshot(path=TARGET / f"{name}.png")


def shoot_reports(browser: Browser, folder: Path) -> None:
    """Take pictures of the report of one release, wide and on a phone, and of two."""
    single, two = folder / "single.html", folder / "two.html"
    single.write_text(render([folder / "participants"]), encoding="utf-8")
    two.write_text(render([folder / "participants", folder / "population"]), encoding="utf-8")
    with opened(browser, single.as_uri(), WIDE, "light") as page:
        shoot(page, "report")
    with opened(browser, single.as_uri(), PHONE, "dark") as page:
        page.evaluate("document.querySelector('.mapcard').scrollIntoView()")
        shoot(page, "report-phone")
    with opened(browser, two.as_uri(), WIDE, "light") as page:
        shoot(page, "report-two")


def shoot_places(browser: Browser, folder: Path) -> None:
    """Take pictures of the map of places: everywhere, from one place, finer, and on a phone in the dark."""
    file = folder / "places.html"
    file.write_text(render([folder / "cascade"]), encoding="utf-8")
    with opened(browser, file.as_uri(), WIDE, "light") as page:
        shoot(page, "places")
        page.locator(".search input").fill("Montreuil")
        page.keyboard.press("Enter")
        shoot(page, "places-from")
    with opened(browser, file.as_uri(), PHONE, "dark") as page:
        page.evaluate("document.querySelector('.mapcard').scrollIntoView()")
        shoot(page, "places-phone")


def shoot_explorer(browser: Browser, url: str) -> None:
    """Take pictures of the explorer with one release, and with two side by side."""
    for name, theme, k, split in (("explorer", "light", 20, False), ("explorer-split", "dark", 10, True)):
        with opened(browser, url, WIDE, theme) as page:
            page.get_by_role("slider", name="k", exact=True).fill(str(k))
            if split:
                page.get_by_role("checkbox", name="Participants | population").check()
            curve = Opened(page)
            curve.until(f"document.querySelectorAll('.curve polyline').length === {1 + split}", 60)
            shoot(page, name)


@contextmanager
def serving(source: Path, folder: Path) -> Iterator[str]:
    """Run the explorer in the background."""
    data = data_of_input(Reading(source, within=",".join(CENTRAL_CELLS)))
    with ExploreServer(Session(data, folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()


def save_releases(source: Path, folder: Path) -> None:
    """Save the sample survey protected for participants, and for the population."""
    od = matrix_of(Reading(source, within=",".join(CENTRAL_CELLS)))
    for target in ("participants", "population"):
        anonymize(od, Rule.protect(target, k=10, of=od)).save(folder / target)
    anonymize(od, Rule(trips=10), method="cascade").save(folder / "cascade")


def main() -> int:
    """Make every picture; fail where one is too large to commit."""
    TARGET.mkdir(parents=True, exist_ok=True)
    executable, environment = find_browser()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        source = folder / "survey.parquet"
        pyarrow.parquet.write_table(make_survey(), source)
        save_releases(source, folder)
        write_picture([folder / "participants"], TARGET / "picture.png")
        write_picture([folder / "participants", folder / "population"], TARGET / "picture-two.png")
        browser = playwright.chromium.launch(
            executable_path=executable, args=FLAGS, chromium_sandbox=False, env={**os.environ, **environment}
        )
        shoot_reports(browser, folder)
        shoot_places(browser, folder)
        with serving(source, folder) as url:
            shoot_explorer(browser, url)
        browser.close()
    large = [path.name for path in sorted(TARGET.glob("*.png")) if path.stat().st_size > MOST_BYTES]
    for path in sorted(TARGET.glob("*.png")):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")
    if large:
        print(f"too large to commit: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    start = time.monotonic()
    code = main()
    print(f"made in {time.monotonic() - start:.0f} s")
    sys.exit(code)
