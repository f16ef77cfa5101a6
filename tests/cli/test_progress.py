"""A bar while the share done is known, a spinner while it is not, and nothing off a terminal."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import pytest
from rich.console import Console

from odkanon import Rule
from odkanon.cli import console as progress_bars
from odkanon.core.progress import counted, current_progress, watched
from odkanon.engine.duckdb.backend import DuckDb
from odkanon.methods.method_registry import anonymize
from odkanon.read.tables.table import share_of
from worlds.matrices import golden_od


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(progress_bars, "stderr", Console(file=text, force_terminal=True, width=80, highlight=False))
    return text


def drawn(screen: io.StringIO, bar: Any) -> str:
    bar.refresh()
    return screen.getvalue()


def test_a_bar_with_a_share_and_a_spinner_without(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    bar = progress_bars.progress_bar()
    monkeypatch.setattr(progress_bars, "progress_bar", lambda: bar)
    with progress_bars.stages() as stage:
        stage("reading [files]")
        assert "reading [files] ..." in drawn(screen, bar)
        assert "%" not in screen.getvalue()
        with counted(4) as counter:
            counter.at(3)
            assert "75 %" in drawn(screen, bar)
        screen.truncate(0)
        assert "%" not in drawn(screen, bar)


def test_nothing_is_drawn_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(progress_bars, "stderr", Console(file=text, force_terminal=False))
    with progress_bars.stages() as stage, progress_bars.runs(3) as at:
        stage("reading")
        at(1, "something")
    assert text.getvalue() == ""


@pytest.mark.parametrize(
    ("method", "part"),
    [
        ("treecut", "odkanon.methods.treecut.search.exchange"),
        ("freezones", "odkanon.methods.freezones.annealing.sweep"),
    ],
)
def test_methods_that_search_tell_how_far_they_are(method: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []
    module, _, name = part.rpartition(".")
    work = getattr(import_module(module), name)

    def noted(*given: Any) -> Any:
        seen.append(current_progress())
        return work(*given)

    monkeypatch.setattr(part, noted)
    anonymize(golden_od("tiny"), Rule(trips=5), method=method, iterations=4)
    shares = [share for share in seen if share is not None]
    assert shares == sorted(shares)
    assert len(set(shares)) > 2
    assert current_progress() is None


def test_work_within_work_counts_as_part_of_it() -> None:
    with watched(lambda: 0.5):
        with counted(1) as counter:
            counter.at(1)
            assert current_progress() == 0.5
        assert current_progress() == 0.5
    assert current_progress() is None


def test_a_database_that_has_ended_does_not_tell() -> None:
    backend = DuckDb()
    assert backend.execute("SELECT 1 AS one").column("one").to_pylist() == [1]
    share = share_of(backend.connection)
    backend.close()
    assert share() is None
