"""Options from ``odkanon.toml``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import typer

from odkanon.cli.old_names import FLAGS, OLD_COMMAND, OLD_COMMANDS, OLD_OPTIONS, is_set
from odkanon.core.parsing import parse_toml
from odkanon.errors import FileMissingError, InputError, UnreadableFileError, nearest

CONFIG = "odkanon.toml"
SOURCE = "odkanon.config"
"""The key under which a context has the path of the file that was read."""
_NOT_IN_A_FILE = ("config", "help", "help_all")


def read_options(path: Path, context: typer.Context) -> dict[str, Any]:
    """Return the options that a file has for the command that runs, by the name of their parameter.

    An option above all tables applies to every command that has it; one in the table ``[anonymize]`` to that command
    only, and takes precedence. A name that no command has is an error anywhere in the file.
    """
    from odkanon.cli.commands import every_command

    content = _read(path)
    commands = {name: _options_by_spelling(each) for name, each in every_command().items()}
    for name, old in OLD_COMMANDS.items():
        options = commands[old.name]
        commands[name] = options | {old_name: options[new_name] for old_name, new_name in old.options.items()}
    common = {name: value for name, value in content.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    _check_names(common, {name for each in commands.values() for name in each}, f"{path} has", "option")
    _check_names(tables, commands, f"{path} has the table", "command")
    for name, table in tables.items():
        _check_names(table, commands[name], f"{path} has, for {name},", "option")
    found: dict[str, Any] = {}
    for command, table in ((context.info_name, common), *((name, tables.get(name, {})) for name in _names(context))):
        own = commands[command or ""]
        given = {_spelling(name): value for name, value in table.items() if _spelling(name) in own}
        found |= {own[name].name: _value(own[name], name, value, path) for name, value in given.items()}
    return found


def _names(context: typer.Context) -> list[str]:
    """Return the name of the command that runs, and the old name by which it was called."""
    names = (context.info_name, context.meta.get(OLD_COMMAND))
    return [name for name in names if name is not None]


def _read(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileMissingError.at(path) from None
    except (OSError, ValueError) as error:
        raise UnreadableFileError.because(path, error, advice="write options as in: k = 20") from None


def _options_by_spelling(command: Any) -> dict[str, Any]:
    """Return the options of a command by their name in a file."""
    options = [each for each in command.params if each.param_type_name == "option" and each.name not in _NOT_IN_A_FILE]
    found = {text.lstrip("-"): each for each in options for text in each.opts if text.startswith("--")}
    return {old: found[new] for old, new in OLD_OPTIONS.items() if new in found} | found


def _check_names(names: Iterable[str], known: Collection[str], where: str, what: str) -> None:
    for name in names:
        if _spelling(name) not in known:
            raise InputError(f"{where} {name!r}, which is no {what}{nearest(_spelling(name), known)}")


def _spelling(name: str) -> str:
    return name.replace("_", "-")


def _value(option: Any, name: str, value: Any, path: Path) -> Any:
    """Return the value of an option as click wants it: of a repeatable option, always a list."""
    if isinstance(value, list) and not option.multiple:
        raise InputError(f"{path} has a list for {name}, which takes one value")
    if option.is_flag:
        value = is_set(name, value) if isinstance(value, str) and name in FLAGS else value
        if not isinstance(value, bool):
            raise InputError(f"{path} has {value!r} for {name}, which is true or false")
        return value
    values = value if isinstance(value, list) else [value]
    if any(isinstance(each, bool | dict | list) for each in values):
        raise InputError(f"{path} has {value!r} for {name}; write a text or a number")
    texts = [str(each) for each in values]
    return texts if option.multiple else texts[0]
