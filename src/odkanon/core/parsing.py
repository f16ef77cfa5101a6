"""Untrusted JSON and TOML documents, of which all errors are ValueErrors."""

from __future__ import annotations

import json
import tomllib
from typing import Any, NoReturn


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
