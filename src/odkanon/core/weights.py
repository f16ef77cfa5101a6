"""Weights as whole numbers of a small decimal unit, so that sums are exact whatever their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.errors import InputError

DECIMALS = (9, 6, 3, 0)
"""How many decimals weights are counted in; as few different ones as can be, since the rows tell which."""
_LIMIT = 2**62


def weight_scale(total: float) -> int:
    """Return how many units one unit of weight is divided into: a power of ten, at most a thousand million.

    The finest one of `DECIMALS` in which a total can be told in 64 bits. It hangs on nothing else: not on the largest
    weight, which may be that of a single trip that is not published.
    """
    for decimals in DECIMALS:
        scale: int = 10**decimals
        if total * scale < _LIMIT:
            return scale
    raise InputError(f"weights of {total:g} in all are too large to add up; express them in larger units")


def largest_weight(count: int, scale: int) -> float:
    """Return the largest weight of which ``count`` can be added up in units of ``1 / scale``."""
    return _LIMIT / scale / max(count, 1)


def whole_total(weights: npt.NDArray[np.float64]) -> float:
    """Return the sum of weights, each rounded up to a whole number, so that it does not hang on their order."""
    return float(np.ceil(weights).sum())


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
