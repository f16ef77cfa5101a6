"""Which encoding a text is in, told by its words that are not plain ASCII."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence

from odkanon.errors import InputError

log = logging.getLogger(__name__)

_WESTERN = ("cp1252", "latin_1", "mac_roman", "cp850")
"""Read alike by far the most files that are not UTF-8; taken where they are as likely as anything else."""
_SIGNS = "€£–—’‘“”«»°ºª²³·…§µ×\xa0"
_MIXED = re.compile("[A-Za-z][\u2e80-\uffef]|[\u2e80-\uffef][A-Za-z]")
"""Letters of two scripts in one word, as nobody writes them."""
_AS_LIKELY = 0.05
STRANGE_LINES = 200
"""How many lines are enough to tell an encoding."""
_LONGEST = 1000


def detected_encoding(lines: Iterable[bytes], name: str) -> str:
    """Tell an encoding by the lines that are not plain ASCII, and say so."""
    strange: list[bytes] = []
    first = 0
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            strange.append(line[:_LONGEST])
            first = first or number
        if len(strange) == STRANGE_LINES:
            break
    return encoding_of(strange, name, f"line {first}: ")


def encoding_of(strange: Sequence[bytes], name: str, where: str = "") -> str:
    """Tell an encoding by some lines that are not plain ASCII; ``where`` is where the first of them is."""
    import charset_normalizer

    strange = [line[:_LONGEST] for line in strange]
    matches = [match for match in charset_normalizer.from_bytes(b"".join(strange)) if not _MIXED.search(str(match))]
    likely = [match for match in matches if match.chaos <= matches[0].chaos + _AS_LIKELY]
    names = {each for match in likely for each in match.could_be_from_charset} or set(_WESTERN)
    natural = (each for each in _WESTERN if each in names and _is_natural(b" ".join(strange), each))
    encoding = next(natural, likely[0].encoding if likely else None)
    _refuse_mixed(strange, encoding, name)
    if encoding is None:
        raise InputError(
            f"{name} is not UTF-8 text ({where}{_strange_word(strange[0])!r}); say which encoding it is in",
            option="encoding",
        )
    shown = _strange_word(strange[0]).decode(encoding, errors="replace")
    log.warning(
        "%s is not UTF-8; it is read as %s (%s%s); name the encoding if that looks wrong",
        name,
        encoding,
        where,
        shown,
        extra={"option": "encoding"},
    )
    return encoding


def _refuse_mixed(strange: Sequence[bytes], encoding: str | None, name: str) -> None:
    """Raise if some lines are UTF-8, and others in an encoding of one byte a letter: no reading is right for both."""
    plain = [line for line in strange if _is_utf8(line)]
    single = encoding is not None and all(len(line.decode(encoding, errors="replace")) == len(line) for line in strange)
    if plain and len(plain) < len(strange) and single:
        other = next(line for line in strange if line not in plain)
        raise InputError(
            f"{name} is in two encodings: {_strange_word(plain[0])!r} is UTF-8, and {_strange_word(other)!r} is not; "
            "save it in one, or say which to read it in",
            option="encoding",
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(line) >= _LONGEST and error.start > len(line) - 4
    return True


def _is_natural(content: bytes, encoding: str) -> bool:
    """Tell whether words look like words: letters only, and none large in the middle of small ones."""
    text = re.sub(f"[\0-\x40\x5b-\x60\x7b-\x7f{_SIGNS}]+", " ", content.decode(encoding, errors="replace"))
    return all(
        word.isalpha() and (word.isupper() or word[1:] == word[1:].lower())
        for word in text.split()
        if not word.isascii()
    )


def _strange_word(line: bytes) -> bytes:
    """Return the first word that is not plain ASCII; the rest of the line is nobody's business."""
    return next(word for word in re.split(rb"[\s,;|\"]+", line) if not word.isascii())[:40]
