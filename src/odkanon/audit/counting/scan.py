"""A file of trips as raw columns for DuckDB, mapped to standard names."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

import duckdb
from duckdb import DuckDBPyConnection as Connection

from odkanon.core.paths import plain
from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import FileMissingError, InputError, UnreadableFileError
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.column_names import detect_content, find_layout, place_columns, resolve

_CHUNK = 1 << 20

TripsSource = InputSpec
"""A file of trips and how to read it. The filter of a release takes precedence over ``where``."""


@dataclass(frozen=True)
class Scan:
    """A file that DuckDB can scan."""

    sql: str  # the table expression; all columns of a CSV are text
    columns: tuple[str, ...]  # the names in the file
    name: str
    sha256: str | None
    found: Mapping[str, str]  # the columns by standard name
    kind: str  # ``"trips"`` with coordinates, or ``"od"`` for records between zones


def open_scan(connection: Connection, source: TripsSource) -> Scan:
    """Open a table of trips: plain CSV and Parquet directly, other formats through the readers of the program."""
    path = Path(source.source) if isinstance(source.source, str | Path) else None
    sql, digest = (None, None) if path is None else _file_sql(path, source)
    table = source.open()
    if sql is None or find_layout(_described(connection, sql, source.name)) is not None or not table.plain:
        good = [f"NOT coalesce({check.condition}, false)" for check in table.checks]
        query = f"SELECT * FROM {table.scan} WHERE {' AND '.join(good) or 'true'}"
        connection.register("opened", table.connection.sql(query).to_arrow_table())
        sql, digest = "opened", table.sha256
    if source.place is not None and sql != "opened":
        raw = Scan(sql, _described(connection, sql, source.name), source.name, digest, {}, "od")
        added = place_columns(raw, source.place, source.subject.unit)
        own = [quote_name(name) for name in raw.columns if name not in added]
        sql = f"(SELECT {', '.join([*own, *(f'{each} AS {name}' for name, each in added.items())])} FROM {sql})"
    scan = Scan(sql, _described(connection, sql, source.name), source.name, digest, {}, "od")
    found = resolve(scan, source.columns, also=None)
    kind = source.kind or ("od" if source.tree is not None else detect_content(scan, found))
    return replace(scan, found=found, kind=kind)


def _file_sql(path: Path, source: TripsSource) -> tuple[str | None, str | None]:
    """Return the SQL for one CSV or Parquet file, and its digest; None for anything else."""
    if path.is_dir():
        return None, None
    if not path.is_file():
        raise FileMissingError.at(path, advice="check the path of the trips")
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if magic == b"PAR1":
        return f"read_parquet({plain_path(path)}, hive_partitioning=false)", digest
    gzipped = magic[:2] == b"\x1f\x8b"
    if path.suffixes[-1:] in ([".gz"], [".csv"], [".txt"], [".tsv"]) or gzipped:
        sql = _csv_sql(path, source, gzipped=gzipped)
        return sql, None if sql is None else digest
    return None, None


def plain_path(path: Path) -> str:
    """Return a path as a literal for DuckDB, to which ``[``, ``*`` and ``?`` are patterns and ``~`` is home."""
    return quote_text(re.sub(r"([*?\[])", r"[\1]", str(plain(path))))


def _described(connection: Connection, sql: str, path: object) -> tuple[str, ...]:
    try:
        return tuple(row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall())
    except duckdb.Error as error:
        raise UnreadableFileError.because(path, error) from None


def _csv_sql(path: Path, source: TripsSource, *, gzipped: bool) -> str | None:
    """Return the SQL for a CSV file; None if DuckDB cannot read its encoding or its line endings."""

    def opened() -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(path)) if gzipped else path.open("rb")

    try:
        with opened() as file:
            first = file.readline()
        with opened() as file:
            utf8, uniform = _inspect_text(file)
        encoding = codecs.lookup(source.encoding or ("utf-8" if utf8 else "utf-16")).name
        if not uniform or encoding not in ("utf-8", "iso8859-1"):
            return None
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be unpacked ({error})") from None
    line = first.decode("utf-8-sig" if encoding == "utf-8" else encoding).rstrip("\r\n")
    delimiter = source.delimiter or max(",;\t|", key=line.count)
    header = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    names = [name or f"column {at}" for at, name in enumerate(header, 1)]
    if len(set(names)) < len(names) or not any(header):
        raise InputError(f"the first line of {path} is not a header with a unique name for each column")
    types = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({plain_path(path)}, auto_detect=false, header=true, delim={quote_text(delimiter)}, quote='\"', "
        f"escape='\"', columns={{{types}}}, compression='{'gzip' if gzipped else 'none'}', store_rejects=true, "
        f"encoding='{'utf-8' if encoding == 'utf-8' else 'latin-1'}')"
    )


def _inspect_text(file: IO[bytes]) -> tuple[bool, bool]:
    """Return whether a text is UTF-8, and whether all its lines end the same way."""
    decoder, utf8, ends, windows, last = codecs.getincrementaldecoder("utf-8")(), True, 0, 0, b""
    while chunk := file.read(_CHUNK):
        ends += chunk.count(b"\n")
        windows += chunk.count(b"\r\n") + (last == b"\r" and chunk.startswith(b"\n"))
        last = chunk[-1:]
        try:
            _ = decoder.decode(chunk) if utf8 else ""
        except UnicodeDecodeError:
            utf8 = False
    return utf8 and not decoder.getstate()[0], windows in (0, ends) and (ends > 0 or last != b"\r")
