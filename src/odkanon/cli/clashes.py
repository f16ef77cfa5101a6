"""Options that do not go together, for every command: what is given and would be ignored is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter
from typing import Any

import typer

from odkanon.cli.reading import with_parameters
from odkanon.errors import InputError

_CHOOSING = ("method", "suppress", "budget", "budget_of", "levels", "target", "objective", "compactness")
_SEARCHING = ("iterations", "time_limit")


@dataclass(frozen=True)
class Clash:
    """Options, by name of their parameters, that say nothing beside (or without) another one.

    Attributes
    ----------
    option : str
        The other one.
    given : bool
        Whether they say nothing where it is given, or where it is not.
    others : tuple of str
        The options.
    why : str
        For the message.
    """

    option: str
    given: bool
    others: tuple[str, ...]
    why: str


CLASHES = (
    Clash("zones", True, (*_CHOOSING, *_SEARCHING, "segment_budget"), "the zones are given, none are chosen"),
    Clash("hierarchy", True, ("resolution", "within", "crs"), "the zones are yours, not H3 cells"),
    Clash("hierarchy", True, ("segment", "all_segments"), "segments need trips with coordinates"),
    Clash("hierarchy", False, ("outlines",), "H3 cells have their own outlines"),
    Clash("segment", False, ("segment_budget",), "nothing is split"),
    Clash("segment", True, ("engine", "memory_limit", "spark_master"), "segments are split in memory"),
    Clash("min_trips", True, ("protect", "k"), "the thresholds are given one by one"),
    Clash("min_weight", True, ("protect", "k"), "the thresholds are given one by one"),
    Clash("min_persons", True, ("protect", "k"), "the thresholds are given one by one"),
    Clash("sample", True, ("source",), "the built-in survey is the input"),
    Clash("trips", False, ("where", "within", "resolution", "crs", "read_as", "column"), "there are no trips to read"),
)


def check_clashes(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command refuse options that say nothing beside others that are given."""

    @wraps(command)
    def wrapped(context: typer.Context, **given: Any) -> None:
        spelling = {each.name: each.opts[0] for each in context.command.params}
        asked = {name for name in spelling if _was_given(context, name or "")}
        for clash in CLASHES:
            idle = [name for name in clash.others if name in asked]
            if clash.option in spelling and (clash.option in asked) == clash.given and idle:
                word = "with" if clash.given else "without"
                option = spelling[clash.option]
                raise InputError(f"{spelling[idle[0]]} does not apply {word} {option}: {clash.why}; leave it out")
        command(**given)

    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    return with_parameters(wrapped, command, add=[context])


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT", "PROMPT")
