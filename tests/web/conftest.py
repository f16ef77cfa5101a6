"""A real browser for the tests: the machine's own Chromium, or the one inside an npm package; never a download."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

from odkanon.explore import ExploreServer
from odkanon.sample.survey import make_survey
from web.browser import install
from web.building import page_built
from web.exploring import WITHIN, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser", "page_built"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    # Only the map is drawn as on a graphics card: the page around it would take as long again without one.
    "--disable-gpu-compositing",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
]


def find_browser() -> tuple[str, dict[str, str]]:
    """Return a browser and what it needs in its environment; skip the test where none can be had."""
    named = os.environ.get("ODKANON_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found and found != "npm":
        return found, {}
    try:
        return install()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        pytest.skip(f"no Chromium on this machine, and none from npm ({error})")


@pytest.fixture(scope="session")
def browser(page_built: Path) -> Iterator[Browser]:
    from playwright.sync_api import Error, sync_playwright

    executable, environment = find_browser()
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(
                executable_path=executable, args=FLAGS, chromium_sandbox=False, env={**os.environ, **environment}
            )
        except Error as error:
            pytest.skip(f"{executable} does not start here: {str(error)[:300]}")
        yield started
        started.close()


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "survey.parquet"
    pyarrow.parquet.write_table(make_survey(), path)
    return path


@pytest.fixture(scope="module")
def server(survey: Path, page_built: Path) -> Iterator[ExploreServer]:
    folder = survey.parent / "started here"
    folder.mkdir()
    with serving(survey, folder, within=WITHIN) as server:
        yield server
