"""The interface of the SQL engine to a database, and tables that are dropped with their last user."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Protocol

import pyarrow as pa

_numbers = count()

PartWork = Callable[[Mapping[str, pa.Table]], pa.Table]

BYTES_PER_FLOW = 512
"""Memory for a flow while flows are merged; generous, since contributors come on top."""


class Backend(Protocol):
    """A database that understands the subset of SQL that this package uses."""

    @property
    def memory(self) -> int:
        """Bytes of memory that Python may use for fetched rows."""

    @property
    def fetchable(self) -> int:
        """The largest number of flows that are fetched and processed in memory."""

    def execute(self, sql: str) -> pa.Table:
        """Return the result of a query, which has to be small."""

    def register(self, name: str, table: pa.Table) -> None:
        """Make a small table available under a name."""

    def materialise(self, name: str, sql: str) -> int:
        """Store the result of a query, of any size, under a name; return its number of rows."""

    def repeated(self, table: StoredTable, column: str) -> pa.Table:
        """Return the values of an integer column, as ``value``, that occur more than once."""

    def by_part(self, tables: Mapping[str, str], parts: int, work: PartWork, columns: Sequence[str]) -> StoredTable:
        """Process queries part by part, by their column ``part``, and store the results in one table.

        * ``tables``: queries by name.
        * ``parts``: number of parts, counted from 0.
        * ``work``: returns a table of integers with the given columns for the tables of a part. It may run anywhere,
          and more than once.
        """

    def drop(self, name: str) -> None:
        """Drop a table."""


class StoredTable:
    """A table in a backend, dropped when nothing refers to it any more."""

    def __init__(self, backend: Backend, name: str, rows: int = -1) -> None:
        self.name = name
        self.rows = rows
        weakref.finalize(self, backend.drop, name).atexit = False

    def __str__(self) -> str:
        return self.name


class Subquery:
    """A query that runs on every use; keeps the tables alive that it reads."""

    def __init__(self, sql: str, *tables: StoredTable | Subquery) -> None:
        self.sql = sql
        self.tables = tables

    def __str__(self) -> str:
        return f"({self.sql})"


Relation = StoredTable | Subquery
"""A table, view or subquery, as it stands after FROM."""


def new_table_name() -> str:
    """Return a name that no table has."""
    return f"odkanon_{next(_numbers)}"


def store_query(backend: Backend, sql: str) -> StoredTable:
    """Store the result of a query."""
    name = new_table_name()
    rows = backend.materialise(name, sql)
    return StoredTable(backend, name, rows)


def upload_columns(backend: Backend, **columns: object) -> StoredTable:
    """Hand a small table to a backend, column by column."""
    name = new_table_name()
    backend.register(name, pa.table(columns))
    return StoredTable(backend, name)
