"""The command line: one module a command; heavy imports happen inside the commands, so that help stays instant."""

from __future__ import annotations

import logging
import sys
from importlib.abc import MetaPathFinder

import typer

from odkanon._version import __version__
from odkanon.cli.anonymize import anonymize
from odkanon.cli.audit import audit
from odkanon.cli.compare import compare
from odkanon.cli.demo import demo
from odkanon.cli.explore import explore
from odkanon.cli.export import export
from odkanon.cli.netmob25 import netmob25
from odkanon.cli.picture import picture
from odkanon.cli.report import report
from odkanon.cli.sample import sample
from odkanon.cli.tradeoff import tradeoff
from odkanon.cli.trips import trips
from odkanon.errors import OdkanonError, is_disk_full

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
    report,
    explore,
    picture,
    export,
    compare,
    tradeoff,
    trips,
    netmob25,
    sample,
    demo,
):
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"odkanon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    del version


class _WithoutPandas(MetaPathFinder):
    """pyarrow imports pandas wherever it finds it, which takes longer than many a release; only Spark needs it."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=fullname)


def main() -> None:
    """Run the command line; every expected failure becomes one message and an exit code."""
    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING, stream=sys.stderr)
    if not any("spark" in argument or "://" in argument for argument in sys.argv):
        sys.meta_path.insert(0, _WithoutPandas())
    try:
        app()
    except OdkanonError as error:
        _fail(str(error), error.exit_code)
    except MemoryError:
        _fail("out of memory; use a machine with more, or fewer trips at a time", 2)
    except KeyboardInterrupt:
        _fail("stopped; nothing was written", 130)
    except OSError as error:
        advice = "; free some, or write to another disk" if is_disk_full(error) else ""
        _fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + advice, 2)


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)
