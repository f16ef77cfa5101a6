"""Rows divided among pairs of places in whole units: together as one by one, and nothing lost."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("shapely")

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from odkanon.estimate.zone_shares import ZoneShares
from odkanon.publish.onto.apportionment import apportion, divide
from worlds.tries import tries


@tries(100)
@given(
    shares=arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 60)), elements=st.floats(-5, 1e6)),
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_add_up_and_are_off_by_less_than_one(shares: Any, seed: int) -> None:
    kept = np.where(shares < 1e-6, 0, shares)
    assume((kept.sum(axis=1) > 0).all())
    totals = np.random.default_rng(seed).integers(0, 10**9, len(shares))
    parts = divide(shares, totals)
    assert (parts.sum(axis=1) == totals).all()
    assert (parts >= 0).all()
    expected = kept * (totals / kept.sum(axis=1))[:, None]
    assert np.abs(parts - expected).max() < 1 + 1e-5
    # Rounding each to the nearest would lose what lies in many small parts; here whole stretches are right.
    assert np.abs(np.cumsum(parts - expected, axis=1)).max() < 1 + 1e-5


def by_row(rows: tuple[Any, Any, Any, Any], shares: ZoneShares, places: int) -> tuple[Any, Any]:
    """Divide row by row: the units of each cell, and what was published inside of it."""
    part = np.zeros((len(shares.size), places))
    part[shares.source, shares.target] = shares.share
    units, exact = np.zeros((places, places)), np.zeros((places, places), dtype=np.int64)
    for origin, destination, published, to_spread in zip(*(column.tolist() for column in rows), strict=True):
        pair = np.outer(part[origin], part[destination])
        units += to_spread * pair
        if np.count_nonzero(pair) == 1:
            exact[pair > 0] += published
    return units, exact


@tries(40)
@given(seed=st.integers(0, 2**32 - 1), at_once=st.sampled_from([1, 17, 1 << 21]))
def test_dividing_together_is_dividing_row_by_row(seed: int, at_once: int) -> None:
    random = np.random.default_rng(seed)
    zones, places = int(random.integers(1, 15)), int(random.integers(1, 10))
    zone = np.repeat(np.arange(zones), random.integers(1, places + 1, zones))
    place = np.concatenate([np.sort(random.permutation(places)[:n]) for n in np.bincount(zone)])
    share = random.random(len(zone)) + 0.01
    shares = ZoneShares(zone, place, share / np.bincount(zone, share)[zone], np.ones(zones))
    pairs = random.permutation(zones * zones)[: int(random.integers(1, 30))]
    published = random.integers(1, 10**8, len(pairs))
    rows = (pairs // zones, pairs % zones, published, published)
    units, exact = by_row(rows, shares, places)
    with patch("odkanon.publish.onto.apportionment._MAX_CELLS", at_once):
        blocks = list(apportion(*rows, shares, places).blocks())
    assert len(blocks) == -(-places // max(min(at_once // places, places), 1))
    found = np.concatenate([block.units for block in blocks])
    assert np.abs(found - units).max() < 2 + 1e-5
    assert (np.concatenate([block.exact for block in blocks]) == exact).all()
    assert found.sum() == published.sum()


def test_rows_that_all_meet_every_place_are_divided_at_once() -> None:
    # One by one, these are 1.3 thousand million parts.
    random, zones, places = np.random.default_rng(0), 60, 600
    part = random.random((zones, places))
    part /= part.sum(axis=1, keepdims=True)
    zone, place = np.divmod(np.arange(zones * places), places)
    flows = random.integers(1, 10**9, (zones, zones))
    origin, destination = np.divmod(np.arange(zones * zones), zones)
    shares = ZoneShares(zone, place, part.ravel(), np.ones(zones))
    rows = apportion(origin, destination, flows.ravel(), flows.ravel(), shares, places)
    found = np.concatenate([block.units for block in rows.blocks()])
    assert np.abs(found - part.T @ flows @ part).max() < 2
    assert found.sum() == flows.sum()


def test_what_lies_over_a_border_is_taken_from_the_same_origin_not_from_the_largest_cell() -> None:
    # A fine zone that sticks out of the coarse one around it: -4 between places 0 and 1, where nothing else flows.
    zone, place = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1])
    shares = ZoneShares(zone, place, np.array([1.0, 0.5, 0.5, 1.0]), np.ones(3))
    rows = np.array([0, 0, 2]), np.array([0, 1, 2]), np.array([20, 12, 90]), np.array([40, -8, 90])
    (cells,) = apportion(*rows, shares, 2).blocks()
    assert cells.units.tolist() == [[32, 0], [0, 90]]
    assert cells.exact.tolist() == [[20, 0], [0, 90]]
