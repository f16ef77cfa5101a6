"""Driving the page: opening it with the network blocked, waiting for the map, reading its pixels."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from odkanon.publish.report import PageTexts, render

WIDE = (1280, 860)
PHONE = (390, 800)
NO_WEBGL = "HTMLCanvasElement.prototype.getContext = () => null"

# A copy of the WebGL canvas as it is on the screen; colours at the given page positions, or all of them counted.
PIXELS = """(points) => {
  const source = document.querySelector(".canvas canvas");
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [source.width, source.height];
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0);
  const frame = source.getBoundingClientRect();
  const scale = source.width / frame.width;
  if (points) return points.map(([x, y]) =>
    [...context.getImageData((x - frame.left) * scale, (y - frame.top) * scale, 1, 1).data].slice(0, 3));
  const { data } = context.getImageData(0, 0, copy.width, copy.height);
  const counts = new Map();
  for (let i = 0; i < data.length; i += 4 * 7) {
    const colour = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  return [...counts];
}"""


@dataclass
class Opened:
    """A page in the browser, with everything it complained about or asked for."""

    page: Page
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(message.text)

    def request(self, request: Request) -> None:
        self.requests.append(request.url)

    def colours(self) -> dict[int, int]:
        """How often each colour occurs on the map."""
        return dict(self.page.evaluate(PIXELS, None))

    def place(self, place: str) -> list[float]:
        """The middle of a place of the level that is shown, in pixels of the window."""
        found: list[float] = self.page.evaluate("(place) => odkanon.place(place)", place)
        return found

    def places(self) -> list[str]:
        """The ids of the places of the level that is shown."""
        found: list[str] = self.page.evaluate("odkanon.level().places")
        return found

    def state(self, name: str) -> Any:
        """What the reader chose."""
        return self.page.evaluate(f"odkanon.state()[{name!r}]")

    def settle(self, limit: float = 60.0) -> Opened:
        """Wait until the map shows something and has stopped changing."""
        deadline, before = time.monotonic() + limit, None
        while time.monotonic() < deadline:
            now = self.colours()
            if len(now) > 5 and now == before:
                return self
            before = now
            time.sleep(0.1)
        raise AssertionError(f"the map did not come to rest within {limit} s: {len(before or {})} colours")

    def press(self, name: str) -> Opened:
        """Press one of the buttons of the page, in whichever menu it is."""
        self.open_menu(f"button:text-is({json.dumps(name)})")
        self.page.get_by_role("button", name=name, exact=True).click()
        return self

    def open_menu(self, content: str) -> None:
        """Open the menu that holds an element, if one does."""
        for menu in self.page.locator("details:not([open])", has=self.page.locator(content)).all():
            menu.locator("summary").click()

    def promise(self) -> str:
        """What the promise says once it is opened."""
        self.open_menu("text=How it was made")
        return self.text(".promise")

    def open_made(self) -> Opened:
        """Open what stands behind the promise."""
        return self.press("How it was made")

    def until(self, script: str, limit: float = 10.0) -> None:
        """Wait until a script gives true; Playwright's own way of waiting is kept out by the page's policy."""
        deadline = time.monotonic() + limit
        while not self.page.evaluate(script):
            assert time.monotonic() < deadline, f"still not so after {limit} s: {script}"
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        """The text of an element, with plain spaces where the page keeps a number and its unit on one line."""
        return plain(self.page.locator(selector).inner_text())


FREE = """() => {
  const cards = [...document.querySelectorAll("main .card, main .sheet, .foot, .zoom button, .ruler")]
    .filter((one) => one.checkVisibility() && !one.matches(".live *")).map((one) => one.getBoundingClientRect());
  let [free, all] = [0, 0];
  for (let x = 1; x < innerWidth; x += 3) for (let y = 1; y < innerHeight; y += 3) {
    all += 1;
    free += !cards.some(({ left, right, top, bottom }) => x >= left && x < right && y >= top && y < bottom);
  }
  return free / all;
}"""
"""The share of the window in which the map is under nothing else."""


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def open_report(
    browser: Browser,
    target: Path,
    folders: Sequence[Path],
    *,
    size: tuple[int, int] = WIDE,
    theme: str = "light",
    wait: bool = True,
    draws: bool = True,
    end: str = "",
    texts: PageTexts | None = None,
) -> Opened:
    """Write the report of some releases to a file and open it from disk, offline."""
    target.write_text(render(folders, texts=texts), encoding="utf-8")
    return open_page(browser, target, size=size, theme=theme, wait=wait, draws=draws, end=end)


def open_page(
    browser: Browser,
    target: Path,
    *,
    size: tuple[int, int] = WIDE,
    theme: str = "light",
    wait: bool = True,
    draws: bool = True,
    end: str = "",
) -> Opened:
    """Open a page from disk, offline; one that does not draw has everything but the map, and sooner."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        offline=True,
        locale="en-US",
        color_scheme="dark" if theme == "dark" else "light",
    )
    if not draws:
        context.add_init_script(NO_WEBGL)
    opened = Opened(context.new_page())
    opened.page.on("console", opened.note)
    opened.page.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.page.on("request", opened.request)
    start = time.monotonic()
    opened.page.goto(target.as_uri() + end)
    if wait and draws:
        opened.page.wait_for_selector(".maps[data-drawn]")
        opened.settle()
    opened.seconds = time.monotonic() - start
    return opened
