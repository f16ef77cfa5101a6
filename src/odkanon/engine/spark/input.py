"""Data frames, Parquet and CSV that Spark can reach, as inputs of the SQL engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

import pyarrow as pa

from odkanon.core.paths import plain, remote
from odkanon.engine.spark.backend import Spark, clear_errors, start_session
from odkanon.engine.spark.csv_lines import Lines, count_unreadable, first_lines, lines_of, look_at_lines
from odkanon.engine.spark.tasks import Source, selecting, spark_schema, under_names
from odkanon.engine.sql.backend import Stored, new_name
from odkanon.engine.sql.cell_workers import ToDegrees, place_batch
from odkanon.engine.sql.row_checks import OfTable
from odkanon.errors import InputError
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.containers import check_file
from odkanon.read.tables.datasets import check_partitions, dataset_files, dataset_sha256
from odkanon.read.tables.open_table import PARQUET, Table, open_table, quote_name
from odkanon.read.tables.text_files import GZIP, MARKS, file_sha256

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIRST = 1_000
"""Rows that are looked at to tell how numbers and times are written."""
_HEAD = 1_024
_TEXT = re.compile(r"\.(csv|tsv|txt)(\.\w+)?/?$", re.IGNORECASE)
_OTHERS = (b"{", b"[", b"<")
"""What JSON and GPX begin with."""

Then = Callable[[pa.RecordBatch], pa.RecordBatch]


class Rows(Protocol):
    """Rows that lie on Spark, before they are checked."""

    @property
    def lines(self) -> int | None: ...  # noqa: D102
    def for_query(self, sql: str) -> tuple[DataFrame, Source]: ...  # noqa: D102
    def unreadable(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class FrameRows:
    """The rows of a data frame, whose columns are numbered: Spark hands no column to Python that has a dot in its name.

    Attributes
    ----------
    frame : DataFrame
        The rows.
    names : tuple of str
        What the columns are called.
    """

    frame: DataFrame
    names: tuple[str, ...]
    lines: int | None = None

    def for_query(self, sql: str) -> tuple[DataFrame, Source]:
        """Return the columns that a query names, and how to make them known to DuckDB."""
        some = [at for at, name in enumerate(self.names) if quote_name(name) in sql] or [0]
        return self.frame.select(*(f"c{at}" for at in some)), under_names([self.names[at] for at in some])

    def unreadable(self) -> int:
        """Return 0: there are no lines."""
        return 0


@dataclass(frozen=True)
class TextRows:
    """The lines of text files, and how they are read."""

    frame: DataFrame
    how: Lines

    @property
    def lines(self) -> int | None:
        """How many there are below the headers; None where that cannot be told."""
        return self.how.count

    def for_query(self, sql: str) -> tuple[DataFrame, Source]:
        """Return all lines, and how to make their columns known to DuckDB."""
        del sql
        return self.frame, self.how

    def unreadable(self) -> int:
        """Return how many lines cannot be split into their columns."""
        return count_unreadable(self.frame, self.how)


@dataclass(frozen=True, eq=False)
class SparkInput(OfTable):
    """Rows on Spark as an input of the SQL engine: DuckDB checks them, a task at a time, and Spark does the rest.

    Attributes
    ----------
    backend : Spark
        Where to work on them.
    rows : Rows
        Where they come from.
    table : Table
        The first of them, in our words; all others are put into the same.
    """

    backend: Spark
    rows: Rows
    table: Table

    @property
    def lines(self) -> int | None:
        """Rows that text files should have by their lines; None where that cannot be told."""
        return self.rows.lines

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return one of the first rows that meets a condition, for a message; empty where none of them does."""
        return self.table.example(condition, columns)

    def _selected(self, values: Mapping[str, str], then: Then | None = None) -> DataFrame:
        """Return some values, with something else done to their batches."""
        sql = self.table.select(values)
        none = self.table.connection.sql(f"{sql} LIMIT 0").to_arrow_table().combine_chunks()
        empty = pa.RecordBatch.from_pylist([], schema=none.schema)
        frame, source = self.rows.for_query(sql)
        schema = spark_schema((empty if then is None else then(empty)).schema)
        return frame.mapInArrow(selecting(sql, source, then), schema)

    def query(self, values: Mapping[str, str], statement: str, **tables: pa.Table) -> pa.Table:
        """Return what a statement makes of some values, with some small tables at hand."""
        for name, table in tables.items():
            self.backend.register(name, table)
        name = new_name()
        with clear_errors():
            self._selected(values).createOrReplaceTempView(name)
        try:
            return self.backend.execute(statement.replace("%s", f"SELECT * FROM {name}"))
        finally:
            self.backend.drop(name)

    def place(self, values: Mapping[str, str], rows: int, resolution: int, degrees: ToDegrees | None = None) -> Stored:
        """Keep some values, with cells in place of coordinates; how many ``rows`` there are makes no difference."""
        del rows
        return self._keep(values, partial(_on_cells, resolution, degrees))

    def keep(self, values: Mapping[str, str]) -> Stored:
        """Keep some values as they are."""
        return self._keep(values)

    def _keep(self, values: Mapping[str, str], then: Then | None = None) -> Stored:
        name = new_name()
        with clear_errors():
            self.backend.keep(name, self._selected(values, then))
        return Stored(self.backend, name)

    def unreadable_lines(self) -> int:
        """Return how many lines of text files cannot be split into columns."""
        return self.rows.unreadable()


def _on_cells(resolution: int, degrees: ToDegrees | None, batch: pa.RecordBatch) -> pa.RecordBatch:
    return place_batch(batch if degrees is None else degrees(batch), resolution)


def open_spark_input(reading: InputSpec, *, master: str | None = None, backend: Spark | None = None) -> SparkInput:
    """Return an input of the SQL engine: Parquet or CSV, wherever Spark can reach it, or a data frame."""
    source = reading.source
    if isinstance(source, list | tuple):
        raise InputError("Spark takes one file, folder, pattern or address; put several files into one folder")
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
    lines = look_at_lines(frame, name, reading.text)
    table = replace(first_lines(frame, lines, _FIRST), sha256=sha256)
    return SparkInput(backend, TextRows(frame, lines), reading.in_our_words(table))


def _frame_input(
    backend: Spark, reading: InputSpec, frame: DataFrame, name: str, sha256: str | None = None
) -> SparkInput:
    names = tuple(frame.columns)
    with clear_errors():
        numbered = frame.toDF(*(f"c{at}" for at in range(len(names))))
        first = numbered.limit(_FIRST).toArrow().rename_columns(list(names))
    table = replace(open_table(first), name=name, sha256=sha256)
    return SparkInput(backend, FrameRows(numbered, names), reading.in_our_words(table))


def is_text(source: str | Path) -> bool:
    """Tell whether a source is text, and not Parquet; raise if it is neither.

    What lies elsewhere tells by its name, what lies here by what it begins with.
    """
    address = remote(source)
    if address is not None:
        return _TEXT.search(address) is not None
    file = next(iter(dataset_files(source) or [Path(source)]))
    check_file(file, str(file))
    with file.open("rb") as content:
        head = content.read(_HEAD)
    if head.startswith(PARQUET):
        return False
    marked = head.startswith((*MARKS, GZIP)) and (not head.startswith(GZIP) or file.suffix.lower() == ".gz")
    if not marked and (b"\0" in head or head.lstrip().startswith(_OTHERS)):
        raise InputError(
            f"{source} is neither CSV nor Parquet, which is what Spark reads; use DuckDB", option="engine duckdb"
        )
    return True


def read_parquet(session: SparkSession, source: str | Path) -> DataFrame:
    """Return a file, a folder, a pattern or an address of Parquet as a data frame."""
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
    """Return a path on this machine as Spark takes it, each letter for itself; raise where it passes over the file."""
    if path.name.startswith(("_", ".")) and path.is_file():
        raise InputError(f"Spark passes over files whose names begin with {path.name[0]!r}; rename {path}")
    return re.sub(r"([*?\[\]{}\\^])", r"\\\1", str(plain(path).absolute()))


def _sha256(source: str | Path) -> str | None:
    if remote(source) is not None:
        return None
    files = dataset_files(source)
    return file_sha256(Path(source)) if files is None else dataset_sha256(files)
