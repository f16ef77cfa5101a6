"""The sample survey as raw GNSS points in the layout of NetMob25."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from odkanon.core.atomic_write import restore
from odkanon.core.sql import write_csv
from odkanon.errors import TargetExistsError
from odkanon.read.points.netmob25_files import INDIVIDUALS, POINTS
from odkanon.release_format.targets import OutputFolder

_STEP = 150.0  # maximum seconds between points; even when rounded, below the pause of 180 s that would end a trip

_UTC_OFFSET = 3600  # the survey takes place in November, when Paris is one hour ahead of UTC


def write_netmob25(survey: pa.Table, folder: Path, *, force: bool = False) -> int:
    """Write a survey in the layout of NetMob25, and return the number of points.

    Each trip becomes points on a straight line from its exact start to its exact end, from which it can be recovered.

    * ``survey``: trips as `odkanon.sample.survey.make_survey` returns them.
    * ``folder``: the target; ``force`` replaces an earlier survey.
    """
    restore(folder)
    with OutputFolder(folder, _check_contents, force=force, sync=False).replaced() as partial:
        (partial / POINTS).mkdir()
        write_csv(individuals(survey), partial / INDIVIDUALS)
        points = points_of_trips(survey)
        _write_person_files(points, partial / POINTS)
    return len(points)


def _check_contents(folder: Path) -> None:
    """Raise unless a path holds such a survey and nothing else."""
    if not (folder.is_dir() and (folder / INDIVIDUALS).is_file()):
        raise TargetExistsError.at(folder, "exists and is not such a survey", advice="choose another folder")
    points = [path.name for path in folder.glob(f"{POINTS}/*") if path.suffix != ".csv" or not path.is_file()]
    foreign = sorted({path.name for path in folder.iterdir()} - {INDIVIDUALS, POINTS}) + points
    if foreign:
        raise TargetExistsError.at(
            folder, f"contains {foreign[0]}, which is not part of the survey", advice="move it away first"
        )


def individuals(survey: pa.Table) -> pa.Table:
    """Return the table of persons, with the NetMob25 columns that the sample survey has."""
    names = {"sex": "SEX", "age": "AGE", "category": "PRO_CAT", "weight": "WEIGHT_INDIV"}
    grouped = survey.group_by("person", use_threads=False).aggregate([(name, "first") for name in names])
    people = grouped.select(["person", *(f"{name}_first" for name in names)]).rename_columns(["ID", *names.values()])
    return people.append_column("GPS_RECORD", pa.array(np.ones(len(people), dtype=bool)))


def points_of_trips(survey: pa.Table) -> pa.Table:
    """Return the points of all trips, in the order of the survey."""
    start, end = (
        survey.column(name).to_numpy().astype("datetime64[s]").astype(np.int64) for name in ("start_time", "end_time")
    )
    steps = np.maximum(np.ceil((end - start) / _STEP), 1).astype(np.int64)
    trip = np.repeat(np.arange(len(steps)), steps + 1)
    step = np.arange(len(trip)) - np.repeat(np.cumsum(steps + 1) - steps - 1, steps + 1)
    share = step / steps[trip]
    second = start[trip] + np.rint(share * (end - start)[trip]).astype(np.int64)
    column = {name: survey.column(name).to_numpy() for name in ("start_lat", "start_lon", "end_lat", "end_lon")}
    lat, lon = (
        np.where(share < 1, np.round(first[trip] + share * (last - first)[trip], 6), last[trip])
        for first, last in ((column[f"start_{axis}"], column[f"end_{axis}"]) for axis in ("lat", "lon"))
    )
    km = np.hypot(111.2 * (column["end_lat"] - column["start_lat"]), 73.2 * (column["end_lon"] - column["start_lon"]))
    speed = np.round(3600 * km / np.maximum(end - start, 1), 1)
    return pa.table(
        {
            "person": survey.column("person").take(pa.array(trip)),
            "UTC DATETIME": _text(second - _UTC_OFFSET),
            "LOCAL DATETIME": _text(second),
            "VALID": np.ones(len(trip), dtype=bool),
            "LATITUDE": lat,
            "LONGITUDE": lon,
            "SPEED": speed[trip],
        }
    )


def _text(seconds: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> pa.Array:
    return pc.strftime(pa.array(seconds, pa.timestamp("s")), format="%Y-%m-%d %H:%M:%S")


def _write_person_files(points: pa.Table, folder: Path) -> None:
    runs = pc.run_end_encode(points.column("person").combine_chunks())
    ends = runs.run_ends.to_pylist()
    written = points.drop_columns(["person"])
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    for person, first, end in zip(runs.values.to_pylist(), [0, *ends[:-1]], ends, strict=True):
        pyarrow.csv.write_csv(written.slice(first, end - first), folder / f"{person}.csv", options)
