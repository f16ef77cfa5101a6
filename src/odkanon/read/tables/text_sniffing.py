"""Detection from the bytes of a text file: its encoding, the number of its lines, and their ends."""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from odkanon.core.arrays import Bools
from odkanon.errors import InputError

log = logging.getLogger(__name__)

_WESTERN = ("cp1252", "latin_1", "mac_roman", "cp850")
"""The most common encodings other than UTF-8, preferred where they are as likely as others."""
_SIGNS = "€£–—’‘“”«»°ºª²³·…§µ×\xa0"
_MIXED = re.compile("[A-Za-z][\u2e80-\uffef]|[\u2e80-\uffef][A-Za-z]")
"""Letters of two scripts in one word, which no language mixes."""
_TOLERANCE = 0.05
SAMPLE_LINES = 200
"""Non-ASCII lines that suffice to detect an encoding."""
_MAX_LINE = 1000

_PIECE = 1 << 17
"""Bytes per step, few enough for the processor cache."""
_NEW_LINE, _RETURN, _QUOTE = b'\n\r"'


def detect_file_encoding(lines: Iterable[bytes], name: str) -> str:
    """Return the encoding of a file by its non-ASCII lines, with a warning."""
    unusual: list[bytes] = []
    first = 0
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            unusual.append(line[:_MAX_LINE])
            first = first or number
        if len(unusual) == SAMPLE_LINES:
            break
    return detect_encoding(unusual, name, f"line {first}: ")


def detect_encoding(lines: Sequence[bytes], name: str, where: str = "") -> str:
    """Return the encoding of some non-ASCII lines, with a warning; ``where`` is the place of the first."""
    import charset_normalizer

    lines = [line[:_MAX_LINE] for line in lines]
    matches = [match for match in charset_normalizer.from_bytes(b"".join(lines)) if not _MIXED.search(str(match))]
    likely = [match for match in matches if match.chaos <= matches[0].chaos + _TOLERANCE]
    names = {each for match in likely for each in match.could_be_from_charset} or set(_WESTERN)
    natural = (each for each in _WESTERN if each in names and _is_natural(b" ".join(lines), each))
    encoding = next(natural, likely[0].encoding if likely else None)
    _refuse_mixed(lines, encoding, name)
    if encoding is None:
        raise InputError(
            f"{name} is not UTF-8 text ({where}{_example(lines[0])!r}); name its encoding", option="encoding"
        )
    log.warning(
        "%s is not UTF-8; it is read as %s (%s%s); name the encoding if that looks wrong",
        name,
        encoding,
        where,
        _example(lines[0]).decode(encoding, errors="replace"),
        extra={"option": "encoding"},
    )
    return encoding


def _refuse_mixed(lines: Sequence[bytes], encoding: str | None, name: str) -> None:
    """Raise if some lines are UTF-8 and others in a single-byte encoding, so that no encoding fits all."""
    plain = [line for line in lines if _is_utf8(line)]
    single = encoding is not None and all(len(line.decode(encoding, errors="replace")) == len(line) for line in lines)
    if plain and len(plain) < len(lines) and single:
        other = next(line for line in lines if line not in plain)
        raise InputError(
            f"{name} is in two encodings: {_example(plain[0])!r} is UTF-8, and {_example(other)!r} is not; save it in "
            "one, or name the one to use",
            option="encoding",
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(line) >= _MAX_LINE and error.start > len(line) - 4
    return True


def _is_natural(content: bytes, encoding: str) -> bool:
    """Return whether words look natural: letters only, and no capitals inside lower-case words."""
    text = re.sub(f"[\0-\x40\x5b-\x60\x7b-\x7f{_SIGNS}]+", " ", content.decode(encoding, errors="replace"))
    return all(
        word.isalpha() and (word.isupper() or word[1:] == word[1:].lower())
        for word in text.split()
        if not word.isascii()
    )


def _example(line: bytes) -> bytes:
    """Return the first word that is not ASCII; the rest of the line stays private."""
    return next(word for word in re.split(rb"[\s,;|\"]+", line) if not word.isascii())[:40]


@dataclass(frozen=True)
class LineCount:
    r"""Counts over the lines of a text, which end with ``\n``."""

    below: int
    """Lines below the first that are not empty; readers skip empty ones."""
    ends: int
    windows: int
    r"""Line ends, and how many of them are ``\r\n``."""
    returns: int
    r"""Occurrences of ``\r`` elsewhere."""
    odd: int
    """Lines with an odd number of quotes, where a value may continue on the next line."""
    utf8: bool
    """Whether everything is UTF-8."""

    @property
    def rows(self) -> int | None:
        """The expected number of rows; None where lines do not determine it."""
        return self.below if self.utf8 and not self.odd and not self.returns else None

    @property
    def unusual_end(self) -> bytes | None:
        r"""The line end to replace by ``\n``; None where all lines end alike."""
        if self.returns and not self.ends:
            return b"\r"
        return b"\r\n" if 0 < self.windows < self.ends else None


def count_lines(file: BinaryIO) -> LineCount:
    """Count the lines of a text in one pass."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    ends = empty = windows = returns = odd = 0
    utf8, is_odd, tail = True, False, b" \n"
    for piece in _pieces(file):
        if utf8 and not (piece.isascii() and not decoder.getstate()[0]):
            utf8 = _decodes(decoder, piece)
        # A line end may span two pieces.
        data = np.frombuffer(tail + piece, dtype=np.uint8)
        is_end = data == _NEW_LINE
        new = is_end[2:]
        ends += int(np.count_nonzero(new))
        after = is_end[1:-1]
        if b"\r" in tail or b"\r" in piece:
            is_return = data == _RETURN
            pairs = new & is_return[1:-1]
            windows += int(np.count_nonzero(pairs))
            returns += piece.count(b"\r")
            after = after | (is_return[1:-1] & is_end[:-2])
        empty += int(np.count_nonzero(new & after))
        if b'"' in piece or is_odd:
            more, is_odd = _odd_lines(data[2:] == _QUOTE, new, is_odd)
            odd += more
        tail = (tail + piece)[-2:]
    utf8 = utf8 and not decoder.getstate()[0]
    below = ends - empty + (tail[-1:] != b"\n") - 1
    return LineCount(below, ends, windows, returns - windows, odd + is_odd, utf8)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _decodes(decoder: codecs.IncrementalDecoder, piece: bytes) -> bool:
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        return False
    return True


def _odd_lines(quotes: Bools, ends: Bools, is_odd: bool) -> tuple[int, bool]:
    """Return how many lines end in a piece with an odd number of quotes, and whether the unfinished line has one.

    ``is_odd`` is that of the line that was unfinished before the piece.
    """
    starts = np.flatnonzero(ends) + 1
    first = np.concatenate([[0], starts[starts < len(quotes)]])
    odd = np.logical_xor.reduceat(quotes, first)
    odd[0] ^= is_odd
    last = len(starts) > 0 and starts[-1] == len(quotes)
    return int(np.count_nonzero(odd if last else odd[:-1])), not last and bool(odd[-1])
