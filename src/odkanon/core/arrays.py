"""Exact grouping of integer arrays, independent of row order, and read-only arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_LOW_BITS = 26


def read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that cannot be written to, not even through another array: a view is copied."""
    if not values.flags.writeable and values.base is None:
        return values
    own = values if values.base is None else values.copy()
    own.flags.writeable = False
    return own


class FrozenArrays(dict[str, Any]):
    """A read-only mapping of read-only arrays.

    Examples
    --------
    >>> counts = FrozenArrays({"persons": np.array([3])})
    >>> counts["persons"] = np.array([30])
    Traceback (most recent call last):
    TypeError: this is read-only
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super().__init__({name: read_only(values) for name, values in arrays.items()})

    def __reduce__(self) -> tuple[type[FrozenArrays], tuple[dict[str, Any]]]:
        return FrozenArrays, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this is read-only")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class Frozen:
    """A frozen dataclass whose arrays, and mappings of arrays, are read-only, also in copies and when unpickled."""

    def __post_init__(self) -> None:
        """Make arrays read-only; subclasses may check the fields instead."""
        for name, values in self.__dict__.items():
            if isinstance(values, np.ndarray):
                object.__setattr__(self, name, read_only(values))
            elif isinstance(values, Mapping) and all(isinstance(each, np.ndarray) for each in values.values()):
                object.__setattr__(self, name, FrozenArrays(values))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()


def group_sum(codes: npt.NDArray[np.integer], groups: int, values: Ints) -> Ints:
    """Return the exact sum of 64-bit integers in each group.

    ``numpy.bincount`` adds floats, which are exact only below 2**53. Values are therefore summed as a high and a low
    part, each far below that for up to 2**27 rows with a total below 2**62.
    """
    if len(values) == 0:
        return np.zeros(groups, dtype=np.int64)
    high, low = values >> _LOW_BITS, values & ((1 << _LOW_BITS) - 1)
    total = np.bincount(codes, weights=low, minlength=groups).astype(np.int64)
    if high.any():
        total += np.bincount(codes, weights=high, minlength=groups).astype(np.int64) << _LOW_BITS
    return total


def spans(first: Ints, end: Ints) -> Ints:
    """Return the numbers from each ``first`` to its ``end``, exclusive, as one array."""
    count = end - first
    ends = np.cumsum(count)
    return np.repeat(first - (ends - count), count) + np.arange(ends[-1] if len(ends) else 0)


@dataclass(frozen=True, eq=False)
class Grouping:
    """A partition of rows into groups."""

    number: Codes
    """For each row, the number of its group."""
    count: int
    """Number of groups."""
    starts: Ints | None = None
    """For each group its first row, with rows sorted by group; None if they are not sorted."""
    order: Ints | None = None
    """The order that sorts rows by group; None if not needed."""

    def sum(self, values: Ints) -> Ints:
        """Return the exact sum of each group; an empty array for no values."""
        if len(values) == 0:
            return values
        if self.starts is None:
            return group_sum(self.number, self.count, values)
        return np.add.reduceat(values if self.order is None else values[self.order], self.starts)

    def merge(self, *values: Ints) -> Merged:
        """Return the groups with the exact sums of some columns."""
        return Merged(self.number, self.count, self.first(), [self.sum(each) for each in values])

    def first(self) -> Ints:
        """Return one row of each group."""
        if self.starts is not None:
            return self.starts if self.order is None else self.order[self.starts]
        row = np.empty(self.count, dtype=np.int64)
        row[self.number] = np.arange(len(self.number))
        return row


@dataclass(frozen=True, eq=False)
class Merged:
    """Rows that are merged into groups."""

    number: Codes
    """For each row, the number of its group."""
    count: int
    """Number of groups."""
    first: Ints
    """One row of each group."""
    sums: list[Ints]
    """The exact sums of columns."""


def merge_keys(keys: Ints, key_space: int, *values: Ints) -> Merged:
    """Merge rows with the same key, in ascending order of keys; see `group_keys`."""
    return group_keys(keys, key_space).merge(*values)


def group_runs(opens: Bools) -> Grouping:
    """Group adjacent rows; ``opens`` marks the first row of each group."""
    starts = np.flatnonzero(opens)
    return Grouping(np.cumsum(opens, dtype=np.int32) - np.int32(1), len(starts), starts)


def group_keys(keys: Ints, key_space: int) -> Grouping:
    """Group rows by key, in ascending order of keys.

    * ``keys``: values in ``[0, key_space)``.
    * ``key_space``: determines the algorithm: a table over all possible keys if there are few, a sort otherwise. Sorted
      keys need neither.
    """
    steps = np.diff(keys, prepend=-1)
    if not (steps < 0).any():
        return group_runs(steps != 0)
    if key_space <= 4 * len(keys) + 1024:
        present = np.zeros(key_space, dtype=bool)
        present[keys] = True
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return Grouping(number[keys], int(number[-1]) + 1)
    order, ordered_keys = sort_keys(keys, key_space)
    ordered = group_runs(np.diff(ordered_keys, prepend=-1) != 0)
    number = np.empty_like(ordered.number)
    number[order] = ordered.number
    return Grouping(number, ordered.count, ordered.starts, order)


def sort_keys(keys: Ints, key_space: int) -> tuple[Ints, Ints]:
    """Return the stable order that sorts keys in ``[0, key_space)``, and the sorted keys.

    Sorting is several times as fast as an argsort, so the row number is appended to the bits of the key.
    """
    bits = len(keys).bit_length()
    if int(key_space).bit_length() + bits > 63:
        order = np.argsort(keys, kind="stable")
        return order, keys[order]
    both = np.sort((keys << bits) | np.arange(len(keys)))
    return both & ((1 << bits) - 1), both >> bits


def locate(keys: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> tuple[Ints, Bools]:
    """Return the position of each wanted value among distinct keys, 0 if it does not occur, and whether it occurs."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    order = np.argsort(keys, kind="stable")
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    found = keys[at] == wanted
    return np.where(found, at, 0), found


def number_groups(keys: Ints, key_space: int) -> tuple[Ints, Codes]:
    """Return the distinct keys in ascending order, and for each row the number of its key."""
    groups = group_keys(keys, key_space)
    return keys[groups.first()], groups.number
