"""Taking screenshots of the page: a browser without a window, opened pages that have come to rest, the explorer."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 240
"""Seconds to wait for a page: on a busy machine without a graphics card it takes a while."""

sys.path.insert(0, str(ROOT / "tests"))

from odkanon.explore import ExploreServer, Session, read_explorer_data  # noqa: E402
from odkanon.read.input_spec import InputSpec  # noqa: E402
from web.conftest import FLAGS, find_browser  # noqa: E402
from web.driver import Opened  # noqa: E402

__all__ = ["ROOT", "InputSpec", "Opened", "a_browser", "opened", "serving", "settle", "shoot"]


@contextmanager
def a_browser() -> Iterator[Browser]:
    """Start the browser that the tests use."""
    executable, environment = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=FLAGS, chromium_sandbox=False, env={**os.environ, **environment}
        )
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, url: str, size: tuple[int, int], theme: str = "light") -> Iterator[Page]:
    """Open a page and wait until its map has come to rest."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if theme == "dark" else "light"
    )
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(url)
    page.wait_for_selector(".maps[data-drawn]")
    settle(page)
    yield page
    context.close()


def settle(page: Page) -> None:
    """Wait until the map no longer changes."""
    Opened(page).settle(PATIENCE)


def shoot(page: Page, target: Path) -> None:
    """Take a picture once the map has come to rest, without the pointer or the focus in it."""
    settle(page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur()")
    page.screenshot(path=target)


@contextmanager
def serving(reading: InputSpec, folder: Path) -> Iterator[str]:
    """Run the explorer in the background and give its address."""
    with ExploreServer(Session(read_explorer_data(reading), folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()
