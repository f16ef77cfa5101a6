"""Grouping of integer arrays, exact and independent of row order."""

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
    """Return an array that cannot be written to, nor through any other: a view of something writable is copied."""
    if not values.flags.writeable and values.base is None:
        return values
    own = values if values.base is None else values.copy()
    own.flags.writeable = False
    return own


class Fixed(dict[str, Any]):
    """A mapping of arrays, none of which can be replaced or written to.

    Examples
    --------
    >>> fixed = Fixed({"persons": np.array([3])})
    >>> fixed["persons"] = np.array([30])
    Traceback (most recent call last):
    TypeError: this is read-only
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super().__init__({name: read_only(values) for name, values in arrays.items()})

    def __reduce__(self) -> tuple[type[Fixed], tuple[dict[str, Any]]]:
        return Fixed, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this is read-only")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class Frozen:
    """A frozen dataclass that is checked, and has its arrays made read-only, when it is copied or unpickled, too."""

    def __post_init__(self) -> None:
        """Check everything, and make arrays read-only."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()


def make_read_only(owner: object, *names: str) -> None:
    """Make arrays that are attributes of a frozen object, or mappings of such, read-only, where they are there."""
    for name in names:
        values = getattr(owner, name)
        if values is not None:
            fixed = Fixed(values) if isinstance(values, Mapping) else read_only(values)
            object.__setattr__(owner, name, fixed)


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


def spans(first: Ints, end: Ints) -> Ints:
    """Return the numbers from each ``first`` to its ``end``, exclusive, one span after another."""
    count = end - first
    ends = np.cumsum(count)
    return np.repeat(first - (ends - count), count) + np.arange(ends[-1] if len(ends) else 0)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows put together.

    Attributes
    ----------
    number : array of int
        For each row, the number of its group.
    count : int
        How many groups there are.
    starts : array of int or None
        For each group its first row, once the rows of a group stand side by side; None where they do not.
    order : array of int or None
        The order that puts them side by side; None where they stand so by themselves.
    """

    number: Codes
    count: int
    starts: Ints | None = None
    order: Ints | None = None

    def sum(self, values: Ints) -> Ints:
        """Return the sum of each group, without rounding; nothing where there are no values to add."""
        if len(values) == 0:
            return values
        if self.starts is None:
            return group_sum(self.number, self.count, values)
        return np.add.reduceat(values if self.order is None else values[self.order], self.starts)

    def first(self) -> Ints:
        """Return a row of each group."""
        if self.starts is not None:
            return self.starts if self.order is None else self.order[self.starts]
        row = np.empty(self.count, dtype=np.int64)
        row[self.number] = np.arange(len(self.number))
        return row


def neighbours(opens: Bools) -> Groups:
    """Put rows together that stand next to each other; ``opens`` says which begin a group."""
    starts = np.flatnonzero(opens)
    return Groups(np.cumsum(opens, dtype=np.int32) - np.int32(1), len(starts), starts)


def group_keys(keys: Ints, key_space: int) -> Groups:
    """Put rows with the same key together, in ascending order of keys.

    Parameters
    ----------
    keys : array of int64
        Values in ``[0, key_space)``.
    key_space : int
        Decides how: a table over all possible keys where that is small, a sort where it is not. Keys that are
        sorted already need neither.
    """
    steps = np.diff(keys, prepend=-1)
    if not (steps < 0).any():
        return neighbours(steps != 0)
    if key_space <= 4 * len(keys) + 1024:
        present = np.zeros(key_space, dtype=bool)
        present[keys] = True
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return Groups(number[keys], int(number[-1]) + 1)
    order, ordered_keys = sort_keys(keys, key_space)
    ordered = neighbours(np.diff(ordered_keys, prepend=-1) != 0)
    number = np.empty_like(ordered.number)
    number[order] = ordered.number
    return Groups(number, ordered.count, ordered.starts, order)


def sort_keys(keys: Ints, key_space: int) -> tuple[Ints, Ints]:
    """Return the order that sorts keys in ``[0, key_space)``, equal ones by their rows, and the sorted keys.

    To sort numbers is several times as fast as to find the order of numbers, so the row goes into the number.
    """
    bits = len(keys).bit_length()
    if int(key_space).bit_length() + bits > 63:
        order = np.argsort(keys, kind="stable")
        return order, keys[order]
    both = np.sort((keys << bits) | np.arange(len(keys)))
    return both & ((1 << bits) - 1), both >> bits


def number_groups(keys: Ints, key_space: int) -> tuple[Ints, Codes]:
    """Return the distinct keys in ascending order, and for each row the number of its key; see `group_keys`."""
    groups = group_keys(keys, key_space)
    return keys[groups.first()], groups.number
