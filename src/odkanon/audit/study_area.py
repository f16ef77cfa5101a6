"""Whom a release is about, as far as it says: filters, segments, and the SQL that finds those trips again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from odkanon.audit.conditions import age_condition, hour_condition, hours_of, text_condition
from odkanon.audit.counting.own_filters import equality, filter_sql, names_in
from odkanon.audit.counting.records import Records, raw_column
from odkanon.audit.counting.scan import TripsSource
from odkanon.audit.release_reader import Published
from odkanon.errors import InputError
from odkanon.read.area import Area, read_area
from odkanon.read.tables.filters import FILTERED
from odkanon.read.tables.open_table import quote_text
from odkanon.release_format.recipe import public_digest

OTHER = "other"
"""What segments call the values that have too few trips for a table of their own."""
_PERIOD = {"since": ">=", "until": "<"}
_OPTIONS = ("columns", "crs", "kind", "timezone", "decimal", "time_format", "encoding", "delimiter", "within")
"""What of the reading of a file decides which trips there are, and what a filter means."""

_FILES = ("within", "hierarchy")
"""Options among them that name files."""


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
    if one.recipe and other.recipe and _clock_of(one) != _clock_of(other):
        return False
    days = ((before.get("until"), after.get("since")) for before, after in ((first, second), (second, first)))
    try:
        return any(date.fromisoformat(until) <= date.fromisoformat(since) for until, since in days if until and since)
    except (ValueError, TypeError):
        return False


def _clock_of(release: Published) -> tuple[object, ...]:
    """Return what decides on which day a trip starts: the column, whichever way round it is named, and how it is read.

    Of a trip over midnight, the day of its end is another.
    """
    told = release.recipe.get("input", {})
    columns = told.get("columns") or {}
    turned = {theirs: ours for ours, theirs in columns.items()}
    return columns.get("start_time", turned.get("start_time")), told.get("time_format"), told.get("timezone")


def read_alike(one: Published, other: Published) -> bool:
    """Tell whether two releases took the same rows of a file for the same trips, before filters and segments."""
    told = [each.recipe.get("input", {}) for each in (one, other)]
    first, second = ({name: each.get(name) for name in _OPTIONS} for each in told)
    first["table"], second["table"] = (Path(str(each.get("hierarchy"))).name for each in told)
    known = not str(first["within"]).endswith(" in memory")
    if any(len({digest for digest in (_digest(one, name), _digest(other, name)) if digest}) > 1 for name in _FILES):
        return False
    return first == second and known and one.parameters.get("left_out") == other.parameters.get("left_out")


def same_table(one: Published, other: Published) -> bool:
    """Tell whether two releases were made on one lookup table, as far as is known."""
    told = [str(each.recipe.get("input", {}).get("hierarchy")) for each in (one, other)]
    digests = [_digest(each, "hierarchy") for each in (one, other)]
    if None not in digests:
        return digests[0] == digests[1]
    return told[0] == told[1] and not told[0].endswith(" in memory")


def _digest(release: Published, option: str) -> str | None:
    """Return the digest of the file that an option named, where the recipe has it: a file may change, not its name."""
    files = (release.recipe.get("command") or {}).get("files") or {}
    digest: str | None = files.get(str(release.recipe.get("input", {}).get(option)))
    return digest


def hides_filter(release: Published) -> bool:
    """Tell whether rows were filtered out by nobody knows what."""
    return release.about is not None and FILTERED in release.about["input"]["rejected"] and not filters_of(release)


def area_of(release: Published, source: TripsSource) -> Area | None:
    """Return the area that the trips of a release are in: as its recipe tells, or else as it is given."""
    told = release.recipe.get("input", {}).get("within")
    if source.within is not None or not isinstance(told, str) or told.endswith(" in memory"):
        return source.area
    return read_area(told)


def disclosed_area(release: Published) -> Area | None:
    """Return the area that a recipe tells, where it can be had as it was: in cells, or in a file that is the same."""
    told = release.recipe.get("input", {}).get("within")
    try:
        same = isinstance(told, str) and public_digest(Path(told)) == _digest(release, "within")
        return read_area(told) if same else None
    except (InputError, OSError, ValueError):  # it is not there, or a name that no file could have
        return None


def finest_of(releases: Sequence[Published], source: TripsSource) -> int:
    """Return the H3 resolution to count trips in: as it is given, or else as the releases tell.

    A cell does not contain its children exactly: in other cells than those of a release, there are other numbers.
    """
    told = {each.manifest["resolution"] for each in releases if isinstance(each.manifest.get("resolution"), int)}
    if source.resolution is None and len(told) > 1:
        raise InputError(
            f"the releases were made on cells of resolution {' and '.join(map(str, sorted(told)))}, which do not lie "
            "in each other exactly; audit those of one resolution at a time, or say in which to count",
            option="resolution",
        )
    return next(iter(told)) if source.resolution is None and told else source.finest


def segment_of(release: Published) -> dict[str, str]:
    """Return what sets the trips of a release apart: its segment, or a filter, as ``{attribute: value}``."""
    segment = {name: str(label) for name, label in release.parameters.get("segment", {}).items()}
    for where in filters_of(release):
        equal = equality(where)
        segment |= {equal[0]: plain_value(equal[1])} if equal else {f"filter {where}": "yes"}
    return segment


def plain_value(value: object) -> str:
    """Return a value of a filter as segments have it: ``1`` for ``1.0``, ``true`` and ``01``, no spaces around it."""
    text = str(value).strip()
    try:
        return f"{float({'true': '1', 'false': '0'}.get(text.casefold(), text)):.17g}"
    except ValueError:
        return text


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
        return age_condition(label, raw_column(records, name).sql)
    if name == "hour":
        return hour_condition(label, _slots(release) if label == "other" else ())
    return f"{text_condition(raw_column(records, name).sql)} = {quote_text(label)}"


def _slots(release: Published) -> list[int]:
    """Return the hours that lie in the time slots of a release."""
    slots = next(part for part in release.parameters["dimension"].split("*") if part.strip().startswith("hour:"))
    return [hour for slot in slots.partition(":")[2].split(",") for hour in hours_of(slot)]
