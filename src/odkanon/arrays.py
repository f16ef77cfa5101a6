"""Grouping of integer arrays, exact and independent of row order."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows put together by key.

    Attributes
    ----------
    keys : array of int
        The distinct keys in ascending order.
    number : array of int
        For each row, the number of its key among them.
    starts : array of int or None
        For each key its first row, where the rows are in order of their keys, or have been put into it.
    order : array of int or None
        The rows in order of their keys, where they were not.
    """

    keys: Ints
    number: Codes
    starts: Ints | None = None
    order: Ints | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def sum(self, values: Ints) -> Ints:
        """Return the sum of each group, without rounding."""
        if self.starts is None or len(values) == 0:
            return group_sum(self.number, len(self), values)
        return np.add.reduceat(values if self.order is None else values[self.order], self.starts)

    def first(self) -> Ints | None:
        """Return a row of each group, where one is known."""
        return self.starts if self.starts is None or self.order is None else self.order[self.starts]


def group_keys(keys: Ints, key_space: int) -> Groups:
    """Put rows together by key.

    Parameters
    ----------
    keys : array of int64
        Values in ``[0, key_space)``.
    key_space : int
        Decides how: a table over all possible keys where that is small, a sort where it is not. Keys that are
        sorted already, as those of flows are whose destinations are merged, need neither.
    """
    steps = np.diff(keys, prepend=-1)
    if not (steps < 0).any():
        opens = steps != 0
        starts = np.flatnonzero(opens)
        return Groups(keys[starts], np.cumsum(opens, dtype=np.int32) - np.int32(1), starts)
    if key_space <= 4 * len(keys) + 1024:
        present = np.zeros(key_space, dtype=bool)
        present[keys] = True
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return Groups(np.flatnonzero(present), number[keys])
    # A stable sort makes use of the runs that are in order already, which is most of what merged flows consist of.
    order = np.argsort(keys, kind="stable")
    ordered = group_keys(keys[order], key_space)
    number = np.empty_like(ordered.number)
    number[order] = ordered.number
    return Groups(ordered.keys, number, ordered.starts, order)


def number_groups(keys: Ints, key_space: int) -> tuple[Ints, Codes]:
    """Return the distinct keys in ascending order, and for each row the number of its key; see `group_keys`."""
    groups = group_keys(keys, key_space)
    return groups.keys, groups.number
