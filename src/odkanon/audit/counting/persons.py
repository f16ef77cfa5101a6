"""Who is nobody, and which spellings are one person, as SQL."""

from __future__ import annotations

from odkanon.read.tables.open import quote_text

NOBODY = ("", "nan", "null", "na", "n/a", "#n/a", "<na>", "none", "nil", "nat", "undefined", "-nan", "\\n")
"""Words, in lower case, by which programs write that there is no value; the last is what databases write."""

_INVISIBLE = r"[\p{Cf}\p{Mn}\x00]"
_SPACE = r"[\p{Z}\s]"
_WHOLE = r"[+-]?\d+(\.0*)?"
_FLOAT = r"[+-]?\d(\.\d+)?[eE]\+\d+"
_HEX = r"[{]?(0[xX])?([0-9a-fA-F-]+)[}]?"
_NARROW = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code).isalnum())
_WIDE = "".join(chr(ord(letter) + 0xFEE0) for letter in _NARROW)


def person_sql(column: str) -> str:
    """Return the SQL for the one name of a person, however it is written; NULL where there is nobody.

    Ids that differ in invisible or surrounding space, in accents or width, in how a whole number is written (``7``,
    ``7.0``, ``+7``) or in the case and the frame of hexadecimal digits are one: taking two persons for one errs on the
    safe side, one for two does not.

    Parameters
    ----------
    column : str
        The column, as SQL.
    """
    folded = f"translate(strip_accents(CAST({column} AS VARCHAR)), '{_WIDE}', '{_NARROW}')"
    visible = f"regexp_replace({folded}, '{_INVISIBLE}', '', 'g')"
    text = f"trim(regexp_replace({visible}, '{_SPACE}', ' ', 'g'))"
    number = f"CAST(TRY_CAST({text} AS DECIMAL(38, 0)) AS VARCHAR)"
    nobody = ", ".join(quote_text(word) for word in NOBODY)
    return (
        f"CASE WHEN {column} IS NULL OR lower({text}) IN ({nobody}) THEN NULL "
        f"WHEN regexp_full_match({text}, '{_WHOLE}|{_FLOAT}') THEN coalesce({number}, {text}) "
        f"WHEN regexp_full_match({text}, '{_HEX}') THEN lower(regexp_extract({text}, '{_HEX}', 2)) ELSE {text} END"
    )
