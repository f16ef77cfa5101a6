"""Axes besides the two places: hour, mode, sex, age; each with a hierarchy of its own, up to ``any``.

What a hierarchy lists is public knowledge: all hours of a day, all bands of ages, the values that were named. Of a
column that is taken as it is, the values that occur are taken for its public list of codes. ``missing`` and ``other``
belong to an axis where they occur: who knows that everybody's sex is known must not be able to leave a third value out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Codes
from odkanon.errors import InputError, nearest
from odkanon.methods.cascade.order import PLACE
from odkanon.model.measures import MEASURES
from odkanon.model.od import AXES, ODMatrix, od_matrix
from odkanon.read.area import Area
from odkanon.read.lookup import lookup_hierarchy, read_hierarchy
from odkanon.read.trips import OUTSIDE, Trips
from odkanon.together.dimensions import (
    AGE_BANDS,
    MISSING,
    band_labels,
    band_names,
    hours_of,
    slot_names,
    value_labels,
)
from odkanon.zoning.attributes import ANY, AttributeAxis
from odkanon.zoning.hierarchy import h3_hierarchy
from odkanon.zoning.zones import find_nodes

Labels = npt.NDArray[np.str_]

OTHER = "other"
DAY = ((0, 7), (7, 9), (9, 17), (17, 20), (20, 24))
"""The parts of a day that single hours are joined into."""
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MAX_VALUES = 1000


def columns_of_axes(specs: Sequence[str]) -> list[str]:
    """Return the attribute columns that axes need, besides times."""
    return sorted({name_of(spec) for spec in specs} - {"hour", "weekday", "date"})


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
    >>> release.table().column_names[:4]
    ['origin', 'destination', 'sex', 'trips']
    """
    names = [name_of(spec) for spec in specs]
    if not specs or len(set(names)) < len(names):
        raise InputError("name each attribute to publish by once, and at least one")
    taken = {*AXES, PLACE, *MEASURES} & set(names)
    if taken:
        raise InputError(f"an attribute cannot be called {min(taken)!r}, which means something else in a release")
    if within is not None:
        cells = trips.cells(resolution)
        inside = within.contains(cells[0]) & within.contains(cells[1])
        if not inside.any():
            raise InputError("no trip has both ends inside the area; check the cells or the outline")
        trips = trips.reject(~inside, OUTSIDE)
    made = [_axis(trips, spec, age_bands) for spec in specs]
    origin, destination = trips.cells(resolution)
    # The area is public: who knows that there is nothing outside it must not find rows to have had room there.
    origins, destinations = (replace(h3_hierarchy(cells), within=within) for cells in (origin, destination))
    return od_matrix(
        origins,
        destinations,
        np.searchsorted(origins.leaves, origin).astype(np.int32),
        np.searchsorted(destinations.leaves, destination).astype(np.int32),
        weight=trips.weight,
        scale=trips.scale,
        heads=trips.heads,
        source=trips.source,
        axes=tuple(axis for axis, _ in made),
        kinds=tuple(code for _, code in made),
    )


def _axis(trips: Trips, spec: str, age_bands: Sequence[int]) -> tuple[AttributeAxis, Codes]:
    """Return an axis over the values that occur, and for each trip the number of its value."""
    levels, labels = _levels(trips, spec, age_bands)
    occurring = np.unique(labels)
    if ANY in occurring:
        raise InputError(f"{spec!r} has the value {ANY!r}, which means a detail that was given up; rename the value")
    named = frozenset(levels[0]) if ":" in spec or name_of(spec) in ("hour", "weekday", "age") else frozenset()
    rest = [value for value in (OTHER, MISSING) if value in occurring and value not in levels[0]]
    levels = [[*level, *rest] for level in levels]
    if len(levels[0]) > MAX_VALUES:
        raise InputError(f"{spec!r} has {len(levels[0]):,} values, more than a table can be published by; group them")
    columns = {f"level {at}": list(level) for at, level in enumerate(levels)}
    # The root is any kind of trip; a lookup table would have the world above it.
    full = replace(lookup_hierarchy(pa.table(columns | {ANY: [ANY] * len(levels[0])})), public=None)
    seen = np.zeros(len(full.leaves), dtype=bool)
    seen[find_nodes(full, 0, occurring)] = True
    tree = full.restrict(seen)
    return AttributeAxis(name_of(spec), tree, named), find_nodes(tree, 0, labels).astype(np.int32)


def _levels(trips: Trips, spec: str, age_bands: Sequence[int]) -> tuple[list[Sequence[str]], Labels]:
    """Return the public levels of an axis, for each value but ``other`` and ``missing``, and the value of each trip."""
    name, _, more = (part.strip() for part in spec.partition(":"))
    if name == "hour":
        return _hours(trips, more, spec)
    if name in ("weekday", "date"):
        return _days(trips, name, more)
    if name == "age":
        return [band_names(age_bands), _wider(age_bands)], band_labels(trips, age_bands)
    if name not in trips.table.column_names:
        known = nearest(name, trips.table.column_names)
        raise InputError(f"the trips have no column {name!r} to publish by{known}")
    labels = value_labels(trips, name)
    if not more:
        return [np.unique(labels).tolist()], labels
    return _grouped(labels, more, spec) if "=" in more else _looked_up(labels, more)


def _wider(begins: Sequence[int]) -> list[str]:
    """Return for each band of ages the two bands, or the last one, that it is joined into."""
    edges = [None, *begins, None]
    names = []
    for band in range(len(begins) + 1):
        low, high = edges[band - band % 2], edges[min(band - band % 2 + 2, len(edges) - 1)]
        names.append(f"under {high}" if low is None else f"{low}+" if high is None else f"{low}-{high - 1}")
    return names


def _hours(trips: Trips, slots: str, spec: str) -> tuple[list[Sequence[str]], Labels]:
    hour = hours_of(trips)
    if slots:
        names = [*slot_names(slots, spec), MISSING]
        return [[name for name in dict.fromkeys(names) if name != MISSING]], np.array(names)[hour]
    names = [f"{each:02}" for each in range(24)]
    parts = [f"{low:02}-{high:02}" for low, high in DAY for _ in range(low, high)]
    return [names, parts], np.array([*names, MISSING])[hour]


def _days(trips: Trips, name: str, more: str) -> tuple[list[Sequence[str]], Labels]:
    if more:
        raise InputError(f"{name} takes nothing behind a colon; write {name} alone")
    if "start_time" not in trips.table.column_names:
        raise InputError(f"{name} needs a start time; say which column it is")
    column = trips.table.column("start_time").combine_chunks()
    known = np.asarray(column.is_valid())
    days = np.asarray(column.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).fill_null(0)) // 86_400
    if name == "weekday":
        # 1 January 1970 was a Thursday.
        labels = np.array([*WEEK, MISSING])[np.where(known, (days + 3) % 7, 7)]
        return [WEEK, ["working days"] * 5 + ["weekend"] * 2], labels
    dates = days.astype("datetime64[D]").astype(str)
    labels = np.where(known, dates, MISSING)
    first, last = (int(days[known].min()), int(days[known].max())) if known.any() else (0, -1)
    every = np.arange(first, last + 1).astype("datetime64[D]").astype(str).tolist()
    return [every, [day[:7] for day in every]], labels


def _grouped(labels: Labels, groups: str, spec: str) -> tuple[list[Sequence[str]], Labels]:
    """Return named groups of values; what is in none of them is ``other``."""
    names: dict[str, str] = {}
    for part in groups.split(","):
        name, equals, values = (piece.strip() for piece in part.partition("="))
        for value in values.split("+"):
            if not equals or not name or not value.strip():
                raise InputError(f"{part!r} in {spec!r} is not understood; write groups as in car=1+2")
            if names.setdefault(value.strip(), name) != name:
                raise InputError(f"the value {value.strip()!r} lies in two groups of {spec!r}; put it into one")
    distinct, number = np.unique(labels, return_inverse=True)
    shown = np.array([names.get(value, MISSING if value == MISSING else OTHER) for value in distinct.tolist()])
    return [list(dict.fromkeys(names.values()))], shown[number]


def _looked_up(labels: Labels, file: str) -> tuple[list[Sequence[str]], Labels]:
    """Return the levels of a table of nested values; values that it does not list are ``other``."""
    tree = read_hierarchy(file)
    levels: list[Any] = [tree.ids[at][tree.codes[at]].tolist() for at in range(tree.top + (len(tree.ids[-1]) > 1))]
    known = np.isin(labels, [*tree.leaves.tolist(), MISSING])
    return levels, np.where(known, labels, OTHER)
