"""Who is who: ids as people write them, in SQL that every engine knows, so that one head is one whatever the spelling.

Spellings that could be two heads or one are taken for one: counting too few is safe, counting too many is not.
"""

from __future__ import annotations

from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Codes
from odkanon.read.tables.open_table import quote_name, quote_text

NOBODY = (
    *("", "nan", "-nan", "null", "na", "n/a", "n.a.", "none", "nil", "nat", "undefined", "unknown"),
    *("#n/a", "#n/a n/a", "#na", "#null!", "<na>", "<null>", "<none>", "(null)", "[null]"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "-", "--", ".", "?", "\\n"),
)
"""Words, in lower case, that stand for a missing id; the last is what databases write for NULL."""

_SPACES = "\t\n\r\f\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff"
_NUMBER = "^[+]?0*([0-9]+?)([.]0*)?$"
_DECIMAL = "0*([0-9]+([.][0-9]*[1-9])?)[.]?0*$"
_ABOVE, _BELOW = f"^[+]?{_DECIMAL}", f"^-{_DECIMAL}"
_POWER = "^[+-]?([0-9]+[.][0-9]*[eE][+]?|[0-9]+[eE][+]|[1-9]e[1-9])[0-9]{1,3}$"
"""Large numbers as programs write them: ``1.5E7``, ``1e+05``, ``1e16``; a ``1e5`` may be hexadecimal."""
_SINGLE = "^({})$".format(
    "|".join(
        (
            "[1-9][0-9]*",
            "(0|[1-9][0-9]*)[.][0-9]*[1-9]",
            "[g-mo-tv-zG-MO-TV-Z][0-9A-Za-z_-]*",
            "[0-9a-f]*[a-df][0-9a-f]*",
            "[1-9A-Fa-f][0-9A-Fa-f_-]*[g-zG-Z_][0-9A-Za-z_-]*",
        )
    )
)
"""A number without zeros about it, hexadecimal digits in small letters, or what is neither, nor a word for nobody."""
_VISIBLE = "^[!-~]([ -~]*[!-~])?$"
_HEX = "^[{(]?(0[xX])?([0-9a-fA-F-]+)[)}]?$"
_UUID = "^(?:urn:uuid:|[{(])?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})[)}]?$"
_UNSEEN = r"[\p{Cf}\p{Cc}\p{M}\x{115F}\x{1160}\x{3164}\x{FFA0}]"
"""Signs that are not seen, or only as part of the letter before; once spaces are taken off."""
_BLANK = r"[\p{Z}\t\n\r\f\v\x{2800}]"
_ALIKE = (
    {wide: normalize("NFKC", wide) for wide in map(chr, (*range(0xFF01, 0xFF5F), *range(0xFF61, 0xFFA0)))}
    | {chr(zero + digit): str(digit) for zero in (0x660, 0x6F0, 0x966) for digit in range(10)}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")
)
"""Signs that differ in width only, digits of other scripts, and dashes."""


def plain_text(text: str) -> str:
    """Return the SQL expression of a text as it reads: spaces at its ends and what cannot be seen taken off."""
    blanks = quote_text(_SPACES + _INVISIBLE)
    return _unless_visible(text, f"trim(translate({text}, {blanks}, {quote_text(' ' * len(_SPACES))}))")


def _folded(text: str) -> str:
    """Return the SQL expression of a text without accents, width, and what cannot be seen.

    Letters with an accent are written as one sign or as two, digits in full width or not, and both look the same.
    """
    letters = "".join(_ALIKE)
    narrow = f"translate({text}, {quote_text(letters)}, {quote_text(''.join(_ALIKE.values()))})"
    # To look for so many letters takes ten times as long as to see that there is none of them.
    same = f"CASE WHEN regexp_matches({text}, '[{letters}]') THEN {narrow} ELSE {text} END"
    plain = f"regexp_replace(regexp_replace(strip_accents({same}), '{_BLANK}', ' ', 'g'), '{_UNSEEN}', '', 'g')"
    return _unless_visible(text, f"trim({plain})")


def _unless_visible(text: str, otherwise: str) -> str:
    """Return a text as it is where it has nothing but plain signs, which most have, and something else otherwise."""
    return f"CASE WHEN regexp_matches({text}, '{_VISIBLE}') THEN {text} ELSE {otherwise} END"


def value_text(column: str) -> str:
    """Return the SQL expression of a value however it is written: ``30``, ``30.0`` and ``030`` are the same."""
    text = plain_text(as_text(column))
    return _unless_single(column, f"coalesce(nullif(regexp_extract({text}, '{_NUMBER}', 1), ''), {text})")


def contributor_text(column: str) -> str:
    """Return the SQL expression of the id of a person or household; NULL where there is nobody.

    ``1``, ``1.0``, ``01`` and ``1e+00`` are one head, and so are ids that differ in accents or width, and ids in
    hexadecimal digits that differ in case, in braces around them, in ``0x`` before them or in the dashes of a UUID.
    """
    text = _folded(as_text(column))
    nobody = ", ".join(quote_text(word) for word in NOBODY)
    other = (
        f"CASE WHEN lower({text}) IN ({nobody}) THEN NULL "
        f"WHEN regexp_matches({text}, '{_UUID}') THEN lower(replace(regexp_extract({text}, '{_UUID}', 1), '-', '')) "
        f"WHEN regexp_matches({text}, '{_BELOW}') "
        f"THEN coalesce(nullif(concat('-', regexp_extract({text}, '{_BELOW}', 1)), '-0'), '0') "
        f"WHEN regexp_matches({text}, '{_POWER}') "
        f"THEN coalesce(CAST(TRY_CAST({text} AS DECIMAL(38, 0)) AS VARCHAR), lower({text})) "
        f"WHEN regexp_matches({text}, '{_HEX}') THEN lower(regexp_extract({text}, '{_HEX}', 2)) ELSE {text} END"
    )
    return _unless_single(column, f"coalesce(nullif(regexp_extract({text}, '{_ABOVE}', 1), ''), {other})")


def spelled_once(texts: pa.Array) -> bool:
    """Tell whether all of some texts, none of them missing, can be spelled in one way only: each is a head as it is."""
    return bool(pc.all(pc.match_substring_regex(texts.cast(pa.string()), _SINGLE)).as_py())


def contributor_numbers(contributors: pa.Array) -> Codes:
    """Return a number for each head, -1 where there is none; numbers are in the order of the ids as text.

    So they are the same whatever the order of rows, and on every engine.
    """
    found = pc.dictionary_encode(contributors)
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
