"""The audit's own words for bands of ages, hours and values: SQL conditions over the columns of the trips."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf

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
    ages = ages_of(label)
    if ages is None:
        raise InputError(f"{label!r} is no age band that can be understood")
    above = "" if ages[1] == inf else f" AND {age} < {ages[1] + 1}"
    return f"({known} AND {age} >= {ages[0]}{above})"


def ages_of(label: str) -> tuple[int, float] | None:
    """Return the first and the last year of a band of ages, or of a single age; None for anything else."""
    match = re.fullmatch(r"(?:under (\d+))|(?:(\d+)-(\d+))|(?:(\d+)\+)|(\d+)", label)
    if not match:
        return None
    if match[1]:
        return 0, int(match[1]) - 1
    return (int(match[4]), inf) if match[4] else (int(match[2] or match[5]), int(match[3] or match[5]))


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
