"""Screenshots that answer a planner's four questions, of any survey.

Somebody who has not seen the page should need ten seconds for each.

    python scripts/four_questions.py survey.parquet pictures --near Montreuil
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser
from shooting import InputSpec, Opened, a_browser, opened, settle, shoot

from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.publish.report import render
from odkanon.read.od_table import spec_to_matrix
from odkanon.sample.survey import CENTRAL_CELLS

SIZE = (1280, 1060)
HALVES = {"morning": "hour < 12", "afternoon": "hour >= 12"}


def save_releases(source: Path, folder: Path, within: str | None) -> None:
    """Save a cascade of everything, and one of each half of the day."""
    for name, condition in {"cascade": None, **HALVES}.items():
        od = spec_to_matrix(InputSpec(source, within=within, where=condition))
        anonymize(od, Rule(trips=10), method="cascade").save(folder / name)


def shoot_place(browser: Browser, folder: Path, target: Path, near: str) -> None:
    """Answer what one page of a cascade answers: where do they go, how coarse is it here, what was left out."""
    page_file = folder / "cascade.html"
    page_file.write_text(render([folder / "cascade"]), encoding="utf-8")
    with opened(browser, page_file.as_uri(), SIZE) as page:
        page.locator(".search input").fill(near)
        page.keyboard.press("Enter")
        Opened(page).until("odkanon.state().place !== null", 60)
        shoot(page, target / "1-where-do-people-from-here-go.png")
        page.locator("#flows").fill("0")
        shoot(page, target / "3-how-coarse-is-it-here.png")
        page.get_by_role("button", name="Back to everywhere").click()
        settle(page)
        page.locator(".part.out").click()
        shoot(page, target / "4-what-was-left-out.png")


def shoot_change(browser: Browser, folder: Path, target: Path) -> None:
    """Answer what changed between two releases."""
    page_file = folder / "change.html"
    page_file.write_text(render([folder / name for name in HALVES]), encoding="utf-8")
    with opened(browser, page_file.as_uri(), SIZE) as page:
        shoot(page, target / "2-what-changed-between-the-two.png")


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--near", required=True, help="a town in the middle of it")
    parser.add_argument("--central", action="store_true", help="only the central cells of the sample survey")
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, a_browser() as browser:
        folder = Path(temporary)
        save_releases(options.source, folder, ",".join(CENTRAL_CELLS) if options.central else None)
        shoot_place(browser, folder, options.target, options.near)
        shoot_change(browser, folder, options.target)


if __name__ == "__main__":
    main()
