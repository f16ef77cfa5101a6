"""How far long work is, for whoever wants to know; costs nothing where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Share = Callable[[], float | None]
"""Tells how much of the work is done, from 0 to 1; None where that is not known."""


class _Work:
    """What is going on; one thing at a time, so that one for the whole program is enough."""

    share: Share | None = None


_WORK = _Work()


@contextmanager
def watched(share: Share) -> Iterator[None]:
    """Let others ask how far the work inside is; work within work counts as part of it.

    Examples
    --------
    >>> with watched(lambda: 0.25):
    ...     how_far()
    0.25
    >>> how_far() is None
    True
    """
    if _WORK.share is not None:
        yield
        return
    _WORK.share = share
    try:
        yield
    finally:
        _WORK.share = None


def how_far() -> float | None:
    """Return the share of the work that is done; None where nothing is going on, or nobody knows."""
    share = _WORK.share
    found = None if share is None else share()
    return None if found is None else min(max(found, 0.0), 1.0)


class Counter:
    """Counts steps of a known number, as `watched` work.

    Examples
    --------
    >>> with counted(4) as counter:
    ...     counter.at(1)
    ...     how_far()
    0.25
    """

    def __init__(self, steps: int) -> None:
        self._steps, self._done = max(steps, 1), 0.0

    def at(self, done: float) -> None:
        """Say how many steps are done."""
        self._done = done

    def step(self) -> None:
        """Say that one more step is done."""
        self._done += 1

    def share(self) -> float:
        """Return the share that is done."""
        return self._done / self._steps


@contextmanager
def counted(steps: int) -> Iterator[Counter]:
    """Yield a counter of steps that others can watch."""
    counter = Counter(steps)
    with watched(counter.share):
        yield counter
