"""Measures as the audit counts them, and which ids denote the same contributor."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from odkanon.core.sql import quote_text
from odkanon.model.measures import MEASURES as COUNTED


@dataclass(frozen=True)
class AuditMeasure:
    """A measure of flows, with the SQL that counts it."""

    name: str  # its name in rules and tables
    column: str  # the column of the table ``records`` from which it is counted
    total: str  # the aggregate over records, in SQL
    sql_type: str  # the SQL type of its column in the tables of releases
    adds_up: bool  # whether it is additive over groups without a common trip; distinct contributors are not

    @property
    def rounding(self) -> float:
        """The relative error of published sums: weights have four significant digits."""
        return 5.0001e-4 if self.sql_type == "DOUBLE" else 0

    def differs(self, published: str, true: str, trips: str) -> str:
        """Return the SQL condition that a published count is not the true one."""
        if self.sql_type == "BIGINT":
            return f"{published} IS DISTINCT FROM {true}"
        # The weight of each trip is rounded to whole small units, and the sum to four digits.
        exact = f"CAST({true} AS DOUBLE)"
        return f"coalesce(abs({published} - {exact}) > {self.rounding} * {exact} + 1e-9 * {trips}, true)"


def _audit_measure(name: str, column: str, *, counts_distinct: bool) -> AuditMeasure:
    if counts_distinct:
        return AuditMeasure(name, column, f"count(DISTINCT {column})", "BIGINT", False)
    if name == "weight":
        return AuditMeasure(name, column, f"sum({column})", "DOUBLE", True)
    return AuditMeasure(name, column, f"sum({column})::BIGINT", "BIGINT", True)


MEASURES = tuple(
    _audit_measure(name, each.column or name, counts_distinct=each.counts_distinct) for name, each in COUNTED.items()
)

NAMES = tuple(COUNTED)
DISTINCT = tuple(measure.column for measure in MEASURES if not measure.adds_up)
"""The columns of the table ``records`` that identify contributors."""


def measures_named(names: Collection[str]) -> list[AuditMeasure]:
    """Return the measures with the given names, in the order of `MEASURES`."""
    return [measure for measure in MEASURES if measure.name in names]


MISSING_WORDS = (
    *("", "-", "--", ".", "?", "na", "n/a", "n.a.", "#na", "#n/a", "#n/a n/a", "<na>", "nat", "nan", "-nan", "nil"),
    *("none", "<none>", "null", "(null)", "<null>", "[null]", "#null!", "\\n", "undefined", "unknown"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
)
"""What programs write for a missing value, in lower case."""
_SPACE = r"[\p{Z}\t\n\f\r\v\x{2800}]"
_MARK_RANGES = ((0x2B9, 0x2C0), (0x2CA, 0x2CC), (0x2018, 0x2020), (0x2032, 0x203B), (0x275B, 0x2761), (0x301D, 0x3020))
_MARKS = "\"'`\u00ab\u00bb\u00b4\u02c8" + "".join(chr(code) for ends in _MARK_RANGES for code in range(*ends))
_INVISIBLE = rf"[\p{{Cf}}\p{{Cc}}\p{{M}}\x{{115F}}\x{{1160}}\x{{3164}}\x{{FFA0}}{_MARKS}]+"
_NUMBER = r"([+]|(-))?0*(\d+(\.\d*[1-9])?)\.?0*"
_FLOAT = r"[+-]?(\d+[eE]\+\d{1,3}|\d+\.\d*[eE]\+?\d{1,3}|[1-9]e[1-9]\d{1,3})"
_HEX = r"[({]?(0[xX])?([0-9a-fA-F-]+)[})]?"
_UUID = r"(urn:uuid:|[({])?([0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})[})]?"
_WIDE = "".join(map(chr, [*range(0xFF01, 0xFF5F), *range(0xFF61, 0xFFA0)]))
_BLOCKS = (0x660, 0x6F0, 0x7C0, *range(0x966, 0xD67, 0x80), 0xE50, 0xED0, 0xF20, 0x1040)
_DIGITS = "".join(chr(first + at) for first in _BLOCKS for at in range(10))
_CYRILLIC = dict(zip("АВЕЅІЈКМНОРСТУХ", "ABESIJKMHOPCTYX", strict=True))
_GREEK = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True))
_SIMILAR = _CYRILLIC | _GREEK | {letter.lower(): latin.lower() for letter, latin in (_CYRILLIC | _GREEK).items()}
_OTHERS = _WIDE + _DIGITS + "\u2010\u2011\u2012\u2013\u2014\u2015\u2212" + "".join(_SIMILAR)
_PLAIN = unicodedata.normalize("NFKC", _WIDE) + "0123456789" * len(_BLOCKS) + "-------" + "".join(_SIMILAR.values())


@cache
def unclear_person_sql(column: str) -> str:
    """Return the SQL condition that a person's id has a character with several spellings, such as a ligature."""
    others = {chr(code) for code in range(0xA0, 0x1FC00) if "<" in unicodedata.decomposition(chr(code))}
    unclear = others - {*_OTHERS, *_MARKS, "\u3164", "\uffa0"} - {each for each in others if each.isspace()}
    written = f"CAST({column} AS VARCHAR)"
    # Few ids are not in ASCII, which is faster to test.
    found = f"regexp_matches(strip_accents({written}), '[{''.join(sorted(unclear))}]')"
    return f"(NOT regexp_full_match({written}, '[ -~]*') AND {found})"


def person_sql(column: str) -> str:
    """Return the SQL for the canonical form of a person's id; NULL if it is missing.

    Ids that differ only in case, in invisible, surrounding or repeated space, in accents, quotes, dashes, width or
    letters that look alike, in the format of a number (``7``, ``7.0``, ``+7``, ``7e+00``) or in the framing of
    hexadecimal digits are the same: taking two persons for one errs on the safe side, taking one for two does not.
    """
    written = f"CAST({column} AS VARCHAR)"
    bare = f"strip_accents({written})"
    narrow = f"translate({bare}, {quote_text(_OTHERS)}, {quote_text(_PLAIN)})"
    width = f"CASE WHEN regexp_matches({bare}, '[{_OTHERS}]') THEN {narrow} ELSE {bare} END"
    spaced = f"regexp_replace({width}, '{_SPACE}', ' ', 'g')"
    text = f"trim(regexp_replace({spaced}, {quote_text(_INVISIBLE)}, '', 'g'))"
    words = f"replace(lower(upper(regexp_replace({text}, ' {{2,}}', ' ', 'g'))), '\u00df', 'ss')"
    digits = f"lower(regexp_extract({text}, '^{_HEX}$', 2))"
    number = f"regexp_replace({text}, '^{_NUMBER}$', '\\2\\3')"
    missing = ", ".join(quote_text(word) for word in MISSING_WORDS)
    return (
        f"CASE WHEN {column} IS NULL OR lower({text}) IN ({missing}) THEN NULL "
        f"WHEN regexp_full_match({text}, '{_NUMBER}') THEN coalesce(nullif({number}, '-0'), '0') "
        f"WHEN regexp_full_match({text}, '{_FLOAT}') "
        f"THEN coalesce(CAST(TRY_CAST({text} AS DECIMAL(38, 0)) AS VARCHAR), lower({text})) "
        f"WHEN regexp_full_match({text}, '{_UUID}') "
        f"THEN lower(replace(regexp_extract({text}, '^{_UUID}$', 2), '-', '')) "
        f"WHEN regexp_full_match({text}, '{_HEX}') THEN {digits} ELSE {words} END"
    )
