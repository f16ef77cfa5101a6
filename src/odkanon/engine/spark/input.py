"""Inputs on Spark: data frames, and Parquet and CSV files that Spark can reach."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

import pyarrow as pa

from odkanon.core.sql import quote_name
from odkanon.core.system import plain, remote
from odkanon.engine.spark.backend import (
    Spark,
    TaskSource,
    clear_errors,
    selecting,
    spark_schema,
    start_session,
    under_names,
)
from odkanon.engine.spark.csv_lines import Lines, count_unreadable, first_lines, lines_of, scan_lines
from odkanon.engine.sql.backend import StoredTable, new_table_name
from odkanon.engine.sql.cell_workers import Placement
from odkanon.engine.sql.row_checks import SqlInput, Statement
from odkanon.errors import InputError
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.containers import check_file
from odkanon.read.tables.datasets import check_partitions, dataset_files, dataset_sha256
from odkanon.read.tables.open_table import PARQUET, open_table
from odkanon.read.tables.table import SourceTable
from odkanon.read.tables.text_files import GZIP, MARKS, file_sha256

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIRST = 1_000
"""Rows from which the formats of numbers and times are detected."""
_FIRST_BYTES = 1_024
_TEXT = re.compile(r"\.(csv|tsv|txt)(\.\w+)?/?$", re.IGNORECASE)
_OTHERS = (b"{", b"[", b"<")
"""First bytes of JSON and GPX files."""

Then = Callable[[pa.RecordBatch], pa.RecordBatch]


class SparkRows(Protocol):
    """Unchecked rows on Spark."""

    @property
    def lines(self) -> int | None: ...  # noqa: D102
    def for_query(self, sql: str) -> tuple[DataFrame, TaskSource]: ...  # noqa: D102
    def unreadable(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class FrameRows:
    """The rows of a data frame."""

    frame: DataFrame
    """The rows, with numbered columns: Spark passes no column to Python that has a dot in its name."""
    names: tuple[str, ...]
    """The names of the columns."""
    lines: int | None = None

    def for_query(self, sql: str) -> tuple[DataFrame, TaskSource]:
        """Return the columns that a query uses, and their source in tasks."""
        some = [at for at, name in enumerate(self.names) if quote_name(name) in sql] or [0]
        return self.frame.select(*(f"c{at}" for at in some)), under_names([self.names[at] for at in some])

    def unreadable(self) -> int:
        """Return 0: a data frame has no lines."""
        return 0


@dataclass(frozen=True)
class TextRows:
    """The lines of text files, with their format."""

    frame: DataFrame
    how: Lines

    @property
    def lines(self) -> int | None:
        """Number of lines below the headers."""
        return self.how.count

    def for_query(self, sql: str) -> tuple[DataFrame, TaskSource]:
        """Return all lines, and their source in tasks."""
        del sql
        return self.frame, self.how

    def unreadable(self) -> int:
        """Return the number of lines that cannot be split into columns."""
        return count_unreadable(self.frame, self.how)


@dataclass(frozen=True, eq=False)
class SparkInput(SqlInput):
    """Rows on Spark as an input of the SQL engine: DuckDB checks them in tasks, Spark does everything else."""

    backend: Spark
    """The session."""
    rows: SparkRows
    """All rows."""
    table: SourceTable
    """The first rows, with standard column names; queries on it run on all rows."""

    @property
    def lines(self) -> int | None:
        """Number of rows of text files by their lines; None for data frames."""
        return self.rows.lines

    def _selected(self, values: Mapping[str, str], then: Then | None = None) -> DataFrame:
        """Return some values, with ``then`` applied to their batches."""
        sql = self.table.select(values)
        none = self.table.connection.sql(f"{sql} LIMIT 0").to_arrow_table().combine_chunks()
        empty = pa.RecordBatch.from_pylist([], schema=none.schema)
        frame, source = self.rows.for_query(sql)
        schema = spark_schema((empty if then is None else then(empty)).schema)
        return frame.mapInArrow(selecting(sql, source, then), schema)

    def query(self, values: Mapping[str, str], statement: Statement, **tables: pa.Table) -> pa.Table:
        """Return the result of a statement on some values, with further small tables available by name."""
        for name, table in tables.items():
            self.backend.register(name, table)
        name = new_table_name()
        with clear_errors():
            self._selected(values).createOrReplaceTempView(name)
        try:
            return self.backend.execute(statement(name))
        finally:
            self.backend.drop(name)

    def place(self, values: Mapping[str, str], rows: int, placement: Placement) -> StoredTable:
        """Store some values, with places instead of coordinates; ``rows`` is not used."""
        del rows
        return self._keep(values, placement)

    def keep(self, values: Mapping[str, str]) -> StoredTable:
        """Store some values as they are."""
        return self._keep(values)

    def _keep(self, values: Mapping[str, str], then: Then | None = None) -> StoredTable:
        name = new_table_name()
        with clear_errors():
            self.backend.keep(name, self._selected(values, then))
        return StoredTable(self.backend, name)

    def unreadable_lines(self) -> int:
        """Return the number of lines of text files that cannot be split into columns."""
        return self.rows.unreadable()


def open_spark_input(reading: InputSpec, *, master: str | None = None, backend: Spark | None = None) -> SparkInput:
    """Return the input of a data frame, or of Parquet or CSV files that Spark can reach."""
    source = reading.source
    if isinstance(source, list | tuple):
        raise InputError("Spark reads one file, folder, pattern or address; put several files into one folder")
    if not isinstance(source, str | Path):
        return _frame_input(backend or Spark(start_session(master), own=True), reading, source, "the table")
    text = is_text(source)
    backend = backend or Spark(start_session(master), own=True)
    name, sha256 = remote(source) or str(source), _sha256(source)
    if not text:
        return _frame_input(backend, reading, read_parquet(backend.session, source), name, sha256)
    files = None if remote(source) else dataset_files(source)
    with clear_errors(f"{name} cannot be read by Spark"):
        frame = lines_of(backend.session, [name] if remote(source) else list(map(for_spark, files or [Path(source)])))
    lines = scan_lines(frame, name, reading.text)
    table = replace(first_lines(frame, lines, _FIRST), sha256=sha256)
    return SparkInput(backend, TextRows(frame, lines), reading.standardize(table))


def _frame_input(
    backend: Spark, reading: InputSpec, frame: DataFrame, name: str, sha256: str | None = None
) -> SparkInput:
    names = tuple(frame.columns)
    with clear_errors():
        numbered = frame.toDF(*(f"c{at}" for at in range(len(names))))
        first = numbered.limit(_FIRST).toArrow().rename_columns(list(names))
    table = replace(open_table(first), name=name, sha256=sha256)
    return SparkInput(backend, FrameRows(numbered, names), reading.standardize(table))


def is_text(source: str | Path) -> bool:
    """Return whether a source is text rather than Parquet; raise if it is neither.

    The type of remote sources follows from their names, that of local files from their first bytes.
    """
    address = remote(source)
    if address is not None:
        return _TEXT.search(address) is not None
    file = next(iter(dataset_files(source) or [Path(source)]))
    check_file(file, str(file))
    with file.open("rb") as content:
        first = content.read(_FIRST_BYTES)
    if first.startswith(PARQUET):
        return False
    marked = first.startswith((*MARKS, GZIP)) and (not first.startswith(GZIP) or file.suffix.lower() == ".gz")
    if not marked and (b"\0" in first or first.lstrip().startswith(_OTHERS)):
        raise InputError(f"{source} is neither CSV nor Parquet, and Spark reads only these", option="engine duckdb")
    return True


def read_parquet(session: SparkSession, source: str | Path) -> DataFrame:
    """Return Parquet as a data frame: a file, a folder, a pattern or an address."""
    address = remote(source)
    files = None if address else dataset_files(source)
    with clear_errors(f"{address or source} cannot be read by Spark as Parquet files"):
        if address or Path(source).is_dir():
            where = address or for_spark(Path(source))
            frame = session.read.parquet(where)
            own = session.read.option("recursiveFileLookup", "true").parquet(where).columns
            check_partitions(map(PurePosixPath, map(unquote, frame.inputFiles())), own, address or str(source))
            return frame
        return session.read.parquet(*map(for_spark, files or [Path(source)]))


def for_spark(path: Path) -> str:
    """Return a local path for Spark, with its patterns escaped; raise if Spark would skip the file."""
    if path.name.startswith(("_", ".")) and path.is_file():
        raise InputError(f"Spark skips files whose names begin with {path.name[0]!r}; rename {path}")
    return re.sub(r"([*?\[\]{}\\^])", r"\\\1", str(plain(path).absolute()))


def _sha256(source: str | Path) -> str | None:
    if remote(source) is not None:
        return None
    files = dataset_files(source)
    return file_sha256(Path(source)) if files is None else dataset_sha256(files)
