"""Any table as something that DuckDB can scan: CSV, gzipped CSV, Parquet, or a table in memory."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from odkanon.errors import InputError, is_disk_full
from odkanon.read.tables.datasets import dataset_files, dataset_sha256, partitions, remote
from odkanon.read.tables.text import TextFormat, file_sha256, look_at_text

log = logging.getLogger(__name__)

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
    """A reason to turn a row away, and the SQL condition under which it applies."""

    reason: str
    condition: str


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
    keeper: object = None

    def fetch(self, expressions: Sequence[str]) -> pa.Table:
        """Return the given expressions over all readable rows."""
        try:
            return self.connection.sql(f"SELECT {', '.join(expressions)} FROM {self.scan}").to_arrow_table()
        except duckdb.Error as error:
            raise InputError(f"{self.name} cannot be read: {_first_line(error)}") from None

    def kept(self) -> Table:
        """Return the table with its rows at hand, to be read more than once without its file."""
        try:
            self.connection.execute(f"CREATE TABLE kept AS SELECT * FROM {self.scan}")
        except duckdb.Error as error:
            raise InputError(f"{self.name} cannot be read: {_first_line(error)}") from None
        return replace(self, scan="kept")

    def types(self) -> dict[str, str]:
        """Return the SQL type of each column."""
        rows = self.connection.execute(f"DESCRIBE SELECT * FROM {self.scan}").fetchall()
        return {row[0]: row[1] for row in rows}

    def is_whole(self, column: str) -> bool:
        """Tell whether a column holds integers of up to 64 bits."""
        return self.types()[column] in _WHOLE

    def unreadable_lines(self) -> int:
        """Return how many lines of a CSV had too few or too many columns or were not UTF-8, once fetched."""
        try:
            rows = self.connection.execute(
                "SELECT count(*) FROM (SELECT DISTINCT scan_id, file_id, line FROM reject_errors)"
            ).fetchall()
        except duckdb.CatalogException:
            return 0
        return int(rows[0][0])


def open_table(source: Any, text: TextFormat = TextFormat()) -> Table:  # noqa: B008 - it is frozen
    """Return a table for a path, or for anything that speaks the Arrow interface or that DuckDB can register.

    Parameters
    ----------
    source : path or table
        What to open.
    text : TextFormat
        How it is written, if it is a text file.
    """
    connection = connect()
    if not isinstance(source, str | Path):
        return _open_in_memory(connection, source)
    address = remote(source)
    if address is not None:
        raise InputError(
            f"{address} lies in an object store; read it with Spark, or copy it here first", option="engine spark"
        )
    files = dataset_files(source)
    if files is not None:
        return _open_dataset(connection, str(source), files)
    path = Path(source)
    _check_file(path)
    with path.open("rb") as file:
        magic = file.read(4)
    sha256 = file_sha256(path)
    if magic == b"PAR1":
        scan = f"read_parquet({literal(path)}, hive_partitioning=false)"
        return Table(connection, scan, _described(connection, scan, path), str(path), sha256)
    seen = look_at_text(path, text)
    scan = _csv_scan(literal(seen.path), seen.delimiter, seen.columns, gzipped=seen.gzipped)
    return Table(connection, scan, seen.columns, str(path), sha256, lines=seen.lines, keeper=seen.keeper)


def csv_tables(files: Sequence[Path]) -> list[Table]:
    """Return many CSV files as one table for each layout among them, all of one connection.

    Each has, besides the columns of its files, ``filename``. Files without a single byte are passed over.
    """
    connection = connect()
    layouts: dict[tuple[str, tuple[str, ...], bool], list[Path]] = {}
    keepers: list[object] = []
    for path in files:
        if path.stat().st_size == 0:
            continue
        seen = look_at_text(path)
        keepers.append(seen.keeper)
        layouts.setdefault((seen.delimiter, seen.columns, seen.gzipped), []).append(seen.path)
    if not layouts:
        raise InputError(f"all {len(files):,} CSV files are empty; each needs a header and rows")
    tables = []
    for (delimiter, columns, gzipped), paths in layouts.items():
        listed = "[" + ", ".join(map(literal, paths)) + "]"
        scan = _csv_scan(listed, delimiter, columns, gzipped=gzipped, more=", filename=true")
        tables.append(Table(connection, scan, columns, str(paths[0]), keeper=keepers))
    return tables


def connect() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB of its own that fetches nothing, prints nothing, and does not depend on the machine's zone."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar_print = false")
    return connection


def _csv_scan(source: str, delimiter: str, columns: Sequence[str], *, gzipped: bool, more: str = "") -> str:
    """Return the SQL to scan CSV as texts; nothing is left to the sniffer, which looks at the first rows only."""
    types = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in columns)
    return (
        f"read_csv({source}, auto_detect=false, header=true, delim={quote_text(delimiter)}, quote='\"', escape='\"', "
        f"columns={{{types}}}, compression='{'gzip' if gzipped else 'none'}', store_rejects=true, "
        f"hive_partitioning=false{more})"
    )


def _open_dataset(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> Table:
    for file in files:
        with file.open("rb") as content:
            if content.read(4) != b"PAR1":
                raise InputError(f"{file} is not a Parquet file; a dataset of several files has to be Parquet")
    listed = f"[{', '.join(map(literal, files))}]"
    own = _described(connection, f"read_parquet({listed}, hive_partitioning=false)", name)
    made = partitions(files)
    for key, folder in made.items():
        if key.lower() in map(str.lower, own):
            raise InputError(f"{name} has a column {key!r}, which folder {folder!r} would replace; rename one of them")
    if made:
        log.warning("%s: what the names of folders say is read as columns (%s)", name, ", ".join(made.values()))
    scan = f"read_parquet({listed}, hive_partitioning=true)"
    return Table(connection, scan, _described(connection, scan, name), name, dataset_sha256(files))


def literal(path: Path) -> str:
    """Return a path as an SQL literal of which DuckDB takes no character for a pattern."""
    return quote_text("".join(f"[{each}]" if each in "*?[" else each for each in str(path)))


def quote_text(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table as CSV (gzipped if the name ends in .gz), quoting only what needs it."""
    connection = connect()
    connection.register("written", table)
    try:
        connection.execute(f"COPY (SELECT * FROM written) TO {quote_text(str(path))} (FORMAT csv, HEADER)")
    except duckdb.IOException as error:
        code = errno.ENOSPC if is_disk_full(error) else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from None


def _open_in_memory(connection: duckdb.DuckDBPyConnection, source: Any) -> Table:
    try:
        connection.register("source", pa.table(source) if hasattr(source, "__arrow_c_stream__") else source)
    except (duckdb.Error, pa.ArrowInvalid, TypeError) as error:
        raise InputError(
            f"a {type(source).__name__} cannot be read as a table ({_first_line(error)}); give a path, or a table "
            "of pandas, polars, Arrow or DuckDB"
        ) from None
    return Table(connection, "source", _described(connection, "source", "the table"), "the table")


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty; it needs a header and rows")


def _described(connection: duckdb.DuckDBPyConnection, scan: str, name: object) -> tuple[str, ...]:
    try:
        return tuple(row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall())
    except duckdb.Error as error:
        raise InputError(
            f"{name} starts like a Parquet file but cannot be read ({_first_line(error)}); "
            "it may be truncated, so copy or export it again"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
