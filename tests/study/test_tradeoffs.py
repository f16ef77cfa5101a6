from __future__ import annotations

from pathlib import Path

import pytest

from odkanon.errors import InputError
from odkanon.study.tradeoffs import plot_tradeoff, tradeoff
from worlds.matrices import random_world, town


def test_measures_every_combination_in_order() -> None:
    od = town(1, trips=400)
    rows = tradeoff(od, ks=(2, 5), budgets=(0.0, 0.1), methods=("odkanon", "oigh", "mondrian"))
    assert [(row.budget, row.k) for row in rows[::3]] == [(0.0, 2), (0.0, 5), (0.1, 2), (0.1, 5)]
    assert [row.method for row in rows[:3]] == ["odkanon", "oigh", "mondrian"]
    for row in rows:
        assert 0 <= row.suppressed <= row.budget
        assert row.limit is not None
        assert row.g is None or row.g >= row.limit * (1 - 1e-9)
        assert (row.g is None) == (row.method == "mondrian")


def test_an_impossible_k_is_a_row_without_utility() -> None:
    od = random_world(1)
    (row,) = tradeoff(od, ks=(od.trips + 1,), methods=("odkanon",))
    assert row.g is row.e is row.limit is None
    assert row.suppressed == 1


def test_options_reach_their_method() -> None:
    od = random_world(1)
    with pytest.raises(InputError, match="iterations"):
        tradeoff(od, ks=(2,), methods=("treecut",), options={"treecut": {"iterations": -1}})
    with pytest.raises(InputError, match="treecut"):
        tradeoff(od, methods=("treecuts",))


def test_draws_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = tradeoff(town(1, trips=300), ks=(2, 5), budgets=(0.0, 0.1), methods=("odkanon", "oigh"))
    for metric in ("g", "e", "c_avg"):
        path = plot_tradeoff(rows, tmp_path / "picture.svg", metric=metric)
        assert path.read_text(encoding="utf-8").startswith("<?xml")


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="nothing to draw"):
        plot_tradeoff([], tmp_path / "picture.png")
