"""Who is nobody, and which spellings are one person, as SQL."""

from __future__ import annotations

import unicodedata

from odkanon.read.tables.open_table import quote_text

NOBODY = (
    *("", "-", "--", ".", "?", "na", "n/a", "n.a.", "#na", "#n/a", "#n/a n/a", "<na>", "nat", "nan", "-nan", "nil"),
    *("none", "<none>", "null", "(null)", "<null>", "[null]", "#null!", "\\n", "undefined", "unknown"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
)
"""Words, in lower case, by which programs write that there is no value."""

_SPACE = r"[\p{Z}\t\n\f\r\v\x{2800}]"
_INVISIBLE = r"[\p{Cf}\p{Cc}\p{M}\x{115F}\x{1160}\x{3164}\x{FFA0}]+"
_NUMBER = r"([+]|(-))?0*(\d+(\.\d*[1-9])?)\.?0*"
_FLOAT = r"[+-]?(\d+[eE]\+\d{1,3}|\d+\.\d*[eE]\+?\d{1,3}|[1-9]e[1-9]\d{1,3})"
_HEX = r"[({]?(0[xX])?([0-9a-fA-F-]+)[})]?"
_UUID = r"(urn:uuid:|[({])?([0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})[})]?"
_WIDE = "".join(map(chr, [*range(0xFF01, 0xFF5F), *range(0xFF61, 0xFFA0)]))
_DIGITS = "".join(chr(first + at) for first in (0x660, 0x6F0, 0x966) for at in range(10))
_OTHERS = _WIDE + _DIGITS + "\u2010\u2011\u2012\u2013\u2212"
_PLAIN = unicodedata.normalize("NFKC", _WIDE) + "0123456789" * 3 + "-----"


def person_sql(column: str) -> str:
    """Return the SQL for the one name of a person, however it is written; NULL where there is nobody.

    Ids that differ in invisible or surrounding space, in accents, dashes or width, in how a number is written (``7``,
    ``7.0``, ``+7``, ``7e+00``) or in the case and the frame of hexadecimal digits are one: taking two persons for one
    errs on the safe side, one for two does not.

    Parameters
    ----------
    column : str
        The column, as SQL.
    """
    written = f"CAST({column} AS VARCHAR)"
    narrow = f"translate({written}, {quote_text(_OTHERS)}, {quote_text(_PLAIN)})"
    width = f"CASE WHEN regexp_matches({written}, '[{_OTHERS}]') THEN {narrow} ELSE {written} END"
    spaced = f"regexp_replace(strip_accents({width}), '{_SPACE}', ' ', 'g')"
    text = f"trim(regexp_replace({spaced}, '{_INVISIBLE}', '', 'g'))"
    digits = f"lower(regexp_extract({text}, '^{_HEX}$', 2))"
    number = f"regexp_replace({text}, '^{_NUMBER}$', '\\2\\3')"
    nobody = ", ".join(quote_text(word) for word in NOBODY)
    return (
        f"CASE WHEN {column} IS NULL OR lower({text}) IN ({nobody}) THEN NULL "
        f"WHEN regexp_full_match({text}, '{_NUMBER}') THEN coalesce(nullif({number}, '-0'), '0') "
        f"WHEN regexp_full_match({text}, '{_FLOAT}') "
        f"THEN coalesce(CAST(TRY_CAST({text} AS DECIMAL(38, 0)) AS VARCHAR), lower({text})) "
        f"WHEN regexp_full_match({text}, '{_UUID}') "
        f"THEN lower(replace(regexp_extract({text}, '^{_UUID}$', 2), '-', '')) "
        f"WHEN regexp_full_match({text}, '{_HEX}') THEN {digits} ELSE {text} END"
    )
