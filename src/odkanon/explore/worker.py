"""Slow methods in a process of their own: a thread could not be stopped, and would hold up the sliders."""

from __future__ import annotations

import pickle
import subprocess
import sys
from threading import Lock

from odkanon.core.children import start_python
from odkanon.errors import OdkanonError
from odkanon.explore.request import Request
from odkanon.methods import anonymize
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.rule import Rule

_START = "from odkanon.explore.worker import main; main()"


class StoppedError(OdkanonError):
    """The work was stopped, because somebody asked for that or for something else."""


class Job:
    """One run of a slow method."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = Lock()

    def run(self, od: ODMatrix, rule: Rule, request: Request) -> Release:
        """Make the release, and return it once it is there.

        Raises
        ------
        StoppedError
            If `stop` was called meanwhile.
        """
        with self._lock:
            if self._stopped:
                raise StoppedError("stopped")
            self._process = start_python(_START)
        with self._process:
            answer, _ = self._process.communicate(pickle.dumps((od, rule, request)))
        if self._stopped:
            raise StoppedError("stopped")
        if self._process.returncode:
            raise OdkanonError(f"{request.method} ended unexpectedly; the terminal says why")
        result = pickle.loads(answer)  # written by our own process
        if isinstance(result, OdkanonError):
            raise result
        assert isinstance(result, Release)
        return result

    def stop(self) -> None:
        """End the work at once."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()


def main() -> None:
    """Read one task from standard input and write its release to standard output."""
    od, rule, request = pickle.load(sys.stdin.buffer)
    result: Release | OdkanonError
    try:
        result = anonymize(od, rule, method=request.method, **request.options)
    except OdkanonError as error:
        result = error
    pickle.dump(result, sys.stdout.buffer)
