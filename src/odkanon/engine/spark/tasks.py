"""DuckDB in the tasks of Spark: rows are read and checked there by the very statements that do so in memory.

What a text means as a number, a time or an id differs from one database to another; so only one of them is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from odkanon.read.tables.open_table import connect

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_BATCH = 200_000

Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Batches]
Source = Callable[[duckdb.DuckDBPyConnection, Batches], object]
"""Makes the rows of a task known to DuckDB as ``source``; what it returns has to live as long as they are read."""


def selecting(sql: str, source: Source, then: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None) -> Work:
    """Return the work of a task: to run a query on its rows, and something else on what comes out."""

    def select(batches: Batches) -> Batches:
        first = next(batches, None)
        if first is None:
            return
        connection = task_connection()
        keeper = source(connection, chain([first], batches))
        found = connection.sql(sql).to_arrow_reader(_BATCH)
        yield from found if then is None else map(then, found)
        del keeper

    return select


def task_connection() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB for a task, to which Spark has given one core."""
    connection = connect()
    connection.execute("SET threads = 1")
    return connection


def under_names(names: Sequence[str]) -> Source:
    """Return what makes columns known under some names, whatever Spark calls them."""

    def known(connection: duckdb.DuckDBPyConnection, batches: Batches) -> object:
        named = (pa.RecordBatch.from_arrays(batch.columns, names=list(names)) for batch in batches)
        first = next(named)
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], named))
        connection.register("source", reader)
        return reader

    return known


def spark_schema(schema: pa.Schema) -> StructType:
    """Return a schema as Spark has it; times have no zone."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
