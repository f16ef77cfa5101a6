"""Long work on a terminal: what is going on, how much is done, and how long the rest takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from odkanon.cli.say import progress
from odkanon.core.progress import counted, how_far

STEPS = 1000
"""Into which a share is cut for the bar."""


class _Following(Progress):
    """A bar that asks by itself how far the work is, each time it is drawn."""

    def get_renderables(self) -> Iterable[object]:  # type: ignore[override]
        share = how_far()
        for task in self.tasks:
            if share is not None:
                self.update(task.id, total=STEPS, completed=round(share * STEPS))
            elif task.total is not None:
                # Not reset(), which would draw again from within drawing, and keeps a total that is not known any more.
                task.total, task.completed = None, 0
                task._reset()
        yield from super().get_renderables()


class _IfKnown(ProgressColumn):
    """A column that is there while the share of the work is known."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: Task) -> object:  # type: ignore[override]
        return Text("") if task.total is None else self._column(task)


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Show what is going on, on terminals only; call the yielded function at each new stage."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        _IfKnown(BarColumn(bar_width=20)),
        _IfKnown(TextColumn("{task.percentage:>3.0f} %")),
        _IfKnown(TimeRemainingColumn(compact=True)),
    )
    if not progress.is_terminal or progress.quiet:
        yield lambda text: None
        return
    with _Following(*columns, console=progress, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def stage(text: str) -> None:
            bar.update(task, description=f"{text} ...")

        yield stage


@contextmanager
def runs(number: int) -> Iterator[Callable[[int, str], None]]:
    """Show how many of some runs are done; call the yielded function with that number and what comes next."""
    with stages() as stage, counted(number) as counter:

        def at(done: int, text: str) -> None:
            counter.at(done)
            stage(f"{done + 1:,} of {number:,}: {text}")

        yield at
