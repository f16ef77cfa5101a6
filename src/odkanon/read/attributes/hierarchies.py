"""Axes besides the two places: hour, mode, sex, age; each with a hierarchy of its own, up to ``any``.

What a hierarchy lists is public knowledge: all hours of a day, all bands of ages, the values that were named. Of a
column that is taken as it is, the values that occur are taken for its public list of codes. ``missing`` and ``other``
belong to an axis whether or not they occur, or what is published would tell. They are spare: nothing is counted on
them, since a reader may know that everybody's sex is known, and must not be able to leave a third value out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Codes, Ints
from odkanon.errors import InputError
from odkanon.model.measures import MEASURES
from odkanon.model.od import AXES, ODMatrix
from odkanon.read.area import Area
from odkanon.read.attributes.spec import (
    START,
    AttributeSpec,
    Labels,
    band_answer,
    cube_of_attributes,
    day_answer,
    hour_answer,
    value_answer,
)
from odkanon.read.lookup import lookup_hierarchy, read_hierarchy
from odkanon.read.trips import Trips
from odkanon.zoning.attribute_axis import ANY, PLACE, AttributeAxis
from odkanon.zoning.zones import find_nodes

Levels = list[Sequence[str]]
"""Public levels of an axis, for each value but ``other`` and ``missing``."""
Days = npt.NDArray[np.datetime64]
Period = tuple[str | None, str | None]
"""The day with which a period begins, and the one before which it ends; None where that is not said."""

MISSING = "missing"
"""The label of trips without a value; they are values of their own, or subtraction would reveal them."""
OTHER = "other"
"""The label of values that are not named, or that are too rare for a table of their own."""
DAY = ((0, 7), (7, 9), (9, 17), (17, 20), (20, 24))
"""The parts of a day that single hours are joined into."""
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
AGE_BANDS = (10, 20, 30, 40, 50, 60, 70)
"""Where the paper's bands of ages begin; the last one has no end."""
MAX_VALUES = 1000


def parse_attributes(
    specs: Sequence[str], age_bands: Sequence[int] = AGE_BANDS, period: Period = (None, None)
) -> list[AttributeSpec]:
    """Return the kinds that texts such as ``mode:car=1+2`` ask for, of trips of a period; see `cube_of`."""
    names = [name_of(spec) for spec in specs]
    if not specs or len(set(names)) < len(names):
        raise InputError("name each attribute to publish by once, and at least one")
    if {"date", "weekday"} <= set(names):
        raise InputError("a date tells which day of the week it is, so that rows by both would show groups; choose one")
    taken = {*AXES, PLACE, *MEASURES} & set(names)
    if taken:
        raise InputError(f"an attribute cannot be called {min(taken)!r}, which means something else in a release")
    live = [name for name in names if re.match(r"[=+\-@＝＋－＠]", name)]
    if live:
        raise InputError(
            f"an attribute cannot be called {live[0]!r}: a spreadsheet may take that for a formula; rename it"
        )
    return [requested_attribute(spec, age_bands, period) for spec in specs]


def name_of(spec: str) -> str:
    """Return the name of the axis that a text such as ``mode:car=1+2`` asks for."""
    return spec.partition(":")[0].strip()


def cube_of(
    trips: Trips,
    specs: Sequence[str],
    *,
    resolution: int = 10,
    within: Area | None = None,
    age_bands: Sequence[int] = AGE_BANDS,
) -> ODMatrix:
    """Count trips by origin, destination and some attributes.

    Parameters
    ----------
    trips : Trips
        With the columns that the texts name.
    specs : sequence of str
        ``mode`` (a column as it is), ``mode:car=1+2,bus=3`` (named groups of its values; the rest is ``other``),
        ``hour`` or ``hour:0-7,7-9``, ``weekday``, ``date`` (by day, then month), ``age`` (in bands), or
        ``purpose:lookup.csv``, a table of nested values.
    resolution, within
        As for `odkanon.build_od`.
    age_bands : sequence of int
        Where bands of ages begin.

    Examples
    --------
    >>> from odkanon import Rule, anonymize, cube_of, make_survey, read_trips
    >>> cube = cube_of(read_trips(make_survey()), ["sex"], resolution=8)
    >>> release = anonymize(cube, Rule(trips=10), method="cascade")
    >>> release.to_arrow().column_names[:4]
    ['origin', 'destination', 'sex', 'trips']
    """
    said = trips.source.reading
    attributes = parse_attributes(specs, age_bands, (said.get("since"), said.get("until")))
    return cube_of_attributes(trips, attributes, resolution=resolution, within=within)


def requested_attribute(spec: str, age_bands: Sequence[int], period: Period = (None, None)) -> AttributeSpec:
    """Return the question that a text asks, and how its answers are named and nested."""
    name, _, more = (part.strip() for part in spec.partition(":"))
    if name == "hour":
        return AttributeSpec(name, START, hour_answer, partial(_axis, spec, partial(_hours, spec)))
    if name in ("weekday", "date"):
        if more:
            raise InputError(f"{name} takes nothing behind a colon; write {name} alone")
        levels_of = partial(_weekdays if name == "weekday" else _dates, period)
        return AttributeSpec(name, START, day_answer, partial(_axis, spec, levels_of))
    if name == "age":
        return AttributeSpec(name, name, band_answer(age_bands), partial(_axis, spec, partial(_ages, age_bands)))
    if not more:
        return AttributeSpec(name, name, value_answer, partial(_axis, spec, _values))
    levels = partial(_grouped, spec) if "=" in more else partial(_looked_up, more)
    return AttributeSpec(name, name, value_answer, partial(_axis, spec, levels, spare=(OTHER, MISSING)))


def _axis(
    spec: str,
    levels_of: Callable[[Labels], tuple[Levels, Labels]],
    answers: Labels,
    *,
    spare: Sequence[str] = (MISSING,),
) -> tuple[AttributeAxis, Codes]:
    """Return an axis over the values that occur, and for each answer the number of its value."""
    levels, labels = levels_of(answers)
    occurring = np.unique(labels)
    if ANY in occurring:
        raise InputError(f"{spec!r} has the value {ANY!r}, which means a detail that was given up; rename the value")
    named = frozenset(levels[0]) if ":" in spec or name_of(spec) in ("hour", "weekday", "age") else frozenset()
    residual = [value for value in spare if value not in levels[0]]
    levels = [[*level, *residual] for level in levels]
    if len(levels[0]) > MAX_VALUES:
        raise InputError(f"{spec!r} has {len(levels[0]):,} values, more than a table can be published by; group them")
    columns = {f"level {at}": list(level) for at, level in enumerate(levels)}
    # The root is any kind of trip; a lookup table would have the world above it.
    full = lookup_hierarchy(pa.table(columns | {ANY: [ANY] * len(levels[0])}))
    full = replace(full, public=None, spare=frozenset(residual))
    seen = np.zeros(len(full.leaves), dtype=bool)
    seen[find_nodes(full, 0, occurring)] = True
    tree = full.restrict(seen)
    return AttributeAxis(name_of(spec), tree, named, spec), find_nodes(tree, 0, labels).astype(np.int32)


def _values(answers: Labels) -> tuple[Levels, Labels]:
    labels = np.where(answers == "", MISSING, answers)
    return [np.unique(labels[labels != MISSING]).tolist()], labels


def _ages(begins: Sequence[int], answers: Labels) -> tuple[Levels, Labels]:
    names = band_names(begins)
    return [names, _wider(begins)], _numbered(names, answers)


def band_names(begins: Sequence[int]) -> list[str]:
    """Return the names of bands of ages."""
    return [f"under {begins[0]}", *(f"{low}-{high - 1}" for low, high in pairwise(begins)), f"{begins[-1]}+"]


def _wider(begins: Sequence[int]) -> list[str]:
    """Return for each band of ages the two bands, or the last one, that it is joined into."""
    edges = [None, *begins, None]
    names = []
    for band in range(len(begins) + 1):
        low, high = edges[band - band % 2], edges[min(band - band % 2 + 2, len(edges) - 1)]
        names.append(f"under {high}" if low is None else f"{low}+" if high is None else f"{low}-{high - 1}")
    return names


def _numbered(names: Sequence[str], answers: Labels) -> Labels:
    """Return the name that each answer is the number of."""
    return np.array([names[int(answer)] if answer else MISSING for answer in answers.tolist()], dtype=np.str_)


def _hours(spec: str, answers: Labels) -> tuple[Levels, Labels]:
    slots = spec.partition(":")[2].strip()
    if slots:
        names = slot_names(slots, spec)
        return [list(dict.fromkeys(names))], _numbered(names, answers)
    names = [f"{each:02}" for each in range(24)]
    parts = [f"{low:02}-{high:02}" for low, high in DAY for _ in range(low, high)]
    return [names, parts], _numbered(names, answers)


def slot_names(slots: str, part: str) -> list[str]:
    """Return the slot of each hour; a slot such as 19-6 goes over midnight, and what is in no slot is ``other``."""
    names = [OTHER] * 24
    for slot in slots.split(","):
        begin, _, end = (piece.strip() for piece in slot.partition("-"))
        if not (begin.isdigit() and end.isdigit() and int(begin) < 24 and int(end) <= 24 and begin != end):
            raise InputError(f"the time slot {slot!r} in {part!r} is not understood; write hours, as in 6-9 or 19-6")
        length = (int(end) - int(begin)) % 24 or 24
        for hour in [(int(begin) + step) % 24 for step in range(length)]:
            if names[hour] != OTHER:
                raise InputError(f"hour {hour} lies in two time slots of {part!r}; let them not overlap")
            names[hour] = f"{int(begin):02}-{int(end):02}"
    return names


def _weekdays(period: Period, answers: Labels) -> tuple[Levels, Labels]:
    """Return the days of the week that are in a period: it is published, so that others are known to be empty."""
    days = _days_of(period, answers) if None not in period else np.arange(7).astype("datetime64[D]")
    here = [(WEEK[day], "weekend" if day > 4 else "working days") for day in np.unique(_weekday(days)).tolist()]
    labels = np.full(len(answers), MISSING, dtype=f"<U{max(map(len, WEEK))}")
    labels[answers != ""] = np.array(WEEK)[_weekday(answers[answers != ""].astype("datetime64[D]"))]
    return [[day for day, _ in here], [part for _, part in here]], labels


def _weekday(days: Days) -> Ints:
    # 1 January 1970 was a Thursday.
    return (days.astype(np.int64) + 3) % 7


def _dates(period: Period, answers: Labels) -> tuple[Levels, Labels]:
    every = _days_of(period, answers).astype(str).tolist()
    return [every, [day[:7] for day in every]], np.where(answers == "", MISSING, answers)


def _days_of(period: Period, answers: Labels) -> Days:
    """Return all days of a period; where it is not said, from the first or to the last one with a trip."""
    days, said = answers[answers != ""].astype("datetime64[D]"), [day for day in period if day]
    ends = np.concatenate([days, days + 1, np.array(said, dtype="datetime64[D]")])
    return np.arange(ends.min(), ends.max()) if len(ends) else ends


def _grouped(spec: str, answers: Labels) -> tuple[Levels, Labels]:
    """Return named groups of values; what is in none of them is ``other``."""
    names: dict[str, str] = {}
    for part in spec.partition(":")[2].split(","):
        name, equals, values = (piece.strip() for piece in part.partition("="))
        for value in values.split("+"):
            if not equals or not name or not value.strip():
                raise InputError(f"{part!r} in {spec!r} is not understood; write groups as in car=1+2")
            if names.setdefault(value.strip(), name) != name:
                raise InputError(f"the value {value.strip()!r} lies in two groups of {spec!r}; put it into one")
    told = _values(answers)[1].tolist()
    labels = [names.get(value, MISSING if value == MISSING else OTHER) for value in told]
    return [list(dict.fromkeys(names.values()))], np.array(labels, dtype=np.str_)


def _looked_up(file: str, answers: Labels) -> tuple[Levels, Labels]:
    """Return the levels of a table of nested values; values that it does not list are ``other``."""
    tree = read_hierarchy(file)
    levels: list[Any] = [tree.ids[at][tree.codes[at]].tolist() for at in range(tree.top + (len(tree.ids[-1]) > 1))]
    labels = _values(answers)[1]
    return levels, np.where(np.isin(labels, [*tree.leaves.tolist(), MISSING]), labels, OTHER)
