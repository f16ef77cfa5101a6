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
_EXACT = 10**15
"""Up to here a float tells every whole number, and its tenths."""


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

    A weight of at most nine decimals and fifteen digits comes out exactly. What is finer than the unit is cut off, so
    that a sum of units never passes a threshold that the sum of weights does not reach.
    """
    usable = np.where(np.isfinite(weights), weights, 0.0)
    units = _cut(usable, scale).astype(np.int64)
    large = np.flatnonzero(usable * scale > _EXACT)
    if len(large):
        some = usable[large]
        whole = np.floor(some)
        # Of so large a weight a float does not tell all decimals; to round to the nearest may be a unit too many.
        exact = whole.astype(np.int64) * scale + _cut(some - whole, scale).astype(np.int64)
        for fewer in _fewer(scale):
            nearest = np.rint(some * fewer)
            told = (some * fewer <= _EXACT) & (nearest / fewer == some)
            exact[told] = nearest[told].astype(np.int64) * (scale // fewer)
        units[large] = exact
    return units


def _cut(weights: npt.NDArray[np.float64], scale: int) -> npt.NDArray[np.float64]:
    nearest = np.rint(weights * scale)
    return np.where(nearest / scale <= weights, nearest, nearest - 1)


def _fewer(scale: int) -> list[int]:
    """Return the scales of fewer decimals in which a large weight may be exact; the last is the one to take."""
    return [scale // 10**drop for drop in range(4, 0, -1) if scale >= 10**drop]


def units_sql(weight: str, scale: int) -> str:
    """Return the same in the SQL of DuckDB, for a finite weight."""
    told = [f"WHEN {weight} * {_unit(scale)} <= {_EXACT} THEN {_cut_sql(weight, scale)}"]
    for fewer in reversed(_fewer(scale)):
        nearest = f"round_even({weight} * {_unit(fewer)}, 0)"
        exact = f"{weight} * {_unit(fewer)} <= {_EXACT} AND {nearest} / {_unit(fewer)} = {weight}"
        told.append(f"WHEN {exact} THEN CAST({nearest} AS BIGINT) * {scale // fewer}")
    whole, rest = f"CAST(floor({weight}) AS BIGINT) * {scale}", _cut_sql(f"({weight} - floor({weight}))", scale)
    return f"CASE {' '.join(told)} ELSE {whole} + {rest} END"


def _cut_sql(weight: str, scale: int) -> str:
    nearest = f"round_even({weight} * {_unit(scale)}, 0)"
    return f"CAST(CASE WHEN {nearest} / {_unit(scale)} <= {weight} THEN {nearest} ELSE {nearest} - 1 END AS BIGINT)"


def _unit(scale: int) -> str:
    return f"1e{len(str(scale)) - 1}"


def from_units(units: Ints | int, scale: int) -> Any:
    """Return units as weights again, so that decimals come back as they went in.

    A quotient of numbers below 2^53 is the nearest there is; beyond, whole and fractional part are taken apart.
    """
    if isinstance(units, int):
        return units / scale
    return np.where(np.abs(units) < 2**53, units / scale, units // scale + (units % scale) / scale)
