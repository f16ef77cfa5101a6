"""``odkanon anonymize``: from a file to a release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from odkanon.cli.options import (
    Column,
    Engine,
    Filter,
    HierarchyFile,
    Input,
    MemoryLimit,
    Protect,
    ReadAsOption,
    Resolution,
    SparkMaster,
    Within,
    make_rule,
    read_anywhere,
)


class Suppress(StrEnum):
    """When the budget is spent."""

    before = "before"
    after = "after"


class BudgetOf(StrEnum):
    """What the budget is a share of."""

    rows = "rows"
    trips = "trips"


def anonymize(
    source: Input,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the release.")],
    k: Annotated[int, typer.Option("--k", help="How many must share every published flow.")] = 10,
    protect: Annotated[
        list[Protect] | None,
        typer.Option(
            help="Who: participants (k trips), population (k times the mean weight of a trip), persons (k different "
            "ones). Repeatable: all must hold. [default: participants]",
            show_default=False,
        ),
    ] = None,
    min_trips: Annotated[int | None, typer.Option(help="Instead of --k: at least so many trips.")] = None,
    min_weight: Annotated[float | None, typer.Option(help="Instead of --k: at least this sum of weights.")] = None,
    min_persons: Annotated[int | None, typer.Option(help="Instead of --k: at least so many persons.")] = None,
    method: Annotated[
        str, typer.Option(help="How: odkanon, oigh, atg-soft (overlapping zones) or mondrian (boxes, no hierarchy).")
    ] = "odkanon",
    suppress: Annotated[
        Suppress | None,
        typer.Option(help="Suppress before generalising, as published, or after it: finer zones. [default: after]"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Share that may be suppressed, from 0 to below 1. Mondrian takes none. [default: 0.10]"),
    ] = None,
    budget_of: Annotated[
        BudgetOf | None, typer.Option(help="Share of what. [default: rows with before, trips with after]")
    ] = None,
    levels: Annotated[
        int | None, typer.Option(help="With before: levels a pair may be lifted to be worth keeping. [default: 3]")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="With atg-soft: trips that an origin zone should have. [default: the best of a few]"),
    ] = None,
    resolution: Resolution = None,
    column: Column = [],  # noqa: B006 - typer copies it
    where: Filter = None,
    within: Within = None,
    hierarchy: HierarchyFile = None,
    read_as: ReadAsOption = None,
    engine: Engine = None,
    memory_limit: MemoryLimit = None,
    spark_master: SparkMaster = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier release in DIR.")] = False,
) -> None:
    """Protect a file of trips or an OD table, and write the release to a folder.

    Examples
    --------
    `odkanon anonymize trips.csv -o release`

    `odkanon anonymize survey.parquet -o release --k 10 --protect participants --protect persons`
    """
    from odkanon.cli.show import show_release, stages
    from odkanon.io.save import check_target, save_release
    from odkanon.methods import anonymize as run

    check_target(output, force=force)
    with stages() as stage:
        stage(f"reading {source}")
        od = read_anywhere(
            source,
            engine=engine,
            memory_limit=memory_limit,
            spark_master=spark_master,
            column=column,
            where=where,
            within=within,
            resolution=resolution,
            hierarchy=hierarchy,
            read_as=read_as,
        )
        rule = make_rule(
            od, k=k, protect=protect or [], min_trips=min_trips, min_weight=min_weight, min_persons=min_persons
        )
        stage(f"protecting {od.summary.trips:,} trips with {method}")
        asked: dict[str, Any] = {
            "suppress": suppress and suppress.value,
            "budget": budget,
            "budget_of": budget_of and budget_of.value,
            "levels": levels,
            "target": target,
        }
        options = {name: value for name, value in asked.items() if value is not None}
        release = run(od, rule, method=method, **options)
        stage(f"writing {output}")
        save_release(release, output, force=force)
    show_release(od, release)
    typer.echo(f"Wrote {output}: classes.csv, classes.parquet, zones.geojson, release.json")
