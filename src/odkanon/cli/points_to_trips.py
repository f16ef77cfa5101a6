"""``odkanon trips``: from GNSS points to a file of trips."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console
from odkanon.cli.request_options import column_mapping
from odkanon.cli.rerun import run_command
from odkanon.core.parsing import format_count
from odkanon.errors import InputError

if TYPE_CHECKING:
    from odkanon.read.points.cutting import TripRule
    from odkanon.read.points.segmentation import PointsAccount


class PointsLayout(StrEnum):
    """The layout of files of points."""

    points = "points"
    netmob25 = "netmob25"


@command(
    """
    points: POINTS  CSV, Parquet, GPX, GeoPackage or similar with person, time, lat, lon; or a folder with one CSV file
        per person, named by the person's id.
    --output -o FILE  The file of trips: .parquet, .csv or .csv.gz
    --gap SECONDS  A longer pause between two points ends a trip.
    --min-points NUMBER  The fewest points of a trip.
    --min-duration SECONDS  The shortest duration of a trip.
    --min-distance METRES  The shortest distance between the start and the end of a trip.
    --column OURS=THEIRS  Name a column that is not recognised: person=ID. Repeatable.
    --layout  With netmob25, POINTS is the folder with individuals_dataset.csv and gps_dataset/.
    --tables DIR  With --layout netmob25: also make all tables of the paper, in DIR/tables; the trips go to
        DIR/trips.parquet unless -o is given.
    --force  Replace an existing FILE.
    """
)
def trips(
    context: typer.Context,
    points: Path,
    output: Path | None = None,
    gap: float = 180.0,
    min_points: int = 2,
    min_duration: float = 0.0,
    min_distance: float = 0.0,
    column: list[str] = [],  # noqa: B006 - typer copies it
    layout: PointsLayout = PointsLayout.points,
    tables: Path | None = None,
    force: bool = False,
) -> None:
    """Turn GNSS points into trips: a trip ends where no point follows for a while.

    The layout netmob25 adds the weight, sex, age, category and other attributes of each person.

    Examples
    --------
    `odkanon trips points.parquet -o trips.parquet`

    `odkanon trips gps_dataset -o trips.csv --gap 300 --min-distance 200`

    `odkanon sample --as netmob25 -o survey`, then `odkanon trips survey --layout netmob25 -o trips.parquet`

    `odkanon trips survey --layout netmob25 --tables paper`
    """
    from odkanon.read.points.cutting import TripRule
    from odkanon.release_format.targets import check_private

    if output is None:
        if tables is None:
            raise InputError("the trips need a file: -o FILE")
        output = tables / "trips.parquet"
    check_private(output)
    rule = TripRule(gap, min_points, min_duration, min_distance)
    write = _write_survey if layout is PointsLayout.netmob25 else _write_trips
    written = write(points, output, rule, column_mapping(column), force=force)
    _show_account(written)
    console.add_result(written=[output])
    console.print(f"Wrote {format_count(written.trips, 'trips')} to {output}")
    if tables is not None:
        options = {"source": str(output), "output": str(tables / "tables"), "all_segments": True}
        run_command(context, "compare", options | {"within": "paris-centre", "force": force})


def _write_trips(points: Path, output: Path, rule: TripRule, columns: dict[str, str], *, force: bool) -> PointsAccount:
    """Write the trips of a file or folder of points."""
    from odkanon.cli.console import stages
    from odkanon.read.points.fixes import open_fixes
    from odkanon.read.points.segmentation import check_output, write_trips

    check_output(output, force=force)
    with stages() as stage:
        stage(f"opening {points}")
        return write_trips(open_fixes(points, columns), output, rule=rule, progress=stage, force=force)


def _write_survey(folder: Path, output: Path, rule: TripRule, _: object, *, force: bool) -> PointsAccount:
    """Write the trips of the NetMob25 survey, and print which of its persons have points."""
    from odkanon.cli.console import stages
    from odkanon.read.points.netmob25_files import write_survey_trips

    with stages() as stage:
        stage(f"opening {folder}")
        account = write_survey_trips(folder, output, rule=rule, progress=stage, force=force)
    console.print(f"The survey lists {format_count(account.individuals, 'persons')}.")
    for count, nouns, what in (
        (account.incomplete, ("persons", "person"), "excluded: GPS_RECORD is not true"),
        (account.without_file, ("persons have", "person has"), "GPS_RECORD true but no file of points"),
        (account.unlisted, ("files of points belong", "file of points belongs"), "to no listed person"),
    ):
        if count:
            console.print(f"  {format_count(count, *nouns)} {what}", style="yellow")
    return account.points


def _show_account(account: PointsAccount) -> None:
    """Print how many points were read, rejected and dropped."""
    console.add_result(account=vars(account))
    console.print(f"Read {format_count(account.points, 'points')} of {format_count(account.persons, 'persons')}.")
    for reason, count in account.rejected.items():
        console.print(f"  rejected {format_count(count, 'points')} {reason}", style="yellow")
    for reason, count in account.dropped.items():
        console.print(f"  no trips: {count:,} {reason}", style="yellow")
    if account.persons_without_trips:
        without = account.persons_without_trips
        console.print(f"  {format_count(without, 'persons have', 'person has')} no trip", style="yellow")
