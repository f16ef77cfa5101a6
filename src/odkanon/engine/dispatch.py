"""One door for every input and every engine, as ``odkanon anonymize`` goes through it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odkanon.engine.protocols import Matrix
from odkanon.engine.selection import EngineName, load, parse_bytes
from odkanon.errors import InputError, nearest
from odkanon.read.attributes.hierarchies import AGE_BANDS, parse_attributes
from odkanon.read.input_spec import InputSpec

ENGINES: tuple[EngineName, ...] = ("memory", "duckdb", "spark")


def read_matrix(
    source: str | Path | Sequence[str | Path],
    *,
    engine: EngineName | None = None,
    memory_limit: int | str | None = None,
    spark_master: str | None = None,
    by: Sequence[str] = (),
    age_bands: Sequence[int] = AGE_BANDS,
    **how: Any,
) -> Matrix:
    """Read trips, or records between zones, into an OD matrix on the engine that suits their number.

    Parameters
    ----------
    source : path or sequence of paths
        A file of any kind that `odkanon.InputSpec` lists, several with the same columns, or a folder of Parquet files.
    engine : {"memory", "duckdb", "spark"}, optional
        Where the pairs are kept. By default in memory as long as they fit there comfortably, else in DuckDB;
        ``s3a://``, ``hdfs://`` and the like go to Spark.
    memory_limit : int or str, optional
        Bytes, or something like ``"8GiB"``: what DuckDB may take, and what "fits" means.
    spark_master : str, optional
        Such as ``local[4]`` or ``spark://host:7077``. On a session of your own, use `odkanon.spark.read`.
    by, age_bands : sequence of str, sequence of int
        What to count trips by besides origin and destination, for a cube; see `odkanon.cube_of`.
    **how
        How to read it; see `odkanon.InputSpec`.

    Returns
    -------
    Matrix
        For `odkanon.anonymize`; releases are the same, byte for byte, whatever the engine.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_matrix
    >>> from odkanon.read.tables.open_table import write_csv
    >>> with TemporaryDirectory() as folder:
    ...     write_csv(make_survey(), Path(folder) / "survey.csv")
    ...     od = read_matrix(Path(folder) / "survey.csv", engine="duckdb", resolution=8)
    >>> anonymize(od, Rule(trips=10)).refusal is None
    True
    """
    limit = parse_bytes(memory_limit) if isinstance(memory_limit, str) else memory_limit
    if engine is not None and engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}{nearest(engine, ENGINES)}; choose among {', '.join(ENGINES)}")
    reading = InputSpec(source, **how)
    attributes = parse_attributes(by, age_bands, (reading.since, reading.until)) if by else ()
    return load(reading, engine=engine, memory_limit=limit, spark_master=spark_master, attributes=attributes)
