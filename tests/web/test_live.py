"""The live mode of the page against a made-up server: it asks, shows the answer, and never shows a stale one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Route

from odkanon.explore.data import for_controls
from odkanon.methods import METHODS
from odkanon.publish.report.page_model import FORMAT, build_model
from odkanon.publish.report.report_page import fill_template
from odkanon.release_format.folder import open_release
from web import made
from web.driver import NO_WEBGL, Opened

ADDRESS = "http://127.0.0.1:1/secret/"
FIRST = {
    "k": 10,
    "targets": ["trips"],
    "method": "odkanon",
    "budget": 0.1,
    "suppress": "after",
    "resolution": 10,
    "segment": "all",
    "split": False,
    "by": [],
}
OFFER = {
    "token": "secret",
    "k": {"min": 2, "max": 50},
    "budget": {"max": 0.3},
    "targets": ["trips", "weight"],
    "methods": [for_controls(METHODS[name]) for name in ("odkanon", "mondrian")],
    "resolutions": [9, 10],
    "segments": ["all", "women"],
    "attributes": [],
    "first": FIRST,
}


class Server:
    """Answers with a release whose rule tells k, and keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.model = build_model([open_release(folder)])
        self.asked: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()

    def __call__(self, route: Route) -> None:
        if route.request.method == "GET":
            page = fill_template({"format": FORMAT, "shapes": [], "releases": [], "live": OFFER}, connect="'self'")
            route.fulfill(body=page, content_type="text/html; charset=utf-8")
            return
        request = json.loads(route.request.post_data or "")
        if not route.request.url.endswith("/anonymize"):
            route.fulfill(json={"more": [{"limit": None, "usefulness": {}}], "curve": []})
            return
        self.asked.append({name: request[name] for name in FIRST})
        self.tokens.add(route.request.header_value("x-odkanon-token"))
        if request["k"] > 40:
            route.fulfill(status=422, json={"error": "nothing can be published with this k"})
            return
        rule = {"k": request["k"], "trips": request["k"]}
        release = {**self.model["releases"][0]}
        release["about"] = {**release["about"], "rule": rule}
        route.fulfill(json={**self.model, "releases": [release]})


def test_the_controls_ask_the_server_and_the_page_follows(browser: Browser, tmp_path: Path) -> None:
    server = Server(made.hexagons(tmp_path / "release"))
    context = browser.new_context()
    context.add_init_script(NO_WEBGL)
    context.route("**/*", server)
    opened = Opened(context.new_page())
    opened.page.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.page.goto(ADDRESS)
    opened.page.wait_for_selector(".live")
    assert server.asked == [FIRST]
    slider = opened.page.get_by_role("slider", name="k", exact=True)
    for k in range(11, 31):
        slider.fill(str(k))
    opened.until("document.querySelector('.promise')?.textContent.includes('at least 30 trips')")
    boxes = opened.page.get_by_role("checkbox")
    boxes.nth(1).check()
    boxes.nth(0).uncheck()
    boxes.nth(1).click()  # the last one cannot be taken away
    opened.page.get_by_role("radio", name="before merging").check()
    opened.page.get_by_role("combobox", name="Method").select_option("mondrian")
    opened.until("document.querySelector('.live output').textContent === '30'")
    assert server.asked[-1] == {**FIRST, "k": 30, "targets": ["weight"], "method": "mondrian", "suppress": "before"}
    assert server.tokens == {"secret"}
    slider.fill("45")
    problem = opened.page.get_by_text("nothing can be published with this k")
    problem.wait_for(state="visible")
    slider.fill("12")
    problem.wait_for(state="hidden")
    assert opened.problems == []
    context.close()
