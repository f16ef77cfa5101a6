"""``odkanon anonymize``: from a file of trips to a release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.cli import allow_pandas
from odkanon.cli.common_options import command
from odkanon.cli.engine_options import Engine, Input, MemoryLimit, SparkMaster, command_account, parse_age_bands
from odkanon.cli.input_options import InputOptions
from odkanon.cli.option_rules import was_given
from odkanon.cli.rule_options import RuleOptions
from odkanon.core.paths import remote
from odkanon.errors import InputError, OptionConflictError
from odkanon.methods.method_registry import CUBE_METHOD, DEFAULT_METHOD, ONE_LEVEL, describe_methods
from odkanon.read.tables.datasets import is_store

if TYPE_CHECKING:
    from odkanon.engine.dispatch import EngineName as EngineChoice


class Suppress(StrEnum):
    """The time at which the budget is spent."""

    before = "before"
    after = "after"


class BudgetOf(StrEnum):
    """The total of which the budget is a share."""

    rows = "rows"
    trips = "trips"


_METHOD, _TABLES, _SERIES = "Method", "Segments and attributes", "Series of releases"


@command
def anonymize(
    context: typer.Context,
    source: Input,
    how: InputOptions,
    wanted: RuleOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the release.")],
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help=f"One of {describe_methods()}"),
    ] = DEFAULT_METHOD,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share that may be suppressed, from 0 to below 1. Mondrian has none; cascade needs none. "
            "[default: 0.10]",
        ),
    ] = None,
    segment: Annotated[
        list[str],
        typer.Option(
            "--segment",
            metavar="NAME",
            help="Also publish a table for each segment, such that all tables are safe together: sex, age, hour, "
            "hour:6-9,9-16, any column, or sex*age. Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    by: Annotated[
        list[str],
        typer.Option(
            "--by",
            metavar="NAME",
            help="Publish one table by this attribute, with as much detail as the rule allows: any column, "
            "mode:car=1+2,bus=3 (the rest is other), purpose:LOOKUP.csv, hour, hour:7-9,9-17, weekday, date or age. "
            "Repeatable; implies --method cascade.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier release in DIR.")] = False,
    suppress: Annotated[
        Suppress | None,
        typer.Option(
            rich_help_panel=_METHOD,
            help="Spend the budget before generalising, as in the paper, or after it, for finer zones. "
            "[default: after]",
        ),
    ] = None,
    budget_of: Annotated[
        BudgetOf | None,
        typer.Option(
            rich_help_panel=_METHOD,
            help="The total of which the budget is a share. [default: rows with before, trips with after]",
        ),
    ] = None,
    levels: Annotated[
        int | None,
        typer.Option(
            "--max-levels",
            metavar="NUMBER",
            rich_help_panel=_METHOD,
            help="With --suppress before: pairs that need more levels of generalisation are suppressed first. "
            "[default: 3]",
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            metavar="TRIPS",
            rich_help_panel=_METHOD,
            help="With atg-soft: the intended number of trips of an origin zone. [default: the best of several]",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_METHOD, help="With treecut: minimise g, e or c_avg. [default: g]"
        ),
    ] = None,
    compactness: Annotated[
        float | None,
        typer.Option(
            metavar="WEIGHT",
            rich_help_panel=_METHOD,
            help="With freezones: 0 allows winding borders, 2 keeps zones compact. [default: 1]",
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_METHOD,
            help="With treecut, freezones: the length of the search; the same number gives the same result.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            rich_help_panel=_METHOD,
            help="With treecut, freezones: stop the search then, with the best result so far.",
        ),
    ] = None,
    coarsest: Annotated[
        int | None,
        typer.Option(
            metavar="LEVEL",
            rich_help_panel=_METHOD,
            help="With cascade: publish nothing coarser than this H3 resolution, or level of --hierarchy.",
        ),
    ] = None,
    implications: Annotated[
        bool,
        typer.Option(
            "--allow-inference",
            callback=lambda given: "allowed" if given else None,  # methods and recipes have words, not flags
            rich_help_panel=_METHOD,
            help="With cascade: publish more, although somebody who knows the method can infer that groups below the "
            "rule exist. [default: no such inference is possible]",
        ),
    ] = False,
    steps: Annotated[
        bool,
        typer.Option(
            "--substeps",
            callback=lambda given: "fine" if given else None,
            rich_help_panel=_METHOD,
            help="With methods on a tree of H3 cells: add two levels between each cell and its parent.",
        ),
    ] = False,
    level: Annotated[
        str | None,
        typer.Option(
            "--at-level",
            metavar="NAME",
            rich_help_panel=_METHOD,
            help="Publish at this level only: a column of --hierarchy, or an H3 resolution. Flows that fail the rule "
            "there are suppressed, up to the budget; implies --method oigh.",
        ),
    ] = None,
    symmetric: Annotated[
        bool,
        typer.Option(
            "--symmetric",
            rich_help_panel=_METHOD,
            help="Use the same zones for origins and destinations, for a square matrix. With odkanon, oigh, treecut, "
            "freezones.",
        ),
    ] = False,
    segment_budget: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=_TABLES,
            help="With --segment: share that the tables of a segment may suppress. [default: --budget]",
        ),
    ] = None,
    protect_intervals: Annotated[
        bool,
        typer.Option(
            "--protect-intervals",
            rich_help_panel=_TABLES,
            help="With --segment: suppress more, until all tables together neither prove that a flow below the rule "
            "exists nor bound it to an interval narrower than k trips.",
        ),
    ] = False,
    give_up: Annotated[
        str | None,
        typer.Option(
            "--drop-order",
            metavar="ORDER",
            rich_help_panel=_TABLES,
            help="With --by: the order in which detail is dropped, such as place:7,hour,mode,place. "
            "[default: places up to 36 km2, then the last --by first, then places]",
        ),
    ] = None,
    age_bands: Annotated[
        str | None,
        typer.Option(
            metavar="AGES",
            rich_help_panel=_TABLES,
            help="With --segment age or --by age: where bands begin. [default: 10,20,30,40,50,60,70]",
        ),
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option(
            "--after",
            metavar="RELEASE",
            rich_help_panel=_SERIES,
            help="Read only trips after the period of this earlier release of the same, growing file.",
        ),
    ] = None,
    zones: Annotated[
        Path | None,
        typer.Option(
            "--zones-of",
            metavar="RELEASE",
            rich_help_panel=_SERIES,
            help="Use the zones of this earlier release, or the rows of a cascade; no budget applies.",
        ),
    ] = None,
    engine: Engine = None,
    memory_limit: MemoryLimit = None,
    spark_master: SparkMaster = None,
) -> None:
    """Protect trips or an OD table, and write the release to a folder.

    Examples
    --------
    `odkanon anonymize trips.csv -o release`

    `odkanon anonymize survey.parquet -o release --k 10 --protect participants --protect persons`

    `odkanon anonymize survey.parquet -o releases --segment sex --segment age`

    `odkanon anonymize survey.parquet -o cube --by mode --by hour:0-7,7-9,9-17,17-20,20-24`

    `odkanon anonymize february.csv -o february --zones-of january`

    `odkanon anonymize trips.csv -o communes --hierarchy zones.csv --at-level commune --budget 0.2`

    `odkanon anonymize all.csv -o february --after january --until 2024-03-01`
    """
    if was_given(context, "levels") and suppress is not Suppress.before:
        raise OptionConflictError.between(
            "--max-levels", "--suppress before", "it sets which pairs are suppressed first", missing=True
        )
    if by and method != CUBE_METHOD and was_given(context, "method"):
        raise InputError(f"--by publishes with {CUBE_METHOD}, not with {method}; leave out --method")
    chosen: EngineChoice | None = None if engine is None else engine.value
    if chosen == "spark" or spark_master or any(remote(each) is not None and not is_store(each) for each in source):
        allow_pandas()
    from odkanon.cli.progress import stages
    from odkanon.cli.release_summaries import show_result
    from odkanon.engine.dispatch import parse_bytes
    from odkanon.pipeline.request import Request
    from odkanon.pipeline.run import publish

    parameters: dict[str, Any] = {
        "suppress": suppress and suppress.value,
        "budget": budget,
        "budget_of": budget_of and budget_of.value,
        "levels": levels,
        "target": target,
        "objective": objective,
        "compactness": compactness,
        "iterations": iterations,
        "time_limit": time_limit,
        "coarsest": coarsest,
        "implications": implications,
        "steps": steps,
        "give_up": give_up,
        "level": level,
        "symmetric": symmetric or None,
    }
    if not was_given(context, "method"):
        method = CUBE_METHOD if by else method if level is None else ONE_LEVEL
    request = Request(
        how(source),
        wanted.request,
        method,
        {name: value for name, value in parameters.items() if value is not None},
        by=tuple(by),
        segments=tuple(segment),
        age_bands=None if age_bands is None else parse_age_bands(age_bands),
        segment_budget=segment_budget,
        protect_intervals=protect_intervals,
        after=after,
        zones_of=zones,
        engine=chosen,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        spark_master=spark_master,
    )
    with stages() as stage:
        result = publish(request, output, force=force, command=command_account(context, output), stage=stage)
    show_result(result, request, output)
