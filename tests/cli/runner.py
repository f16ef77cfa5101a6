"""Runs the real command, as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from odkanon import read_recipe


def odkanon(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odkanon", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done


def output(done: subprocess.CompletedProcess[str]) -> str:
    """Return all that was printed, without the line breaks of the terminal's width."""
    return " ".join((done.stdout + done.stderr).replace("│", " ").split())


def told(folder: Path) -> dict[str, Any]:
    """Return all that the recipe beside a release says about it."""
    recipe = read_recipe(folder)
    assert recipe is not None
    about: dict[str, Any] = recipe["about"]
    return about
