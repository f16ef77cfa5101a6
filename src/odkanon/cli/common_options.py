"""What every command has: options for how it speaks, and ``odkanon.toml`` for options that are the same each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from odkanon.cli.engine_options import FOR_EVERY_COMMAND
from odkanon.cli.input_options import with_parameters
from odkanon.core.parsing import parse_toml
from odkanon.errors import InputError, nearest

CONFIG = "odkanon.toml"
READ = "odkanon.config"
_NOT_IN_A_FILE = ("config", "help")


def _configure(context: typer.Context, path: Path | None) -> Path | None:
    """Take options from the file; the command line wins over it, as click has it."""
    if context.resilient_parsing or context.default_map is not None:  # shell completion, or a repeated command
        return path
    if path is None and not Path(CONFIG).is_file():
        return None
    source = Path(CONFIG) if path is None else path
    context.default_map = options_of(read_config(source), context, source)
    context.meta[READ] = str(source)
    return path


OPTIONS: dict[str, tuple[Any, Any]] = {
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
                help=f"Options of yours, by command. [default: {CONFIG} in this folder, if there is one]",
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
        Annotated[
            bool, typer.Option("--quiet", "-q", rich_help_panel=FOR_EVERY_COMMAND, help="Print nothing but errors.")
        ],
        False,
    ),
}
"""By name of the parameter: how typer is to take it, and the default."""


def everywhere(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all have."""

    @wraps(command)
    def wrapped(context: typer.Context, **given: Any) -> None:
        from odkanon.cli.console import progress, speak

        said = {name: given.pop(name) for name in OPTIONS}
        speak(context.info_name or "", as_json=said["as_json"], quiet=said["quiet"])
        if READ in context.meta:
            names = ", ".join(sorted(context.default_map or ())) or "nothing for this command"
            progress.print(f"Read {context.meta[READ]}: {names.replace('_', '-')}", soft_wrap=True)
        command(context=context, **given)

    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in OPTIONS.items()
    ]
    return with_parameters(wrapped, command, add=options)


def read_config(path: Path) -> dict[str, Any]:
    """Read a file of options."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); write options as in: k = 20") from None


def options_of(content: Mapping[str, Any], context: typer.Context, path: Path) -> dict[str, Any]:
    """Return the options of one command, by name of the parameter.

    What stands above all tables holds for every command that has such an option; the table ``[anonymize]`` for that
    command alone, and before the others. A name that no command has is an error, wherever it stands.
    """
    from odkanon.cli.commands import every_command

    commands = {name: _parameters(each) for name, each in every_command().items()}
    common = {name: value for name, value in content.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    known = {name for each in commands.values() for name in each}
    for name in common:
        _check_name(name, known, f"{path} has", "option")
    for name, table in tables.items():
        _check_name(name, commands, f"{path} has the table", "command")
        for option in table:
            _check_name(option, commands[name], f"{path} has, for {name},", "option")
    own = commands[context.info_name or ""]
    mine = {_spelt(name): value for name, value in common.items() if _spelt(name) in own}
    mine |= {_spelt(name): value for name, value in tables.get(context.info_name or "", {}).items()}
    return {own[name].name: _value(own[name], value, path) for name, value in mine.items()}


def _parameters(command: Any) -> dict[str, Any]:
    """Return the options of a command as they are written in a file."""
    found = {
        option.lstrip("-"): each
        for each in command.params
        if each.param_type_name == "option"
        for option in each.opts
        if option.startswith("--")
    }
    return {name: each for name, each in found.items() if name not in _NOT_IN_A_FILE}


def _check_name(name: str, known: Any, where: str, what: str) -> None:
    if _spelt(name) not in known:
        raise InputError(f"{where} {name!r}, which is no {what}{nearest(_spelt(name), known)}")


def _spelt(name: str) -> str:
    return name.replace("_", "-")


def _value(option: Any, value: Any, path: Path) -> Any:
    """Return the value of an option; one value of an option that can be repeated is a list of one."""
    name = option.opts[0].lstrip("-")
    several = bool(option.multiple)
    if isinstance(value, list) and not several:
        raise InputError(f"{path} has a list for {name}, which takes one value")
    if option.is_flag and not isinstance(value, bool):
        raise InputError(f"{path} has {value!r} for {name}, which is true or false")
    values = value if isinstance(value, list) else [value]
    if not option.is_flag and any(isinstance(each, bool | dict | list) for each in values):
        raise InputError(f"{path} has {value!r} for {name}; write a text or a number")
    texts = [str(each) for each in values]
    return value if option.is_flag else texts if several else texts[0]
