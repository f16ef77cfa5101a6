"""What the SQL engine needs of a database, and tables in it that go away with their last user."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Protocol

import pyarrow as pa

_numbers = count()

Work = Callable[[Mapping[str, pa.Table]], pa.Table]

BYTES_PER_FLOW = 512
"""What a flow may take in memory while it is merged; generous, since persons come on top."""


class Backend(Protocol):
    """A database that understands the common subset of SQL in this package."""

    @property
    def memory(self) -> int:
        """Bytes of memory that Python may use for what it fetches."""
        ...

    @property
    def fetchable(self) -> int:
        """Rows of flows that are better fetched and worked on in memory than left where they are."""
        ...

    def execute(self, sql: str) -> pa.Table:
        """Return the result of a query, which has to be small."""
        ...

    def register(self, name: str, table: pa.Table) -> None:
        """Make a small table known under a name."""
        ...

    def materialise(self, name: str, sql: str) -> int:
        """Keep the result of a query under a name, however large; return its number of rows."""
        ...

    def repeated(self, table: Stored, column: str) -> pa.Table:
        """Return the values of an integer column, as ``value``, that occur more than once."""
        ...

    def by_part(self, tables: Mapping[str, str], parts: int, work: Work, columns: Sequence[str]) -> Stored:
        """Keep what some work makes of each part of some queries, which is what their column ``part`` says.

        Parameters
        ----------
        tables : mapping of str to str
            Queries by name.
        parts : int
            Parts are numbered from 0 on.
        work : callable
            Returns a table of integers with the given columns for the tables of a part. It may run anywhere, and more
            than once.
        """
        ...

    def drop(self, name: str) -> None:
        """Forget what is known under a name."""
        ...


class Stored:
    """A table in a backend; dropped when nothing refers to it any more."""

    def __init__(self, backend: Backend, name: str, rows: int = -1) -> None:
        self.name = name
        self.rows = rows
        weakref.finalize(self, backend.drop, name).atexit = False

    def __str__(self) -> str:
        return self.name


class Selected:
    """A selection that is made anew each time; keeps the tables alive that it reads."""

    def __init__(self, sql: str, *tables: Stored | Selected) -> None:
        self.sql = sql
        self.tables = tables

    def __str__(self) -> str:
        return f"({self.sql})"


Relation = Stored | Selected
"""What can stand after FROM."""


def new_name() -> str:
    """Return a name that no table has."""
    return f"odkanon_{next(_numbers)}"


def store(backend: Backend, sql: str) -> Stored:
    """Keep the result of a query."""
    name = new_name()
    rows = backend.materialise(name, sql)
    return Stored(backend, name, rows)


def lend(backend: Backend, **columns: object) -> Stored:
    """Hand a small table to a backend, column by column."""
    name = new_name()
    backend.register(name, pa.table(columns))
    return Stored(backend, name)
