"""GNSS points to trips on Spark: DuckDB checks them a task at a time, Spark sorts them, and they are cut at pauses.

Checks, reasons and time formats are those of `odkanon.read.points.segmentation`, since the same query runs on the
points of each task; so is the cutter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from odkanon.engine.spark.backend import clear_errors, to_spark
from odkanon.engine.spark.tasks import Work, selecting, under_names
from odkanon.read.points.cutting import ORDER, PauseCutter, TripRule
from odkanon.read.points.fixes import Fixes, fixes_of_table, point_columns
from odkanon.read.points.segmentation import PointsAccount, account_of, check_rule, no_usable_point
from odkanon.read.tables.open_table import open_table, quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH = 200_000
_CHECKED = "person {person}, instant BIGINT, clock BIGINT, lat DOUBLE, lon DOUBLE, zoned BOOLEAN, reason SMALLINT"
_TRIP = (
    "person {person}, start_time TIMESTAMP_NTZ, end_time TIMESTAMP_NTZ, "
    "start_lat DOUBLE, start_lon DOUBLE, end_lat DOUBLE, end_lon DOUBLE"
)
_CUT = f"{_TRIP}, counted STRING, number BIGINT"


@dataclass(frozen=True)
class SparkTrips:
    """Trips that stay on Spark, and what became of the points.

    Attributes
    ----------
    frame : DataFrame
        ``person, start_time, end_time, start_lat, start_lon, end_lat, end_lon``, for `odkanon.spark.read`; kept in the
        memory and on the disks of the cluster.
    account : PointsAccount
        As `odkanon.points_to_trips` gives it for the same points.
    """

    frame: DataFrame
    account: PointsAccount
    _kept: DataFrame

    def unpersist(self) -> None:
        """Give back the room that the trips take on the cluster; if needed again, they are made again."""
        self._kept.unpersist()


class _Named(NamedTuple):
    columns: tuple[str, ...]
    name: str


def trips_of_points(
    points: DataFrame, name: str, *, rule: TripRule, columns: Mapping[str, str] | None = None
) -> SparkTrips:
    """Return the trips of a data frame of points; ``name`` is what messages call it."""
    from pyspark import StorageLevel

    check_rule(rule)
    found = point_columns(_Named(tuple(points.columns), name), columns)
    with clear_errors():
        # Under our own names, since Spark hands no column to Python that has a dot in its name.
        points = points.selectExpr(*(to_spark(f"{quote_name(theirs)} AS {ours}") for ours, theirs in found.items()))
        table = replace(open_table(points.limit(0).toArrow()), name=name)
        fixes = replace(fixes_of_table(table, {ours: ours for ours in found}), time_column=found["time"])
        kind = dict(points.dtypes)["person"]
        person = "string" if kind.startswith("string") else kind  # without a collation, which would mix up persons
        checked = points.mapInArrow(_checking(fixes.query, list(found)), _CHECKED.format(person=person))
        reasons = _reasons(fixes, checked)
        if not reasons[0]:
            raise no_usable_point(fixes, account_of(fixes, rule, reasons, {}))
        good = checked.where("reason = 0").drop("zoned", "reason")
        ordered = good.repartition("person").sortWithinPartitions(*ORDER)
        cut = ordered.mapInArrow(_cutting(rule), _CUT.format(person=person)).persist(StorageLevel.MEMORY_AND_DISK)
        # Counts travel as rows beside the trips: a task that is tried twice counts once.
        told = cut.where("counted IS NOT NULL").groupBy("counted").sum("number").collect()
    account = account_of(fixes, rule, reasons, {row[0]: row[1] for row in told})
    return SparkTrips(cut.where("counted IS NULL").drop("counted", "number"), account, cut)


def _reasons(fixes: Fixes, checked: DataFrame) -> list[int]:
    """Return how many points are good, and how many have each reason not to be."""
    counts = {(row[0], row[1]): row[2] for row in checked.groupBy("reason", "zoned").count().collect()}
    fixes.check_offsets(counts.get((0, True), 0), counts.get((0, False), 0))
    return [counts.get((number, True), 0) + counts.get((number, False), 0) for number in range(len(fixes.reasons) + 1)]


def _checking(query: str, names: Sequence[str]) -> Work:
    return selecting(f"SELECT * REPLACE (CAST(reason AS SMALLINT) AS reason) FROM ({query})", under_names(names))


def _cutting(rule: TripRule) -> Work:
    def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cutter = PauseCutter(rule)
        for points in _gathered(batches):
            yield from _rows(cutter.feed(points), {})
        last = cutter.finish()
        if last is not None:
            yield from _rows(last, cutter.counts())

    return cut


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield larger tables: Spark's batches are small, and each that is cut costs some time of its own."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _BATCH:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _rows(trips: pa.Table, counts: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """Yield trips, and counts as rows of their own."""
    told = pa.table({"counted": pa.array(counts.keys(), pa.string()), "number": pa.array(counts.values(), pa.int64())})
    both = pa.concat_tables([trips, told], promote_options="default")
    yield from both.combine_chunks().to_batches()
