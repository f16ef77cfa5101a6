"""Progress of long work: a bar on a terminal, lines of JSON for a program that asked for ``--json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from odkanon.cli.console import console, stderr
from odkanon.core.progress import counted, current_progress

STEPS = 1000
"""The resolution of the bar."""
INTERVAL = 1.0
"""Seconds between two lines of JSON; work that takes less has none."""


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Show the current stage on a terminal or as JSON; call the yielded function when a stage begins."""
    if console.document is not None and not stderr.quiet:
        with _json_lines() as stage:
            yield stage
        return
    if not stderr.is_terminal or stderr.quiet:
        yield lambda text: None
        return
    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)

        def stage(text: str) -> None:
            bar.update(task, description=f"{text} ...")

        yield stage


@contextmanager
def _json_lines() -> Iterator[Callable[[str], None]]:
    """Write ``{"stage": ..., "share": ...}`` to standard error each second if something has changed."""
    done, stages = Event(), ["starting"]

    def write() -> None:
        last = None
        while not done.wait(INTERVAL):
            share = current_progress()
            line = json.dumps({"stage": stages[-1], "share": None if share is None else round(share, 2)})
            if line != last:
                print(line, file=sys.stderr, flush=True)
            last = line

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield stages.append
    finally:
        done.set()
        writer.join()


@contextmanager
def runs(number: int) -> Iterator[Callable[[int, str], None]]:
    """Show how many runs are done; call the yielded function with that number and the name of the next run."""
    with stages() as stage, counted(number) as counter:

        def start_run(done: int, text: str) -> None:
            counter.at(done)
            stage(f"{done + 1:,} of {number:,}: {text}")

        yield start_run


def progress_bar() -> Any:
    """Return a bar that polls the share done each time it is drawn, and is erased at the end."""
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class PollingBar(Progress):
        """A bar that polls the share done each time it is drawn."""

        def get_renderables(self) -> Iterable[object]:  # type: ignore[override]
            share = current_progress()
            for task in self.tasks:
                if share is not None:
                    self.update(task.id, total=STEPS, completed=round(share * STEPS))
                elif task.total is not None:
                    # reset() would draw from within drawing, and keep a total that is no longer known.
                    task.total, task.completed = None, 0
                    task._reset()
            yield from super().get_renderables()

    class WhileKnown(ProgressColumn):
        """A column that is shown while the share done is known."""

        def __init__(self, column: ProgressColumn) -> None:
            super().__init__()
            self._column = column

        def render(self, task: Task) -> object:  # type: ignore[override]
            return Text("") if task.total is None else self._column(task)

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        WhileKnown(BarColumn(bar_width=20)),
        WhileKnown(TextColumn("{task.percentage:>3.0f} %")),
        WhileKnown(TimeRemainingColumn(compact=True)),
    )
    return PollingBar(*columns, console=stderr, transient=True)
