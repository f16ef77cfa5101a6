"""From GNSS points to trips in bounded memory: DuckDB sorts points on disk, and the stream is cut at pauses."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.atomic_write import check_new, partial_folder
from odkanon.core.progress import watched
from odkanon.core.sql import connect, literal, quote_text
from odkanon.errors import InputError, InvalidValueError, UnreadableFileError
from odkanon.read.points.cutting import COPY, ORDER, SAME_TIME, PauseCutter, TripRule
from odkanon.read.points.fixes import Fixes, open_fixes
from odkanon.read.tables.table import first_line, measure_progress, share_of
from odkanon.read.trip_checks import UNREADABLE

MEMORY = "1GB"
"""Memory for the sort, which spills to disk; the whole process stays below twice that."""

_BATCH = 200_000
_SUFFIXES = (".parquet", ".csv", ".gz")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class PointsAccount:
    """Counts of points and trips."""

    points: int
    """Points read, good and bad."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Rejected points, by reason."""
    persons: int = 0
    persons_without_trips: int = 0
    """Persons with a good point, and how many of them have no trip."""
    trips: int = 0
    """Resulting trips."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Runs of points that are not trips, by reason."""


def points_to_trips(
    source: Any, *, rule: TripRule | None = None, columns: Mapping[str, str] | None = None
) -> tuple[pa.Table, PointsAccount]:
    """Segment GNSS points into trips, in memory.

    Parameters
    ----------
    source : path or table
        A CSV or Parquet file with a person column, a folder with one CSV per person, or a table in memory.
    rule : TripRule, optional
        When points form a trip; by default, a pause of more than 180 s ends one.
    columns : mapping of str to str, optional
        ``{ours: theirs}`` for columns that are not recognised: ``person, time, local_time, lat, lon, valid``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> minutes = [f"2022-11-14 08:{minute:02d}:00" for minute in (0, 2, 4, 20, 22)]
    >>> points = pa.table({"person": ["a"] * 5, "time": minutes, "lat": [48.8] * 5, "lon": [2.3] * 5})
    >>> trips, account = points_to_trips(points)
    >>> trips.num_rows, account.persons
    (2, 1)
    """
    maker = TripMaker(open_fixes(source, columns), rule or TripRule())
    with tempfile.TemporaryDirectory(prefix="odkanon-") as scratch:
        batches = list(maker.batches(Path(scratch)))
    return pa.concat_tables(batches), maker.account()


def write_trips(
    fixes: Fixes,
    output: Path,
    *,
    rule: TripRule | None = None,
    persons: pa.Table | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> PointsAccount:
    """Write the trips of GNSS points to a file, atomically and in bounded memory.

    * ``output``: ``.parquet``, ``.csv`` or ``.csv.gz``.
    * ``persons``: attributes to add to trips, by a column ``person``.
    * ``progress``: called with a description of each stage.
    """
    check_output(output, force=force)
    progress = progress or (lambda text: None)
    maker = TripMaker(fixes, rule or TripRule(), progress)
    # The sort may need as much space as the points, which is likelier available where the trips will go.
    with partial_folder(output) as scratch:
        runs = scratch / "runs.parquet"
        _write_runs(maker.batches(scratch), runs)
        progress(f"writing {output}")
        partial = scratch / f"trips{''.join(output.suffixes[-2:])}"
        _convert(runs, partial, persons)
        partial.replace(output)
    return maker.account()


def check_output(output: Path, *, force: bool) -> None:
    """Raise if trips cannot be written to a file, before any work is done."""
    if output.suffix not in _SUFFIXES:
        raise InvalidValueError.suffix(output, ".parquet", ".csv", ".csv.gz")
    check_new(output, force=force)


class TripMaker:
    """Sorts points, segments them, and keeps the counts."""

    def __init__(self, fixes: Fixes, rule: TripRule, progress: Progress = lambda text: None) -> None:
        check_rule(rule)
        self._fixes, self._progress = fixes, progress
        self._cutter = PauseCutter(rule)
        self._reasons = np.zeros(len(fixes.reasons) + 1, dtype=np.int64)
        self._zoned = 0

    def batches(self, scratch: Path) -> Iterator[pa.Table]:
        """Yield trips by person and time; at least one table, which may be empty."""
        for batch in self._sorted(scratch):
            table = pa.Table.from_batches([batch])
            reason = table.column("reason").to_numpy()
            self._reasons += np.bincount(reason, minlength=len(self._reasons))
            good = table.filter(pa.array(reason == 0)) if reason.any() else table
            self._check_offsets(good)
            yield self._cutter.feed(good.select(["person", "instant", "clock", "lat", "lon"]))
            done = int(self._reasons.sum())
            self._progress(f"cutting points into trips: {done:,} points, {self._cutter.trips:,} trips")
        last = self._cutter.finish()
        if last is None:
            raise no_usable_point(self._fixes, self.account())
        yield last

    def account(self) -> PointsAccount:
        """Return the counts so far."""
        lines = self._fixes.unreadable_lines()
        return make_account(self._fixes, self._cutter.rule, self._reasons.tolist(), self._cutter.counts(), lines)

    def _sorted(self, scratch: Path) -> Iterator[pa.RecordBatch]:
        connection = self._fixes.connection
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute(f"SET temp_directory = {quote_text(str(scratch / 'sort'))}")
        connection.execute("SET preserve_insertion_order = false")
        measure_progress(connection)
        query = f"SELECT * FROM ({self._fixes.query}) ORDER BY {', '.join(ORDER)}"
        try:
            self._progress("reading and sorting points")
            with watched(share_of(connection)):
                reader = connection.sql(query).to_arrow_reader(_BATCH)
                first = next(reader, None)
            while first is not None:
                yield first
                first = next(reader, None)
        except (duckdb.Error, pa.ArrowException) as error:
            raise UnreadableFileError.because(self._fixes.name, first_line(error)) from None

    def _check_offsets(self, good: pa.Table) -> None:
        self._zoned += int(np.count_nonzero(good.column("zoned").to_numpy()))
        self._fixes.check_offsets(self._zoned, int(self._reasons[0]) - self._zoned)


def make_account(
    fixes: Fixes, rule: TripRule, reasons: Sequence[int], cut: Mapping[str, int], lines: int = 0
) -> PointsAccount:
    """Return the counts of points and trips.

    * ``reasons``: number of good points, and of those rejected for each reason of ``fixes``.
    * ``cut``: counts of the cutters.
    * ``lines``: unreadable lines.
    """
    more = {COPY: cut.get("copies", 0), SAME_TIME: cut.get("same_time", 0), UNREADABLE: lines}
    rejected = dict(zip(fixes.reasons, reasons[1:], strict=True)) | more
    persons = cut.get("persons", 0)
    return PointsAccount(
        points=sum(reasons) + lines,
        rejected={reason: count for reason, count in rejected.items() if count},
        persons=persons,
        persons_without_trips=persons - cut.get("persons_with_trips", 0),
        trips=cut.get("trips", 0),
        dropped={reason: cut[reason] for reason in rule.reasons() if reason in cut},
    )


def no_usable_point(fixes: Fixes, account: PointsAccount) -> InputError:
    """Return the error for points without a usable one."""
    return InputError(f"{fixes.name} has no usable point ({_listed(account.rejected)})")


def check_rule(rule: TripRule) -> None:
    """Raise if a rule is out of range."""
    if not rule.gap > 0:
        raise InvalidValueError(f"the gap that ends a trip must be more than 0 seconds, not {rule.gap:g}")
    if rule.min_points < 1:
        raise InvalidValueError(
            f"a trip needs at least 1 point, or 2 for a first and a last one; not {rule.min_points}"
        )


def _write_runs(batches: Iterator[pa.Table], path: Path) -> None:
    first = next(batches)
    with pyarrow.parquet.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for batch in batches:
            writer.write_table(batch)


def _convert(runs: Path, output: Path, persons: pa.Table | None) -> None:
    """Write trips in the requested format, with the attributes of their persons."""
    if output.suffix == ".parquet" and persons is None:
        runs.rename(output)
        return
    connection = connect()
    source = f"read_parquet({literal(runs)}, hive_partitioning=false)"
    query = f"SELECT * FROM {source}"
    if persons is not None:
        connection.register("persons", persons)
        query = f"SELECT * FROM {source} JOIN persons USING (person) ORDER BY person, start_time"
    kind = "parquet" if output.suffix == ".parquet" else "csv, HEADER"
    connection.execute(f"COPY ({query}) TO {quote_text(str(output))} (FORMAT {kind})")


def _listed(rejected: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} {reason}" for reason, count in rejected.items()) or "there are none"
