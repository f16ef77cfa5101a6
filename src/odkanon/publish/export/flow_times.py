"""When the trips of a cube's rows begin, as a flow map wants to be told: as a day, or as a day and an hour."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from odkanon.attributes.hierarchies import WEEK
from odkanon.release_format.folder import SavedRelease

MONDAY = "2001-01-01"
"""The day of rows that tell of no date: a Monday, and so long ago that nobody takes it for when it was."""
_DAYS = {day: f"2001-01-{number:02}" for number, day in enumerate(WEEK, start=1)}
_DAYS |= {"working days": _DAYS["Monday"], "weekend": _DAYS["Saturday"]}


def _date(said: str) -> str | None:
    return said if re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", said) else None


def _hour(said: str) -> str | None:
    return f"{said[:2]}:00" if re.fullmatch(r"\d{2}(-\d{2})?", said) else None


_BEGINS: dict[str, Callable[[str], str | None]] = {"date": _date, "weekday": _DAYS.get, "hour": _hour}
"""For each axis of time, where what a row says of it begins; None where it tells of no time."""


def time_axes(release: SavedRelease) -> list[str]:
    """Return the axes of a cube that tell of time."""
    return [axis for axis in _BEGINS if axis in release.axes]


def times(release: SavedRelease, *, coarse: bool = False) -> pa.Array:
    """Return when the trips of each row begin; null unless the row tells it on every axis of time.

    It is the beginning of an hour, a slot, a day or, if ``coarse``, of a part of the day, of working days or the
    weekend, or of a month. Times are all of one kind: a row that tells the part of the day has no hour, and if
    ``coarse``, rows that tell the hour are of its part of the day. Rows that tell no date are on a Monday long ago
    (`MONDAY`), or on that day of the same week that they tell. Where they tell the date, the day of the week follows.

    The text is as flowmap.blue reads it: ``2024-03-05``, ``2024-03`` or ``2024-03-05 07:00``.
    """
    told = {axis: _begins(release, axis, coarse=coarse) for axis in time_axes(release)}
    every = pa.repeat(MONDAY, release.flows.num_rows)
    days = told.get("date", told.get("weekday", every))
    if "hour" not in told:
        return days
    # A month has no hours of its own; they are told of its first day.
    month = pc.equal(pc.utf8_length(days), len("2001-01"))
    first = pc.if_else(month, pc.binary_join_element_wise(days, "01", "-"), days)
    return pc.binary_join_element_wise(first, told["hour"], " ")


def _begins(release: SavedRelease, axis: str, *, coarse: bool) -> pa.Array:
    """Return for each row where the time begins that it tells on an axis; null where it tells none."""
    levels = next(each["levels"] for each in release.about["axes"] if each["name"] == axis)
    level = max(len(levels) - 2, 0) if coarse else 0
    above = {own: top for below in levels[: level + 1] for own, top in zip(below, levels[level], strict=True)}
    said = release.flows.column(axis).combine_chunks().dictionary_encode()
    begins = [_BEGINS[axis](above[value]) if value in above else None for value in said.dictionary.to_pylist()]
    return pa.array(begins, pa.string()).take(said.indices)
