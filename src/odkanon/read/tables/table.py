"""Tables that DuckDB can scan, and the SQL helpers that all code about tables shares."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa

from odkanon.core.progress import Share
from odkanon.core.sql import quote_name, quote_names, quote_text
from odkanon.core.system import plain
from odkanon.errors import InputError, UnreadableFileError

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
    sources: tuple[str, ...] = ()
    """Columns of the source that others of its layout are computed from."""
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


_NAME = r'"(?:[^"]|"")*"'
_TEXT = r"'(?:[^']|'')*'"
_READ = re.compile(rf"(?<!\w)(?P<part>TRY_CAST\({_NAME} AS \w+\))|{_TEXT}|{_NAME}")
"""A column parsed as a number or a time; this never fails, so it may be evaluated for all rows."""
_QUOTED = re.compile(rf"{_TEXT}|{_NAME}")
_BRACKETS = re.compile(rf"{_TEXT}|{_NAME}|(?P<opens>\(|\bCASE\b)|(?P<closes>\)|\bEND\b)")


def selection(values: Mapping[str, str], scan: str, taken: Collection[str]) -> str:
    """Return the query for some expressions over a table, with common subexpressions evaluated once.

    DuckDB evaluates a subexpression again wherever it occurs inside a ``CASE``, and row checks consist of these.
    Columns that are parsed more than once are evaluated first, then selected expressions that occur in others.

    * ``values``: SQL expressions by quoted name.
    * ``scan``: SQL to select from.
    * ``taken``: the names of its columns.

    Examples
    --------
    >>> x = 'TRY_CAST("x" AS DATE)'
    >>> print(selection({"y": f"{x} = {x}"}, "t", ["x"]))
    SELECT " shared 0" = " shared 0" AS y FROM (SELECT *, TRY_CAST("x" AS DATE) AS " shared 0" FROM t)
    """
    lower = {name.lower() for name in taken}
    free = (f'" shared {at}"' for at in count() if f" shared {at}" not in lower)
    values = dict(values)
    while parts := _parsed_twice(values.values()) or _contained_in_others(values.values()):
        names = {part: next(free) for part in parts}
        scan = f"(SELECT *, {_listed({name: part for part, name in names.items()})} FROM {scan})"
        values = {name: _renamed(sql, names) for name, sql in values.items()}
    return f"SELECT {_listed(values)} FROM {scan}"


def _parsed_twice(expressions: Iterable[str]) -> list[str]:
    """Return the casts of columns that occur more than once."""
    times = Counter(found["part"] for sql in expressions for found in _READ.finditer(sql))
    return [part for part, often in times.items() if part is not None and often > 1]


def _contained_in_others(expressions: Collection[str]) -> list[str]:
    """Return the expressions that occur in others, and that contain no other such."""
    terms = filter(_is_term, dict.fromkeys(expressions))
    shared = [term for term in terms if sum(_occurs_in(term, sql) for sql in expressions) > 1]
    return [term for term in shared if not any(_occurs_in(other, term) for other in shared if other != term)]


def _occurs_in(part: str, sql: str) -> bool:
    """Return whether a part occurs in an expression outside of literals and identifiers."""
    return next(_places(part, sql), None) is not None


def _places(part: str, sql: str) -> Iterator[int]:
    """Yield the positions of a part outside of literals and identifiers; compiling patterns would be slower."""
    at = sql.find(part)
    while at >= 0:
        begins = at == 0 or not (sql[at - 1].isalnum() or sql[at - 1] == "_")
        if begins and not any(first <= at < end for first, end in _quoted(sql)):
            yield at
        at = sql.find(part, at + 1)


@lru_cache(maxsize=256)
def _quoted(sql: str) -> list[tuple[int, int]]:
    """Return the positions of the literals and identifiers of an expression."""
    return [found.span() for found in _QUOTED.finditer(sql)]


def _is_term(sql: str) -> bool:
    """Return whether an expression is a single call or CASE, which an identifier can replace anywhere."""
    if not re.match(r"\w+\(|CASE\b", sql):
        return False
    depth = 0
    for found in _BRACKETS.finditer(sql):
        depth += (found["opens"] is not None) - (found["closes"] is not None)
        if not depth and found["closes"] is not None:
            return found.end() == len(sql)
    return False


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    """Return an expression with some parts, none of which contains another, replaced by names."""
    found = sorted((at, part) for part in names for at in _places(part, sql))
    pieces, done = [], 0
    for at, part in found:
        pieces += [sql[done:at], names[part]]
        done = at + len(part)
    return "".join([*pieces, sql[done:]])


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in values.items())
