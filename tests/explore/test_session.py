"""The worker processes of a session end with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odkanon.explore.data import ExplorerData
from odkanon.explore.session import NO_PAGE, Session
from odkanon.explore.worker_process import StoppedError
from worlds.matrices import golden_od


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    od = golden_od("tiny")
    made = Session(ExplorerData("tiny", lambda *_: od, (od.origins.resolution,)), tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("page", ["page", NO_PAGE])
def test_worker_processes_end_with_the_session(session: Session, page: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(session._run_in_worker, page, 0, time.sleep, 20) for _ in range(2)]
        while len(session._busy) < 2 or any(job._process is None for _, job in session._busy):
            time.sleep(0.02)
        start = time.monotonic()
        session.close()
        for each in running:
            with pytest.raises(StoppedError):
                each.result(timeout=10)
        assert time.monotonic() - start < 5
    assert session._busy == []
