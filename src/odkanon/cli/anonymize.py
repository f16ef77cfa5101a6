"""``odkanon anonymize``: from a file to a release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.cli.engine_options import (
    FOR_EVERY_COMMAND,
    Engine,
    Input,
    MemoryLimit,
    SparkMaster,
    command_account,
    parse_age_bands,
)
from odkanon.cli.input_options import InputOptions, reads
from odkanon.cli.option_rules import was_given
from odkanon.cli.pandas import allow_pandas
from odkanon.cli.rule_options import RuleOptions, protects
from odkanon.core.paths import remote
from odkanon.errors import InputError, OptionConflictError
from odkanon.methods.method_registry import CUBE_METHOD, DEFAULT_METHOD, ONE_LEVEL, describe_methods
from odkanon.read.tables.datasets import is_store

if TYPE_CHECKING:
    from odkanon.engine.dispatch import EngineName as EngineChoice


class Suppress(StrEnum):
    """When the budget is spent."""

    before = "before"
    after = "after"


class BudgetOf(StrEnum):
    """What the budget is a share of."""

    rows = "rows"
    trips = "trips"


@protects
@reads
def anonymize(
    context: typer.Context,
    source: Input,
    how: InputOptions,
    wanted: RuleOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the release.")],
    method: Annotated[
        str,
        typer.Option(help=f"One of {describe_methods()}"),
    ] = DEFAULT_METHOD,
    suppress: Annotated[
        Suppress | None,
        typer.Option(
            rich_help_panel="How",
            help="Suppress before generalising, as published, or after it: finer zones. [default: after]",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Share that may be suppressed, from 0 to below 1. Mondrian takes none, cascade needs none. "
            "[default: 0.10]",
        ),
    ] = None,
    budget_of: Annotated[
        BudgetOf | None,
        typer.Option(rich_help_panel="How", help="Share of what. [default: rows with before, trips with after]"),
    ] = None,
    levels: Annotated[
        int | None,
        typer.Option(
            rich_help_panel="How", help="With before: levels a pair may be lifted to be worth keeping. [default: 3]"
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            rich_help_panel="How",
            help="With atg-soft: trips that an origin zone should have. [default: the best of a few]",
        ),
    ] = None,
    objective: Annotated[
        str | None, typer.Option(rich_help_panel="How", help="With treecut: make g, e or c_avg small. [default: g]")
    ] = None,
    compactness: Annotated[
        float | None,
        typer.Option(
            rich_help_panel="How", help="With freezones: 0 lets borders wind, 2 keeps zones round. [default: 1]"
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            rich_help_panel="How", help="With treecut, freezones: how long to search; the same number, the same result."
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            rich_help_panel="How", help="With treecut, freezones: stop after so many seconds with the best so far."
        ),
    ] = None,
    coarsest: Annotated[
        int | None,
        typer.Option(
            rich_help_panel="How",
            help="With cascade: publish nothing coarser than this H3 resolution, or level of a lookup table.",
        ),
    ] = None,
    implications: Annotated[
        str | None,
        typer.Option(
            rich_help_panel="How",
            help="With cascade: safe (no smaller group can be shown to exist) or allowed (rows meet the rule, but "
            "whoever knows the method can work out smaller groups). [default: safe]",
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            rich_help_panel="How",
            help="With methods on a tree of H3 cells: plain, or fine: two more levels between a cell and its parent. "
            "[default: plain]",
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel="How",
            help="Publish at this level and nowhere else: a column of --hierarchy, or an H3 resolution. What fails the "
            "rule there is suppressed, up to the budget; implies --method oigh.",
        ),
    ] = None,
    symmetric: Annotated[
        bool,
        typer.Option(
            "--symmetric",
            rich_help_panel="How",
            help="One zoning for origins and destinations, so that the matrix is square. With odkanon, oigh, treecut, "
            "freezones.",
        ),
    ] = False,
    engine: Engine = None,
    memory_limit: MemoryLimit = None,
    spark_master: SparkMaster = None,
    segment: Annotated[
        list[str],
        typer.Option(
            "--segment",
            metavar="NAME",
            rich_help_panel="Releases that stay safe linked",
            help="Release the whole and its segments together: sex, age, hour, hour:6-9,9-16, any column, or sex*age. "
            "Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    by: Annotated[
        list[str],
        typer.Option(
            "--by",
            metavar="NAME",
            rich_help_panel="One table by kind of trip",
            help="Publish by this as well, as far as k share it: any column, mode:car=1+2,bus=3 (the rest is other), "
            "purpose:LOOKUP.csv, hour, hour:7-9,9-17, weekday, date or age. Repeatable; implies --method cascade.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    give_up: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            rich_help_panel="One table by kind of trip",
            help="With --by: in which order detail is given up, such as place:7,hour,mode,place. "
            "[default: places up to 36 km2, then the last --by first, then places]",
        ),
    ] = None,
    age_bands: Annotated[
        str | None,
        typer.Option(
            rich_help_panel="Releases that stay safe linked",
            help="With --segment age or --by age: where bands begin. [default: 10,20,30,40,50,60,70]",
        ),
    ] = None,
    segment_budget: Annotated[
        float | None,
        typer.Option(
            rich_help_panel="Releases that stay safe linked",
            help="With --segment: share that the tables of a segment may suppress. [default: --budget]",
        ),
    ] = None,
    protect_intervals: Annotated[
        bool,
        typer.Option(
            "--protect-intervals",
            rich_help_panel="Releases that stay safe linked",
            help="With --segment: suppress more, until no flow below the rule is known to exist, or to within less "
            "than k trips, from all tables together.",
        ),
    ] = False,
    after: Annotated[
        Path | None,
        typer.Option(
            "--after",
            metavar="RELEASE",
            rich_help_panel="Releases that stay safe linked",
            help="Only trips after the period of this earlier release of the same, growing file.",
        ),
    ] = None,
    zones: Annotated[
        Path | None,
        typer.Option(
            "--zones",
            metavar="RELEASE",
            rich_help_panel="Releases that stay safe linked",
            help="Use the zones of this earlier release, or the rows of a cascade; no budget applies.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", rich_help_panel=FOR_EVERY_COMMAND, help="Replace an earlier release in DIR.")
    ] = False,
) -> None:
    """Protect a file of trips or an OD table, and write the release to a folder.

    Examples
    --------
    `odkanon anonymize trips.csv -o release`

    `odkanon anonymize survey.parquet -o release --k 10 --protect participants --protect persons`

    `odkanon anonymize survey.parquet -o releases --segment sex --segment age`

    `odkanon anonymize survey.parquet -o cube --by mode --by hour:0-7,7-9,9-17,17-20,20-24`

    `odkanon anonymize february.csv -o february --zones january`

    `odkanon anonymize trips.csv -o communes --hierarchy zones.csv --level commune --budget 0.2`

    `odkanon anonymize all.csv -o february --after january --until 2024-03-01`
    """
    if was_given(context, "levels") and suppress is not Suppress.before:
        raise OptionConflictError.between(
            "--levels", "--suppress before", "it sets which pairs are suppressed first", missing=True
        )
    if by and method != CUBE_METHOD and was_given(context, "method"):
        raise InputError(f"--by publishes with {CUBE_METHOD}, not with {method}; leave out --method")
    chosen: EngineChoice | None = None if engine is None else engine.value
    if chosen == "spark" or spark_master or any(remote(each) is not None and not is_store(each) for each in source):
        allow_pandas()
    from odkanon.cli.release_summaries import show_result
    from odkanon.cli.stages import stages
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
