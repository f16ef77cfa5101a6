"""``odkanon compare``: which method to choose, and the paper's whole experiment, on any survey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odkanon.cli.engine_options import parse_age_bands
from odkanon.cli.input_options import InputOptions, reads
from odkanon.cli.rule_options import Protect
from odkanon.core.atomic_write import write_text
from odkanon.errors import InputError

if TYPE_CHECKING:
    from odkanon.model.od import ODMatrix
    from odkanon.read.input_spec import InputSpec
    from odkanon.read.trips import Trips
    from odkanon.study.experiment import Cell, Experiment, Outcome

RUNS, ORDERS = "runs.jsonl", "orders.csv"


@reads
def compare(
    how: InputOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the tables.")],
    source: Annotated[
        Path | None, typer.Argument(metavar="INPUT", help="Trips, as for anonymize.", show_default=False)
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Use the built-in survey, inside the paper's five central cells.")
    ] = False,
    k: Annotated[int, typer.Option("--k", help="How many must share every published flow.")] = 10,
    budget: Annotated[float, typer.Option(help="Share of trips that may be suppressed.")] = 0.10,
    segment: Annotated[
        list[str] | None,
        typer.Option(help="Also by sex, age, category or any other column. Repeatable.", show_default=False),
    ] = None,
    all_segments: Annotated[bool, typer.Option("--all-segments", help="By sex, age and category.")] = False,
    age_bands: Annotated[
        str | None, typer.Option(help="With age: where bands begin. [default: 10,20,30,40,50,60,70]")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Which rows, or all. [default: all; with segments the paper's four, ODkAnon and OIGH twice]",
        ),
    ] = None,
    protect: Annotated[
        list[Protect] | None,
        typer.Option(
            help="As in anonymize: all must hold. [default: participants, and population beside them, unless orders "
            "are compared]",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="With --give-up: what a cube is published by, as for anonymize.", show_default=False
        ),
    ] = None,
    give_up: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORDER",
            help="Compare orders in which a cube gives up detail, such as place:6,hour,mode,place. Repeatable.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start anew instead of going on with a stopped grid.")] = False,
) -> None:
    """Run methods x protection targets x segments, say which to choose for what, and write the paper's tables.

    A grid that was stopped goes on where it was when the same command is given again.

    Examples
    --------
    `odkanon compare --sample --all-segments -o tables`

    `odkanon compare survey.parquet --segment sex --methods odkanon,oigh -o tables`

    `odkanon compare last-year.parquet --by mode --by hour --give-up hour,mode --give-up place:6,hour,mode -o orders`
    `odkanon compare survey.parquet --protect participants --protect persons -o tables`
    """
    import json
    from dataclasses import replace

    from odkanon.cli.console import console
    from odkanon.cli.stages import stages
    from odkanon.cli.summaries import show_ranking
    from odkanon.release_format.recipe import check_outside
    from odkanon.sample.survey import CENTRAL_CELLS, make_survey
    from odkanon.study.experiment import read_outcomes
    from odkanon.study.figure import draw_targets
    from odkanon.study.tables import targets_of

    if (source is None) == (not sample):
        raise InputError("give either a file of trips, or --sample for the built-in survey")
    if output.exists() and not (
        output.is_dir() and (any((output / name).is_file() for name in (RUNS, ORDERS)) or not any(output.iterdir()))
    ):
        raise InputError(f"{output} exists and is not a folder of tables; choose another folder")
    check_outside(output)
    bands = parse_age_bands(age_bands)
    dimensions = tuple(dict.fromkeys([*(segment or []), *(("sex", "age", "category") if all_segments else ())]))
    with stages() as stage:
        stage("reading")
        reading = how(make_survey() if sample else source)
        if sample and reading.within is None:
            reading = replace(reading, within=",".join(CENTRAL_CELLS))
        if give_up:
            _compare_orders(reading, by or [], give_up, k, protect, bands, output, force=force)
            return
        experiment = _experiment(reading, dimensions, k, budget, bands, methods, protect)
    settings = _settings(experiment, reading)
    output.mkdir(parents=True, exist_ok=True)
    log = output / RUNS
    outcomes = _run(experiment, {} if force else read_outcomes(log, settings), log, settings)
    _write(outcomes, experiment, output)
    lacking = draw_targets(experiment, output / "zones.png")
    drawn = "" if lacking else ", zones.png"
    for target in targets_of(outcomes):
        show_ranking(outcomes, target)
    console.tell(outcomes=[json.loads(outcome.to_json()) for outcome in outcomes])
    refused = sum(outcome.refusal is not None for outcome in outcomes)
    console.print(
        f"Wrote {output}/tables.md, tables.csv, tables.tex{drawn}: {len(outcomes):,} runs, {refused:,} of them refused."
    )
    if lacking:
        console.print(f"No zones.png: {lacking}.")


def _compare_orders(
    reading: InputSpec,
    by: list[str],
    orders: list[str],
    k: int,
    protect: list[Protect] | None,
    bands: Sequence[int],
    output: Path,
    *,
    force: bool,
) -> None:
    """Compare orders in which a cube gives up detail, and print and write what each keeps."""
    from rich.table import Table

    from odkanon.cli.console import console
    from odkanon.core.atomic_write import check_new, whole_file
    from odkanon.model.rule import Rule
    from odkanon.read.attributes.hierarchies import parse_attributes
    from odkanon.read.input_matrix import matrix_of
    from odkanon.read.tables.open_table import write_csv
    from odkanon.study.drop_orders import compare_orders

    target = output / ORDERS
    check_new(target, force=force)
    od = matrix_of(reading, attributes=parse_attributes(by, bands, (reading.since, reading.until)))
    targets = [each.value for each in protect or [Protect("participants")]]
    kept = compare_orders(od, Rule.protect(*targets, k=k, of=od), orders)
    with whole_file(target) as partial:
        write_csv(kept, partial)
    table = Table(title="Share of trips of which a detail is known, by order", title_justify="left")
    for name in kept.column_names:
        table.add_column(
            {"give_up": "given up", "g": "G"}.get(name, name), justify="left" if name == "give_up" else "right"
        )
    for row in kept.to_pylist():
        told = [_told(name, value) for name, value in row.items()]
        table.add_row(*told)
    console.print(table)
    console.print(
        "Choose on other data than those to be published, such as last year's: an order that was picked by its results "
        "tells of them.",
        style="dim",
    )
    console.print(f"Wrote {target}.")


def _told(name: str, value: Any) -> str:
    if isinstance(value, str | int):
        return f"{value:,}" if isinstance(value, int) else value
    if value is None:
        return "-"
    return f"{value:,.1f}" if name == "g" else f"{value:.1%}"


def _experiment(
    reading: InputSpec,
    dimensions: tuple[str, ...],
    k: int,
    budget: float,
    bands: Sequence[int],
    methods: str | None,
    protect: list[Protect] | None,
) -> Experiment:
    from odkanon.errors import nearest
    from odkanon.model.budget import Budget
    from odkanon.read.attributes.dimensions import segment_attributes
    from odkanon.read.attributes.spec import sources_of
    from odkanon.study.experiment import ALL_ROWS, METHOD_ROWS, PAPER_ROWS, Experiment

    # Searching for zones takes seconds a run, which is little for a choice and much for a grid of segments.
    usual = PAPER_ROWS if dimensions and methods is None else ALL_ROWS
    rows = usual if methods in (None, "all") else tuple(name.strip() for name in str(methods).split(","))
    for row in rows:
        if row not in METHOD_ROWS:
            raise InputError(
                f"there is no method {row!r}{nearest(row, METHOD_ROWS)}; choose among {', '.join(METHOD_ROWS)}"
            )
    Budget(budget, "trips")
    return Experiment(
        _input(reading, sources_of(segment_attributes(dimensions))),
        k=k,
        budget=budget,
        dimensions=dimensions,
        rows=rows,
        resolution=reading.finest,
        within=reading.area,
        age_bands=bands,
        targets=("+".join(dict.fromkeys(each.value for each in protect)),) if protect else None,
    )


def _input(reading: InputSpec, attributes: list[str]) -> Trips | ODMatrix:
    """Read trips, with what they are split by, or an OD table, which cannot be split."""
    from odkanon.read.od_table import od_of
    from odkanon.read.trips import trips_of

    table = reading.open()
    if reading.kind_of(table) == "trips":
        return trips_of(reading, attributes, table=table)
    if attributes:
        raise InputError("segments need trips with coordinates; an OD table cannot be split")
    return od_of(reading, table=table)


def _settings(experiment: Experiment, reading: InputSpec) -> dict[str, Any]:
    """Return all that decides what a run yields, to tell whether earlier outcomes can be kept."""
    from odkanon._version import __version__

    return {
        "version": __version__,
        "sha256": experiment.trips.source.sha256,
        "rows": experiment.trips.source.rows,
        "k": experiment.k,
        "budget": experiment.budget,
        "resolution": experiment.resolution,
        "reading": reading.said(),
        "age_bands": list(experiment.age_bands),
        "targets": None if experiment.targets is None else list(experiment.targets),
    }


def _run(experiment: Experiment, done: Mapping[Cell, Outcome], log: Path, settings: dict[str, Any]) -> list[Outcome]:
    import json

    from odkanon.cli.stages import runs

    outcomes = []
    work = list(experiment.run(done))
    # What was done before is not given up before it has been written again.
    partial = log.with_suffix(".partial")
    kept = [json.dumps(settings), *(outcome.to_json() for outcome in done.values())]
    write_text(partial, "".join(f"{line}\n" for line in kept))
    partial.replace(log)
    with log.open("a", encoding="utf-8", newline="\n") as file, runs(len(work)) as at:
        for done_so_far, (cell, run) in enumerate(work):
            at(done_so_far, f"{cell.dimension} {cell.segment}, {cell.target}: {cell.row}")
            outcomes.append(run())
            if cell not in done:
                file.write(outcomes[-1].to_json() + "\n")
                file.flush()
    return outcomes


def _write(outcomes: list[Outcome], experiment: Experiment, output: Path) -> None:
    from odkanon.core.atomic_write import whole_file, write_whole
    from odkanon.read.tables.open_table import write_csv
    from odkanon.release_format.names import guard_text
    from odkanon.study.tables import long_table, paper_tables

    tables = paper_tables(outcomes, experiment.people())
    write_whole(output / "tables.md", "\n".join(table.to_markdown() for table in tables))
    write_whole(output / "tables.tex", "\n".join(table.to_latex() for table in tables))
    with whole_file(output / "tables.csv") as partial:
        write_csv(guard_text(long_table(outcomes)), partial)
