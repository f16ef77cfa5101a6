"""Whom a release is about, as far as it says: filters, segments, and the SQL that finds those trips again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from odkanon.audit.counting.filters import filter_sql, names_in
from odkanon.audit.counting.records import Records, raw_column
from odkanon.audit.folder import Published
from odkanon.errors import InputError
from odkanon.read.tables.open import quote_text

_FILTERED = re.compile(r"^(?:filtered out by|not matching|that do not match|outside the filter) (.*)$", re.DOTALL)
_EQUALS = re.compile(r"""^\s*(\w+)\s*==\s*(?:"([^"]*)"|'([^']*)'|([\w.+-]+))\s*$""")


def filters_of(release: Published) -> list[str]:
    """Return the filters with which a release was made, by its recipe or its account of rejected rows."""
    reading = release.recipe.get("input", {})
    for name in ("filters", "filter", "where"):
        told = reading.get(name)
        if told:
            return [told] if isinstance(told, str) else [str(each) for each in told]
    reasons = () if release.about is None else release.about["input"]["rejected"]
    return [found[1] for found in map(_FILTERED.match, reasons) if found]


def segment_of(release: Published) -> dict[str, str]:
    """Return what sets the trips of a release apart: its segment, or a filter, as ``{attribute: value}``."""
    segment = {name: str(label) for name, label in release.parameters.get("segment", {}).items()}
    for where in filters_of(release):
        match = _EQUALS.match(where)
        if match:
            segment[match[1]] = next(value for value in match.groups()[1:] if value is not None)
        else:
            segment[f"filter {where}"] = "yes"
    return segment


def columns_needed(releases: Sequence[Published], where: str | None) -> list[str]:
    """Return the columns of the file that filters and segments of the releases name."""
    texts = [text for release in releases for text in filters_of(release)] + ([where] if where else [])
    segments = [release.parameters.get("segment", {}) for release in releases]
    segments += [segment for release in releases for segment in release.parameters.get("left_out", [])]
    return sorted(
        {name for text in texts for name in names_in(text)} | {name for segment in segments for name in segment}
    )


def scope_sql(release: Published, records: Records, where: str | None) -> str:
    """Return, in SQL over the table ``records``, which rows a release is about."""
    filters = filters_of(release) or ([where] if where else [])
    own = [_condition(name, label, release, records) for name, label in release.parameters.get("segment", {}).items()]
    gone = [
        " AND ".join(_condition(name, label, release, records) for name, label in segment.items())
        for segment in release.parameters.get("left_out", [])
    ]
    passed = filter_sql(filters, lambda name: raw_column(records, name))
    return " AND ".join([passed, *own, *(f"NOT coalesce({each}, false)" for each in gone)])


def _condition(name: str, label: str, release: Published, records: Records) -> str:
    if name == "age":
        return _age_condition(label, raw_column(records, name))
    if name == "hour":
        return _hour_condition(label, release)
    text = f"coalesce(nullif(trim(CAST({raw_column(records, name)} AS VARCHAR)), ''), 'missing')"
    return f"{text} = {quote_text(label)}"


def _age_condition(label: str, column: str) -> str:
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


def _hour_condition(label: str, release: Published) -> str:
    hour = "extract(hour FROM start_time)"
    if label == "missing":
        return "start_time IS NULL"
    if label == "other":
        slots = next(part for part in release.parameters["dimension"].split("*") if part.strip().startswith("hour:"))
        hours = [h for slot in slots.partition(":")[2].split(",") for h in _hours(slot)]
        return f"{hour} NOT IN ({', '.join(map(str, hours))})"
    return f"{hour} IN ({', '.join(map(str, _hours(label)))})"


def _hours(slot: str) -> list[int]:
    begin, dash, end = slot.strip().partition("-")
    if not dash:
        return [int(begin)]
    return [(int(begin) + step) % 24 for step in range((int(end) - int(begin)) % 24 or 24)]
