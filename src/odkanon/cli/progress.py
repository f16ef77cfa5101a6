"""The progress that a terminal shows during long work: the current stage, the share done and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from odkanon.cli.console import stderr
from odkanon.core.progress import counted, current_progress

STEPS = 1000
"""The resolution of the bar."""


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Show the current stage, on terminals only; call the yielded function when a stage begins."""
    if not stderr.is_terminal or stderr.quiet:
        yield lambda text: None
        return
    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)

        def stage(text: str) -> None:
            bar.update(task, description=f"{text} ...")

        yield stage


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
