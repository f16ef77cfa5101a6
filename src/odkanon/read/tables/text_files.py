"""Text files: which encoding, which delimiter, which columns, and how many lines; nothing is left to a guess unsaid."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import logging
import tempfile
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from odkanon.core.atomic_write import Claim
from odkanon.errors import InputError
from odkanon.read.tables.encodings import detected_encoding
from odkanon.read.tables.lines import LineCount, count_lines

log = logging.getLogger(__name__)

GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_DELIMITERS = ",;\t|"
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""With what a text begins that says by that how it is encoded."""


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written, as far as it was said.

    Attributes
    ----------
    encoding : str, optional
        Such as ``latin-1``; UTF-8, or what the file begins with or looks like, by default.
    delimiter : str, optional
        What stands between two columns; told by the header by default.
    """

    encoding: str | None = None
    delimiter: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise InputError(
                    f"{self.encoding!r} is no known encoding; give one such as latin-1 or utf-16"
                ) from None
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InputError(f"a delimiter is one character, such as ';'; not {self.delimiter!r}")


@dataclass(frozen=True)
class TextFile:
    """A text file that is UTF-8 by now, and what its header says.

    Attributes
    ----------
    path : Path
        Where its text is: the file itself, or a copy in UTF-8 that goes away with ``keeper``.
    lines : LineCount
        What its bytes tell of its lines.
    name : str
        What to call it in messages.
    """

    path: Path
    gzipped: bool
    delimiter: str
    columns: tuple[str, ...]
    lines: LineCount
    name: str
    keeper: object = None


class Copy:
    """A copy of a file in a scratch folder; removed with the last reference to it."""

    def __init__(self, name: str = "table") -> None:
        claim = Claim(Path(tempfile.gettempdir()), "odkanon-text-")
        self.path = claim.path / name
        weakref.finalize(self, claim.release)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def look_at_text(path: Path, said: TextFormat, name: str | None = None) -> TextFile:
    """Look through a text file once, and have it in UTF-8 with lines that end alike; ``name`` is what to call it."""
    name = name or str(path)
    with path.open("rb") as file:
        gzipped = file.read(2) == GZIP
    try:
        return _looked_at(_Bytes(path, gzipped), said, name)
    except (OSError, EOFError) as error:
        if isinstance(error, gzip.BadGzipFile | EOFError):
            raise InputError(f"{name} cannot be unpacked ({error}); it may be truncated, so copy it again") from None
        raise


@dataclass(frozen=True)
class _Bytes:
    """Where the bytes of a text are, and what has to live as long as they are needed."""

    path: Path
    gzipped: bool
    keeper: object = None

    def opened(self) -> BinaryIO:
        return gzip.open(self.path) if self.gzipped else self.path.open("rb")  # type: ignore[return-value]

    def head(self) -> bytes:
        with self.opened() as file:
            return file.read(_CHUNK)

    def lines(self) -> LineCount:
        with self.opened() as file:
            return count_lines(file)


def _looked_at(text: _Bytes, said: TextFormat, name: str) -> TextFile:
    head, lines = text.head(), text.lines()
    encoding = said.encoding or next((told for mark, told in MARKS.items() if head.startswith(mark)), None)
    if encoding is None and b"\0" in head:
        raise InputError(
            f"{name} is a binary file of an unknown kind; give CSV, Parquet, Arrow, JSON Lines or a spreadsheet"
        )
    if encoding is None and not lines.utf8:
        with text.opened() as file:
            encoding = detected_encoding(file, name)
    if encoding is not None and codecs.lookup(encoding).name != "utf-8":
        text = _in_utf8(text, encoding, name)
        lines = text.lines()
    elif not lines.utf8:
        raise InputError(f"{name} is not UTF-8 text; say which encoding it is in", option="encoding")
    if lines.strange_end is not None:
        text = _with_plain_ends(text, lines.strange_end)
        lines = text.lines()
    return TextFile(text.path, text.gzipped, *parse_header(name, text.head(), said), lines, name, text.keeper)


def _in_utf8(text: _Bytes, encoding: str, name: str) -> _Bytes:
    copy = Copy(text.path.name)
    try:
        with text.opened() as file, copy.path.open("w", encoding="utf-8", newline="") as written:
            reader = codecs.getreader(encoding)(file)
            while read := reader.read(_CHUNK):
                written.write(read.removeprefix("\ufeff"))
    except UnicodeError as error:
        raise InputError(
            f"{name} is not {encoding} text ({error}); say which encoding it is in", option="encoding"
        ) from None
    return _Bytes(copy.path, False, copy)


def _with_plain_ends(text: _Bytes, strange: bytes) -> _Bytes:
    """Return a copy in which all lines end alike; DuckDB reads no others."""
    copy = Copy(text.path.name)
    with text.opened() as file, copy.path.open("wb") as written:
        while piece := file.read(_CHUNK):
            # The two letters of a line end stay together.
            while piece.endswith(b"\r") and (more := file.read(1)):
                piece += more
            written.write(piece.replace(strange, b"\n"))
    return _Bytes(copy.path, False, copy)


def parse_header(path: str, head: bytes, said: TextFormat) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter and the columns that the beginning of a text in UTF-8 tells; ``path`` is its name."""
    text = head.decode("utf-8-sig", errors="ignore")
    if not text.strip():
        raise InputError(f"the first line of {path} has no header; give each column one name")
    # A delimiter between quotes is part of a name.
    by_delimiter = {each: _names(text, each) for each in said.delimiter or _DELIMITERS}
    delimiter = max(by_delimiter, key=lambda each: len(by_delimiter[each]))
    # The first column of a table that pandas wrote has no name.
    columns = tuple(name or f"column {at}" for at, name in enumerate(by_delimiter[delimiter], 1))
    if not any(by_delimiter[delimiter]):
        raise InputError(f"the first line of {path} has no header; give each column one name")
    check_names(columns, f"the first line of {path}")
    return delimiter, columns


def check_names(columns: Sequence[str], name: str) -> None:
    """Raise if two columns have one name, or names that differ in case only, which are one to a database."""
    often = Counter(column.lower() for column in columns)
    repeated = sorted(
        {column for column in columns if often[column.lower()] > 1}, key=lambda each: (each.lower(), each)
    )
    if repeated:
        first, *more = repeated
        other = f", as {more[0]!r}" if more and more[0].lower() == first.lower() else ""
        raise InputError(f"{name} names column {first!r} twice{other}; give each column one name")


def _names(text: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []))
    except csv.Error:
        return ()
