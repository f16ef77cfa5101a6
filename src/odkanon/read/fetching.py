"""Tables in memory: rows fetched once, checked, with contributors and weights as numbers, and duplicates found.

Ids and attributes, which have many spellings, are fetched as they are. Each distinct id is normalized once, and
attributes only in rows that agree in everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.core.sql import quote_name, quote_names
from odkanon.core.weights import largest_weight, to_units, weight_scale, whole_total
from odkanon.errors import InputError
from odkanon.model.provenance import Rejected, Source
from odkanon.read.person_ids import as_text, contributor_numbers, contributor_text, is_canonical, value_text
from odkanon.read.tables.table import RowCheck, SourceTable
from odkanon.read.trip_checks import DUPLICATE, UNREADABLE, RowSql, compile_rows

_MAX_TOTAL = 2**62
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd factor that spreads contributor numbers over all 64 bits."""


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """The rows that passed every check, with weights and contributors as numbers, and the account of the others."""

    table: pa.Table
    count: Ints | None
    weight: Ints | None
    scale: int
    contributors: Mapping[str, Codes]
    source: Source

    def with_mean_weight(self) -> Source:
        """Return the account with the mean weight of the remaining trips."""
        return self.source if self.weight is None else whole_mean(self.source, self.count, self.weight, self.scale)


def whole_mean(source: Source, count: Ints | None, weight: Ints, scale: int) -> Source:
    """Return an account with the mean weight of a trip, unless it already has one."""
    trips = len(weight) if count is None else int(count.sum())
    if source.mean_weight is not None or not trips:
        return source
    return replace(source, mean_weight=Fraction(int(weight.sum()), trips * scale))


def checked_rows(
    table: SourceTable,
    found: Mapping[str, str],
    values: Mapping[str, str],
    checks: Sequence[RowCheck],
    *,
    where: RowCheck | None,
    identity: Mapping[str, str] | None,
) -> CheckedRows:
    """Fetch a table once, and keep the rows that pass every check; see `odkanon.read.trip_checks.compile_rows`.

    * ``values``: SQL expressions to fetch, by name.
    """
    rows = compile_rows(table, found, checks, where=where, identity=identity)
    fetched = fetch_rows(table, rows, values)
    data, reasons = fetched.data, list(rows.reasons)
    reason = data.column(" reason").to_numpy().astype(np.int64)
    weight = _weights(data, rows, reason)
    units, scale = _units(weight, reason == 0)
    duplicates = fetched.duplicates(reason == 0)
    lookalikes = 0 if rows.detects_duplicates else int(np.count_nonzero(duplicates))
    if rows.detects_duplicates and duplicates.any():
        reasons.append(DUPLICATE)
        reason[duplicates] = len(reasons)
    keep = reason == 0
    counts = None if rows.trips is None else data.column(" trips").to_numpy().astype(np.int64)
    check_total(table.name, 0.0 if counts is None else float(counts.sum(dtype=np.float64)))
    rejected = _rejected(reason, reasons, counts, units)
    lines = table.unreadable_lines()
    if lines:
        rejected[UNREADABLE] = Rejected(lines, lines if counts is None else 0)
    kept = data.select(list(values))
    return CheckedRows(
        kept if keep.all() else kept.filter(pa.array(keep)),
        None if counts is None else counts[keep],
        None if units is None else units[keep],
        scale,
        {name: contributor[keep] for name, contributor in fetched.contributors.items() if (contributor >= 0).any()},
        Source(len(reason) + lines, table.sha256, rejected, lookalikes=lookalikes),
    )


def drop_rows(rows: CheckedRows, good: Bools, reason: str) -> CheckedRows:
    """Return the good rows only; the others are counted as rejected for the reason."""
    if good.all():
        return rows
    lost = int(np.count_nonzero(~good))
    trips = lost if rows.count is None else int(rows.count[~good].sum())
    weight = 0 if rows.weight is None else int(rows.weight[~good].sum())
    return CheckedRows(
        rows.table.filter(pa.array(good)),
        None if rows.count is None else rows.count[good],
        None if rows.weight is None else rows.weight[good],
        rows.scale,
        {name: contributor[good] for name, contributor in rows.contributors.items()},
        rows.source.reject(reason, Rejected(lost, trips, weight)),
    )


def check_total(name: str, trips: float) -> None:
    """Raise if the trips of a table overflow 64 bits."""
    if trips > _MAX_TOTAL:
        raise InputError(f"{name} has {trips:g} trips in total, more than 64 bits can hold; check the column of trips")


def _weights(data: pa.Table, rows: RowSql, reason: Ints) -> npt.NDArray[np.float64] | None:
    """Return the weights, and reject rows without one; a column that is empty throughout counts as absent."""
    if rows.weight is None:
        return None
    weight_reason = data.column(" weight reason").to_numpy()
    if (weight_reason == rows.no_weight).all():
        return None
    np.copyto(reason, weight_reason, where=reason == 0)
    weight: npt.NDArray[np.float64] = data.column(" weight").to_numpy()
    return weight


def _units(weight: npt.NDArray[np.float64] | None, good: Bools) -> tuple[Ints | None, int]:
    """Return weights in units that suit the good rows, duplicates included; those of other rows are capped."""
    if weight is None:
        return None, 1
    usable = np.where(np.isfinite(weight) & (weight > 0), weight, 0.0)
    scale = weight_scale(whole_total(usable[good]), whole_total(usable[good].max(initial=0.0, keepdims=True)))
    most = np.where(good, np.inf, largest_weight(len(usable), scale))
    return to_units(np.minimum(usable, most), scale), scale


def _rejected(reason: Ints, reasons: Sequence[str], count: Ints | None, units: Ints | None) -> dict[str, Rejected]:
    rejected = {}
    often = np.bincount(reason, minlength=len(reasons) + 1)
    for number, text in enumerate(reasons, 1):
        rows = int(often[number])
        if rows:
            which = reason == number
            trips = rows if count is None else int(count[which].sum())
            rejected[text] = Rejected(rows, trips, 0 if units is None else int(units[which].sum()))
    return rejected


@dataclass(frozen=True, eq=False)
class FetchedRows:
    """The rows of a table, good and bad."""

    table: SourceTable
    """Their table."""
    rows: RowSql
    """Their checks and counts."""
    names: Mapping[str, str]
    """The fetched column of each SQL expression."""
    data: pa.Table
    """The fetched columns."""
    contributors: Mapping[str, Codes]
    """By measure, the number of the contributor of each row; -1 where it is missing."""

    def duplicates(self, good: Bools) -> Bools:
        """Return which good rows repeat an earlier good row of, where known, the same person."""
        repeat = np.zeros(len(good), dtype=bool)
        if not self.rows.same:
            return repeat
        suspects = self._suspects(good)
        if len(suspects):
            compared = self._compared(suspects)
            alike = compared.group_by([name for name in compared.column_names if name != "row"])
            repeat[suspects] = True
            repeat[alike.aggregate([("row", "min")]).column("row_min").to_numpy()] = False
        return repeat

    def _suspects(self, good: Bools) -> Ints:
        """Return the rows whose fingerprint is repeated: usually none, which settles the question."""
        column = self.data.column(" print")
        candidates = np.asarray(column.is_valid()) & good
        if self.rows.detects_duplicates:
            candidates &= self.contributors["persons"] >= 0
        at = np.flatnonzero(candidates)
        prints: npt.NDArray[np.uint64] = np.asarray(pc.fill_null(column, 0))[at]
        for contributor in self.contributors.values():
            prints = prints * _MIX + contributor[at].astype(np.uint64)
        ordered = np.sort(prints)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        return at[np.isin(prints, repeated)] if len(repeated) else at[:0]

    def _compared(self, which: Ints) -> pa.Table:
        """Return the values that are equal in duplicates, and ``row``, for some rows."""
        some = self.data.take(pa.array(which))
        same = {name: sql for name, sql in self.rows.same.items() if name not in self.contributors}
        compared = some.select(list(dict.fromkeys(self.names[sql] for sql in same.values() if sql in self.names)))
        for name, contributor in self.contributors.items():
            compared = compared.append_column(f" number of {name}", pa.array(contributor[which]))
        more = {name: sql for name, sql in same.items() if sql not in self.names}
        raw = {
            column: some.column(self.names[sql])
            for column in self.table.columns
            if more and (sql := quote_name(column)) in self.names
        }
        for name, column in zip(more, _evaluated(self.table, raw, list(more.values())), strict=True):
            compared = compared.append_column(f" same {name}", column)
        return compared.append_column("row", pa.array(which))


def fetch_rows(table: SourceTable, rows: RowSql, values: Mapping[str, str]) -> FetchedRows:
    """Fetch some values of all rows, and what is needed to check and count them."""
    ids = rows.normalized
    wanted = {**values, **_internal_columns(table, rows, values, ids)}
    data = table.fetch(wanted)
    contributors = {}
    for name, sql in rows.contributors.items():
        texts = data.column(f" {name}").combine_chunks()
        contributors[name] = _id_numbers(table, ids[sql], texts) if sql in ids else contributor_numbers(texts)
    return FetchedRows(table, rows, {sql: name for name, sql in wanted.items()}, data, contributors)


def _internal_columns(
    table: SourceTable, rows: RowSql, values: Mapping[str, str], ids: Mapping[str, str]
) -> dict[str, str]:
    """Return further expressions to fetch, under names with a leading space, which no column of ours has.

    Duplicates have the same fingerprint (`` print``); other rows may share it.
    """
    extra = {" reason": rows.reason}
    if rows.weight is not None and rows.weight_reason is not None:
        extra |= {" weight": rows.weight, " weight reason": rows.weight_reason}
    if rows.trips is not None:
        extra[" trips"] = rows.trips
    known = rows.known
    for name, sql in rows.contributors.items():
        extra[f" {name}"] = as_text(ids[sql]) if sql in ids else sql
        # Whether there is an id at all; `_suspects` excludes placeholders such as NA once ids are normalized.
        known = known.replace(sql, extra[f" {name}"])
    if rows.same:
        fetched = {*values.values(), *extra.values()}
        later = {value_text(name) for name, quoted in quote_names(table.columns).items() if quoted in fetched} - fetched
        prints = {name: sql for name, sql in rows.same.items() if name not in rows.contributors and sql not in later}
        extra |= {f" same {name}": sql for name, sql in prints.items() if sql not in fetched}
        extra[" print"] = f"CASE WHEN {known} THEN hash({', '.join(prints.values()) or '0'}) END"
    return extra


def _id_numbers(table: SourceTable, column: str, texts: pa.Array) -> Codes:
    """Return contributor numbers, as `contributor_numbers` does for a column as text."""
    found = pc.dictionary_encode(texts)
    contributors = found.dictionary
    if not is_canonical(contributors):
        (contributors,) = _evaluated(table, {column: contributors}, [contributor_text(column)])
    numbers = np.append(contributor_numbers(contributors), np.int32(-1))
    result: Codes = numbers[np.asarray(pc.fill_null(found.indices, -1))]
    return result


def _evaluated(table: SourceTable, columns: Mapping[str, pa.Array], expressions: list[str]) -> list[pa.Array]:
    """Return SQL expressions over columns in memory, in row order."""
    if not expressions:
        return []
    rows = len(next(iter(columns.values())))
    table.connection.register("spelled", pa.table({**columns, " row": np.arange(rows)}))
    listed = ", ".join(f"{sql} AS s{at}" for at, sql in enumerate(expressions))
    found = table.connection.sql(f'SELECT {listed} FROM spelled ORDER BY " row"').to_arrow_table()
    table.connection.unregister("spelled")
    return [column.combine_chunks() for column in found.columns]
