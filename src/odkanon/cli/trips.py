"""``odkanon trips``: from GNSS points to a file of trips."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.cli.input_options import Column, column_mapping
from odkanon.core.formatting import format_count

if TYPE_CHECKING:
    from odkanon.read.points.segmentation import PointsAccount

TripsFile = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="Where to: .parquet, .csv or .csv.gz", show_default=False)
]
Gap = Annotated[float, typer.Option(help="Seconds: a longer pause between points ends a trip.")]
MinPoints = Annotated[int, typer.Option(help="Points that a trip has at least.")]
MinDuration = Annotated[float, typer.Option(help="Seconds that a trip takes at least.")]
MinDistance = Annotated[float, typer.Option(help="Metres from the start of a trip to its end, at least.")]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE.")]


def trips(
    points: Annotated[
        Path,
        typer.Argument(
            metavar="POINTS",
            help="CSV, Parquet, GPX, GeoPackage or the like with person, time, lat, lon; or a folder with a CSV for "
            "each person, named by the person's id.",
            show_default=False,
        ),
    ],
    output: TripsFile,
    gap: Gap = 180.0,
    min_points: MinPoints = 2,
    min_duration: MinDuration = 0.0,
    min_distance: MinDistance = 0.0,
    column: Column = [],  # noqa: B006 - typer copies it
    force: Force = False,
) -> None:
    """Turn GNSS points into trips; a trip ends where no point follows for a while.

    Examples
    --------
    `odkanon trips points.parquet -o trips.parquet`

    `odkanon trips gps_dataset -o trips.csv --gap 300 --min-distance 200`
    """
    from odkanon.cli.stages import stages
    from odkanon.read.points.cutting import TripRule
    from odkanon.read.points.fixes import open_fixes
    from odkanon.read.points.segmentation import check_output, write_trips
    from odkanon.release_format.recipe import check_outside

    check_outside(output)
    check_output(output, force=force)
    with stages() as stage:
        stage(f"opening {points}")
        fixes = open_fixes(points, column_mapping(column))
        rule = TripRule(gap, min_points, min_duration, min_distance)
        account = write_trips(fixes, output, rule=rule, progress=stage, force=force)
    show_account(account)
    console.tell(written=[output])
    say(f"Wrote {format_count(account.trips, 'trips')} to {output}")


def show_account(account: PointsAccount) -> None:
    """Print what became of the points."""
    console.tell(account=vars(account))
    console.print(f"Read {format_count(account.points, 'points')} of {format_count(account.persons, 'persons')}.")
    for reason, count in account.rejected.items():
        console.print(f"  rejected {format_count(count, 'points')} {reason}", style="yellow")
    for reason, count in account.dropped.items():
        console.print(f"  no trips: {count:,} {reason}", style="yellow")
    if account.persons_without_trips:
        without = account.persons_without_trips
        console.print(f"  {format_count(without, 'persons have', 'person has')} no trip", style="yellow")
