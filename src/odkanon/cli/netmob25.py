"""``odkanon netmob25``: from the folder of the NetMob25 survey to the paper's trips."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.say import console, say
from odkanon.cli.trips import Force, Gap, MinDistance, MinDuration, MinPoints, TripsFile, show_account


def netmob25(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="With individuals_dataset.csv and gps_dataset/.", show_default=False),
    ],
    output: TripsFile,
    gap: Gap = 180.0,
    min_points: MinPoints = 2,
    min_duration: MinDuration = 0.0,
    min_distance: MinDistance = 0.0,
    force: Force = False,
) -> None:
    """Turn the NetMob25 survey into trips with weight, sex, age and category.

    Examples
    --------
    `odkanon sample --as netmob25 -o survey`, then `odkanon netmob25 survey -o trips.parquet`
    """
    from odkanon.cli.progress import stages
    from odkanon.read.points.cutting import TripRule
    from odkanon.read.points.netmob25 import write_survey_trips

    with stages() as stage:
        stage(f"opening {folder}")
        rule = TripRule(gap, min_points, min_duration, min_distance)
        account = write_survey_trips(folder, output, rule=rule, progress=stage, force=force)
    console.print(f"The survey lists {account.individuals:,} persons.")
    for count, what in (
        (account.incomplete, "persons left out, whose GPS_RECORD is not true"),
        (account.without_file, "persons have GPS_RECORD true but no file of points"),
        (account.unlisted, "files of points belong to nobody on the list"),
    ):
        if count:
            console.print(f"  {count:,} {what}", style="yellow")
    show_account(account.points)
    console.tell(written=[output])
    say(f"Wrote {account.points.trips:,} trips to {output}")
