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


def _by(attribute: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.get_by_role("checkbox", name=attribute).check()
        Opened(page).until("odkanon.shown()?.request.by.length === 1 && odkanon.shown().whole", 240)

    return act


def _find(town: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.get_by_role("combobox", name="From").fill(town)
        page.keyboard.press("Enter")

    return act


def _morning(page: Page) -> None:
    page.locator(".hour").nth(1).click()


STEPS: list[Step] = [
    ("Every flow is shared by at least 10 trips", 3, lambda page: None),
    *((f"Move k: every flow is now shared by at least {k}", 1.2, _slide(k)) for k in (15, 20, 30, 45)),
    ("... and back", 1.5, _slide(10)),
    ("Protect participants, or the population? The map shows the difference", 4, _split(True)),
    ("Back to one", 1.2, _split(False)),
    ("Cascade: each trip at the finest place that k share", 3.5, _cascade),
    ("By time of day: one more tick", 3, _by("hour")),
    ("Where do people from Montreuil go?", 3, _find("Montreuil")),
    ("Where do people from Montreuil go between seven and nine?", 3.5, _morning),
    ("Where do people from Clichy go?", 3.5, _find("Clichy")),
]


def write_moving(browser: Browser, url: str, target: Path) -> None:
    """Play the steps in the explorer and write what is seen as one animated WebP."""
    frames, durations = [], []
    with opened(browser, url, SIZE) as page:
        for words, seconds, act in STEPS:
            act(page)
            _say(page, words)
            settle(page)
            frames.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
            durations.append(round(1000 * seconds))
    frames[0].save(
        target, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=QUALITY, method=6
    )


def _say(page: Page, words: str) -> None:
    """Write a sentence over the lower part of the map."""
    page.evaluate(
        """(words) => {
          document.activeElement?.blur();
          const old = document.getElementById("said");
          const said = old ?? document.body.appendChild(Object.assign(document.createElement("p"), { id: "said" }));
          said.textContent = words;
          Object.assign(said.style, { position: "fixed", left: "50%", translate: "-50%", bottom: "74px", margin: 0,
            padding: "8px 18px", borderRadius: "8px", pointerEvents: "none", whiteSpace: "nowrap",
            background: "#10202ee6", color: "#fff", font: "600 19px sans-serif", zIndex: 99 });
        }""",
        words,
    )
