"""A DuckDB database in a scratch folder, and tables that it can scan as inputs of the SQL engine."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.core.atomic_write import Claim
from odkanon.core.progress import watched
from odkanon.core.sql import quote_text
from odkanon.core.system import machine_memory
from odkanon.engine.sql.backend import BYTES_PER_FLOW, PartWork, StoredTable, new_table_name, store_query
from odkanon.engine.sql.cell_workers import Placement, place_batch, place_batches, worker_count
from odkanon.engine.sql.row_checks import SqlInput, Statement
from odkanon.errors import InputError, UnreadableFileError, is_disk_full
from odkanon.read.tables.table import SourceTable, measure_progress, share_of

_DISK_FULL = (
    "there is no disk space left for intermediate results; free some, or set the environment variable TMPDIR to a "
    "folder on another disk"
)

_AT_A_TIME = min(os.cpu_count() or 1, 2)
"""Parts that are processed at a time; each takes memory."""

_SLICE = 16_000_000
"""Values that are sorted at a time."""


class DuckDb:
    """A database in a scratch folder, which is removed with it.

    * ``memory_limit``: bytes that the process may use; three quarters of the machine's memory by default.
    * ``scratch``: the folder for data that does not fit in memory; by default the system's temporary folder.
    * ``fetchable``: up to how many flows are processed in memory; by default as many as fit there easily.
    """

    def __init__(
        self, *, memory_limit: int | None = None, scratch: Path | None = None, fetchable: int | None = None
    ) -> None:
        self.limit = memory_limit or machine_memory() * 3 // 4
        self.fetchable = self.memory // BYTES_PER_FLOW if fetchable is None else fetchable
        with clear_errors(self.limit):
            claim = Claim(scratch or Path(tempfile.gettempdir()), "odkanon-scratch-")
            self.scratch = claim.path
            self._remove = weakref.finalize(self, claim.release)
            self.connection = duckdb.connect(
                str(self.scratch / "work.duckdb"),
                config={
                    # The remainder is for Python and for the connection that reads the input.
                    "memory_limit": f"{self.limit * 6 // 10 // 2**20}MiB",
                    "temp_directory": str(self.scratch / "spill"),
                    "preserve_insertion_order": "false",
                    "autoinstall_known_extensions": "false",
                },
            )
            measure_progress(self.connection)

    @property
    def memory(self) -> int:
        """Bytes of memory that Python may use for fetched rows."""
        return self.limit // 4

    def execute(self, sql: str) -> pa.Table:
        """Return the result of a query."""
        with clear_errors(self.limit), watched(share_of(self.connection)):
            return self.connection.sql(sql).to_arrow_table()

    def register(self, name: str, table: pa.Table | pa.RecordBatchReader) -> None:
        """Store a table under a name."""
        with clear_errors(self.limit):
            self.connection.register(f"{name}_lent", table)
            # Small tables stay in memory: writing them to disk would take longer than using them.
            small = "TEMP " if isinstance(table, pa.Table) else ""
            self.connection.execute(f"CREATE {small}TABLE {name} AS SELECT * FROM {name}_lent")
            self.connection.unregister(f"{name}_lent")

    def materialise(self, name: str, sql: str) -> int:
        """Store the result of a query under a name; return its number of rows."""
        with clear_errors(self.limit), watched(share_of(self.connection)):
            self.connection.execute(f"CREATE TABLE {name} AS {sql}").fetchall()
            return int(self.connection.execute(f"SELECT COUNT(*) FROM {name}").fetchall()[0][0])

    def insert(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> StoredTable:
        """Store a stream of batches."""
        name, failed = new_table_name(), []

        def watched() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except Exception as error:
                failed.append(error)
                raise

        try:
            self.register(name, pa.RecordBatchReader.from_batches(schema, watched()))
        except (InputError, duckdb.Error):
            if failed:  # DuckDB's own error only reports that its input ended
                raise failed[0] from None
            raise
        return StoredTable(self, name)

    def repeated(self, table: StoredTable, column: str) -> pa.Table:
        """Return the values of an integer column that occur more than once.

        Sorting the values in slices takes a fraction of the time and memory of a hash table over all of them.
        """
        summary = self.execute(f"SELECT COUNT({column}) AS n, MIN({column}) AS low, MAX({column}) AS high FROM {table}")
        count, low, high = (summary.column(name)[0].as_py() for name in ("n", "low", "high"))
        slices = count // _SLICE + 1 if count else 0
        edges = [low + (high + 1 - low) * part // slices for part in range(slices + 1)] if slices else []

        def repeated_in(edge: tuple[int, int]) -> Ints:
            within = f"{column} BETWEEN {edge[0]} AND {edge[1] - 1}"
            with clear_errors(self.limit), self.connection.cursor() as reading:
                values = reading.sql(f"SELECT {column} AS v FROM {table} WHERE {within}").to_arrow_table()
            ordered = np.sort(values.column("v").to_numpy())
            return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])

        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            found = list(pool.map(repeated_in, pairwise(edges)))
        return pa.table({"value": np.concatenate([np.empty(0, dtype=np.int64), *found])})

    def by_part(self, tables: Mapping[str, str], parts: int, work: PartWork, columns: Sequence[str]) -> StoredTable:
        """Process queries part by part, and store the results in one table."""
        stored = {name: store_query(self, f"SELECT * FROM ({sql}) r ORDER BY part") for name, sql in tables.items()}

        def one(part: int) -> list[pa.RecordBatch]:
            with clear_errors(self.limit), self.connection.cursor() as reading:
                found = {
                    name: reading.sql(f"SELECT * FROM {table} WHERE part = {part}").to_arrow_table()
                    for name, table in stored.items()
                }
            made: list[pa.RecordBatch] = work(found).to_batches()
            return made

        def every() -> Iterator[pa.RecordBatch]:
            waiting: deque[Future[list[pa.RecordBatch]]] = deque()
            with ThreadPoolExecutor(_AT_A_TIME) as pool:
                for part in range(parts):
                    waiting.append(pool.submit(one, part))
                    if len(waiting) == _AT_A_TIME:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()

        schema = pa.schema([(name, pa.int64()) for name in columns])
        return self.insert(schema, every())

    def drop(self, name: str) -> None:
        """Drop a table."""
        self.connection.execute(f"DROP TABLE IF EXISTS {name}")

    def close(self) -> None:
        """Close the database and remove its folder."""
        self.connection.close()
        self._remove()


@contextmanager
def clear_errors(limit: int, source: str | None = None) -> Iterator[None]:
    """Convert DuckDB's errors about memory, disk and files into one message with advice.

    * ``limit``: bytes of memory that DuckDB may use.
    * ``source``: the file being read, to which any other error is attributed.
    """
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if is_disk_full(error) or "max_temp_directory_size" in str(error):
            raise InputError(_DISK_FULL) from None
        # In the middle of a stream it arrives as an OSError.
        if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error):
            amount = f"{limit / 2**30:.3g} GiB" if limit >= 2**30 else f"{limit / 2**20:.3g} MiB"
            raise InputError(
                f"the memory limit of {amount} is too small for this input; raise it, or use a coarser resolution",
                option="memory-limit SIZE",
            ) from None
        if source is not None:
            raise UnreadableFileError.because(source, error) from None
        if isinstance(error, duckdb.IOException | OSError):
            raise InputError(f"reading or writing failed: {str(error).strip().splitlines()[0]}") from None
        raise


_BATCH = 500_000
"""Rows per batch when coordinates are converted to cells."""


@dataclass(frozen=True, eq=False)
class DuckInput(SqlInput):
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
