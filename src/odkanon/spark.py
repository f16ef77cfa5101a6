"""ODkAnon on a Spark session of yours.

::

    from odkanon import Rule, anonymize, spark

    trips = spark.trips(session, "s3a://bucket/points").frame
    od = spark.read(session, trips)
    anonymize(od, Rule(trips=10)).save("release")
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from odkanon.engine.dispatch import load_table
from odkanon.engine.spark.backend import Spark
from odkanon.engine.spark.gnss_trips import SparkTrips, trips_of_points
from odkanon.engine.spark.input import open_spark_input, read_parquet
from odkanon.model.od import Matrix
from odkanon.read.input_spec import InputSpec, ReadOptions, lists_read_options
from odkanon.read.points.cutting import TripRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@lists_read_options
def read(session: SparkSession, source: str | Path | DataFrame, **options: Unpack[ReadOptions]) -> Matrix:
    """Read trips, or records between zones, into an OD matrix that stays on Spark.

    Parameters
    ----------
    session : SparkSession
        Where to work.
    source : path or DataFrame
        Parquet or CSV: a file, a folder of Parquet, a pattern, or an address in an object store, which is handed to
        Spark as it is.
    **options
        How to read it, such as ``columns``, ``resolution`` or ``where``; see `odkanon.InputSpec`.

    Returns
    -------
    SqlMatrix
        For `odkanon.anonymize`; a release made of it is the same, byte for byte, as one made in memory.
    """
    spec = InputSpec(source, **options)
    return load_table(open_spark_input(spec, backend=Spark(session)), spec)


def trips(
    session: SparkSession,
    source: str | Path | DataFrame,
    *,
    rule: TripRule | None = None,
    columns: Mapping[str, str] | None = None,
) -> SparkTrips:
    """Make trips of GNSS points, on Spark from the first to the last.

    Parameters
    ----------
    session : SparkSession
        Where to work.
    source : path or DataFrame
        Points as Parquet, wherever Spark can reach them, or as a data frame.
    rule, columns
        As for `odkanon.points_to_trips`.

    Returns
    -------
    SparkTrips
        The same trips, and the same account of the points, as `odkanon.points_to_trips` gives.
    """
    name = "the table"
    if isinstance(source, str | Path):
        name, source = str(source), read_parquet(session, source)
    return trips_of_points(source, name, rule=rule or TripRule(), columns=columns)
