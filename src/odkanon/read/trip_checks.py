"""Row checks that every engine shares: each row is either kept or counted under one reason.

`compile_rows` returns the SQL that checks and counts the rows of a table. Tables that fit in memory are fetched with it
once (`odkanon.read.fetching.checked_rows`); a database evaluates the same expressions where the rows are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Codes
from odkanon.core.sql import quote_name
from odkanon.errors import InputError
from odkanon.model.measures import DISTINCT
from odkanon.model.provenance import Rejected, Source
from odkanon.read.person_ids import contributor_text, is_ambiguous
from odkanon.read.tables.table import NamedColumns, RowCheck, TypedColumns

log = logging.getLogger(__name__)

NO_WEIGHT = "without a weight"
BAD_WEIGHT = "with a weight that is not a finite number"
ZERO_WEIGHT = "with a weight of zero or less"
AMBIGUOUS_ID = (
    "with an id of a person or household in ligatures, fractions or similar, which may be written in other ways"
)
UNREADABLE = "lines with a wrong number of columns or not in UTF-8"
DUPLICATE = "that are exact copies of another row of the same person"

MOST_TRIPS = 9_000_000_000_000_000
"""Largest count of one row; beyond it a float cannot represent every integer."""

_LONG = ("VARCHAR", "DECIMAL", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT")
"""Types with more digits than a float."""
_NINE = r"^\s*[+]?0*([0-9]*[.][0-9]{0,9})[0-9]*\s*$"
_WHOLE = r"^\s*[+]?([0-9]+)([.]0*)?\s*$"
_IDS = [measure.column for measure in DISTINCT.values()]
_WARN_SHARE = 0.2
"""Share of trips without an id from which on a warning is due."""


def finite(number: str) -> str:
    """Return the SQL condition that a number is finite, in portable SQL."""
    return f"(abs({number}) <= 1.7976931348623157e308)"


def number_or_nan(column: str) -> str:
    """Return the SQL of a column as a number; NaN where it cannot be read."""
    return f"coalesce(TRY_CAST({quote_name(column)} AS DOUBLE), CAST('nan' AS DOUBLE))"


def too_long(table: TypedColumns, column: str) -> str:
    """Return the SQL condition that a number has more digits than a float can hold."""
    kind, number = table.types()[column].upper(), number_or_nan(column)
    if not kind.startswith(_LONG):
        return "false"
    large = f"{number} > {2**53}"
    return large if kind.endswith("INT") else f"length(CAST({quote_name(column)} AS VARCHAR)) > 15 OR {large}"


def float_at_most(table: TypedColumns, column: str) -> str:
    """Return the SQL of the largest float that does not exceed a number; NaN where it cannot be read.

    A float has some fifteen digits, so the nearest one to a longer number may exceed it: 9.9999999999999999 becomes 10.
    """
    number, text = number_or_nan(column), f"CAST({quote_name(column)} AS VARCHAR)"
    cut = f"regexp_extract({text}, '{_NINE}', 1)"
    whole = f"TRY_CAST(regexp_extract({text}, '{_WHOLE}', 1) AS HUGEINT)"
    return (
        f"CASE WHEN NOT ({too_long(table, column)}) OR NOT {finite(number)} THEN {number} "
        f"WHEN length({cut}) BETWEEN 1 AND 16 THEN coalesce(TRY_CAST({cut} AS DOUBLE), {number}) "
        f"WHEN TRY_CAST({number} AS HUGEINT) <= {whole} THEN {number} ELSE nextafter({number}, CAST(0 AS DOUBLE)) END"
    )


class CheckableTable(TypedColumns, Protocol):
    """A table whose layout comes with checks."""

    @property
    def checks(self) -> tuple[RowCheck, ...]: ...  # noqa: D102
    def is_whole(self, column: str) -> bool: ...  # noqa: D102


class ExampleSource(NamedColumns, Protocol):
    """A table that can return an example row."""

    def example(self, condition: str, columns: Sequence[str]) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class RowSql:
    """SQL expressions that check and count the rows of a table."""

    reasons: tuple[str, ...]
    """Why rows are rejected, numbered from 1."""
    reason: str
    """The number of the first reason that applies, weights excepted; 0 for none."""
    weight: str | None
    weight_reason: str | None
    """The weight, and the number of the reason to reject it; None where the table has no weights."""
    trips: str | None
    """Trips per row; None where each row is one trip."""
    contributors: Mapping[str, str]
    """By measure, the id of the contributor of a row; NULL where it is missing."""
    normalized: Mapping[str, str]
    """By the SQL of an id that has to be normalized, its column."""
    same: Mapping[str, str]
    """Values that are equal in duplicates; empty where duplicates are not looked for."""
    known: str
    """The condition under which equal rows are duplicates; where it is constantly true, they are only counted."""

    @property
    def no_weight(self) -> int:
        """The number of the reason for a missing weight."""
        return self.reasons.index(NO_WEIGHT) + 1

    @property
    def usable_weight(self) -> str:
        """The condition that a weight is positive and finite, whatever else is wrong with its row."""
        return f"{finite(self.weight or '')} AND {self.weight} > 0"

    @property
    def detects_duplicates(self) -> bool:
        """Whether equal rows are duplicates: a person cannot be in two places at a time."""
        return self.known != "true"


def compile_rows(
    table: CheckableTable,
    found: Mapping[str, str],
    checks: Sequence[RowCheck],
    *,
    where: RowCheck | None,
    identity: Mapping[str, str] | None,
    long_weights: bool = True,
) -> RowSql:
    """Return the SQL that checks and counts the rows of a table.

    * ``found``: the column of each of our names; ``weight``, ``trips`` and ids of contributors are handled here.
    * ``checks``: in order, after those of the table itself; the first that applies is the reason of a row.
    * ``where``: the filter, which precedes all other checks.
    * ``identity``: SQL expressions that, with contributors and weight, are equal in duplicates; None not to look for
      any.
    * ``long_weights``: whether weights may have more digits than a float; False is faster.
    """
    texts = {name: column for name, column in found.items() if name in _IDS and not table.is_whole(column)}
    checks = [*([] if where is None else [where]), *table.checks, *checks, *_id_checks(texts)]
    weighed = found.get("weight")
    careful = weighed is not None and long_weights and too_long(table, weighed) != "false"
    weight = None if weighed is None else float_at_most(table, weighed) if careful else number_or_nan(weighed)
    count = number_or_nan(found["trips"]) if "trips" in found else None
    ids = {name: found[measure.column or ""] for name, measure in DISTINCT.items() if (measure.column or "") in found}
    normalized = {contributor_text(column): column for column in ids.values() if not table.is_whole(column)}
    spelled = {column: sql for sql, column in normalized.items()}
    contributors = {name: spelled.get(column) or quote_name(column) for name, column in ids.items()}
    same: dict[str, str] = {}
    known = "true"
    if identity is not None:
        same = {**({} if weight is None else {"weight": weight}), **contributors, **identity}
        if "persons" in contributors and "start_time" in identity:
            known = f"{contributors['persons']} IS NOT NULL AND {quote_name(found['start_time'])} IS NOT NULL"
    on_weight = [] if weight is None else _weight_checks(quote_name(found["weight"]), weight)
    return RowSql(
        tuple(check.reason for check in [*checks, *on_weight]),
        _numbered(checks, 1),
        weight,
        _numbered(on_weight, len(checks) + 1) if on_weight else None,
        None
        if count is None
        else f"CAST(CASE WHEN {count} > 0 AND {count} <= {MOST_TRIPS} THEN {count} ELSE 0 END AS BIGINT)",
        contributors,
        normalized,
        same,
        known,
    )


def _id_checks(found: Mapping[str, str]) -> list[RowCheck]:
    return [RowCheck(AMBIGUOUS_ID, is_ambiguous(column)) for name, column in found.items() if name in _IDS]


def _weight_checks(column: str, number: str) -> list[RowCheck]:
    return [
        RowCheck(NO_WEIGHT, f"{column} IS NULL"),
        RowCheck(BAD_WEIGHT, f"NOT {finite(number)}"),
        RowCheck(ZERO_WEIGHT, f"{number} <= 0"),
    ]


def _numbered(checks: Sequence[RowCheck], first: int) -> str:
    """Return the SQL of the number of the first reason that applies; 0 for none."""
    groups = []
    for unless, some in groupby(enumerate(checks, first), key=lambda numbered: numbered[1].unless):
        cases = [] if unless is None else [f"WHEN {unless} THEN NULL"]
        cases += [f"WHEN {check.condition} THEN {number}" for number, check in some]
        groups.append(f"CASE {' '.join(cases)} END")
    return f"CAST(coalesce({', '.join([*groups, '0'])}) AS INTEGER)" if groups else "0"


def example_of(
    table: ExampleSource, found: Mapping[str, str], checks: Sequence[RowCheck], rejected: Mapping[str, Rejected]
) -> str:
    """Return a row that was rejected for the most frequent reason that has an example; empty where there is none."""
    weight = quote_name(found["weight"]) if "weight" in found else None
    on_weight = [] if weight is None else _weight_checks(weight, number_or_nan(found["weight"]))
    by_reason = {check.reason: check for check in (*checks, *_id_checks(found), *on_weight)}
    for reason in sorted(rejected, key=lambda each: -rejected[each].rows):
        check = by_reason.get(reason)
        columns = [] if check is None else [name for name in found.values() if quote_name(name) in check.condition]
        example = table.example(check.condition, columns) if check is not None and columns else ""
        if example:
            return example
    return ""


def no_rows(
    table: NamedColumns, source: Source, hint: str = "", option: str | None = None, example: str = ""
) -> InputError:
    """Return the error for a table without a usable row, with a hint."""
    reasons = "; ".join(f"{part.rows:,} {reason}" for reason, part in source.rejected.items())
    hint = f"; for instance in {example}{hint}" if example else hint
    return InputError(
        f"{table.name} has no usable row ({reasons or 'there are no rows below the header'}){hint}", option=option
    )


def warn_of_missing(contributors: Mapping[str, Codes]) -> None:
    """Warn where many rows lack an id, given the numbers of their contributors by measure."""
    for measure, contributor in contributors.items():
        warn_of_missing_ids(measure, int(np.count_nonzero(contributor < 0)), len(contributor))


def warn_of_missing_ids(measure: str, without: int, trips: int) -> None:
    """Warn where so many trips lack an id that counts of contributors are far too low."""
    if trips and without >= _WARN_SHARE * trips:
        log.warning(
            "%s of %s trips (%s %%) have no %s id; they do not count towards %s, so flows may have more of these",
            f"{without:,}",
            f"{trips:,}",
            f"{100 * without / trips:.0f}",
            DISTINCT[measure].column,
            measure,
        )
