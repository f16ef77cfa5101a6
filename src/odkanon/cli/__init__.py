"""The command line: one module for each command; heavy imports happen inside the commands, to keep help fast."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from odkanon.cli.commands import COMMANDS, app_of
from odkanon.cli.old_names import current_command
from odkanon.errors import MissingExtraError, OdkanonError, is_disk_full, unexpected

EXTRA_OF = {
    "h5py": "omx",
    "matplotlib": "plot",
    "opendp": "noise",
    "pandas": "spark",
    "pyproj": "geo",
    "pyogrio": "geo",
    "pyspark": "spark",
}
"""The extra that installs each optional package."""

_STOPPED, _STOPPED_CODE = "stopped; nothing was written", 130
_interrupted = threading.Event()
_MANY_OBJECTS = 200_000
"""Allocations between garbage collections: imports alone exceed the default, and create no garbage."""


def __getattr__(name: str) -> Any:
    """Return ``app``, the complete command line, which is built on first access."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = app_of(COMMANDS)
    return globals()[name]


class _Warning(logging.Formatter):
    """Formats the library's warnings, with the option that helps."""

    def format(self, record: logging.LogRecord) -> str:
        return f"warning: {_message(record)}"


class _Collected(logging.Handler):
    """Collects warnings for the document of ``--json``, and counts those of doubtful coordinates for the verdict."""

    def emit(self, record: logging.LogRecord) -> None:
        from odkanon.cli.console import console

        console.doubts += record.name == "odkanon.read.coordinates"
        if console.document is not None:
            console.document.warnings.append(_message(record))


def _message(record: logging.LogRecord) -> str:
    return _with_option(record.getMessage(), getattr(record, "option", None))


def _with_option(message: str, option: str | None) -> str:
    return message if option is None else f"{message} (option --{option})"


def program() -> None:
    """Run `main` as the program ``odkanon``, with a fast start and a fast exit."""
    gc.set_threshold(_MANY_OBJECTS)
    code = 0
    try:
        main()
    except SystemExit as error:
        if not isinstance(error.code, int | None):
            raise
        code = error.code or 0
    _exit(code)


def _exit(code: int) -> None:
    """End the process: run the exit handlers, then leave the memory to the operating system.

    Tearing down the interpreter takes a tenth of the time of a small release. With threads still running, or under a
    tracer or profiler, the process exits as usual.
    """
    if threading.active_count() == 1 and sys.gettrace() is None and sys.getprofile() is None:
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):  # a closed pipe: the usual exit reports it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)


def main() -> None:
    """Run the command line; each expected failure becomes one message and an exit code."""
    _make_output_robust()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Warning())
    logging.basicConfig(level=logging.WARNING, handlers=[handler, _Collected()])
    block_pandas()
    if "--json" in sys.argv[1:]:  # so that errors in the options appear in the document, too
        from odkanon.cli.console import set_up

        set_up(next((word for word in sys.argv[1:] if not word.startswith("-")), ""), as_json=True, quiet=False)
    _notice_interruptions()
    try:
        app_of(_needed_commands(sys.argv[1:]))()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if code == _STOPPED_CODE:
            _fail(_STOPPED, code, "stopped")
        usage = ("the command line is not valid; see standard error", "usage") if code == 2 else ()
        _finish(code, *usage)
        raise
    except KeyboardInterrupt:
        _fail(_STOPPED, _STOPPED_CODE, "stopped")
    except Exception as error:
        stopped = _interrupted.is_set()
        _fail(*((_STOPPED, _STOPPED_CODE, "stopped") if stopped else (*_explain(error), _code(error))))


def _notice_interruptions() -> None:
    """Remember a Ctrl-C: libraries such as DuckDB turn it into errors of their own, which may look like bad input."""

    def note(number: int, frame: object) -> None:
        _interrupted.set()
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with contextlib.suppress(ValueError):  # not the main thread, which gets no signals
            signal.signal(signal.SIGINT, note)


def _explain(error: Exception) -> tuple[str, int]:
    """Return the message and the exit code of a failure."""
    if isinstance(error, OdkanonError):
        return _with_option(str(error), error.option), error.exit_code
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRA_OF:
        return str(MissingExtraError.needed_for("this command", error.name, EXTRA_OF[error.name])), 2
    if isinstance(error, MemoryError):
        return "out of memory; use a larger machine, or fewer trips at a time", 2
    return _reason(error) if isinstance(error, OSError) else unexpected(error), 2


def _code(error: Exception) -> str:
    """Return the code of an error for programs: its class in the package, such as ``column-not-found``."""
    if isinstance(error, OdkanonError):
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__.removesuffix("Error")).lower()
    if isinstance(error, ModuleNotFoundError):
        return "missing-extra"
    return (
        "out-of-memory" if isinstance(error, MemoryError) else "system" if isinstance(error, OSError) else "unexpected"
    )


def _needed_commands(words: Sequence[str]) -> Sequence[str]:
    """Return the command that will run, or all if it is not known yet."""
    name = current_command(words[0]) if words else ""
    return [name] if name in COMMANDS and "_ODKANON_COMPLETE" not in os.environ else COMMANDS


def _make_output_robust() -> None:
    """Escape characters that the console cannot encode, and discard output if there is no console.

    A name in a message must not make a command fail that has written its files.
    """
    sys.stdout, sys.stderr = (stream or _null_stream() for stream in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _null_stream() -> io.TextIOWrapper:
    return Path(os.devnull).open("w", encoding="utf-8", newline="\n")


def _reason(error: OSError) -> str:
    advice = "; free some, or write to another disk" if is_disk_full(error) else ""
    return f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + advice


def _fail(message: str, code: int, error_code: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    _finish(code, message, error_code)
    sys.exit(code)


def _finish(code: int, error: str | None = None, error_code: str | None = None) -> None:
    """Print the document of ``--json``, if there is one.

    A failure to write it changes the exit code; about a closed pipe nothing is printed.
    """
    try:
        if "odkanon.cli.console" in sys.modules:
            sys.modules["odkanon.cli.console"].console.finish(code, error, error_code)
    except OSError as failure:
        sys.stdout = _null_stream()
        if isinstance(failure, BrokenPipeError):
            sys.exit(1)
        print(f"error: {_reason(failure)}", file=sys.stderr)
        sys.exit(2)


class _PandasBlocker(MetaPathFinder):
    """Blocks pandas, which pyarrow imports if it can: the import takes longer than many a release."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is blocked in the command line", name=fullname)


_BLOCKER = _PandasBlocker()


def block_pandas() -> None:
    """Make imports of pandas fail."""
    if _BLOCKER not in sys.meta_path:
        sys.meta_path.insert(0, _BLOCKER)


def allow_pandas() -> None:
    """Make pandas importable again; a command on Spark calls this before it imports anything else."""
    if _BLOCKER in sys.meta_path:
        sys.meta_path.remove(_BLOCKER)
