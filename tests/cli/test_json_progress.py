"""A program that runs a command with ``--json`` can show its progress."""

from __future__ import annotations

import json
import time

import pytest

from odkanon.cli import console as progress_bars
from odkanon.cli.console import Document, console
from odkanon.core.progress import counted


def test_stages_are_lines_of_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bars, "INTERVAL", 0.02)
    monkeypatch.setattr(console, "document", Document("anonymize"))
    with progress_bars.stages() as stage, counted(4) as counter:
        stage("protecting")
        counter.at(1)
        time.sleep(0.2)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {"stage": "protecting", "share": 0.25} in lines
    assert len(lines) <= 3  # only what has changed


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "document", Document("anonymize"))
    with progress_bars.stages() as stage:
        stage("protecting")
    assert capsys.readouterr().err == ""
