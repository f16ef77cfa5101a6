"""Commands and options of the previous version: hidden from help, accepted with a warning until the next version."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odkanon.errors import InvalidValueError

log = logging.getLogger(__name__)

OLD_COMMAND = "odkanon.old_command"
"""The key under which a context has the old command that was typed."""


@dataclass(frozen=True)
class OldCommand:
    """A command that has become part of another."""

    name: str
    """The other command."""
    words: tuple[str, ...] = ()
    """Options of the other command that give what the old one did."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options that have another name there."""


OLD_COMMANDS = {
    "catalogue": OldCommand("export", ("--to", "dcat")),
    "netmob25": OldCommand("trips", ("--layout", "netmob25")),
    "picture": OldCommand("report", options={"output": "picture"}),
    "policy": OldCommand("check", ("--template",)),
    "tradeoff": OldCommand("compare"),
    "view": OldCommand("export"),
}
OLD_OPTIONS = {
    "beneath": "basemap",
    "filter": "where",
    "give-up": "drop-order",
    "implications": "allow-inference",
    "level": "at-level",
    "levels": "max-levels",
    "steps": "substeps",
    "zones": "zones-of",
    "zones-geojson": "boundaries",
}
FLAGS = {"implications": ("safe", "allowed"), "steps": ("plain", "fine")}
"""Old options that are flags now: the values that leave the flag out and set it."""


def current_command(name: str) -> str:
    """Return the present name of a command."""
    return OLD_COMMANDS[name].name if name in OLD_COMMANDS else name


def translate_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with the present name of the command."""
    if not words or words[0] not in OLD_COMMANDS:
        return list(words)
    old = OLD_COMMANDS[words[0]]
    renamed = [_rename(word, old.options) for word in words[1:]]
    _warn(words[0], " ".join([old.name, *old.words, *(f"--{name}" for name in old.options.values())]))
    return [old.name, *old.words, *renamed]


def _rename(word: str, options: Mapping[str, str]) -> str:
    name, equals, value = word.removeprefix("--").partition("=")
    if word.startswith("--"):
        return f"--{options.get(name, name)}{equals}{value}"
    if word.startswith("-o") and "output" in options:
        return f"--{options['output']}" + (f"={word[2:]}" if word[2:] else "")
    return word


def translate_options(words: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the words of a command line with the present names of the options that the command knows."""
    translated: list[str] = []
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--":
            return [*translated, word, *pending]
        old, equals, value = word.removeprefix("--").partition("=")
        new = OLD_OPTIONS.get(old)
        if not word.startswith("--") or new is None or word in known or f"--{new}" not in known:
            translated.append(word)
        elif old in FLAGS:
            value = value if equals else pending.pop(0) if pending else ""
            translated += [f"--{new}"] * is_set(old, value)
            _warn(f"--{old}", f"--{new}")
        else:
            translated.append(f"--{new}{equals}{value}")
            _warn(f"--{old}", f"--{new}")
    return translated


def current_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe by their present names."""
    current = {}
    for name, value in options.items():
        old = name.replace("_", "-")
        current[OLD_OPTIONS.get(old, name).replace("-", "_")] = is_set(old, value) if old in FLAGS else value
    return current


def is_set(name: str, value: Any) -> bool:
    """Return whether a value sets a flag, which may have been an option with values."""
    if name not in FLAGS or isinstance(value, bool):
        return bool(value)
    off, on = FLAGS[name]
    if value not in (off, on):
        raise InvalidValueError.expected(name, f"{off} or {on}", value)
    return bool(value == on)


def _warn(old: str, new: str) -> None:
    log.warning("'%s' is now '%s'; the old name works in this version only", old, new)
