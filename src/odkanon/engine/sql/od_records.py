"""Tables of records between zones to OD matrices in a database.

Zones are few even if records are many, so zones are checked in Python and records in the database.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from odkanon.attributes.spec import AttributeSpec
from odkanon.core.arrays import Bools, Ints
from odkanon.engine.sql.backend import StoredTable, store_query, upload_columns
from odkanon.engine.sql.duplicates import offset_attributes, refuse_mixed_offsets
from odkanon.engine.sql.load_matrix import build_matrix
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.engine.sql.row_checks import RowPlan, SqlInput, account_for_rows, plan_rows
from odkanon.model.provenance import Rejected, Source
from odkanon.read.attribute_values import compile_attributes, source_columns
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_table import (
    NO_CELL,
    NO_LEAF,
    OWN_CODES,
    end_checks,
    end_identity,
    end_texts,
    is_flows,
    repeated_pairs,
    same_resolution,
)
from odkanon.read.tables.column_names import ENDS, missing_columns
from odkanon.read.trip_checks import no_rows
from odkanon.read.trips import with_example
from odkanon.read.zone_hierarchy import unknown_codes
from odkanon.zoning.cells import cell_to_resolution, cell_to_str, is_valid_cell, str_to_cell
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import find_nodes

log = logging.getLogger(__name__)


def load_od(table: SqlInput, reading: InputSpec, attributes: Sequence[AttributeSpec] = ()) -> SqlMatrix:
    """Return the OD matrix, in a database, of records between zones; the counts are those of `odkanon.read_matrix`."""
    found = reading.resolved(table, source_columns(attributes))
    if any(name not in found for name in ENDS):
        raise missing_columns(table, found, ENDS)
    times, hierarchy = reading.times(table, found), reading.tree
    asked, where = compile_attributes(attributes, table, found, times), reading.check(table, found, times)
    identity = end_identity(found, asked, times)
    checks = end_checks(table, found, {**asked.times, **(times if reading.uses_hours else {})})
    rows = plan_rows(table, found, checks, where=where, identity=identity)
    zoned = offset_attributes(asked.times)
    read = table.keep(end_texts(found) | rows.fingerprint | asked.sql | asked.written | zoned | rows.columns)
    refuse_mixed_offsets(table, found, read, zoned, None)
    used = {*found.values(), *source_columns(attributes)}
    source = reading.account(account_for_rows(table, rows, read, Rejected(0, 0)), table, used)
    source = with_example(source, table, found, checks)
    texts = _distinct_texts(table, read)
    reason, unknown = (NO_CELL, "") if hierarchy is None else (NO_LEAF, "")
    if hierarchy is None:
        cells = str_to_cell(texts) if len(texts) else np.empty(0, dtype=np.uint64)
        known: Bools = is_valid_cell(cells)
        keys: Ints = cells.view(np.int64)
    else:
        names = np.asarray(texts.to_numpy(zero_copy_only=False), dtype=np.str_)
        known = np.isin(names, hierarchy.leaves)
        unknown = unknown_codes(names, hierarchy.leaves)
        keys = np.full(len(names), -1, dtype=np.int64)
        keys[known] = find_nodes(hierarchy, 0, names[known])
    places = upload_columns(table.backend, name=texts, place=keys, known=known.astype(np.int32))
    if is_flows(found):
        _check_distinct(table, read, places, list(asked.written), hierarchy)
    columns = [*rows.columns, *asked.sql]
    records = _placed(table, columns, read, places, len(rows.reasons) + 1)
    source = _with_unknown(table, rows, records, source, reason)
    if not _any_good(table, records):
        if hierarchy is not None:
            raise no_rows(table, source, f"; {unknown}" if unknown else "")
        raise no_rows(table, source, OWN_CODES, option="hierarchy FILE")
    if unknown:
        log.warning("%s", unknown)
    if hierarchy is None:
        records = _lift(table, columns, records, reading.resolution)
    return build_matrix(
        table.backend, rows, records, None, source, within=reading.area, tree=hierarchy, attributes=attributes
    )


def _check_distinct(
    table: SqlInput, read: StoredTable, places: StoredTable, written: Sequence[str], tree: Hierarchy | None
) -> None:
    """Raise if a pair (with the same attributes) is listed twice, however its places are written."""
    by = ", ".join(["a.place", "b.place", *(f"r.{name}" for name in written)])
    found = table.backend.execute(
        f"SELECT a.place AS origin, b.place AS destination, COUNT(*) AS n FROM {read} r "
        f"JOIN {places} a ON r.origin = a.name JOIN {places} b ON r.destination = b.name "
        f"WHERE r.reason = 0 AND a.known = 1 AND b.known = 1 GROUP BY {by} HAVING COUNT(*) > 1 ORDER BY 1, 2"
    )
    if len(found):
        first = [found.column(end).slice(0, 1).to_numpy() for end in ENDS]
        names = [cell_to_str(at.view(np.uint64)) if tree is None else tree.leaves[at] for at in first]
        raise repeated_pairs(table, len(found), str(names[0][0]), str(names[1][0]), found.column("n")[0].as_py())


def _distinct_texts(table: SqlInput, read: StoredTable) -> pa.Array:
    ends = " UNION ALL ".join(f"SELECT {end} AS name FROM {read} WHERE reason = 0" for end in ENDS)
    found = table.backend.execute(f"SELECT DISTINCT name FROM ({ends}) e").column("name")
    return pa.array(found.to_pylist(), pa.string())


def _placed(
    table: SqlInput, columns: Sequence[str], read: StoredTable, places: StoredTable, unknown: int
) -> StoredTable:
    """Return the records with the numbers of their zones, or the reason ``unknown`` if they have none."""
    counted = "".join(f", r.{name}" for name in columns if name != "reason")
    return store_query(
        table.backend,
        f"SELECT a.place AS origin, b.place AS destination{counted}, CASE WHEN r.reason > 0 THEN r.reason "
        f"WHEN a.known = 1 AND b.known = 1 THEN 0 ELSE {unknown} END AS reason FROM {read} r "
        f"LEFT JOIN {places} a ON r.origin = a.name LEFT JOIN {places} b ON r.destination = b.name",
    )


def _with_unknown(table: SqlInput, rows: RowPlan, records: StoredTable, source: Source, reason: str) -> Source:
    extended = replace(rows, reasons=(*rows.reasons, reason), copies=replace(rows.copies, same={}))
    rejected = account_for_rows(table, extended, records, Rejected(0, 0)).rejected
    return source.reject(reason, rejected.get(reason, Rejected(0, 0)))


def _any_good(table: SqlInput, records: StoredTable) -> bool:
    return bool(len(table.backend.execute(f"SELECT 1 AS one FROM {records} WHERE reason = 0 LIMIT 1")))


def _lift(table: SqlInput, columns: Sequence[str], records: StoredTable, resolution: int | None) -> StoredTable:
    """Return the records with all finer cells lifted to one resolution."""
    ends = " UNION ALL ".join(f"SELECT {end} AS place FROM {records} WHERE reason = 0" for end in ENDS)
    found = table.backend.execute(f"SELECT place, COUNT(*) AS n FROM ({ends}) e GROUP BY place")
    cells = found.column("place").to_numpy().astype(np.uint64)
    levels = cell_to_resolution(cells)
    lifted = same_resolution(table, cells, found.column("n").to_numpy(), resolution)
    if resolution is None or (levels == resolution).all():
        return records
    places = upload_columns(table.backend, name=cells.view(np.int64), place=lifted.view(np.int64))
    counted = "".join(f", r.{name}" for name in columns)
    return store_query(
        table.backend,
        f"SELECT a.place AS origin, b.place AS destination{counted} FROM {records} r "
        f"JOIN {places} a ON r.origin = a.name JOIN {places} b ON r.destination = b.name WHERE r.reason = 0",
    )
