"""``odkanon sample``: the built-in survey as a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from odkanon.cli.common_options import command
from odkanon.cli.console import console
from odkanon.errors import InvalidValueError


class SampleLayout(StrEnum):
    """The layout of the sample."""

    trips = "trips"
    netmob25 = "netmob25"


@command(
    """
    --output -o PATH  A .parquet, .csv or .csv.gz file; with --as netmob25 or --trips a folder.
    --trips NUMBER  Write this many trips instead, as a folder of Parquet files, for benchmarks.
    --seed NUMBER  The seed of the random numbers.
    layout: --as  A table of trips, or raw GNSS points in the layout of NetMob25.
    --force  Replace an existing PATH.
    """
)
def sample(
    output: Path,
    trips: int | None = None,
    seed: int = 2025,
    layout: SampleLayout = SampleLayout.trips,
    force: bool = False,
) -> None:
    """Write the sample survey: synthetic trips that resemble those of the paper."""
    import pyarrow.parquet

    from odkanon.core.atomic_write import check_new, whole_file
    from odkanon.core.sql import write_csv
    from odkanon.sample.survey import make_survey

    if trips is not None:
        from odkanon.cli.console import stages
        from odkanon.sample.crowd import write_crowd

        with stages() as stage:
            write_crowd(trips, output, seed=seed, progress=stage)
        console.add_result(written=[output])
        console.print(f"Wrote {trips:,} synthetic trips to {output}")
        return
    if layout is SampleLayout.netmob25:
        from odkanon.sample.gnss_points import write_netmob25

        points = write_netmob25(make_survey(seed), output, force=force)
        console.add_result(written=[output])
        console.print(f"Wrote {points:,} synthetic GNSS points to {output}")
        return
    check_new(output, force=force)
    if output.suffix not in (".parquet", ".csv", ".gz"):
        raise InvalidValueError.suffix(output, ".parquet", ".csv", ".csv.gz")
    survey = make_survey(seed)
    with whole_file(output) as partial:
        if output.suffix == ".parquet":
            pyarrow.parquet.write_table(survey, partial)
        else:
            write_csv(survey, partial)
    console.add_result(written=[output])
    console.print(f"Wrote {survey.num_rows:,} synthetic trips to {output}")
