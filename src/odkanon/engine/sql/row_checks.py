"""The checks on rows where the rows are: the same expressions as in memory, for inputs that never are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from odkanon.core.weights import largest_weight, units_sql, weight_scale
from odkanon.engine.sql.backend import Backend, Stored
from odkanon.engine.sql.cell_workers import ToDegrees
from odkanon.model.provenance import Rejected, Source
from odkanon.read.tables.open_table import Check, Table
from odkanon.read.trip_checks import DUPLICATE, UNREADABLE, Checkable, Rows, check_total, rows_of, too_long


class SqlInput(Checkable, Protocol):
    """A table that a SQL engine can read, wherever it is."""

    @property
    def sha256(self) -> str | None:
        """Of the file or files."""
        ...

    @property
    def lines(self) -> int | None:
        """Rows that a text file should have by its lines; None where that cannot be told."""
        ...

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return the first row that meets a condition, for a message; empty where that takes too long to find."""
        ...

    @property
    def backend(self) -> Backend:
        """Where to work on it."""
        ...

    def query(self, values: Mapping[str, str], statement: str, **tables: pa.Table) -> pa.Table:
        """Return what a statement makes of some values, for which it has ``%s``, with some small tables at hand."""
        ...

    def place(self, values: Mapping[str, str], rows: int, resolution: int, degrees: ToDegrees | None = None) -> Stored:
        """Keep some values of so many rows, with cells in place of coordinates, which are degrees or made such."""
        ...

    def keep(self, values: Mapping[str, str]) -> Stored:
        """Keep some values as they are."""
        ...

    def unreadable_lines(self) -> int:
        """Return how many lines of a text file could not be split into columns, once read."""
        ...


class OfTable:
    """What an input says of itself as the table says it that its rows are of."""

    table: Table

    @property
    def columns(self) -> tuple[str, ...]:
        """Names as they stand in the source."""
        return self.table.columns

    @property
    def name(self) -> str:
        """What to call the table in messages."""
        return self.table.name

    @property
    def sha256(self) -> str | None:
        """Of the file or files."""
        return self.table.sha256

    @property
    def checks(self) -> tuple[Check, ...]:
        """Reasons of the format itself to turn rows away."""
        return self.table.checks

    def types(self) -> dict[str, str]:
        """Return the SQL type of each column."""
        return self.table.types()

    def is_whole(self, column: str) -> bool:
        """Tell whether a column holds integers."""
        return self.table.is_whole(column)


@dataclass(frozen=True)
class CountedRows:
    """How the rows of a table are checked and counted, once the table has been looked at.

    Attributes
    ----------
    reasons : tuple of str
        Why rows are turned away; the number 1 stands for the first.
    columns : dict of str to str
        SQL expressions of ``reason`` and, where there are such, ``trips``, ``weight`` in units, and contributors by
        measure.
    contributors : tuple of str
        The measures by contributors among them.
    copies : Rows
        What makes two rows the same, and under which condition they are copies.
    count : int
        Rows of the table.
    scale : int
        Units of weight in one.
    """

    reasons: tuple[str, ...]
    columns: dict[str, str]
    contributors: tuple[str, ...]
    copies: Rows
    count: int
    scale: int

    @property
    def fingerprint(self) -> dict[str, str]:
        """SQL expression, by name, that is equal for equal rows and NULL where that is not asked; empty not to look."""
        if not self.copies.same:
            return {}
        same = ", ".join(self.copies.same.values())
        return {"fingerprint": f"CASE WHEN {self.copies.known} THEN CAST(hash({same}) % {2**63 - 1} AS BIGINT) END"}


def counted_rows(
    table: SqlInput,
    found: Mapping[str, str],
    checks: Sequence[Check],
    *,
    where: Check | None,
    identity: Mapping[str, str] | None,
) -> CountedRows:
    """Look at a table once, and say how its rows are checked and counted; see `odkanon.read.trip_checks.rows_of`."""
    long = too_long(table, found["weight"]) if "weight" in found else "false"
    rows = rows_of(table, found, checks, where=where, identity=identity)
    facts = _facts(table, rows, long)
    check_total(table.name, facts.get("all_trips") or 0.0)
    if not facts["too_long"]:
        rows = rows_of(table, found, checks, where=where, identity=identity, long_weights=False)
    columns: dict[str, str] = {} if rows.trips is None else {"trips": rows.trips}
    scale, reason = 1, rows.reason
    if rows.weight is not None and facts["weights"]:
        scale = weight_scale(facts["total"] or 0.0)
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
    return CountedRows(rows.reasons, columns | {"reason": reason}, contributors, rows, facts["n_rows"], scale)


def _facts(table: SqlInput, rows: Rows, long: str) -> dict[str, Any]:
    """Count the rows, those with a weight and those with a contributor, and add up kept weights as `whole_total` does.

    ``long`` is the condition under which a weight has more digits than a float tells.
    """
    selected = {"reason": rows.reason, "too_long": f"CASE WHEN {long} THEN 1 ELSE 0 END", **rows.contributors}
    asked = {"n_rows": "COUNT(*)", "too_long": "MAX(too_long)"} | {name: f"COUNT({name})" for name in rows.contributors}
    if rows.trips is not None:
        selected["trips"], asked["all_trips"] = rows.trips, "SUM(CAST(trips AS DOUBLE))"
    if rows.weight is not None and rows.weight_reason is not None:
        selected |= {"weight": rows.weight, "weight_reason": rows.weight_reason}
        asked["weights"] = f"SUM(CASE WHEN weight_reason = {rows.no_weight} THEN 0 ELSE 1 END)"
        asked["total"] = "SUM(CASE WHEN reason = 0 AND weight_reason = 0 THEN CEIL(weight) END)"
    found: dict[str, Any] = table.query(selected, f"SELECT {_listed(asked)} FROM (%s) r").to_pylist()[0]
    return found


def _listed(expressions: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())


def account(table: SqlInput, rows: CountedRows, records: Stored, copies: Rejected) -> Source:
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
    return Source(rows.count + lines, table.sha256, rejected, lookalikes=_lookalikes(table, rows, records))


def _lookalikes(table: SqlInput, rows: CountedRows, records: Stored) -> int:
    """Count the rows that are the same as another, where nothing tells copies from trips."""
    if rows.copies.detects_duplicates or not rows.copies.same:
        return 0
    alike = f"SELECT COUNT(*) AS n FROM {records} WHERE reason = 0 GROUP BY fingerprint"
    found = table.backend.execute(f"SELECT CAST(COALESCE(SUM(n - 1), 0) AS BIGINT) AS n FROM ({alike}) g")
    return int(found.column("n")[0].as_py())
