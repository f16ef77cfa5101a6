"""The checks on rows as SQL alone, for inputs that never are in memory; same reasons, same order, same counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from odkanon.core.weights import weight_scale
from odkanon.engine.sql.backend import Backend, Stored
from odkanon.engine.sql.cells import ToDegrees
from odkanon.model.od import Rejected, Source
from odkanon.read.checks import (
    BAD_WEIGHT,
    DUPLICATE,
    NO_WEIGHT,
    UNREADABLE,
    ZERO_WEIGHT,
    Check,
    finite,
    person_text,
    weight_number,
)
from odkanon.read.tables.open import Typed, quote_name


class SqlInput(Typed, Protocol):
    """A table that a SQL engine can read, wherever it is."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """Reasons of the format itself to turn rows away."""
        ...

    @property
    def sha256(self) -> str | None:
        """Of the file or files."""
        ...

    @property
    def lines(self) -> int | None:
        """Rows that a text file should have by its lines; None where that cannot be told."""
        ...

    @property
    def backend(self) -> Backend:
        """Where to work on it."""
        ...

    def is_whole(self, column: str) -> bool:
        """Tell whether a column holds integers."""
        ...

    def query(self, select: str, rest: str = "", **tables: pa.Table) -> pa.Table:
        """Return ``SELECT ... FROM`` the table, with some small tables at hand."""
        ...

    def place(self, select: str, resolution: int, degrees: ToDegrees | None = None) -> Stored:
        """Keep a selection, with cells in place of its coordinates, which are degrees or made such."""
        ...

    def keep(self, select: str) -> Stored:
        """Keep a selection as it is."""
        ...

    def unreadable_lines(self) -> int:
        """Return how many lines of a text file could not be split into columns, once read."""
        ...


@dataclass(frozen=True)
class Rows:
    """How the rows of a table are checked and counted.

    Attributes
    ----------
    reasons : list of str
        Why rows are turned away; the number 1 stands for the first.
    columns : dict of str to str
        SQL expressions of ``reason`` and, where there are such, ``trips``, ``weight``, ``person``.
    same : list of str or None
        SQL expressions that make two rows of a person the same; None not to look.
    known : str
        SQL condition under which ``same`` is looked at.
    count : int
        Rows of the table.
    scale : int
        Units of weight in one.
    """

    reasons: list[str]
    columns: dict[str, str]
    same: list[str] | None
    known: str
    count: int
    scale: int

    def select(self, values: Mapping[str, str]) -> str:
        """Return what to select: some values, and all that is counted."""
        return ", ".join(f"{expression} AS {name}" for name, expression in {**values, **self.columns}.items())

    @property
    def fingerprint(self) -> str:
        """SQL expression that is equal for equal rows of a person; NULL where that is not asked."""
        return f"CASE WHEN {self.known} THEN CAST(hash({', '.join(self.same or [])}) % {2**63 - 1} AS BIGINT) END"


def rows_of(
    table: SqlInput,
    found: Mapping[str, str],
    checks: Sequence[Check],
    *,
    where: Check | None,
    identity: Sequence[str] | None,
) -> Rows:
    """Look at a table once, and say how its rows are checked and counted."""
    checks = [*table.checks, *checks]
    if where is not None:
        checks = [where, *checks]
    facts = _facts(table, found)
    columns: dict[str, str] = {}
    if "trips" in found:
        number = weight_number(found["trips"])
        columns["trips"] = f"CAST(CASE WHEN {finite(number)} AND {number} > 0 THEN {number} ELSE 0 END AS BIGINT)"
    scale = 1
    if facts["weights"]:
        number = weight_number(found["weight"])
        checks = [*checks, *_weight_checks(quote_name(found["weight"]), number)]
        scale = weight_scale(max(facts["rows"], 1), facts["largest"] or 0.0)
        usable = f"CASE WHEN {finite(number)} AND {number} > 0 THEN {number} ELSE CAST(0 AS DOUBLE) END"
        columns["weight"] = f"CAST(rint({usable} * 1e{len(str(scale)) - 1}) AS BIGINT)"
    same, known = None, ""
    if facts["persons"]:
        whole = table.is_whole(found["person"])
        columns["person"] = quote_name(found["person"]) if whole else person_text(found["person"])
        if identity:
            weight = [quote_name(found["weight"])] if "weight" in found else []
            same = [columns["person"], *weight, *identity]
            known = f"{columns['person']} IS NOT NULL AND {quote_name(found['start_time'])} IS NOT NULL"
    cases = " ".join(f"WHEN {check.condition} THEN {number}" for number, check in enumerate(checks, 1))
    columns["reason"] = f"CAST(CASE {cases} ELSE 0 END AS INTEGER)" if checks else "0"
    return Rows([check.reason for check in checks], columns, same, known, facts["rows"], scale)


def _facts(table: SqlInput, found: Mapping[str, str]) -> dict[str, Any]:
    """Count the rows, those with a weight and those with a person, and find the largest weight."""
    weights, largest, persons = "0", "CAST(0 AS DOUBLE)", "0"
    if "weight" in found:
        number = weight_number(found["weight"])
        weights = f"COUNT({quote_name(found['weight'])})"
        largest = f"MAX(CASE WHEN {finite(number)} AND {number} > 0 THEN {number} END)"
    if "person" in found:
        persons = f"COUNT({person_text(found['person'])})"
    row = table.query(f"COUNT(*) AS n_rows, {weights} AS weights, {largest} AS largest, {persons} AS persons")
    facts: dict[str, Any] = row.to_pylist()[0]
    return {**facts, "rows": facts["n_rows"]}


def _weight_checks(column: str, number: str) -> list[Check]:
    return [
        Check(NO_WEIGHT, f"{column} IS NULL"),
        Check(BAD_WEIGHT, f"NOT {finite(number)}"),
        Check(ZERO_WEIGHT, f"{number} <= 0"),
    ]


def account(table: SqlInput, rows: Rows, records: Stored, copies: Rejected) -> Source:
    """Return what was turned away, and why; ``copies`` are the rows that repeat another."""
    trips = "SUM(trips)" if "trips" in rows.columns else "COUNT(*)"
    weight = "SUM(weight)" if "weight" in rows.columns else "0"
    found = table.backend.execute(
        f"SELECT reason, COUNT(*) AS n_rows, CAST({trips} AS BIGINT) AS trips, CAST({weight} AS BIGINT) AS weight "
        f"FROM {records} WHERE reason > 0 GROUP BY reason ORDER BY reason"
    )
    rejected = {
        rows.reasons[row["reason"] - 1]: Rejected(row["n_rows"], row["trips"], row["weight"])
        for row in found.to_pylist()
    }
    if copies.rows:
        rejected[DUPLICATE] = copies
    lines = table.unreadable_lines()
    if lines:
        rejected[UNREADABLE] = Rejected(lines, 0 if "trips" in rows.columns else lines)
    return Source(rows.count + lines, table.sha256, rejected)
