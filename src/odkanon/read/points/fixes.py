"""GNSS points in a table with a person column, or in a folder with one CSV per person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from odkanon.core.sql import quote_name, quote_text
from odkanon.errors import InputError
from odkanon.read.coordinates import coordinate_checks, numbers_sql
from odkanon.read.person_ids import NO_ID
from odkanon.read.tables.column_names import missing_columns, resolve
from odkanon.read.tables.open_table import csv_tables, open_table
from odkanon.read.tables.table import NamedColumns, RowCheck, SourceTable
from odkanon.read.tables.time_formats import TimeColumn, mixed_offsets

POINT_ALIASES: dict[str, tuple[str, ...]] = {
    "person": ("person_id", "user_id", "participant_id", "device_id", "uid", "user"),
    "time": ("utc_datetime", "timestamp", "datetime", "date_time", "recorded_at"),
    "local_time": ("local_datetime",),
    "lat": ("latitude",),
    "lon": ("lng", "longitude"),
    "valid": (),
}
"""Further recognised column names, in lower case with ``_`` for spaces."""

_NOT_VALID = ("false", "f", "0", "no", "n", "v", "void", "invalid", "no fix", "nofix")
_FILE_NAME = r"([^/\\]+?)(\.csv)?(\.gz)?$"
_PERSON_OF_FILE = f"regexp_extract(filename, '{_FILE_NAME}', 1, 'i')"


@dataclass(frozen=True)
class Fixes:
    """GNSS points as one query."""

    connection: duckdb.DuckDBPyConnection
    """Connection to run it on."""
    query: str
    """Yields ``person``, ``instant``, ``clock`` (both in microseconds), ``lat``, ``lon``, ``zoned`` and ``reason``: 0
    for a good fix, or 1 and more for one of ``reasons``."""
    reasons: tuple[str, ...]
    """Why fixes are rejected."""
    name: str
    time_column: str
    tables: tuple[SourceTable, ...]
    """Their tables, one per layout of columns."""

    def unreadable_lines(self) -> int:
        """Return how many lines of CSV files could not be read, once the query has run."""
        return self.tables[0].unreadable_lines()

    def check_offsets(self, zoned: int, plain: int) -> None:
        """Raise if only some of the good points have a UTC offset."""
        if zoned and plain:
            raise mixed_offsets(self.name, self.time_column, zoned, plain)


def open_fixes(source: Any, columns: Mapping[str, str] | None = None) -> Fixes:
    """Return the points in a file, a table in memory, or a folder of CSVs that are named by person."""
    if isinstance(source, str | Path) and Path(source).is_dir():
        return files_to_fixes(person_files(Path(source)), str(source), columns)
    table = open_table(source)
    return table_to_fixes(table, point_columns(table, columns))


def point_columns(
    table: NamedColumns, columns: Mapping[str, str] | None = None, *, from_file_name: bool = False
) -> dict[str, str]:
    """Return the column of each of our names; persons may come from the names of files instead."""
    found = resolve(table, columns, POINT_ALIASES)
    if "time" not in found and "local_time" in found:
        found["time"] = found["local_time"]
    wanted = ("time", "lat", "lon") if from_file_name else ("person", "time", "lat", "lon")
    if any(name not in found for name in wanted):
        raise missing_columns(table, found, wanted)
    return found


def table_to_fixes(table: SourceTable, found: dict[str, str]) -> Fixes:
    """Return the points in a table whose columns are known."""
    return _fixes([table], [found], table.name, from_file_name=False)


def person_files(folder: Path) -> list[Path]:
    """Return the CSV files of a folder, sorted by name."""
    files = sorted(path for path in folder.iterdir() if path.name.lower().endswith((".csv", ".csv.gz")))
    if not files:
        raise InputError(f"{folder} has no CSV files; it should have one per person, named by the person's id")
    return files


def file_person(path: Path) -> str:
    """Return the person in the name of a file."""
    found = re.search(_FILE_NAME, path.name, re.IGNORECASE)
    return found[1] if found else path.name


def files_to_fixes(files: Sequence[Path], name: str, columns: Mapping[str, str] | None = None) -> Fixes:
    """Return the points in files that are named by person."""
    tables = csv_tables(files)
    founds = [point_columns(table, columns, from_file_name=True) for table in tables]
    return _fixes(tables, founds, name, from_file_name=True)


def _fixes(tables: list[SourceTable], founds: list[dict[str, str]], name: str, *, from_file_name: bool) -> Fixes:
    selects, checks = [], []
    for table, found in zip(tables, founds, strict=True):
        person = _PERSON_OF_FILE if from_file_name else _person(table, found["person"])
        checks = _checks(table, found, person)
        selects.append(_select(table, found, person, checks))
    query = " UNION ALL ".join(selects)
    reasons = tuple(check.reason for check in checks)
    return Fixes(tables[0].connection, query, reasons, name, founds[0]["time"], tuple(tables))


def _person(table: SourceTable, column: str) -> str:
    """Return the SQL of a person id, NULL for placeholders; numbers are not converted, since they sort faster."""
    name, kind = quote_name(column), table.types()[column]
    if kind == "VARCHAR":
        no_id = ", ".join(map(quote_text, NO_ID))
        return f"CASE WHEN lower(trim({name})) IN ({no_id}) THEN NULL ELSE trim({name}) END"
    return f"nullif({name}, CAST('nan' AS {kind}))" if kind in ("FLOAT", "DOUBLE") else name


def _checks(table: SourceTable, found: Mapping[str, str], person: str) -> list[RowCheck]:
    time = quote_name(found["time"])
    invalid = "false"
    if "valid" in found:
        listed = ", ".join(f"'{word}'" for word in _NOT_VALID)
        invalid = f"coalesce(lower(trim(CAST({quote_name(found['valid'])} AS VARCHAR))) IN ({listed}), false)"
    return [
        RowCheck("without a person", f"{person} IS NULL"),
        RowCheck("without a time", f"{time} IS NULL"),
        RowCheck("with a time that cannot be read", f"{TimeColumn(table, found['time']).instant} IS NULL"),
        *coordinate_checks([found["lat"]], [found["lon"]]),
        RowCheck("that the receiver marks as not valid", invalid),
    ]


def _select(table: SourceTable, found: Mapping[str, str], person: str, checks: Sequence[RowCheck]) -> str:
    time = TimeColumn(table, found["time"])
    clock = TimeColumn(table, found.get("local_time", found["time"])).clock
    cases = " ".join(f"WHEN {check.condition} THEN {number}" for number, check in enumerate(checks, 1))
    return table.select(
        {
            "person": person,
            "instant": time.instant,
            "clock": f"coalesce(epoch_us({clock}), {time.instant})",
            **dict(zip(("lat", "lon"), numbers_sql([found["lat"], found["lon"]]), strict=True)),
            "zoned": time.zoned,
            "reason": f"CASE {cases} ELSE 0 END::UTINYINT",
        }
    )
