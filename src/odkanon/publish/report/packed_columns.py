"""Long columns of the model in few bytes: whole numbers as steps, deflated; names that only count are not listed.

`web/src/columns.ts` reads them. Short columns stay as they are: the model of a small release can be read by eye.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

LONG = 2000
"""A column of fewer values than these is a plain list."""
DECIMALS = 4
"""Numbers of up to so many decimals are counted in the last of them."""

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def pack_numbers(values: Numbers) -> list[Any] | dict[str, Any]:
    """Pack a column of numbers: a list where it is short, else its steps as deflated bytes.

    ``per`` says how many of what is counted make one. Seven digits of other numbers are kept, as in single precision.

    Examples
    --------
    >>> pack_numbers(np.array([3, 1, 2]))
    [3, 1, 2]
    >>> sorted(pack_numbers(np.arange(5000)))
    ['count', 'of', 'per', 'steps']
    """
    if len(values) < LONG:
        listed: list[Any] = values.tolist()
        return listed if values.dtype.kind in "iu" else [_short(value) for value in listed]
    for decimals in range(DECIMALS + 1):
        counted = np.rint(values * 10**decimals)
        if np.array_equal(np.round(counted / 10**decimals, decimals), values) and np.abs(counted).max() < 2**53:
            steps = np.diff(counted.astype(np.int64), prepend=0)
            return {"of": "steps", "count": len(values), "per": 10**decimals, "steps": _deflate(_varints(steps))}
    return {"of": "single", "count": len(values), "per": 1, "steps": _deflate(values.astype("<f4").tobytes())}


def pack_names(names: Sequence[str]) -> list[str] | dict[str, Any]:
    """Pack a column of names: a list, unless they are many and only count.

    Examples
    --------
    >>> pack_names(["a", "b"])
    ['a', 'b']
    >>> pack_names([f"o{number:04d}" for number in range(5000)])
    {'prefix': 'o', 'digits': 4, 'count': 5000}
    """
    found = re.fullmatch(r"(\D*)(0+)", names[0]) if len(names) >= LONG else None
    if found is None:
        return list(names)
    prefix, digits = found.group(1), len(found.group(2))
    counts = all(name == f"{prefix}{number:0{digits}d}" for number, name in enumerate(names))
    return {"prefix": prefix, "digits": digits, "count": len(names)} if counts else list(names)


def _short(value: float) -> float:
    """Drop digits that no reader sees: seven significant ones are left, and whole numbers are written as such."""
    rounded = float(f"{value:.7g}")
    return int(rounded) if rounded.is_integer() else rounded


def _deflate(content: bytes) -> str:
    """Return bytes as gzip and base64, whose header tells neither when nor on which system it was written.

    The rest is that of zlib: another version of it may find a shorter way to say the same. Nothing compares it; what a
    release is, its tables say.
    """
    packed = bytearray(gzip.compress(content, mtime=0))
    packed[9] = 255  # no system in particular
    return base64.b64encode(packed).decode()


def _varints(numbers: npt.NDArray[np.int64]) -> bytes:
    """Return numbers seven bits a byte, the last byte of each below 128; the lowest bit of a number is its sign."""
    signed = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    parts = [(signed >> np.uint64(7 * place)).astype(np.uint64) for place in range(10)]
    used = np.stack([part > 0 for part in parts])
    used[0] = True
    more = np.vstack([used[1:], np.zeros_like(used[:1])])
    content = np.stack([part & np.uint64(127) for part in parts]).astype(np.uint8) | (more.astype(np.uint8) << 7)
    return bytes(content.T[used.T].tobytes())
