"""The tree of neighbours: from polygons alone, every group in one piece, the same for any order of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("shapely")

import shapely

from odkanon.zoning.polygon_neighbours import neighbour_levels
from worlds.polygons import patchwork


def in_one_piece(shapes: Any) -> bool:
    return bool(shapely.union_all(shapely.buffer(shapes, 3e-5)).geom_type == "Polygon")


@pytest.mark.parametrize("gap", [0.0, 1e-5])
def test_groups_are_nested_neighbours_of_three_or_more(gap: float) -> None:
    """Polygons that were drawn with a metre between them are neighbours as well."""
    shapes = patchwork(1, 120, 2.0, 48.0, 2.4, 48.2)
    if gap:
        shapes = shapely.buffer(shapes, -gap / 2, join_style="mitre")
    codes = np.array([f"z{at:03}" for at in range(len(shapes))])
    below = codes
    for level in neighbour_levels(shapes, codes):
        groups = [np.flatnonzero(level == name) for name in np.unique(level)]
        assert all(in_one_piece(shapes[group]) for group in groups)
        assert all(len(np.unique(below[group])) >= 3 for group in groups)
        assert all(name == f"{codes[group[0]]}+{len(group) - 1}" for group in groups for name in level[group[:1]])
        below = level
    assert len(np.unique(below)) <= 8


def test_islands_and_single_polygons() -> None:
    apart = np.array([shapely.box(x, 48, x + 0.1, 48.1) for x in (2, 2.1, 2.2, 5, 5.1, 8)])
    codes = np.array(list("abcdef"))
    levels = neighbour_levels(apart, codes)
    assert [set(level) for level in levels] in ([], [{"a+2", "d+2"}])
    assert neighbour_levels(apart[:1], codes[:1]) == []
