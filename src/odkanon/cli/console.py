"""Output and progress: formatted on a terminal, plain text in a pipe, or JSON for another program."""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from odkanon._version import __version__
from odkanon.core.progress import counted, current_progress

NARROW = 80
"""The width of paragraphs: they are pasted into messages and minutes."""
WIDE = 10_000
"""The width of a pipe: lines are neither wrapped nor truncated."""


@dataclass
class Document:
    """The document that ``--json`` prints at the end."""

    command: str
    result: dict[str, Any] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def text(self, code: int, error: str | None, error_code: str | None) -> str:
        """Return the document as JSON."""
        outcome = {"exit_code": code, "error": error, "error_code": error_code}
        document = {"command": self.command, "version": __version__} | outcome | vars(self)
        return json.dumps(document, indent=2, ensure_ascii=False, default=str)


class CommandConsole(Console):
    """Standard output, or collected for `Document`. Markup is off: brackets in a text are printed as they are."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False)
        self.document: Document | None = None
        self.lines = 0
        self.doubts = 0
        self._muted = 0

    def print(self, *objects: Any, **how: Any) -> None:
        """Print texts and tables; in a pipe without frames and without wrapping lines."""
        if self._muted:
            return
        if self.document is not None:
            self._collect(objects)
            return
        if self.is_terminal:
            super().print(*objects, **how)
            return
        for each in objects:
            if isinstance(each, Table):
                super().print(each.title, soft_wrap=True)
                each.title = each.box = None
                each.show_lines = each.pad_edge = each.collapse_padding = False
                super().print(each, width=WIDE, crop=False)
            else:
                super().print(each, soft_wrap=True, **how)

    def paragraph(self, text: str, style: str | None = None) -> None:
        """Print a text in lines of up to 80 characters; a document has it in one piece."""
        lines = [text] if self.document is not None else wrap_paragraph(text, self.width)
        self.lines += len(lines)
        self.print(*lines, **({"sep": "\n"} if self.is_terminal else {}), style=style)

    def caution(self, text: str) -> None:
        """Print what to know before publishing; a document has it among its warnings."""
        if self.document is None or self._muted:
            self.paragraph(f"Caution: {text}", "bold yellow")
        else:
            self.document.warnings.append(text)

    def rule(self, title: Any = "", **how: Any) -> None:
        """Print a heading with a line on both sides; a document has none."""
        if self.document is None and not self._muted:
            super().rule(title, **how)

    def add_result(self, **result: Any) -> None:
        """Add to the result of ``--json``, which only programs read."""
        if self.document is not None and not self._muted:
            self.document.result |= result

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Print nothing inside this context."""
        self._muted += 1
        try:
            yield
        finally:
            self._muted -= 1

    def finish(self, code: int = 0, error: str | None = None, error_code: str | None = None) -> None:
        """Print the document of ``--json``, if requested; nothing is printed after it."""
        if self.document is not None:
            text, self.document, self.quiet = self.document.text(code, error, error_code), None, True
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def _collect(self, objects: Sequence[Any]) -> None:
        assert self.document is not None
        for each in objects:
            if isinstance(each, Table):
                columns = [[_plain(cell) for cell in column.cells] for column in each.columns]
                self.document.tables.append(
                    {
                        "title": _plain(each.title),
                        "columns": [_plain(column.header) for column in each.columns],
                        "rows": [list(row) for row in zip(*columns, strict=True)],
                    }
                )
            else:
                self.document.messages.append(_plain(each))


def wrap_paragraph(text: str, width: int = NARROW) -> list[str]:
    """Return the lines of a paragraph, the second and later ones indented; names of files are not broken."""
    return textwrap.wrap(
        text, min(width, NARROW), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _plain(value: Any) -> str:
    return value.plain if isinstance(value, Text) else str("" if value is None else value)


console = CommandConsole()
stderr = Console(stderr=True, highlight=False, markup=False, emoji=False)


def set_up(command: str, *, as_json: bool, quiet: bool) -> None:
    """Set the form of the output of a command."""
    console.lines = 0
    if as_json and console.document is None:
        console.document = Document(command)
    if quiet:
        console.quiet = stderr.quiet = True
        logging.getLogger().setLevel(logging.ERROR)


def make_table(title: str, headings: Sequence[str], *, left: Sequence[str] = ()) -> Table:
    """Return an empty table with names on the left and numbers on the right; long cells wrap, none is truncated."""
    table = Table(title=title, title_justify="left", title_style="bold", collapse_padding=True)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", overflow="fold")
    return table


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
