"""Layouts of well-known files that need more than other names for columns, as views with our columns.

A layout that only has other names belongs into `odkanon.read.tables.column_names.ALIASES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from odkanon.read.tables.open_table import Check, Table, open_table, quote_name
from odkanon.read.tables.text_files import TextFormat
from odkanon.read.tables.time_formats import TimeColumn


@dataclass(frozen=True)
class Format:
    """A layout, recognised by its columns.

    Attributes
    ----------
    name : str
        What people call it.
    needs : frozenset of str
        Columns, in lower case, that only such files have together.
    view : callable
        From the table and its columns by their names in lower case to a table that has ours as well.
    """

    name: str
    needs: frozenset[str]
    view: Callable[[Table, Mapping[str, str]], Table]


def open_trips(source: Any, text: TextFormat = TextFormat()) -> Table:
    """Open a table of trips; one in a known layout gets our columns besides its own."""
    return in_our_columns(open_table(source, text))


def in_our_columns(table: Table) -> Table:
    """Return a table with our columns besides its own, if it is in a known layout."""
    layout = layout_of(table.columns)
    return table if layout is None else layout.view(table, {name.lower(): name for name in table.columns})


def layout_of(columns: Sequence[str]) -> Format | None:
    """Return the layout that has such columns; None if they are like any other table's."""
    lower = {name.lower() for name in columns}
    return next((layout for layout in FORMATS if layout.needs <= lower), None)


_NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_PAIR = rf"\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\]"
_SECONDS_BETWEEN_POINTS = 15
_LAT_LNG = (("lat", "lat"), ("lon", "lng"))


def _porto_taxis(table: Table, columns: Mapping[str, str]) -> Table:
    """Return the taxi trips of Porto (ECML/PKDD 2015): the ends of a trip are those of its track.

    The person is the taxi. A track has a point every 15 seconds, from which the end time follows; times are UTC.
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
        Check("with MISSING_DATA, whose track has holes", f"coalesce({holes}, false)"),
        Check("with an unclosed POLYLINE", f"NOT regexp_matches({tail}, '(^\\[|\\])\\s*\\]$')"),
        Check("with fewer than two points in POLYLINE", f"coalesce({points}, 0) < 2"),
    )
    return _with_columns(table, added, checks)


def _mds_trips(table: Table, columns: Mapping[str, str]) -> Table:
    """Return the trips of the Mobility Data Specification: a vehicle's, with places as objects and times as counts.

    Nobody is named as the person: a vehicle is shared. Version 1 has the places in its ``route``.
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


def _with_columns(table: Table, added: Mapping[str, str], checks: tuple[Check, ...]) -> Table:
    """Return a table with further columns; its own stay, so that filters can name them."""
    own = [quote_name(name) for name in table.columns if name not in added]
    selected = ", ".join([*own, *(f"{expression} AS {name}" for name, expression in added.items())])
    columns = (*(name for name in table.columns if name not in added), *added)
    return replace(table, scan=f"(SELECT {selected} FROM {table.scan})", columns=columns, checks=checks)


FORMATS = (
    Format(
        "Porto taxis (ECML/PKDD 2015)",
        frozenset({"trip_id", "taxi_id", "timestamp", "missing_data", "polyline"}),
        _porto_taxis,
    ),
    Format("MDS trips", frozenset({"trip_id", "device_id", "start_location", "end_location"}), _mds_trips),
    Format("MDS trips, version 1", frozenset({"trip_id", "device_id", "start_time", "route"}), _mds_trips),
)
