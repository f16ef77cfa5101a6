"""Any table as something that DuckDB can scan: CSV, gzipped CSV, Parquet, or a table in memory."""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from odkanon.errors import InputError, is_disk_full
from odkanon.read.tables.datasets import dataset_files, dataset_sha256, remote

_HEAD_BYTES = 1 << 20
_DELIMITERS = ",;\t|"
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
    """

    connection: duckdb.DuckDBPyConnection
    scan: str
    columns: tuple[str, ...]
    name: str
    sha256: str | None = None
    checks: tuple[Check, ...] = ()

    def fetch(self, expressions: Sequence[str]) -> pa.Table:
        """Return the given expressions over all readable rows."""
        try:
            return self.connection.sql(f"SELECT {', '.join(expressions)} FROM {self.scan}").to_arrow_table()
        except duckdb.Error as error:
            raise InputError(f"{self.name} cannot be read: {_first_line(error)}") from None

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


def open_table(source: Any) -> Table:
    """Return a table for a path, or for anything that speaks the Arrow interface or that DuckDB can register."""
    connection = connect()
    if not isinstance(source, str | Path):
        return _open_in_memory(connection, source)
    address = remote(source)
    if address is not None:
        raise InputError(f"{address} lies in an object store; read it with --engine spark, or copy it here first")
    files = dataset_files(source)
    if files is not None:
        return _open_dataset(connection, str(source), files)
    path = Path(source)
    _check_file(path)
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    quoted = quote_text(str(path))
    if magic == b"PAR1":
        scan = f"read_parquet({quoted})"
        return Table(connection, scan, _described(connection, scan, path), str(path), sha256)
    gzipped = magic[:2] == b"\x1f\x8b"
    delimiter, columns = _csv_header(path, gzipped=gzipped)
    return Table(connection, _csv_scan(quoted, delimiter, columns, gzipped=gzipped), columns, str(path), sha256)


def csv_tables(files: Sequence[Path]) -> list[Table]:
    """Return many CSV files as one table for each layout among them, all of one connection.

    Each has, besides the columns of its files, ``filename``. Files without a single byte are passed over.
    """
    connection = connect()
    layouts: dict[tuple[str, tuple[str, ...], bool], list[Path]] = {}
    for path in files:
        if path.stat().st_size == 0:
            continue
        with path.open("rb") as file:
            gzipped = file.read(2) == b"\x1f\x8b"
        layouts.setdefault((*_csv_header(path, gzipped=gzipped), gzipped), []).append(path)
    if not layouts:
        raise InputError(f"all {len(files):,} CSV files are empty; each needs a header and rows")
    tables = []
    for (delimiter, columns, gzipped), paths in layouts.items():
        listed = "[" + ", ".join(quote_text(str(path)) for path in paths) + "]"
        scan = _csv_scan(listed, delimiter, columns, gzipped=gzipped, more=", filename=true")
        tables.append(Table(connection, scan, columns, str(paths[0])))
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
        f"columns={{{types}}}, compression='{'gzip' if gzipped else 'none'}', store_rejects=true{more})"
    )


def _open_dataset(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> Table:
    for file in files:
        with file.open("rb") as content:
            if content.read(4) != b"PAR1":
                raise InputError(f"{file} is not a Parquet file; a dataset of several files has to be Parquet")
    scan = f"read_parquet([{', '.join(quote_text(str(file)) for file in files)}], hive_partitioning=true)"
    return Table(connection, scan, _described(connection, scan, name), name, dataset_sha256(files))


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


def _csv_header(path: Path, *, gzipped: bool) -> tuple[str, tuple[str, ...]]:
    try:
        with gzip.open(path) if gzipped else path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be unpacked ({error}); it may be truncated, so copy it again") from None
    if b"\0" in head:
        raise InputError(f"{path} is a binary file; give a CSV, gzipped CSV or Parquet file")
    try:
        header = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD_BYTES else "ignore")
    except UnicodeDecodeError:
        header = head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace")
        if "\ufffd" in header:
            raise InputError(f"{path} is not UTF-8 text; save it as UTF-8 CSV or as Parquet") from None
    line = header.splitlines()[0] if header.strip() else ""
    delimiter = max(_DELIMITERS, key=line.count)
    columns = tuple(name.strip() for name in next(csv.reader(io.StringIO(line), delimiter=delimiter), []))
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated or not any(columns):
        what = f"names column {repeated[0]!r} twice" if repeated else "has no header"
        raise InputError(f"the first line of {path} {what}; give each column one name")
    return delimiter, columns


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
