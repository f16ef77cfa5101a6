"""DuckDB as a backend: one machine, more data than memory."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from odkanon.engine.backend import BYTES_PER_FLOW, Stored, Work, new_name, store
from odkanon.engine.cellwork import helper_count, place_batch, place_batches
from odkanon.errors import InputError
from odkanon.io.tables import Table, quote_name

_DISK_FULL = "there is no disk space left for intermediate results; free some, or name another disk with TMPDIR"

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
"""Types of DuckDB whose values are 64-bit integers."""

_AT_A_TIME = min(os.cpu_count() or 1, 2)
"""Parts that are worked on at a time; each of them takes memory."""

_BATCH = 500_000
"""Rows that are put on cells at a time."""

_SLICE = 32_000_000
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
        folder = _scratch_folder(scratch)
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with clear_errors(self.limit):
            self.connection = duckdb.connect(
                str(folder / "work.duckdb"),
                config={
                    # The rest is for Python and for the reader of the input, which has a connection of its own.
                    "memory_limit": f"{max(self.limit * 6 // 10, 1) // 2**20}MiB",
                    "temp_directory": str(folder / "spill"),
                    "preserve_insertion_order": "false",
                    "autoinstall_known_extensions": "false",
                },
            )

    @property
    def memory(self) -> int:
        """Bytes of memory that Python may use for what it fetches."""
        return self.limit // 4

    def execute(self, sql: str) -> pa.Table:
        """Return the result of a query."""
        with clear_errors(self.limit):
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
        with clear_errors(self.limit):
            self.connection.execute(f"CREATE TABLE {name} AS {sql}").fetchall()
            return int(self.connection.execute(f"SELECT COUNT(*) FROM {name}").fetchall()[0][0])

    def insert(self, batches: pa.RecordBatchReader) -> Stored:
        """Keep a stream of batches."""
        name = new_name()
        self.register(name, batches)
        return Stored(self, name)

    def repeated(self, table: Stored, column: str) -> pa.Table:
        """Return the values of an integer column that occur more than once.

        Sorting slices of the values takes a fraction of the time and memory of a hash table over all of them.
        """
        summary = self.execute(f"SELECT COUNT({column}) AS n, MIN({column}) AS low, MAX({column}) AS high FROM {table}")
        count, low, high = (summary.column(name)[0].as_py() for name in ("n", "low", "high"))
        found = [np.empty(0, dtype=np.int64)]
        slices = count // _SLICE + 1 if count else 0
        edges = [low + (high + 1 - low) * part // slices for part in range(slices + 1)] if slices else []
        for first, last in pairwise(edges):
            values = self.execute(f"SELECT {column} AS v FROM {table} WHERE {column} BETWEEN {first} AND {last - 1}")
            ordered = np.sort(values.column("v").to_numpy())
            found.append(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
        return pa.table({"value": np.concatenate(found)})

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
        return self.insert(pa.RecordBatchReader.from_batches(schema, every()))

    def drop(self, name: str) -> None:
        """Forget what is known under a name."""
        self.connection.execute(f"DROP TABLE IF EXISTS {name}")

    def close(self) -> None:
        """Give everything back."""
        self.connection.close()
        self._remove()


@contextmanager
def clear_errors(limit: int) -> Iterator[None]:
    """Turn what DuckDB says when memory or disk run out into one message that says what to do."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        if "temp_directory" in str(error) or "offload" in str(error):
            raise InputError(
                "there is no disk space left for intermediate results; free some, or use --scratch"
            ) from None
        raise InputError(
            f"the memory limit of {limit / 2**30:.2g} GiB is too small for this input; raise --memory-limit, or use a "
            "coarser --resolution"
        ) from None
    except duckdb.IOException as error:
        if "space" in str(error).lower():
            raise InputError(
                "there is no disk space left for intermediate results; free some, or use --scratch"
            ) from None
        raise InputError(f"reading or writing failed: {str(error).strip().splitlines()[0]}") from None


def _scratch_folder(parent: Path | None) -> Path:
    """Return a new folder, named after this process; those of processes that were killed are removed."""
    where = Path(tempfile.gettempdir() if parent is None else parent)
    for old in where.glob("odkanon-*-scratch-*"):
        owner = old.name.split("-")[1]
        if Path("/proc").is_dir() and owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"odkanon-{os.getpid()}-scratch-", dir=where))


def machine_memory() -> int:
    """Return the bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30


@dataclass(frozen=True, eq=False)
class DuckInput:
    """A table that DuckDB can scan, as an input of the SQL engine."""

    table: Table
    backend: DuckDb

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

    def is_whole(self, column: str) -> bool:
        """Tell whether a column holds integers."""
        described = self.table.connection.execute(f"DESCRIBE SELECT {quote_name(column)} FROM {self.table.scan}")
        return described.fetchall()[0][1] in (
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
        )

    def query(self, select: str, rest: str = "", **tables: pa.Table) -> pa.Table:
        """Return a selection from the table, with some small tables at hand."""
        with self._reading():
            for name, table in tables.items():
                self.table.connection.register(name, table)
            return self.table.connection.sql(self._sql(select, rest)).to_arrow_table()

    def _sql(self, select: str, rest: str = "") -> str:
        sql = f"SELECT {select} FROM {self.table.scan}"
        return rest.replace("%s", sql) if "%s" in rest else f"{sql} {rest}"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        connection = self.table.connection
        connection.execute("CREATE TEMP MACRO IF NOT EXISTS rint(x) AS round_even(x, 0)")
        connection.execute(f"SET memory_limit = '{max(self.backend.limit * 2 // 10, 1) // 2**20}MiB'")
        with clear_errors(self.backend.limit):
            try:
                yield
            except (duckdb.IOException, duckdb.OutOfMemoryException):
                raise
            except duckdb.Error as error:
                raise InputError(f"{self.name} cannot be read: {str(error).strip().splitlines()[0]}") from None

    def place(self, select: str, resolution: int) -> Stored:
        """Keep a selection, with cells in place of its coordinates."""
        with self._reading():
            rows = self.table.connection.execute(f"SELECT COUNT(*) FROM {self.table.scan}").fetchall()[0][0]
            reader = self.table.connection.sql(self._sql(select)).to_arrow_reader(_BATCH)
            batches = place_batches(reader, resolution, helper_count(rows))
            sample = place_batch(pa.RecordBatch.from_pylist([], schema=reader.schema), resolution)
            return self.backend.insert(pa.RecordBatchReader.from_batches(sample.schema, batches))

    def keep(self, select: str) -> Stored:
        """Keep a selection as it is."""
        with self._reading():
            return self.backend.insert(self.table.connection.sql(self._sql(select)).to_arrow_reader(_BATCH))

    def unreadable_lines(self) -> int:
        """Return how many lines of a text file could not be split into columns, once read."""
        lines = "SELECT DISTINCT scan_id, file_id, line FROM reject_errors"
        try:
            # Read more than once, and each time it is all written down again.
            rows = self.table.connection.execute(
                f"SELECT max(n) FROM (SELECT count(*) AS n FROM ({lines}) GROUP BY scan_id)"
            ).fetchall()
        except duckdb.CatalogException:
            return 0
        return int(rows[0][0] or 0)
