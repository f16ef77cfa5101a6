"""ODkAnon on a Spark session of yours.

::

    from odkanon import Rule, anonymize, spark

    trips = spark.trips(session, "s3a://bucket/points").frame
    od = spark.read(session, trips)
    anonymize(od, Rule(trips=10)).save("release")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import pyarrow as pa

from odkanon.engine.dispatch import load_table
from odkanon.engine.spark.backend import Spark, Task, clear_errors, selecting, under_names
from odkanon.engine.spark.input import open_spark_input, read_parquet
from odkanon.model.od import Matrix
from odkanon.read.input_spec import InputSpec, ReadOptions, lists_read_options
from odkanon.read.points.cutting import ORDER, PauseCutter, TripRule
from odkanon.read.points.fixes import Fixes, point_columns, table_to_fixes
from odkanon.read.points.segmentation import PointsAccount, check_rule, make_account, no_usable_point
from odkanon.read.tables.open_table import open_table

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


_BATCH = 200_000
_CHECKED = "person {person}, instant BIGINT, clock BIGINT, lat DOUBLE, lon DOUBLE, zoned BOOLEAN, reason SMALLINT"
_TRIP = (
    "person {person}, start_time TIMESTAMP_NTZ, end_time TIMESTAMP_NTZ, "
    "start_lat DOUBLE, start_lon DOUBLE, end_lat DOUBLE, end_lon DOUBLE"
)
_CUT = f"{_TRIP}, counted STRING, number BIGINT"


@dataclass(frozen=True)
class SparkTrips:
    """Trips on Spark, with the account of their points."""

    frame: DataFrame
    """``person, start_time, end_time, start_lat, start_lon, end_lat, end_lon``, for `odkanon.spark.read`; persisted in
    the memory and on the disks of the cluster."""
    account: PointsAccount
    """The same as from `odkanon.points_to_trips`."""
    _kept: DataFrame

    def unpersist(self) -> None:
        """Free the storage of the trips on the cluster; they are recomputed on the next use."""
        self._kept.unpersist()


class _PointTable(NamedTuple):
    columns: tuple[str, ...]
    name: str


def trips_of_points(
    points: DataFrame, name: str, *, rule: TripRule, columns: Mapping[str, str] | None = None
) -> SparkTrips:
    """Return the trips of a data frame of points, which messages call ``name``."""
    from pyspark import StorageLevel

    check_rule(rule)
    names = points.columns
    found = point_columns(_PointTable(tuple(names), name), columns)
    with clear_errors():
        # By number, since Spark passes no column to Python that has a dot in its name.
        numbered = points.toDF(*(f"c{at}" for at in range(len(names))))
        points = numbered.selectExpr(*(f"c{names.index(theirs)} AS {ours}" for ours, theirs in found.items()))
        table = replace(open_table(points.limit(0).toArrow()), name=name)
        fixes = replace(table_to_fixes(table, {ours: ours for ours in found}), time_column=found["time"])
        type_ = dict(points.dtypes)["person"]
        person = "string" if type_.startswith("string") else type_  # a collation would merge persons
        checked = points.mapInArrow(_checking(fixes.query, list(found)), _CHECKED.format(person=person))
        reasons = _reasons(fixes, checked)
        if not reasons[0]:
            raise no_usable_point(fixes, make_account(fixes, rule, reasons, {}))
        good = checked.where("reason = 0").drop("zoned", "reason")
        ordered = good.repartition("person").sortWithinPartitions(*ORDER)
        cut = ordered.mapInArrow(_cutting(rule), _CUT.format(person=person)).persist(StorageLevel.MEMORY_AND_DISK)
        # Counts are rows among the trips, so that a task that runs twice counts once.
        counts = cut.where("counted IS NOT NULL").groupBy("counted").sum("number").collect()
    account = make_account(fixes, rule, reasons, {row[0]: row[1] for row in counts})
    return SparkTrips(cut.where("counted IS NULL").drop("counted", "number"), account, cut)


def _reasons(fixes: Fixes, checked: DataFrame) -> list[int]:
    """Return the number of valid points, and the number rejected for each reason."""
    counts = {(row[0], row[1]): row[2] for row in checked.groupBy("reason", "zoned").count().collect()}
    fixes.check_offsets(counts.get((0, True), 0), counts.get((0, False), 0))
    return [counts.get((number, True), 0) + counts.get((number, False), 0) for number in range(len(fixes.reasons) + 1)]


def _checking(query: str, names: Sequence[str]) -> Task:
    return selecting(f"SELECT * REPLACE (CAST(reason AS SMALLINT) AS reason) FROM ({query})", under_names(names))


def _cutting(rule: TripRule) -> Task:
    def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cutter = PauseCutter(rule)
        for points in _gathered(batches):
            yield from _rows(cutter.feed(points), {})
        last = cutter.finish()
        if last is not None:
            yield from _rows(last, cutter.counts())

    return cut


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield larger tables: Spark's batches are small, and cutting has a cost per batch."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _BATCH:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _rows(trips: pa.Table, counts: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """Yield trips, followed by counts in rows of their own."""
    counted = {"counted": pa.array(counts.keys(), pa.string()), "number": pa.array(counts.values(), pa.int64())}
    both = pa.concat_tables([trips, pa.table(counted)], promote_options="default")
    yield from both.combine_chunks().to_batches()
