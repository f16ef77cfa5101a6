"""Which column of a table is which: our names, the names others use for them, and what to say when in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from odkanon.errors import InputError, nearest
from odkanon.read.tables.open import Named

Kind = Literal["trips", "od"]

COORDINATES = ("start_lat", "start_lon", "end_lat", "end_lon")
ENDS = ("origin", "destination")

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
    table: Named, columns: Mapping[str, str] | None, aliases: Mapping[str, tuple[str, ...]] = ALIASES
) -> dict[str, str]:
    """Return which column of a table stands for each of our names that it has.

    Parameters
    ----------
    table : Table or the like
        The table.
    columns : mapping of str to str, optional
        ``{theirs: ours}``, which goes before everything else.
    aliases : mapping of str to tuple of str
        Names that are understood besides each of ours; case does not matter, and spaces are like ``_``.

    Raises
    ------
    InputError
        If a name is unknown, or two columns could be meant.
    """
    found: dict[str, str] = {}
    for theirs, ours in (columns or {}).items():
        if theirs not in table.columns:
            raise InputError(f"{table.name} has no column {theirs!r}{nearest(theirs, table.columns)}")
        if ours in found:
            raise InputError(f"both {found[ours]!r} and {theirs!r} are named as {ours}; name one")
        found[ours] = theirs
    taken = set(found.values())
    free = {name: "_".join(name.lower().split()) for name in table.columns if name not in taken}
    for ours, others in aliases.items():
        if ours in found:
            continue
        candidates = [name for name, plain in free.items() if plain == ours]
        candidates = candidates or [name for name, plain in free.items() if plain in others]
        if len(candidates) > 1:
            listed = " or ".join(repr(name) for name in candidates)
            raise InputError(f"{ours} could be {listed} in {table.name}; say which with --column {ours}=NAME")
        if candidates:
            found[ours] = candidates[0]
    return found


def kind_of(table: Named, found: Mapping[str, str]) -> Kind:
    """Tell whether a table holds trips with coordinates or records between zones, by its columns."""
    has_coordinates = all(name in found for name in COORDINATES)
    has_ends = all(name in found for name in ENDS)
    if has_coordinates and has_ends:
        raise InputError(
            f"{table.name} has both coordinates and origin/destination columns; say which to use with "
            "--read-as trips or --read-as od"
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
        f"{table.name} has no column for {', '.join(hints)}{also}; name it with --column {absent[0]}=NAME. "
        f"It has: {', '.join(table.columns)}"
    )
