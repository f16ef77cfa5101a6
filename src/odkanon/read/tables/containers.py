"""Tables in containers: zip archives, spreadsheets, Arrow files, JSON and standard input."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from odkanon.core.registry import import_extra
from odkanon.core.system import plain
from odkanon.errors import FileMissingError, InputError, UnreadableFileError
from odkanon.read.tables.column_names import choose_sheet
from odkanon.read.tables.geo_files import is_geo, read_geo
from odkanon.read.tables.text_files import GZIP, ScratchCopy, TextFormat, file_sha256

_FIRST_BYTES = 1_024
"""Bytes that identify the type of a file."""
_ZIP, _OLD_EXCEL, _ARROW, _OLD_FEATHER = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"ARRO", b"FEA1"


@dataclass(frozen=True)
class Unpacked:
    """A text or Parquet file, or a table."""

    path: Path
    """The file, or its extracted content."""
    name: str
    """Its name in messages."""
    sha256: str
    """Digest of the original file."""
    table: pa.Table | None = None
    """Its content, if that is not a file."""
    keeper: object = None
    """Whatever keeps the extracted content alive."""


def unpack(path: Path, text: TextFormat = TextFormat()) -> Unpacked:
    """Return the content of a container, or the file itself if it is none; ``-`` is standard input."""
    copy = None
    name = str(path)
    if name == "-":
        copy, name = ScratchCopy(), "standard input"
        with copy.path.open("wb") as written:
            shutil.copyfileobj(sys.stdin.buffer, written)
        path = copy.path
    check_file(path, name)
    path = plain(path)
    sha256 = file_sha256(path)
    with path.open("rb") as file:
        magic = file.read(4)
    if magic == _ZIP and _holds_shapefile(path):
        return Unpacked(path, name, sha256, read_geo(path, name, text.sheet), copy)
    if magic == _ZIP and not _is_spreadsheet(path):
        copy, inside = _extracted(path, name)
        name = f"{inside} in {name}"
        path = copy.path
        with path.open("rb") as file:
            magic = file.read(4)
    with path.open("rb") as file:
        first = file.read(_FIRST_BYTES)
    table = read_geo(path, name, text.sheet) if is_geo(first) else _table_of(path, magic, name, text)
    return Unpacked(path, name, sha256, table, copy)


def check_file(path: Path, name: str) -> None:
    """Raise unless there is a file with content."""
    if not path.is_file():
        raise FileMissingError.at(name)
    if path.stat().st_size == 0:
        raise UnreadableFileError.empty(name)


def _table_of(path: Path, magic: bytes, name: str, text: TextFormat) -> pa.Table | None:
    """Return the table in a file that is neither text nor Parquet; None for these."""
    try:
        if magic in (_ARROW, _OLD_FEATHER):
            import pyarrow.feather

            return pyarrow.feather.read_table(path)
        if _starts_with_brace(path, magic):
            return _json(path, magic, name)
    except (pa.ArrowInvalid, OSError) as error:
        raise UnreadableFileError.because(name, error, advice="it may be truncated or mixed") from None
    return _spreadsheet(path, name, text) if magic in (_ZIP, _OLD_EXCEL) else None


def _starts_with_brace(path: Path, magic: bytes) -> bool:
    try:
        with gzip.open(path) if magic.startswith(GZIP) else path.open("rb") as file:
            text = file.read(256).removeprefix(b"\xef\xbb\xbf").lstrip()
            return text.startswith(b"{") or (text.startswith(b"[") and text[1:].lstrip().startswith(b"{"))
    except (OSError, EOFError):
        return False  # reading it as text reports the cause


def _json(path: Path, magic: bytes, name: str) -> pa.Table:
    """Return the objects in JSON Lines, an array, or a document with one list of them."""
    import pyarrow.json

    try:
        with gzip.open(path) if magic.startswith(GZIP) else path.open("rb") as file:
            table = pyarrow.json.read_json(file)
        if len(table) > 1 or not any(pa.types.is_nested(kind) for kind in table.schema.types):
            return table
    except pa.ArrowInvalid:
        pass  # one document over many lines, or invalid JSON
    try:
        with gzip.open(path, "rb") if magic.startswith(GZIP) else path.open("rb") as file:
            rows = _objects(json.loads(file.read().decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError.because(
            name, error, as_="JSON", advice="write one object per line, or one array"
        ) from None
    if rows is None:
        raise InputError(f"{name} is a JSON document without a list of objects; write one object per line")
    return _table_of_objects(rows, name)


def _table_of_objects(rows: Sequence[dict[str, Any]], name: str) -> pa.Table:
    """Return objects as a table with the columns of all of them."""
    columns = {}
    for column in dict.fromkeys(key for row in rows for key in row):
        try:
            columns[column] = pa.array([row.get(column) for row in rows])
        except (pa.ArrowException, OverflowError):
            raise InputError(
                f"{column!r} of {name} has values of several types; write all as numbers, or all as texts"
            ) from None
    return pa.table(columns)


def _objects(content: Any) -> list[dict[str, Any]] | None:
    """Return the only list of objects in a document, at any depth; None if there is none or several."""
    if isinstance(content, list):
        return content if content and all(isinstance(each, dict) for each in content) else None
    if not isinstance(content, dict):
        return None
    found = [rows for rows in map(_objects, content.values()) if rows is not None]
    return found[0] if len(found) == 1 else None


def _holds_shapefile(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.lower().endswith(".shp") and not _is_hidden(name) for name in archive.namelist())
    except zipfile.BadZipFile:
        return False  # unpacking it reports the cause


def _is_spreadsheet(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise UnreadableFileError.truncated(path, error) from None
    return any(name.startswith("xl/workbook") or name == "content.xml" for name in names)


_NO_TABLES = (".txt", ".md", ".pdf", ".html", ".xml", ".doc", ".docx", ".png", ".jpg", ".yml", ".yaml", ".tfl")
"""Ends of the names of files that go with a table in an archive; a table may end so too, if it is alone there."""


def _extracted(path: Path, name: str) -> tuple[ScratchCopy, str]:
    copy = ScratchCopy()
    with zipfile.ZipFile(path) as archive:
        parts = [each for each in archive.infolist() if not each.is_dir() and not _is_hidden(each.filename)]
        tables = [each for each in parts if not each.filename.lower().endswith(_NO_TABLES)]
        parts = tables if len(tables) == 1 else parts
        if len(parts) != 1:
            listed = ", ".join(each.filename for each in parts[:5]) or "nothing"
            raise InputError(f"{name} should contain one table, but contains {listed}; extract the one to read")
        if parts[0].flag_bits & 1:
            raise InputError(f"{name} is protected by a password; unpack it first")
        try:
            with archive.open(parts[0]) as packed, copy.path.open("wb") as written:
                shutil.copyfileobj(packed, written)
        except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
            raise UnreadableFileError.truncated(name, error) from None
    check_file(copy.path, f"{parts[0].filename} in {name}")
    return copy, parts[0].filename


def _is_hidden(name: str) -> bool:
    """Return whether a file is metadata that macOS adds to archives."""
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _spreadsheet(path: Path, name: str, text: TextFormat) -> pa.Table:
    python_calamine = import_extra(
        "python_calamine", purpose="reading spreadsheets", extra="excel", package="python-calamine"
    )
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(path.read_bytes()))
        sheets = {each: book.get_sheet_by_name(each).to_python() for each in book.sheet_names}
    except (python_calamine.CalamineError, ValueError, OSError) as error:
        raise UnreadableFileError.because(name, error, as_="a spreadsheet", advice="save it again, or as CSV") from None
    filled = {title: [str(each).strip() for each in rows[0]] for title, rows in sheets.items() if len(rows) > 1}
    chosen = choose_sheet(filled, text.sheet, text.named, name)
    rows = sheets[chosen][1:]
    names = {at: each for at, each in enumerate(filled[chosen]) if each or any(row[at] != "" for row in rows)}
    repeated = [each for each in names.values() if [*names.values()].count(each) > 1 or not each]
    if repeated:
        raise InputError(
            f"the first row of {name} has column {repeated[0]!r} twice or unnamed; give each column one name"
        )
    return pa.table({each: _column([row[at] for row in rows]) for at, each in names.items()})


def _column(values: Sequence[Any]) -> pa.Array:
    """Return the cells of a column as numbers or timestamps if all are, and as texts otherwise."""
    filled = [None if value == "" else value for value in values]
    types = {type(value) for value in filled if value is not None}
    if types and types <= {int, float}:
        whole = all(value is None or (float(value).is_integer() and abs(value) < 2**63) for value in filled)
        return pa.array(filled, pa.float64()).cast(pa.int64() if whole else pa.float64())
    if types and types <= {datetime, date}:
        return pa.array([None if each is None else _timestamp(each) for each in filled], pa.timestamp("us"))
    return pa.array([None if each is None else _text(each) for each in filled], pa.string())


def _timestamp(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
