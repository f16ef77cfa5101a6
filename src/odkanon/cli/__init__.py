"""The command line: one module a command; heavy imports happen inside the commands, so that help stays instant."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable

import typer

from odkanon._version import __version__
from odkanon.cli.anonymize import anonymize
from odkanon.cli.audit import audit
from odkanon.cli.catalogue import catalogue
from odkanon.cli.clashes import check_clashes
from odkanon.cli.compare import compare
from odkanon.cli.demo import demo
from odkanon.cli.everywhere import everywhere
from odkanon.cli.evidence import check, evidence, policy
from odkanon.cli.explain import explain
from odkanon.cli.explore import explore
from odkanon.cli.export import export
from odkanon.cli.netmob25 import netmob25
from odkanon.cli.pandas import do_without_pandas
from odkanon.cli.picture import picture
from odkanon.cli.report import report
from odkanon.cli.rerun import rerun
from odkanon.cli.sample import sample
from odkanon.cli.series import series
from odkanon.cli.tradeoff import tradeoff
from odkanon.cli.trips import trips
from odkanon.cli.view import view
from odkanon.errors import OdkanonError, is_disk_full

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

EXIT_CODES = "Exit codes: 0 done; 1 refused for privacy reasons; 2 bad input or usage; 130 stopped."
COMMANDS: tuple[Callable[..., None], ...] = (
    anonymize,
    rerun,
    audit,
    evidence,
    check,
    policy,
    explain,
    report,
    explore,
    picture,
    view,
    series,
    export,
    catalogue,
    compare,
    tradeoff,
    trips,
    netmob25,
    sample,
    demo,
)
OWN_EXIT_CODES = {
    "audit": "Exit codes: 0 clean; 1 findings; 2 a file cannot be read; 130 stopped.",
    "rerun": "Exit codes: 0 done; 1 refused, or another result from the same input; 2 bad input or usage; 130 stopped.",
}

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    # A traceback with local variables would print coordinates and persons; older versions do so by default.
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    help="Turn trips into origin-destination matrices that can be published without exposing anyone.\n\n"
    "Begin with `odkanon demo`, then `odkanon anonymize TRIPS.csv -o RELEASE`.",
    epilog=EXIT_CODES,
)
for command in COMMANDS:
    epilog = OWN_EXIT_CODES.get(command.__name__, EXIT_CODES)
    app.command(epilog=epilog)(everywhere(check_clashes(command)))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"odkanon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    del version


class _Warning(logging.Formatter):
    """Warnings of the library, with the option that helps where it names one."""

    def format(self, record: logging.LogRecord) -> str:
        return f"warning: {_message(record)}"


class _Collected(logging.Handler):
    """Warnings for the document that ``--json`` prints."""

    def emit(self, record: logging.LogRecord) -> None:
        from odkanon.cli.say import console

        if console.document is not None:
            console.document.warnings.append(_message(record))


def _message(record: logging.LogRecord) -> str:
    return _with_option(record.getMessage(), getattr(record, "option", None))


def _with_option(message: str, option: str | None) -> str:
    return message if option is None else f"{message} (option --{option})"


def main() -> None:
    """Run the command line; every expected failure becomes one message and an exit code."""
    said = logging.StreamHandler(sys.stderr)
    said.setFormatter(_Warning())
    logging.basicConfig(level=logging.WARNING, handlers=[said, _Collected()])
    _write_whatever_the_console_can()
    do_without_pandas()
    if "--json" in sys.argv[1:]:  # what goes wrong before the options are read is told in the document, too
        from odkanon.cli.say import speak

        speak(next((word for word in sys.argv[1:] if not word.startswith("-")), ""), as_json=True, quiet=False)
    try:
        app()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        _finish(code, "this cannot be understood; standard error says why" if code == 2 else None)
        raise
    except OdkanonError as error:
        _fail(_with_option(str(error), error.option), error.exit_code)
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_OF:
            raise
        _fail(f"this needs {error.name}; install it with: pip install 'odkanon[{EXTRA_OF[error.name]}]'", 2)
    except MemoryError:
        _fail("out of memory; use a machine with more, or fewer trips at a time", 2)
    except KeyboardInterrupt:
        _fail("stopped; nothing was written", 130)
    except OSError as error:
        advice = "; free some, or write to another disk" if is_disk_full(error) else ""
        _fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + advice, 2)


def _write_whatever_the_console_can() -> None:
    """Escape what the console cannot encode: a name in a message must not undo what was written already."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    _finish(code, message)
    sys.exit(code)


def _finish(code: int, error: str | None = None) -> None:
    """Print the document of ``--json``, if the command has come as far as to ask for one."""
    if "odkanon.cli.say" in sys.modules:
        sys.modules["odkanon.cli.say"].console.finish(code, error)
