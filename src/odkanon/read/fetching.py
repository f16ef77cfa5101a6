"""A table fetched once into memory, with numbers for its heads; and which of its rows repeat another.

What people spell in many ways, ids and attributes, is fetched as it is. How an id is spelled is looked at once for all
rows that have it, how an attribute is where everything else is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.read.person_ids import as_text, contributor_numbers, contributor_text, spelled_once, value_text
from odkanon.read.tables.table import Table, quote_name

if TYPE_CHECKING:
    from odkanon.read.trip_checks import Rows

_MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with which numbers of heads are spread over all 64 bits."""


@dataclass(frozen=True, eq=False)
class Fetched:
    """The rows of a table, good and bad.

    Attributes
    ----------
    table : Table
        Where they come from.
    rows : Rows
        How they are checked and counted.
    names : mapping of str to str
        Under which name an SQL expression was fetched.
    data : pyarrow.Table
        What was fetched.
    contributors : mapping of str to array of int
        By measure, the number of the head of each row; -1 for nobody.
    """

    table: Table
    rows: Rows
    names: Mapping[str, str]
    data: pa.Table
    contributors: Mapping[str, Codes]

    def copies(self, good: Bools) -> Bools:
        """Tell which of the good rows repeat another good one; where that can be told, of the same person."""
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
        """Return the rows whose print is repeated: usually none, and that is all."""
        column = self.data.column(" print")
        asked = np.asarray(column.is_valid()) & good
        if self.rows.detects_duplicates:
            asked &= self.contributors["persons"] >= 0
        at = np.flatnonzero(asked)
        prints: npt.NDArray[np.uint64] = np.asarray(pc.fill_null(column, 0))[at]
        for contributor in self.contributors.values():
            prints = prints * _MIX + contributor[at].astype(np.uint64)
        ordered = np.sort(prints)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        return at[np.isin(prints, repeated)] if len(repeated) else at[:0]

    def _compared(self, which: Ints) -> pa.Table:
        """Return what makes two rows the same, and ``row``, for some rows."""
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
        for name, column in zip(more, _spelled(self.table, raw, list(more.values())), strict=True):
            compared = compared.append_column(f" same {name}", column)
        return compared.append_column("row", pa.array(which))


def fetch_rows(table: Table, rows: Rows, values: Mapping[str, str]) -> Fetched:
    """Fetch some values of all rows, and what it takes to check and count them."""
    ids = {sql: column for column in table.columns if (sql := contributor_text(column)) in rows.contributors.values()}
    wanted = {**values, **_extra(table, rows, values, ids)}
    data = table.fetch(wanted)
    contributors = {}
    for name, sql in rows.contributors.items():
        texts = data.column(f" {name}").combine_chunks()
        contributors[name] = _id_numbers(table, ids[sql], texts) if sql in ids else contributor_numbers(texts)
    return Fetched(table, rows, {sql: name for name, sql in wanted.items()}, data, contributors)


def _extra(table: Table, rows: Rows, values: Mapping[str, str], ids: Mapping[str, str]) -> dict[str, str]:
    """Return what is fetched besides the values, under names that no column of ours has; of some ids, the texts.

    Rows that are the same have the same print, as far as it goes.
    """
    extra = {" reason": rows.reason}
    if rows.weight is not None and rows.weight_reason is not None:
        extra |= {" weight": rows.weight, " weight reason": rows.weight_reason}
    if rows.trips is not None:
        extra[" trips"] = rows.trips
    known = rows.known
    for name, sql in rows.contributors.items():
        extra[f" {name}"] = as_text(ids[sql]) if sql in ids else sql
        # Whether there is an id at all; that it names somebody is known once ids have been looked at, in `_suspects`.
        known = known.replace(sql, extra[f" {name}"])
    if rows.same:
        fetched = {*values.values(), *extra.values()}
        later = {value_text(column) for column in table.columns if quote_name(column) in fetched} - fetched
        prints = {name: sql for name, sql in rows.same.items() if name not in rows.contributors and sql not in later}
        extra |= {f" same {name}": sql for name, sql in prints.items() if sql not in fetched}
        extra[" print"] = f"CASE WHEN {known} THEN hash({', '.join(prints.values()) or '0'}) END"
    return extra


def _id_numbers(table: Table, column: str, texts: pa.Array) -> Codes:
    """Return contributors by number, as `odkanon.read.person_ids.contributor_numbers` does for a column as text."""
    found = pc.dictionary_encode(texts)
    contributors = found.dictionary
    if not spelled_once(contributors):
        (contributors,) = _spelled(table, {column: contributors}, [contributor_text(column)])
    numbers = np.append(contributor_numbers(contributors), np.int32(-1))
    result: Codes = numbers[np.asarray(pc.fill_null(found.indices, -1))]
    return result


def _spelled(table: Table, columns: Mapping[str, pa.Array], expressions: list[str]) -> list[pa.Array]:
    """Return some expressions of columns that are in memory, in the order of their rows."""
    if not expressions:
        return []
    rows = len(next(iter(columns.values())))
    table.connection.register("spelled", pa.table({**columns, " row": np.arange(rows)}))
    listed = ", ".join(f"{sql} AS s{at}" for at, sql in enumerate(expressions))
    found = table.connection.sql(f'SELECT {listed} FROM spelled ORDER BY " row"').to_arrow_table()
    table.connection.unregister("spelled")
    return [column.combine_chunks() for column in found.columns]
