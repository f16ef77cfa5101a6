"""Tables that DuckDB can scan, as inputs of the SQL engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from odkanon.engine.duckdb.backend import DuckDb, clear_errors
from odkanon.engine.sql.backend import Stored
from odkanon.engine.sql.cell_workers import ToDegrees, helper_count, place_batch, place_batches
from odkanon.engine.sql.row_checks import OfTable
from odkanon.read.tables.open_table import Table, quote_text

_BATCH = 500_000
"""Rows that are put on cells at a time."""


@dataclass(frozen=True, eq=False)
class DuckInput(OfTable):
    """A table that DuckDB can scan, as an input of the SQL engine."""

    table: Table
    backend: DuckDb

    def __post_init__(self) -> None:
        with clear_errors(self.backend.limit):
            # By default it would spill into the folder that the command was called in.
            self.table.connection.execute(f"SET temp_directory = {quote_text(str(self.backend.scratch / 'read'))}")
            self.table.connection.execute(f"SET memory_limit = '{self.backend.limit * 2 // 10 // 2**20}MiB'")

    @property
    def lines(self) -> int | None:
        """Rows that a text file should have by its lines; None where that cannot be told."""
        return self.table.lines

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return the first row that meets a condition, for a message."""
        with self._reading():
            return self.table.example(condition, columns)

    def query(self, values: Mapping[str, str], statement: str, **tables: pa.Table) -> pa.Table:
        """Return what a statement makes of some values, with some small tables at hand."""
        with self._reading():
            for name, table in tables.items():
                self.table.connection.register(name, table)
            return self.table.connection.sql(statement.replace("%s", self.table.select(values))).to_arrow_table()

    def _reading(self) -> AbstractContextManager[None]:
        return clear_errors(self.backend.limit, self.name)

    def place(self, values: Mapping[str, str], rows: int, resolution: int, degrees: ToDegrees | None = None) -> Stored:
        """Keep some values of so many rows, with cells in place of coordinates."""
        # DuckDB asks for batches in threads of its own, in which pyproj fails or brings the process down.
        with self._reading(), ThreadPoolExecutor(1) as ours:
            reader = self.table.connection.sql(self.table.select(values)).to_arrow_reader(_BATCH)
            read = reader if degrees is None else (ours.submit(degrees, batch).result() for batch in reader)
            batches = place_batches(read, resolution, helper_count(rows))
            sample = place_batch(pa.RecordBatch.from_pylist([], schema=reader.schema), resolution)
            return self.backend.insert(sample.schema, batches)

    def keep(self, values: Mapping[str, str]) -> Stored:
        """Keep some values as they are."""
        with self._reading():
            reader = self.table.connection.sql(self.table.select(values)).to_arrow_reader(_BATCH)
            return self.backend.insert(reader.schema, reader)

    def unreadable_lines(self) -> int:
        """Return how many lines of a text file could not be split into columns, once read."""
        return self.table.unreadable_lines()
