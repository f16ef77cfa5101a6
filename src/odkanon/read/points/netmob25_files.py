"""The NetMob25 survey: a list of individuals, and one file of GNSS points per person.

The data are restricted; their layout follows the papers of the challenge.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from odkanon.core.sql import quote_name
from odkanon.errors import InputError
from odkanon.read.points.cutting import TripRule
from odkanon.read.points.fixes import file_person, files_to_fixes, person_files
from odkanon.read.points.segmentation import PointsAccount, Progress, check_output, write_trips
from odkanon.read.tables.column_names import resolve
from odkanon.read.tables.open_table import open_table

INDIVIDUALS, POINTS = "individuals_dataset.csv", "gps_dataset"

_COLUMNS: dict[str, tuple[str, ...]] = {
    "person": ("id", "person_id"),
    "weight": ("weight_indiv",),
    "complete": ("gps_record",),
    "sex": (),
    "age": (),
    "category": ("pro_cat",),
    "area_name": (),
    "diploma": (),
    "nb_car": (),
    "nbpers_house": (),
}
_NEEDED = ("person", "weight", "complete")
_SQL = {
    "person": "trim(CAST({} AS VARCHAR))",
    "weight": "TRY_CAST({} AS DOUBLE)",
    "complete": "coalesce(lower(trim(CAST({} AS VARCHAR))) IN ('true', 't', '1', '1.0', 'yes', 'y'), false)",
    "sex": "trim(CAST({} AS VARCHAR))",
    "age": "TRY_CAST(TRY_CAST({} AS DOUBLE) AS SMALLINT)",
    "category": "trim(CAST({} AS VARCHAR))",
    "area_name": "trim(CAST({} AS VARCHAR))",
    "diploma": "trim(CAST({} AS VARCHAR))",
    "nb_car": "trim(CAST({} AS VARCHAR))",
    "nbpers_house": "trim(CAST({} AS VARCHAR))",
}


@dataclass(frozen=True)
class SurveyAccount:
    """Counts of the persons of a survey, and of the points of those with complete records.

    Attributes
    ----------
    individuals : int
        Listed persons.
    incomplete : int
        Those without complete GNSS records, who are excluded.
    without_file : int
        Those with complete records according to the list, but without a file of points.
    unlisted : int
        Files of points of persons who are not listed, which are excluded.
    """

    individuals: int
    incomplete: int
    without_file: int
    unlisted: int
    points: PointsAccount


def read_netmob25(folder: str | Path, *, rule: TripRule | None = None) -> tuple[pa.Table, SurveyAccount]:
    """Return the paper's trips table from a NetMob25 folder, in memory.

    Parameters
    ----------
    folder : path
        With ``individuals_dataset.csv`` and ``gps_dataset/<ID>.csv``.
    rule : TripRule, optional
        When points form a trip; by default, as in the paper, a pause of more than 180 s ends one.

    Returns
    -------
    pyarrow.Table
        ``person, start_time, end_time`` (local), the coordinates of both ends, and of the person ``weight, sex, age,
        category, area_name, diploma, nb_car, nbpers_house``, as far as the list has them.
    SurveyAccount
        Counts of persons, points and trips.

    Examples
    --------
    >>> from odkanon import make_survey
    >>> from odkanon.sample.gnss_points import write_netmob25
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     points = write_netmob25(make_survey().slice(0, 60), Path(folder) / "survey")
    ...     trips, account = read_netmob25(Path(folder) / "survey")
    >>> trips.num_rows == account.points.trips
    True
    """
    with tempfile.TemporaryDirectory(prefix="odkanon-") as scratch:
        path = Path(scratch) / "trips.parquet"
        account = write_survey_trips(Path(folder), path, rule=rule)
        return pyarrow.parquet.read_table(path), account


def write_survey_trips(
    folder: Path,
    output: Path,
    *,
    rule: TripRule | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> SurveyAccount:
    """Write the trips of a NetMob25 folder to a file; see `read_netmob25`."""
    check_output(output, force=force)
    persons = read_individuals(_entry(folder, INDIVIDUALS))
    complete = persons.column("complete").to_numpy()
    chosen = persons.filter(pa.array(complete)).drop_columns(["complete"])
    files = person_files(_entry(folder, POINTS))
    names = np.array([file_person(path) for path in files])
    wanted = np.isin(names, np.array(chosen.column("person").to_pylist(), dtype=np.str_))
    if not wanted.any():
        raise InputError(
            f"none of the {len(files):,} files in {folder / POINTS} is named by the ID of a person with GPS_RECORD true"
        )
    fixes = files_to_fixes([path for path, keep in zip(files, wanted, strict=True) if keep], str(folder))
    points = write_trips(fixes, output, rule=rule, persons=chosen, progress=progress, force=force)
    listed = np.isin(names, np.array(persons.column("person").to_pylist(), dtype=np.str_))
    return SurveyAccount(
        individuals=len(persons),
        incomplete=int(np.count_nonzero(~complete)),
        without_file=len(chosen) - int(np.count_nonzero(wanted)),
        unlisted=int(np.count_nonzero(~listed)),
        points=points,
    )


def read_individuals(path: Path) -> pa.Table:
    """Read the list of persons: ``person, weight, complete`` and the known attributes of the survey."""
    table = open_table(path)
    found = resolve(table, None, _COLUMNS)
    if any(name not in found for name in _NEEDED):
        theirs = {"person": "ID", "weight": "WEIGHT_INDIV", "complete": "GPS_RECORD"}
        absent = ", ".join(theirs[name] for name in _NEEDED if name not in found)
        raise InputError(
            f"{path} has no column {absent}, as a NetMob25 list of individuals should. "
            f"It has: {', '.join(table.columns)}"
        )
    names = [name for name in _COLUMNS if name in found]
    persons = table.fetch({name: _SQL[name].format(quote_name(found[name])) for name in names})
    _check_distinct(path, persons.column("person").to_pylist())
    return persons


def _check_distinct(path: Path, persons: Sequence[str]) -> None:
    distinct, counts = np.unique(np.array(persons, dtype=np.str_), return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{path} lists person {str(distinct[counts > 1][0])!r} more than once; list each person once")


def _entry(folder: Path, name: str) -> Path:
    """Return a file or folder by name, ignoring case."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that holds {INDIVIDUALS} and {POINTS}/")
    for path in sorted(folder.iterdir()):
        if path.name.lower() == name:
            return path
    raise InputError(f"{folder} has no {name}; a NetMob25 folder holds {INDIVIDUALS} and {POINTS}/")
