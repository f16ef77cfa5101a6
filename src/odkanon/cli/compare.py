"""``odkanon compare``: methods, thresholds and budgets side by side, and the whole experiment of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from odkanon.cli.common_options import command
from odkanon.cli.old_names import OLD_COMMAND
from odkanon.cli.option_rules import was_given
from odkanon.cli.request_options import InputOptions, Protect, parse_age_bands
from odkanon.errors import InputError, InvalidValueError, OptionConflictError

if TYPE_CHECKING:
    from odkanon.read.input_spec import InputSpec

RUNS, ORDERS = "runs.jsonl", "orders.csv"
PICTURES = (".png", ".svg", ".pdf")

Number = TypeVar("Number", int, float)


@command(
    """
    source: [INPUT]...  Trips, as for anonymize.
    --output -o PATH  Folder for the tables; with several --k or --budget a picture (.png, .svg, .pdf) with its table.
    --sample  Use the built-in survey, inside the five central cells of the paper.
    --k K[,...]  The number that must share every published flow. Several, such as 5,10,20, show what a stricter rule
        costs. [default: 10; 2,5,10,20,50 if PATH is a picture]
    --budget SHARE[,...]  Share of trips that may be suppressed.
    --methods NAME,...  The methods to compare. [default: all; with segments the four of the paper, ODkAnon and OIGH
        twice]
    --protect WHO  Who is protected, as for anonymize. [default: participants, and in tables by method also the
        population]
    --epsilon NUMBER  Compare with noise as well, which promises something else: differential privacy, not k.
    --delta NUMBER  As for anonymize, with --epsilon; so are --unit and --trips-per-person.
    --trips-per-person NUMBER  The most trips of a person that count with noise. [default: 4]
    --force  Replace earlier results instead of resuming an interrupted comparison.
    Segments:
    --segment NAME  Compare by sex, age, category or any other column as well. Repeatable.
    --all-segments  Compare by sex, age and category.
    --age-bands AGES  With ages: where bands begin. [default: 10,20,30,40,50,60,70]
    Orders of detail in a release by attribute:
    --by NAME  With --drop-order: an attribute to publish by, as for anonymize.
    --drop-order ORDER  Compare orders in which detail is dropped, such as place:6,hour,mode,place. Repeatable.
    """
)
def compare(
    context: typer.Context,
    how: InputOptions,
    output: Path,
    source: list[Path] = [],  # noqa: B006 - typer copies it
    sample: bool = False,
    k: str | None = None,
    budget: str = "0.10",
    methods: str | None = None,
    protect: list[Protect] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    trips_per_person: int | None = None,
    force: bool = False,
    segment: list[str] | None = None,
    all_segments: bool = False,
    age_bands: str | None = None,
    by: list[str] | None = None,
    drop_order: list[str] | None = None,
) -> None:
    """Compare methods, thresholds and budgets on your trips.

    One k and budget: tables by method, protected group and segment, and a recommendation for each use. Several: the
    utility of each method against k. An interrupted comparison resumes when the same command is given again.

    Examples
    --------
    `odkanon compare survey.parquet -o tables`

    `odkanon compare survey.parquet --segment sex --methods odkanon,oigh -o tables`

    `odkanon compare survey.parquet --k 5,10,20 --budget 0.05,0.10 -o cost.png`

    `odkanon compare last-year.parquet --by mode --by hour --drop-order hour,mode --drop-order place:6,hour,mode -o
    orders`

    `odkanon compare --sample --epsilon 3 --methods cascade,noise -o tables`

    `odkanon compare --sample --all-segments -o tables`
    """
    from dataclasses import replace

    from odkanon.release_format.targets import check_private
    from odkanon.sample.survey import CENTRAL_CELLS, make_survey

    if bool(source) == sample:
        raise InputError("compare needs either a file of trips, or --sample for the built-in survey")
    check_private(output)
    bands = parse_age_bands(age_bands)
    ks, budgets = None if k is None else _numbers(k, int, "--k"), _numbers(budget, float, "--budget")
    noise = {"epsilon": epsilon, "delta": delta, "trips_per_person": trips_per_person}
    if epsilon is not None:
        noise["unit"] = how.values["unit"]
    noise = {name: value for name, value in noise.items() if value is not None}
    reading = how(make_survey() if sample else source, **({} if epsilon is None else {"unit": None}))
    if sample and reading.within is None:
        reading = replace(reading, within=",".join(CENTRAL_CELLS))
    if (
        output.suffix in PICTURES
        or len(ks or ()) > 1
        or len(budgets) > 1
        or context.meta.get(OLD_COMMAND) == "tradeoff"
    ):
        for name in ("segment", "all_segments", "drop_order", *noise):
            option = f"--{name.replace('_', '-')}"
            if was_given(context, name):
                raise OptionConflictError.between(option, "several --k or --budget", "these are compared for all trips")
        _compare_thresholds(reading, ks or [2, 5, 10, 20, 50], budgets, methods, protect, output, force=force)
        return
    if output.exists() and not (
        output.is_dir() and (any((output / name).is_file() for name in (RUNS, ORDERS)) or not any(output.iterdir()))
    ):
        raise InputError(f"{output} exists and is not a folder of tables; choose another folder")
    (first,) = ks or [10]
    if drop_order:
        _compare_orders(reading, by or [], drop_order, first, protect, bands, output, force=force)
        return
    dimensions = tuple(dict.fromkeys([*(segment or []), *(("sex", "age", "category") if all_segments else ())]))
    _compare_methods(reading, dimensions, first, budgets[0], bands, methods, protect, noise, output, force=force)


def _numbers(text: str, number: Callable[[str], Number], option: str) -> list[Number]:
    try:
        return [number(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValueError.expected(option, "numbers separated by commas", text) from None


def _compare_methods(
    reading: InputSpec,
    dimensions: tuple[str, ...],
    k: int,
    budget: float,
    bands: Sequence[int],
    methods: str | None,
    protect: list[Protect] | None,
    noise: dict[str, Any],
    output: Path,
    *,
    force: bool,
) -> None:
    """Compare methods by protected group and segment; print a ranking and write the tables of the paper."""
    import json

    from odkanon.cli.console import console, runs, stages
    from odkanon.cli.summaries import show_ranking
    from odkanon.study.method_comparison import make_experiment, run_experiment

    with stages() as stage:
        stage("reading")
        experiment, settings = make_experiment(
            reading,
            "all" if methods == "all" else None if methods is None else [name.strip() for name in methods.split(",")],
            k=k,
            budget=budget,
            protect=[each.value for each in protect or ()],
            segment=dimensions,
            age_bands=bands,
            noise=noise,
        )
    found = run_experiment(experiment, settings, log=output / RUNS, force=force, progress=runs)
    no_picture = found.save(output)
    for target in found.targets:
        show_ranking(found, target)
    console.add_result(outcomes=[json.loads(outcome.to_json()) for outcome in found.outcomes])
    refused = sum(outcome.refusal is not None for outcome in found.outcomes)
    files = f"{output}/tables.md, tables.csv, tables.tex{'' if no_picture else ', zones.png'}"
    console.print(f"Wrote {files}: {len(found.outcomes):,} runs, {refused:,} of them refused.")
    if no_picture:
        console.print(f"No zones.png: {no_picture}.")


def _compare_thresholds(
    reading: InputSpec,
    ks: Sequence[int],
    budgets: Sequence[float],
    methods: str | None,
    protect: list[Protect] | None,
    output: Path,
    *,
    force: bool,
) -> None:
    """Plot utility against k and budget by method, with the lowest G that any zones of the hierarchy can reach."""
    import pyarrow as pa

    from odkanon.cli.console import console, stages
    from odkanon.core.atomic_write import check_new, whole_file
    from odkanon.core.sql import write_csv
    from odkanon.read.od_table import spec_to_matrix
    from odkanon.study.tradeoffs import check_plotting, plot_tradeoff, tradeoff

    check_plotting()
    table = output.with_suffix(".csv")
    if output.suffix not in PICTURES:
        raise InvalidValueError.suffix(output, *PICTURES, reason="with several --k or --budget it is a picture")
    for path in (output, table):
        check_new(path, force=force)
    with stages() as stage:
        stage(f"reading {reading.name}")
        od = spec_to_matrix(reading)
        stage(f"trying {len(ks) * len(budgets)} settings")
        rows = tradeoff(
            od,
            ks=ks,
            budgets=budgets,
            methods=[name.strip() for name in (methods or "odkanon,oigh,atg-soft,treecut,cascade").split(",")],
            target=[target.value for target in protect or [Protect("participants")]],
        )
        with whole_file(table) as partial:
            write_csv(pa.Table.from_pylist([vars(row) for row in rows]), partial)
        with whole_file(output) as partial:
            plot_tradeoff(rows, partial)
    console.add_result(written=[output, table], runs=[vars(row) for row in rows])
    console.print(f"Wrote {output} and {table}: {len(rows)} runs.")


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
    """Compare orders in which detail is dropped; print and write the share of trips that keeps each attribute."""
    from rich.table import Table

    from odkanon.attributes.spec import parse_attributes
    from odkanon.cli.console import console
    from odkanon.core.atomic_write import check_new, whole_file
    from odkanon.core.sql import write_csv
    from odkanon.model.rule import Rule
    from odkanon.read.od_table import spec_to_matrix
    from odkanon.study.tradeoffs import compare_orders

    target = output / ORDERS
    check_new(target, force=force)
    od = spec_to_matrix(reading, attributes=parse_attributes(by, bands, (reading.since, reading.until)))
    targets = [each.value for each in protect or [Protect("participants")]]
    kept = compare_orders(od, Rule.protect(*targets, k=k, of=od), orders)
    with whole_file(target) as partial:
        write_csv(kept, partial)
    table = Table(title="Share of trips that keep each attribute, by drop order", title_justify="left")
    for name in kept.column_names:
        table.add_column(
            {"drop_order": "drop order", "g": "G"}.get(name, name), justify="left" if name == "drop_order" else "right"
        )
    for row in kept.to_pylist():
        table.add_row(*(_cell_text(name, value) for name, value in row.items()))
    console.print(table)
    console.print(
        "Choose the order on other data than you publish, such as last year's: an order chosen by its results "
        "discloses something about them.",
        style="dim",
    )
    console.print(f"Wrote {target}.")


def _cell_text(name: str, value: Any) -> str:
    if isinstance(value, str | int):
        return f"{value:,}" if isinstance(value, int) else value
    if value is None:
        return "-"
    return f"{value:,.1f}" if name == "g" else f"{value:.1%}"
