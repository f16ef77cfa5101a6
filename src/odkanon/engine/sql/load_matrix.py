"""Tables of trips to OD matrices in a database, and the matrix of checked records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.attributes.spec import AttributeSpec
from odkanon.core.arrays import Ints
from odkanon.engine.sql.backend import Backend, StoredTable, Subquery, store_query, upload_columns
from odkanon.engine.sql.cell_workers import LOCATED_ENDS, DegreeConverter, Placement
from odkanon.engine.sql.duplicates import Duplicates, find_duplicates, offset_attributes, refuse_mixed_offsets
from odkanon.engine.sql.engine import axis_columns, leaf_keys, query_totals, sum_bigint
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.engine.sql.row_checks import RowPlan, SqlInput, account_for_rows, plan_rows
from odkanon.model.od import AXES
from odkanon.model.provenance import Rejected, Source, Summary
from odkanon.read.area import Area
from odkanon.read.attribute_values import attribute_column, compile_attributes, source_columns, values_to_axis
from odkanon.read.coordinates import (
    SAMPLE,
    check_crs,
    check_not_degrees,
    ends_in_degrees,
    hint_at_swap,
    off_globe,
    warn_of_places,
    warn_of_reference_system,
)
from odkanon.read.input_spec import InputSpec
from odkanon.read.person_ids import value_text
from odkanon.read.polygon_zoning import OUTSIDE_ZONES
from odkanon.read.tables.column_names import COORDINATES, attribute_columns, missing_columns
from odkanon.read.trip_checks import example_of, no_rows, warn_of_missing_ids
from odkanon.read.trips import OUTSIDE, check_inside, trip_checks, trip_identity, trip_values, with_example
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Hierarchy, h3_hierarchy
from odkanon.zoning.point_location import CellFinder


def load_trips(table: SqlInput, reading: InputSpec, attributes: Sequence[AttributeSpec] = ()) -> SqlMatrix:
    """Return the OD matrix, in a database, of trips with coordinates.

    Checks and counts are those of `odkanon.read_trips` with `odkanon.build_od`.
    """
    found = reading.resolved(table, source_columns(attributes))
    if any(name not in found for name in COORDINATES):
        raise missing_columns(table, found, COORDINATES)
    crs = reading.crs
    if crs is not None:
        check_crs(crs)
    times = reading.times(table, found)
    kept = attribute_columns(table, found, source_columns(attributes))
    values, written = trip_values(found, times), offset_attributes(times)
    answers = compile_attributes(attributes, table, found, times).sql
    identity = trip_identity(found, times) | {name: value_text(column) for name, column in kept.items()} | written
    where = reading.check(table, found, times)
    checks = trip_checks(table, found, degrees=crs is None, times=reading.uses_hours)
    rows = plan_rows(table, found, checks, where=where, identity=identity)
    ends = {name: values[name] for name in COORDINATES}
    some = _some_ends(table, rows, ends)
    if crs is not None:
        check_not_degrees(some, crs)
    placement = _placement(reading, len(rows.reasons))
    records = table.place(ends | rows.fingerprint | written | answers | rows.columns, rows.count, placement)
    contributors = {name: rows.columns[name] for name in rows.contributors}
    copies = find_duplicates(table, rows, records, ends, written | answers | contributors, placement)
    source = reading.account(_account(table, rows, records, copies, crs), table, {*found.values(), *kept.values()})
    source = with_example(source, table, found, checks)
    hint_at_swap(source.rejected)
    if source.rows == sum(part.rows for part in source.rejected.values()):
        if reading.polygons is not None and OUTSIDE_ZONES in source.rejected:
            raise reading.polygons.nowhere()
        raise no_rows(table, source, example=example_of(table, found, checks, source.rejected))
    refuse_mixed_offsets(table, found, records, written, copies)
    if crs is not None:
        degrees, good = ends_in_degrees(some, crs)
        some, given = ([values[good] for values in each] for each in (degrees, some))
        warn_of_reference_system(given, some, crs)
    warn_of_places(some, first=len(some[0]) < source.rows - sum(part.rows for part in source.rejected.values()))
    less = None if copies is None else copies.corrections(table.backend, [*answers, *contributors])
    return build_matrix(
        table.backend,
        rows,
        records,
        less,
        source,
        within=reading.area,
        tree=reading.tree,
        attributes=attributes,
        located=placement.is_located,
    )


def _placement(reading: InputSpec, reasons: int) -> Placement:
    """Return how places are found, with the reasons to reject rows then numbered after the others."""
    degrees = None if reading.crs is None else DegreeConverter(reading.crs, reasons + 1)
    if reading.polygons is None:
        return Placement(CellFinder(reading.finest), degrees)
    return Placement(reading.polygons.finder, degrees, reasons + 2)


def _account(
    table: SqlInput, rows: RowPlan, records: StoredTable, copies: Duplicates | None, crs: str | None
) -> Source:
    """Return the rejected rows by reason; a duplicate counts as such even if it has no place."""
    late = (off_globe(crs or ""), OUTSIDE_ZONES)
    rows = replace(rows, reasons=(*rows.reasons, *late))
    source = account_for_rows(table, rows, records, Rejected(0, 0) if copies is None else copies.rejected())
    rejected = dict(source.rejected)
    lost = [rejected.pop(reason, Rejected(0, 0)) for reason in late]
    source = replace(source, rejected=rejected)
    for number, (reason, part) in enumerate(zip(late, lost, strict=True), 1):
        twice = Rejected(0, 0) if copies is None else copies.rejected(copies.late == number)
        part = Rejected(part.rows - twice.rows, part.trips - twice.trips, part.weight - twice.weight)
        source = source.reject(reason, part)
    return source


def _some_ends(table: SqlInput, rows: RowPlan, ends: Mapping[str, str]) -> list[Floats]:
    """Return ``start_lat, start_lon, end_lat, end_lon`` of some trips, as they are in the table."""
    some = table.query(
        {**ends, "reason": rows.columns["reason"]},
        lambda rows: f"SELECT {', '.join(COORDINATES)} FROM {rows} r WHERE reason = 0 LIMIT {SAMPLE}",
    )
    return [np.asarray(some.column(name), dtype=np.float64) for name in COORDINATES]


def build_matrix(
    backend: Backend,
    rows: RowPlan,
    records: StoredTable,
    copies: StoredTable | None,
    source: Source,
    *,
    within: Area | None = None,
    tree: Hierarchy | None = None,
    attributes: Sequence[AttributeSpec] = (),
    located: bool = False,
) -> SqlMatrix:
    """Return the matrix of valid records, or of those inside an area.

    * ``records``: ``origin, destination, reason``, the counted columns and the value of each attribute; places are H3
      cells, or numbers of leaves of ``tree``.
    * ``copies``: negative counts that cancel duplicates: ``origin, destination``, attributes, contributors and
      ``records, trips, weight``.
    * ``located``: whether records and copies have `LOCATED_ENDS` as well.
    """
    ends = ", ".join(axis_columns(len(attributes)))
    every = ", ".join([ends, *(LOCATED_ENDS if located else ())])
    weighted = "weight" in rows.columns
    masses = ("records", "trips", "weight") if weighted else ("records", "trips")
    trips = "trips" if "trips" in rows.columns else "1"
    own = f"{trips} AS trips{', weight' * weighted}"
    good = f"SELECT {every}, 1 AS records, {own} FROM {records} WHERE reason = 0"
    if copies is not None:
        good = f"{good} UNION ALL SELECT {every}, {', '.join(masses)} FROM {copies}"
    contributions = {
        name: f"SELECT {ends}, {name} AS contributor, {own} FROM {records} WHERE reason = 0 AND {name} IS NOT NULL"
        for name in rows.contributors
    }
    if copies is not None:
        contributions = {
            name: f"{own_ones} UNION ALL SELECT {ends}, {name} AS contributor, {', '.join(masses[1:])} FROM {copies} "
            f"WHERE {name} IS NOT NULL"
            for name, own_ones in contributions.items()
        }
    if within is not None:
        inside = _places_inside(backend, records, within)
        source = _without_outside(backend, good, inside, masses, source, rows.scale)
        good = _inside(good, inside)
        contributions = {name: _inside(relation, inside) for name, relation in contributions.items()}
        keep: tuple[StoredTable, ...] = (records, inside)
    else:
        keep = (records,)
    keep = keep if copies is None else (*keep, copies)
    axes, numbers = _axes(backend, good, attributes)
    scale, sums = rows.scale if weighted else None, ", ".join(f"{sum_bigint(name)} AS {name}" for name in masses[1:])
    finer = None
    if located:
        cells = ", ".join(f"{cell} AS {axis}" for cell, axis in zip(LOCATED_ENDS, AXES, strict=True))
        query = f"SELECT {cells}, 1 AS pairs, {sums} FROM ({good}) g GROUP BY {', '.join(LOCATED_ENDS)}"
        finer = _matrix(backend, store_query(backend, query), {}, source, scale, None, None)
    good = _coded(good, numbers, masses)
    contributions = {
        name: _coded(relation, numbers, ["contributor", *masses[1:]]) for name, relation in contributions.items()
    }
    pairs = store_query(backend, f"SELECT {ends}, 1 AS pairs, {sums} FROM ({good}) g GROUP BY {ends}")
    subqueries = {name: Subquery(relation, *keep, *numbers) for name, relation in contributions.items()}
    _warn_of_missing(backend, rows.contributors, records, copies)
    return replace(_matrix(backend, pairs, subqueries, source, scale, tree, within), axes=axes, finer=finer)


def _warn_of_missing(
    backend: Backend, contributors: Sequence[str], records: StoredTable, copies: StoredTable | None
) -> None:
    """Warn if many records, duplicates left aside, name no contributor."""
    for name in contributors:
        every = f"SELECT 1 AS records, {name} AS contributor FROM {records} WHERE reason = 0"
        if copies is not None:
            every = f"{every} UNION ALL SELECT records, {name} AS contributor FROM {copies}"
        found = backend.execute(
            "SELECT CAST(SUM(records) AS BIGINT) AS n, "
            f"CAST(SUM(CASE WHEN contributor IS NULL THEN records ELSE 0 END) AS BIGINT) AS nobody FROM ({every}) r"
        ).to_pylist()[0]
        warn_of_missing_ids(name, found["nobody"], found["n"])


def _matrix(
    backend: Backend,
    pairs: StoredTable,
    contributions: Mapping[str, Subquery],
    source: Source,
    scale: int | None,
    tree: Hierarchy | None,
    within: Area | None,
) -> SqlMatrix:
    keys = leaf_keys(backend, pairs, "origin"), leaf_keys(backend, pairs, "destination")
    if tree is None:
        origins, destinations = (replace(h3_hierarchy(key.astype(np.uint64)), within=within) for key in keys)
    else:
        origins, destinations = (_observed(tree, key) for key in keys)
    whole = query_totals(backend, str(pairs), ("pairs", "trips") if scale is None else ("pairs", "trips", "weight"))
    contributors = {
        name: int(
            backend.execute(f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT contributor FROM {each} v) p")["n"][0].as_py()
        )
        for name, each in contributions.items()
    }
    if whole.weight_units is not None and source.mean_weight is None and whole.trips:
        # Of the whole input: zones are a part of it, as an area is.
        outside = source.rejected.get(OUTSIDE_ZONES, Rejected(0, 0))
        trips, weight = whole.trips + outside.trips, whole.weight_units + outside.weight
        source = replace(source, mean_weight=Fraction(weight, trips * (scale or 1)))
    summary = Summary(whole.pairs, whole.trips, whole.weight_units, contributors, scale or 1, source)
    return SqlMatrix(backend, origins, destinations, keys, pairs, contributions, summary)


def _observed(tree: Hierarchy, leaf: Ints) -> Hierarchy:
    keep = np.zeros(len(tree.leaves), dtype=bool)
    keep[leaf] = True
    return tree if keep.all() else tree.restrict(keep)


def _places_inside(backend: Backend, records: StoredTable, within: Area) -> StoredTable:
    ends = [f"SELECT {axis} AS place FROM {records} WHERE reason = 0" for axis in ("origin", "destination")]
    found = backend.execute(f"SELECT DISTINCT place FROM ({' UNION ALL '.join(ends)}) p").column("place").to_numpy()
    return upload_columns(backend, place=found[within.contains(found.astype(np.uint64))])


def _inside(relation: str, inside: StoredTable) -> str:
    joins = f"JOIN {inside} a ON r.origin = a.place JOIN {inside} b ON r.destination = b.place"
    return f"SELECT r.* FROM ({relation}) r {joins}"


def _axes(
    backend: Backend, good: str, attributes: Sequence[AttributeSpec]
) -> tuple[tuple[AttributeAxis, ...], tuple[StoredTable, ...]]:
    """Return the axes of the attributes, and for each a table of the texts that occur and the codes of their values."""
    axes, numbers = [], []
    for at, attribute in enumerate(attributes):
        found = backend.execute(f"SELECT DISTINCT {attribute_column(at)} AS answer FROM ({good}) r").column("answer")
        axis, code = values_to_axis(attribute, np.asarray(found.to_pylist(), dtype=np.str_))
        axes.append(axis)
        numbers.append(upload_columns(backend, answer=found, code=code.astype(np.int64)))
    return tuple(axes), tuple(numbers)


def _coded(relation: str, numbers: Sequence[StoredTable], counted: Sequence[str]) -> str:
    """Return a query with codes instead of the texts of attributes."""
    if not numbers:
        return relation
    codes = ", ".join(f"k{at}.code AS {attribute_column(at)}" for at in range(len(numbers)))
    joins = " ".join(f"JOIN {each} k{at} ON r.{attribute_column(at)} = k{at}.answer" for at, each in enumerate(numbers))
    others = ", ".join(f"r.{name}" for name in (*AXES, *counted))
    return f"SELECT {codes}, {others} FROM ({relation}) r {joins}"


def _without_outside(
    backend: Backend, good: str, inside: StoredTable, masses: tuple[str, ...], source: Source, scale: int
) -> Source:
    sums = ", ".join(f"CAST(COALESCE(SUM({name}), 0) AS BIGINT) AS {name}" for name in masses)
    every, kept = (
        backend.execute(f"SELECT {sums} FROM ({relation}) r").to_pylist()[0]
        for relation in (good, _inside(good, inside))
    )
    check_inside(np.array([kept["records"] > 0]))
    if "weight" in every:
        source = replace(source, mean_weight=Fraction(every["weight"], every["trips"] * scale))
    return source.reject(OUTSIDE, Rejected(*(every[name] - kept[name] for name in masses)))
