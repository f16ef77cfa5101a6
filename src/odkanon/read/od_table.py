"""OD tables, with ``origin, destination`` and maybe ``trips, weight, person``; and any input as a matrix in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.attributes.spec import AttributeSpec
from odkanon.core.arrays import Bools, Ints
from odkanon.core.sql import quote_name
from odkanon.errors import InputError
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.read.attribute_values import (
    AttributeSql,
    attribute_column,
    compile_attributes,
    source_columns,
    table_to_axes,
    values_to_axes,
)
from odkanon.read.fetching import CheckedRows, checked_rows, drop_rows
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import cells_to_matrix, count_trips
from odkanon.read.tables.column_names import ENDS, missing_columns
from odkanon.read.tables.table import NamedColumns, RowCheck, SourceTable
from odkanon.read.tables.time_formats import TimeColumn
from odkanon.read.trip_checks import MOST_TRIPS, CheckableTable, finite, no_rows, number_or_nan, warn_of_missing
from odkanon.read.trips import OUTSIDE, check_inside, spec_to_trips, time_checks, with_example, without_offsets
from odkanon.read.zone_hierarchy import unknown_codes
from odkanon.zoning.cells import (
    Cells,
    cell_to_parent,
    cell_to_resolution,
    cell_to_str,
    check_resolution,
    is_valid_cell,
    str_to_cell,
)
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import find_nodes

log = logging.getLogger(__name__)

_FRACTION = r"^[^eE]*[.][^eE]*[1-9][^eE]*$"
NO_CELL = "with an id that is no H3 cell"
OWN_CODES = "; for zones with their own codes, give a table of them as hierarchy"
NO_LEAF = "with a zone that the lookup table does not list as a leaf"


def spec_to_matrix(
    spec: InputSpec, *, attributes: Sequence[AttributeSpec] = (), table: SourceTable | None = None
) -> ODMatrix:
    """Read an input, whose table may be open already, into memory, counted by origin, destination and attributes."""
    table = spec.open() if table is None else table
    if spec.detect_kind(table) == "trips":
        trips = spec_to_trips(spec, source_columns(attributes), table=table)
        matrix = count_trips(trips, spec.finest, spec.area, lambda inside: table_to_axes(inside.table, attributes))
    else:
        matrix = _od_table_to_matrix(spec, attributes, table)
    return matrix if spec.place is None else matrix.at_one_place()


def _od_table_to_matrix(spec: InputSpec, attributes: Sequence[AttributeSpec], table: SourceTable) -> ODMatrix:
    found = spec.resolved(table, source_columns(attributes))
    if any(name not in found for name in ENDS):
        raise missing_columns(table, found, ENDS)
    times = spec.times(table, found)
    compiled, check = compile_attributes(attributes, table, found, times), spec.check(table, found, times)
    values = end_texts(found) | compiled.sql | compiled.written
    values |= {name: time.clock for name, time in compiled.times.items()}
    values |= {f"{name} zoned": time.zoned for name, time in compiled.times.items()}
    read_times = {**compiled.times, **(times if spec.uses_hours else {})}
    checks, identity = end_checks(table, found, read_times), end_identity(found, compiled, times)
    rows = checked_rows(table, found, values, checks, where=check, identity=identity)
    source = spec.account(rows.source, table, {*found.values(), *source_columns(attributes)})
    rows = replace(rows, source=with_example(source, table, found, checks))
    rows = without_offsets(table, found, rows, compiled.times)
    warn_of_missing(rows.contributors)
    hierarchy, within = spec.tree, spec.area
    texts = [rows.table.column(name).combine_chunks() for name in ENDS]
    if hierarchy is not None:
        _check_distinct(table, found, rows, texts, compiled)
        return _lookup_matrix(table, rows, texts, hierarchy, attributes)
    ends = [str_to_cell(text) if len(text) else np.empty(0, dtype=np.uint64) for text in texts]
    rows, ends = _drop(rows, is_valid_cell(ends[0]) & is_valid_cell(ends[1]), NO_CELL, ends)
    if len(rows.table) == 0:
        raise no_rows(table, rows.source, OWN_CODES, option="hierarchy FILE")
    _check_distinct(table, found, rows, ends, compiled)
    cells = np.concatenate(ends)
    lifted = same_resolution(table, cells, np.ones(len(cells), np.int64), spec.resolution)
    ends, rows = np.split(lifted, 2), replace(rows, source=rows.with_mean_weight())
    if within is not None:
        rows, ends = _drop(rows, check_inside(within.contains(ends[0]) & within.contains(ends[1])), OUTSIDE, ends)
    return cells_to_matrix((ends[0], ends[1]), within, source=rows.source, **_counted(rows, attributes))


def end_texts(found: Mapping[str, str]) -> dict[str, str]:
    """Return the SQL of the ids of both ends."""
    return {name: f"trim(CAST({quote_name(found[name])} AS VARCHAR))" for name in ENDS}


def end_identity(
    found: Mapping[str, str], compiled: AttributeSql, times: Mapping[str, TimeColumn]
) -> dict[str, str] | None:
    """Return the SQL of values that are equal in repeated records; None where each row is a flow, listed once.

    Repeated records are counted but kept: a person may make a trip twice a day.
    """
    moments = {f"at {name}": time.moment for name, time in times.items()}
    count = {"trips": number_or_nan(found["trips"])} if "trips" in found else {}
    return None if is_flows(found) else end_texts(found) | compiled.written | moments | count


def is_flows(found: Mapping[str, str]) -> bool:
    """Return whether each row is a flow with a number of trips, which may be listed once only."""
    return "trips" in found and "person" not in found


def end_checks(table: CheckableTable, found: Mapping[str, str], times: Iterable[str]) -> list[RowCheck]:
    """Return the row checks of an OD table, of which some times must be readable."""
    absent = " OR ".join(f"{quote_name(found[end])} IS NULL" for end in ENDS)
    checks = [RowCheck("without origin or destination", absent)]
    if "trips" in found:
        column = quote_name(found["trips"])
        number = f"TRY_CAST({column} AS DOUBLE)"
        # As a float, 9.9999999999999999 is 10.
        written = f" OR regexp_matches(CAST({column} AS VARCHAR), '{_FRACTION}')"
        fraction = "" if table.is_whole(found["trips"]) else written
        checks += [
            RowCheck("without a number of trips", f"{column} IS NULL"),
            RowCheck("with trips that are not a number", f"{number} IS NULL OR NOT {finite(number)}"),
            RowCheck("with zero or fewer trips", f"{number} <= 0"),
            RowCheck("with more trips than can be counted", f"{number} > {MOST_TRIPS}"),
            RowCheck("with trips that are not a whole number", f"{number} <> floor({number}){fraction}"),
        ]
    return [*checks, *time_checks(table, found, times)]


def _check_distinct(
    table: SourceTable, found: Mapping[str, str], rows: CheckedRows, ends: list[Any], compiled: AttributeSql
) -> None:
    """Raise if a flow is listed twice, since using one row or their sum would be a guess.

    ``ends`` are codes, or cells, which are equal regardless of their notation.
    """
    if not is_flows(found):
        return
    pairs = rows.table.select(list(compiled.written))
    for name, end in zip(ENDS, ends, strict=True):
        pairs = pairs.append_column(name, pa.array(end))
    counted = pairs.group_by(pairs.column_names).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted.column("count_all"), 1)).sort_by(
        [(name, "ascending") for name in ENDS]
    )
    if len(repeated):
        first = [repeated.column(name).slice(0, 1).to_numpy() for name in ENDS]
        times = repeated.column("count_all")[0].as_py()
        raise repeated_pairs(table, len(repeated), _place_text(first[0]), _place_text(first[1]), times)


def _place_text(place: npt.NDArray[Any]) -> str:
    """Return a cell or a code as text."""
    return str((cell_to_str(place) if place.dtype == np.uint64 else place)[0])


def repeated_pairs(table: NamedColumns, pairs: int, origin: str, destination: str, times: int) -> InputError:
    """Return the error for a table that lists some OD pairs more than once."""
    return InputError(
        f"{table.name} lists {pairs:,} origin-destination pairs more than once (first: {origin} -> {destination}, "
        f"{times} times); add them up first, so that each pair has one row"
    )


def _drop(rows: CheckedRows, good: Bools, reason: str, ends: list[Any]) -> tuple[CheckedRows, list[Any]]:
    return drop_rows(rows, good, reason), ends if good.all() else [end[good] for end in ends]


def same_resolution(table: NamedColumns, cells: Cells, rows: Ints, resolution: int | None) -> Cells:
    """Return cells at one resolution; raise if they mix several and none is given.

    Parameters
    ----------
    rows : array of int
        Rows per cell, for the message.
    resolution : int, optional
        The target resolution.
    """
    level = cell_to_resolution(cells)
    if resolution is not None:
        check_resolution(resolution)
        if level.min() < resolution:
            raise InputError(
                f"{table.name} has cells of resolution {level.min()}, coarser than the requested {resolution}; "
                f"choose {level.min()} or less",
                option=f"resolution {level.min()}",
            )
        return cell_to_parent(cells, resolution)
    if level.min() < level.max():
        counts = np.bincount(level, weights=rows).astype(np.int64)
        listed = ", ".join(f"{counts[at]:,} of resolution {at}" for at in np.unique(level).tolist())
        raise InputError(
            f"{table.name} mixes cells of several resolutions ({listed}); "
            f"aggregate them to the coarsest, resolution {level.min()}",
            option=f"resolution {level.min()}",
        )
    return cells


def _counted(rows: CheckedRows, attributes: Sequence[AttributeSpec]) -> dict[str, Any]:
    """Return the counts of records and their attributes; see `odkanon.model.od.od_matrix`."""
    raw = [rows.table.column(attribute_column(at)) for at in range(len(attributes))]
    axes, codes = values_to_axes(attributes, raw)
    return {
        "trips": rows.count,
        "weight": rows.weight,
        "scale": rows.scale,
        "contributors": rows.contributors,
        "axes": axes,
        "attributes": codes,
    }


def _lookup_matrix(
    table: SourceTable, rows: CheckedRows, texts: list[pa.Array], tree: Hierarchy, attributes: Sequence[AttributeSpec]
) -> ODMatrix:
    ends = [np.asarray(text.to_numpy(zero_copy_only=False), dtype=np.str_) for text in texts]
    known = np.isin(ends[0], tree.leaves) & np.isin(ends[1], tree.leaves)
    message = unknown_codes(np.concatenate(ends), tree.leaves)
    rows, ends = _drop(rows, known, NO_LEAF, ends)
    if len(rows.table) == 0:
        raise no_rows(table, rows.source, f"; {message}" if message else "")
    if message:
        log.warning("%s", message)
    origin, destination = (find_nodes(tree, 0, end).astype(np.int32) for end in ends)
    return od_matrix(tree, tree, origin, destination, source=rows.with_mean_weight(), **_counted(rows, attributes))
