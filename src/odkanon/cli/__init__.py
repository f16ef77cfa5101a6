"""The command line: one module a command; heavy imports happen inside the commands, so that help stays instant."""

from __future__ import annotations

import io
import logging
import sys

import typer

from odkanon._version import __version__
from odkanon.cli.anonymize import anonymize
from odkanon.cli.audit import audit
from odkanon.cli.catalogue import catalogue
from odkanon.cli.clashes import check_clashes
from odkanon.cli.compare import compare
from odkanon.cli.demo import demo
from odkanon.cli.explain import explain
from odkanon.cli.explore import explore
from odkanon.cli.export import export
from odkanon.cli.netmob25 import netmob25
from odkanon.cli.pandas import do_without_pandas
from odkanon.cli.picture import picture
from odkanon.cli.report import report
from odkanon.cli.sample import sample
from odkanon.cli.tradeoff import tradeoff
from odkanon.cli.trips import trips
from odkanon.cli.view import view
from odkanon.errors import OdkanonError, is_disk_full

EXTRA_OF = {
    "h5py": "omx",
    "matplotlib": "plot",
    "pandas": "spark",
    "pyproj": "geo",
    "pyspark": "spark",
    "shapely": "geo",
}
"""Packages that only some commands need, and how to ask for each."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    # A traceback with local variables would print coordinates and persons; older versions do so by default.
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    help="Turn trips into origin-destination matrices that can be published without exposing anyone.\n\n"
    "Begin with `odkanon demo`, then `odkanon anonymize TRIPS.csv -o RELEASE`.",
    epilog="Exit codes: 0 done; 1 refused for privacy reasons; 2 bad input or usage.",
)
for command in (
    anonymize,
    audit,
    explain,
    report,
    explore,
    picture,
    view,
    export,
    catalogue,
    compare,
    tradeoff,
    trips,
    netmob25,
    sample,
    demo,
):
    app.command()(check_clashes(command))


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
        return f"warning: {_with_option(record.getMessage(), getattr(record, 'option', None))}"


def _with_option(message: str, option: str | None) -> str:
    return message if option is None else f"{message} (option --{option})"


def main() -> None:
    """Run the command line; every expected failure becomes one message and an exit code."""
    said = logging.StreamHandler(sys.stderr)
    said.setFormatter(_Warning())
    logging.basicConfig(level=logging.WARNING, handlers=[said])
    _write_whatever_the_console_can()
    do_without_pandas()
    try:
        app()
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
    sys.exit(code)
