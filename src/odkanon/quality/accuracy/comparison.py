"""A release beside its input on the same places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.quality.accuracy.even_spread import Rows, spread_at
from odkanon.quality.accuracy.result import OnPlaces
from odkanon.quality.accuracy.squares import Places, Shares, compact
from odkanon.quality.accuracy.truth import Counted
from odkanon.quality.accuracy.zone_samples import Boxes, Parts
from odkanon.zoning.cells import Floats

LARGE, NEAR = 20, 0.25
"""A flow is large from so many trips on; it is near the truth if it is off by less than this share of it."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Flows between places of the input, and what the release makes of them; the release has others besides.

    Attributes
    ----------
    counted : Counted
        The input.
    spread : array of float, shape (pairs, measures)
        The release, on the same pairs.
    inside : array of float
        What stays inside its place in the release, in each measure.
    """

    counted: Counted
    spread: Floats
    inside: Floats


def compare_on(places: Places, counted: Counted, rows: Rows, areas: tuple[Parts | Boxes, Parts | Boxes]) -> Comparison:
    """Spread a release over the places between which the input has flows."""
    shares = [area.shares(places) for area in areas]
    rank, rank_to, *of_shares = compact(*counted.places, *(share.place for share in shares))
    origins, destinations = (
        Shares(share.zone, place, share.share, share.zones) for share, place in zip(shares, of_shares, strict=True)
    )
    spread = spread_at(rows, origins, destinations, (rank[counted.origin], rank_to[counted.destination]))
    both = np.intersect1d(origins.place, destinations.place)
    near = rows.take(np.flatnonzero(_may_meet(rows, origins, destinations)))
    inside = spread_at(near, origins, destinations, (both, both)).sum(axis=0)
    return Comparison(counted, spread, inside)


def _may_meet(rows: Rows, origins: Shares, destinations: Shares) -> Bools:
    """Tell for each row whether its zones may have a place in common; others need no second look."""
    (low, high), (low_to, high_to) = (_range(share) for share in (origins, destinations))
    result: Bools = (low[rows.origin] <= high_to[rows.destination]) & (low_to[rows.destination] <= high[rows.origin])
    return result


def _range(shares: Shares) -> tuple[Ints, Ints]:
    low, high = np.full(shares.zones, np.iinfo(np.int64).max), np.full(shares.zones, -1)
    np.minimum.at(low, shares.zone, shares.place)
    np.maximum.at(high, shares.zone, shares.place)
    return low, high


def measured(places: Places, km: float | None, found: Comparison, rows: Rows) -> list[OnPlaces]:
    """Return for each measure how well flows between places come out; trips are the first measure."""
    counted = found.counted
    large = counted.mass[:, 0] >= LARGE
    stays = counted.stays
    results = []
    for index in range(rows.mass.shape[1]):
        before, after = counted.mass[:, index], found.spread[:, index]
        whole, published = float(before.sum()), float(rows.mass[:, index].sum())
        near = large & (np.abs(after - before) < NEAR * before)
        of_large = float(before[large].sum())
        results.append(
            OnPlaces(
                places.name,
                km,
                2 * float(np.minimum(before, after).sum()) / (whole + published),
                float(before[stays].sum()) / whole,
                float(found.inside[index]) / published if published else None,
                float(before[near].sum()) / of_large if of_large else None,
            )
        )
    return results
