"""Areas as a public mask of places."""

from __future__ import annotations

import h3
import numpy as np
import pytest

from odkanon import read_area
from odkanon.read.area import Area
from odkanon.zoning.cells import Cells, cell_to_parent


def numbers(cells: list[str]) -> Cells:
    return np.array(sorted(h3.str_to_int(cell) for cell in cells), dtype=np.uint64)


def test_the_mask_of_cells_has_none_inside_another() -> None:
    city = "861fb4667ffffff"
    inner, outer = h3.cell_to_children(city, 8)[5], "871fb4674ffffff"
    area = Area(cells=numbers([city, inner, outer]))
    assert area.mask(10).tolist() == numbers([city, outer]).tolist()


def test_the_mask_of_an_outline_is_what_it_contains() -> None:
    shapely = pytest.importorskip("shapely")
    shape = shapely.Point(2.35, 48.85).buffer(0.02).difference(shapely.Point(2.35, 48.85).buffer(0.005))
    mask = Area(shape=shape).mask(9)
    around = numbers(list(h3.grid_disk(h3.latlng_to_cell(48.85, 2.35, 9), 25)))
    assert mask.tolist() == around[Area(shape=shape).contains(around)].tolist()
    assert 100 < len(mask) < len(around)


def test_the_mask_of_an_outline_and_cells_joins_them() -> None:
    shapely = pytest.importorskip("shapely")
    centre = h3.latlng_to_cell(48.85, 2.35, 8)
    both = Area(cells=numbers([centre]), shape=shapely.Point(2.35, 48.85).buffer(0.02)).mask(9)
    assert h3.str_to_int(centre) in both.tolist()
    finer = both[both != np.uint64(h3.str_to_int(centre))]
    assert not np.isin(cell_to_parent(finer, 8), numbers([centre])).any()


def test_a_long_list_of_cells_is_not_the_name_of_a_file() -> None:
    cells = sorted(h3.cell_to_children("861fb4667ffffff", 9))
    for many in (cells[:17], cells):
        assert read_area(",".join(many)).cells.tolist() == numbers(many).tolist()
