"""The commands, in the order in which help lists them, and how a command line is made of them.

Each has a module, imported when it is wanted: whoever runs one command need not wait for the options of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import typer

from odkanon._version import __version__
from odkanon.cli.common_options import everywhere
from odkanon.cli.option_rules import GivenOnce, check_clashes

COMMANDS = (
    "anonymize",
    "rerun",
    "audit",
    "evidence",
    "check",
    "policy",
    "explain",
    "report",
    "explore",
    "picture",
    "view",
    "series",
    "export",
    "catalogue",
    "compare",
    "tradeoff",
    "trips",
    "netmob25",
    "sample",
    "demo",
)
MODULES = {"check": "evidence", "policy": "evidence"}
"""Those that do not have a module of their own name."""

EXIT_CODES = "Exit codes: 0 done; 1 refused for privacy reasons; 2 bad input or usage; 130 stopped."
OWN_EXIT_CODES = {
    "evidence": "Exit codes: 0 nothing speaks against signing; 1 something does; 2 bad input or usage; 130 stopped.",
    "check": "Exit codes: 0 kept; 1 broken, with a line for each thing; 2 bad input or usage; 130 stopped.",
    "audit": "Exit codes: 0 clean; 1 findings; 2 a file cannot be read; 130 stopped.",
    "rerun": "Exit codes: 0 done; 1 refused, or another result from the same input; 2 bad input or usage; 130 stopped.",
}


def app_of(names: Iterable[str]) -> typer.Typer:
    """Return a command line with some of the commands."""
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
    for name in names:
        command: Callable[..., None] = getattr(import_module(f"odkanon.cli.{MODULES.get(name, name)}"), name)
        told = OWN_EXIT_CODES.get(name, EXIT_CODES)
        app.command(cls=GivenOnce, epilog=told)(everywhere(check_clashes(command)))
    app.callback()(_options)
    return app


def every_command() -> dict[str, Any]:
    """Return all commands as click has them, by name."""
    group: Any = typer.main.get_command(app_of(COMMANDS))
    commands: dict[str, Any] = group.commands
    return commands


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"odkanon {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    del version
