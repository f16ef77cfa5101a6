"""Times in SQL, whether written with or without a UTC offset, or as seconds since 1970."""

from __future__ import annotations

import zoneinfo

from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import InputError, nearest
from odkanon.read.tables.table import TypedColumns

_OFFSET = r"(?i)^(.*:\d{2}(\.\d+)?)\s*(Z|UTC|GMT|[+-]\d{2}(:?\d{2})?)$"
_BEFORE_OFFSET = r"\s+(Z|[+-]\d{2}:?\d*)$"
_NO_OFFSET = "%:__:__"
"""Ends with minutes and seconds; an offset with a colon would have a sign before them."""
_HALF = r"(?i)\s[ap]m\s*$"
"""AM or PM, which DuckDB ignores after a time: it would read 8 pm as 8 am."""
_DIGITS = r"\s*\d{9,19}(\.\d+)?\s*"
_LATEST = 4_102_444_800
"""Seconds until the year 2100; larger numbers are milli-, micro- or nanoseconds, or no time at all."""

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "UBIGINT", "UINTEGER")


class TimeColumn:
    """The SQL for one column of times.

    Two values are needed: the *instant*, which orders points regardless of their offsets, and the local *clock*, which
    defines morning and evening. Versions of DuckDB differ in which one they return for a text with an offset, so
    offsets are handled here.

    Parameters
    ----------
    table : Table or the like
        The table; without ``counts``, the SQL of ``clock`` and ``zoned`` is portable.
    column : str
        One of its columns.
    counts : bool
        Whether numbers are read as (milli-, micro-, nano-) seconds since 1970.
    zone : str, optional
        Time zone to convert times with an offset, and numbers, to; by default as written, and UTC.

    Attributes
    ----------
    clock : str
        Local time as a TIMESTAMP, without its offset; NULL where it cannot be read.
    instant : str
        Microseconds since 1970 in UTC; a time without an offset counts as UTC.
    moment : str
        TIMESTAMP that is equal for equal instants, regardless of the offset.
    zoned : str
        Whether an offset is written; FALSE for types without one.
    """

    def __init__(self, table: TypedColumns, column: str, *, counts: bool = True, zone: str | None = None) -> None:
        name, kind = quote_name(column), table.types()[column].upper()
        if kind.startswith("VARCHAR"):
            offset = f"coalesce(regexp_matches({name}, '{_OFFSET}'), false)"
            # Most times match this pattern, which saves the slower regular expression.
            self.zoned = f"CASE WHEN {name} LIKE '{_NO_OFFSET}' THEN false ELSE {offset} END"
            # Evaluated within CASE only: rows without an offset do not need it.
            instant = f"TRY_CAST(regexp_replace({name}, '{_BEFORE_OFFSET}', '\\1') AS TIMESTAMPTZ)"
            local = None if zone is None else _local(instant, zone)
            plain = f"regexp_extract({name}, '{_OFFSET}', 1)"
            written = f"CASE WHEN {half_of_day(column)} THEN NULL ELSE TRY_CAST({name} AS TIMESTAMP) END"
            epoch = _epoch(f"TRY_CAST({name} AS DOUBLE)")
            count = f"WHEN regexp_full_match({name}, '{_DIGITS}') THEN" if counts else None
            self.clock = (
                f"CASE WHEN {self.zoned} THEN {local or f'TRY_CAST({plain} AS TIMESTAMP)'} "
                f"{f'{count} make_timestamp({epoch})' if count else ''} ELSE {written} END"
            )
            self.moment = (
                f"CASE WHEN {self.zoned} THEN coalesce(make_timestamp(epoch_us({instant})), {self.clock}) "
                f"ELSE {self.clock} END"
            )
            self.instant = (
                f"CASE WHEN {self.zoned} THEN epoch_us({instant}) "
                f"{f'{count} {epoch}' if count else ''} ELSE epoch_us({written}) END"
            )
        elif counts and kind.startswith(_NUMBERS):
            self.zoned, self.instant = "false", _epoch(f"TRY_CAST({name} AS DOUBLE)")
            self.clock = self.moment = f"make_timestamp({self.instant})"
        else:
            self.zoned, self.clock = "false", f"TRY_CAST({name} AS TIMESTAMP)"
            self.moment = self.clock
            self.instant = f"epoch_us({self.clock})"
            if zone is not None and "TIME ZONE" in kind:
                self.clock = _local(name, zone)


def half_of_day(column: str) -> str:
    """Return the SQL condition that a text ends with AM or PM, which SQL does not understand."""
    name = quote_name(column)
    return f"({name} NOT LIKE '{_NO_OFFSET}' AND regexp_matches({name}, '{_HALF}'))"


def unreadable_time(table: TypedColumns, column: str) -> str:
    """Return the SQL condition that a value cannot be read as a time; stored timestamps always are."""
    name, kind = quote_name(column), table.types()[column]
    if kind in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        return "false"
    half = f" OR {half_of_day(column)}" if kind == "VARCHAR" else ""
    return f"({name} IS NOT NULL AND (TRY_CAST({name} AS TIMESTAMP) IS NULL{half}))"


def _epoch(number: str) -> str:
    """Return microseconds since 1970 of a number whose unit follows from its size."""
    units = " ".join(
        f"WHEN {number} >= 1e8 * {unit} AND {number} < {_LATEST} * {unit} THEN round({number} * {1_000_000 / unit})"
        for unit in (1.0, 1e3, 1e6, 1e9)
    )
    return f"TRY_CAST(CASE {units} END AS BIGINT)"


def _local(instant: str, zone: str) -> str:
    return f"timezone({quote_text(zone)}, {instant})"


def check_timezone(zone: str | None) -> None:
    """Raise if a time zone is unknown."""
    if zone is not None and zone not in zoneinfo.available_timezones():
        close = nearest(zone, zoneinfo.available_timezones())
        raise InputError(f"unknown time zone {zone!r}{close}; give one such as Europe/Paris")


def mixed_offsets(name: str, column: str, zoned: int, plain: int) -> InputError:
    """Return the error for a column in which only some times have a UTC offset."""
    return InputError(
        f"{name} mixes times with a UTC offset ({zoned:,} rows) and without one ({plain:,} rows) in column {column!r}; "
        "their order is ambiguous, so write all of them in one way"
    )
