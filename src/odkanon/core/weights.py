"""Weights as whole numbers of a small decimal unit, so that sums are exact in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.errors import InputError

DECIMALS = (9, 6, 3, 0)
"""Numbers of decimals of the unit; only a few, since the published rows disclose which one is used."""
_LIMIT = 2**62
_EXACT = 10**15
"""Up to here a float represents every whole number, and its tenths."""


def weight_scale(total: float, heaviest: float = 0.0) -> int:
    """Return the number of units per unit of weight: a power of ten, at most a thousand million.

    It is the finest of `DECIMALS` in which the total fits 64 bits. A single trip must not decide it: it may be
    suppressed, and the decimals of all others would disclose that it exists.
    """
    if _finest(total) != _finest(total - heaviest):
        raise InputError(
            f"one trip has a weight of {heaviest:g}, and all others together {total - heaviest:g}: the decimals of "
            "every published weight would show that there is such a trip. Check its weight"
        )
    return _finest(total)


def _finest(total: float) -> int:
    for decimals in DECIMALS:
        scale: int = 10**decimals
        if total * scale < _LIMIT:
            return scale
    raise InputError(f"the weights add up to {total:g}, which is too large; express them in larger units")


def largest_weight(count: int, scale: int) -> float:
    """Return the largest weight that can be summed ``count`` times in units of ``1 / scale``."""
    return _LIMIT / scale / max(count, 1)


def whole_total(weights: npt.NDArray[np.float64]) -> float:
    """Return the sum of weights, each rounded up to a whole number, which does not depend on their order."""
    return float(np.ceil(weights).sum())


def to_units(weights: npt.NDArray[np.float64], scale: int) -> Ints:
    """Return weights as whole units, rounded down; 0 for what is not a finite number.

    A weight of at most nine decimals and fifteen digits is exact. Digits finer than the unit are cut off, so that a sum
    of units never meets a threshold that the sum of weights does not meet.
    """
    usable = np.where(np.isfinite(weights), weights, 0.0)
    units = _cut(usable, scale).astype(np.int64)
    large = np.flatnonzero(usable * scale > _EXACT)
    if len(large):
        some = usable[large]
        whole = np.floor(some)
        # A float does not represent all decimals of such large weights; rounding to nearest may be a unit too many.
        exact = whole.astype(np.int64) * scale + _cut(some - whole, scale).astype(np.int64)
        for fewer in _fewer(scale):
            nearest = np.rint(some * fewer)
            represented = (some * fewer <= _EXACT) & (nearest / fewer == some)
            exact[represented] = nearest[represented].astype(np.int64) * (scale // fewer)
        units[large] = exact
    return units


def _cut(weights: npt.NDArray[np.float64], scale: int) -> npt.NDArray[np.float64]:
    nearest = np.rint(weights * scale)
    return np.where(nearest / scale <= weights, nearest, nearest - 1)


def _fewer(scale: int) -> list[int]:
    """Return the scales of fewer decimals in which a large weight may be exact; the last exact one applies."""
    return [scale // 10**drop for drop in range(4, 0, -1) if scale >= 10**drop]


def units_sql(weight: str, scale: int) -> str:
    """Return `to_units` as DuckDB's SQL, for a finite weight."""
    cases = [f"WHEN {weight} * {_unit(scale)} <= {_EXACT} THEN {_cut_sql(weight, scale)}"]
    for fewer in reversed(_fewer(scale)):
        nearest = f"round_even({weight} * {_unit(fewer)}, 0)"
        exact = f"{weight} * {_unit(fewer)} <= {_EXACT} AND {nearest} / {_unit(fewer)} = {weight}"
        cases.append(f"WHEN {exact} THEN CAST({nearest} AS BIGINT) * {scale // fewer}")
    whole, fraction = f"CAST(floor({weight}) AS BIGINT) * {scale}", _cut_sql(f"({weight} - floor({weight}))", scale)
    return f"CASE {' '.join(cases)} ELSE {whole} + {fraction} END"


def _cut_sql(weight: str, scale: int) -> str:
    nearest = f"round_even({weight} * {_unit(scale)}, 0)"
    return f"CAST(CASE WHEN {nearest} / {_unit(scale)} <= {weight} THEN {nearest} ELSE {nearest} - 1 END AS BIGINT)"


def _unit(scale: int) -> str:
    return f"1e{len(str(scale)) - 1}"


def round_units(units: Ints, digits: int) -> Ints:
    """Return units in a few significant digits, half a digit rounded up.

    Examples
    --------
    >>> import numpy as np
    >>> round_units(np.array([26_741_599, 12_345, 12_344, 99_995, 7, 0]), 4).tolist()
    [26740000, 12350, 12340, 100000, 7, 0]
    """
    step = _steps(units, digits)
    rounded: Ints = (units + step // 2) // step * step
    return rounded


def round_units_up(units: int, digits: int) -> int:
    """Return the smallest number of a few significant digits that is no less."""
    step = int(_steps(np.array([units]), digits)[0])
    return -(-units // step) * step


def _steps(units: Ints, digits: int) -> Ints:
    """Return the value of the last of a few significant digits."""
    powers = np.array([10**power for power in range(digits, 19)], dtype=np.int64)
    steps: Ints = 10 ** np.searchsorted(powers, units, side="right").astype(np.int64)
    return steps


def from_units(units: Ints | int, scale: int) -> Any:
    """Return units as weights, with the original decimals.

    Below 2^53 a quotient is correctly rounded; beyond, whole and fractional part are converted separately.
    """
    if isinstance(units, int):
        return units / scale
    return np.where(np.abs(units) < 2**53, units / scale, units // scale + (units % scale) / scale)
