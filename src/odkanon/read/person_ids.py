"""Ids of contributors normalized in portable SQL, so that different spellings of one id count once.

Spellings that might denote one person or two are merged: counting too few is safe, counting too many is not.
"""

from __future__ import annotations

import re
from functools import cache
from unicodedata import decomposition, normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Codes
from odkanon.core.sql import quote_name, quote_text

NO_ID = (
    *("", "nan", "-nan", "null", "na", "n/a", "n.a.", "none", "nil", "nat", "undefined", "unknown"),
    *("#n/a", "#n/a n/a", "#na", "#null!", "<na>", "<null>", "<none>", "(null)", "[null]"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "-", "--", ".", "?", "\\n"),
)
"""Placeholders for a missing id, in lower case; the last is how databases export NULL."""
_NO_IDS = ", ".join(map(quote_text, NO_ID))

_SPACES = "\t\n\r\f\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff"
_NUMBER = "^[+]?0*([0-9]+?)([.]0*)?$"
_DECIMAL = "0*([0-9]+([.][0-9]*[1-9])?)[.]?0*$"
_ABOVE, _BELOW = f"^[+]?{_DECIMAL}", f"^-{_DECIMAL}"
_POWER = "^[+-]?([0-9]+[.][0-9]*[eE][+]?|[0-9]+[eE][+]|[1-9]e[1-9])[0-9]{1,3}$"
"""Large numbers in scientific notation: ``1.5E7``, ``1e+05``, ``1e16``; but ``1e5`` may be hexadecimal."""
_CANONICAL = "^({})$".format(
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
"""Ids with one spelling only: numbers without padding zeros, lower-case hexadecimal, or neither nor a placeholder."""
_VISIBLE = "^[!#-&(-_a-~]([ !#-&(-_a-~]*[!#-&(-_a-~])?$"
"""ASCII without quotes and surrounding spaces."""
_HEX = "^[{(]?(0[xX])?([0-9a-fA-F-]+)[)}]?$"
_UUID = "^(?:urn:uuid:|[{(])?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})[)}]?$"
_QUOTES = "\"'`\u00ab\u00b4\u00bb\u02b9-\u02bf\u02c8\u02ca\u02cb\u2018-\u201f\u2032-\u203a\u275b-\u2760\u301d-\u301f"
_IGNORED = quote_text(rf"[\p{{Cf}}\p{{Cc}}\p{{M}}\x{{115F}}\x{{1160}}\x{{3164}}\x{{FFA0}}{_QUOTES}]")
"""Quotes, and characters without width of their own, once spaces are removed."""
_BLANK = r"[\p{Z}\t\n\r\f\v\x{2800}]"
_ZEROS = (0x660, 0x6F0, 0x7C0, *range(0x966, 0xDE6, 0x80), 0xE50, 0xED0, 0xF20, 0x1040)
_LETTERS = zip(
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u0430\u0432\u0435\u0455\u0456\u0458\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
    "ABESIJKMHOPCTYXabesijkmhopctyxABEZHIKMNOPTYXabezhikmnoptyx",
    strict=True,
)
_ALIKE = (
    {wide: normalize("NFKC", wide) for wide in map(chr, (*range(0xFF01, 0xFF5F), *range(0xFF61, 0xFFA0)))}
    | {chr(zero + digit): str(digit) for zero in _ZEROS for digit in range(10)}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict(_LETTERS)
)
"""Full-width characters, digits of other scripts, dashes, and Cyrillic and Greek letters, with what they look like."""
_WIDE, _NARROW = "".join(_ALIKE), f"{quote_text(''.join(_ALIKE))}, {quote_text(''.join(_ALIKE.values()))}"


def plain_text(text: str) -> str:
    """Return the SQL of a text without surrounding spaces and invisible characters."""
    blanks = quote_text(_SPACES + _INVISIBLE)
    return _unless_visible(text, f"trim(translate({text}, {blanks}, {quote_text(' ' * len(_SPACES))}))")


def _folded(text: str) -> str:
    """Return the SQL of a text without accents, quotes and invisible characters, in Latin letters and digits."""
    # Translating so many letters takes ten times as long as testing that none occurs.
    bare = f"strip_accents({text})"
    same = f"CASE WHEN regexp_matches({bare}, '[{_WIDE}]') THEN translate({bare}, {_NARROW}) ELSE {bare} END"
    plain = f"regexp_replace(regexp_replace({same}, '{_BLANK}', ' ', 'g'), {_IGNORED}, '', 'g')"
    return _unless_visible(text, f"trim({plain})")


@cache
def is_ambiguous(column: str) -> str:
    """Return the SQL condition that an id has a character, such as a ligature, that stands for several others."""
    compatible = (each for each in map(chr, range(0xA0, 0x1FC00)) if decomposition(each).startswith("<"))
    known = re.compile(rf"[{_QUOTES}\s\u3164\uffa0]")
    several = "".join(each for each in compatible if each not in _ALIKE and not known.match(each))
    text = as_text(column)
    return f"strlen({text}) > length({text}) AND regexp_matches(strip_accents({text}), '[{several}]')"


def _unless_visible(text: str, otherwise: str) -> str:
    """Return the SQL of a text as it is if all of it is visible ASCII, as usual, and something else otherwise."""
    return f"CASE WHEN regexp_matches({text}, '{_VISIBLE}') THEN {text} ELSE {otherwise} END"


def value_text(column: str) -> str:
    """Return the SQL of a value in canonical form: ``30``, ``30.0`` and ``030`` are the same."""
    text = plain_text(as_text(column))
    return _unless_canonical(column, f"coalesce(nullif(regexp_extract({text}, '{_NUMBER}', 1), ''), {text})")


def contributor_text(column: str) -> str:
    """Return the SQL of the id of a person or household in canonical form; NULL where it is missing.

    ``1``, ``1.0``, ``01`` and ``1e+00`` are one id, and so are ids that differ in case, accents, quotes, width, the
    number of spaces or letters that look alike, and hexadecimal ids that differ in braces, a leading ``0x`` or the
    dashes of a UUID. Rows for which `is_ambiguous` holds are rejected.
    """
    text = _folded(as_text(column))
    other = (
        f"CASE WHEN lower({text}) IN ({_NO_IDS}) THEN NULL "
        f"WHEN regexp_matches({text}, '{_UUID}') THEN lower(replace(regexp_extract({text}, '{_UUID}', 1), '-', '')) "
        f"WHEN regexp_matches({text}, '{_BELOW}') "
        f"THEN coalesce(nullif(concat('-', regexp_extract({text}, '{_BELOW}', 1)), '-0'), '0') "
        f"WHEN regexp_matches({text}, '{_POWER}') "
        f"THEN coalesce(CAST(TRY_CAST({text} AS DECIMAL(38, 0)) AS VARCHAR), lower({text})) "
        f"WHEN regexp_matches({text}, '{_HEX}') THEN lower(regexp_extract({text}, '{_HEX}', 2)) "
        f"ELSE {_letters(text)} END"
    )
    number = f"coalesce(nullif(regexp_extract({text}, '{_ABOVE}', 1), ''), {other})"
    return _unless_canonical(column, number, "lower({})")


def _letters(text: str) -> str:
    """Return the SQL of a name in one case, with single spaces; in capitals, a sharp s is written SS."""
    return f"replace(lower(upper(regexp_replace({text}, ' +', ' ', 'g'))), '\u00df', 'ss')"


def is_canonical(texts: pa.Array) -> bool:
    """Return whether all of some ids, none of them missing, are in canonical form and in lower case."""
    plain = texts.cast(pa.string())
    canonical = pc.and_not(pc.match_substring_regex(plain, _CANONICAL), pc.match_substring_regex(plain, "[A-Z]"))
    return bool(pc.all(canonical).as_py())


def contributor_numbers(contributors: pa.Array) -> Codes:
    """Return a number for each contributor, -1 where it is missing.

    Numbers follow the order of the ids as text, so they do not depend on the order of rows or on the engine.
    """
    found = pc.dictionary_encode(contributors)
    rank = np.empty(len(found.dictionary) + 1, dtype=np.int32)
    rank[pc.array_sort_indices(found.dictionary.cast(pa.string()))] = np.arange(len(found.dictionary))
    rank[-1] = -1
    numbers: Codes = rank[np.asarray(pc.fill_null(found.indices, -1))]
    return numbers


def as_text(column: str) -> str:
    """Return the SQL of a value as text."""
    return f"CAST({quote_name(column)} AS VARCHAR)"


def _unless_canonical(column: str, normalized: str, canonical: str = "{}") -> str:
    """Return the SQL of a text that is canonical, which is fast and the usual case, else of the normalized one."""
    text = as_text(column)
    return f"CASE WHEN regexp_matches({text}, '{_CANONICAL}') THEN {canonical.format(text)} ELSE {normalized} END"
