"""The commands by topic, and the command line that is built from them.

Each command has a module that is imported on demand: a run does not wait for the options of all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from odkanon._version import __version__
from odkanon.cli.common_options import FULL_HELP
from odkanon.cli.old_names import OLD_COMMAND, OLD_COMMANDS, translate_command, translate_options
from odkanon.errors import InputError

TOPICS = {
    "Make a release": ("anonymize", "rerun", "correct", "compare", "explore"),
    "Check it before you publish": ("audit", "evidence", "check", "explain"),
    "Publish and use it": ("report", "export", "ask", "series"),
    "Get data": ("sample", "demo", "trips"),
}
COMMANDS = tuple(name for names in TOPICS.values() for name in names)
MODULES = {"ask": "export", "check": "evidence", "correct": "rerun", "trips": "points_to_trips"}
"""The modules of commands that do not have one of their own name."""

EXIT_CODES = "Exit codes: 0 done; 1 refused for privacy reasons; 2 bad input or usage; 130 stopped."
OTHER_EXIT_CODES = {
    "evidence": "Exit codes: 0 no reason not to sign; 1 findings or a broken policy; 2 bad input or usage; "
    "130 stopped.",
    "check": "Exit codes: 0 the policy is met; 1 it is broken, with a line for each violation; 2 bad input or usage; "
    "130 stopped.",
    "audit": "Exit codes: 0 clean; 1 findings; 2 unreadable file or bad usage; 130 stopped.",
    "rerun": "Exit codes: 0 done; 1 refused, or another result from the same input; 2 bad input or usage; 130 stopped.",
}
FEW = 15
"""The number of options up to which help lists all of them."""


class Command(TyperCommand):
    """A command with old spellings, a check for repeated options, and a short and a full help page."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line; raise if an option that takes one value is given twice."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        words = translate_options(args, [spelling for each in self.params for spelling in each.opts])
        unused = super().parse_args(ctx, list(words))
        *_, order = self.make_parser(ctx).parse_args(args=words)
        for each in {each.name: each for each in order if not getattr(each, "is_flag", True)}.values():
            if not each.multiple and sum(one is each for one in order) > 1:
                raise InputError(f"{each.opts[0]} is given more than once; keep one of them")
        return unused

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``, without a type."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar, option.help = "", "Show this help."
        return option

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print help: of a command with many options only the usual ones, unless all are requested."""
        options = [each for each in self.params if each.param_type_name == "option"]
        page = copy(self)
        if len(options) <= FEW:
            page.params = [each for each in self.params if each.name != "help_all"]
        elif not ctx.meta.get(FULL_HELP):
            page.params = [each for each in self.params if not getattr(each, "rich_help_panel", None)]
            page.epilog = f"More options, by topic: `{ctx.command_path} --help-all`\n\n{self.epilog}"
        super(Command, page).format_help(ctx, formatter)


class CommandGroup(TyperGroup):
    """The program, which also knows the old names of its commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the program, which are all flags, without a type."""
        params: list[Any] = super().get_params(ctx)
        for each in params:
            each.metavar = ""
        return params

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that a command line names, and the other words."""
        if args and args[0] in OLD_COMMANDS:
            ctx.meta[OLD_COMMAND] = args[0]
        return super().resolve_command(ctx, translate_command(args))


def app_of(names: Iterable[str]) -> typer.Typer:
    """Return a command line with some of the commands."""
    app = typer.Typer(
        cls=CommandGroup,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        # A traceback with local variables would print coordinates and persons; older versions do so by default.
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
        help="Turn trips into origin-destination matrices that can be published without exposing anyone.\n\n"
        "Start with `odkanon demo`, then `odkanon anonymize TRIPS.csv -o RELEASE`.",
        epilog=EXIT_CODES,
    )
    topics = {name: topic for topic, names in TOPICS.items() for name in names}
    for name in names:
        function: Callable[..., None] = getattr(import_module(f"odkanon.cli.{MODULES.get(name, name)}"), name)
        epilog = OTHER_EXIT_CODES.get(name, EXIT_CODES)
        app.command(cls=Command, epilog=epilog, rich_help_panel=topics[name])(function)
    app.callback()(_options)
    return app


def every_command() -> dict[str, Any]:
    """Return all commands as click has them, by name."""
    group: Any = typer.main.get_command(app_of(COMMANDS))
    commands: dict[str, Any] = group.commands
    return commands


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"odkanon {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", metavar="", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    del version
