"""Long work on a terminal: what is going on, how much is done, and how long the rest takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from odkanon.cli.console import progress
from odkanon.core.progress import counted


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Show what is going on, on terminals only; call the yielded function at each new stage."""
    if not progress.is_terminal or progress.quiet:
        yield lambda text: None
        return
    from odkanon.cli.bar import bar_on

    with bar_on(progress) as bar:
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
