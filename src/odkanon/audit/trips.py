"""The trips behind releases, record by record, for the audit to count for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from odkanon.errors import InputError
from odkanon.read.checks import checked_rows
from odkanon.read.reading import Reading
from odkanon.read.tables.columns import COORDINATES, ENDS
from odkanon.read.tables.open import Check, Table, quote_name
from odkanon.read.trips import trips_of
from odkanon.zoning.cells import cell_to_latlng, cell_to_parent, cell_to_str, is_valid_cell, latlng_to_cell, str_to_cell

TripsSource = Reading
"""A file of trips and how to read it; the same options as when the releases were made."""


@dataclass(frozen=True)
class Pass:
    """What one pass over the file put into the table ``records``."""

    number: int
    sha256: str | None
    measures: tuple[str, ...]
    leaves: list[str]


def load_records(
    connection: duckdb.DuckDBPyConnection,
    source: TripsSource,
    number: int,
    where: str | Sequence[str] | None,
    attributes: Sequence[str],
) -> Pass:
    """Read the trips that a filter keeps into the table ``records<number>``."""
    source = replace(source, where=where)
    table = source.open()
    records, measures = (_trips if source.kind_of(table) == "trips" else _flows)(table, source, attributes)
    name = f"records{number}"
    connection.register("incoming", records)
    connection.execute(f"CREATE TABLE {name} AS SELECT row_number() OVER () AS id, * FROM incoming")
    connection.unregister("incoming")
    distinct = connection.execute(
        f"SELECT DISTINCT origin FROM {name} UNION SELECT DISTINCT destination FROM {name}"
    ).fetchall()
    return Pass(number, table.sha256, measures, sorted(row[0] for row in distinct))


def _trips(table: Table, source: TripsSource, attributes: Sequence[str]) -> tuple[pa.Table, tuple[str, ...]]:
    trips = trips_of(source, attributes, table=table)
    lat_lon = [trips.table.column(name).to_numpy() for name in COORDINATES]
    ends = [latlng_to_cell(lat_lon[at], lat_lon[at + 1], source.finest) for at in (0, 2)]
    extra = {name: trips.table.column(name) for name in (*attributes, "start_time") if name in trips.table.column_names}
    columns = {
        "trips": np.ones(len(trips), dtype=np.int64),
        **_masses(trips.weight, trips.scale, trips.heads.get("persons")),
        **extra,
    }
    return _between_cells(ends, columns, source), _measures(trips.weight, trips.heads.get("persons"))


def _flows(table: Table, source: TripsSource, attributes: Sequence[str]) -> tuple[pa.Table, tuple[str, ...]]:
    if attributes:
        raise InputError("segments can be recounted from trips with coordinates only, not from an OD table")
    found = source.resolved(table)
    values = {name: f"trim(CAST({quote_name(found[name])} AS VARCHAR))" for name in ENDS}
    check = source.check(table, found, source.times(table, found))
    kept = checked_rows(table, found, values, _whole_numbers(found), where=check, identity=None)
    count = np.ones(len(kept.table), dtype=np.int64) if kept.count is None else kept.count
    columns = {"trips": count, **_masses(kept.weight, kept.scale, kept.heads.get("persons"))}
    texts = [kept.table.column(name).combine_chunks() for name in ENDS]
    measures = _measures(kept.weight, kept.heads.get("persons"))
    if source.tree is not None:
        ends = dict(zip(ENDS, texts, strict=True))
        records = pa.table({**ends, **columns})
        known = pa.array(source.tree.leaves.tolist())
        keep = np.logical_and(*(np.asarray(pa.compute.is_in(text, value_set=known)) for text in texts)) & (count > 0)
        return records.filter(pa.array(keep)), measures
    cells = [str_to_cell(text) for text in texts]
    good = is_valid_cell(cells[0]) & is_valid_cell(cells[1]) & (count > 0)
    cells = [cell[good] for cell in cells]
    if source.resolution is not None:
        cells = [cell_to_parent(cell, source.resolution) for cell in cells]
    return _between_cells(cells, {name: _some(values, good) for name, values in columns.items()}, source), measures


def _whole_numbers(found: Mapping[str, str]) -> list[Check]:
    """Turn away counts of trips that are no whole numbers; those below one are left out later."""
    if "trips" not in found:
        return []
    number = f"TRY_CAST({quote_name(found['trips'])} AS DOUBLE)"
    return [Check("with trips that are not a whole number", f"coalesce({number} <> floor({number}), true)")]


def _some(values: Any, which: Any) -> Any:
    return values[which] if isinstance(values, np.ndarray) else values.filter(pa.array(which))


def _masses(weight: Any, scale: int, person: Any) -> dict[str, Any]:
    """Return weights in units, so that sums are exact, and persons as numbers with null for nobody."""
    columns: dict[str, Any] = {"scale": None, "weight": None, "person": None}
    if weight is not None:
        columns["weight"] = weight
    if person is not None:
        columns["person"] = pa.array(person, mask=person < 0)
    count = len(weight) if weight is not None else len(person) if person is not None else None
    columns["scale"] = None if count is None else np.full(count, scale)
    return {name: values for name, values in columns.items() if values is not None}


def _measures(weight: Any, person: Any) -> tuple[str, ...]:
    return ("trips", *(["weight"] if weight is not None else []), *(["persons"] if person is not None else []))


def _between_cells(ends: list[Any], columns: dict[str, Any], source: TripsSource) -> pa.Table:
    records = pa.table({"origin": cell_to_str(ends[0]), "destination": cell_to_str(ends[1]), **columns})
    area = source.area
    return records if area is None else records.filter(pa.array(area.contains(ends[0]) & area.contains(ends[1])))


def add_centres(connection: duckdb.DuckDBPyConnection, leaves: list[str]) -> None:
    """Make the table ``centres`` of the middle of each leaf cell, which decides in which box it is."""
    lat, lon = cell_to_latlng(str_to_cell(pa.array(leaves, pa.string())))
    connection.register("incoming", pa.table({"leaf": leaves, "lat": lat, "lon": lon}))
    connection.execute("CREATE OR REPLACE TABLE centres AS FROM incoming")
    connection.unregister("incoming")
