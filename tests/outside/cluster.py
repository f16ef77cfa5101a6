"""A real Spark cluster, of a master and two workers: `make cluster-test`, which takes minutes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odkanon.sample.crowd import write_crowd
from outside.standalone import Cluster, standalone

ROOT = Path(__file__).parents[2]
METHODS = ("odkanon", "cascade")
FILES = ("classes.csv", "classes.parquet", "zones.geojson", "release.json")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_crowd(50_000, tmp_path_factory.mktemp("crowd") / "trips")


def start(trips: Path, target: Path, method: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "odkanon", "anonymize", str(trips), "-o", str(target), "--method", method, *more]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process: subprocess.Popen[str]) -> str:
    told, _ = process.communicate(timeout=600)
    return told


@pytest.fixture(scope="module")
def expected(trips: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What memory makes of the trips."""
    made = {method: tmp_path_factory.mktemp("memory") / method for method in METHODS}
    for method, folder in made.items():
        process = start(trips, folder, method)
        told = finish(process)
        assert process.returncode == 0, told
    return made


def check_same(one: Path, other: Path) -> None:
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize("method", METHODS)
def test_a_cluster_writes_the_bytes_of_memory(
    cluster: Cluster, trips: Path, expected: dict[str, Path], method: str, tmp_path: Path
) -> None:
    process = start(trips, tmp_path / "release", method, "--spark-master", cluster.master)
    told = finish(process)
    assert process.returncode == 0, told
    check_same(tmp_path / "release", expected[method])


def test_a_worker_that_dies_costs_time_or_the_run_but_never_the_promise(
    trips: Path, expected: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "cluster").mkdir()
    with standalone(tmp_path / "cluster") as own:
        process = start(trips, tmp_path / "release", "odkanon", "--spark-master", own.master)
        executor = tmp_path / "cluster" / "work"
        while not any(executor.glob("app-*/*")) and process.poll() is None:
            time.sleep(0.2)
        time.sleep(8)
        assert process.poll() is None, "the run ended before a worker could die"
        own.workers[0].kill()
        told = finish(process)
    if process.returncode == 0:
        check_same(tmp_path / "release", expected["odkanon"])
    else:
        assert "Traceback" not in told
        assert "Spark could not finish" in told
        assert not (tmp_path / "release").exists()
