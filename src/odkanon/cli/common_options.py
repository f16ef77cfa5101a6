"""The decorator that makes a function a command, the options that every command has, and ``odkanon.toml``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, cleandoc, isclass, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_origin

import typer

from odkanon.cli.old_names import FLAGS, OLD_COMMAND, OLD_COMMANDS, OLD_OPTIONS, is_set
from odkanon.core.parsing import parse_toml
from odkanon.errors import FileMissingError, InputError, UnreadableFileError, nearest

CONFIG = "odkanon.toml"
SOURCE = "odkanon.config"
"""The key under which a context has the path of the file that was read."""
_NOT_IN_A_FILE = ("config", "help", "help_all")

Options = Mapping[str, tuple[Any, Any]]
"""The annotation that typer reads and the default of each option, by the name of its parameter."""


@dataclass(frozen=True)
class OptionGroup:
    """The values of options that several commands share.

    A command that has a parameter of such a type takes all of its options, and receives their values as one object.
    """

    values: Mapping[str, Any]
    """By the name of the option's parameter."""

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


_ENTRY = re.compile(r"(?:(?P<name>\w+): )?(?P<spelling>\S.*?)  +(?P<help>.*)")


def describe(text: str) -> dict[str, Any]:
    """Return typer's description of each parameter in a text.

    * ``text``: one entry for each argument or option, with two spaces before its help: ``INPUT...  Help`` or ``--output
      -o DIR  Help``. Before an entry stands the name of its parameter if it is not that of the option, as in ``zones:
      --zones-of RELEASE  Help``. Continuation lines are indented. A line that ends with a colon begins a topic; options
      under a topic are listed by ``--help-all`` only, where a command has many.
    """
    described: dict[str, Any] = {}
    topic = None
    for lines in re.split(r"\n(?! )", cleandoc(text)):
        entry = _ENTRY.fullmatch(re.sub(r"\n +", " ", lines))
        if entry is None:
            topic = lines.removesuffix(":")
            continue
        words = entry["spelling"].split()
        names = [word for word in words if word.startswith("-")]
        metavar = " ".join(words[len(names) :]) or None
        if names:
            info = typer.Option(*names, metavar=metavar, help=entry["help"], rich_help_panel=topic)
        else:
            info = typer.Argument(metavar=metavar, help=entry["help"], show_default=False)
        described[entry["name"] or names[0].lstrip("-").replace("-", "_")] = info
    return described


def describe_options(text: str, options: Options) -> Options:
    """Return the options of a group, described by a text; see `describe`."""
    described = describe(text)
    return {name: (_annotate(each, described[name]), default) for name, (each, default) in options.items()}


def _annotate(annotation: Any, info: Any) -> Any:
    """Return an annotation that typer reads; it may have details, such as a callback, already."""
    bare, *details = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if bare is bool:
        info.metavar = ""  # a flag has no value
    for each in details:
        for name in ("default", "param_decls", "metavar", "help", "rich_help_panel"):  # typer's default is a name here
            setattr(each, name, getattr(info, name))
    return Annotated[bare, *(details or [info])]


COMMON = describe_options(
    f"""
    Every command:
    --config FILE  Read your usual options, by command, from this file. [default: {CONFIG} here, if it exists]
    as_json: --json  Print one JSON document instead of text.
    --quiet -q  Print only errors.
    --help-all  Show all options, by topic.
    """,
    {
        "config": (Annotated[Path | None, typer.Option(is_eager=True, callback=_configure)], None),
        "as_json": (bool, False),
        "quiet": (bool, False),
        "help_all": (Annotated[bool, typer.Option(is_eager=True, callback=_print_full_help)], False),
    },
)


def command(text: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a function a command, with parameters described by a text; see `describe`.

    The signature is extended by the options of its groups and by the common ones. When the command runs, the console
    is set up, options without effect are refused, and the values of each group are handed over as one object.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        described = describe(text)
        own = {
            name: each.replace(annotation=_annotate(each.annotation, described.pop(name)))
            if name in described
            else each
            for name, each in signature(function, eval_str=True).parameters.items()
        }
        assert not described, f"{function.__name__} has no parameters {', '.join(described)}"
        return _compose(function, own)

    return decorate


def _compose(function: Callable[..., None], own: Mapping[str, Parameter]) -> Callable[..., None]:
    groups = {name: each.annotation for name, each in own.items() if _is_group(each.annotation)}
    before = [each for group in groups.values() if group.LISTED_FIRST for each in _parameters(group.OPTIONS)]
    after = [each for group in groups.values() if not group.LISTED_FIRST for each in _parameters(group.OPTIONS)]
    listed = [each for name, each in own.items() if name not in (*groups, "context")]
    context_parameter = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context_parameter, *before, *listed, *after, *_parameters(COMMON)]
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
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
        given = [each for each in context.command.params if each.name in (context.default_map or ())]
        names = ", ".join(sorted(max(each.opts, key=len).lstrip("-") for each in given)) or "nothing for this command"
        stderr.print(f"Read {context.meta[SOURCE]}: {names}", soft_wrap=True)


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
