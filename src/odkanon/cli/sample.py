"""``odkanon sample``: the built-in survey as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.errors import InputError


def sample(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to: .parquet, .csv or .csv.gz; with --trips, a new folder."
        ),
    ],
    trips: Annotated[
        int | None,
        typer.Option(help="Instead of the survey, this many trips as a folder of Parquet files, for measuring."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed makes another survey.")] = 2025,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
) -> None:
    """Write the sample survey: synthetic trips with the shape of the paper's, to try everything on."""
    import pyarrow.parquet

    from odkanon.io.tables import write_csv
    from odkanon.sample import make_survey

    if trips is not None:
        from odkanon.crowd import write_crowd

        if output.exists():
            raise InputError(f"{output} exists already; choose another folder")
        write_crowd(trips, output, seed=seed)
        typer.echo(f"Wrote {trips:,} synthetic trips to {output}")
        return
    if output.exists() and not force:
        raise InputError(f"{output} exists already; choose another name, or replace it with --force")
    if output.suffix not in (".parquet", ".csv", ".gz"):
        raise InputError(f"{output} should end in .parquet, .csv or .csv.gz")
    survey = make_survey(seed)
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.suffix == ".parquet":
        pyarrow.parquet.write_table(survey, output)
    else:
        write_csv(survey, output)
    typer.echo(f"Wrote {survey.num_rows:,} synthetic trips to {output}")
