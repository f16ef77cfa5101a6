"""Documents that others may have written: JSON and TOML, of which nothing but a ValueError can come."""

from __future__ import annotations

import json
import tomllib
from typing import Any, NoReturn


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON document says; one that is nested too deep, or has numbers that are none, is an error.

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
    """Return what a TOML document says; see `parse_json`."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
