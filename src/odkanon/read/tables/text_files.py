"""Text files as UTF-8 with uniform line ends, their delimiter, columns and number of rows; every guess is reported."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import logging
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import duckdb

from odkanon.core.atomic_write import Claim
from odkanon.core.sql import quote_name
from odkanon.errors import InputError, InvalidValueError, UnreadableFileError
from odkanon.read.tables.table import first_line, open_quote, rejected_lines
from odkanon.read.tables.text_sniffing import LineCount, count_lines, detect_file_encoding

log = logging.getLogger(__name__)

GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_BREAKS = r"(?:\r?\n)+"
_DELIMITERS = ",;\t|"
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Byte order marks and the encodings that they declare."""


@dataclass(frozen=True)
class TextFormat:
    """The format of a file, as far as it was specified."""

    encoding: str | None = None
    """Such as ``latin-1``; by default UTF-8, or detected from the content."""
    delimiter: str | None = None
    """Column separator; by default detected from the header."""
    sheet: str | None = None
    """The sheet of a workbook, or the layer of a GIS file; by default the only one that has trips."""
    named: tuple[str, ...] = ()
    """Columns that it must have."""

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise InputError(f"unknown encoding {self.encoding!r}; give one such as latin-1 or utf-16") from None
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InvalidValueError.expected("delimiter", "one character, such as ';'", self.delimiter)


@dataclass(frozen=True)
class TextFile:
    """A text file in UTF-8, and its header."""

    path: Path
    """The file itself, or a copy in UTF-8 that is removed with ``keeper``."""
    gzipped: bool
    delimiter: str
    columns: tuple[str, ...]
    lines: LineCount
    """Counts over its lines."""
    name: str
    """Its name in messages."""
    keeper: object = None


class ScratchCopy:
    """A copy of a file in a scratch folder, removed with the last reference to it."""

    def __init__(self, name: str = "table") -> None:
        claim = Claim(Path(tempfile.gettempdir()), "odkanon-text-")
        self.path = claim.path / name
        weakref.finalize(self, claim.release)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_text_file(path: Path, text_format: TextFormat, name: str | None = None) -> TextFile:
    """Scan a text file once, and convert it to UTF-8 with uniform line ends where needed."""
    name = name or str(path)
    with path.open("rb") as file:
        gzipped = file.read(2) == GZIP
    try:
        return _opened(_Bytes(path, gzipped), text_format, name)
    except (OSError, EOFError) as error:
        if isinstance(error, gzip.BadGzipFile | EOFError):
            raise UnreadableFileError.truncated(name, error) from None
        raise


@dataclass(frozen=True)
class _Bytes:
    """The bytes of a text, and whatever must outlive them."""

    path: Path
    gzipped: bool
    keeper: object = None

    def opened(self) -> BinaryIO:
        return gzip.open(self.path) if self.gzipped else self.path.open("rb")  # type: ignore[return-value]

    def beginning(self) -> bytes:
        with self.opened() as file:
            return file.read(_CHUNK)

    def lines(self) -> LineCount:
        with self.opened() as file:
            return count_lines(file)


def _opened(text: _Bytes, text_format: TextFormat, name: str) -> TextFile:
    begin, lines = text.beginning(), text.lines()
    encoding = text_format.encoding or next((each for mark, each in MARKS.items() if begin.startswith(mark)), None)
    if encoding is None and b"\0" in begin:
        raise InputError(
            f"{name} is a binary file in an unknown format; give CSV, Parquet, Arrow, JSON Lines or a spreadsheet"
        )
    if encoding is None and not lines.utf8:
        with text.opened() as file:
            encoding = detect_file_encoding(file, name)
    if encoding is not None and codecs.lookup(encoding).name != "utf-8":
        text = _in_utf8(text, encoding, name)
        lines = text.lines()
    elif not lines.utf8:
        raise InputError(f"{name} is not UTF-8 text; name its encoding", option="encoding")
    if lines.unusual_end is not None:
        text = _with_plain_ends(text, lines.unusual_end)
        lines = text.lines()
    return TextFile(
        text.path, text.gzipped, *parse_header(name, text.beginning(), text_format), lines, name, text.keeper
    )


def _in_utf8(text: _Bytes, encoding: str, name: str) -> _Bytes:
    copy = ScratchCopy(text.path.name)
    try:
        with text.opened() as file, copy.path.open("w", encoding="utf-8", newline="") as written:
            reader = codecs.getreader(encoding)(file)
            while read := reader.read(_CHUNK):
                written.write(read.removeprefix("\ufeff"))
    except UnicodeError as error:
        raise InputError(f"{name} is not {encoding} text ({error}); name its encoding", option="encoding") from None
    return _Bytes(copy.path, False, copy)


def _with_plain_ends(text: _Bytes, unusual: bytes) -> _Bytes:
    """Return a copy with uniform line ends, which DuckDB requires."""
    copy = ScratchCopy(text.path.name)
    with text.opened() as file, copy.path.open("wb") as written:
        while piece := file.read(_CHUNK):
            # Both bytes of a line end stay in one piece.
            while piece.endswith(b"\r") and (more := file.read(1)):
                piece += more
            written.write(piece.replace(unusual, b"\n"))
    return _Bytes(copy.path, False, copy)


def parse_header(path: str, begin: bytes, text_format: TextFormat) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter and the columns in the first line of a UTF-8 text."""
    text = begin.decode("utf-8-sig", errors="ignore")
    if not text.strip():
        raise UnreadableFileError.without_header(path)
    # A delimiter inside quotes is part of a name.
    by_delimiter = {each: _names(text, each) for each in text_format.delimiter or _DELIMITERS}
    delimiter = max(by_delimiter, key=lambda each: len(by_delimiter[each]))
    # The first column of a table written by pandas may have no name.
    columns = tuple(name or f"column {at}" for at, name in enumerate(by_delimiter[delimiter], 1))
    if not any(by_delimiter[delimiter]):
        raise UnreadableFileError.without_header(path)
    check_names(columns, f"the first line of {path}")
    return delimiter, columns


def check_names(columns: Sequence[str], name: str) -> None:
    """Raise if two names are equal or differ in case only, which databases ignore."""
    often = Counter(column.lower() for column in columns)
    repeated = sorted(
        {column for column in columns if often[column.lower()] > 1}, key=lambda each: (each.lower(), each)
    )
    if repeated:
        first, *more = repeated
        other = f", as {more[0]!r}" if more and more[0].lower() == first.lower() else ""
        raise InputError(f"{name} has column {first!r} twice{other}; give each column one name")


def _names(text: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []))
    except csv.Error:
        return ()


def rows_across_lines(connection: duckdb.DuckDBPyConnection, scan: str, file: TextFile) -> int:
    """Return the number of rows of a text whose values may span lines; raise unless every line is part of a row.

    After an unclosed quote, everything up to the next quote is one value, and DuckDB may silently skip many lines. So
    the file is read once more, and the lines inside its values are counted.
    """
    try:
        read, more, across, first = connection.execute(_counted(scan, file.columns)).fetchall()[0]
    except duckdb.Error as error:
        raise InputError(
            f"{file.name} cannot be read ({first_line(error)}); it has a stray quote or carriage return, so save "
            "it again with uniform line ends, and with quotes inside values doubled"
        ) from None
    open_at = open_quote(connection)
    if open_at is not None:
        raise open_at
    rows = int(read) + rejected_lines(connection, [file.path])
    found = rows + int(more) + sum(len(re.findall(_BREAKS, name)) for name in file.columns)
    if found != file.lines.below:
        raise InputError(
            f"{file.name} has {file.lines.below:,} lines below its header, but {found:,} were read; a quote may be "
            "unclosed, so look for values with a single quote, and double it"
        )
    if across:
        log.warning(
            "%s has %s rows with values that span several lines, the first of them row %s; if they should not, "
            "a quote is unclosed there",
            file.name,
            f"{across:,}",
            f"{first:,}",
        )
    return rows


def _counted(scan: str, columns: tuple[str, ...]) -> str:
    """Return the query for the number of rows, of further lines inside values, of rows with such, and the first."""
    broken = [f"replace(coalesce({quote_name(name)}, ''), chr(13) || chr(10), chr(10))" for name in columns]
    # Empty lines do not count, so a run of line breaks is one.
    lines = " + ".join(
        f"length(regexp_replace({each}, '\\n+', chr(10), 'g')) - length(replace({each}, chr(10), ''))"
        for each in broken
    )
    return (
        "SELECT count(*), coalesce(sum(more), 0), count(*) FILTER (more > 0), min(n) FILTER (more > 0) "
        f"FROM (SELECT {lines} AS more, row_number() OVER () AS n FROM {scan})"
    )
