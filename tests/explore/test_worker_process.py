"""A worker process runs one task after another, and can be stopped during any."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from odkanon.errors import InputError, OdkanonError
from odkanon.explore.worker_process import StoppedError, WorkerProcess
from odkanon.model.release_spec import Budget


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.stop()


def test_one_process_does_one_task_after_another(worker: WorkerProcess) -> None:
    first = worker.run(os.getpid)
    assert first != os.getpid()
    with pytest.raises(InputError):
        worker.run(Budget, 2.0, "trips")
    # What Control-C in a terminal does to all its processes.
    os.kill(first, signal.SIGINT)
    assert worker.run(os.getpid) == first
    assert worker.run(max, [3, 1], default=0) == 3


# What a pipe cannot hold waits for the process; a little more than it holds is half on its way when that ends.
@pytest.mark.parametrize("size", [0, 68_000, 50_000_000])
def test_it_can_be_stopped_at_once(worker: WorkerProcess, size: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(worker.run, print, bytes(size)) if size else pool.submit(worker.run, time.sleep, 60)
        time.sleep(0.05)
        start = time.monotonic()
        worker.stop()
        with pytest.raises(StoppedError):
            running.result(timeout=10)
        assert time.monotonic() - start < 5
    assert not worker.usable
    with pytest.raises(StoppedError):
        worker.run(os.getpid)


def test_a_process_that_ends_by_itself_is_reported_and_not_used_again(worker: WorkerProcess) -> None:
    with pytest.raises(OdkanonError, match="ended unexpectedly"):
        worker.run(os._exit, 1)
    assert not worker.usable
