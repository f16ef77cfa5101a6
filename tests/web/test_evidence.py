"""The sheet of evidence in a browser: it asks for nothing, fits its width, and prints on two sheets of A4."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser

from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.sheet import DO_NOT_PUBLISH, NESTED_IN_WORDS, NOTICE
from odkanon.evidence.sheet_page import page

LONG = "One sentence that is about as long as those that attacks have to say for themselves, and then some more. " * 2


def content() -> dict[str, Any]:
    """A sheet that is as full as sheets get."""
    digest = "0123456789abcdef" * 4
    attacks = [
        {
            "attack": each.name,
            "title": each.title,
            "asks": each.asks,
            "question": each.question,
            "verdict": verdict,
            "message": LONG,
            "tried": 7,
            "of": 20,
        }
        for each, verdict in zip(
            ATTACKS.values(), ["clean", "found", "to weigh", "not settled", "not made"] * 2, strict=False
        )
    ]
    answers = [{**each, "number": "groups", "value": 0.123456} for each in attacks]
    choice = {"flows": 726, "share": 0.9, "right": {"2 km": 0.4, "4 km": 0.6}, "outsider": 0.7, "largest": 0.4}
    line = {"requirement": LONG[:45], "outcome": "review", "found": LONG[:30]}
    return {
        "notice": NOTICE,
        "verdict": {
            "verdict": DO_NOT_PUBLISH,
            "stops": [LONG],
            "points": [{"about": "policy", "question": LONG[:80], "because": LONG[:110]}] * 4,
        },
        "in_words": NESTED_IN_WORDS,
        "input": {
            "rows": 81_291,
            "trips": 81_291,
            "rejected": {"not matched by the filter": {"rows": 120}, "without coordinates": {"rows": 17}},
            "suppressed": {"trips": 8_003},
            "persons": 3_320,
            "households": 1_200,
            "flows_of_few_households": 12,
        },
        "choices": {"choices": [{"k": k, "own": k == 10, **choice} for k in (5, 10, 20)], "reason": None},
        "not_promised": [LONG[:120]] * 5,
        "release": {
            "name": "release",
            "statement": "Every published flow is shared by at least 10 trips.",
            "method": "odkanon",
            "parameters": {"suppress": "after", "budget": 0.1},
            "published": {"classes": 726, "origins": 52, "destinations": 46, "trips": 73355},
            "unlisted": {"at_most_trips": 8150},
            "rule": {"k": 10, "trips": 10},
            "period": {"since": "2024-01-01", "until": "2024-02-01"},
            "sha256": dict.fromkeys(("release.json", "classes.csv", "classes.parquet", "zones.geojson"), digest),
        },
        "trips": {"name": "survey.parquet", "trips": 81291, "persons": 3320, "sha256": digest},
        "earlier": [{"name": f"release{number}", "sha256": digest} for number in range(4)],
        "attacks": attacks,
        "questions": [
            {"question": name, "answer": LONG, "attacks": answers[at::3]}
            for at, name in enumerate(("singling out", "linkability", "inference"))
        ],
        "sampling": {"words": LONG * 2},
        "policy": {
            "name": "policy.toml",
            "sha256": digest,
            "lines": [line] * 12,
            "asked_by": "Data protection officer",
            "reason": LONG[:80],
            "decided": ["membership"],
        },
        "versions": {"odkanon": "0.1.0", "python": "3.11"},
    }


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sheet") / "evidence.html"
    path.write_text(page(content()), encoding="utf-8")
    return path


def test_the_sheet_opens_without_asking_for_anything(browser: Browser, sheet: Path) -> None:
    opened = browser.new_page(viewport={"width": 390, "height": 800})
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(sheet.as_uri())
    assert asked == [sheet.as_uri()]
    assert opened.locator("h1").inner_text() == "May the release release be published?"
    assert opened.locator("td .verdict").count() == len(ATTACKS)
    assert opened.locator(".sign div").count() == 3
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.close()


def test_the_sheet_prints_on_two_pages(browser: Browser, sheet: Path, tmp_path: Path) -> None:
    opened = browser.new_page()
    opened.goto(sheet.as_uri())
    printed = opened.pdf(prefer_css_page_size=True)
    opened.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
