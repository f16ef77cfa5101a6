"""Options that do not go together, or are given twice: what would be ignored is an error, for every command."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import typer
from typer.core import TyperCommand

from odkanon.cli.input_options import OPTIONS, with_parameters
from odkanon.cli.rule_options import THRESHOLDS
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
    of : str, optional
        The one command of which this is true; otherwise it is of all that have such options.
    naming : str, optional
        What the others have to name to count as given.
    """

    options: tuple[str, ...]
    given: bool
    idle: tuple[str, ...]
    why: str
    of: str | None = None
    naming: str | None = None


_ABOUT_TRIPS = tuple(name for name in OPTIONS if name not in ("hierarchy", "outlines"))

CLASHES = (
    Clash(("zones",), True, (*_CHOOSING, *_SEARCHING, "segment_budget"), "the zones are given, none are chosen"),
    Clash(("after",), True, ("since",), "the earlier release says where it ends"),
    Clash(("hierarchy",), True, ("resolution", "within", "crs"), "the zones are yours, not H3 cells"),
    Clash(("hierarchy",), True, ("all_segments",), "segments need trips with coordinates"),
    Clash(("hierarchy",), False, ("outlines",), "H3 cells have their own outlines"),
    Clash(("segment", "all_segments"), False, ("segment_budget", "protect_intervals"), "nothing is split"),
    Clash(("segment", "all_segments", "by"), False, ("age_bands",), "nothing is split by age", naming="age"),
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
    Clash(("trips",), True, ("force",), "so many trips go to a new folder", of="sample"),
    Clash(("give_up",), False, ("by",), "it is for comparing orders in which a cube gives up detail", of="compare"),
    Clash(
        ("give_up",), True, ("budget", "methods"), "orders of one method are compared, without a budget", of="compare"
    ),
    Clash(("near",), False, ("km",), "the map shows everything"),
    Clash(("output", "full", "tables"), False, ("force",), "there is no file of yours to replace"),
)


class GivenOnce(TyperCommand):
    """A command of which each option is given once, unless it can be repeated: the first value would say nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a command line; --help among them ends it here."""
        words = list(args)
        left = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(args=words)
            for each in {each.name: each for each in order if not getattr(each, "is_flag", True)}.values():
                if not each.multiple and sum(one is each for one in order) > 1:
                    raise InputError(f"{each.opts[0]} is given more than once; which of them is meant?")
        return left


def check_clashes(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command refuse options that say nothing beside others that are given."""

    @wraps(command)
    def wrapped(context: typer.Context, **given: Any) -> None:
        spelling = {each.name: each.opts[0] for each in context.command.params}
        for clash in CLASHES:
            here = [name for name in clash.options if name in spelling and clash.of in (None, context.info_name)]
            beside = [
                name
                for name in here
                if (was_given(context, name) or _in_file(context, name)) and _names(given[name], clash.naming)
            ]
            if not here or bool(beside) != clash.given:
                continue
            first = beside[0] if clash.given else next((name for name in here if was_given(context, name)), here[0])
            named = spelling[first] + (f" {clash.naming}" if clash.naming else "")
            word = f"with {named}" if clash.given else f"without {named}"
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


def _names(value: Any, wanted: str | None) -> bool:
    """Tell whether the value of an option names something, alone or as in ``sex*age``; whatever is true names all."""
    if wanted is None or not isinstance(value, list):
        return True
    return any(wanted == part.partition(":")[0].strip() for each in value for part in str(each).split("*"))


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
