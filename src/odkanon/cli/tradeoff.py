"""``odkanon tradeoff``: utility against k and the budget, with the limit beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from odkanon.cli.console import console, say
from odkanon.cli.engine_options import Input
from odkanon.cli.input_options import InputOptions, reads
from odkanon.cli.rule_options import Protect
from odkanon.errors import InputError

Number = TypeVar("Number", int, float)


@reads
def tradeoff(
    source: Input,
    how: InputOptions,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Picture: .png, .svg or .pdf; the table goes beside it."),
    ],
    ks: Annotated[str, typer.Option("--k", metavar="K,...", help="Which k to try.")] = "2,5,10,20,50",
    budgets: Annotated[str, typer.Option("--budget", metavar="SHARE,...", help="Which budgets to try.")] = "0.10",
    methods: Annotated[
        str, typer.Option(metavar="NAME,...", help="Which methods.")
    ] = "odkanon,oigh,atg-soft,treecut,cascade",
    protect: Annotated[
        list[Protect] | None, typer.Option(help="As in anonymize. [default: participants]", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE and its table.")] = False,
) -> None:
    """Show what a stricter rule costs: G for each k, budget and method, and the least that any zones could reach.

    Example:

    `odkanon tradeoff survey.csv -o tradeoff.png --k 5,10,20 --budget 0.05,0.10`
    """
    import pyarrow as pa

    from odkanon.cli.stages import stages
    from odkanon.core.atomic_write import check_new, whole_file
    from odkanon.read.input_matrix import matrix_of
    from odkanon.read.tables.open_table import write_csv
    from odkanon.release_format.recipe import check_outside
    from odkanon.study.tradeoffs import check_plotting, plot_tradeoff
    from odkanon.study.tradeoffs import tradeoff as run

    check_plotting()
    table = output.with_suffix(".csv")
    if output.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"{output} should end in .png, .svg or .pdf")
    check_outside(output)
    for path in (output, table):
        check_new(path, force=force)
    wanted_ks, shares = _numbers(ks, int, "--k"), _numbers(budgets, float, "--budget")
    with stages() as stage:
        reading = how(source)
        stage(f"reading {reading.name}")
        od = matrix_of(reading)
        stage(f"trying {len(wanted_ks) * len(shares)} settings")
        rows = run(
            od,
            ks=wanted_ks,
            budgets=shares,
            methods=[name.strip() for name in methods.split(",")],
            target=[target.value for target in protect or [Protect("participants")]],
        )
        with whole_file(table) as partial:
            write_csv(pa.Table.from_pylist([vars(row) for row in rows]), partial)
        with whole_file(output) as partial:
            plot_tradeoff(rows, partial)
    console.tell(written=[output, table], runs=[vars(row) for row in rows])
    say(f"Wrote {output} and {table}: {len(rows)} runs.")


def _numbers(text: str, kind: Callable[[str], Number], option: str) -> list[Number]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes numbers separated by commas, not {text!r}") from None
