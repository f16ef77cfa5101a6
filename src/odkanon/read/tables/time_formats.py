"""Times in whatever way people write them, as SQL: with a UTC offset or without, or as seconds since 1970."""

from __future__ import annotations

import zoneinfo

from odkanon.errors import InputError, nearest
from odkanon.read.tables.open_table import Typed, quote_name, quote_text

_OFFSET = r"(?i)^(.*:\d{2}(\.\d+)?)\s*(Z|UTC|GMT|[+-]\d{2}(:?\d{2})?)$"
_BEFORE_OFFSET = r"\s+(Z|[+-]\d{2}:?\d*)$"
_NO_OFFSET = "%:__:__"
"""Minutes and seconds at the end; before an offset with a colon there would be a sign."""
_HALF = r"(?i)\s[ap]m\s*$"
"""Which half of a day it is; DuckDB passes over words after a time, and 8 pm would be 8 in the morning."""
_DIGITS = r"\s*\d{9,19}(\.\d+)?\s*"
_LATEST = 4_102_444_800
"""Seconds to the year 2100. A larger count of seconds is one of milli-, micro- or nanoseconds, or no count at all."""

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "UBIGINT", "UINTEGER")


class TimeColumn:
    """The SQL for one column of times.

    Two readings are needed: the *instant*, by which points are put in order whatever their offsets, and the
    *clock* on the wall, by which people talk of morning and evening. Which DuckDB gives for a text with an offset
    has changed between its versions, so the offset is dealt with here.

    Parameters
    ----------
    table : Table or the like
        The table; without ``counts``, the SQL for ``clock`` and ``zoned`` is in words that every database knows.
    column : str
        One of its columns.
    counts : bool
        Whether numbers are read as seconds (or thousandths of them, and so on) since 1970.
    zone : str, optional
        On whose clock times with an offset, and counts, are put; as they are written, and in UTC, by default.

    Attributes
    ----------
    clock : str
        TIMESTAMP as written, without its offset; NULL where it cannot be read.
    instant : str
        Microseconds since 1970 in UTC; a time without an offset counts as UTC.
    moment : str
        TIMESTAMP that is the same for the same moment, by whatever offset it is written.
    zoned : str
        Whether an offset is written; FALSE where none can be.
    """

    def __init__(self, table: Typed, column: str, *, counts: bool = True, zone: str | None = None) -> None:
        name, kind = quote_name(column), table.types()[column].upper()
        if kind.startswith("VARCHAR"):
            offset = f"coalesce(regexp_matches({name}, '{_OFFSET}'), false)"
            # Most times are written so, and looking at them no further is what makes reading fast.
            self.zoned = f"CASE WHEN {name} LIKE '{_NO_OFFSET}' THEN false ELSE {offset} END"
            # Not as `once` would work it out, for all rows: those without an offset need it not.
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
    """Return the SQL condition under which a text ends with a half of a day, by which it is no time in SQL."""
    name = quote_name(column)
    return f"({name} NOT LIKE '{_NO_OFFSET}' AND regexp_matches({name}, '{_HALF}'))"


def _epoch(number: str) -> str:
    """Return microseconds since 1970 of a count whose unit shows in its size."""
    units = " ".join(
        f"WHEN {number} >= 1e8 * {unit} AND {number} < {_LATEST} * {unit} THEN round({number} * {1_000_000 / unit})"
        for unit in (1.0, 1e3, 1e6, 1e9)
    )
    return f"TRY_CAST(CASE {units} END AS BIGINT)"


def _local(instant: str, zone: str) -> str:
    return f"timezone({quote_text(zone)}, {instant})"


def check_timezone(zone: str | None) -> None:
    """Raise if a zone is not known."""
    if zone is not None and zone not in zoneinfo.available_timezones():
        close = nearest(zone, zoneinfo.available_timezones())
        raise InputError(f"{zone!r} is no known time zone{close}; give one such as Europe/Paris")


def mixed_offsets(name: str, column: str, zoned: int, plain: int) -> InputError:
    """Return the error for a column in which only some times say how far from UTC they are."""
    return InputError(
        f"{name} mixes times with a UTC offset ({zoned:,} rows) and without one ({plain:,} rows) in column {column!r}; "
        "which of them came first cannot be told, so write all of them in one way"
    )
