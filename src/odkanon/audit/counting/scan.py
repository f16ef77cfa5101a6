"""A file of trips as raw columns for DuckDB, mapped to standard names: the audit's own reader.

It shares no parsing with the reader of the program, so that an error there shows as a difference here. Formats that it
does not know are read by the program, and reported as such.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import hashlib
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO, cast
from weakref import finalize

import duckdb
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.counting.workbook import is_workbook, workbook_to_csv
from odkanon.core.sql import quote_name, quote_text
from odkanon.core.system import plain
from odkanon.errors import FileMissingError, InputError, UnreadableFileError
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.column_names import (
    COORDINATES,
    choose_sheet,
    detect_content,
    find_layout,
    place_columns,
    resolve,
)

_CHUNK = 1 << 20
_PARQUET, _ZIP, _GZIP = b"PAR1", b"PK\x03\x04", b"\x1f\x8b"
_TEXT = (".csv", ".txt", ".tsv", ".gz")
_TIMES = ("start_time", "end_time")
_SERIAL = r"[2-7]\d{4}([.,]\d+)?"
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_DATES = (*(form.replace("/", mark) for mark in "/.-" for form in ("%d/%m/%Y", "%m/%d/%Y")), "%Y/%m/%d")
_FORMATS = (
    *(f"{day} {clock}" for day in _DATES for clock in _CLOCKS),
    *(day for day in _DATES if not day.startswith("%Y")),
    *(f"%Y-%m-%d {clock}" for clock in _CLOCKS[2:]),
    *_CLOCKS,
)

TripsSource = InputSpec
"""A file of trips and how to read it. The filter of a release takes precedence over ``where``."""


@dataclass(frozen=True)
class Scan:
    """A file that DuckDB can scan."""

    sql: str  # the table expression; all columns of a text are text
    columns: tuple[str, ...]  # the names in the file
    name: str
    sha256: str | None
    found: Mapping[str, str]  # the columns by standard name
    kind: str  # ``"trips"`` with coordinates, or ``"od"`` for records between zones
    comma: bool = False  # whether numbers have a decimal comma
    formats: Mapping[str, str] = field(default_factory=dict)  # the format of times, by column; ``serial`` for days
    foreign: str | None = None  # why the program had to read it; None if the audit did
    keeper: object = None  # whatever keeps extracted files alive


class _Scratch:
    """A folder that is removed when it is no longer used."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="odkanon-audit-"))
        finalize(self, rmtree, self.path, ignore_errors=True)


class _UnknownFormatError(Exception):
    """A format that only the program can read."""


def open_scan(connection: Connection, source: TripsSource) -> Scan:
    """Open a table of trips: text, Parquet and workbooks, packed or not, directly; others by the program's reader."""
    try:
        scan = _open_own(connection, source)
    except _UnknownFormatError as reason:
        table = source.open()
        good = [f"NOT coalesce({check.condition}, false)" for check in table.checks]
        query = f"SELECT * FROM {table.scan} WHERE {' AND '.join(good) or 'true'}"
        connection.register("opened", table.connection.sql(query).to_arrow_table())
        names = tuple(_types(connection, "opened", source.name))
        scan = Scan("opened", names, source.name, table.sha256, {}, "od", foreign=str(reason))
    found = resolve(scan, source.columns, also=None)
    scan = replace(scan, found=found)
    kind = source.kind or ("od" if source.hierarchy is not None else detect_content(scan, found))
    return replace(scan, kind=kind) if scan.foreign else _detect_formats(connection, replace(scan, kind=kind), source)


def _open_own(connection: Connection, source: TripsSource) -> Scan:
    folder = _Scratch()
    listed = _files(source)
    files = [_unpack(path, folder.path, number, source) for number, path in enumerate(listed)]
    digest = _digests(listed)
    first = _magic(files[0])
    if first == _PARQUET:
        if any(_magic(file) != _PARQUET for file in files):
            raise _UnknownFormatError("files of several formats")
        keys = "SELECT decode(key) FROM parquet_kv_metadata({})"
        if any(("geo",) in connection.execute(keys.format(plain_path(file))).fetchall() for file in files):
            raise _UnknownFormatError("GeoParquet")
        union = str(len(files) > 1).lower()
        sql = f"read_parquet([{_listed(files)}], hive_partitioning=false, union_by_name={union})"
    else:
        sql = _text_sql(files, source, folder.path)
    columns = tuple(_types(connection, sql, source.name))
    if find_layout(columns) is not None:
        raise _UnknownFormatError("a layout whose values have to be converted")
    if source.place is not None:
        raw = Scan(sql, columns, source.name, digest, {}, "od")
        added = place_columns(raw, source.place, source.subject.unit)
        own = [quote_name(name) for name in columns if name not in added]
        sql = f"(SELECT {', '.join([*own, *(f'{each} AS {name}' for name, each in added.items())])} FROM {sql})"
        columns = tuple(_types(connection, sql, source.name))
    return Scan(sql, columns, source.name, digest, {}, "od", keeper=folder)


def _files(source: TripsSource) -> list[Path]:
    """Return the files of a source, patterns and folders of Parquet resolved."""
    if not source.paths:
        raise _UnknownFormatError("a table in memory")
    files: list[Path] = []
    for given in source.paths:
        path = Path(given)
        if str(given) == "-" or "://" in str(given):
            raise _UnknownFormatError("not a file on this machine")
        if path.is_dir():
            inside = sorted(path.rglob("*.parquet"))
            if any("=" in part for file in inside for part in file.relative_to(path).parts[:-1]):
                raise _UnknownFormatError("a partitioned folder")
            files += [file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
        elif not path.exists() and glob.has_magic(str(given)):
            files += sorted(Path(name) for name in glob.glob(str(given), recursive=True))
        elif path.is_file():
            files.append(path)
        else:
            raise FileMissingError.at(path, advice="check the path of the trips")
    if not files:
        raise FileMissingError.at(source.name, what="file that matches", advice="check the path of the trips")
    return files


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _digests(files: Sequence[Path]) -> str:
    """Return the digest of a file, or that of the digests of several."""
    found = []
    for path in files:
        with path.open("rb") as file:
            found.append(hashlib.file_digest(file, "sha256").digest())
    return (found[0] if len(found) == 1 else hashlib.sha256(b"".join(found)).digest()).hex()


def _unpack(path: Path, folder: Path, number: int, source: TripsSource) -> Path:
    """Return a text or Parquet file: the file itself, or what an archive or a workbook contains."""
    if _magic(path) != _ZIP:
        return path
    target = folder / f"{number}.csv"
    try:
        with zipfile.ZipFile(path) as archive:
            if is_workbook(archive):
                workbook_to_csv(
                    archive, target, lambda sheets: choose_sheet(sheets, source.sheet, source.text.named, str(path))
                )
                return target
            hidden = re.compile(r"(^|/)(\.|__MACOSX)")
            inside = [each for each in archive.infolist() if not each.is_dir() and not hidden.search(each.filename)]
            if len(inside) != 1:
                raise _UnknownFormatError("an archive of several files")
            target.write_bytes(archive.read(inside[0]))
    except (zipfile.BadZipFile, OSError, KeyError, ValueError, RuntimeError) as error:
        raise UnreadableFileError.truncated(path, error) from None
    return target


def _text_sql(files: Sequence[Path], source: TripsSource, folder: Path) -> str:
    """Return the SQL of CSV files with equal headers, all columns as text."""
    opened = [_as_text(path, source, folder / f"text{number}.csv") for number, path in enumerate(files)]
    first = opened[0]
    if any(each.names != first.names or each.gzipped != first.gzipped for each in opened):
        raise InputError(f"the files of {source.name} have different columns; audit what was read together")
    types = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in first.names)
    return (
        f"read_csv([{_listed([each.path for each in opened])}], auto_detect=false, header=true, "
        f"delim={quote_text(first.delimiter)}, quote='\"', escape='\"', columns={{{types}}}, "
        f"compression='{'gzip' if first.gzipped else 'none'}', store_rejects=true, hive_partitioning=false)"
    )


@dataclass(frozen=True)
class _Text:
    path: Path
    names: tuple[str, ...]
    delimiter: str
    gzipped: bool


def _as_text(path: Path, source: TripsSource, target: Path) -> _Text:
    """Return a CSV file in UTF-8 with one kind of line ends; other ones are written again to the target."""
    gzipped = _magic(path)[:2] == _GZIP
    if path.suffix.lower() not in _TEXT and not gzipped:
        raise _UnknownFormatError(f"the format of {path.name}")

    def opened() -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(path)) if gzipped else path.open("rb")

    try:
        with opened() as file:
            start = file.read(4)
        if start.lstrip()[:1] in (b"{", b"["):
            raise _UnknownFormatError("JSON")
        with opened() as file:
            utf8, uniform = _inspect_text(file)
        if not (utf8 and uniform) or (source.encoding or "utf-8").lower().replace("_", "-") not in ("utf-8", "utf8"):
            guessed = "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else ""
            encoding = source.encoding or ("utf-8" if utf8 else guessed)
            if not encoding:
                raise _UnknownFormatError("a text whose encoding has to be guessed")
            with opened() as file:
                text = file.read().decode(codecs.lookup(encoding).name)
            target.write_bytes(("\n".join(text.splitlines()) + "\n").encode())
            return _as_text(target, replace(source, encoding=None), target)
        with opened() as file:
            line = file.readline().decode("utf-8-sig").rstrip("\r\n")
    except (OSError, EOFError, UnicodeError, LookupError) as error:
        raise UnreadableFileError.truncated(path, error) from None
    delimiter = source.delimiter or max(",;\t|", key=line.count)
    header = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    names = [name or f"column {at}" for at, name in enumerate(header, 1)]
    if len(set(names)) < len(names) or not any(header):
        raise UnreadableFileError.without_header(path)
    return _Text(path, tuple(names), delimiter, gzipped)


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


def plain_path(path: Path) -> str:
    """Return a path as a literal for DuckDB, to which ``[``, ``*`` and ``?`` are patterns and ``~`` is home."""
    return quote_text(re.sub(r"([*?\[])", r"[\1]", str(plain(path))))


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(plain_path, paths))


def _types(connection: Connection, sql: str, path: object) -> dict[str, str]:
    """Return the types of the columns of a table expression."""
    try:
        return {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()}
    except duckdb.Error as error:
        raise UnreadableFileError.because(path, error) from None


def _detect_formats(connection: Connection, scan: Scan, source: TripsSource) -> Scan:
    """Find out whether numbers have a decimal comma, and how times are written, from all rows."""
    types = _types(connection, scan.sql, scan.name)
    degrees = [scan.found[name] for name in COORDINATES if name in scan.found and source.crs is None]
    texts = [quote_name(name) for name in degrees if types[name] == "VARCHAR"]
    comma = source.decimal == ","
    if texts and source.decimal is None:
        odd = r"{0} LIKE '%,%' AND NOT regexp_full_match(trim({0}), '[-+]?\d{{1,3}},\d+')"
        tests = (" OR ".join(test.format(name) for name in texts) for test in ("{} LIKE '%,%'", "{} LIKE '%.%'", odd))
        commas, points, others = connection.execute(
            f"SELECT {', '.join(f'bool_or({test})' for test in tests)} FROM {scan.sql}"
        ).fetchall()[0]
        comma = bool(commas) and not points and not others
    forms: dict[str, str] = {}
    for column in (scan.found[name] for name in _TIMES if name in scan.found):
        form = _time_format(connection, scan, column, types[column], source.time_format)
        forms |= {} if form is None else {column: form}
    return replace(scan, comma=comma, formats=forms)


def _time_format(connection: Connection, scan: Scan, column: str, sql_type: str, given: str | None) -> str | None:
    """Return the format of a column of times, ``serial`` for days since 1900; None where SQL reads them."""
    if sql_type.startswith(("TIMESTAMP", "DATE", "TIME")):
        return None
    text = f"trim(CAST({quote_name(column)} AS VARCHAR))"
    if given is not None:
        return given if sql_type == "VARCHAR" else None
    counts = {
        "": f"count(TRY_CAST({text} AS TIMESTAMP))",
        "serial": f"count(*) FILTER (regexp_full_match({text}, '{_SERIAL}'))",
        **{form: f"count(try_strptime({text}, {quote_text(form)}))" for form in _FORMATS},
    }
    found = connection.execute(
        f"SELECT count(nullif({text}, '')), {', '.join(counts.values())} FROM {scan.sql}"
    ).fetchall()[0]
    filled, numbers = found[0], dict(zip(counts, found[1:], strict=True))
    if numbers[""] or not filled:
        return None
    best = max(numbers, key=lambda form: numbers[form])
    return best if numbers[best] * 2 > filled else None
