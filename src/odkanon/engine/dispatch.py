"""Which engine for which input: matrices from any source, and workspaces for any matrix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, get_args, overload

from odkanon.attributes.spec import AGE_BANDS, AttributeSpec, parse_attributes
from odkanon.core.system import machine_memory, remote
from odkanon.engine.memory.workspace import MemoryWorkspace
from odkanon.engine.protocols import Workspace
from odkanon.engine.sql.load_matrix import load_trips
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.engine.sql.od_records import load_od
from odkanon.engine.sql.row_checks import SqlInput
from odkanon.engine.sql.workspace import SqlWorkspace
from odkanon.errors import InputError, OptionConflictError, UnknownNameError
from odkanon.model.od import Matrix, ODMatrix
from odkanon.read.input_spec import InputSpec, ReadOptions, lists_read_options
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.datasets import dataset_files, is_store, open_store

EngineName = Literal["memory", "duckdb", "spark"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)

_BYTES_PER_TRIP = 400
"""Peak memory of the engine in memory per trip: 0.53 GiB for a million, Python itself included."""

_CSV_BYTES_PER_TRIP = 60
"""A row of a CSV has some hundred bytes; fewer, to be on the safe side and for compressed ones."""


@overload
def read_matrix(
    source: Any,
    *,
    engine: Literal["memory"],
    by: Sequence[str] = (),
    age_bands: Sequence[int] = AGE_BANDS,
    **options: Unpack[ReadOptions],
) -> ODMatrix: ...
@overload
def read_matrix(
    source: Any,
    *,
    engine: EngineName | None = None,
    memory_limit: int | str | None = None,
    spark_master: str | None = None,
    by: Sequence[str] = (),
    age_bands: Sequence[int] = AGE_BANDS,
    **options: Unpack[ReadOptions],
) -> Matrix: ...
@lists_read_options
def read_matrix(
    source: Any,
    *,
    engine: EngineName | None = None,
    memory_limit: int | str | None = None,
    spark_master: str | None = None,
    by: Sequence[str] = (),
    age_bands: Sequence[int] = AGE_BANDS,
    **options: Unpack[ReadOptions],
) -> Matrix:
    """Read trips, or records between zones, into an OD matrix on the engine that suits their number.

    Parameters
    ----------
    source : path, sequence of paths, or table
        A file in any format that `odkanon.InputSpec` lists, several with the same columns, a folder of Parquet files,
        or a table in memory.
    engine : {"memory", "duckdb", "spark"}, optional
        The engine that holds the OD pairs. By default memory as long as they fit there comfortably, else DuckDB;
        ``s3a://``, ``hdfs://`` and similar addresses are read with Spark.
    memory_limit : int or str, optional
        The memory for DuckDB, in bytes or as in ``"8GiB"``; also decides what fits in memory.
    spark_master : str, optional
        Such as ``local[4]`` or ``spark://host:7077``. For your own session, use `odkanon.spark.read`.
    by, age_bands : sequence of str, sequence of int
        The attributes of a cube; see `odkanon.build_od`.
    **options
        How to read the source; see `odkanon.InputSpec`.

    Returns
    -------
    Matrix
        For `odkanon.anonymize`; releases are byte for byte the same with every engine.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_matrix
    >>> from odkanon.core.sql import write_csv
    >>> with TemporaryDirectory() as folder:
    ...     write_csv(make_survey(), Path(folder) / "survey.csv")
    ...     od = read_matrix(Path(folder) / "survey.csv", engine="duckdb", resolution=8)
    >>> anonymize(od, Rule(trips=10)).refusal is None
    True
    """
    limit = parse_bytes(memory_limit) if isinstance(memory_limit, str) else memory_limit
    reading = InputSpec(source, **options)
    attributes = parse_attributes(by, age_bands, (reading.since, reading.until)) if by else ()
    return load(reading, engine=engine, memory_limit=limit, spark_master=spark_master, attributes=attributes)


def choose_engine(source: Any, *, memory_limit: int | None = None) -> EngineName:
    """Return the engine for an input: memory if it fits there comfortably, DuckDB if not, Spark for remote stores."""
    paths = InputSpec(source).paths
    if any(remote(path) is not None and not is_store(path) for path in paths):
        return "spark"
    limit = memory_limit or machine_memory() // 2
    return "memory" if sum(map(_estimate_rows, paths)) * _BYTES_PER_TRIP <= limit else "duckdb"


def _estimate_rows(source: str | Path) -> int:
    """Return the number of rows of Parquet files, and an estimate for others."""
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
            continue  # reading the file will raise the proper error
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
    """Read trips, or records between zones, into an OD matrix.

    * ``reading``: the source and how to read it; for Spark, anything that it can read.
    * ``engine``, ``memory_limit``, ``spark_master``: see `read_matrix`; without a master, Spark takes it from the
      environment.
    * ``attributes``: the attributes of a cube; see `odkanon.attributes.spec.parse_attributes`.
    """
    if engine is not None and engine not in ENGINES:
        raise UnknownNameError.among("engine", engine, ENGINES)
    if spark_master and engine not in (None, "spark"):
        raise OptionConflictError.between("a Spark master", f"the engine {engine!r}", "only Spark has one")
    if memory_limit is not None and (engine in ("memory", "spark") or spark_master):
        raise InputError("a memory limit applies only to DuckDB; leave it out", option="engine duckdb")
    if engine is None:
        engine = "spark" if spark_master else choose_engine(reading.source, memory_limit=memory_limit)
    reading.check_attributes(attributes)
    if engine == "memory":
        return spec_to_matrix(reading, attributes=attributes)
    if engine == "spark":
        from odkanon.engine.spark.input import open_spark_input

        return load_table(open_spark_input(reading, master=spark_master), reading, attributes)
    from odkanon.engine.duckdb.backend import DuckDb, DuckInput

    return load_table(DuckInput(reading.open(), DuckDb(memory_limit=memory_limit)), reading, attributes)


def load_table(
    table: SqlInput,
    reading: InputSpec = InputSpec(),
    attributes: Sequence[AttributeSpec] = (),
) -> SqlMatrix:
    """Read an open table into its backend; see `load`."""
    load_records = load_trips if reading.detect_kind(table) == "trips" else load_od
    matrix = load_records(table, reading, attributes)
    return matrix if reading.place is None else matrix.at_one_place()


def open_workspace(matrix: Matrix) -> Workspace:
    """Return the workspace of a matrix: in memory if its pairs fit there easily, else in their database."""
    if isinstance(matrix, SqlMatrix) and not matrix.is_small:
        return SqlWorkspace.from_matrix(matrix)
    return MemoryWorkspace.from_matrix(matrix.in_memory())


def parse_bytes(text: str) -> int:
    """Return a number of bytes written as ``8GiB``, ``8G``, ``500MB`` or so."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?\s*", text.upper())
    if found is None or float(found[1]) == 0:
        raise InputError(f"{text!r} is not an amount of memory; write something like 8GiB or 500MB")
    base = 1000 if text.upper().rstrip().endswith("B") and not found[3] and found[2] else 1024
    return int(float(found[1]) * base ** " KMGT".index(found[2] or " "))
