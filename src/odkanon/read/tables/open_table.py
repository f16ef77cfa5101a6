"""Any source as a table that DuckDB can scan: files of many types, several files, folders, tables, own readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from odkanon.core.registry import Registry
from odkanon.core.sql import connect, literal, quote_text
from odkanon.core.system import remote
from odkanon.errors import InputError, InvalidValueError, UnreadableFileError
from odkanon.read.tables.containers import Unpacked, unpack
from odkanon.read.tables.datasets import (
    check_distinct_files,
    check_partitions,
    dataset_files,
    dataset_sha256,
    is_store,
    open_store,
)
from odkanon.read.tables.geo_files import (
    geodataframe_to_table,
    is_geodataframe,
    is_geoparquet,
    parquet_names,
    read_geoparquet,
)
from odkanon.read.tables.table import SourceTable, first_line
from odkanon.read.tables.text_files import (
    TextFile,
    TextFormat,
    check_names,
    file_sha256,
    open_text_file,
    rows_across_lines,
)

PARQUET = b"PAR1"
_NARROW = ("FLOAT", "DECIMAL(38,", "TIMESTAMP WITH TIME ZONE")
"""Types that DuckDB casts unlike types to: longer numbers, and times in an unknown zone."""


@dataclass(frozen=True)
class Reader:
    """A reader of sources that ODkAnon does not know, such as a file format or an object of another library.

    Attributes
    ----------
    name : str
        Its name.
    accepts : callable
        Given a source, returns whether this reader is for it.
    read : callable
        Given such a source, returns an Arrow table, a path, or anything else that can be opened.
    """

    name: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any], Any]


def _check_reader(reader: Reader) -> None:
    if not isinstance(reader, Reader):
        raise InvalidValueError.expected("a reader", "an odkanon.Reader", reader)


READERS: Registry[Reader] = Registry("reader", (), check=_check_reader)
"""Readers of other packages, asked before ours; they may declare them as entry points ``odkanon.readers``."""


def register_reader(reader: Reader) -> Reader:
    """Add a reader, whose sources can then be read like any other.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import read_matrix, register_reader
    >>> from odkanon.read.tables.open_table import Reader
    >>> rows = {"origin": ["8a1fb4671017fff"], "destination": ["8a1fb4671007fff"], "trips": [12]}
    >>> demo = register_reader(Reader("demo", lambda source: source == "demo:", lambda source: pa.table(rows)))
    >>> read_matrix("demo:", engine="memory").trips
    12
    >>> READERS.unregister("demo")
    """
    return READERS.register(reader)


def open_table(source: Any, text: TextFormat = TextFormat()) -> SourceTable:
    """Return a table for anything that can be read as one.

    * ``source``: a file (``-`` for standard input), several files with the same columns, a folder or a pattern of
      Parquet files; points or lines in GeoPackage, Shapefile, GeoParquet, GeoJSON, GPX or a GeoDataFrame; anything with
      the Arrow interface or that DuckDB can register; or whatever a registered reader accepts.
    * ``text``: the format of a text file.
    """
    reader = next((each for each in READERS.values() if each.accepts(source)), None)
    if reader is None:
        return _open(source, text)
    table = _open(reader.read(source), text)
    if not isinstance(source, str | Path) or not Path(source).is_file():
        return table
    return replace(table, name=str(source), sha256=file_sha256(Path(source)))


def _open(source: Any, text: TextFormat) -> SourceTable:
    connection = connect()
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | Path) for each in source):
        paths = [Path(each) for each in source]
        return _open(paths[0], text) if len(paths) == 1 else _open_several(connection, paths, text)
    if not isinstance(source, str | Path):
        return _open_in_memory(connection, source, "the table")
    address = remote(source)
    if address is not None and is_store(source):
        data = open_store(address)
        connection.register("source", data)
        return SourceTable(connection, "source", tuple(data.schema.names), address, keeper=data)
    if address is not None:
        raise InputError(
            f"{address} is in an object store; read it with Spark, or copy it to this machine", option="engine spark"
        )
    files = dataset_files(source)
    if files is None:
        return _open_file(connection, unpack(Path(source), text), text)
    if len(files) > 1 and not any(map(_is_parquet, files)):
        return _open_several(connection, files, text)
    return _open_dataset(connection, str(source), files)


def _open_file(connection: duckdb.DuckDBPyConnection, file: Unpacked, text: TextFormat) -> SourceTable:
    """Open one file, whose type is detected from its first bytes."""
    if file.table is not None:
        return _open_in_memory(connection, file.table, file.name, file.sha256)
    if _is_parquet(file.path) and is_geoparquet(file.path):
        return _open_in_memory(connection, read_geoparquet(file.path, file.name), file.name, file.sha256)
    if _is_parquet(file.path):
        check_names(parquet_names(file.path), file.name)
        scan = f"read_parquet({literal(file.path)}, hive_partitioning=false)"
        return SourceTable(
            connection, scan, _described(connection, scan, file.name), file.name, file.sha256, keeper=file
        )
    return replace(open_text(connection, file.path, text, file.name, file), sha256=file.sha256)


def open_text(
    connection: duckdb.DuckDBPyConnection, path: Path, text: TextFormat, name: str, keeper: object = None
) -> SourceTable:
    """Open a text file; ``keeper`` is whatever must outlive the table."""
    seen = open_text_file(path, text, name)
    return SourceTable(
        connection, _csv_scan([seen]), seen.columns, name, lines=_rows(connection, [seen]), keeper=(keeper, seen)
    )


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == PARQUET


def _open_several(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], text: TextFormat) -> SourceTable:
    """Open several files that have the same columns as one table."""
    if any(remote(path) is not None for path in paths):
        raise InputError("several files in an object store are read as a folder; give its address")
    check_distinct_files(paths)
    opened = [unpack(path, text) for path in paths]
    name, sha256 = f"{paths[0]} and {len(paths) - 1} more", dataset_sha256(list(paths))
    if all(_is_parquet(each.path) for each in opened):
        scan = _parquet_scan(connection, [each.path for each in opened], name)
        return SourceTable(connection, scan, _described(connection, scan, name), name, sha256, keeper=opened)
    tables = [each.table for each in opened if each.table is not None]
    if len(tables) == len(paths):
        return _open_in_memory(connection, _joined(paths, tables), name, sha256)
    if tables or any(_is_parquet(each.path) for each in opened):
        raise InputError(f"{name} are files of several types; save all as CSV, or all in the same other format")
    seen = [open_text_file(each.path, text, each.name) for each in opened]
    _check_columns(paths, [other.columns for other in seen])
    for path, other in zip(paths, seen, strict=True):
        if (other.delimiter, other.gzipped) != (seen[0].delimiter, seen[0].gzipped):
            raise InputError(
                f"{path} and {paths[0]} have different formats; use one delimiter, and compress all or none"
            )
    lines = _rows(connection, seen)
    return SourceTable(connection, _csv_scan(seen), seen[0].columns, name, sha256, lines=lines, keeper=(opened, seen))


def _check_columns(paths: Sequence[Path], columns: Sequence[Sequence[str]]) -> None:
    for path, other in zip(paths, columns, strict=True):
        if tuple(other) != tuple(columns[0]):
            unlike = sorted(set(other) ^ set(columns[0])) or ["in another order"]
            raise InputError(
                f"{path} and {paths[0]} have different columns ({', '.join(unlike)}); read them separately"
            )


def _joined(paths: Sequence[Path], tables: Sequence[pa.Table]) -> pa.Table:
    """Return workbooks or the like as one table; a column that has texts in one of them has texts in all."""
    _check_columns(paths, [table.column_names for table in tables])
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        texts = [pa.schema([(name, pa.string()) for name in table.column_names]) for table in tables]
        return pa.concat_tables([table.cast(schema) for table, schema in zip(tables, texts, strict=True)])


def csv_tables(files: Sequence[Path]) -> list[SourceTable]:
    """Return many CSV files as one table per layout, all on one connection.

    Each has a further column ``filename``. Empty files are skipped.
    """
    connection = connect()
    layouts: dict[tuple[str, tuple[str, ...], bool], list[TextFile]] = {}
    for path in files:
        if path.stat().st_size:
            seen = open_text_file(path, TextFormat())
            _rows(connection, [seen])
            layouts.setdefault((seen.delimiter, seen.columns, seen.gzipped), []).append(seen)
    if not layouts:
        raise InputError(f"all {len(files):,} CSV files are empty; each needs a header and rows")
    return [
        SourceTable(connection, _csv_scan(seen, ", filename=true"), columns, seen[0].name, keeper=seen)
        for (_, columns, _), seen in layouts.items()
    ]


def _rows(connection: duckdb.DuckDBPyConnection, files: Sequence[TextFile]) -> int:
    """Return the expected number of rows of some text files; raise if an unclosed quote makes it uncertain."""
    return sum(
        rows_across_lines(connection, _csv_scan([each]), each) if each.lines.rows is None else each.lines.rows
        for each in files
    )


def _csv_scan(files: Sequence[TextFile], more: str = "") -> str:
    """Return the SQL to scan CSV as text, without the sniffer of DuckDB, which only looks at the first rows."""
    first = files[0]
    types = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in first.columns)
    listed = f"[{', '.join(literal(each.path) for each in files)}]"
    return (
        f"read_csv({listed}, auto_detect=false, header=true, delim={quote_text(first.delimiter)}, quote='\"', "
        f"escape='\"', columns={{{types}}}, compression='{'gzip' if first.gzipped else 'none'}', store_rejects=true, "
        f"hive_partitioning=false{more})"
    )


def _open_dataset(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> SourceTable:
    for file in files:
        if not _is_parquet(file):
            raise InputError(f"{file} is not a Parquet file; a folder of several files must be Parquet")
    check_partitions(files, _described(connection, _parquet_scan(connection, files, name), name), name)
    scan = _parquet_scan(connection, files, name, folders=True)
    return SourceTable(connection, scan, _described(connection, scan, name), name, dataset_sha256(files))


def _parquet_scan(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], name: str, *, folders: bool = False
) -> str:
    """Return the SQL to scan Parquet files without loss of digits.

    With the types of the first file, a 0.6 in the second would become 1 where the first has integers. Columns for which
    no type holds the numbers of all files are refused.
    """
    for file in () if folders else files:
        check_names(parquet_names(file), str(file))
    options = f"hive_partitioning={str(folders).lower()}, union_by_name={str(len(files) > 1).lower()}"
    scan = f"read_parquet([{', '.join(map(literal, files))}], {options})"
    if folders or len(files) == 1:
        return scan
    types = _column_types(connection, scan, name)
    narrow = {column for column, kind in types.items() if kind.startswith(_NARROW)}
    for file in files if narrow else ():
        own = _column_types(connection, f"read_parquet({literal(file)}, hive_partitioning=false)", file)
        other = next((column for column in sorted(narrow) if own.get(column, types[column]) != types[column]), None)
        if other is not None:
            raise InputError(
                f"column {other!r} of {file} is {own[other]}, but {types[other]} in others; use one type in all files"
            )
    return scan


def _open_in_memory(
    connection: duckdb.DuckDBPyConnection, source: Any, name: str, sha256: str | None = None
) -> SourceTable:
    if is_geodataframe(source):
        source = geodataframe_to_table(source)
    try:
        table = pa.table(source) if hasattr(source, "__arrow_c_stream__") else source
        check_names(getattr(table, "column_names", ()), name)
        connection.register("source", table)
    except (duckdb.Error, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = f" ({first_line(error)})" if hasattr(source, "columns") else ""
        raise InvalidValueError(
            f"an object of type {type(source).__name__} cannot be read as a table{reason}; give a path, or a table of "
            "pandas, polars, Arrow or DuckDB"
        ) from None
    return SourceTable(connection, "source", _described(connection, "source", name), name, sha256)


def _described(connection: duckdb.DuckDBPyConnection, scan: str, name: object) -> tuple[str, ...]:
    return tuple(_column_types(connection, scan, name))


def _column_types(connection: duckdb.DuckDBPyConnection, scan: str, name: object) -> dict[str, str]:
    """Return the types of the columns of a scan."""
    try:
        return {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}
    except duckdb.Error as error:
        advice = "it may be truncated, so copy or export it again"
        raise UnreadableFileError.because(name, first_line(error), as_="Parquet", advice=advice) from None
