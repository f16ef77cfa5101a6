"""Progress of long tasks, which costs nothing unless it is requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Share = Callable[[], float | None]
"""Returns the finished share of a task, from 0 to 1, or None if it is unknown."""


class _CurrentTask:
    """The current task; the program has one at a time."""

    share: Share | None = None


_CURRENT = _CurrentTask()


@contextmanager
def watched(share: Share) -> Iterator[None]:
    """Publish the progress of the task inside; a task within a task is part of it.

    Examples
    --------
    >>> with watched(lambda: 0.25):
    ...     current_progress()
    0.25
    >>> current_progress() is None
    True
    """
    if _CURRENT.share is not None:
        yield
        return
    _CURRENT.share = share
    try:
        yield
    finally:
        _CURRENT.share = None


def current_progress() -> float | None:
    """Return the finished share of the current task; None if there is no task, or its share is unknown."""
    share = _CURRENT.share
    found = None if share is None else share()
    return None if found is None else min(max(found, 0.0), 1.0)


class StepCounter:
    """Counts the steps of a task.

    Examples
    --------
    >>> with counted(4) as counter:
    ...     counter.at(1)
    ...     current_progress()
    0.25
    """

    def __init__(self, steps: int) -> None:
        self._steps, self._done = max(steps, 1), 0.0

    def at(self, done: float) -> None:
        """Set the number of finished steps."""
        self._done = done

    def step(self) -> None:
        """Count one more finished step."""
        self._done += 1

    def share(self) -> float:
        """Return the finished share."""
        return self._done / self._steps


@contextmanager
def counted(steps: int) -> Iterator[StepCounter]:
    """Yield a counter of steps whose progress is published."""
    counter = StepCounter(steps)
    with watched(counter.share):
        yield counter
