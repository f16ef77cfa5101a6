"""The decorator that makes a function a command, and the options that every command has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, isclass, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from odkanon.cli.config_file import CONFIG, SOURCE, read_options
from odkanon.cli.engine_options import FOR_EVERY_COMMAND

Options = Mapping[str, tuple[Any, Any]]
"""The annotation that typer reads and the default of each option, by the name of its parameter."""


@dataclass(frozen=True)
class OptionGroup:
    """The values of options that several commands share.

    A command that has a parameter of such a type takes all of its options, and receives their values as one object.

    Attributes
    ----------
    values : mapping
        By the name of the option's parameter.
    """

    values: Mapping[str, Any]

    OPTIONS: ClassVar[Options]
    LISTED_FIRST: ClassVar[bool] = False
    """Whether help lists these options before those of the command."""


FULL_HELP = "odkanon.full_help"
"""The key under which a context notes that all options are to be listed."""


def _print_full_help(context: typer.Context, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        context.meta[FULL_HELP] = True
        typer.echo(context.get_help(), color=context.color)
        raise typer.Exit


def _configure(context: typer.Context, path: Path | None) -> Path | None:
    """Read options from the configuration file; they serve as defaults, so the command line takes precedence."""
    if context.resilient_parsing or context.default_map is not None:  # shell completion, or a repeated command
        return path
    if path is None and not Path(CONFIG).is_file():
        return None
    source = Path(CONFIG) if path is None else path
    context.default_map = read_options(source, context)
    context.meta[SOURCE] = str(source)
    return path


COMMON: Options = {
    "config": (
        Annotated[
            Path | None,
            typer.Option(
                "--config",
                metavar="FILE",
                rich_help_panel=FOR_EVERY_COMMAND,
                is_eager=True,
                callback=_configure,
                show_default=False,
                help=f"Read your usual options, by command, from this file. [default: {CONFIG} here, if it exists]",
            ),
        ],
        None,
    ),
    "as_json": (
        Annotated[
            bool,
            typer.Option("--json", rich_help_panel=FOR_EVERY_COMMAND, help="Print one JSON document instead of text."),
        ],
        False,
    ),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", rich_help_panel=FOR_EVERY_COMMAND, help="Print only errors.")],
        False,
    ),
    "help_all": (
        Annotated[
            bool,
            typer.Option(
                "--help-all",
                rich_help_panel=FOR_EVERY_COMMAND,
                is_eager=True,
                callback=_print_full_help,
                help="Show all options, by topic.",
            ),
        ],
        False,
    ),
}


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command.

    Its signature is extended by the options of its groups and by the common ones. When it runs, the console is set up,
    conflicting options are refused, and the values of each group are handed over as one object.
    """
    own = dict(signature(function, eval_str=True).parameters)
    groups = {name: each.annotation for name, each in own.items() if _is_group(each.annotation)}
    before = [each for group in groups.values() if group.LISTED_FIRST for each in _parameters(group.OPTIONS)]
    after = [each for group in groups.values() if not group.LISTED_FIRST for each in _parameters(group.OPTIONS)]
    listed = [each for name, each in own.items() if name not in (*groups, "context")]
    context_parameter = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context_parameter, *before, *listed, *after, *_parameters(COMMON)]
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
    for each in parameters:
        _hide_type_of_flag(each.annotation)
    defaults = {each.name: each.default for each in parameters}

    @wraps(function)
    def run(context: typer.Context, **values: Any) -> None:
        from odkanon.cli.option_rules import check_clashes

        _set_up_console(context, **{name: values.pop(name) for name in COMMON})
        check_clashes(context, values, defaults)
        for name, group in groups.items():
            values[name] = group({option: values.pop(option) for option in group.OPTIONS})
        if "context" in own:
            values["context"] = context
        function(**values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _hide_type_of_flag(annotation: Any) -> None:
    option = next((each for each in getattr(annotation, "__metadata__", ()) if hasattr(each, "metavar")), None)
    if option is not None and annotation.__origin__ is bool and option.metavar is None:
        option.metavar = ""


def _is_group(annotation: Any) -> bool:
    return isclass(annotation) and issubclass(annotation, OptionGroup)


def _parameters(options: Options) -> list[Parameter]:
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]


def _set_up_console(context: typer.Context, *, as_json: bool, quiet: bool, **_handled: Any) -> None:
    from odkanon.cli.console import set_up, stderr

    set_up(context.info_name or "", as_json=as_json, quiet=quiet)
    if SOURCE in context.meta:
        names = ", ".join(sorted(context.default_map or ())) or "nothing for this command"
        stderr.print(f"Read {context.meta[SOURCE]}: {names.replace('_', '-')}", soft_wrap=True)
