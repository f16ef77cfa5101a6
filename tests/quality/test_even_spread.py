"""Rows spread over places: the same result in every way of summing, and that of the definition."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest

from odkanon.core.arrays import Ints
from odkanon.quality.accuracy import even_spread
from odkanon.quality.accuracy.even_spread import RowMasses, _DestinationSpread, merge_rows, spread_at
from odkanon.quality.accuracy.squares import Shares
from odkanon.zoning.cells import Floats

ZONES, PLACES = 7, 12


def shares_of(dense: Floats) -> Shares:
    """Return what is above 0 of a matrix of zones and places."""
    zone, place = np.nonzero(dense)
    return Shares(zone, place, dense[zone, place], len(dense))


def world(rng: np.random.Generator, many: int) -> tuple[RowMasses, list[Floats], tuple[Ints, Ints]]:
    """Return rows, the shares of both axes as matrices, and as many wanted pairs of places."""
    count = int(rng.integers(1, ZONES**2))
    ends = rng.integers(0, ZONES, (2, count))
    rows = merge_rows(RowMasses(ends[0], ends[1], rng.random((count, 2))))
    dense = [rng.random((ZONES, PLACES)) * (rng.random((ZONES, PLACES)) < 0.3) for _ in range(2)]
    wanted = np.sort(rng.choice(PLACES**2, many, replace=False))
    return rows, dense, (wanted // PLACES, wanted % PLACES)


@pytest.mark.parametrize("table", [0, 16])
@pytest.mark.parametrize("at_once", [1, 20, 1 << 18])
def test_every_way_gives_what_the_definition_says(table: int, at_once: int) -> None:
    rng = np.random.default_rng(7)
    with ExitStack() as patches:
        patches.enter_context(patch.multiple(even_spread, _TABLE=table, _AT_ONCE=at_once))
        ways = {
            way: patches.enter_context(
                patch.object(
                    _DestinationSpread, way, autospec=True, side_effect=getattr(_DestinationSpread, way)
                )  # calls it, and remembers
            )
            for way in ("_from_table", "_from_pairs", "_from_half")
        }
        for many in (1, 5, 40, PLACES**2) * 10:
            rows, (origins, destinations), wanted = world(rng, many)
            found = spread_at(rows, shares_of(origins), shares_of(destinations), wanted)
            whole = np.zeros((ZONES, ZONES, 2))
            whole[rows.origin, rows.destination] = rows.mass
            expected = np.einsum("odm,oa,db->abm", whole, origins, destinations)[wanted]
            assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)
    taken = {way for way, mock in ways.items() if mock.called}
    assert taken >= ({"_from_table"} if table else {"_from_pairs", "_from_half"})
