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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from odkanon.core.arrays import Bools
from odkanon.core.outputs import Claim
from odkanon.errors import InputError
from odkanon.read.tables.encodings import told_encoding

log = logging.getLogger(__name__)

GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_PIECE = 1 << 17
"""Bytes in which lines are counted at a time: what is small enough to stay near the processor."""
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
    lines : int or None
        How many lines there are below the header; None where values may go over several lines.
    """

    path: Path
    gzipped: bool
    delimiter: str
    columns: tuple[str, ...]
    lines: int | None = None
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


def look_at_text(path: Path, said: TextFormat = TextFormat(), name: str | None = None) -> TextFile:  # noqa: B008
    """Look through a text file once, and have it in UTF-8; ``name`` is what to call it."""
    name = name or str(path)
    with path.open("rb") as file:
        gzipped = file.read(2) == GZIP
    try:
        return _looked_at(path, said, name, gzipped=gzipped)
    except (OSError, EOFError) as error:
        if isinstance(error, gzip.BadGzipFile | EOFError):
            raise InputError(f"{name} cannot be unpacked ({error}); it may be truncated, so copy it again") from None
        raise


def _looked_at(path: Path, said: TextFormat, name: str, *, gzipped: bool) -> TextFile:
    with _opened(path, gzipped=gzipped) as file:
        head = file.read(_CHUNK)
    encoding = said.encoding or next((told for mark, told in MARKS.items() if head.startswith(mark)), None)
    if encoding is None and b"\0" in head:
        raise InputError(
            f"{name} is a binary file of an unknown kind; give CSV, Parquet, Arrow, JSON Lines or a spreadsheet"
        )
    with _opened(path, gzipped=gzipped) as file:
        lines, utf8 = _count_lines(file)
    if encoding is None and not utf8:
        with _opened(path, gzipped=gzipped) as file:
            encoding = told_encoding(file, name)
    if encoding is None or codecs.lookup(encoding).name == "utf-8":
        if not utf8:
            raise InputError(f"{name} is not UTF-8 text; say which encoding it is in", option="encoding")
        return TextFile(path, gzipped, *told_header(name, head, said), lines)
    copy = Copy(path.name)
    with _opened(path, gzipped=gzipped) as file:
        lines = _transcode(file, encoding, copy.path, name)
    with copy.path.open("rb") as file:
        head = file.read(_CHUNK)
    return TextFile(copy.path, False, *told_header(name, head, said), lines, copy)


def _opened(path: Path, *, gzipped: bool) -> BinaryIO:
    return gzip.open(path) if gzipped else path.open("rb")  # type: ignore[return-value]


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_PIECE):
        # What is one line end stays together.
        yield chunk + file.read(1) if chunk.endswith(b"\r") else chunk


def _count_lines(file: BinaryIO) -> tuple[int | None, bool]:
    """Return the number of lines below the header, where that can be told, and whether all is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    breaks, plain, utf8, last = 0, True, True, b"\n"
    for chunk in _chunks(file):
        ends = np.frombuffer(chunk, dtype=np.uint8) == ord("\n")
        breaks += int(np.count_nonzero(ends))
        plain = plain and last + chunk[:1] not in (b"\n\n", b"\n\r") and _is_plain(chunk, ends)
        if utf8 and not (chunk.isascii() and not decoder.getstate()[0]):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                utf8 = False
        last = chunk[-1:]
    if utf8 and decoder.getstate()[0]:
        utf8 = False
    below = breaks - (last == b"\n")
    return (below if plain and utf8 else None), utf8


def _is_plain(chunk: bytes, ends: Bools) -> bool:
    """Tell whether each line is a row: values may hold line breaks between quotes, and empty lines are passed over."""
    if b'"' in chunk or (ends[1:] & ends[:-1]).any():
        return False
    if b"\r" not in chunk:
        return True
    returns = np.frombuffer(chunk, dtype=np.uint8) == ord("\r")
    return not (returns[-1] or (returns[:-1] > ends[1:]).any() or (ends[:-1] & returns[1:]).any())


def _transcode(file: BinaryIO, encoding: str, target: Path, name: str) -> int | None:
    try:
        with target.open("w", encoding="utf-8", newline="") as written:
            reader = codecs.getreader(encoding)(file)
            while text := reader.read(_CHUNK):
                written.write(text.removeprefix("\ufeff"))
    except UnicodeError as error:
        raise InputError(
            f"{name} is not {encoding} text ({error}); say which encoding it is in", option="encoding"
        ) from None
    with target.open("rb") as again:
        return _count_lines(again)[0]


def told_header(path: str, head: bytes, said: TextFormat) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter and the columns that the beginning of a text in UTF-8 tells; ``path`` is its name."""
    text = head.decode("utf-8-sig", errors="ignore")
    if not text.strip():
        raise InputError(f"the first line of {path} has no header; give each column one name")
    # A delimiter between quotes is part of a name.
    by_delimiter = {each: _names(text, each) for each in said.delimiter or _DELIMITERS}
    delimiter = max(by_delimiter, key=lambda each: len(by_delimiter[each]))
    columns = by_delimiter[delimiter]
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated or not any(columns):
        what = f"names column {repeated[0]!r} twice" if repeated else "has no header"
        raise InputError(f"the first line of {path} {what}; give each column one name")
    return delimiter, columns


def _names(text: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []))
    except csv.Error:
        return ()
