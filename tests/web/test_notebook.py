"""The map that a notebook shows: the whole page, in a frame that can reach nothing outside."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, ConsoleMessage

from odkanon import Rule
from odkanon.methods.method_registry import anonymize
from worlds.matrices import golden_od


@pytest.mark.slow
def test_the_map_draws_inside_a_notebook(browser: Browser, tmp_path: Path) -> None:
    shown = anonymize(golden_od("tiny"), Rule(trips=5)).map(height=500)
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!doctype html><p>In [1]: release.map()</p>{shown._repr_html_()}", encoding="utf-8")
    context = browser.new_context()
    page, problems = context.new_page(), list[str]()

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(cell.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".canvas canvas").wait_for()
    assert "counts at least 5 trips" in frame.locator("body").inner_text()
    context.close()
    assert problems == []
