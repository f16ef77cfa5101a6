"""Tables that DuckDB can scan, as inputs of the SQL engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from odkanon.core.sql import quote_text
from odkanon.engine.duckdb.backend import DuckDb, clear_errors
from odkanon.engine.sql.backend import StoredTable
from odkanon.engine.sql.cell_workers import Placement, place_batch, place_batches, worker_count
from odkanon.engine.sql.row_checks import Statement, TableInput
from odkanon.read.tables.table import SourceTable

_BATCH = 500_000
"""Rows per batch when coordinates are converted to cells."""


@dataclass(frozen=True, eq=False)
class DuckInput(TableInput):
    """A table that DuckDB can scan."""

    table: SourceTable
    backend: DuckDb

    def __post_init__(self) -> None:
        with clear_errors(self.backend.limit):
            # By default it would spill into the working directory.
            self.table.connection.execute(f"SET temp_directory = {quote_text(str(self.backend.scratch / 'read'))}")
            self.table.connection.execute(f"SET memory_limit = '{self.backend.limit * 2 // 10 // 2**20}MiB'")

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return the first row that meets a condition, for a message; empty if there is none."""
        with self._reading():
            return self.table.example(condition, columns)

    def query(self, values: Mapping[str, str], statement: Statement, **tables: pa.Table) -> pa.Table:
        """Return the result of a statement on some values, with further small tables available by name."""
        with self._reading():
            for name, table in tables.items():
                self.table.connection.register(name, table)
            return self.table.connection.sql(statement(f"({self.table.select(values)})")).to_arrow_table()

    def _reading(self) -> AbstractContextManager[None]:
        return clear_errors(self.backend.limit, self.name)

    def place(self, values: Mapping[str, str], rows: int, placement: Placement) -> StoredTable:
        """Store some values of all ``rows`` rows, with places instead of coordinates."""
        degrees = placement.degrees
        # DuckDB pulls batches from its own threads, in which pyproj fails or crashes the process.
        with self._reading(), ThreadPoolExecutor(1) as ours:
            reader = self.table.connection.sql(self.table.select(values)).to_arrow_reader(_BATCH)
            read = reader if degrees is None else (ours.submit(degrees, batch).result() for batch in reader)
            batches = place_batches(read, placement, worker_count(rows))
            sample = place_batch(pa.RecordBatch.from_pylist([], schema=reader.schema), placement)
            return self.backend.insert(sample.schema, batches)

    def keep(self, values: Mapping[str, str]) -> StoredTable:
        """Store some values as they are."""
        with self._reading():
            reader = self.table.connection.sql(self.table.select(values)).to_arrow_reader(_BATCH)
            return self.backend.insert(reader.schema, reader)

    def unreadable_lines(self) -> int:
        """Return the number of lines of a text file that could not be split into columns, once it has been read."""
        return self.table.unreadable_lines()
