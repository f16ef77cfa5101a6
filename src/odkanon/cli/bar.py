"""The bar that a terminal shows during long work; a module of its own, since only terminals need to import it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from odkanon.core.progress import how_far

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


def bar_on(console: Console) -> Progress:
    """Return a bar that asks by itself how far the work is, and leaves nothing behind."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        _IfKnown(BarColumn(bar_width=20)),
        _IfKnown(TextColumn("{task.percentage:>3.0f} %")),
        _IfKnown(TimeRemainingColumn(compact=True)),
    )
    return _Following(*columns, console=console, transient=True)
