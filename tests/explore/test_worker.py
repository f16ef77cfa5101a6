"""A process beside: one task after another, and an end in the middle of any of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from odkanon.errors import InputError, OdkanonError
from odkanon.explore.worker import Job, StoppedError
from odkanon.model.budget import Budget


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    made.stop()


def test_one_process_does_one_task_after_another(job: Job) -> None:
    first = job.run(os.getpid)
    assert first != os.getpid()
    with pytest.raises(InputError):
        job.run(Budget, 2.0, "trips")
    assert job.run(os.getpid) == first
    assert job.run(max, [3, 1], default=0) == 3


@pytest.mark.parametrize("task", [time.sleep, len], ids=["at work", "while it is told what to do"])
def test_it_can_be_stopped_at_once(job: Job, task: object) -> None:
    # More than a pipe holds: the process has to be there to take it.
    question = 60 if task is time.sleep else bytes(50_000_000)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(job.run, task, question)  # type: ignore[arg-type]
        time.sleep(0.05)
        start = time.monotonic()
        job.stop()
        with pytest.raises(StoppedError):
            running.result(timeout=10)
        assert time.monotonic() - start < 5
    assert not job.usable
    with pytest.raises(StoppedError):
        job.run(os.getpid)


def test_a_process_that_ends_by_itself_is_said_and_not_used_again(job: Job) -> None:
    with pytest.raises(OdkanonError, match="ended unexpectedly"):
        job.run(os._exit, 1)
    assert not job.usable
