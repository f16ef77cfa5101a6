"""Whom a release is about, as far as it says: filters, segments, and the SQL that finds those trips again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from odkanon.audit.counting.filters import filter_sql, names_in
from odkanon.audit.counting.records import Records, raw_column
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.folder import Published
from odkanon.errors import InputError
from odkanon.read.area import Area, read_area
from odkanon.read.tables.open import quote_text
from odkanon.read.tables.where import FILTERED

_PERIOD = {"since": ">=", "until": "<"}
_EQUALS = re.compile(r"""^\s*(\w+)\s*==\s*(?:"([^"]*)"|'([^']*)'|([\w.+-]+))\s*$""")


def filters_of(release: Published) -> list[str]:
    """Return the filters with which a release was made, as its recipe tells."""
    source = release.recipe.get("input", {})
    told = source.get("where") or []
    own = [told] if isinstance(told, str) else [str(each) for each in told]
    return own + [f'start_time {sign} "{source[name]}"' for name, sign in _PERIOD.items() if source.get(name)]


def apart_in_time(one: Published, other: Published) -> bool:
    """Tell whether the periods that two releases say they are about exclude each other, on the same clock."""
    first, second = (release.manifest.get("period", {}) for release in (one, other))
    if not first or not second or first.get("timezone") != second.get("timezone"):
        return False
    return any(
        str(before["until"]) <= str(after["since"])
        for before, after in ((first, second), (second, first))
        if before.get("until") and after.get("since")
    )


def hides_filter(release: Published) -> bool:
    """Tell whether rows were filtered out by nobody knows what."""
    return release.about is not None and FILTERED in release.about["input"]["rejected"] and not filters_of(release)


def area_of(release: Published, source: TripsSource) -> Area | None:
    """Return the area that the trips of a release are in: as its recipe tells, or else as it is given."""
    told = release.recipe.get("input", {}).get("within")
    if source.within is not None or not isinstance(told, str) or told.endswith(" in memory"):
        return source.area
    return read_area(told)


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


def columns_needed(releases: Sequence[Published], where: Sequence[str]) -> list[str]:
    """Return the columns of the file that filters and segments of the releases name."""
    texts = [*where, *(text for release in releases for text in filters_of(release))]
    segments = [each for release in releases for part in _segments(release) for each in part]
    return sorted(
        {name for text in texts for name in names_in(text)} | {name for segment in segments for name in segment}
    )


def _segments(release: Published) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the segments of which a release has some trips, one of them, and those that were left out of it."""
    parameters = release.parameters
    own = parameters.get("joined") or [parameters.get("segment", {})]
    return [each for each in own if each], parameters.get("left_out", [])


def scope_sql(release: Published, records: Records, where: Sequence[str]) -> str:
    """Return, in SQL over the table ``records``, which rows a release is about."""
    filters = filters_of(release) or list(where)
    own, gone = (
        [" AND ".join(_condition(name, label, release, records) for name, label in each.items()) for each in part]
        for part in _segments(release)
    )
    passed = filter_sql(filters, lambda name: raw_column(records, name))
    either = [f"({' OR '.join(own)})"] if own else []
    return " AND ".join([passed, *either, *(f"NOT coalesce({each}, false)" for each in gone)])


def _condition(name: str, label: str, release: Published, records: Records) -> str:
    if name == "age":
        return _age_condition(label, raw_column(records, name).sql)
    if name == "hour":
        return _hour_condition(label, release)
    text = f"coalesce(nullif(trim(CAST({raw_column(records, name).sql} AS VARCHAR)), ''), 'missing')"
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
