"""Parsers of untrusted values, which raise nothing but ValueErrors with a readable message; and numbers in messages."""

from __future__ import annotations

import json
import tomllib
from numbers import Real
from typing import Any, NoReturn, get_args

from odkanon.errors import InvalidValueError


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON document; too deep nesting, NaN and infinity are errors.

    Examples
    --------
    >>> parse_json('{"k": 10}')
    {'k': 10}
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: it is nested too deep
    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML document; too deep nesting is an error."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def is_number(value: object) -> bool:
    """Return whether a value is a number; True and False, which Python counts as 1 and 0, are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_positive(what: str, value: Any, *, whole: bool = True) -> None:
    """Raise unless a value is a positive, finite number, and whole if it has to be."""
    good = is_number(value) and 0 < value < float("inf")
    if not good or (whole and value != int(value)):
        expected = "a whole number of at least 1" if whole else "a positive number"
        raise InvalidValueError.expected(what, expected, value)


def check_not_negative(what: str, value: Any, *, whole: bool = True) -> None:
    """Raise unless a value is a finite number of at least 0, and whole if it has to be."""
    good = is_number(value) and 0 <= value < float("inf")
    if not good or (whole and value != int(value)):
        raise InvalidValueError.expected(what, f"a {'whole ' * whole}number of at least 0", value)


def check_result(what: str, value: Any, attribute: str, maker: str) -> None:
    """Raise unless a value has an attribute that only the results of some functions have."""
    if not hasattr(value, attribute):
        raise InvalidValueError.expected(what, f"a result of {maker}", value)


def check_choice(what: str, value: object, choices: object) -> None:
    """Raise unless a value is one of those of a ``Literal`` type."""
    if value not in get_args(choices):
        raise InvalidValueError.expected(what, " or ".join(get_args(choices)), value)


def check_share(what: str, value: Any) -> None:
    """Raise unless a value is a share from 0 to below 1."""
    if not is_number(value) or not 0 <= value < 1:
        raise InvalidValueError.expected(what, "a share from 0 to below 1, such as 0.10", value)


def format_count(count: float, nouns: str, noun: str | None = None) -> str:
    """Return a count with its noun.

    * ``count``: the count or amount.
    * ``nouns``: the noun in the plural.
    * ``noun``: the noun in the singular; by default the plural without its final s.

    Examples
    --------
    >>> format_count(1, "flows"), format_count(1234, "flows"), format_count(1, "classes", "class")
    ('1 flow', '1,234 flows', '1 class')
    """
    one = nouns.removesuffix("s") if noun is None else noun
    return f"{format_number(count)} {one if count == 1 else nouns}"


def format_number(value: float) -> str:
    """Return a number with at most two decimals, without trailing zeros.

    Examples
    --------
    >>> format_number(10), format_number(2234.56789), format_number(1234.5)
    ('10', '2,234.57', '1,234.5')
    """
    return f"{round(float(value), 2):,.2f}".rstrip("0").rstrip(".")
