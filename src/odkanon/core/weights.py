"""Weights as whole numbers of a small decimal unit, so that sums are exact whatever their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.errors import InputError

MAX_DECIMALS = 9
_LIMIT = 2**62


def weight_scale(count: int, largest: float) -> int:
    """Return how many units one unit of weight is divided into: a power of ten, at most a thousand million.

    The finest one for which ``count`` weights up to ``largest`` can be added up in 64 bits.
    """
    for decimals in range(MAX_DECIMALS, -1, -1):
        scale: int = 10**decimals
        if count * largest * scale < _LIMIT:
            return scale
    raise InputError(
        f"weights up to {largest:g} in {count:,} rows are too large to add up; express them in larger units"
    )


def to_units(weights: npt.NDArray[np.float64], scale: int) -> Ints:
    """Return weights as whole units, rounded to the nearest; what is not a finite number becomes 0."""
    units: Ints = np.rint(np.where(np.isfinite(weights), weights, 0.0) * scale).astype(np.int64)
    return units


def from_units(units: Ints | int, scale: int) -> Any:
    """Return units as weights again; whole and fractional part apart, so that decimals come back as they went in."""
    return units // scale + (units % scale) / scale
