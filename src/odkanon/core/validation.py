"""Arguments that a person gives, checked before they are used: a wrong type gets a sentence, not a traceback."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from odkanon.errors import InvalidValueError


def is_number(value: object) -> bool:
    """Return whether a value is a number; True and False, which Python counts as 1 and 0, are not."""
    return isinstance(value, int | float | Fraction | np.integer | np.floating) and not isinstance(value, bool)


def check_positive(what: str, value: Any, *, whole: bool = True) -> None:
    """Raise unless a value is a positive, finite number, and whole if it has to be."""
    good = is_number(value) and 0 < value < float("inf")
    if not good or (whole and value != int(value)):
        expected = "a whole number of at least 1" if whole else "a positive number"
        raise InvalidValueError.expected(what, expected, value)


def check_share(what: str, value: Any) -> None:
    """Raise unless a value is a share from 0 to below 1."""
    if not is_number(value) or not 0 <= value < 1:
        raise InvalidValueError.expected(what, "a share from 0 to below 1, such as 0.10", value)
