"""Grouping of integer arrays, exact and independent of row order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_LOW_BITS = 26


def group_sum(codes: npt.NDArray[np.integer], groups: int, values: Ints) -> Ints:
    """Sum 64-bit integers by group without rounding.

    ``numpy.bincount`` adds floats, exact only below 2**53. Values are therefore summed as a high and a low part,
    each of which stays far below that for up to 2**27 rows of a total below 2**62.
    """
    if len(values) == 0:
        return np.zeros(groups, dtype=np.int64)
    high, low = values >> _LOW_BITS, values & ((1 << _LOW_BITS) - 1)
    total = np.bincount(codes, weights=low, minlength=groups).astype(np.int64)
    if high.any():
        total += np.bincount(codes, weights=high, minlength=groups).astype(np.int64) << _LOW_BITS
    return total


def number_groups(keys: Ints, key_space: int) -> tuple[Ints, Codes]:
    """Return the distinct keys in ascending order, and for each row the number of its key among them.

    Parameters
    ----------
    keys : array of int64
        Values in ``[0, key_space)``.
    key_space : int
        Decides how: a table over all possible keys where that is small, a sort where it is not. Keys that are
        sorted already, as those of flows are whose destinations are merged, need neither.
    """
    opens = np.diff(keys, prepend=-1)
    if not (opens < 0).any():
        first = np.flatnonzero(opens)
        return keys[first], np.cumsum(opens != 0, dtype=np.int32) - np.int32(1)
    if key_space <= 4 * len(keys) + 1024:
        present = np.zeros(key_space, dtype=bool)
        present[keys] = True
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return np.flatnonzero(present), number[keys]
    distinct, inverse = np.unique(keys, return_inverse=True)
    return distinct, inverse.astype(np.int32)
