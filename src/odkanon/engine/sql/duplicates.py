"""Exact duplicates of trips, and mixed UTC offsets: checks across all rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools, Ints
from odkanon.engine.sql.backend import Backend, StoredTable, upload_columns
from odkanon.engine.sql.cell_workers import LOCATED_ENDS, Placement
from odkanon.engine.sql.row_checks import RowPlan, SqlInput
from odkanon.model.od import AXES
from odkanon.model.provenance import Rejected
from odkanon.read.coordinates import ends_in_degrees
from odkanon.read.tables.column_names import COORDINATES
from odkanon.read.tables.time_formats import TimeColumn, mixed_offsets
from odkanon.zoning.point_location import NOWHERE

_ZONED, _PLAIN = 1, 2


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Trips that repeat another of the same person, one row for each repeated trip."""

    found: pa.Table
    """``extra`` (the number of repetitions), ``weight`` (of each), the format of times, and further columns."""
    ends: list[Ints]
    """The places of the ends, and their `LOCATED_ENDS`."""
    late: Ints
    """0 for good ones, 1 for those nowhere on the globe, 2 for those outside all zones."""

    @property
    def good(self) -> Bools:
        """Whether both ends have a place."""
        good: Bools = self.late == 0
        return good

    def rejected(self, which: Bools | None = None) -> Rejected:
        """Return the total of all or some of them."""
        extra, units = (np.asarray(self.found.column(name)).astype(np.int64) for name in ("extra", "weight"))
        extra = extra if which is None else extra * which
        return Rejected(int(extra.sum()), int(extra.sum()), int((extra * units).sum()))

    def corrections(self, backend: Backend, columns: Sequence[str] = ()) -> StoredTable:
        """Return negative counts by origin, destination and some columns that cancel the duplicates."""
        extra, units = (np.asarray(self.found.column(name)).astype(np.int64)[self.good] for name in ("extra", "weight"))
        return upload_columns(
            backend,
            **{name: end[self.good] for name, end in zip((*AXES, *LOCATED_ENDS), self.ends, strict=False)},
            **{name: self.found.column(name).filter(pa.array(self.good)) for name in columns},
            records=-extra,
            trips=-extra,
            weight=-extra * units,
        )


def find_duplicates(
    table: SqlInput,
    rows: RowPlan,
    records: StoredTable,
    ends: Mapping[str, str],
    columns: Mapping[str, str],
    placement: Placement,
) -> Duplicates | None:
    """Return exact duplicates; None if there are none, or if they are not looked for.

    Usually no fingerprint is repeated; only rows with a repeated one are compared in full. Further ``columns`` (SQL by
    name) are added to the result; duplicates agree in them.
    """
    if not rows.copies.same or not rows.copies.detects_duplicates:
        return None
    suspects = table.backend.repeated(records, "fingerprint")
    if len(suspects) == 0:
        return None
    weight = rows.columns.get("weight", "0")
    same = {f"same_{number}": expression for number, expression in enumerate(rows.copies.same.values())}
    further = "".join(f", MIN({name}) AS {name}" for name in columns)
    found = table.query(
        {**ends, **same, **columns, "weight": weight, "reason": rows.columns["reason"], **rows.fingerprint},
        lambda source: (
            f"SELECT {', '.join(COORDINATES)}, MIN(weight) AS weight, COUNT(*) - 1 AS extra{further} FROM {source} s "
            f"JOIN suspects u ON s.fingerprint = u.value WHERE reason = 0 GROUP BY {', '.join([*COORDINATES, *same])} "
            "HAVING COUNT(*) > 1"
        ),
        suspects=suspects,
    )
    if len(found) == 0:
        return None
    lat_lon = [np.asarray(found.column(name)) for name in COORDINATES]
    good: Bools = np.ones(len(found), dtype=bool)
    if placement.degrees is not None:
        lat_lon, good = ends_in_degrees(lat_lon, placement.degrees.crs)
        lat_lon = [np.where(good, values, 0.0) for values in lat_lon]
    places = placement.places(lat_lon)
    outside = (places[0] == NOWHERE) | (places[1] == NOWHERE)
    return Duplicates(found, places, np.where(good, np.where(outside, 2, 0), 1))


def offset_attributes(times: Mapping[str, TimeColumn]) -> dict[str, str]:
    """Return the SQL, by name, that distinguishes times with and without a UTC offset, for columns that allow both."""
    return {
        f"{name}_written": f"CASE WHEN {time.clock} IS NULL THEN 0 WHEN {time.zoned} THEN {_ZONED} ELSE {_PLAIN} END"
        for name, time in times.items()
        if time.zoned != "false"
    }


def refuse_mixed_offsets(
    table: SqlInput,
    found: Mapping[str, str],
    records: StoredTable,
    written: Mapping[str, str],
    copies: Duplicates | None,
) -> None:
    """Raise if only some times of a column have a UTC offset."""
    for name in written:
        counted = table.backend.execute(
            f"SELECT {name} AS format, COUNT(*) AS n FROM {records} WHERE reason = 0 AND {name} > 0 GROUP BY {name}"
        )
        rows = {row["format"]: row["n"] for row in counted.to_pylist()}
        if len(rows) < 2:
            continue
        if copies is not None:
            written_as = np.asarray(copies.found.column(name))
            for which in rows:
                rows[which] -= copies.rejected(copies.good & (written_as == which)).rows
        raise mixed_offsets(table.name, found[name.removesuffix("_written")], rows[_ZONED], rows[_PLAIN])
