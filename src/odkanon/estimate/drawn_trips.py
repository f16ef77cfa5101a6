"""Single trips drawn from the estimate, for programs that simulate or assign trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools, Ints
from odkanon.estimate.flow_estimates import ReleaseReader, read_flows
from odkanon.estimate.place_tree import FINEST_POINTS, SamplePoints
from odkanon.model.axes import AXES
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Cells, Floats, cell_radius, latlng_to_cell
from odkanon.zoning.zone_nodes import CellNodes

ABOUT = (
    "These trips were drawn from the estimate of published flows: nobody made them. As many belong to each published "
    "row (the column row counts the lines of classes.csv) as it lists. They disclose no more than the rows do, and are "
    "no more private than these."
)
"""What is to be known of the trips, for whoever gets the file."""
_SEED = 0
_TRIES = 20
"""How often a trip is drawn again whose pair of points a finer row covers."""
_CLOCK = np.array([f"{minute // 60:02d}:{minute % 60:02d}" for minute in range(24 * 60)], dtype=object)
"""Each minute of a day as text."""
_WITHIN = 0.5
"""How far from the middle of a cell of points trips begin, as a share of its radius; all of it is inside."""


def draw_trips(saved: SavedRelease) -> pa.Table:
    """Return as many trips as a release lists, with points inside the zones of their rows; always the same ones.

    Parameters
    ----------
    saved : SavedRelease
        The release.

    Returns
    -------
    pyarrow.Table
        ``trip, row`` (the line of ``classes.csv``, from 1), ``origin, destination`` (its zones), ``start_lat,
        start_lon, end_lat, end_lon``, a column for each attribute (its value, or the group of values that the row
        states where the estimate does not separate them), ``departure`` (a time of day, where hours are known) and
        ``weight`` (the share of the weight of its row).

    Examples
    --------
    >>> import odkanon
    >>> from odkanon.publish.save import as_saved
    >>> saved = as_saved(odkanon.anonymize(odkanon.make_survey().slice(0, 4000), k=10, resolution=8))
    >>> trips = draw_trips(saved)
    >>> trips.num_rows == int(saved.measure("trips").sum())
    True
    """
    lines = pa.array(np.arange(1, saved.table.num_rows + 1))
    reader = read_flows(saved)
    order = _lines(reader.saved.table, saved.table.append_column("_line", lines))
    random = np.random.default_rng(_SEED)
    number = np.rint(reader.measures["trips"]).astype(np.int64)
    row = np.repeat(np.arange(len(number)), number)
    draw = _Draw(reader, random)
    ends, part = draw.points(row)
    for _ in range(_TRIES):
        covered = np.flatnonzero(draw.finer_row(ends, row))
        if not len(covered):
            break
        redrawn, part[covered] = draw.points(row[covered])
        for end, new in zip(ends, redrawn, strict=True):
            end[:, covered] = new
    table = reader.saved.table
    columns: dict[str, pa.Array] = {"trip": pa.array(np.arange(1, len(row) + 1)), "row": pa.array(order[row])}
    columns |= {axis: table.column(axis).combine_chunks().take(pa.array(row)) for axis in AXES}
    for name, end in zip(("start", "end"), ends, strict=True):
        columns |= {f"{name}_{side}": pa.array(np.round(end[at], 6)) for at, side in enumerate(("lat", "lon"))}
    for axis, name in enumerate(reader.groups.levels):
        stated = np.array(table.column(name).to_pylist(), dtype=object)[row]
        columns[name] = pa.array(draw.values(axis, name, part, stated), pa.string())
    if "hour" in reader.groups.levels:
        columns["departure"] = _departures(columns["hour"], random)
    if "weight" in reader.measures:
        each = reader.measures["weight"] / np.maximum(number, 1)
        columns["weight"] = pa.array([float(f"{value:.6g}") for value in each.tolist()]).take(pa.array(row))
    found = pa.table(columns).sort_by([("row", "ascending"), ("trip", "ascending")])
    found = found.set_column(0, "trip", columns["trip"])
    return found.replace_schema_metadata({"about": ABOUT})


def _lines(ordered: pa.Table, lined: pa.Table) -> Ints:
    """Return for each row of a table its line in the same table in another order."""
    keys = [name for name in ordered.column_names if pa.types.is_string(ordered.schema.field(name).type)]

    def texts(table: pa.Table) -> list[tuple[str, ...]]:
        return list(zip(*(table.column(name).to_pylist() for name in keys), strict=True))

    line = dict(zip(texts(lined), lined.column("_line").to_pylist(), strict=True))
    return np.array([line[text] for text in texts(ordered)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Draw:
    """Draws of points and combinations of attributes for trips of rows."""

    reader: ReleaseReader
    random: np.random.Generator

    def points(self, row: Ints) -> tuple[list[Floats], Ints]:
        """Return latitudes and longitudes of both ends of trips of some rows, and their combinations of attributes."""
        entries = self.reader.entries
        order = np.argsort(entries.row, kind="stable")
        chosen = order[_chosen(entries.row[order], entries.share[order], row, self._even(row))]
        ends = [self._point(axis, node[chosen]) for axis, node in enumerate((entries.origin, entries.destination))]
        return ends, entries.part[chosen]

    def _even(self, row: Ints) -> Floats:
        """Return numbers from 0 to 1 that are spread evenly over the trips of each row, which are side by side."""
        first = np.flatnonzero(np.diff(row, prepend=-1))
        count = np.diff(np.append(first, len(row)))
        position = np.arange(len(row)) - np.repeat(first, count)
        found: Floats = (position + self.random.random(len(row))) / np.repeat(count, count)
        return found

    def _point(self, axis: int, node: Ints) -> Floats:
        """Return points inside nodes: of a place in proportion to its attraction, near one of its sample points."""
        reader = self.reader
        tree, zones = reader.tree, reader.model.zones[axis]
        attraction = (reader.model.rates.origin, reader.model.rates.destination)[axis]
        parts = len(reader.model.blocks.row)
        found = np.empty((2, len(node)))
        members, places = tree.members
        for part in range(parts):
            here = np.flatnonzero(node // tree.size == part)
            if len(here):
                weight = attraction[part][places]
                weight = np.where(tree.sums(attraction[part])[members] > 0, weight, 1.0)
                own = places[_chosen(members, weight, node[here] % tree.size, self.random.random(len(here)))]
                found[:, here] = self._near(tree.points, own)
        inside = np.flatnonzero(node >= parts * tree.size)
        found[:, inside] = self._near(zones.points, node[inside] - parts * tree.size)
        return found

    def _near(self, points: SamplePoints, owner: Ints) -> Floats:
        order = np.argsort(points.owner, kind="stable")
        chosen = order[_chosen(points.owner[order], np.ones(len(order)), owner, self.random.random(len(owner)))]
        lat, lon = points.lat[chosen], points.lon[chosen]
        if self.reader.footprints[0].nodes is None:
            return np.stack([lat, lon])  # what is near may be outside of a polygon
        finest = max(FINEST_POINTS, self.reader.footprints[0].finest)
        reach, angle = self.random.random((2, len(owner)))
        far = _WITHIN * cell_radius(finest) * np.sqrt(reach)
        moved = lat + far * np.sin(2 * np.pi * angle)
        aside = lon + far * np.cos(2 * np.pi * angle) / np.maximum(np.cos(np.radians(lat)), 1e-3)
        aside = (aside + 180) % 360 - 180
        kept = latlng_to_cell(moved.clip(-90, 90), aside, finest) == latlng_to_cell(lat, lon, finest)
        return np.stack([np.where(kept, moved, lat), np.where(kept, aside, lon)])

    def finer_row(self, ends: list[Floats], row: Ints) -> Bools:
        """Return which trips lie between zones of a finer row than their own; of cells without attributes only."""
        reader = self.reader
        (one, other), (origin, destination) = (side.nodes for side in reader.footprints), reader.model.rows
        found = np.zeros(len(row), dtype=bool)
        if one is None or other is None or reader.groups.levels or not _is_nested(reader):
            return found
        finest = max(FINEST_POINTS, reader.footprints[0].finest)
        cells = [latlng_to_cell(lat, lon, finest) for lat, lon in ends]
        points = [CellNodes(cell, np.full(len(cell), 3 * finest + 1), np.zeros(len(cell))) for cell in cells]
        depth = np.stack([one.depth[origin], other.depth[destination]], axis=1)
        own, every = depth.sum(axis=1), np.arange(len(row))
        for first, last in np.unique(depth, axis=0).tolist():
            rows = np.flatnonzero((depth == (first, last)).all(axis=1))
            names = [one.above(origin[rows], first), other.above(destination[rows], last)]
            sought = [points[0].above(every, first), points[1].above(every, last)]
            covered = _pair_is_in(sought, names) & (own[row] < first + last)
            found |= covered
        return found

    def values(self, axis: int, name: str, part: Ints, stated: Ints) -> Ints:
        """Return the value of an attribute of each trip; where its combination has several, what its row states."""
        groups = self.reader.groups
        group = np.indices(groups.shape).reshape(len(groups.shape), -1)[axis][part]
        known = np.flatnonzero(groups.group[name] >= 0)
        count = np.bincount(groups.group[name][known])
        single = np.zeros(len(count), dtype=object)
        single[groups.group[name][known]] = groups.levels[name][0][known]
        return np.where(count[group] == 1, single[group], stated)


def _is_nested(reader: ReleaseReader) -> bool:
    level = [zones.level[rows] for zones, rows in zip(reader.model.zones, reader.model.rows, strict=True)]
    return bool((level[0] != level[0][0]).any() or (level[1] != level[1][0]).any())


def _pair_is_in(sought: Sequence[Cells], known: Sequence[Cells]) -> Bools:
    """Return which pairs of values occur among others."""
    keys, wanted = np.zeros(len(known[0]), np.int64), np.zeros(len(sought[0]), np.int64)
    missing = np.zeros(len(wanted), dtype=bool)
    for own, other in zip(known, sought, strict=True):
        distinct, number = np.unique(own, return_inverse=True)
        at = np.minimum(np.searchsorted(distinct, other), len(distinct) - 1)
        missing |= distinct[at] != other
        keys, wanted = keys * len(distinct) + number.reshape(-1), wanted * len(distinct) + at
    found: Bools = np.isin(wanted, keys) & ~missing
    return found


def _chosen(group: Ints, weight: Floats, wanted: Ints, at: Floats) -> Ints:
    """Return a member of each wanted group: the one at a number from 0 to 1 along the sum of their weights."""
    total = np.cumsum(weight)
    first, last = (np.searchsorted(group, wanted, side=side) for side in ("left", "right"))
    before = np.where(first > 0, total[np.maximum(first, 1) - 1], 0.0)
    found = np.searchsorted(total, before + at * (total[last - 1] - before), side="right")
    return np.clip(found, first, last - 1)


def _departures(hours: pa.Array, random: np.random.Generator) -> pa.Array:
    """Return times of day inside hours (``7``) or slots (``07-09``, or ``19-06`` over midnight); none for others."""
    distinct, number = np.unique(np.array(hours.to_pylist(), dtype=np.str_), return_inverse=True)
    known = np.array([hour.replace("-", "").isdigit() for hour in distinct.tolist()], dtype=bool)
    begin, length = np.zeros(len(distinct)), np.ones(len(distinct))
    for at in np.flatnonzero(known).tolist():
        first, dash, last = distinct[at].partition("-")
        begin[at], length[at] = int(first), ((int(last) - int(first)) % 24 or 24) if dash else 1
    minute = (60 * (begin[number] + random.random(len(number)) * length[number])).astype(np.int64) % len(_CLOCK)
    return pa.array(_CLOCK[minute], pa.string(), mask=~known[number])
