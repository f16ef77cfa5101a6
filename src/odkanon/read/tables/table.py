"""A table that DuckDB can scan."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa

from odkanon.core.paths import plain
from odkanon.core.progress import Share
from odkanon.core.sql import connect as connect
from odkanon.core.sql import literal as literal
from odkanon.core.sql import quote_name as quote_name
from odkanon.core.sql import quote_text as quote_text
from odkanon.core.sql import write_csv as write_csv
from odkanon.errors import InputError
from odkanon.read.tables.once import selection

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
"""Types of DuckDB whose values are 64-bit integers."""


class Named(Protocol):
    """Anything with columns, and a name for messages."""

    @property
    def columns(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


class Typed(Named, Protocol):
    """Anything with columns whose types are known."""

    def types(self) -> Mapping[str, str]: ...  # noqa: D102


@dataclass(frozen=True)
class Check:
    """A reason to turn a row away, and the SQL condition under which it applies.

    ``unless`` is a condition under which none of several reasons in a row applies, quicker to test than all of them.
    """

    reason: str
    condition: str
    unless: str | None = None


@dataclass(frozen=True)
class Table:
    """A table that DuckDB can scan.

    Attributes
    ----------
    connection : duckdb.DuckDBPyConnection
        A connection of its own.
    scan : str
        What to select from.
    columns : tuple of str
        Names as they stand in the source.
    name : str
        What to call the table in messages.
    sha256 : str or None
        Of the file.
    checks : tuple of Check
        Reasons of the format itself to turn rows away.
    lines : int or None
        Rows that a text file should have by its lines; None where that cannot be told.
    plain : bool
        Whether numbers and times stand as in the file, and not respelled by `odkanon.read.tables.number_formats`.
    keeper : object
        What has to live as long as the table.
    """

    connection: duckdb.DuckDBPyConnection
    scan: str
    columns: tuple[str, ...]
    name: str
    sha256: str | None = None
    checks: tuple[Check, ...] = ()
    lines: int | None = None
    plain: bool = True
    keeper: object = None

    def select(self, values: Mapping[str, str]) -> str:
        """Return the query for some expressions, by name, over all readable rows."""
        return selection({quote_name(name): sql for name, sql in values.items()}, self.scan, self.columns)

    def fetch(self, values: Mapping[str, str]) -> pa.Table:
        """Return some expressions, by name, over all readable rows."""
        try:
            return self.connection.sql(self.select(values)).to_arrow_table()
        except duckdb.Error as error:
            raise InputError(f"{self.name} cannot be read: {first_line(error)}") from None

    def kept(self) -> Table:
        """Return the table with its rows at hand, to be read more than once without its file."""
        try:
            self.connection.execute(f"CREATE TABLE kept AS SELECT * FROM {self.scan}")
        except duckdb.Error as error:
            raise InputError(f"{self.name} cannot be read: {first_line(error)}") from None
        return replace(self, scan="kept")

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return the first row that meets a condition, for a message: where it is, and what stands there."""
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

    def types(self) -> dict[str, str]:
        """Return the SQL type of each column."""
        return self._types

    @cached_property
    def _types(self) -> dict[str, str]:
        rows = self.connection.execute(f"DESCRIBE SELECT * FROM {self.scan}").fetchall()
        return {row[0]: row[1] for row in rows}

    def is_whole(self, column: str) -> bool:
        """Tell whether a column holds integers of up to 64 bits."""
        return self.types()[column] in _WHOLE

    def unreadable_lines(self) -> int:
        """Return how many lines of a CSV had too few or too many columns or were not UTF-8, once fetched.

        Raise where one of them is the first of several that an open quote makes one.
        """
        if self.scan.startswith("read_parquet("):  # to be told that there are no such tables takes its time
            return 0
        lines = rejected_lines(self.connection)
        error = open_quote(self.connection) if lines else None
        if error is not None:
            raise error
        return lines


_REJECTED = "reject_errors JOIN reject_scans USING (scan_id, file_id)"


def rejected_lines(connection: duckdb.DuckDBPyConnection, files: Sequence[Path] | None = None) -> int:
    """Return how many lines of CSV files (of all by default) DuckDB could not read so far."""
    only = "" if files is None else f"WHERE file_path IN ({', '.join(quote_text(str(plain(each))) for each in files)})"
    try:
        # What is read more than once is written down each time.
        rows = connection.execute(
            f"SELECT count(*) FROM (SELECT DISTINCT file_path, line FROM {_REJECTED} {only})"
        ).fetchall()
    except duckdb.CatalogException:
        return 0
    return int(rows[0][0])


def open_quote(connection: duckdb.DuckDBPyConnection) -> InputError | None:
    """Return what to say of the first row that DuckDB could not read and that has several lines; None without one."""
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
        f"line {line:,} of {Path(path).name} opens a quote that does not end there, and takes the lines after it for "
        "one value; close it, or write it twice if it is part of a value"
    )


def measure_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a connection tell how far its query is; nothing is printed."""
    with contextlib.suppress(duckdb.InvalidInputException):  # a notebook in which DuckDB cannot draw a bar
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")


def share_of(connection: duckdb.DuckDBPyConnection) -> Share:
    """Return how to ask for the share of a query that is done, while another thread waits for it."""

    def share() -> float | None:
        try:
            percent = connection.query_progress()
        except duckdb.Error:  # it has ended meanwhile
            return None
        return percent / 100 if percent > 0 else None

    return share


def first_line(error: Exception) -> str:
    """Return the first line of what an error says."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
