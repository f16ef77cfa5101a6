"""The audit's own words for bands of ages, hours and values: SQL conditions over the columns of the trips."""

from __future__ import annotations

import re
from collections.abc import Sequence

from odkanon.errors import InputError


def text_condition(column: str) -> str:
    """Return the SQL of a value as text, however a number is written; ``missing`` where there is none."""
    text = f"trim(CAST({column} AS VARCHAR))"
    number = f"nullif(regexp_extract({text}, '^[+]?0*([0-9]+?)([.]0*)?$', 1), '')"
    return f"coalesce({number}, nullif({text}, ''), 'missing')"


def age_condition(label: str, column: str) -> str:
    """Return the SQL condition that an age lies in a band such as ``20-29``, ``under 10`` or ``70+``."""
    age = f"TRY_CAST({column} AS DOUBLE)"
    known = f"coalesce({age} >= 0 AND isfinite({age}), false)"
    if label == "missing":
        return f"NOT {known}"
    match = re.fullmatch(r"(?:under (\d+))|(?:(\d+)-(\d+))|(?:(\d+)\+)", label)
    if not match:
        raise InputError(f"{label!r} is no age band that can be understood")
    if match[1]:
        return f"({known} AND {age} < {match[1]})"
    if match[4]:
        return f"({known} AND {age} >= {match[4]})"
    return f"({known} AND {age} >= {match[2]} AND {age} < {int(match[3]) + 1})"


def hour_condition(label: str, taken: Sequence[int]) -> str:
    """Return the SQL condition that a trip starts in a slot such as ``07-09``; ``other`` is what no slot has taken."""
    hour = "extract(hour FROM start_time)"
    if label == "missing":
        return "start_time IS NULL"
    if label == "other":
        return f"{hour} NOT IN ({', '.join(map(str, taken))})"
    return f"{hour} IN ({', '.join(map(str, hours_of(label)))})"


def hours_of(slot: str) -> list[int]:
    """Return the hours of a slot; one such as 19-6 goes over midnight."""
    begin, dash, end = slot.strip().partition("-")
    if not dash:
        return [int(begin)]
    return [(int(begin) + step) % 24 for step in range((int(end) - int(begin)) % 24 or 24)]
