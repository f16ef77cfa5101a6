"""Screenshots that answer a planner's six questions, of any survey, at the size of a desktop and of a phone.

Somebody who has not seen the page should need ten seconds for each, from the first screen or after at most two clicks.

    python scripts/six_questions.py survey.parquet pictures --from Montreuil --to Vincennes --by mode:car=1
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page
from shooting import InputSpec, Opened, a_browser, opened, settle, shoot

from odkanon.attributes.spec import parse_attributes
from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.publish.report import render
from odkanon.read.od_table import spec_to_matrix

SIZES = {"desktop": (1440, 900), "phone": (390, 844)}
MORNING = "hour:7-9,9-17,17-7"
HALVES = {"morning": "hour < 12", "afternoon": "hour >= 12"}


def save_pages(source: Path, folder: Path, where: list[str], by: list[str]) -> tuple[Path, Path]:
    """Make a cube of everything and a cascade of each half of the day, and write their pages."""
    conditions = {"cube": where, **{name: [*where, half] for name, half in HALVES.items()}}
    for name, own in conditions.items():
        attributes = parse_attributes([*by, MORNING]) if name == "cube" else ()
        od = spec_to_matrix(InputSpec(source, where=own), attributes=attributes)
        anonymize(od, Rule(trips=10), method="cascade").save(folder / name)
    pages = folder / "cube.html", folder / "change.html"
    for page, names in zip(pages, (["cube"], list(HALVES)), strict=True):
        page.write_text(render([folder / name for name in names]), encoding="utf-8")
    return pages


def choose(page: Page, end: str, name: str) -> None:
    """Type a place into a field."""
    page.get_by_role("combobox", name=end).fill(name)
    page.keyboard.press("Enter")
    Opened(page).until(f"odkanon.state().{end.lower()} !== null", 60)
    settle(page)


def answer(page: Page, target: Path, question: str) -> None:
    """Take the picture that answers a question, and print the words that do."""
    shoot(page, target.with_name(f"{question}-{target.name}"))
    print(question, target.stem, "|", " ".join(Opened(page).text(".say").split()))


def shoot_place(browser: Browser, file: Path, target: Path, size: tuple[int, int], ends: tuple[str, str]) -> None:
    """Answer what one page answers: where from here, A to B, the morning, how well it is known, and the promise."""
    with opened(browser, file.as_uri(), size) as page:
        answer(page, target, "0-first")
        choose(page, "From", ends[0])
        answer(page, target, "1-where")
        answer(page, target, "5-known")
        choose(page, "To", ends[1])
        answer(page, target, "2-pair")
        page.keyboard.press("Escape")
        page.locator(".chip").nth(1).click()
        page.locator(".hour").first.click()
        answer(page, target, "3-morning")
        page.locator(".promise summary").click()
        page.screenshot(path=target.with_name(f"6-trust-{target.name}"))
        print("6-trust", target.stem, "|", " ".join(Opened(page).text(".promise p").split()))


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--from", dest="start", required=True)
    parser.add_argument("--to", dest="end", required=True)
    parser.add_argument("--where", action="append", default=[])
    parser.add_argument("--by", action="append", default=[])
    asked = parser.parse_args()
    asked.target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, a_browser() as browser:
        cube, change = save_pages(asked.source, Path(folder), asked.where, asked.by)
        for name, size in SIZES.items():
            target = asked.target / f"{name}.png"
            shoot_place(browser, cube, target, size, (asked.start, asked.end))
            with opened(browser, change.as_uri(), size) as page:
                answer(page, target, "4-change")


if __name__ == "__main__":
    main()
