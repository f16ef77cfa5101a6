"""``odkanon netmob25``: from the folder of the NetMob25 survey to the paper's trips."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.cli.rerun import run_command
from odkanon.cli.trips import Force, Gap, MinDistance, MinDuration, MinPoints, show_account
from odkanon.core.formatting import format_count
from odkanon.errors import InputError


def netmob25(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="With individuals_dataset.csv and gps_dataset/.", show_default=False),
    ],
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Trips, as .parquet, .csv or .csv.gz", show_default=False),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            metavar="DIR",
            help="Go on to all tables of the paper, in DIR/tables; the trips go to DIR/trips.parquet, unless -o says "
            "where else.",
            show_default=False,
        ),
    ] = None,
    gap: Gap = 180.0,
    min_points: MinPoints = 2,
    min_duration: MinDuration = 0.0,
    min_distance: MinDistance = 0.0,
    force: Force = False,
) -> None:
    """Turn the NetMob25 survey into trips with weight, sex, age, category and what else it says of persons.

    Examples
    --------
    `odkanon sample --as netmob25 -o survey`, then `odkanon netmob25 survey -o trips.parquet`

    `odkanon netmob25 survey --tables paper`
    """
    from odkanon.cli.stages import stages
    from odkanon.read.points.cutting import TripRule
    from odkanon.read.points.netmob25_files import write_survey_trips
    from odkanon.release_format.recipe import check_outside

    if output is None:
        if tables is None:
            raise InputError("say where the trips go, with -o FILE, or the tables, with --tables DIR")
        output = tables / "trips.parquet"
    check_outside(output)
    with stages() as stage:
        stage(f"opening {folder}")
        rule = TripRule(gap, min_points, min_duration, min_distance)
        account = write_survey_trips(folder, output, rule=rule, progress=stage, force=force)
    console.print(f"The survey lists {format_count(account.individuals, 'persons')}.")
    for count, nouns, what in (
        (account.incomplete, ("persons", "person"), "left out, whose GPS_RECORD is not true"),
        (account.without_file, ("persons have", "person has"), "GPS_RECORD true but no file of points"),
        (account.unlisted, ("files of points belong", "file of points belongs"), "to nobody on the list"),
    ):
        if count:
            console.print(f"  {format_count(count, *nouns)} {what}", style="yellow")
    show_account(account.points)
    console.tell(written=[output])
    say(f"Wrote {format_count(account.points.trips, 'trips')} to {output}")
    if tables is not None:
        options = {"source": str(output), "output": str(tables / "tables"), "all_segments": True}
        run_command(context, "compare", options | {"within": "paris-centre", "force": force})
