"""Make the pictures of the README and the docs: real screenshots, still pictures, and a moving one.

Everything is drawn from the built-in sample survey. Pictures go to `docs/images`, each small enough to commit. Parts of
it: `make_pictures.py still reports explorer moving`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet
from moving import write_moving
from PIL import Image
from playwright.sync_api import Browser, Page
from shooting import ROOT, InputSpec, Opened, a_browser, opened, serving
from shooting import shoot as shoot_to

from odkanon.attributes.spec import parse_attributes
from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.publish.report import render
from odkanon.publish.report.pictures import write_picture
from odkanon.read.od_table import spec_to_matrix
from odkanon.sample.survey import CENTRAL_CELLS, make_survey

TARGET = ROOT / "docs" / "images"
MOST_BYTES = {".png": 350_000, ".webp": 3_000_000}
COLOURS = 256
WIDE, PHONE = (1280, 900), (390, 844)
WITHIN = ",".join(CENTRAL_CELLS)
BY = ("mode", "hour:0-7,7-9,9-17,17-20,20-24")
HALVES = {"morning": "hour < 12", "afternoon": "hour >= 12"}


def shoot(page: Page, name: str) -> None:
    """Take one of the pictures of the docs."""
    shoot_to(page, TARGET / f"{name}.png")


def shoot_reports(browser: Browser, folder: Path) -> None:
    """Take pictures of the page of one release, from one place, on a phone, and of what changed between two."""
    single, two = folder / "single.html", folder / "two.html"
    single.write_text(render([folder / "cube"]), encoding="utf-8")
    two.write_text(render([folder / name for name in HALVES]), encoding="utf-8")
    with opened(browser, single.as_uri(), WIDE, "light") as page:
        shoot(page, "report")
        page.get_by_role("combobox", name="From").fill("Montreuil")
        page.keyboard.press("Enter")
        shoot(page, "places-from")
    with opened(browser, single.as_uri(), PHONE, "dark") as page:
        shoot(page, "report-phone")
    with opened(browser, two.as_uri(), WIDE, "light") as page:
        shoot(page, "report-two")


def shoot_explorer(browser: Browser, url: str) -> None:
    """Take pictures of the explorer with one release, and with two side by side."""
    for name, theme, k, split in (("explorer", "light", 20, False), ("explorer-split", "dark", 10, True)):
        with opened(browser, url, WIDE, theme) as page:
            page.get_by_role("slider", name="k", exact=True).fill(str(k))
            if split:
                page.get_by_role("checkbox", name="Participants | population").check()
            curve = Opened(page)
            curve.until(f"document.querySelectorAll('.curve polyline').length === {1 + split}", 240)
            shoot(page, name)


def save_releases(source: Path, folder: Path) -> None:
    """Save the sample survey protected for participants, and for the population; as a cascade, and as a cube."""
    reading = InputSpec(source, within=WITHIN)
    od = spec_to_matrix(reading)
    for target in ("participants", "population"):
        rule = Rule.protect(target, k=10, of=od)
        anonymize(od, rule, method="odkanon").save(folder / target)
        anonymize(od, rule, method="odkanon", suppress="before").save(folder / f"{target} as published")
    anonymize(od, Rule(trips=10), method="cascade").save(folder / "cascade")
    anonymize(spec_to_matrix(reading, attributes=parse_attributes(BY)), Rule(trips=10), method="cascade").save(
        folder / "cube"
    )
    for name, condition in HALVES.items():
        half = spec_to_matrix(InputSpec(source, within=WITHIN, where=condition))
        anonymize(half, Rule(trips=10), method="cascade").save(folder / name)


def shrink(path: Path) -> None:
    """Store a picture with a palette: maps of curves compress badly otherwise."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> int:
    """Make every picture, or those whose part is named; fail where one is too large to commit."""
    wanted = set(sys.argv[1:]) or {"still", "reports", "explorer", "moving"}
    started = time.time()
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, a_browser() as browser:
        folder = Path(temporary)
        source = folder / "survey.parquet"
        pyarrow.parquet.write_table(make_survey(), source)
        save_releases(source, folder)
        if "still" in wanted:
            write_picture([folder / "participants"], TARGET / "picture.png")
            write_picture([folder / "participants", folder / "population"], TARGET / "picture-two.png")
            published = [folder / f"{target} as published" for target in ("participants", "population")]
            write_picture(published, TARGET / "picture-paper.png", paper=True)
        if "reports" in wanted:
            shoot_reports(browser, folder)
        if wanted & {"explorer", "moving"}:
            with serving(InputSpec(source, within=WITHIN), folder) as url:
                if "explorer" in wanted:
                    shoot_explorer(browser, url)
                if "moving" in wanted:
                    write_moving(browser, url, TARGET / "explorer.webp")
    for path in TARGET.glob("*.png"):
        if path.stat().st_mtime >= started:
            shrink(path)
    pictures = sorted(path for path in TARGET.iterdir() if path.suffix in MOST_BYTES)
    for path in pictures:
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")
    large = [path.name for path in pictures if path.stat().st_size > MOST_BYTES[path.suffix]]
    if large:
        print(f"too large to commit: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    start = time.monotonic()
    code = main()
    print(f"made in {time.monotonic() - start:.0f} s")
    sys.exit(code)
