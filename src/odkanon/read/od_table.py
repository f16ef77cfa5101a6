"""Tables of records between zones: ``origin, destination`` and, where there are such, ``trips, weight, person``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Bools, Ints
from odkanon.errors import InputError
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.read.area import Area
from odkanon.read.attributes.spec import (
    Answers,
    AttributeSpec,
    answers_of,
    attribute_column,
    axes_of_answers,
    sources_of,
)
from odkanon.read.diagnostics import no_rows, warn_of_missing
from odkanon.read.input_spec import InputSpec
from odkanon.read.tables.column_names import ENDS, missing
from odkanon.read.tables.open_table import Check, Named, Table, quote_name
from odkanon.read.tables.time_formats import TimeColumn
from odkanon.read.trip_checks import MOST_TRIPS, Checkable, Checked, checked_rows, drop_rows, finite, number_or_nan
from odkanon.read.trips import OUTSIDE, check_inside, od_between, time_checks, without_offsets
from odkanon.read.zone_codes import unknown_codes
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
OWN_CODES = "; for zones with codes of their own, give a table of them as hierarchy"
NO_LEAF = "with a zone that the lookup table does not list as a leaf"


def read_od(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    hierarchy: Hierarchy | None = None,
    resolution: int | None = None,
    within: Area | None = None,
    where: str | Sequence[str] | None = None,
    **how: Any,
) -> ODMatrix:
    """Read a table of flows or trips between zones.

    Parameters
    ----------
    source : path or table
        CSV, gzipped CSV or Parquet; or a table of pandas, polars, Arrow or DuckDB. With a ``trips`` column each
        row is a pair and may occur once; without, each row is one trip.
    hierarchy : Hierarchy, optional
        The tree over zone codes; by default zones are H3 cells, as text or as integers.
    resolution : int, optional
        Lift finer H3 cells to this resolution first.
    within : Area, optional
        Keep records with both ends inside; for H3 cells.
    columns, where, **how
        How to read it; see `odkanon.InputSpec`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import lookup_hierarchy
    >>> tree = lookup_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}
    >>> read_od(pa.table(flows), hierarchy=tree).trips
    25
    """
    return od_of(InputSpec(source, columns, where, within, resolution, hierarchy, **how))


def od_of(reading: InputSpec, attributes: Sequence[AttributeSpec] = (), *, table: Table | None = None) -> ODMatrix:
    """Read the records between zones of an input, which may be open already; see `read_od`.

    With kinds, records are counted by these as well.
    """
    table = reading.open() if table is None else table
    found = reading.resolved(table, sources_of(attributes))
    if any(name not in found for name in ENDS):
        raise missing(table, found, ENDS)
    times = reading.times(table, found)
    asked, check = answers_of(attributes, table, found, times), reading.check(table, found, times)
    values = end_texts(found) | asked.sql | asked.written
    values |= {name: time.clock for name, time in asked.times.items()}
    values |= {f"{name} zoned": time.zoned for name, time in asked.times.items()}
    rows = checked_rows(
        table, found, values, end_checks(table, found, asked), where=check, identity=end_identity(found, asked, times)
    )
    rows = replace(rows, source=reading.account(rows.source, table.lines))
    rows = without_offsets(table, found, rows, asked.times)
    warn_of_missing(rows.contributors)
    hierarchy, resolution, within = reading.tree, reading.resolution, reading.area
    texts = [rows.table.column(name).combine_chunks() for name in ENDS]
    if hierarchy is not None:
        _check_distinct(table, found, rows, texts, asked)
        return _lookup_od(table, rows, texts, hierarchy, attributes)
    ends = [str_to_cell(text) if len(text) else np.empty(0, dtype=np.uint64) for text in texts]
    rows, ends = _drop(rows, is_valid_cell(ends[0]) & is_valid_cell(ends[1]), NO_CELL, ends)
    if len(rows.table) == 0:
        raise no_rows(table, rows.source, OWN_CODES, option="hierarchy FILE")
    _check_distinct(table, found, rows, ends, asked)
    cells = np.concatenate(ends)
    origin, destination = np.split(same_resolution(table, cells, np.ones(len(cells), np.int64), resolution), 2)
    ends, rows = [origin, destination], replace(rows, source=rows.with_mean_weight())
    if within is not None:
        rows, ends = _drop(rows, check_inside(within.contains(origin) & within.contains(destination)), OUTSIDE, ends)
    return od_between((ends[0], ends[1]), within, source=rows.source, **_counted(rows, attributes))


def end_texts(found: Mapping[str, str]) -> dict[str, str]:
    """Return the SQL expressions of the ids of both ends."""
    return {name: f"trim(CAST({quote_name(found[name])} AS VARCHAR))" for name in ENDS}


def end_identity(found: Mapping[str, str], asked: Answers, times: Mapping[str, TimeColumn]) -> dict[str, str] | None:
    """Return what makes two records the same; None where rows are pairs, each of which may be listed once.

    Such records are counted, not turned away: on one day a person may go twice from one zone to another.
    """
    moments = {f"at {name}": time.moment for name, time in times.items()}
    count = {"trips": number_or_nan(found["trips"])} if "trips" in found else {}
    return None if is_flows(found) else end_texts(found) | asked.written | moments | count


def is_flows(found: Mapping[str, str]) -> bool:
    """Tell whether each row is a pair with a number of trips, which may be listed once."""
    return "trips" in found and "person" not in found


def end_checks(table: Checkable, found: Mapping[str, str], asked: Answers) -> list[Check]:
    """Return the reasons to turn a record between zones away."""
    checks = [Check("without origin or destination", " OR ".join(f"{quote_name(found[end])} IS NULL" for end in ENDS))]
    if "trips" in found:
        column = quote_name(found["trips"])
        number = f"TRY_CAST({column} AS DOUBLE)"
        # A float takes 9.9999999999999999 for 10.
        written = f" OR regexp_matches(CAST({column} AS VARCHAR), '{_FRACTION}')"
        fraction = "" if table.is_whole(found["trips"]) else written
        checks += [
            Check("without a number of trips", f"{column} IS NULL"),
            Check("with trips that are not a number", f"{number} IS NULL OR NOT {finite(number)}"),
            Check("with zero or fewer trips", f"{number} <= 0"),
            Check("with more trips than can be counted", f"{number} > {MOST_TRIPS}"),
            Check("with trips that are not a whole number", f"{number} <> floor({number}){fraction}"),
        ]
    return [*checks, *time_checks(table, found, asked.times)]


def _check_distinct(table: Table, found: Mapping[str, str], rows: Checked, ends: list[Any], asked: Answers) -> None:
    """Refuse a pair (of one kind) that is listed twice: which row to believe, or to add them up, would be a guess.

    ``ends`` are codes, or cells, which are the same in whatever way they are written.
    """
    if not is_flows(found):
        return
    pairs = rows.table.select(list(asked.written))
    for name, end in zip(ENDS, ends, strict=True):
        pairs = pairs.append_column(name, pa.array(end))
    counted = pairs.group_by(pairs.column_names).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted.column("count_all"), 1)).sort_by(
        [(name, "ascending") for name in ENDS]
    )
    if len(repeated):
        first = [repeated.column(name).slice(0, 1).to_numpy() for name in ENDS]
        times = repeated.column("count_all")[0].as_py()
        raise repeated_pairs(table, len(repeated), _code(first[0]), _code(first[1]), times)


def _code(place: npt.NDArray[Any]) -> str:
    """Return how a place is written, a cell or a code."""
    return str((cell_to_str(place) if place.dtype == np.uint64 else place)[0])


def repeated_pairs(table: Named, pairs: int, origin: str, destination: str, times: int) -> InputError:
    """Return the error for a table that lists some pairs more than once."""
    return InputError(
        f"{table.name} lists {pairs:,} origin-destination pairs more than once (first: {origin} -> {destination}, "
        f"{times} times); add them up first, so that each pair has one row"
    )


def _drop(rows: Checked, good: Bools, reason: str, ends: list[Any]) -> tuple[Checked, list[Any]]:
    return drop_rows(rows, good, reason), ends if good.all() else [end[good] for end in ends]


def same_resolution(table: Named, cells: Cells, rows: Ints, resolution: int | None) -> Cells:
    """Return cells lifted to one resolution, or as they are if they all have the same.

    Parameters
    ----------
    rows : array of int
        How many rows each cell stands for; for the message.
    resolution : int, optional
        To lift to.
    """
    level = cell_to_resolution(cells)
    if resolution is not None:
        check_resolution(resolution)
        if level.min() < resolution:
            raise InputError(
                f"{table.name} has cells of resolution {level.min()}, coarser than the {resolution} asked for; "
                f"choose {level.min()} or less",
                option=f"resolution {level.min()}",
            )
        return cell_to_parent(cells, resolution)
    if level.min() < level.max():
        counts = np.bincount(level, weights=rows).astype(np.int64)
        listed = ", ".join(f"{counts[at]:,} of resolution {at}" for at in np.unique(level).tolist())
        raise InputError(
            f"{table.name} mixes cells of several resolutions ({listed}); "
            f"lift them to the coarsest, resolution {level.min()}",
            option=f"resolution {level.min()}",
        )
    return cells


def _counted(rows: Checked, attributes: Sequence[AttributeSpec]) -> dict[str, Any]:
    """Return what is counted of records, and by which kinds; see `odkanon.model.od.od_matrix`."""
    axes, codes = axes_of_answers(
        attributes, [rows.table.column(attribute_column(at)) for at in range(len(attributes))]
    )
    return {
        "trips": rows.count,
        "weight": rows.weight,
        "scale": rows.scale,
        "contributors": rows.contributors,
        "axes": axes,
        "attributes": codes,
    }


def _lookup_od(
    table: Table, rows: Checked, texts: list[pa.Array], tree: Hierarchy, attributes: Sequence[AttributeSpec]
) -> ODMatrix:
    ends = [np.asarray(text.to_numpy(zero_copy_only=False), dtype=np.str_) for text in texts]
    known = np.isin(ends[0], tree.leaves) & np.isin(ends[1], tree.leaves)
    said = unknown_codes(np.concatenate(ends), tree.leaves)
    rows, ends = _drop(rows, known, NO_LEAF, ends)
    if len(rows.table) == 0:
        raise no_rows(table, rows.source, f"; {said}" if said else "")
    if said:
        log.warning("%s", said)
    origin, destination = (find_nodes(tree, 0, end).astype(np.int32) for end in ends)
    return od_matrix(tree, tree, origin, destination, source=rows.with_mean_weight(), **_counted(rows, attributes))
