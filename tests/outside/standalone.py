"""A Spark cluster on this machine: a master and some workers, reachable from nowhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from odkanon.engine.spark.backend import find_java

START = Path(pyspark.__file__).parent / "bin" / "spark-class"
SECONDS = 90
"""How long a daemon may take until it says where it is."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """A running cluster.

    Attributes
    ----------
    master : str
        Its address.
    workers : list of process
        Whoever kills one loses its executors.
    """

    master: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def standalone(folder: Path, workers: int = 2, *, memory: str = "1g") -> Iterator[Cluster]:
    """Start a master and workers of one core each, and end them all."""
    find_java()
    with ExitStack() as running:
        log = folder / "master.log"
        running.enter_context(_daemon(log, "master.Master", "--port", "0", "--webui-port", "0"))
        master = _wait_for(log, re.compile(r"Starting Spark master at (spark://\S+)"))
        processes = []
        for number in range(workers):
            log = folder / f"worker{number}.log"
            arguments = ("--cores", "1", "--memory", memory, "--webui-port", "0", "--work-dir", str(folder / "work"))
            processes.append(running.enter_context(_daemon(log, "worker.Worker", *arguments, master)))
            _wait_for(log, re.compile(r"Successfully registered with master (\S+)"))
        yield Cluster(master, processes)


@contextmanager
def _daemon(log: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [str(START), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
    with log.open("wb") as told:
        process = subprocess.Popen(command, stdout=told, stderr=told, env=environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _wait_for(log: Path, line: re.Pattern[str]) -> str:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = line.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise TimeoutError(f"{log.name} does not say {line.pattern!r}: {log.read_text(encoding='utf-8')[-500:]}")
