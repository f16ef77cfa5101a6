"""Tables that DuckDB can scan, and the SQL helpers that all code about tables shares."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa

from odkanon.core.progress import Share
from odkanon.core.sql import quote_name, quote_names, quote_text
from odkanon.core.system import plain
from odkanon.errors import InputError, UnreadableFileError
from odkanon.read.tables.shared_expressions import selection

LISTED_VALUES = 20
"""Values of a column that a message lists at most."""
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
"""DuckDB types whose values fit in 64-bit integers."""


class NamedColumns(Protocol):
    """Anything with columns, and a name for messages."""

    @property
    def columns(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


class TypedColumns(NamedColumns, Protocol):
    """Anything with columns of known types."""

    def types(self) -> Mapping[str, str]: ...  # noqa: D102


@dataclass(frozen=True)
class RowCheck:
    """A reason to reject a row, and the SQL condition under which it applies.

    ``unless`` rules out all consecutive checks that share it, and is faster to test than each of them.
    """

    reason: str
    condition: str
    unless: str | None = None


@dataclass(frozen=True)
class SourceTable:
    """A table that DuckDB can scan."""

    connection: duckdb.DuckDBPyConnection
    """Connection for this table only."""
    scan: str
    """SQL to select from."""
    columns: tuple[str, ...]
    """Names in the source."""
    name: str
    """Name of the table in messages."""
    sha256: str | None = None
    """Digest of the file."""
    checks: tuple[RowCheck, ...] = ()
    """Checks of its layout."""
    lines: int | None = None
    """Expected number of rows of a text file; None where its lines do not determine it."""
    plain: bool = True
    """Whether numbers and times are as in the file, rather than converted by `odkanon.read.tables.number_formats`."""
    keeper: object = None
    """Whatever must outlive the table."""

    def select(self, values: Mapping[str, str]) -> str:
        """Return the query for some expressions, by name, over all readable rows."""
        names = quote_names(values)
        return selection({names[name]: sql for name, sql in values.items()}, self.scan, self.columns)

    def fetch(self, values: Mapping[str, str]) -> pa.Table:
        """Return some expressions, by name, over all readable rows."""
        try:
            return self.connection.sql(self.select(values)).to_arrow_table()
        except duckdb.Error as error:
            raise UnreadableFileError.because(self.name, first_line(error)) from None

    def kept(self) -> SourceTable:
        """Return the table with its rows in memory, to read them more than once."""
        try:
            self.connection.execute(f"CREATE TABLE kept AS SELECT * FROM {self.scan}")
        except duckdb.Error as error:
            raise UnreadableFileError.because(self.name, first_line(error)) from None
        return replace(self, scan="kept")

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return the first row that meets a condition, for a message: its number and the values in some columns."""
        names = ", ".join(map(quote_name, columns))
        rows = self.connection.execute(
            f"SELECT n, {names} FROM (SELECT row_number() OVER () AS n, {names}, ({condition}) AS met "
            f"FROM {self.scan}) WHERE met LIMIT 1"
        ).fetchall()
        if not rows:
            return ""
        number, *values = rows[0]
        where = f"row {number}" if self.lines is None else f"line {number + 1}"
        return f"{where}: {', '.join(f'{name} = {value!r}' for name, value in zip(columns, values, strict=True))}"

    def values(self, column: str) -> list[str]:
        """Return the distinct values of a column, for a message: some, in order, if there are many."""
        name = quote_name(column)
        found = self.connection.execute(
            f"SELECT DISTINCT CAST({name} AS VARCHAR) FROM {self.scan} WHERE {name} IS NOT NULL ORDER BY 1 "
            f"LIMIT {LISTED_VALUES}"
        ).fetchall()
        return [value for (value,) in found]

    def types(self) -> dict[str, str]:
        """Return the SQL type of each column."""
        return self._types

    @cached_property
    def _types(self) -> dict[str, str]:
        rows = self.connection.execute(f"DESCRIBE SELECT * FROM {self.scan}").fetchall()
        return {row[0]: row[1] for row in rows}

    def is_whole(self, column: str) -> bool:
        """Return whether a column holds integers of up to 64 bits."""
        return self.types()[column] in _WHOLE

    def unreadable_lines(self) -> int:
        """Return how many lines of a CSV had a wrong number of columns or were not UTF-8, once fetched.

        Raise if an unclosed quote merged several lines into one of them.
        """
        if self.scan.startswith("read_parquet("):  # the catalogue lookup is slow
            return 0
        lines = rejected_lines(self.connection)
        error = open_quote(self.connection) if lines else None
        if error is not None:
            raise error
        return lines


_REJECTED = "reject_errors JOIN reject_scans USING (scan_id, file_id)"


def rejected_lines(connection: duckdb.DuckDBPyConnection, files: Sequence[Path] | None = None) -> int:
    """Return how many lines of CSV files (by default, of all) DuckDB could not read so far."""
    only = "" if files is None else f"WHERE file_path IN ({', '.join(quote_text(str(plain(each))) for each in files)})"
    try:
        # Each scan of a file records its lines anew.
        rows = connection.execute(
            f"SELECT count(*) FROM (SELECT DISTINCT file_path, line FROM {_REJECTED} {only})"
        ).fetchall()
    except duckdb.CatalogException:
        return 0
    return int(rows[0][0])


def open_quote(connection: duckdb.DuckDBPyConnection) -> InputError | None:
    """Return the error for the first unreadable row that spans several lines; None if there is none."""
    try:
        found = connection.execute(
            f"SELECT file_path, line FROM {_REJECTED} WHERE regexp_matches(trim(csv_line, chr(10) || chr(13)), '\\n') "
            "ORDER BY file_path, line LIMIT 1"
        ).fetchall()
    except duckdb.CatalogException:
        return None
    if not found:
        return None
    path, line = found[0]
    return InputError(
        f"line {line:,} of {Path(path).name} has an unclosed quote, which merges the following lines into "
        "one value; close it, or double it if it is part of a value"
    )


def measure_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Make a connection track the progress of its query, without printing it."""
    with contextlib.suppress(duckdb.InvalidInputException):  # a notebook where DuckDB cannot draw a bar
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")


def share_of(connection: duckdb.DuckDBPyConnection) -> Share:
    """Return a function for the finished share of a query that another thread waits for."""

    def share() -> float | None:
        try:
            percent = connection.query_progress()
        except duckdb.Error:  # the query has ended
            return None
        return percent / 100 if percent > 0 else None

    return share


def first_line(error: Exception) -> str:
    """Return the first line of the message of an error."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
