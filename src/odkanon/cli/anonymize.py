"""``odkanon anonymize``: from a file of trips to a release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from odkanon.cli import allow_pandas
from odkanon.cli.common_options import command
from odkanon.cli.option_rules import was_given
from odkanon.cli.report import PageOptions
from odkanon.cli.request_options import EngineName, Input, InputOptions, RuleOptions, command_account, parse_age_bands
from odkanon.core.system import remote
from odkanon.errors import InputError, OptionConflictError
from odkanon.methods.method_registry import CUBE_METHOD, NOISE_METHOD, describe_methods
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


INPUT_NAME = "{input}"
"""Stands for the name of the input in an output, as in ``releases/{input}``, so that `odkanon.toml` never changes."""


@command(
    f"""
    --output -o DIR  Folder for the release; {{input}} in it is the name of the input, without its ending.
    --method NAME  One of {describe_methods()}
        [default: cascade; odkanon for what needs one zoning, such as segments, a budget or symmetry]
    --by NAME  Publish one table by this attribute, with as much detail as the rule allows: any column,
        mode:car=1+2,bus=3 (the rest is other), purpose:LOOKUP.csv, hour, hour:7-9,9-17, weekday, date or age; without
        values that cannot occur, as in 'weekday without Saturday+Sunday'.
        Repeatable; for the cascade only.
    --force  Replace an earlier release in DIR.
    Method:
    --budget SHARE  Share that may be suppressed, from 0 to below 1; a cascade needs none. [default: 0.10]
    --suppress  Spend the budget before generalising, as in the paper, or after it, for finer zones. [default: after]
    --budget-of  The total of which the budget is a share. [default: rows with before, trips with after]
    --max-levels NUMBER  With --suppress before: pairs that need more levels of generalisation are suppressed
        first. [default: 3]
    --target TRIPS  With atg-soft: the intended number of trips of an origin zone. [default: the best of several]
    --objective NAME  With treecut: minimise g, e or c_avg. [default: g]
    --compactness WEIGHT  With freezones: 0 allows winding borders, 2 keeps zones compact. [default: 1]
    --iterations NUMBER  With treecut, freezones: the length of the search; the same number gives the same result.
    --time-limit SECONDS  With treecut, freezones: stop the search then, with the best result so far.
    --coarsest LEVEL  With cascade: publish nothing coarser than this H3 resolution, or level of --hierarchy.
    --total-known  With cascade: leave out a secret 1 % of the persons, so that the total of the trips may be public.
    --allow-inference  With cascade: publish more, although somebody who knows the method can infer that
        groups below the rule exist. [default: no such inference is possible]
    --substeps  With methods on a tree of H3 cells: add two levels between each cell and its parent.
    --at-level NAME  Publish at this level only: a column of --hierarchy, or an H3 resolution. Flows that fail
        the rule there are suppressed, up to the budget; implies --method oigh.
    --symmetric  Use the same zones for origins and destinations, for a square matrix. With odkanon, oigh, treecut,
        freezones.
    Noise (differential privacy):
    --epsilon NUMBER  The bound on what one person, or one trip, changes: 1 is strict, 10 is not; implies --method
        noise.
    --delta NUMBER  The probability with which epsilon may not hold. [default: 1e-6]
    --trips-per-person NUMBER  The most trips of a person that count; the others are left out. [default: 4]
    --ledger FILE  Adds up what was spent on the same people. [default: the nearest
        odkanon-ledger.json beside the input or above it]
    --epsilon-limit NUMBER  The most epsilon that the ledger may come to; it keeps the smallest ever given.
    Segments and attributes:
    --segment NAME  Also publish a table for each segment, such that all tables are safe together: sex, age, hour,
        hour:6-9,9-16, any column, or sex*age. Repeatable.
    --segment-budget SHARE  With --segment: share that the tables of a segment may suppress. [default: --budget]
    --protect-intervals  With --segment: suppress more, until all tables together neither prove that a flow below the
        rule exists nor bound it to an interval narrower than k trips.
    --drop-order ORDER  With --by: the order in which detail is dropped, such as place:7,hour,mode,place.
        [default: places up to 36 km2, then the last --by first, then places]
    --age-bands AGES  With --segment age or --by age: where bands begin. [default: 10,20,30,40,50,60,70] In a cube, the
        first and the last band may be known to be empty.
    Series of releases:
    --after RELEASE  Read only trips after the period of this earlier release of the same, growing file.
    --zones-of RELEASE  Use the zones of this earlier release, or the rows of a cascade; no budget applies.
    Matrix:
    --matrix PLACES  The places of matrix.csv: an H3 resolution, or a file of polygons. [default: your zones
        where they have outlines; else 7, or the coarser one that has at most 4,000 cells]
    --matrix-id NAME  With --matrix FILE: the property with the codes of the polygons.
    Computation and output:
    --metrics  Print the metrics of the paper and accuracy by size as well; the recipe has them always.
    --engine  In memory, in DuckDB on disk, or on Spark. [default: memory if the input fits, else duckdb]
    --memory-limit SIZE  The memory that DuckDB may use, such as 8GiB.
    --spark-master URL  The Spark cluster, such as local[4] or spark://host:7077; implies --engine spark.
    """
)
def anonymize(
    context: typer.Context,
    source: Input,
    how: InputOptions,
    wanted: RuleOptions,
    page: PageOptions,
    output: Path,
    method: str | None = None,
    budget: float | None = None,
    segment: list[str] = [],  # noqa: B006 - typer copies it
    by: list[str] = [],  # noqa: B006 - typer copies it
    force: bool = False,
    metrics: bool = False,
    suppress: Suppress | None = None,
    budget_of: BudgetOf | None = None,
    max_levels: int | None = None,
    target: float | None = None,
    objective: str | None = None,
    compactness: float | None = None,
    iterations: int | None = None,
    time_limit: float | None = None,
    coarsest: int | None = None,
    total_known: bool = False,
    allow_inference: bool = False,
    substeps: bool = False,
    at_level: str | None = None,
    symmetric: bool = False,
    epsilon: float | None = None,
    delta: float | None = None,
    trips_per_person: int | None = None,
    ledger: Path | None = None,
    epsilon_limit: float | None = None,
    segment_budget: float | None = None,
    protect_intervals: bool = False,
    drop_order: str | None = None,
    age_bands: str | None = None,
    after: Path | None = None,
    zones_of: Path | None = None,
    matrix: str | None = None,
    matrix_id: str | None = None,
    engine: EngineName | None = None,
    memory_limit: str | None = None,
    spark_master: str | None = None,
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

    `odkanon anonymize survey.parquet -o release --method noise --epsilon 3 --within area.gpkg`

    `odkanon anonymize all.csv -o february --after january --until 2024-03-01`
    """
    if was_given(context, "max_levels") and suppress is not Suppress.before:
        raise OptionConflictError.between(
            "--max-levels", "--suppress before", "it sets which pairs are suppressed first", missing=True
        )
    output = Path(str(output).replace(INPUT_NAME, Path(source[0]).name.partition(".")[0]))
    noisy = method == NOISE_METHOD or (method is None and epsilon is not None)
    spec = how(source, **({"unit": None} if noisy else {}))
    cube = "--by" if by else "--place" if spec.place is not None else None
    if cube and method not in (None, CUBE_METHOD) and not (by and noisy) and was_given(context, "method"):
        raise InputError(f"{cube} publishes with {CUBE_METHOD}, not with {method}; leave out --method")
    chosen: EngineChoice | None = None if engine is None else engine.value
    if chosen == "spark" or spark_master or any(remote(each) is not None and not is_store(each) for each in source):
        allow_pandas()
    from odkanon.cli.console import stages
    from odkanon.cli.release_summaries import show_result
    from odkanon.engine.dispatch import parse_bytes
    from odkanon.pipeline.request import Request
    from odkanon.pipeline.run import publish

    parameters: dict[str, Any] = {
        "suppress": suppress and suppress.value,
        "budget": budget,
        "budget_of": budget_of and budget_of.value,
        "max_levels": max_levels,
        "target": target,
        "objective": objective,
        "compactness": compactness,
        "iterations": iterations,
        "time_limit": time_limit,
        "coarsest": coarsest,
        "total_known": total_known or None,
        "allow_inference": allow_inference or None,
        "substeps": substeps or None,
        "drop_order": drop_order,
        "at_level": at_level,
        "symmetric": symmetric or None,
        "epsilon": epsilon,
        "delta": delta,
        "trips_per_person": trips_per_person,
        "unit": how.values["unit"] if noisy else None,
    }
    request = Request(
        spec,
        wanted.request,
        "" if method is None or ((cube or at_level) and not was_given(context, "method")) else method,
        {name: value for name, value in parameters.items() if value is not None},
        by=tuple(by),
        segments=tuple(segment),
        age_bands=None if age_bands is None else parse_age_bands(age_bands),
        segment_budget=segment_budget,
        protect_intervals=protect_intervals,
        after=after,
        zones_of=zones_of,
        matrix=matrix,
        matrix_code=matrix_id,
        ledger=ledger,
        epsilon_limit=epsilon_limit,
        engine=chosen,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        spark_master=spark_master,
    )
    texts, account = page(), command_account(context, output)
    with stages() as stage:
        result = publish(request, output, force=force, texts=texts, command=account, stage=stage)
    show_result(result, request, output, metrics=metrics)
