"""Who is who: ids as people write them, in SQL that every engine knows, so that one head is one whatever the spelling.

Spellings that could be two heads or one are taken for one: counting too few is safe, counting too many is not.
"""

from __future__ import annotations

from functools import cache
from unicodedata import category, normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Codes
from odkanon.read.tables.open import quote_name, quote_text

NOBODY = (
    "",
    "nan",
    "-nan",
    "null",
    "na",
    "n/a",
    "#n/a",
    "<na>",
    "none",
    "nil",
    "nat",
    "undefined",
    "\\n",
)
"""Words, in lower case, that stand for a missing id; the last is what databases write for NULL."""

_SPACES = "\t\n\r\f\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff"
_NUMBER = "^[+]?0*([0-9]+?)([.]0*)?$"
_BELOW = "^-0*([0-9]+?)([.]0*)?$"
_POWER = "^[+]?[0-9]+([.][0-9]*)?[eE][+][0-9]{1,2}$"
_SINGLE = "^({})$".format(
    "|".join(
        (
            "[1-9][0-9]*",
            "[0-9]+[.][0-9]*[1-9]",
            "[g-mo-tv-zG-MO-TV-Z][0-9A-Za-z_-]*",
            "[0-9a-f-]*[a-f][0-9a-f-]*",
            "[1-9A-Fa-f][0-9A-Fa-f_-]*[g-zG-Z_][0-9A-Za-z_-]*",
        )
    )
)
"""A number without zeros about it, hexadecimal digits in small letters, or what is neither, nor a word for nobody."""
_UNSEEN = ("Cf", "Mn")
"""Kinds of signs that are not seen, or only as part of the letter before."""
_VISIBLE = "^[!-~]([ -~]*[!-~])?$"
_HEX = "^[{]?(0[xX])?([0-9a-fA-F-]+)[}]?$"


def plain_text(text: str) -> str:
    """Return the SQL expression of a text as it reads: spaces at its ends and what cannot be seen taken off."""
    return _translated(text, _SPACES + _INVISIBLE, " " * len(_SPACES))


def _translated(text: str, letters: str, plain: str) -> str:
    seen = f"trim(translate({text}, {quote_text(letters)}, {quote_text(plain)}))"
    # To look for so many letters takes ten times as long as to see that there is none of them.
    return f"CASE WHEN regexp_matches({text}, '{_VISIBLE}') THEN {text} ELSE {seen} END"


@cache
def _folding() -> tuple[str, str]:
    """Return letters, and what they are without accents and width; those beyond the end of the latter are nothing.

    Letters with an accent are written as one sign or as two, digits in full width or not, and both look the same.
    """
    folded, nothing = {}, []
    for letter in map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x10000))):
        if letter in _SPACES:
            continue
        plain = "".join(sign for sign in normalize("NFKD", letter) if category(sign) not in _UNSEEN)
        if not plain:
            nothing.append(letter)
        elif len(plain) == 1 and plain != letter and plain.isalnum():
            folded[letter] = plain
    return "".join((*folded, *nothing)), "".join(folded.values())


def value_text(column: str) -> str:
    """Return the SQL expression of a value however it is written: ``30``, ``30.0`` and ``030`` are the same."""
    text = plain_text(as_text(column))
    return _unless_single(column, f"coalesce(nullif(regexp_extract({text}, '{_NUMBER}', 1), ''), {text})")


def head_text(column: str) -> str:
    """Return the SQL expression of the id of a person or household; NULL where there is nobody.

    ``1``, ``1.0``, ``01`` and ``1e+00`` are one head, and so are ids that differ in accents or width, and ids in
    hexadecimal digits that differ in case, in braces around them or in ``0x`` before them.
    """
    letters, plain = _folding()
    text = _translated(as_text(column), _SPACES + letters, " " * len(_SPACES) + plain)
    nobody = ", ".join(quote_text(word) for word in NOBODY)
    number = f"nullif(regexp_extract({text}, '{_NUMBER}', 1), '')"
    spelled = (
        f"CASE WHEN lower({text}) IN ({nobody}) THEN NULL WHEN {number} IS NOT NULL THEN {number} "
        f"WHEN regexp_matches({text}, '{_BELOW}') "
        f"THEN coalesce(nullif(concat('-', regexp_extract({text}, '{_BELOW}', 1)), '-0'), '0') "
        f"WHEN regexp_matches({text}, '{_POWER}') "
        f"THEN coalesce(CAST(TRY_CAST({text} AS DECIMAL(38, 0)) AS VARCHAR), {text}) "
        f"WHEN regexp_matches({text}, '{_HEX}') THEN lower(regexp_extract({text}, '{_HEX}', 2)) ELSE {text} END"
    )
    return _unless_single(column, spelled)


def spelled_once(texts: pa.Array) -> bool:
    """Tell whether all of some texts, none of them missing, can be spelled in one way only: each is a head as it is."""
    return bool(pc.all(pc.match_substring_regex(texts.cast(pa.string()), _SINGLE)).as_py())


def head_numbers(heads: pa.Array) -> Codes:
    """Return a number for each head, -1 where there is none; numbers are in the order of the ids as text.

    So they are the same whatever the order of rows, and on every engine.
    """
    found = pc.dictionary_encode(heads)
    rank = np.empty(len(found.dictionary) + 1, dtype=np.int32)
    rank[pc.array_sort_indices(found.dictionary.cast(pa.string()))] = np.arange(len(found.dictionary))
    rank[-1] = -1
    numbers: Codes = rank[np.asarray(pc.fill_null(found.indices, -1))]
    return numbers


def as_text(column: str) -> str:
    """Return the SQL expression of a value as a text."""
    return f"CAST({quote_name(column)} AS VARCHAR)"


def _unless_single(column: str, spelled: str) -> str:
    """Return a text as it is where it can be spelled in one way only, and as it is spelled otherwise.

    Most ids are such, and looking at them no further is what makes reading fast.
    """
    text = as_text(column)
    return f"CASE WHEN regexp_matches({text}, '{_SINGLE}') THEN {text} ELSE {spelled} END"
