"""The lines of a text file: how many there are, how they end, and which of them leave a quote open."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from odkanon.core.arrays import Bools

_PIECE = 1 << 17
"""Bytes in which lines are counted at a time: what is small enough to stay near the processor."""
_NEW_LINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class LineCount:
    r"""What the bytes of a text tell of its lines, which end with ``\n``.

    Attributes
    ----------
    below : int
        Lines below the first one that are not empty, which readers pass over.
    ends, windows : int
        Line ends, and how many of them are ``\r\n``.
    returns : int
        How often ``\r`` ends no such line.
    odd : int
        Lines with an odd number of quotes: a value may go on from there to the next line.
    utf8 : bool
        Whether all is UTF-8.
    """

    below: int
    ends: int
    windows: int
    returns: int
    odd: int
    utf8: bool

    @property
    def rows(self) -> int | None:
        """How many rows there should be below the header; None where lines do not tell."""
        return self.below if self.utf8 and not self.odd and not self.returns else None

    @property
    def strange_end(self) -> bytes | None:
        r"""What to replace by ``\n`` so that all lines end alike; None where nothing is."""
        if self.returns and not self.ends:
            return b"\r"
        return b"\r\n" if 0 < self.windows < self.ends else None


def count_lines(file: BinaryIO) -> LineCount:
    """Look at the lines of a text, some bytes at a time."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    ends = empty = windows = returns = odd = 0
    utf8, is_odd, tail = True, False, b" \n"
    for piece in _pieces(file):
        if utf8 and not (piece.isascii() and not decoder.getstate()[0]):
            utf8 = _decodes(decoder, piece)
        # What belongs together may lie across two pieces.
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
    """Return how many lines that end in a piece have an odd number of quotes, and whether what follows does so far.

    ``is_odd`` tells whether the line with which the piece begins does before it.
    """
    starts = np.flatnonzero(ends) + 1
    first = np.concatenate([[0], starts[starts < len(quotes)]])
    odd = np.logical_xor.reduceat(quotes, first)
    odd[0] ^= is_odd
    last = len(starts) > 0 and starts[-1] == len(quotes)
    return int(np.count_nonzero(odd if last else odd[:-1])), not last and bool(odd[-1])
