"""The columns of a table: our names, those that others use, and the layouts of well-known data.

A layout that differs in names only belongs into `ALIASES`; one whose values must be converted, into `LAYOUTS`.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from shlex import quote
from typing import Literal

from odkanon.core.sql import quote_name
from odkanon.errors import ColumnNotFoundError, InputError, UnknownNameError, nearest
from odkanon.read.tables.table import NamedColumns, RowCheck, SourceTable
from odkanon.read.tables.time_formats import TimeColumn

log = logging.getLogger(__name__)

TableContent = Literal["trips", "od"]

COORDINATES = ("start_lat", "start_lon", "end_lat", "end_lon")
ENDS = ("origin", "destination")
ATTRIBUTES = ("sex", "age", "category")
"""Attributes of a person that are kept by default."""

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
"""Further recognised names, in lower case with ``_`` for spaces. None may be ambiguous: an ``id`` could be a trip's."""


def resolve(
    table: NamedColumns,
    columns: Mapping[str, str] | None,
    aliases: Mapping[str, tuple[str, ...]] = ALIASES,
    also: Collection[str] | None = (),
) -> dict[str, str]:
    """Return the column of each of our names that a table has.

    Parameters
    ----------
    table : SourceTable or the like
        The table.
    columns : mapping of str to str, optional
        ``{ours: theirs}``, which takes precedence.
    aliases : mapping of str to tuple of str
        Further recognised names; case does not matter, and spaces are like ``_``.
    also : collection of str, optional
        Further names that may be mapped to a column, such as attributes; None for any.

    Raises
    ------
    InputError
        If a name is unknown, or several columns fit one.
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
            raise InputError(f"{ours} could be {listed} in {table.name}; name the column", option=f"column {ours}=NAME")
        if candidates:
            found[ours] = candidates[0]
    return found


def _named(
    table: NamedColumns, columns: Mapping[str, str], known: Collection[str] | None, ours: Collection[str]
) -> dict[str, str]:
    """Return ``{ours: theirs}``, also where it was given as ``{theirs: ours}``."""
    unknown = [name for name in columns if known is not None and name not in known]
    renamed = {left: right for left, right in columns.items() if left != right}
    inverted = bool(renamed) and all(left in table.columns and right in ours for left, right in renamed.items())
    if inverted and (unknown or any(theirs not in table.columns for theirs in columns.values())):
        warnings.warn(
            "columns={theirs: ours} is deprecated; write columns={ours: theirs}, as on the command line",
            DeprecationWarning,
            stacklevel=2,
        )
        if len(set(columns.values())) < len(columns):
            raise InputError("two columns are mapped to the same name; map one")
        return {right: left for left, right in columns.items()}
    if unknown:
        raise UnknownNameError.among("column name", unknown[0], sorted(known or ()))
    for theirs in columns.values():
        if theirs not in table.columns:
            raise ColumnNotFoundError.from_missing(table.name, theirs, table.columns)
        if list(columns.values()).count(theirs) > 1:
            raise InputError(f"column {theirs!r} is mapped to two names; map it to one")
    if inverted:
        log.warning("column names are read as {ours: theirs}, though the reverse would be possible")
    return dict(columns)


def probable_columns(unused: Sequence[str], measures: Collection[str]) -> dict[str, str]:
    """Return the unused columns that look like a weight, a person or a household where the input has none.

    Examples
    --------
    >>> probable_columns(["FactorViaje", "IdPersona", "Comuna", "n_personas"], ["trips"])
    {'weight': 'FactorViaje', 'person': 'IdPersona'}
    """
    found: dict[str, str] = {}
    for column in unused:
        words = _words(column)
        for ours, (measure, names) in _LOOKS_LIKE.items():
            if measure not in measures and words & names and (ours == "weight" or words & _ID or words <= names):
                found.setdefault(ours, column)
    return found


def probable_ends(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns that look like our coordinates and times, where only one does.

    Examples
    --------
    >>> probable_ends(["LatOrigen", "LonOrigen", "lat_dest", "lon_dest", "HoraIni", "Edad"])
    {'start_lat': 'LatOrigen', 'start_lon': 'LonOrigen', 'end_lat': 'lat_dest', 'end_lon': 'lon_dest', 'start_time': \
'HoraIni'}
    """
    found: dict[str, list[str]] = {}
    for column in columns:
        words = _words(column)
        for end, (part, names) in product(_SIDES, _PARTS.items()):
            if words & _SIDES[end] and words & names:
                found.setdefault(f"{end}_{part}", []).append(column)
    return {ours: theirs[0] for ours, theirs in found.items() if len(theirs) == 1}


def _words(column: str) -> set[str]:
    """Return the words in the name of a column, in lower case."""
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]", " ", column).lower()))


_SIDES = {
    "start": {
        "start",
        "origin",
        "orig",
        "origen",
        "origem",
        "origine",
        "o",
        "from",
        "pickup",
        "depart",
        "ini",
        "inicio",
    },
    "end": {"end", "dest", "destination", "destino", "d", "to", "dropoff", "arrival", "arrivee", "fin", "termino"},
}
_PARTS = {
    "lat": {"lat", "latitude", "latitud"},
    "lon": {"lon", "lng", "long", "longitude", "longitud"},
    "time": {"time", "hora", "heure", "datetime", "horario"},
}
_ID = {"id", "ids", "uid", "code", "cod", "codigo", "no", "nr", "key", "clave", "folio"}
_LOOKS_LIKE = {
    "weight": (
        "weight",
        {"weight", "weights", "wgt", "factor", "expansion", "peso", "poids", "gewicht", "ponderacion"},
    ),
    "person": (
        "persons",
        {"person", "persona", "pessoa", "personne", "individual", "individuo", "individu", "participant", "respondent"}
        | {"user", "rider", "passenger", "traveler", "traveller", "viajero", "usuario"},
    ),
    "household": ("households", {"household", "hogar", "menage", "haushalt", "domicilio"}),
}
"""By our names, the measure that the column gives, and words in the names of such columns."""


def detect_content(table: NamedColumns, found: Mapping[str, str]) -> TableContent:
    """Return whether a table holds trips with coordinates or records between zones, by its columns."""
    has_coordinates = all(name in found for name in COORDINATES)
    has_ends = all(name in found for name in ENDS)
    if has_coordinates and has_ends:
        raise InputError(
            f"{table.name} has both coordinates and origin/destination columns; choose trips or od", option="read-as"
        )
    if has_ends:
        return "od"
    if has_coordinates:
        return "trips"
    wanted = ENDS if any(name in found for name in ENDS) else COORDINATES
    raise missing_columns(table, found, wanted)


@dataclass(frozen=True)
class _Header:
    columns: tuple[str, ...]
    name: str


def choose_sheet(sheets: Mapping[str, Sequence[str]], asked: str | None, named: Sequence[str], name: str) -> str:
    """Return the sheet to read: the one asked for, the only one, or the only one with places of trips.

    * ``sheets``: the columns of each.
    * ``asked``: the name that the user gave.
    * ``named``: columns that the user named.
    * ``name``: the file, for messages.
    """
    if asked is not None and asked not in sheets:
        raise UnknownNameError(f"{name}: {UnknownNameError.among('sheet with rows', asked, sheets)}")
    fit = [
        each
        for each, columns in sheets.items()
        if {*named} <= {*columns} and (named or _has_places(_Header(tuple(columns), name)))
    ]
    found = [asked] if asked else fit if len(sheets) > 1 else [*sheets]
    if len(found) != 1:
        listed = ", ".join(map(repr, sheets)) or "none"
        which = f"{len(found)} of them look" if found else "none of them looks"
        about = f"several sheets ({listed}), and {which} like trips; choose one" if sheets else "no rows"
        raise InputError(f"{name} has {about}", option="sheet NAME" if sheets else None)
    return found[0]


def _has_places(header: _Header) -> bool:
    try:
        found = {*resolve(header, None)} | {*probable_ends(header.columns)}
    except InputError:  # several columns fit, which reading the sheet reports
        return True
    return bool({*COORDINATES} <= found or {*ENDS} <= found or find_layout(header.columns))


def missing_columns(table: NamedColumns, found: Mapping[str, str], wanted: tuple[str, ...]) -> InputError:
    """Return the error for missing columns, with the nearest ones."""
    absent = [name for name in wanted if name not in found]
    free = [name for name in table.columns if name not in found.values()]
    likely = {ours: theirs for ours, theirs in probable_ends(free).items() if ours not in found}
    if wanted == COORDINATES and {*absent} <= {*likely}:
        likely |= probable_columns([name for name in free if name not in likely.values()], found)
        named = [f"{ours}={theirs}" for ours, theirs in likely.items()]
        return ColumnNotFoundError(
            f"{table.name} has no column called {', '.join(absent)}; others look like these, so name them. It has: "
            f"{', '.join(table.columns)}",
            option=" --".join(f"column {quote(each)}" for each in named),
        )
    hints = [f"{name}{nearest(name, free)}" for name in absent]
    also = " (or origin and destination, for a table of zones)" if wanted == COORDINATES else ""
    return ColumnNotFoundError(
        f"{table.name} has no column for {', '.join(hints)}{also}; name the column. It has: {', '.join(table.columns)}",
        option=f"column {absent[0]}=NAME",
    )


def attribute_columns(table: NamedColumns, found: Mapping[str, str], wanted: Sequence[str] | None) -> dict[str, str]:
    """Return the columns of the attributes to keep; by default those of `ATTRIBUTES` that the table has."""
    lower = {name.lower(): name for name in table.columns}
    if wanted is None:
        return {name: lower[name] for name in ATTRIBUTES if name in lower} | {
            name: found[name] for name in ATTRIBUTES if name in found
        }
    kept = {name: found.get(name, lower.get(name.lower(), "")) for name in wanted}
    for name, column in kept.items():
        if not column:
            raise ColumnNotFoundError.from_missing(table.name, name, table.columns)
    return kept


@dataclass(frozen=True)
class Layout:
    """A layout of well-known data, recognised by its columns."""

    name: str
    """Its common name."""
    needs: frozenset[str]
    """Columns, in lower case, that only this layout combines."""
    view: Callable[[SourceTable, Mapping[str, str]], SourceTable]
    """From a table and its columns by lower-case name to a table with our columns added."""


def apply_layout(table: SourceTable) -> SourceTable:
    """Return a table with our columns added, if it is in a known layout."""
    layout = find_layout(table.columns)
    return table if layout is None else layout.view(table, {name.lower(): name for name in table.columns})


def find_layout(columns: Sequence[str]) -> Layout | None:
    """Return the known layout with such columns; None if there is none."""
    lower = {name.lower() for name in columns}
    return next((layout for layout in LAYOUTS if layout.needs <= lower), None)


_NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_PAIR = rf"\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\]"
_SECONDS_BETWEEN_POINTS = 15
_LAT_LNG = (("lat", "lat"), ("lon", "lng"))


def _porto_taxis(table: SourceTable, columns: Mapping[str, str]) -> SourceTable:
    """Return the taxi trips of Porto (ECML/PKDD 2015), from the first to the last point of each track.

    The person is the taxi. The end time follows from the 15 seconds between points; times are UTC.
    """
    track = f"trim(CAST({quote_name(columns['polyline'])} AS VARCHAR))"
    tail = f"right({track}, 120)"
    points = f"(length({track}) - length(replace({track}, '[', '')) - 1)"
    start = f"make_timestamptz({TimeColumn(table, columns['timestamp']).instant})"
    added = {
        "person": quote_name(columns["taxi_id"]),
        "start_time": start,
        "end_time": f"{start} + to_seconds({_SECONDS_BETWEEN_POINTS} * greatest({points} - 1, 0))",
        "start_lon": f"regexp_extract({track}, '^\\[\\s*{_PAIR}', 1)",
        "start_lat": f"regexp_extract({track}, '^\\[\\s*{_PAIR}', 2)",
        "end_lon": f"regexp_extract({tail}, '{_PAIR}\\s*\\]$', 1)",
        "end_lat": f"regexp_extract({tail}, '{_PAIR}\\s*\\]$', 2)",
    }
    holes = f"lower(trim(CAST({quote_name(columns['missing_data'])} AS VARCHAR))) IN ('true', 't', '1')"
    checks = (
        RowCheck("with MISSING_DATA, whose track has holes", f"coalesce({holes}, false)"),
        RowCheck("with an unclosed POLYLINE", f"NOT regexp_matches({tail}, '(^\\[|\\])\\s*\\]$')"),
        RowCheck("with fewer than two points in POLYLINE", f"coalesce({points}, 0) < 2"),
    )
    return _with_columns(table, added, checks)


def _mds_trips(table: SourceTable, columns: Mapping[str, str]) -> SourceTable:
    """Return the trips of the Mobility Data Specification, with places as objects and times as integers.

    There is no person, since vehicles are shared. Version 1 has the places in its ``route``.
    """
    ends = {
        "start": ("start_location", "^.*?coordinates"),
        "end": ("end_location", "^.*coordinates"),
    }
    added: dict[str, str] = {}
    for end, (name, upto) in ends.items():
        time = f"{end}_time"
        if time in columns:
            added[time] = f"make_timestamptz({TimeColumn(table, columns[time]).instant})"
        if name in columns:
            text = f"CAST({quote_name(columns[name])} AS VARCHAR)"
            places = {
                part: f"regexp_extract({text}, '[\"'']{key}[\"'']\\s*:\\s*{_NUMBER}', 1)" for part, key in _LAT_LNG
            }
        else:
            text = f"CAST({quote_name(columns['route'])} AS VARCHAR)"
            pair = f"{upto}[\"'']\\s*:\\s*\\[\\s*{_NUMBER}\\s*,\\s*{_NUMBER}"
            places = {part: f"regexp_extract({text}, '{pair}', {at}, 's')" for part, at in (("lat", 2), ("lon", 1))}
        added |= {f"{end}_{part}": f"nullif({sql}, '')" for part, sql in places.items()}
    return _with_columns(table, added, ())


def at_one_place(table: SourceTable, place: str, unit: str) -> SourceTable:
    """Return a table of records with one place each as one whose records begin and end there; see `place_columns`."""
    return _with_columns(table, place_columns(table, place, unit), ())


def place_columns(table: NamedColumns, place: str, unit: str) -> dict[str, str]:
    """Return the SQL of our columns for records with one place: a code, or the coordinates ``PLACE_lat, PLACE_lon``.

    A column named like the unit has the count of each row.
    """
    lower = {name.lower(): quote_name(name) for name in table.columns}
    counted = {"trips": lower[unit.lower()]} if unit.lower() in lower else {}
    if place.lower() in lower:
        return dict.fromkeys(ENDS, lower[place.lower()]) | counted
    degrees = [
        next((name for part in parts if (name := f"{place}_{part}".lower()) in lower), None) for parts in _DEGREES
    ]
    if None in degrees:
        raise ColumnNotFoundError.from_missing(
            table.name, place, table.columns, purpose=f"(nor {place}_lat and {place}_lon)"
        )
    lat, lon = (lower[str(name)] for name in degrees)
    return dict(zip(COORDINATES, (lat, lon, lat, lon), strict=True)) | counted


_DEGREES = (("lat", "latitude", "y"), ("lon", "lng", "longitude", "x"))


def _with_columns(table: SourceTable, added: Mapping[str, str], checks: tuple[RowCheck, ...]) -> SourceTable:
    """Return a table with further columns; it keeps its own, which filters may name."""
    own = [quote_name(name) for name in table.columns if name not in added]
    selected = ", ".join([*own, *(f"{expression} AS {name}" for name, expression in added.items())])
    columns = (*(name for name in table.columns if name not in added), *added)
    sources = tuple(name for name in table.columns if any(quote_name(name) in sql for sql in added.values()))
    scan = f"(SELECT {selected} FROM {table.scan})"
    return replace(table, scan=scan, columns=columns, checks=checks, sources=sources)


LAYOUTS = (
    Layout(
        "Porto taxis (ECML/PKDD 2015)",
        frozenset({"trip_id", "taxi_id", "timestamp", "missing_data", "polyline"}),
        _porto_taxis,
    ),
    Layout("MDS trips", frozenset({"trip_id", "device_id", "start_location", "end_location"}), _mds_trips),
    Layout("MDS trips, version 1", frozenset({"trip_id", "device_id", "start_time", "route"}), _mds_trips),
)
