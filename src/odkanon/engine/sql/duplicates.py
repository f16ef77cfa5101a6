"""Trips that are exact copies of another, and times that are written in two ways; both need a look at all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools
from odkanon.engine.sql.backend import Backend, Stored, lend
from odkanon.engine.sql.row_checks import CountedRows, SqlInput
from odkanon.model.provenance import Rejected
from odkanon.read.crs import ends_in_degrees
from odkanon.read.tables.column_names import COORDINATES
from odkanon.read.tables.time_formats import TimeColumn, mixed_offsets
from odkanon.zoning.cells import Floats, latlng_to_cell

_ZONED, _PLAIN = 1, 2


@dataclass(frozen=True, eq=False)
class Copies:
    """Trips that repeat another of the same person; one row for each that is repeated.

    Attributes
    ----------
    found : pyarrow.Table
        ``extra`` (how many more of them there are), ``weight`` (of each), how their times are written, and what else
        was asked for.
    ends : list of array
        ``start_lat, start_lon, end_lat, end_lon`` in degrees.
    good : array of bool
        Which lie on the globe.
    """

    found: pa.Table
    ends: list[Floats]
    good: Bools

    def rejected(self, which: Bools | None = None) -> Rejected:
        """Return what they add up to, all or some."""
        extra, units = (np.asarray(self.found.column(name)).astype(np.int64) for name in ("extra", "weight"))
        extra = extra if which is None else extra * which
        return Rejected(int(extra.sum()), int(extra.sum()), int((extra * units).sum()))

    def taken_off(self, backend: Backend, resolution: int, also: Sequence[str] = ()) -> Stored:
        """Return what is to be added to the counts by origin, destination and more, to take the copies off again."""
        extra, units = (np.asarray(self.found.column(name)).astype(np.int64)[self.good] for name in ("extra", "weight"))
        lat_lon = [values[self.good] for values in self.ends]
        return lend(
            backend,
            origin=latlng_to_cell(lat_lon[0], lat_lon[1], resolution).view(np.int64),
            destination=latlng_to_cell(lat_lon[2], lat_lon[3], resolution).view(np.int64),
            **{name: self.found.column(name).filter(pa.array(self.good)) for name in also},
            records=-extra,
            trips=-extra,
            weight=-extra * units,
        )


def find_copies(
    table: SqlInput,
    rows: CountedRows,
    records: Stored,
    ends: Mapping[str, str],
    also: Mapping[str, str],
    crs: str | None,
) -> Copies | None:
    """Return exact copies; None if there are none, or none to look for.

    Fingerprints only narrow down where to compare in full; with none repeated, which is usual, that is all. What
    else is told of them (``also``, as SQL) has to be the same for copies.
    """
    if not rows.copies.same or not rows.copies.detects_duplicates:
        return None
    suspects = table.backend.repeated(records, "fingerprint")
    if len(suspects) == 0:
        return None
    weight = rows.columns.get("weight", "0")
    same = {f"same_{number}": expression for number, expression in enumerate(rows.copies.same.values())}
    attributes = "".join(f", MIN({name}) AS {name}" for name in also)
    found = table.query(
        {**ends, **same, **also, "weight": weight, "reason": rows.columns["reason"], **rows.fingerprint},
        f"SELECT {', '.join(COORDINATES)}, MIN(weight) AS weight, COUNT(*) - 1 AS extra{attributes} FROM (%s) s "
        f"JOIN suspects u ON s.fingerprint = u.value WHERE reason = 0 GROUP BY {', '.join([*COORDINATES, *same])} "
        "HAVING COUNT(*) > 1",
        suspects=suspects,
    )
    if len(found) == 0:
        return None
    lat_lon = [np.asarray(found.column(name)) for name in COORDINATES]
    good: Bools = np.ones(len(found), dtype=bool)
    if crs is not None:
        lat_lon, good = ends_in_degrees(lat_lon, crs)
    return Copies(found, lat_lon, good)


def offset_attributes(times: Mapping[str, TimeColumn]) -> dict[str, str]:
    """Return, by name, the SQL that tells with or without a UTC offset, for columns that allow both."""
    return {
        f"{name}_written": f"CASE WHEN {time.clock} IS NULL THEN 0 WHEN {time.zoned} THEN {_ZONED} ELSE {_PLAIN} END"
        for name, time in times.items()
        if time.zoned != "false"
    }


def refuse_mixed_offsets(
    table: SqlInput, found: Mapping[str, str], records: Stored, written: Mapping[str, str], copies: Copies | None
) -> None:
    """Raise if only some times of a column say how far from UTC they are."""
    for name in written:
        counted = table.backend.execute(
            f"SELECT {name} AS kind, COUNT(*) AS n FROM {records} WHERE reason = 0 AND {name} > 0 GROUP BY {name}"
        )
        rows = {row["kind"]: row["n"] for row in counted.to_pylist()}
        if len(rows) < 2:
            continue
        if copies is not None:
            kind = np.asarray(copies.found.column(name))
            for which in rows:
                rows[which] -= copies.rejected(copies.good & (kind == which)).rows
        raise mixed_offsets(table.name, found[name.removesuffix("_written")], rows[_ZONED], rows[_PLAIN])
