"""Weights as whole numbers of a small decimal unit, so that sums are exact whatever their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.errors import InputError

MAX_DECIMALS = 9
_LIMIT = 2**62
_EXACT = 2**53


def weight_scale(count: int, largest: float) -> int:
    """Return how many units one unit of weight is divided into: a power of ten, at most a thousand million.

    The finest one for which ``count`` weights up to ``largest`` can be added up in 64 bits, and each of them is told
    apart from the next unit by a float.
    """
    for decimals in range(MAX_DECIMALS, -1, -1):
        scale: int = 10**decimals
        if count * largest * scale < _LIMIT and largest * scale <= _EXACT:
            return scale
    if count * largest < _LIMIT:
        return 1
    raise InputError(
        f"weights up to {largest:g} in {count:,} rows are too large to add up; express them in larger units"
    )


def largest_weight(count: int, scale: int) -> float:
    """Return the largest weight of which ``count`` can be added up in units of ``1 / scale``."""
    return _LIMIT / scale / max(count, 1)


def to_units(weights: npt.NDArray[np.float64], scale: int) -> Ints:
    """Return weights as whole units, never more than they are; what is not a finite number becomes 0.

    A weight of at most nine decimals comes out exactly. What is finer than the unit is cut off, so that a sum of units
    never passes a threshold that the sum of weights does not reach.
    """
    usable = np.where(np.isfinite(weights), weights, 0.0)
    nearest = np.rint(usable * scale)
    units: Ints = np.where(nearest / scale <= usable, nearest, nearest - 1).astype(np.int64)
    return units


def units_sql(weight: str, scale: int) -> str:
    """Return the same in the SQL of DuckDB, for a finite weight."""
    unit = f"1e{len(str(scale)) - 1}"
    nearest = f"round_even({weight} * {unit}, 0)"
    return f"CAST(CASE WHEN {nearest} / {unit} <= {weight} THEN {nearest} ELSE {nearest} - 1 END AS BIGINT)"


def from_units(units: Ints | int, scale: int) -> Any:
    """Return units as weights again, so that decimals come back as they went in.

    A quotient of numbers below 2^53 is the nearest there is; beyond, whole and fractional part are taken apart.
    """
    if isinstance(units, int):
        return units / scale
    return np.where(np.abs(units) < 2**53, units / scale, units // scale + (units % scale) / scale)
