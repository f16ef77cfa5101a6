"""The command line: one module a command; heavy imports happen inside the commands, so that help stays instant."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import logging
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odkanon.cli.commands import COMMANDS, app_of
from odkanon.cli.pandas import do_without_pandas
from odkanon.errors import OdkanonError, is_disk_full, unexpected

EXTRA_OF = {
    "h5py": "omx",
    "matplotlib": "plot",
    "opendp": "evidence",
    "pandas": "spark",
    "pyproj": "geo",
    "pyogrio": "geo",
    "pyspark": "spark",
    "scipy": "evidence",
    "shapely": "geo",
}
"""Packages that only some commands need, and how to ask for each."""

_MANY_OBJECTS = 200_000
"""Made before Python looks for garbage: imports alone make more than it waits for by default, and leave none."""


def __getattr__(name: str) -> Any:
    """Return ``app``, the whole command line; it is put together when first asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = app_of(COMMANDS)
    return globals()[name]


class _Warning(logging.Formatter):
    """Warnings of the library, with the option that helps where it names one."""

    def format(self, record: logging.LogRecord) -> str:
        return f"warning: {_message(record)}"


class _Collected(logging.Handler):
    """Warnings for the document that ``--json`` prints."""

    def emit(self, record: logging.LogRecord) -> None:
        from odkanon.cli.console import console

        if console.document is not None:
            console.document.warnings.append(_message(record))


def _message(record: logging.LogRecord) -> str:
    return _with_option(record.getMessage(), getattr(record, "option", None))


def _with_option(message: str, option: str | None) -> str:
    return message if option is None else f"{message} (option --{option})"


def program() -> None:
    """Be the program ``odkanon``: `main` in a process of its own, which begins and ends without delay."""
    gc.set_threshold(_MANY_OBJECTS)
    code = 0
    try:
        main()
    except SystemExit as error:
        if not isinstance(error.code, int | None):
            raise
        code = error.code or 0
    _leave(code)


def _leave(code: int) -> None:
    """End the process: all that was asked to happen at its end does, and the system takes back the rest at once.

    To take down the interpreter object by object takes a tenth of the time of a small release. Where threads are still
    running, or somebody measures what the program does, it ends as others do.
    """
    if threading.active_count() == 1 and sys.gettrace() is None and sys.getprofile() is None:
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):  # a pipe that nobody reads any more is told as ever
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)


def main() -> None:
    """Run the command line; every expected failure becomes one message and an exit code."""
    _write_whatever_the_console_can()
    said = logging.StreamHandler(sys.stderr)
    said.setFormatter(_Warning())
    logging.basicConfig(level=logging.WARNING, handlers=[said, _Collected()])
    do_without_pandas()
    if "--json" in sys.argv[1:]:  # what goes wrong before the options are read is told in the document, too
        from odkanon.cli.console import speak

        speak(next((word for word in sys.argv[1:] if not word.startswith("-")), ""), as_json=True, quiet=False)
    try:
        app_of(_asked_for(sys.argv[1:]))()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        _finish(code, "this cannot be understood; standard error says why" if code == 2 else None)
        raise
    except OdkanonError as error:
        _fail(_with_option(str(error), error.option), error.exit_code)
    except ModuleNotFoundError as error:
        extra = EXTRA_OF.get(error.name or "")
        needed = f"this needs {error.name}; install it with: pip install 'odkanon[{extra}]'"
        _fail(needed if extra else unexpected(error), 2)
    except MemoryError:
        _fail("out of memory; use a machine with more, or fewer trips at a time", 2)
    except KeyboardInterrupt:
        _fail("stopped; nothing was written", 130)
    except OSError as error:
        _fail(_reason(error), 2)
    except Exception as error:
        _fail(unexpected(error), 2)


def _asked_for(words: Sequence[str]) -> Sequence[str]:
    """Return the one command that is to run, or all where that is not known yet."""
    completing = "_ODKANON_COMPLETE" in os.environ
    return words[:1] if words and words[0] in COMMANDS and not completing else COMMANDS


def _write_whatever_the_console_can() -> None:
    """Escape what the console cannot encode: a name in a message must not undo what was written already.

    Where there is no console at all, what is said goes nowhere.
    """
    sys.stdout, sys.stderr = (stream or _nowhere() for stream in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> io.TextIOWrapper:
    return Path(os.devnull).open("w", encoding="utf-8", newline="\n")


def _reason(error: OSError) -> str:
    advice = "; free some, or write to another disk" if is_disk_full(error) else ""
    return f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + advice


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    _finish(code, message)
    sys.exit(code)


def _finish(code: int, error: str | None = None) -> None:
    """Print the document of ``--json``, if the command has come as far as to ask for one.

    Where that fails, the exit code says so; a pipe that nobody reads any more is no reason to complain.
    """
    try:
        if "odkanon.cli.console" in sys.modules:
            sys.modules["odkanon.cli.console"].console.finish(code, error)
    except OSError as failure:
        sys.stdout = _nowhere()
        if isinstance(failure, BrokenPipeError):
            sys.exit(1)
        print(f"error: {_reason(failure)}", file=sys.stderr)
        sys.exit(2)
