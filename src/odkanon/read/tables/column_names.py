"""Which column of a table is which: our names, the names others use for them, and what to say when in doubt."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Mapping
from typing import Literal

from odkanon.errors import InputError, nearest
from odkanon.read.tables.open_table import Named

log = logging.getLogger(__name__)

TableContent = Literal["trips", "od"]

COORDINATES = ("start_lat", "start_lon", "end_lat", "end_lon")
ENDS = ("origin", "destination")
ATTRIBUTES = ("sex", "age", "category")
"""Attributes of a person that are kept where the input has them."""

ALIASES: dict[str, tuple[str, ...]] = {
    "person": ("person_id", "user_id", "participant_id", "uid"),
    "household": ("household_id", "hh_id", "hhid"),
    "start_time": (
        "starttime",
        "started_at",
        "departure_time",
        "pickup_datetime",
        "tpep_pickup_datetime",
        "lpep_pickup_datetime",
        "trip_pickup_datetime",
    ),
    "end_time": (
        "endtime",
        "stoptime",
        "ended_at",
        "stop_time",
        "arrival_time",
        "dropoff_datetime",
        "tpep_dropoff_datetime",
        "lpep_dropoff_datetime",
        "trip_dropoff_datetime",
    ),
    "start_lat": ("start_latitude", "start_station_latitude", "origin_lat", "pickup_latitude"),
    "start_lon": (
        "start_lng",
        "start_longitude",
        "start_station_longitude",
        "origin_lon",
        "origin_lng",
        "pickup_longitude",
    ),
    "end_lat": ("end_latitude", "end_station_latitude", "destination_lat", "dropoff_latitude"),
    "end_lon": (
        "end_lng",
        "end_longitude",
        "end_station_longitude",
        "destination_lon",
        "destination_lng",
        "dropoff_longitude",
    ),
    "weight": ("weights",),
    "origin": ("start_h3", "origin_id", "pulocationid"),
    "destination": ("end_h3", "destination_id", "dolocationid"),
    "trips": ("count", "n_trips", "flow"),
}
"""Names, in lower case with ``_`` for spaces, that are understood besides our own. None may be a guess: an ``id``
could be a trip's."""


def resolve(
    table: Named,
    columns: Mapping[str, str] | None,
    aliases: Mapping[str, tuple[str, ...]] = ALIASES,
    also: Collection[str] | None = (),
) -> dict[str, str]:
    """Return which column of a table stands for each of our names that it has.

    Parameters
    ----------
    table : Table or the like
        The table.
    columns : mapping of str to str, optional
        ``{ours: theirs}``, which goes before everything else.
    aliases : mapping of str to tuple of str
        Names that are understood besides each of ours; case does not matter, and spaces are like ``_``.
    also : collection of str, optional
        Further names that may be given a column, such as attributes; None for any.

    Raises
    ------
    InputError
        If a name is unknown, or two columns could be meant.
    """
    known = None if also is None else {*aliases, *ATTRIBUTES, *also}
    found = _named(table, columns or {}, known, {*aliases, *ATTRIBUTES})
    taken = set(found.values())
    free = {name: "_".join(name.lower().split()) for name in table.columns if name not in taken}
    for ours, others in aliases.items():
        if ours in found:
            continue
        candidates = [name for name, plain in free.items() if plain == ours]
        candidates = candidates or [name for name, plain in free.items() if plain in others]
        if len(candidates) > 1:
            listed = " or ".join(repr(name) for name in candidates)
            raise InputError(f"{ours} could be {listed} in {table.name}; say which", option=f"column {ours}=NAME")
        if candidates:
            found[ours] = candidates[0]
    return found


def _named(
    table: Named, columns: Mapping[str, str], known: Collection[str] | None, ours: Collection[str]
) -> dict[str, str]:
    """Return ``{ours: theirs}`` as it was given, or turned round where it was given as ``{theirs: ours}``."""
    wrong = [name for name in columns if known is not None and name not in known]
    told = {left: right for left, right in columns.items() if left != right}
    old = bool(told) and all(left in table.columns and right in ours for left, right in told.items())
    if old and (wrong or any(theirs not in table.columns for theirs in columns.values())):
        warnings.warn(
            "columns={theirs: ours} goes away in the next version; write columns={ours: theirs}, as on the "
            "command line",
            DeprecationWarning,
            stacklevel=2,
        )
        if len(set(columns.values())) < len(columns):
            raise InputError("two columns are named for the same thing; name one")
        return {right: left for left, right in columns.items()}
    if wrong:
        listed = ", ".join(sorted(known or ()))
        raise InputError(f"{wrong[0]!r} is nothing that a column can be{nearest(wrong[0], known or ())}: {listed}")
    for theirs in columns.values():
        if theirs not in table.columns:
            raise InputError(f"{table.name} has no column {theirs!r}{nearest(theirs, table.columns)}")
        if list(columns.values()).count(theirs) > 1:
            raise InputError(f"column {theirs!r} is named for two things; name it once")
    if old:
        log.warning("the names of columns are read as {ours: theirs}, though they would make sense either way")
    return dict(columns)


def kind_of(table: Named, found: Mapping[str, str]) -> TableContent:
    """Tell whether a table holds trips with coordinates or records between zones, by its columns."""
    has_coordinates = all(name in found for name in COORDINATES)
    has_ends = all(name in found for name in ENDS)
    if has_coordinates and has_ends:
        raise InputError(
            f"{table.name} has both coordinates and origin/destination columns; say which to use, trips or od",
            option="read-as",
        )
    if has_ends:
        return "od"
    if has_coordinates:
        return "trips"
    wanted = ENDS if any(name in found for name in ENDS) else COORDINATES
    raise missing(table, found, wanted)


def missing(table: Named, found: Mapping[str, str], wanted: tuple[str, ...]) -> InputError:
    """Return the error for columns that are needed and not there, with what was probably meant."""
    absent = [name for name in wanted if name not in found]
    free = [name for name in table.columns if name not in found.values()]
    hints = [f"{name}{nearest(name, free)}" for name in absent]
    also = " (or origin and destination, for a table of zones)" if wanted == COORDINATES else ""
    return InputError(
        f"{table.name} has no column for {', '.join(hints)}{also}; say which column it is. "
        f"It has: {', '.join(table.columns)}",
        option=f"column {absent[0]}=NAME",
    )
