"""Any source as a table that DuckDB can scan: files of many kinds, several of them, folders, or tables in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from odkanon.core.paths import remote
from odkanon.errors import InputError
from odkanon.read.tables.containers import Unpacked, unpack
from odkanon.read.tables.datasets import (
    check_once,
    check_partitions,
    dataset_files,
    dataset_sha256,
    is_store,
    open_store,
)
from odkanon.read.tables.geo_tables import is_geoparquet, of_geodataframe, parquet_names, read_geoparquet
from odkanon.read.tables.quotes import rows_across_lines
from odkanon.read.tables.table import (
    Check,
    Named,
    Table,
    Typed,
    connect,
    first_line,
    literal,
    quote_name,
    quote_text,
    write_csv,
)
from odkanon.read.tables.text_files import TextFile, TextFormat, check_names, look_at_text

__all__ = [
    "Check",
    "Named",
    "Table",
    "Typed",
    "connect",
    "csv_tables",
    "open_table",
    "open_text",
    "quote_name",
    "quote_text",
    "write_csv",
]

PARQUET = b"PAR1"
_NARROW = ("FLOAT", "DECIMAL(38,", "TIMESTAMP WITH TIME ZONE")
"""Types to which DuckDB takes others together that are not alike: longer numbers, and times on an unknown clock."""


def open_table(source: Any, text: TextFormat = TextFormat()) -> Table:
    """Return a table for anything that can be read as one.

    Parameters
    ----------
    source : path, sequence of paths, or table
        A file (``-`` for standard input), several files with the same columns, a folder or a pattern of Parquet files;
        GeoPackage, Shapefile, GeoParquet, GeoJSON and GPX of points or lines, and a GeoDataFrame, too;
        or anything that speaks the Arrow interface or that DuckDB can register.
    text : TextFormat
        How it is written, if it is a text file.
    """
    connection = connect()
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | Path) for each in source):
        paths = [Path(each) for each in source]
        return open_table(paths[0], text) if len(paths) == 1 else _open_several(connection, paths, text)
    if not isinstance(source, str | Path):
        return _open_in_memory(connection, source, "the table")
    address = remote(source)
    if address is not None and is_store(source):
        data = open_store(address)
        connection.register("source", data)
        return Table(connection, "source", tuple(data.schema.names), address, keeper=data)
    if address is not None:
        raise InputError(
            f"{address} lies in an object store; read it with Spark, or copy it here first", option="engine spark"
        )
    files = dataset_files(source)
    if files is None:
        return _open_file(connection, unpack(Path(source)), text)
    if len(files) > 1 and not any(map(_is_parquet, files)):
        return _open_several(connection, files, text)
    return _open_dataset(connection, str(source), files)


def _open_file(connection: duckdb.DuckDBPyConnection, file: Unpacked, text: TextFormat) -> Table:
    """Open one file, which says by its first bytes what it is."""
    if file.table is not None:
        return _open_in_memory(connection, file.table, file.name, file.sha256)
    if _is_parquet(file.path) and is_geoparquet(file.path):
        return _open_in_memory(connection, read_geoparquet(file.path, file.name), file.name, file.sha256)
    if _is_parquet(file.path):
        check_names(parquet_names(file.path), file.name)
        scan = f"read_parquet({literal(file.path)}, hive_partitioning=false)"
        return Table(connection, scan, _described(connection, scan, file.name), file.name, file.sha256, keeper=file)
    return replace(open_text(connection, file.path, text, file.name, file), sha256=file.sha256)


def open_text(
    connection: duckdb.DuckDBPyConnection, path: Path, text: TextFormat, name: str, keeper: object = None
) -> Table:
    """Open a text file; ``keeper`` is what has to live as long as the table."""
    seen = look_at_text(path, text, name)
    return Table(
        connection, _csv_scan([seen]), seen.columns, name, lines=_rows(connection, [seen]), keeper=(keeper, seen)
    )


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == PARQUET


def _open_several(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], text: TextFormat) -> Table:
    """Open several files that have the same columns as one table."""
    if any(remote(path) is not None for path in paths):
        raise InputError("files in an object store are read as one folder; give its address alone")
    check_once(paths)
    opened = [unpack(path) for path in paths]
    name, sha256 = f"{paths[0]} and {len(paths) - 1} more", dataset_sha256(list(paths))
    if all(_is_parquet(each.path) for each in opened):
        scan = _parquet_scan(connection, [each.path for each in opened], name)
        return Table(connection, scan, _described(connection, scan, name), name, sha256, keeper=opened)
    if any(_is_parquet(each.path) or each.table is not None for each in opened):
        raise InputError(f"{name} are files of several kinds; give text files, or Parquet files")
    seen = [look_at_text(each.path, text, each.name) for each in opened]
    for path, other in zip(paths, seen, strict=True):
        if other.columns != seen[0].columns:
            unlike = sorted(set(other.columns) ^ set(seen[0].columns)) or ["in another order"]
            raise InputError(f"{path} has other columns than {paths[0]} ({', '.join(unlike)}); give them one by one")
        if (other.delimiter, other.gzipped) != (seen[0].delimiter, seen[0].gzipped):
            raise InputError(
                f"{path} is written in another way than {paths[0]}; use one delimiter, and zip all or none"
            )
    lines = _rows(connection, seen)
    return Table(connection, _csv_scan(seen), seen[0].columns, name, sha256, lines=lines, keeper=(opened, seen))


def csv_tables(files: Sequence[Path]) -> list[Table]:
    """Return many CSV files as one table for each layout among them, all of one connection.

    Each has, besides the columns of its files, ``filename``. Files without a single byte are passed over.
    """
    connection = connect()
    layouts: dict[tuple[str, tuple[str, ...], bool], list[TextFile]] = {}
    for path in files:
        if path.stat().st_size:
            seen = look_at_text(path, TextFormat())
            _rows(connection, [seen])
            layouts.setdefault((seen.delimiter, seen.columns, seen.gzipped), []).append(seen)
    if not layouts:
        raise InputError(f"all {len(files):,} CSV files are empty; each needs a header and rows")
    return [
        Table(connection, _csv_scan(seen, ", filename=true"), columns, seen[0].name, keeper=seen)
        for (_, columns, _), seen in layouts.items()
    ]


def _rows(connection: duckdb.DuckDBPyConnection, files: Sequence[TextFile]) -> int:
    """Return how many rows some text files should have; raise where that cannot be told for a quote left open."""
    return sum(
        rows_across_lines(connection, _csv_scan([each]), each) if each.lines.rows is None else each.lines.rows
        for each in files
    )


def _csv_scan(files: Sequence[TextFile], more: str = "") -> str:
    """Return the SQL to scan CSV as texts; nothing is left to the sniffer, which looks at the first rows only."""
    first = files[0]
    types = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in first.columns)
    listed = f"[{', '.join(literal(each.path) for each in files)}]"
    return (
        f"read_csv({listed}, auto_detect=false, header=true, delim={quote_text(first.delimiter)}, quote='\"', "
        f"escape='\"', columns={{{types}}}, compression='{'gzip' if first.gzipped else 'none'}', store_rejects=true, "
        f"hive_partitioning=false{more})"
    )


def _open_dataset(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> Table:
    for file in files:
        if not _is_parquet(file):
            raise InputError(f"{file} is not a Parquet file; a folder of several files has to be Parquet")
    check_partitions(files, _described(connection, _parquet_scan(connection, files, name), name), name)
    scan = _parquet_scan(connection, files, name, folders=True)
    return Table(connection, scan, _described(connection, scan, name), name, dataset_sha256(files))


def _parquet_scan(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], name: str, *, folders: bool = False
) -> str:
    """Return the SQL to scan Parquet files, of which each keeps its numbers as they are.

    The types of the first file alone would make a 1 of a 0.6 in the second, where the first has whole numbers. What has
    no type that holds all of its numbers is refused.
    """
    for file in () if folders else files:
        check_names(parquet_names(file), str(file))
    options = f"hive_partitioning={str(folders).lower()}, union_by_name={str(len(files) > 1).lower()}"
    scan = f"read_parquet([{', '.join(map(literal, files))}], {options})"
    if folders or len(files) == 1:
        return scan
    attributes = _attributes(connection, scan, name)
    narrow = {column for column, kind in attributes.items() if kind.startswith(_NARROW)}
    for file in files if narrow else ():
        own = _attributes(connection, f"read_parquet({literal(file)}, hive_partitioning=false)", file)
        other = next(
            (column for column in sorted(narrow) if own.get(column, attributes[column]) != attributes[column]), None
        )
        if other is not None:
            raise InputError(
                f"column {other!r} of {file} is {own[other]}, where other files have {attributes[other]}; write it as "
                "one type in all of them"
            )
    return scan


def _open_in_memory(connection: duckdb.DuckDBPyConnection, source: Any, name: str, sha256: str | None = None) -> Table:
    if hasattr(source, "geometry") and hasattr(source, "crs"):
        source = of_geodataframe(source)
    try:
        table = pa.table(source) if hasattr(source, "__arrow_c_stream__") else source
        check_names(getattr(table, "column_names", ()), name)
        connection.register("source", table)
    except (duckdb.Error, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"a {type(source).__name__} cannot be read as a table ({first_line(error)}); give a path, or a table "
            "of pandas, polars, Arrow or DuckDB"
        ) from None
    return Table(connection, "source", _described(connection, "source", name), name, sha256)


def _described(connection: duckdb.DuckDBPyConnection, scan: str, name: object) -> tuple[str, ...]:
    return tuple(_attributes(connection, scan, name))


def _attributes(connection: duckdb.DuckDBPyConnection, scan: str, name: object) -> dict[str, str]:
    """Return the columns of a scan, and of what types they are."""
    try:
        return {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}
    except duckdb.Error as error:
        raise InputError(
            f"{name} starts like a Parquet file but cannot be read ({first_line(error)}); "
            "it may be truncated, so copy or export it again"
        ) from None
