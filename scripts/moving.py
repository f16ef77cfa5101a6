"""A moving picture of the explorer for the README: thirty seconds of what a reader would do, one picture a step."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page
from shooting import Opened, opened, settle

SIZE = (1180, 760)
QUALITY = 62

Step = tuple[str, float, Callable[[Page], None]]
"""What is said below the picture, for how many seconds, and what is done first."""


def _slide(k: int) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.get_by_role("slider", name="k", exact=True).fill(str(k))
        Opened(page).until(f"odkanon.shown()?.request.k === {k}", 240)

    return act


def _split(on: bool) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        box = page.get_by_role("checkbox", name="Participants | population")
        box.set_checked(on)
        Opened(page).until(f"odkanon.shown()?.request.split === {str(on).lower()}", 240)

    return act


def _cascade(page: Page) -> None:
    page.get_by_role("combobox", name="Method").select_option("cascade")
    Opened(page).until("odkanon.shown()?.request.method === 'cascade'", 240)


def _find(town: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.locator(".search input").fill(town)
        page.locator(".search input").press("Enter")

    return act


def _finer(page: Page) -> None:
    detail = page.locator("#detail")
    detail.fill(str(int(detail.input_value()) + 1))


def _nearer(page: Page) -> None:
    page.get_by_role("button", name="Zoom in").click()


def _look(page: Page) -> None:
    page.evaluate("document.querySelector('.mapcard').scrollIntoView()")


STEPS: list[Step] = [
    ("Every flow is shared by at least 10 trips: zones are small where many travel", 3, _look),
    *((f"Move k: every flow is now shared by at least {k}", 1.2, _slide(k)) for k in (12, 15, 20, 30, 45)),
    ("... and back", 1.5, _slide(10)),
    ("Protect participants, or the population? Zones that differ stand out", 4, _split(True)),
    ("Back to one", 1.2, _split(False)),
    ("Cascade: each trip at the finest place that k share", 3.5, _cascade),
    ("Where do people from Montreuil go?", 2, _find("Montreuil")),
    ("Where do people from Montreuil go? To Bagnolet, Vincennes, Paris ...", 2, _nearer),
    ("Finer: what is known street by street, and what only roughly", 3.3, _finer),
    ("Where do people from Clichy go?", 3.5, _find("Clichy")),
]


def write_moving(browser: Browser, url: str, target: Path) -> None:
    """Play the steps in the explorer and write what is seen as one animated WebP."""
    frames, durations = [], []
    with opened(browser, url, SIZE) as page:
        for words, seconds, act in STEPS:
            act(page)
            _say(page, words)
            _look(page)
            settle(page)
            frames.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
            durations.append(round(1000 * seconds))
    frames[0].save(
        target, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=QUALITY, method=6
    )


def _say(page: Page, words: str) -> None:
    """Write a sentence over the lower edge of the window."""
    page.evaluate(
        """(words) => {
          document.activeElement?.blur();
          const old = document.getElementById("said");
          const said = old ?? document.body.appendChild(Object.assign(document.createElement("p"), { id: "said" }));
          said.textContent = words;
          Object.assign(said.style, { position: "fixed", left: 0, right: 0, bottom: 0, margin: 0, padding: "10px 18px",
            background: "#10202ee6", color: "#fff", font: "600 19px sans-serif", zIndex: 99 });
        }""",
        words,
    )
