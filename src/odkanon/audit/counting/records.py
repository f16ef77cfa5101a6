"""The trips of a file, counted by the audit's own rules, in the table ``records``.

Copies of a row have the same number of a *trip*. Weights are exact decimals of the text in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.conditions import RawColumn, decimal_point, quoted
from odkanon.audit.counting.counted_measures import DISTINCT, MEASURES, person_sql, unclear_person_sql
from odkanon.audit.counting.scan import Scan, TripsSource, open_scan
from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import ColumnNotFoundError, InputError, MissingExtraError, UnreadableFileError
from odkanon.read.polygon_zoning import PolygonZoning
from odkanon.zoning.cells import cell_to_parent, cell_to_str, is_valid_cell, latlng_to_cell, str_to_cell

DECIMAL = "DECIMAL(38, 15)"
PLACES = ("start_lat", "start_lon", "end_lat", "end_lon")
_TIMES = ("start_time", "end_time")
_FINER = r"^([+]?\d*\.\d{15})\d+$"
_OFFSET = r"(?i)^(.*:\d{2}(\.\d+)?)\s*(Z|UTC|GMT|[+-]\d{2}(:?\d{2})?)$"


class NoColumnError(InputError):
    """Trips that lack a column needed to find those of a release."""


@dataclass(frozen=True)
class Records:
    """The contents of the table ``records``."""

    sha256: str | None  # the digest of the file
    measures: tuple[str, ...]  # the measures that can be counted
    leaves: list[str]
    columns: dict[str, str]  # the SQL types of the columns that were kept for filters and segments
    comma: bool = False  # whether numbers have a decimal comma
    foreign: str | None = None  # why the program had to read the file; None if the audit did


def load_records(connection: Connection, source: TripsSource, wanted: Sequence[str], finest: int) -> Records:
    """Read a file into the table ``records``, with coordinates in H3 cells and the columns wanted by filters."""
    scan = open_scan(connection, source)
    # Unless the file has a column of that name, the hour is that of the start.
    found = {name: _column_of(scan, name) for name in wanted if name != "hour" or name in scan.columns}
    kept = {name: column for name, column in found.items() if column is not None}
    present = _filled_columns(connection, scan)
    values = _values(scan, present, source.timezone)
    times = {scan.found.get(name) for name in _TIMES}
    for name, column in kept.items():  # as it is, or as the local time if it holds times
        is_time = column in times
        values[f"raw {name}"] = _clock(_time(scan, column), source.timezone) if is_time else quote_name(column)
    try:
        connection.execute(
            f"CREATE TABLE raw AS SELECT row_number() OVER () AS row, "
            f"{', '.join(f'{sql} AS {quote_name(name)}' for name, sql in values.items())} FROM {scan.sql}"
        )
    except duckdb.Error as error:
        raise UnreadableFileError.because(source.name, error) from None
    if scan.kind == "trips":
        _load_trips(connection, source, present, finest)
    else:
        _load_flows(connection, source, present)
    leaves = connection.execute(
        "SELECT origin FROM records UNION SELECT destination FROM records ORDER BY 1"
    ).fetchall()
    measures = tuple(each.name for each in MEASURES if each.name == "trips" or each.column in present)
    types = {row[0]: str(row[1]) for row in connection.execute("DESCRIBE records").fetchall()}
    columns = {name: types[f"raw {name}"] for name in kept}
    return Records(scan.sha256, measures, [row[0] for row in leaves], columns, scan.comma, scan.foreign)


def _column_of(scan: Scan, name: str) -> str | None:
    lower = {column.lower(): column for column in scan.columns}
    return name if name in scan.columns else scan.found.get(name, lower.get(name.lower()))


def _filled_columns(connection: Connection, scan: Scan) -> set[str]:
    """Return the standard columns that have any value; an entirely empty one counts as absent."""
    own = {name: quote_name(scan.found[name]) for name in ("weight", *DISTINCT, "trips", *_TIMES) if name in scan.found}
    if not own:
        return set()
    values = [person_sql(column) if name in DISTINCT else column for name, column in own.items()]
    tests = ", ".join(f"coalesce(bool_or({value} IS NOT NULL), false)" for value in values)
    row = connection.execute(f"SELECT {tests} FROM {scan.sql}").fetchall()[0]
    return {name for name, filled in zip(own, row, strict=True) if filled}


def _values(scan: Scan, present: set[str], zone: str | None) -> dict[str, str]:
    """Return the SQL of the values taken from each row, by standard names."""
    values = {}
    for name in DISTINCT:
        values[name] = person_sql(quote_name(scan.found[name])) if name in present else "NULL::VARCHAR"
    unclear = [unclear_person_sql(quote_name(scan.found[name])) for name in DISTINCT if name in present]
    values["clear"] = f"NOT coalesce({' OR '.join(unclear) or 'false'}, false)"
    values["weight"] = _decimal(scan, scan.found["weight"]) if "weight" in present else f"NULL::{DECIMAL}"
    number = f"TRY_CAST({_number(scan, scan.found['weight'])} AS DOUBLE)" if "weight" in present else "1"
    values["weighs"] = f"coalesce({number} > 0, false)"
    for name in _TIMES:
        time = _time(scan, scan.found[name]) if name in present else ""
        values[name] = _clock(time, zone) if name in present else "NULL::TIMESTAMP"
        missing = f"({quote_name(scan.found[name])} IS NULL)" if name in present else "true"
        values[f"no {name}"] = missing
        values[f"moment {name}"] = _moment(time, values[name]) if name in present else values[name]
    ends = PLACES if scan.kind == "trips" else ("origin", "destination")
    absent = [name for name in ends if name not in scan.found]
    if absent:
        names = ", ".join(absent) if scan.kind == "trips" else absent[0]
        raise ColumnNotFoundError(f"{scan.name} has no column for {names}; map one with columns")
    if scan.kind == "trips":
        return values | {name: f"TRY_CAST({_number(scan, scan.found[name])} AS DOUBLE)" for name in PLACES}
    values |= {end: _text(scan.found[end]) for end in ends}
    values["trips"] = _decimal(scan, scan.found["trips"]) if "trips" in scan.found else "1"
    return values


def _text(column: str) -> str:
    return f"trim(CAST({quote_name(column)} AS VARCHAR))"


def _number(scan: Scan, column: str) -> str:
    """Return the SQL for the text of a number, with a decimal point."""
    return decimal_point(quote_name(column)) if scan.comma else _text(column)


def _time(scan: Scan, column: str) -> str:
    """Return the SQL for a column of times, in a format that SQL reads."""
    form, text = scan.formats.get(column), _text(column)
    if form is None:
        return quote_name(column)
    if form == "serial":
        days = f"TRY_CAST(replace({text}, ',', '.') AS DOUBLE)"
        moment = f"TIMESTAMP '1899-12-30' + to_seconds(CAST(round({days} * 86400) AS BIGINT))"
    else:
        moment = f"try_strptime({text}, {quote_text(form)})"
    return f"coalesce(strftime({moment}, '%Y-%m-%d %H:%M:%S'), {text})"


def _decimal(scan: Scan, column: str) -> str:
    """Return the SQL for the exact decimal in a text, truncated to fifteen places: 9.9999999999999999 is not 10."""
    return f"TRY_CAST(regexp_replace({_number(scan, column)}, '{_FINER}', '\\1') AS {DECIMAL})"


def _clock(column: str, zone: str | None) -> str:
    """Return the SQL for a local time: in the given zone, otherwise by the clock with which it was written."""
    text = f"CAST({column} AS VARCHAR)"
    zoned = f"regexp_matches({text}, '{_OFFSET}')"
    local = f"TRY_CAST(regexp_extract({text}, '{_OFFSET}', 1) AS TIMESTAMP)"
    if zone is not None:
        local = f"timezone({quote_text(zone)}, {_instant(text)})"
    # Times with am or pm are invalid: DuckDB would ignore the suffix.
    half = f"regexp_matches({text}, '(?i)\\s[ap]m\\s*$')"
    return f"CASE WHEN {zoned} THEN {local} WHEN {half} THEN NULL ELSE TRY_CAST({column} AS TIMESTAMP) END"


def _moment(column: str, clock: str) -> str:
    """Return the SQL for the instant of a time, which does not depend on the offset with which it was written."""
    text = f"CAST({column} AS VARCHAR)"
    return (
        f"CASE WHEN regexp_matches({text}, '{_OFFSET}') "
        f"THEN coalesce(make_timestamp(epoch_us({_instant(text)})), {clock}) ELSE {clock} END"
    )


def _instant(text: str) -> str:
    """Return the SQL for a time with an offset, possibly separated by a space."""
    return f"TRY_CAST(regexp_replace({text}, '\\s+(Z|[-+]\\d+:?\\d*)$', '\\1') AS TIMESTAMPTZ)"


def _valid_condition(present: set[str], more: Sequence[str]) -> str:
    tests = ["clear", *more, *(f'("no {name}" OR {name} IS NOT NULL)' for name in _TIMES)]
    if "weight" in present:
        tests.append("weight IS NOT NULL AND weighs")
    return " AND ".join(tests)


def _load_trips(connection: Connection, source: TripsSource, present: set[str], finest: int) -> None:
    places = [f"coalesce(isfinite({name}), false)" for name in PLACES]
    if source.crs is None:
        places += [f"abs({name}) <= {90 if name.endswith('lat') else 180}" for name in PLACES]
    places += ["NOT (start_lat = 0 AND start_lon = 0)", "NOT (end_lat = 0 AND end_lon = 0)"]
    rows = connection.sql(
        f"SELECT row, {', '.join(PLACES)} FROM raw WHERE {_valid_condition(present, places)}"
    ).fetchnumpy()
    ends = [np.asarray(rows[name], dtype=np.float64) for name in PLACES]
    row = np.asarray(rows["row"], dtype=np.int64)
    if source.crs is not None:
        ends, on_globe = _to_degrees(ends, source.crs)
        ends, row = [values[on_globe] for values in ends], row[on_globe]
    if source.polygons is not None:
        zones = [zones_of_points(source.polygons, ends[at], ends[at + 1]) for at in (0, 2)]
        inside = np.logical_and(*(np.asarray(zone.is_valid()) for zone in zones))
        _insert(connection, row[inside], [zone.filter(pa.array(inside)) for zone in zones], "1::BIGINT")
        return
    cells = [latlng_to_cell(ends[at], ends[at + 1], finest) for at in (0, 2)]
    _insert(connection, row, [cell_to_str(values) for values in cells], "1::BIGINT")


def _to_degrees(ends: Sequence[Any], crs: str) -> tuple[list[Any], Any]:
    """Return the latitude and longitude of points in a reference system, and whether each is on the globe."""
    try:
        from pyproj import Transformer
    except ImportError:
        raise MissingExtraError.needed_for("other reference systems", "pyproj", "geo") from None
    transform = Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform
    pairs = [transform(ends[at + 1], ends[at]) for at in (0, 2)]
    degrees = [np.asarray(pair[at]) for pair in pairs for at in (1, 0)]
    good = [np.isfinite(values) & (np.abs(values) <= most) for values, most in zip(degrees, (90, 180) * 2, strict=True)]
    return degrees, np.logical_and.reduce(good)


def zones_of_points(zoning: PolygonZoning, lat: Any, lon: Any) -> pa.Array:
    """Return the code of the polygon around each point, the first of several in the order of texts; null for none.

    Polygons are compared with an index of all distinct points, unlike in `odkanon.zoning.point_location`.
    """
    import shapely

    distinct, number = np.unique(lon + 1j * lat, return_inverse=True)
    points = shapely.STRtree(shapely.points(distinct.real, distinct.imag))
    codes = zoning.tree.leaves[zoning.finder.numbers]
    found = np.full(len(distinct), "", dtype=codes.dtype)
    for at in np.argsort(codes)[::-1]:  # the first code last, so that it stays
        found[points.query(zoning.finder.shapes[at], predicate="intersects")] = codes[at]
    return pa.array(found[number], pa.string(), mask=found[number] == "")


def _load_flows(connection: Connection, source: TripsSource, present: set[str]) -> None:
    whole = ["origin IS NOT NULL", "destination IS NOT NULL", "coalesce(trips > 0 AND trips = floor(trips), false)"]
    table = connection.sql(
        f"SELECT row, origin, destination FROM raw WHERE {_valid_condition(present, whole)}"
    ).to_arrow_table()
    texts = [table.column(end).combine_chunks() for end in ("origin", "destination")]
    row = table.column("row").to_numpy()
    if source.tree is not None:
        known = pa.array(source.tree.leaves.tolist())
        good = np.logical_and(*(np.asarray(pa.compute.is_in(text, value_set=known)) for text in texts))
        _insert(connection, row[good], [text.filter(pa.array(good)) for text in texts], "trips::BIGINT")
        return
    cells = [str_to_cell(text) if len(text) else np.empty(0, dtype=np.uint64) for text in texts]
    good = is_valid_cell(cells[0]) & is_valid_cell(cells[1])
    cells = [values[good] for values in cells]
    if source.resolution is not None:
        cells = [cell_to_parent(values, source.resolution) for values in cells]
    _insert(connection, row[good], [cell_to_str(values) for values in cells], "trips::BIGINT")


def _insert(connection: Connection, row: Any, ends: Sequence[Any], trips: str) -> None:
    """Create the table ``records`` of the valid rows; rows that agree in all that is known of a trip are copies."""
    connection.register("incoming", pa.table({"row": row, "o": ends[0], "d": ends[1]}))
    columns = [each[0] for each in connection.execute("DESCRIBE raw").fetchall()]
    times = [f'"moment {name}"' for name in _TIMES]
    same = [*DISTINCT, "weight", *times, *(name for name in PLACES if name in columns), "i.o", "i.d"]
    copied = "person IS NOT NULL AND start_time IS NOT NULL" if PLACES[0] in columns else "false"
    first = f"min(row) OVER (PARTITION BY {', '.join(same)})"
    ours = {"row", "origin", "destination", "trips"}
    others = ", ".join(quote_name(name) for name in columns if name not in ours)
    connection.execute(
        f"CREATE TABLE records AS SELECT row, CASE WHEN {copied} THEN {first} ELSE row END AS trip, "
        f"i.o AS origin, i.d AS destination, {trips} AS trips, {others} FROM raw JOIN incoming i USING (row)"
    )
    connection.execute("DROP TABLE raw")
    connection.unregister("incoming")


def raw_column(records: Records, name: str) -> RawColumn:
    """Return a raw column of the file; ``hour`` may also be that of the start."""
    if name in records.columns:
        sql_type = records.columns[name]
        is_time, is_fraction = (
            sql_type.startswith(some) for some in (("TIMESTAMP", "DATE"), ("FLOAT", "DOUBLE", "DECIMAL"))
        )
        return RawColumn(quoted(name), is_time, is_fraction, records.comma)
    if name == "hour":
        return RawColumn("extract(hour FROM start_time)", False)
    raise NoColumnError(
        f"the trips given are not those of the release: they have no column {name!r}, by which it was made"
    )
