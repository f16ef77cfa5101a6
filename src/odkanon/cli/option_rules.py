"""Options that have no effect beside, or without, other options: an error for every command, not silence."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer

from odkanon.cli.request_options import OPTIONS, THRESHOLDS
from odkanon.errors import OptionConflictError

log = logging.getLogger(__name__)

_CHOICE_OF_ZONES = ("method", "suppress", "budget", "budget_of", "max_levels", "target", "objective", "compactness")
_SEARCH_FOR_ZONES = ("iterations", "time_limit", "at_level", "symmetric")
OF_ZONES = (*_CHOICE_OF_ZONES, *_SEARCH_FOR_ZONES, "segment_budget", "coarsest", "allow_inference", "substeps")
"""Options that choose zones, and so do not apply where these are given."""
_ABOUT_ZONES = ("hierarchy", "outlines", "zoning", "zone_id", "zone_parents")
_ABOUT_TRIPS = tuple(name for name in OPTIONS if name not in _ABOUT_ZONES)
_CATALOGUE = ("publisher", "homepage", "licence", "country", "date")
_OF_FORMATS = ("measure", "zones", "coarse_times")
_OF_EXPORTS = (*_OF_FORMATS, "onto", "code", "weights", "even")


@dataclass(frozen=True)
class Clash:
    """Options, by the names of their parameters, that have no effect with, or without, any of some others."""

    others: tuple[str, ...]
    """The other options."""
    given: bool
    """Whether the options have no effect if one of the others is given, or if none of them is."""
    options: tuple[str, ...]
    """The options without effect."""
    why: str
    """The reason, for the message."""
    command: str | None = None
    """The only command with this clash; by default all commands that have these options."""
    value: str | None = None
    """The value that one of the others must have to count as given."""


CLASHES = (
    Clash(("zones_of",), True, (*_CHOICE_OF_ZONES, *_SEARCH_FOR_ZONES, "segment_budget"), "the zones are fixed"),
    Clash(("after",), True, ("since",), "the period begins where the earlier release ends"),
    Clash(("hierarchy",), True, ("resolution", "within", "crs"), "the zones are yours, not H3 cells"),
    Clash(("hierarchy",), True, ("all_segments",), "segments need trips with coordinates"),
    Clash(("hierarchy",), False, ("outlines",), "H3 cells have their own boundaries"),
    Clash(("zoning",), True, ("resolution", "within", "hierarchy"), "the zones are your polygons"),
    Clash(("zoning",), True, ("substeps",), "it divides H3 cells"),
    Clash(("zoning", "onto"), False, ("zone_id", "zone_parents"), "it is a property of your polygons"),
    Clash(("segment", "all_segments"), False, ("segment_budget", "protect_intervals"), "there are no segments"),
    Clash(("segment", "all_segments", "by"), False, ("age_bands",), "ages are not used", value="age"),
    Clash(("by",), True, ("segment", "zones_of"), "it publishes one table, on zones of its own"),
    Clash(("by",), True, ("substeps",), "attributes are dropped between whole H3 levels"),
    Clash(("by",), True, ("at_level", "symmetric"), "its rows are at several levels, each as fine as the rule allows"),
    Clash(("segment",), True, ("at_level", "symmetric"), "the zones are as coarse as all tables need"),
    Clash(("at_level",), True, ("symmetric",), "at one level, origins and destinations have the same zones anyway"),
    Clash(("at_level",), True, ("substeps",), "the level is a whole one"),
    Clash(("by",), False, ("drop_order",), "only places have detail to drop"),
    Clash(("all_segments",), True, ("by", "drop_order"), "a release by attribute has no segments"),
    Clash(tuple(THRESHOLDS), True, ("protect", "k"), "thresholds by measure replace it"),
    Clash(("segment", "by"), True, ("max_share", "min_destinations"), "such tables support thresholds only"),
    Clash(("sample",), True, ("source",), "the built-in survey is the input"),
    Clash(("onto",), True, ("km",), "the polygons replace the squares"),
    Clash(("onto",), False, ("code",), "it is a property of your polygons"),
    Clash(("onto",), False, ("even", "weights"), "rows are spread over your polygons only", command="export"),
    Clash(("weights",), True, ("even",), "weights are used instead of area", command="export"),
    Clash(("trips",), True, ("layout",), "trips for measuring are a folder of Parquet files"),
    Clash(("trips",), False, _ABOUT_TRIPS, "there are no trips to read"),
    Clash(("trips",), True, ("force",), "trips for measuring go to a new folder", command="sample"),
    Clash(("drop_order",), False, ("by",), "it selects attributes for a comparison of drop orders", command="compare"),
    Clash(
        ("drop_order",),
        True,
        ("budget", "methods"),
        "drop orders are of one method without a budget",
        "compare",
    ),
    Clash(("picture",), True, ("output", "full", "basemap"), "it writes a picture, not a page"),
    Clash(("picture",), False, ("measure", "axis", "near", "km", "paper"), "pages show all of it", "report"),
    Clash(("picture",), True, ("names", "language"), "it writes a picture, not a page"),
    Clash(("names",), False, ("name_column",), "it is a column of that file"),
    Clash(("near",), False, ("km",), "the picture shows the whole area"),
    Clash(("to",), True, ("where", *_OF_EXPORTS), "a catalogue describes whole releases", value="dcat"),
    Clash(("to",), False, ("wide",), "other formats have one form", value="xlsx"),
    Clash(
        ("to",),
        True,
        ("where", "measure", "zones", "coarse_times", "weights", "even"),
        "it has all of them",
        value="xlsx",
    ),
    Clash(("to",), False, _CATALOGUE, "it describes a catalogue entry", value="dcat"),
    Clash(("to",), False, _OF_FORMATS, "without a format, the matrix of the matching trips is written"),
    Clash(("layout",), True, ("column",), "the names of its columns are fixed", "trips", value="netmob25"),
    Clash(("layout",), False, ("tables",), "the tables need the NetMob25 survey", "trips", value="netmob25"),
    Clash(("template",), True, ("release", "policy", "evidence"), "nothing is checked"),
    Clash(("template",), False, ("output",), "the check writes no file"),
    Clash(("output", "full", "tables", "picture"), False, ("force",), "there is no file to replace"),
)


def check_clashes(context: typer.Context, values: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse options without effect; ignore them, with a warning, if they come from the configuration file.

    Parameters
    ----------
    values : dict
        By the name of the parameter; an ignored option gets its default.
    """
    spelling = {each.name: _spelling(each) for each in context.command.params}
    for clash in CLASHES:
        others = [name for name in clash.others if name in spelling and clash.command in (None, context.info_name)]
        given = [
            name
            for name in others
            if (was_given(context, name) or _is_in_file(context, name)) and _has_value(values[name], clash.value)
        ]
        if not others or bool(given) != clash.given:
            continue
        first = given[0] if clash.given else next((name for name in others if was_given(context, name)), others[0])
        other = spelling[first] + (f" {clash.value}" if clash.value else "")
        typed = not clash.given or any(was_given(context, each) for each in given)
        for name in clash.options:
            error = OptionConflictError.between(str(spelling.get(name)), other, clash.why, missing=not clash.given)
            if was_given(context, name) or (_is_in_file(context, name) and not typed):
                raise error
            if _is_in_file(context, name):
                _set_default(context, values, name, defaults[name])
                log.warning("%s", str(error).replace("leave it out", "the value in the configuration file is ignored"))


def _spelling(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name) if parameter.param_type_name == "argument" else parameter.opts[0]


def _has_value(value: Any, expected: str | None) -> bool:
    """Return whether the value of an option includes an expected one, as ``sex*age`` includes both; a flag has all."""
    if expected is None or value is True:
        return True
    texts = map(str, value if isinstance(value, list) else [value])
    from odkanon.attributes.spec import attribute_name

    return any(expected == attribute_name(part) for text in texts for part in text.split("*"))


def was_given(context: typer.Context, name: str) -> bool:
    """Return whether a parameter was given on the command line, not by default or in a file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT", "PROMPT")


def _is_in_file(context: typer.Context, name: str) -> bool:
    """Return whether the value of a parameter comes from the configuration file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "DEFAULT_MAP"


def _set_default(context: typer.Context, values: dict[str, Any], name: str, default: Any) -> None:
    values[name] = context.params[name] = default
    source = context.get_parameter_source(name)
    assert source is not None
    context.set_parameter_source(name, type(source)["DEFAULT"])
