"""DuckDB as all layers use it: isolated connections, quoting, and CSV files."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa

from odkanon.core.system import plain
from odkanon.errors import is_disk_full

_STATISTICS = "statistics_propagation"
"""Bounds values by the minimum and maximum of a Parquet file, which ignore NaN: every value would count as finite."""
_TYPES = "type_pushdown"
"""Reads a CSV column as numbers if a query casts it, and so loses the lines that are not numbers."""


def connect() -> duckdb.DuckDBPyConnection:
    """Return a new DuckDB that downloads nothing, prints nothing, and ignores the time zone of the machine."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET disabled_optimizers = '{_STATISTICS}'")
    with contextlib.suppress(duckdb.Error):  # a version without this optimizer
        connection.execute(f"SET disabled_optimizers = '{_STATISTICS},{_TYPES}'")
    with contextlib.suppress(duckdb.InvalidInputException):  # a notebook in which DuckDB cannot draw a bar
        connection.execute("SET enable_progress_bar_print = false")
    return connection


def literal(path: Path) -> str:
    """Return a path as an SQL literal that matches this file only: its characters are not read as a pattern."""
    return quote_text("".join(f"[{each}]" if each in "*?[" else each for each in str(plain(path))))


def quote_text(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_names(names: Iterable[str]) -> dict[str, str]:
    """Return the SQL identifier of each name."""
    return {name: quote_name(name) for name in names}


def write_csv(
    table: pa.Table | pa.RecordBatchReader, path: Path, connection: duckdb.DuckDBPyConnection | None = None
) -> None:
    """Write a table as CSV (gzipped if the name ends in .gz), quoting only what needs it.

    Opening a connection takes longer than writing a small table, so an open one can be passed in.
    """
    connection = connect() if connection is None else connection
    connection.register("written", table)
    try:
        connection.execute(f"COPY (SELECT * FROM written) TO {quote_text(str(plain(path)))} (FORMAT csv, HEADER)")
    except duckdb.IOException as error:
        code = errno.ENOSPC if is_disk_full(error) else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from None
