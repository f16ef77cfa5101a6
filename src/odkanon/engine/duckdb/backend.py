"""DuckDB as a backend: one machine, more data than memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.core.atomic_write import Claim
from odkanon.core.progress import watched
from odkanon.core.system_memory import machine_memory
from odkanon.engine.sql.backend import BYTES_PER_FLOW, Stored, Work, new_name, store
from odkanon.errors import InputError, is_disk_full
from odkanon.read.tables.table import measure_progress, share_of

_DISK_FULL = (
    "there is no disk space left for intermediate results; free some, or name a folder on another disk in the "
    "environment variable TMPDIR"
)

_AT_A_TIME = min(os.cpu_count() or 1, 2)
"""Parts that are worked on at a time; each of them takes memory."""

_SLICE = 16_000_000
"""Values that are sorted at a time."""


class DuckDb:
    """A database in a scratch folder that goes away with it.

    Parameters
    ----------
    memory_limit : int, optional
        Bytes that the process may use; three quarters of the machine's memory by default.
    scratch : path, optional
        Where to put what does not fit in memory; the system's temporary folder by default.
    fetchable : int, optional
        Rows of flows that are better worked on in memory; as many as fit there easily by default.
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
                    # The rest is for Python and for the reader of the input, which has a connection of its own.
                    "memory_limit": f"{self.limit * 6 // 10 // 2**20}MiB",
                    "temp_directory": str(self.scratch / "spill"),
                    "preserve_insertion_order": "false",
                    "autoinstall_known_extensions": "false",
                },
            )
            measure_progress(self.connection)

    @property
    def memory(self) -> int:
        """Bytes of memory that Python may use for what it fetches."""
        return self.limit // 4

    def execute(self, sql: str) -> pa.Table:
        """Return the result of a query."""
        with clear_errors(self.limit), watched(share_of(self.connection)):
            return self.connection.sql(sql).to_arrow_table()

    def register(self, name: str, table: pa.Table | pa.RecordBatchReader) -> None:
        """Make a small table known under a name."""
        with clear_errors(self.limit):
            self.connection.register(f"{name}_lent", table)
            # Small tables are not worth the wait for the disk that a lasting one takes.
            small = "TEMP " if isinstance(table, pa.Table) else ""
            self.connection.execute(f"CREATE {small}TABLE {name} AS SELECT * FROM {name}_lent")
            self.connection.unregister(f"{name}_lent")

    def materialise(self, name: str, sql: str) -> int:
        """Keep the result of a query under a name; return its number of rows."""
        with clear_errors(self.limit), watched(share_of(self.connection)):
            self.connection.execute(f"CREATE TABLE {name} AS {sql}").fetchall()
            return int(self.connection.execute(f"SELECT COUNT(*) FROM {name}").fetchall()[0][0])

    def insert(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Stored:
        """Keep a stream of batches."""
        name, failed = new_name(), []

        def watched() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except Exception as error:
                failed.append(error)
                raise

        try:
            self.register(name, pa.RecordBatchReader.from_batches(schema, watched()))
        except (InputError, duckdb.Error):
            if failed:  # which says more than DuckDB, that only knows that its input has ended
                raise failed[0] from None
            raise
        return Stored(self, name)

    def repeated(self, table: Stored, column: str) -> pa.Table:
        """Return the values of an integer column that occur more than once.

        Sorting slices of the values takes a fraction of the time and memory of a hash table over all of them.
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

    def by_part(self, tables: Mapping[str, str], parts: int, work: Work, columns: Sequence[str]) -> Stored:
        """Keep what some work makes of each part of some queries."""
        stored = {name: store(self, f"SELECT * FROM ({sql}) r ORDER BY part") for name, sql in tables.items()}

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
        """Forget what is known under a name."""
        self.connection.execute(f"DROP TABLE IF EXISTS {name}")

    def close(self) -> None:
        """Give everything back."""
        self.connection.close()
        self._remove()


@contextmanager
def clear_errors(limit: int, source: str | None = None) -> Iterator[None]:
    """Turn what DuckDB says when memory or disk run out into one message that says what to do.

    Parameters
    ----------
    limit : int
        Bytes of memory that were allowed.
    source : str, optional
        What is being read, to blame for any other error.
    """
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if is_disk_full(error) or "max_temp_directory_size" in str(error):
            raise InputError(_DISK_FULL) from None
        # In the middle of a stream it is an OSError that says so.
        if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error):
            amount = f"{limit / 2**30:.3g} GiB" if limit >= 2**30 else f"{limit / 2**20:.3g} MiB"
            raise InputError(
                f"the memory limit of {amount} is too small for this input; raise it, or use a coarser resolution",
                option="memory-limit SIZE",
            ) from None
        said = str(error).strip().splitlines()[0]
        if source is not None:
            raise InputError(f"{source} cannot be read: {said}") from None
        if isinstance(error, duckdb.IOException | OSError):
            raise InputError(f"reading or writing failed: {said}") from None
        raise
