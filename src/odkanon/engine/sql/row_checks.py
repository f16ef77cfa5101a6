"""Row checks in a database: the same SQL expressions as in memory, evaluated where the rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from odkanon.core.weights import largest_weight, units_sql, weight_scale
from odkanon.engine.sql.backend import Backend, StoredTable
from odkanon.engine.sql.cell_workers import Placement
from odkanon.model.provenance import Rejected, Source
from odkanon.read.fetching import check_total
from odkanon.read.tables.table import RowCheck, SourceTable
from odkanon.read.trip_checks import DUPLICATE, UNREADABLE, RowSql, compile_rows, too_long

Statement = Callable[[str], str]
"""Given the relation to read from, returns a query."""


class SqlInput(ABC):
    """A table that a SQL engine can read."""

    table: SourceTable
    """The table, or its first rows, from which its properties follow."""
    backend: Backend
    """The database to work in."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names as in the source."""
        return self.table.columns

    @property
    def name(self) -> str:
        """Name of the table in messages."""
        return self.table.name

    @property
    def sha256(self) -> str | None:
        """Digest of the file or files."""
        return self.table.sha256

    @property
    def lines(self) -> int | None:
        """Number of rows of a text file by its lines; None if unknown."""
        return self.table.lines

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of the source that others of its layout are computed from."""
        return self.table.sources

    @property
    def checks(self) -> tuple[RowCheck, ...]:
        """Checks that the format itself imposes."""
        return self.table.checks

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return the first row that meets a condition, for a message; empty if finding it takes too long."""
        return self.table.example(condition, columns)

    def values(self, column: str) -> list[str]:
        """Return the distinct values of a column, for a message."""
        return self.table.values(column)

    def types(self) -> dict[str, str]:
        """Return the SQL type of each column."""
        return self.table.types()

    def is_whole(self, column: str) -> bool:
        """Return whether a column holds integers."""
        return self.table.is_whole(column)

    @abstractmethod
    def query(self, values: Mapping[str, str], statement: Statement, **tables: pa.Table) -> pa.Table:
        """Return the result of a statement on some values, with further small tables available by name."""

    @abstractmethod
    def place(self, values: Mapping[str, str], rows: int, placement: Placement) -> StoredTable:
        """Store some values of all ``rows`` rows, with places instead of coordinates."""

    @abstractmethod
    def keep(self, values: Mapping[str, str]) -> StoredTable:
        """Store some values as they are."""

    @abstractmethod
    def unreadable_lines(self) -> int:
        """Return the number of lines of a text file that could not be split into columns, once it has been read."""


@dataclass(frozen=True)
class RowPlan:
    """The checks and counts of the rows of a table, once its totals are known."""

    reasons: tuple[str, ...]
    """The reasons to reject rows, numbered from 1."""
    columns: dict[str, str]
    """SQL expressions of ``reason`` and, as far as the table has them, ``trips``, ``weight`` in units, and contributors
    by measure."""
    contributors: tuple[str, ...]
    """The measures among these that count contributors."""
    copies: RowSql
    """The columns in which duplicates agree, and the condition under which equal rows are duplicates."""
    count: int
    """Number of rows."""
    scale: int
    """Units per unit of weight."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """SQL expression, by name, that is the same for equal rows; empty if duplicates are not looked for."""
        if not self.copies.same:
            return {}
        same = ", ".join(self.copies.same.values())
        return {"fingerprint": f"CASE WHEN {self.copies.known} THEN CAST(hash({same}) % {2**63 - 1} AS BIGINT) END"}


def plan_rows(
    table: SqlInput,
    found: Mapping[str, str],
    checks: Sequence[RowCheck],
    *,
    where: RowCheck | None,
    identity: Mapping[str, str] | None,
) -> RowPlan:
    """Return how the rows of a table are checked and counted; see `odkanon.read.trip_checks.rows_of`."""
    long = too_long(table, found["weight"]) if "weight" in found else "false"
    rows = compile_rows(table, found, checks, where=where, identity=identity)
    facts = _facts(table, rows, long)
    check_total(table.name, facts.get("all_trips") or 0.0)
    if not facts["too_long"]:
        rows = compile_rows(table, found, checks, where=where, identity=identity, long_weights=False)
    columns: dict[str, str] = {} if rows.trips is None else {"trips": rows.trips}
    scale, reason = 1, rows.reason
    if rows.weight is not None and facts["weights"]:
        scale = weight_scale(facts["total"] or 0.0, facts["heaviest"] or 0.0)
        most = f"CAST('{largest_weight(facts['n_rows'], scale)!r}' AS DOUBLE)"
        reason = f"CASE WHEN {reason} > 0 THEN {reason} ELSE {rows.weight_reason} END"
        columns["weight"] = (
            f"CASE WHEN NOT ({rows.usable_weight}) THEN CAST(0 AS BIGINT) "
            f"WHEN {reason} = 0 THEN {units_sql(rows.weight, scale)} "
            f"ELSE {units_sql(f'LEAST({rows.weight}, {most})', scale)} END"
        )
    contributors = tuple(name for name in rows.contributors if facts[name])
    columns |= {name: rows.contributors[name] for name in contributors}
    if "persons" not in contributors and rows.detects_duplicates:
        rows = replace(rows, same={}, known="true")
    return RowPlan(rows.reasons, columns | {"reason": reason}, contributors, rows, facts["n_rows"], scale)


def _facts(table: SqlInput, rows: RowSql, long: str) -> dict[str, Any]:
    """Return the numbers of rows, of weights and of contributors, and the total of kept weights as in `whole_total`.

    ``long`` is the condition under which a weight has more digits than a float holds.
    """
    selected = {"reason": rows.reason, "too_long": f"CASE WHEN {long} THEN 1 ELSE 0 END", **rows.contributors}
    asked = {"n_rows": "COUNT(*)", "too_long": "MAX(too_long)"} | {name: f"COUNT({name})" for name in rows.contributors}
    if rows.trips is not None:
        selected["trips"], asked["all_trips"] = rows.trips, "SUM(CAST(trips AS DOUBLE))"
    if rows.weight is not None and rows.weight_reason is not None:
        selected |= {"weight": rows.weight, "weight_reason": rows.weight_reason}
        asked["weights"] = f"SUM(CASE WHEN weight_reason = {rows.no_weight} THEN 0 ELSE 1 END)"
        good = "CASE WHEN reason = 0 AND weight_reason = 0 THEN CEIL(weight) END"
        asked |= {"total": f"SUM({good})", "heaviest": f"MAX({good})"}
    found: dict[str, Any] = table.query(selected, lambda rows: f"SELECT {_listed(asked)} FROM {rows} r").to_pylist()[0]
    return found


def _listed(expressions: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())


def account_for_rows(table: SqlInput, rows: RowPlan, records: StoredTable, copies: Rejected) -> Source:
    """Return the rejected rows by reason; ``copies`` are the duplicates."""
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
    return Source(rows.count + lines, table.sha256, rejected, lookalikes=_lookalikes(table, rows, records))


def _lookalikes(table: SqlInput, rows: RowPlan, records: StoredTable) -> int:
    """Return the number of rows that equal another, if nothing distinguishes duplicates from trips."""
    if rows.copies.detects_duplicates or not rows.copies.same:
        return 0
    alike = f"SELECT COUNT(*) AS n FROM {records} WHERE reason = 0 GROUP BY fingerprint"
    found = table.backend.execute(f"SELECT CAST(COALESCE(SUM(n - 1), 0) AS BIGINT) AS n FROM ({alike}) g")
    return int(found.column("n")[0].as_py())
