"""Options that do not go together, for every command: what is given and would be ignored is an error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import typer

from odkanon.cli.protecting import THRESHOLDS
from odkanon.cli.reading import OPTIONS, with_parameters
from odkanon.errors import InputError

log = logging.getLogger(__name__)

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
    Clash(("after",), True, ("since",), "the earlier release says where it ends"),
    Clash(("hierarchy",), True, ("resolution", "within", "crs"), "the zones are yours, not H3 cells"),
    Clash(("hierarchy",), True, ("all_segments",), "segments need trips with coordinates"),
    Clash(("hierarchy",), False, ("outlines",), "H3 cells have their own outlines"),
    Clash(("segment", "all_segments"), False, ("segment_budget", "protect_intervals"), "nothing is split"),
    Clash(("segment", "all_segments", "by"), False, ("age_bands",), "nothing is split"),
    Clash(("by",), True, ("segment", "zones"), "it makes one table, on zones of its own"),
    Clash(("by",), True, ("steps",), "attributes are given up between whole H3 levels"),
    Clash(("by",), True, ("level", "symmetric"), "its rows are as fine as k share, at several levels"),
    Clash(("segment",), True, ("level", "symmetric"), "zones become as coarse as all tables need"),
    Clash(("level",), True, ("symmetric",), "one level is one zoning for both ends"),
    Clash(("level",), True, ("steps",), "a level is a whole one"),
    Clash(("by",), False, ("give_up",), "there are only places to give up detail of"),
    Clash(("all_segments",), True, ("by", "give_up"), "a cube has no segments"),
    Clash(tuple(THRESHOLDS), True, ("protect", "k"), "the thresholds are given one by one"),
    Clash(("segment", "by"), True, ("max_share", "min_destinations"), "such tables keep thresholds alone"),
    Clash(("sample",), True, ("source",), "the built-in survey is the input"),
    Clash(("onto",), True, ("km",), "these polygons take the place of squares"),
    Clash(("onto",), False, ("code",), "codes are those of polygons of yours"),
    Clash(("trips",), True, ("layout",), "so many trips are a folder of Parquet files"),
    Clash(("trips",), False, _ABOUT_TRIPS, "there are no trips to read"),
)


def check_clashes(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command refuse options that say nothing beside others that are given."""

    @wraps(command)
    def wrapped(context: typer.Context, **given: Any) -> None:
        spelling = {each.name: each.opts[0] for each in context.command.params}
        for clash in CLASHES:
            here = [name for name in clash.options if name in spelling]
            beside = [name for name in here if was_given(context, name) or _in_file(context, name)]
            if not here or bool(beside) != clash.given:
                continue
            word = f"with {spelling[beside[0]]}" if clash.given else f"without {spelling[here[0]]}"
            for name in clash.idle:
                said = f"{spelling.get(name)} does not apply {word}: {clash.why}"
                told_here = not clash.given or any(was_given(context, each) for each in beside)
                if was_given(context, name) or (_in_file(context, name) and not told_here):
                    raise InputError(f"{said}; leave it out")
                if _in_file(context, name):
                    _leave_out(context, given, name, plain.parameters[name].default)
                    log.warning("%s; what the file has for it is left out", said)
        command(**given | ({"context": context} if takes_context else {}))

    plain = signature(command)
    takes_context = "context" in plain.parameters
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    return with_parameters(wrapped, command, add=[] if takes_context else [context])


def was_given(context: typer.Context, name: str) -> bool:
    """Tell whether somebody has given a value to a parameter, here and now."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT", "PROMPT")


def _in_file(context: typer.Context, name: str) -> bool:
    """Tell whether a value comes from ``odkanon.toml``, which the command line wins over."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "DEFAULT_MAP"


def _leave_out(context: typer.Context, given: dict[str, Any], name: str, default: Any) -> None:
    given[name] = context.params[name] = default
    source = context.get_parameter_source(name)
    assert source is not None
    context.set_parameter_source(name, type(source)["DEFAULT"])
