"""What takes longer than a slider allows, in a process of its own.

A thread could not be stopped, and would hold up the sliders: it shares the interpreter with them.
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

from odkanon.core.subprocesses import start_python
from odkanon.errors import OdkanonError, unexpected

BACK = 10
"""How much less urgent than a map it is, as the system counts it."""
_START = "from odkanon.explore.worker import main; main()"

P = ParamSpec("P")
T = TypeVar("T")


class StoppedError(OdkanonError):
    """The work was stopped, because somebody asked for that or for something else."""


class Job:
    """A process for one task after another; it starts with the first, and can be stopped in the middle of any."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock, self._running = Lock(), Lock()

    @property
    def usable(self) -> bool:
        """Whether it can take another task."""
        return not self._ended

    def run(self, task: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Do something there, and return what it gives; the task is a function of a module.

        Raises
        ------
        StoppedError
            If `stop` was called, before or meanwhile.
        """
        with self._running:
            result = self._ask(self._started(), (task, args, options))
        if isinstance(result, OdkanonError):
            raise result
        return result  # type: ignore[no-any-return]  # what our own process says the task gave

    def stop(self) -> None:
        """End the process at once."""
        with self._lock:
            self._ended = True
        if self._process is None:
            return
        self._process.kill()
        # Whoever waits for an answer gets none now, and leaves the pipes to us; part of a question may still be in one.
        with self._running, suppress(OSError), self._process:
            pass

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ended:
                raise StoppedError("stopped")
            if self._process is None:
                self._process = start_python(_START)
                _step_back(self._process.pid)
            return self._process

    def _ask(self, process: subprocess.Popen[bytes], question: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(question, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)  # written by our own process
        except (OSError, EOFError, pickle.UnpicklingError):
            if self._ended:
                raise StoppedError("stopped") from None
            self._ended = True
            raise OdkanonError("the work ended unexpectedly; the terminal says why") from None


def _step_back(process: int) -> None:
    """Let everything else go first, where the system knows how."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process, BACK)


def main() -> None:
    """Do what standard input asks for, one task after another, and write to standard output what it gives."""
    # Control-C in a terminal reaches all processes of it; the one that started this ends it.
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
