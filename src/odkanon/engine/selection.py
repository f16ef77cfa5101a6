"""Which engine for which input, and matrices from any of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from odkanon.core.paths import remote
from odkanon.core.system_memory import machine_memory
from odkanon.engine.duckdb.backend import DuckDb
from odkanon.engine.duckdb.input import DuckInput
from odkanon.engine.protocols import Matrix
from odkanon.engine.sql.load_matrix import load_trips
from odkanon.engine.sql.od_records import load_od
from odkanon.engine.sql.row_checks import SqlInput
from odkanon.errors import InputError
from odkanon.read.attributes.spec import AttributeSpec
from odkanon.read.input_matrix import matrix_of
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.datasets import dataset_files, is_store, open_store

_BYTES_PER_TRIP = 400
"""What a trip takes at the peak of the engine in memory: 0.53 GiB for a million, Python itself included."""

_CSV_BYTES_PER_TRIP = 60
"""A row of a CSV has some hundred bytes; fewer, to be on the safe side and for compressed ones."""


Source = str | Path | Sequence[str | Path]
EngineName = Literal["memory", "duckdb", "spark"]


def choose_engine(source: Source, *, memory_limit: int | None = None) -> EngineName:
    """Return the engine for an input: memory if it fits there comfortably, DuckDB if not, Spark for clusters."""
    paths = [source] if isinstance(source, str | Path) else [each for each in source if isinstance(each, str | Path)]
    if any(remote(path) is not None and not is_store(path) for path in paths):
        return "spark"
    limit = memory_limit or machine_memory() // 2
    return "memory" if sum(map(_rows, paths)) * _BYTES_PER_TRIP <= limit else "duckdb"


def _rows(source: str | Path) -> int:
    """Return the rows of Parquet files, and a guess for others."""
    import pyarrow.parquet

    if is_store(source):
        return int(open_store(remote(source) or "").count_rows())
    rows = 0
    for file in dataset_files(source) or [Path(source)]:
        if not file.is_file():
            continue
        with file.open("rb") as content:
            is_parquet = content.read(4) == b"PAR1"
        try:
            rows += pyarrow.parquet.read_metadata(file).num_rows if is_parquet else 0
        except (OSError, ValueError):
            continue  # reading it will say what is wrong with it
        rows += 0 if is_parquet else file.stat().st_size // _CSV_BYTES_PER_TRIP
    return rows


def load(
    reading: InputSpec,
    *,
    engine: EngineName | None = None,
    memory_limit: int | None = None,
    spark_master: str | None = None,
    attributes: Sequence[AttributeSpec] = (),
) -> Matrix:
    """Read trips or records between zones into the engine that was asked for, or that suits the size.

    Parameters
    ----------
    reading : Reading
        What to read, and how; the source is a file, a folder or a pattern of Parquet files, or for Spark whatever it
        can read.
    engine : {"memory", "duckdb", "spark"}, optional
        Where to.
    memory_limit : int, optional
        Bytes, for DuckDB.
    spark_master : str, optional
        Such as ``local[4]`` or ``spark://host:7077``, which asks for Spark; by default what the environment says.
    attributes : sequence of Kind
        What to count trips by besides origin and destination; see
        `odkanon.read.attributes.hierarchies.parse_attributes`.
    """
    if spark_master and engine not in (None, "spark"):
        raise InputError(f"a Spark master does not apply to the engine {engine!r}; leave one of them out")
    if memory_limit is not None and (engine in ("memory", "spark") or spark_master):
        raise InputError("a limit of memory is for DuckDB alone; leave it out", option="engine duckdb")
    if engine is None:
        engine = "spark" if spark_master else choose_engine(reading.source, memory_limit=memory_limit)
    if engine == "memory":
        return matrix_of(reading, attributes=attributes)
    if engine == "spark":
        from odkanon.engine.spark.input import open_spark_input

        return load_table(open_spark_input(reading, master=spark_master), reading, attributes)
    return load_table(DuckInput(reading.open(), DuckDb(memory_limit=memory_limit)), reading, attributes)


def load_table(
    table: SqlInput,
    reading: InputSpec = InputSpec(),
    attributes: Sequence[AttributeSpec] = (),
) -> Matrix:
    """Read an open table into its backend; see `load`."""
    if reading.kind_of(table) == "trips":
        return load_trips(table, reading, attributes)
    return load_od(table, reading, attributes)


def parse_bytes(text: str) -> int:
    """Return a number of bytes written as ``8GiB``, ``8G``, ``500MB`` or so."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?\s*", text.upper())
    if found is None or float(found[1]) == 0:
        raise InputError(f"{text!r} is no amount of memory; write something like 8GiB or 500MB")
    base = 1000 if text.upper().rstrip().endswith("B") and not found[3] and found[2] else 1024
    return int(float(found[1]) * base ** " KMGT".index(found[2] or " "))
