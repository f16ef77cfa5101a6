"""A worker process for tasks that are too slow for a slider.

A thread could not be stopped, and would block the sliders, which share its interpreter.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from odkanon.core.system import start_python
from odkanon.errors import OdkanonError, unexpected

NICENESS = 10  # the priority of the process: lower than that of the server
_START = "from odkanon.explore.worker_process import main; main()"

P = ParamSpec("P")
T = TypeVar("T")


class StoppedError(OdkanonError):
    """A task was stopped, on request or because a newer request replaced it."""


class WorkerProcess:
    """A process that runs one task after another; it starts with the first, and can be stopped during any."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock, self._running = Lock(), Lock()

    @property
    def usable(self) -> bool:
        """Whether it can take another task."""
        return not self._ended

    def run(self, task: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a task, which is a function of a module, in the process, and return its result.

        Raises `StoppedError` if `stop` was called before or during the task.
        """
        with self._running:
            result = self._ask(self._started(), (task, args, options))
        if isinstance(result, OdkanonError):
            raise result
        return result  # type: ignore[no-any-return]  # the result of the task, from our own process

    def stop(self) -> None:
        """Kill the process."""
        with self._lock:
            self._ended = True
        if self._process is None:
            return
        self._process.kill()
        # A waiting caller gets no result, and releases the pipes; part of a task may still be in one of them.
        with self._running, suppress(OSError), self._process:
            pass

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ended:
                raise StoppedError("stopped")
            if self._process is None:
                self._process = start_python(_START)
                if sys.platform != "win32":
                    with suppress(OSError):
                        os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)
            return self._process

    def _ask(self, process: subprocess.Popen[bytes], task: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(task, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)  # written by our own process
        except (OSError, EOFError, pickle.UnpicklingError):
            if self._ended:
                raise StoppedError("stopped") from None
            self._ended = True
            raise OdkanonError("the task ended unexpectedly; the terminal shows the reason") from None


def main() -> None:
    """Run the tasks from standard input one by one, and write their results to standard output."""
    # Control-C reaches every process of a terminal; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task, args, options = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            result = task(*args, **options)
        except OdkanonError as error:
            result = error
        except Exception as error:
            result = OdkanonError(unexpected(error))
        pickle.dump(result, sys.stdout.buffer)
        sys.stdout.buffer.flush()
