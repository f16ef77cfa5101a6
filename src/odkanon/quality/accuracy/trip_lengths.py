"""How long trips are, before and after."""

from __future__ import annotations

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.quality.accuracy.even_spread import Rows
from odkanon.quality.accuracy.truth import LENGTH_STEP, length_steps
from odkanon.quality.accuracy.zone_samples import Boxes, Parts
from odkanon.zoning.cells import Floats

LENGTHS = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
"""Where bands of trip lengths begin, in km."""
_GOLDEN = 1.1673039782614187
"""The real root of x**5 = x + 1: its powers fill four dimensions evenly."""


def lengths_after(rows: Rows, areas: tuple[Parts | Boxes, Parts | Boxes]) -> tuple[Ints, Floats]:
    """Return lengths between points of the zones of each row, and how much of the masses each stands for."""
    count = int(np.clip(400_000 // max(len(rows.origin), 1), 8, 64))
    number = np.arange(len(rows.origin) * count)
    row = number // count
    # The same points each time, spread evenly over the area of both zones.
    u, v, to_u, to_v = (np.asarray(number * _GOLDEN**-power % 1.0, dtype=np.float64) for power in (1, 2, 3, 4))
    x, y = areas[0].sample(rows.origin[row], u, v)
    to_x, to_y = areas[1].sample(rows.destination[row], to_u, to_v)
    known = np.isfinite(x) & np.isfinite(to_x)
    steps = length_steps((to_x - x)[known], (to_y - y)[known])
    return steps, rows.mass[row[known]] / count


def length_bands(steps: Ints, masses: Floats, index: int = 0) -> Floats:
    """Return the share of the mass in each band of lengths."""
    edges = np.array(LENGTHS) * 1000 / LENGTH_STEP
    band = np.searchsorted(edges, steps, side="right") - 1
    mass = np.bincount(band, weights=masses[:, index], minlength=len(edges))
    return mass / (float(mass.sum()) or 1.0)


def compare_lengths(before: tuple[Ints, Floats], after: tuple[Ints, Floats]) -> list[tuple[float, float, float | None]]:
    """Return for each measure what the lengths have in common, and both means in km."""
    results = []
    for index in range(before[1].shape[1]):
        common = np.minimum(length_bands(*before, index), length_bands(*after, index))
        mean = _mean(*before, index)
        assert mean is not None
        results.append((float(common.sum()), mean, _mean(*after, index)))
    return results


def _mean(steps: Ints, masses: Floats, index: int) -> float | None:
    mass = masses[:, index]
    total = float(mass.sum())
    return float((mass * steps).sum()) / total * LENGTH_STEP / 1000 if total else None
