"""A file of trips as raw columns for DuckDB, and which of them is which."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import duckdb

from odkanon.errors import InputError
from odkanon.read.area import Area
from odkanon.read.tables.columns import kind_of, resolve
from odkanon.read.tables.open import quote_text
from odkanon.zoning.hierarchy import Hierarchy

_HOUSEHOLD = ("household", "household_id", "hh_id")
_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class TripsSource:
    """A file of trips and how to read it.

    What a release says of its filter goes before ``where``; everything else is as when the releases were made.

    Attributes
    ----------
    path : Path
        CSV, gzipped CSV, Parquet, or a folder of Parquet files.
    columns : dict of str to str
        ``{theirs: ours}``, as for `odkanon.read_trips`.
    where, within, resolution, hierarchy, read_as, crs
        As for `odkanon.read_trips`, `odkanon.build_od` and `odkanon.read_od`.
    """

    path: Path
    columns: dict[str, str] = field(default_factory=dict)
    where: str | None = None
    within: Area | None = None
    resolution: int | None = None
    hierarchy: Hierarchy | None = None
    read_as: str | None = None
    crs: str | None = None


@dataclass(frozen=True)
class Scan:
    """A file that DuckDB can scan.

    Attributes
    ----------
    sql : str
        What to select from; every column of a CSV is text.
    columns : tuple of str
        Names as they stand in the file.
    found : mapping of str to str
        Which column stands for which of our names.
    kind : str
        ``"trips"`` with coordinates, or ``"od"`` for records between zones.
    """

    sql: str
    columns: tuple[str, ...]
    name: str
    sha256: str | None
    found: Mapping[str, str]
    kind: str


@dataclass(frozen=True)
class _Header:
    columns: tuple[str, ...]
    name: str


def scan_of(connection: duckdb.DuckDBPyConnection, source: TripsSource) -> Scan:
    """Open a file of trips."""
    path = Path(source.path)
    if path.is_dir():
        files = sorted(path.rglob("*.parquet"))
        if not files:
            raise InputError(f"{path} is a folder without Parquet files; give the file of the trips")
        sql, digest = f"read_parquet([{', '.join(map(plain_path, files))}], hive_partitioning=true)", None
    elif not path.is_file():
        raise InputError(f"there is no file {path}; check the path of the trips")
    else:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        sql = (
            f"read_parquet({plain_path(path)})"
            if magic == b"PAR1"
            else _csv_sql(path, gzipped=magic[:2] == b"\x1f\x8b")
        )
    columns = _described(connection, sql, path)
    header = _Header(columns, str(path))
    found = resolve(header, source.columns)
    if "household" not in found:
        named = [name for name in columns if name.lower() in _HOUSEHOLD]
        found |= {"household": named[0]} if named else {}
    kind = source.read_as or ("od" if source.hierarchy is not None else kind_of(header, found))
    return Scan(sql, columns, str(path), digest, found, str(kind))


def plain_path(path: Path) -> str:
    """Return a path as SQL, each letter for itself: DuckDB takes ``[``, ``*`` and ``?`` for patterns."""
    return quote_text(re.sub(r"([*?\[])", r"[\1]", str(path)))


def _described(connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> tuple[str, ...]:
    try:
        return tuple(row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall())
    except duckdb.Error as error:
        raise InputError(f"{path} cannot be read ({str(error).splitlines()[0]})") from None


def _csv_sql(path: Path, *, gzipped: bool) -> str:
    def opened() -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(path)) if gzipped else path.open("rb")

    try:
        with opened() as file:
            first = file.readline()
        with opened() as file:
            encoding = "utf-8" if _is_utf8(file) else "latin-1"
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be unpacked ({error})") from None
    line = first.decode("utf-8-sig" if encoding == "utf-8" else encoding).rstrip("\r\n")
    delimiter = max(",;\t|", key=line.count)
    names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    if len(set(names)) < len(names) or not any(names):
        raise InputError(f"the first line of {path} is no header with one name for each column")
    types = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({plain_path(path)}, auto_detect=false, header=true, delim={quote_text(delimiter)}, quote='\"', "
        f"escape='\"', columns={{{types}}}, compression='{'gzip' if gzipped else 'none'}', ignore_errors=true, "
        f"encoding='{encoding}')"
    )


def _is_utf8(file: IO[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := file.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
