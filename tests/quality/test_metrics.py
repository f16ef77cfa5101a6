"""Metrics of other packages join comparisons: registered by a call, or declared as an entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cli.here import run
from odkanon import InputError, Metric, Release, Rule, compare, read_hierarchy, read_matrix, register_metric, utility
from odkanon.core.registry import Registry
from odkanon.methods.method_registry import anonymize
from odkanon.quality import utility as metrics

TREE = read_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
FLOWS = pa.table({"origin": ["a1", "a1", "b1"], "destination": ["b1", "b2", "a1"], "trips": [16, 4, 12]})
MODULE = """
from odkanon import Metric

def largest(od, release, measure):
    masses = getattr(release.classes, measure)
    return float(masses.max())

LARGEST = Metric("largest", "Largest class", largest)
"""


def largest(od: Any, release: Release, measure: str) -> float:
    return float(getattr(release.classes, measure).max())


@pytest.fixture
def registered() -> Iterator[Metric]:
    yield register_metric(Metric("largest", "Largest class", largest))
    metrics.METRICS.unregister("largest")


def check_columns(headings: tuple[str, ...]) -> None:
    found = compare(FLOWS, ["odkanon", "oigh-no-budget"], k=10, budget=0.2, hierarchy=TREE)
    assert found.to_arrow().column("largest").to_pylist() == [16.0, 20.0]
    [table] = [table for table in found.tables if "on the whole dataset" in table.caption]
    assert table.headings == headings
    assert [row[-1] for row in table.rows] == ["16.0", "20.0"]
    assert "Largest class" in table.to_markdown()


HEADINGS = (
    *("Method", "Whole", "Zones", "C_DM", "C_AVG", "G", "E", "G at best", "CPC 2 km", "CPC 4 km"),
    *("Suppressed", "Time (s)", "Largest class"),
)


def test_a_registered_metric_is_a_column_of_comparisons(registered: Metric) -> None:
    check_columns(HEADINGS)


def test_the_command_prints_a_registered_metric(
    registered: Metric, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("compare", "--sample", "--methods", "oigh", "-o", "tables") == 0
    assert "Largest class" in capsys.readouterr().out
    assert "Largest class" in (tmp_path / "tables/tables.md").read_text(encoding="utf-8")
    assert "largest" in (tmp_path / "tables/tables.csv").read_text(encoding="utf-8").splitlines()[0]


def test_an_entry_point_is_a_column_of_comparisons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[odkanon.metrics]\nlargest = mine:LARGEST\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(metrics, "METRICS", Registry("metric", metrics.BUILTIN, check=metrics._check))
    try:
        check_columns(HEADINGS)
    finally:
        sys.modules.pop("mine", None)


def test_our_own_are_those_of_the_paper() -> None:
    od = read_matrix(FLOWS, engine="memory", hierarchy=TREE)
    release = anonymize(od, Rule(trips=10), budget=0.2)
    found = {name: metric.evaluate(release, "trips") for name, metric in metrics.METRICS.items()}
    assert found == asdict(utility(od, release))
    assert metrics.extra_metrics() == []
    assert metrics.evaluate_extra_metrics(release, "trips") == {}


def test_a_metric_gets_what_it_needs() -> None:
    od = read_matrix(FLOWS, engine="memory", hierarchy=TREE)
    release = anonymize(od, Rule(trips=10), budget=0.2)
    seen: list[Any] = []

    def look(source: Any, release: Release, measure: str) -> float:
        seen.append(source)
        return 1.0

    assert Metric("a", "A", look).evaluate(release, "trips") == 1.0
    assert Metric("b", "B", look, needs_pairs=True).evaluate(release, "trips") == 1.0
    assert seen == [release.input, release.od]
    assert Metric("c", "C", look, measures=("weight",)).evaluate(release, "trips") is None
    refused = anonymize(od, Rule(trips=1000), budget=0.2)
    assert refused.refusal is not None
    assert Metric("d", "D", look).evaluate(refused, "trips") is None
    assert len(seen) == 2


def test_what_is_no_metric_cannot_be_registered(registered: Metric) -> None:
    wrong: Any = largest
    for metric, message in (
        (wrong, "a metric must be an odkanon.Metric"),
        (Metric("Largest class", "", largest), "the name of a metric must be lower case letters"),
        (Metric("g", "Mine", largest), "there is a metric 'g' already"),
        (Metric("largest", "Another", largest), "there is a metric 'largest' already"),
    ):
        with pytest.raises(InputError, match=message):
            register_metric(metric)
