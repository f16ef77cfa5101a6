"""``odkanon sample``: the built-in survey as a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.errors import InputError


class Layout(StrEnum):
    """What the survey is written as."""

    trips = "trips"
    netmob25 = "netmob25"


def sample(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Where to: .parquet, .csv, .csv.gz; a folder with netmob25 or --trips.",
        ),
    ],
    trips: Annotated[
        int | None,
        typer.Option(help="Instead of the survey, this many trips as a folder of Parquet files, for measuring."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed makes another survey.")] = 2025,
    layout: Annotated[
        Layout, typer.Option("--as", help="As a table of trips, or as raw GNSS points in the layout of NetMob25.")
    ] = Layout.trips,
    force: Annotated[bool, typer.Option("--force", help="Replace PATH.")] = False,
) -> None:
    """Write the sample survey: synthetic trips with the shape of the paper's, to try everything on."""
    import pyarrow.parquet

    from odkanon.core.atomic_write import check_new, whole_file
    from odkanon.read.tables.open_table import write_csv
    from odkanon.sample.survey import make_survey

    if trips is not None:
        from odkanon.cli.stages import stages
        from odkanon.sample.crowd import write_crowd

        with stages() as stage:
            write_crowd(trips, output, seed=seed, progress=stage)
        console.tell(written=[output])
        say(f"Wrote {trips:,} synthetic trips to {output}")
        return
    if layout is Layout.netmob25:
        from odkanon.sample.gnss_points import write_netmob25

        points = write_netmob25(make_survey(seed), output, force=force)
        console.tell(written=[output])
        say(f"Wrote {points:,} synthetic GNSS points to {output}")
        return
    check_new(output, force=force)
    if output.suffix not in (".parquet", ".csv", ".gz"):
        raise InputError(f"{output} should end in .parquet, .csv or .csv.gz")
    survey = make_survey(seed)
    with whole_file(output) as partial:
        if output.suffix == ".parquet":
            pyarrow.parquet.write_table(survey, partial)
        else:
            write_csv(survey, partial)
    console.tell(written=[output])
    say(f"Wrote {survey.num_rows:,} synthetic trips to {output}")
