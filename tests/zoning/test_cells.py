"""Cells against the reference library, one cell at a time."""

from __future__ import annotations

import h3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.errors import InputError
from odkanon.zoning.cells import (
    cell_to_latlng,
    cell_to_parent,
    cell_to_polygon,
    cell_to_resolution,
    cell_to_span,
    cell_to_str,
    is_valid_cell,
    latlng_to_cell,
    str_to_cell,
)

points = st.tuples(st.floats(-90, 90), st.floats(-180, 180))
PENTAGON = h3.str_to_int(h3.get_pentagons(9)[4])


def child_of_pentagon(resolution: int) -> str:
    return str(h3.cell_to_center_child(h3.int_to_str(PENTAGON), resolution))


@given(st.lists(points, min_size=1, max_size=20), st.integers(0, 15))
def test_points_fall_into_the_cells_of_the_reference(where: list[tuple[float, float]], resolution: int) -> None:
    lat, lng = np.array(where).T
    got = cell_to_str(latlng_to_cell(lat, lng, resolution)).tolist()
    assert got == [h3.latlng_to_cell(y, x, resolution) for y, x in where]


@given(st.lists(st.tuples(*2 * [st.floats(-80, 80)]), min_size=1, max_size=9), st.integers(0, 15), st.integers(9, 99))
def test_points_that_repeat_fall_into_the_same_cells(
    where: list[tuple[float, float]], resolution: int, often: int
) -> None:
    which = np.random.default_rng(often).integers(0, len(where), often)
    lat, lng = np.array(where)[which].T
    got = cell_to_str(latlng_to_cell(lat, lng, resolution)).tolist()
    assert got == [h3.latlng_to_cell(*where[at], resolution) for at in which]


@given(points, st.integers(0, 8), st.integers(0, 3))
def test_descendants_and_no_others_lie_in_the_span_of_a_cell(
    where: tuple[float, float], resolution: int, steps: int
) -> None:
    for cell in (h3.latlng_to_cell(*where, resolution), h3.get_pentagons(resolution)[3]):
        low, high = cell_to_span(np.array([h3.str_to_int(cell)], dtype=np.uint64), resolution + steps)
        around = {child for near in h3.grid_disk(cell, 1) for child in h3.cell_to_children(near, resolution + steps)}
        inside = {child for child in around if low[0] <= h3.str_to_int(child) <= high[0]}
        assert inside == set(h3.cell_to_children(cell, resolution + steps))


@given(points, st.integers(0, 15), st.integers(0, 15))
def test_parents_are_those_of_the_reference(where: tuple[float, float], one: int, other: int) -> None:
    fine, coarse = max(one, other), min(one, other)
    for cell in (h3.latlng_to_cell(*where, fine), child_of_pentagon(max(fine, 9))):
        number = np.array([h3.str_to_int(cell)], dtype=np.uint64)
        assert cell_to_str(cell_to_parent(number, coarse)).tolist() == [h3.cell_to_parent(cell, coarse)]
        assert cell_to_resolution(number).tolist() == [h3.get_resolution(cell)]


def test_text_in_every_spelling() -> None:
    cell = h3.latlng_to_cell(48.85, 2.35, 10)
    text = pa.array(
        [cell, cell.upper(), f" {cell} ", str(h3.str_to_int(cell)), "", "zz", "48.85,2.35,10", None, cell[:-1]]
    )
    cells = str_to_cell(text)
    assert (cells[:4] == h3.str_to_int(cell)).all()
    assert not is_valid_cell(cells[4:]).any()


def test_no_points_no_cells() -> None:
    assert len(latlng_to_cell(np.empty(0), np.empty(0), 10)) == 0


def test_resolutions_that_do_not_exist() -> None:
    with pytest.raises(InputError, match="H3 has 0"):
        latlng_to_cell(np.zeros(1), np.zeros(1), 16)


def test_centres() -> None:
    cell = h3.latlng_to_cell(-33.4, -70.6, 7)
    lat, lng = cell_to_latlng(np.array([h3.str_to_int(cell)], dtype=np.uint64))
    assert (lat[0], lng[0]) == pytest.approx(h3.cell_to_latlng(cell))


def test_outlines_are_closed_and_do_not_jump_over_the_antimeridian() -> None:
    for where in ((48.85, 2.35), (-17.0, 180.0)):
        ring = cell_to_polygon(h3.latlng_to_cell(*where, 4))["coordinates"][0]
        assert ring[0] == ring[-1]
        assert max(x for x, _ in ring) - min(x for x, _ in ring) < 5
