"""Numbers in messages: counts with their nouns, and rounded weights."""

from __future__ import annotations


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
