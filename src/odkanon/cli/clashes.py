"""Options that do not go together, for every command: what is given and would be ignored is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import typer

from odkanon.cli.protecting import THRESHOLDS
from odkanon.cli.reading import OPTIONS, with_parameters
from odkanon.errors import InputError

_CHOOSING = ("method", "suppress", "budget", "budget_of", "levels", "target", "objective", "compactness")
_SEARCHING = ("iterations", "time_limit", "level", "symmetric")


@dataclass(frozen=True)
class Clash:
    """Options, by name of their parameters, that say nothing beside (or without) others.

    Attributes
    ----------
    options : tuple of str
        The others.
    given : bool
        Whether they say nothing where one of those is given, or where none is.
    idle : tuple of str
        The options.
    why : str
        For the message.
    """

    options: tuple[str, ...]
    given: bool
    idle: tuple[str, ...]
    why: str


_ABOUT_TRIPS = tuple(name for name in OPTIONS if name not in ("hierarchy", "outlines"))

CLASHES = (
    Clash(("zones",), True, (*_CHOOSING, *_SEARCHING, "segment_budget"), "the zones are given, none are chosen"),
    Clash(("hierarchy",), True, ("resolution", "within", "crs"), "the zones are yours, not H3 cells"),
    Clash(("hierarchy",), True, ("segment", "all_segments"), "segments need trips with coordinates"),
    Clash(("hierarchy",), False, ("outlines",), "H3 cells have their own outlines"),
    Clash(("segment", "all_segments"), False, ("segment_budget",), "nothing is split"),
    Clash(("segment", "all_segments", "by"), False, ("age_bands",), "nothing is split"),
    Clash(("by",), True, ("segment", "zones"), "it makes one table, on zones of its own"),
    Clash(("by",), True, ("steps",), "attributes are given up between whole H3 levels"),
    Clash(("by",), True, ("hierarchy",), "attributes need trips with coordinates"),
    Clash(("by",), True, ("level", "symmetric"), "its rows are as fine as k share, at several levels"),
    Clash(("segment",), True, ("level", "symmetric"), "zones become as coarse as all tables need"),
    Clash(("level",), True, ("symmetric",), "one level is one zoning for both ends"),
    Clash(("level",), True, ("steps",), "a level is a whole one"),
    Clash(("by",), False, ("give_up",), "there are only places to give up detail of"),
    Clash(("all_segments",), True, ("by", "give_up"), "a cube has no segments"),
    Clash(("segment",), True, ("engine", "memory_limit", "spark_master"), "segments are split in memory"),
    Clash(tuple(THRESHOLDS), True, ("protect", "k"), "the thresholds are given one by one"),
    Clash(("sample",), True, ("source",), "the built-in survey is the input"),
    Clash(("trips",), False, _ABOUT_TRIPS, "there are no trips to read"),
)


def check_clashes(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command refuse options that say nothing beside others that are given."""

    @wraps(command)
    def wrapped(context: typer.Context, **given: Any) -> None:
        spelling = {each.name: each.opts[0] for each in context.command.params}
        asked = {name for name in spelling if was_given(context, name or "")}
        for clash in CLASHES:
            here = [name for name in clash.options if name in spelling]
            beside = [name for name in here if name in asked]
            idle = [name for name in clash.idle if name in asked]
            if here and idle and bool(beside) == clash.given:
                word = f"with {spelling[beside[0]]}" if clash.given else f"without {spelling[here[0]]}"
                raise InputError(f"{spelling[idle[0]]} does not apply {word}: {clash.why}; leave it out")
        command(**given | ({"context": context} if takes_context else {}))

    takes_context = "context" in signature(command).parameters
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    return with_parameters(wrapped, command, add=[] if takes_context else [context])


def was_given(context: typer.Context, name: str) -> bool:
    """Tell whether somebody has given a value to a parameter."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT", "PROMPT")
