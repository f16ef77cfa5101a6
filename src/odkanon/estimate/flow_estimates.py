"""Estimates with bounds of the flows between areas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Codes, Ints, spans
from odkanon.core.parsing import format_count
from odkanon.errors import InputError
from odkanon.estimate.flow_intervals import shortest_interval, variance
from odkanon.estimate.flow_model import BY_ATTRIBUTES, ROUGH, Combinations, FitSettings, FlowModel, fit_flows
from odkanon.estimate.place_tree import FINER, FINEST, PlaceTree, SamplePoints, place_cells
from odkanon.estimate.placed_shapes import place_shapes
from odkanon.estimate.row_combinations import AttributeGroups, Where, matching_rows
from odkanon.estimate.target_areas import Areas, Everywhere, ZoneFootprints
from odkanon.model.axes import AXES
from odkanon.model.measures import STANDARD_ERROR
from odkanon.release_format.conversions import FlowTable, to_shapes
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats
from odkanon.zoning.zone_nodes import cell_nodes

DOUBT = 0.35
"""Variance, per squared estimate beyond what is sure, of the share of a value within a group of values."""
APART, CROSSING = 0.005, 0.035
"""The same, of releases whose zones on an axis do not overlap (no finer row locates trips), or cross."""
DIVIDED_BY_ATTRIBUTES = 3.0
"""By how much more a divided row varies in a release by attributes, whose fine rows are few."""
LEAST = 0.05
"""Estimates below this are left out unless some trips are sure."""
DIGITS = 6
"""Decimals of numbers before they are rounded for people: further ones may differ between machines."""
_PAIRS_AT_ONCE, _NUMBERS_AT_ONCE = 1 << 20, 1 << 20
_MOST_KEPT = 1 << 24
"""Numbers in the kept shares of areas, beyond which they are computed again."""


@dataclass(frozen=True, eq=False)
class FlowEstimates:
    """Estimated flows between areas.

    Attributes
    ----------
    table : pyarrow.Table
        ``origin, destination, estimate`` (in trips), ``low, high`` (bounds that hold whatever the truth is; `high` is
        missing where the release does not bound what it leaves out), ``interval_low, interval_high`` (which contain
        the number of trips in four of five cases), ``sure`` (the share of the estimate that is sure), and ``weight``
        (an estimate) where the release has weights.
    total : float
        All published trips, including those between other areas and those of flows that are too small to be listed.
    """

    table: pa.Table
    total: float

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"FlowEstimates({format_count(len(self), 'flows')} of {self.total:,.0f} published trips)"

    def _repr_html_(self) -> str:
        return self.flows._repr_html_()

    @property
    def flows(self) -> FlowTable:
        """The flows, for conversion to other libraries."""
        return FlowTable(self.table)

    def to_pandas(self) -> Any:
        """Return the flows as a DataFrame."""
        return self.flows.to_pandas()


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """What a question counts.

    Attributes
    ----------
    label : array of int
        For each row, the number of its values of the attributes that are asked for.
    weights : array of float
        By label and combination of attributes, the share that counts: neither 0 nor 1 only where values are grouped.
    certain, possible : array of float
        The trips of each row that certainly count, and those that may.
    """

    label: Ints
    weights: Floats
    certain: Floats
    possible: Floats

    @property
    def doubt(self) -> float:
        """Variance, per squared estimate beyond what is sure, of shares that no row states."""
        return DOUBT if (self.weights % 1 > 0).any() else 0.0


@dataclass(frozen=True, eq=False)
class ReleaseReader:
    """A saved release with the model fitted to its rows.

    Attributes
    ----------
    model : FlowModel
        The model.
    footprints : tuple of ZoneFootprints
        Where the zones of both axes are.
    measures : dict
        Published trips and, where known, weight of each row.
    unlisted : int or None
        The most trips that the release may leave out; None if unknown.
    saved : SavedRelease
        The release, with its rows in the order of the model.
    groups : AttributeGroups
        The values of its attributes as the model distinguishes them.
    standard_error : array of float or None
        Of each row, where noise was added, so that rows bound nothing.
    """

    model: FlowModel
    footprints: tuple[ZoneFootprints, ZoneFootprints]
    measures: dict[str, Floats]
    unlisted: int | None
    saved: SavedRelease
    groups: AttributeGroups
    standard_error: Floats | None = None
    _kept: dict[tuple[int, str], tuple[Areas, Any]] = field(default_factory=dict, repr=False)
    _asked: dict[str | None, tuple[SelectedRows, RowEntries]] = field(default_factory=dict, repr=False)

    @property
    def tree(self) -> PlaceTree:
        """Places."""
        return self.model.tree

    def select(self, where: Where) -> SelectedRows:
        """Return what counts of a release by attributes; see `odkanon.view_release` for filters."""
        trips = self.measures["trips"]
        if where is None:
            everything = np.ones((1, len(self.model.blocks.row)))
            return SelectedRows(np.zeros(len(trips), dtype=np.int64), everything, trips, trips)
        certain, possible = matching_rows(self.saved, where)
        return SelectedRows(*self.groups.matching(where, self.saved), trips * certain, trips * possible)

    @cached_property
    def _doubt_of_zones(self) -> float:
        """Variance, per squared estimate beyond what is sure, of zones that are coarse everywhere."""
        zones = self.model.zones[0]
        if len(self.tree.parts.node):
            return CROSSING
        size = (zones.end - zones.first)[~zones.inside_place].sum()
        return APART if size <= len(self.tree) else 0.0

    @cached_property
    def entries(self) -> RowEntries:
        """Where the trips of which row are, for all combinations."""
        blocks, model, nodes = self.model.blocks, self.model, self.tree.size
        columns: list[list[Any]] = [[] for _ in range(5)]
        for part, (row, share) in enumerate(zip(blocks.row, model.share, strict=True)):
            used, beside = np.flatnonzero((row >= 0) & (share > 0)), np.flatnonzero(blocks.beside_part == part)
            for column, zones, of_row, block, other in (
                (columns[0], model.zones[0], model.rows[0], blocks.origin, blocks.beside_origin[beside]),
                (columns[1], model.zones[1], model.rows[1], blocks.destination, blocks.beside_destination[beside]),
            ):
                zone = of_row[blocks.beside_row[beside]]
                inside = zones.inside_place[zone]
                node = np.where(inside, nodes * len(blocks.row) + zone, part * nodes + other)
                column.append(np.concatenate([part * nodes + block[used], node]))
            columns[2].append(np.concatenate([row[used], blocks.beside_row[beside]]))
            columns[3].append(np.concatenate([share[used], model.beside_share[beside]]))
            columns[4].append(np.full(len(used) + len(beside), part))
        (starts, ends), rows = (nodes * len(blocks.row) + len(side.level) for side in model.zones), len(model.rows[0])
        origins, destinations, of_rows, shares, parts = (np.concatenate(column) for column in columns)
        return RowEntries(origins, destinations, of_rows, shares, parts, (rows, starts, ends))

    def _keep(self, areas: Areas, key: str, answer: Callable[[], Any]) -> Any:
        """Return an answer about areas. Pages ask for the same areas again and again, so some answers are kept."""
        known, found = self._kept.get((id(areas), key), (None, None))
        if known is not areas:
            found = answer()
            parts = (kept if isinstance(kept, tuple) else (kept,) for _, kept in self._kept.values())
            if sum(each.nnz for part in parts for each in part) > _MOST_KEPT:
                self._kept.clear()
            self._kept[id(areas), key] = areas, found
        return found

    def _shares(self, areas: Areas, axis: int) -> Any:
        """Return the share of each node (of all combinations, then of zones inside a place) in each area."""
        return self._keep(areas, AXES[axis], lambda: self._shares_of(areas, axis))

    def _shares_of(self, areas: Areas, axis: int) -> Any:
        from scipy.sparse import vstack

        tree, zones = self.tree, self.model.zones[axis]
        inside = _point_shares(zones.points, areas, len(zones.level))
        of_places = self._keep(areas, "places", lambda: _point_shares(tree.points, areas, len(tree)))
        return vstack([self._to_places[axis] @ of_places, inside]).tocsr()

    @cached_property
    def _to_places(self) -> tuple[Any, Any]:
        """The share of each node of all combinations in each place, as sparse matrices for both axes."""
        from scipy.sparse import csr_array

        tree, ((node, place), nodes), found = self.tree, (self.tree.members, self.tree.size), []
        for attraction in (self.model.rates.origin, self.model.rates.destination):
            total = tree.sums(attraction)[:, node]
            even = total <= 0
            weight = np.where(even, 1 / np.bincount(node)[node], attraction[:, place] / np.where(even, 1.0, total))
            rows = (np.arange(len(attraction))[:, None] * nodes + node).ravel()
            shape = len(attraction) * nodes, len(tree)
            found.append(csr_array((weight.ravel(), (rows, np.tile(place, len(attraction)))), shape=shape))
        return found[0], found[1]

    def expected(self, origins: Areas, destinations: Areas, where: Where = None) -> dict[str, Any]:
        """Return the expected trips and weight between areas as sparse matrices, without bounds."""
        start, entries, found = self._shares(origins, 0).T.tocsr(), self._chosen(where)[1], {}
        for name, mass in self.measures.items():
            ending = self._of(entries, destinations, f"ending {name}", partial(entries.ending, name, mass))
            found[name] = (start @ ending).tocsr()
        return found

    def expected_of(
        self, origins: Areas, destinations: Areas, pairs: tuple[Ints | Codes, Ints | Codes]
    ) -> dict[str, Floats]:
        """Return the expected trips and weight of some pairs of areas, sorted by origin, without bounds.

        Between small areas nearly all pairs have a trip in expectation, so no matrix of them is made: what starts in a
        few areas is laid out over all nodes, where each pair finds what ends in its destination.
        """
        entries = self.entries
        start, end = (self._shares(areas, at).T.tocsr() for at, areas in enumerate((origins, destinations)))
        first, count = end.indptr[pairs[1]].astype(np.int64), np.diff(end.indptr)[pairs[1]].astype(np.int64)
        nodes, found = entries.shape[2], {name: np.zeros(len(first)) for name in self.measures}
        reached = {name: start @ entries.flow(name, mass) for name, mass in self.measures.items()}
        at_once, starts = max(_NUMBERS_AT_ONCE // nodes, 1), start.shape[0]
        laid_out = np.zeros(at_once * nodes)
        for origin in range(0, starts, at_once):
            low, high = np.searchsorted(pairs[0], (origin, origin + at_once)).tolist()
            at = spans(first[low:high], first[low:high] + count[low:high])
            pair = np.repeat(np.arange(high - low), count[low:high])
            wanted = (pairs[0][low:high].astype(np.int64) - origin)[pair] * nodes + end.indices[at]
            for name, flow in reached.items():
                some = slice(*flow.indptr[[origin, min(origin + at_once, starts)]].tolist())
                length = np.diff(flow.indptr[origin : origin + at_once + 1])
                row = np.repeat(np.arange(len(length)), length)
                laid_out[place := row * nodes + flow.indices[some]] = flow.data[some]
                found[name][low:high] = np.bincount(pair, laid_out[wanted] * end.data[at], high - low)
                laid_out[place] = 0
        return found

    def _chosen(self, where: Where) -> tuple[SelectedRows, RowEntries]:
        """Return what counts, kept for a page, which asks for it between areas of several sizes."""
        key = repr(sorted(where.items())) if isinstance(where, Mapping) else where
        if key not in self._asked:
            chosen = self.select(where)
            if sum(len(entries.row) for _, entries in self._asked.values()) > _NUMBERS_AT_ONCE:
                self._asked.clear()
            self._asked[key] = chosen, self._counted(chosen)
        return self._asked[key]

    def _counted(self, chosen: SelectedRows) -> RowEntries:
        """Return the entries that count, with the share of them that does."""
        if (chosen.weights == 1).all():
            return self.entries
        return self.entries.times(chosen.weights[chosen.label[self.entries.row], self.entries.part])

    def _of(self, entries: RowEntries, areas: Areas, key: str, product: Callable[[Any], Any]) -> Any:
        """Return a product with the shares of nodes in areas, which is kept where all trips count."""
        axis = int(key != "starts")
        if entries is not self.entries:
            return product(self._shares(areas, axis))
        return self._keep(areas, key, lambda: product(self._shares(areas, axis)))

    def between(
        self, origins: Areas, destinations: Areas, *, where: Where = None, least: float = LEAST
    ) -> FlowEstimates:
        """Return the estimated flows between areas, with bounds and intervals.

        Parameters
        ----------
        origins, destinations : Areas
            Where flows start and end.
        where : str, optional
            Of a release by attributes, what to count; see `odkanon.view_release`.
        least : float
            Smaller estimates are left out unless some trips are sure.
        """
        chosen, entries = self._chosen(where)
        relations = [
            self._keep(areas, f"zones {axis}", partial(areas.relation, zones))
            for axis, areas, zones in zip(AXES, (origins, destinations), self.footprints, strict=True)
        ]
        matrices = self.expected(origins, destinations, where)
        row_shares = self._row_shares(entries, origins, destinations)
        divided, noise = self._divided(row_shares, (origins, destinations)), self._noise(row_shares)
        wide = len(destinations.ids)
        step = max(_PAIRS_AT_ONCE // max(wide, 1), 1)
        parts = []
        for first in range(0, len(origins.ids), step):
            some = slice(first, min(first + step, len(origins.ids)))
            found = {name: matrix[some].toarray() for name, matrix in matrices.items()}
            low, high = (
                self._between_zones(relations[0][at], relations[1][at], some, trips)
                for at, trips in enumerate((chosen.certain, chosen.possible))
            )
            if noise is not None:
                low, high = np.zeros_like(low), np.full_like(high, np.inf)
            estimate = np.clip(found["trips"] if found else 0.0, low, high + (self.unlisted or 0))
            origin, destination = np.nonzero((estimate >= least) | (low > 0))
            parts.append(
                {
                    "origin": origin + first,
                    "destination": destination,
                    "low": low[origin, destination],
                    "high": high[origin, destination],
                    "divided": divided(some, origin, destination),
                    **({} if noise is None else {"noise": noise(some, origin, destination)}),
                    **{name: values[origin, destination] for name, values in found.items()},
                    "trips": estimate[origin, destination],
                }
            )
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        total = float(self.measures["trips"].sum()) if where is None else entries.total(self.measures["trips"])
        doubt = chosen.doubt + self._doubt_of_zones
        return FlowEstimates(self._table(columns, origins, destinations, doubt), total)

    def _table(self, columns: dict[str, Any], origins: Areas, destinations: Areas, doubt: float) -> pa.Table:
        trips, low, high = (np.round(columns[name], DIGITS) for name in ("trips", "low", "high"))
        names = np.array(origins.ids, dtype=object), np.array(destinations.ids, dtype=object)
        ends = names[0][columns["origin"]], names[1][columns["destination"]]
        spread = variance(trips - low, np.maximum(np.round(columns["divided"], DIGITS), 0))
        if "noise" in columns:
            spread = spread + np.round(columns["noise"], DIGITS)
        below, above = shortest_interval(trips - low, spread + doubt * (trips - low) ** 2)
        most = high if self.unlisted is None else high + self.unlisted
        certain = trips - low <= 0.5e-6
        interval = [np.where(certain & (high == low), low, np.clip(low + side, low, most)) for side in (below, above)]
        known = np.full(len(trips), self.unlisted is None or "noise" in columns)
        most = np.where(known, 0, most)
        arrays = {
            "origin": pa.array(ends[0], pa.string()),
            "destination": pa.array(ends[1], pa.string()),
            "estimate": trips,
            "low": low.astype(np.int64),
            "high": pa.array(np.round(most).astype(np.int64), mask=known),
            "interval_low": np.floor(np.minimum(interval[0], trips)).astype(np.int64),
            "interval_high": np.ceil(np.maximum(interval[1], trips)).astype(np.int64),
            "sure": np.round(np.divide(low, trips, out=np.ones(len(trips)), where=trips > 0), DIGITS),
        }
        if "weight" in columns:
            arrays["weight"] = np.array([float(f"{value:.4g}") for value in columns["weight"].tolist()])
        return pa.table(arrays).sort_by([(axis, "ascending") for axis in AXES])

    def _between_zones(self, origin: Any, destination: Any, some: slice, trips: Floats) -> Floats:
        """Return the trips of rows whose zones are both related to the areas."""
        from scipy.sparse import csr_array

        flow = csr_array((trips, self.model.rows), shape=(origin.shape[0], destination.shape[0]))
        found: Floats = (origin[:, some].T.tocsr() @ flow @ destination).toarray()
        return found

    def _row_shares(self, entries: RowEntries, origins: Areas, destinations: Areas) -> tuple[Any, Any]:
        """Return the share of each row that starts in each area, and that ends there, both for what is counted."""
        return (
            self._of(entries, origins, "starts", lambda shares: (entries.of_rows[0] @ shares).tocsr()),
            self._of(entries, destinations, "ends", lambda shares: entries.scaled(entries.of_rows[1] @ shares)),
        )

    def _noise(self, shares: tuple[Any, Any]) -> Any:
        """Return a function that sums the variances of rows, weighted by their shares in pairs of areas squared."""
        if self.standard_error is None:
            return None
        variance = self.standard_error**2

        def between(some: slice, origin: Ints, destination: Ints) -> Floats:
            start = shares[0][:, some].power(2).multiply(variance[:, None]).tocsr()
            found: Floats = (start.T.tocsr() @ shares[1].power(2)).toarray()[origin, destination]
            return found

        return between

    def _divided(self, shares: tuple[Any, Any], areas: tuple[Areas, Areas]) -> Any:
        """Return a function that sums, over rows, the squares of ``n p (1 - p)`` for pairs of areas.

        The share p of a row is taken as the product of its shares in the two areas and in the counted combinations.
        Rows between the same zones, which differ in their attributes, are divided alike: they count as one row. So do
        all rows from a zone where any destination counts, and all rows to a zone.
        """
        from scipy.sparse import csr_array

        ends = [zone * (not isinstance(at, Everywhere)) for zone, at in zip(self.model.rows, areas, strict=True)]
        width = len(self.model.zones[1].level)
        distinct, group = np.unique(ends[0] * width + ends[1], return_inverse=True)
        trips, (start, end) = self.measures["trips"], shares
        if len(distinct) < len(trips):
            total: Floats = np.bincount(group, trips).astype(np.float64)
            merged = csr_array((trips / total[group], (group, np.arange(len(trips)))))
            trips, start, end = total, (merged @ start).tocsr(), (merged @ end).tocsr()
        squared = trips**2 * (DIVIDED_BY_ATTRIBUTES if self.saved.axes else 1)

        def between(some: slice, origin: Ints, destination: Ints) -> Floats:
            found = np.zeros(len(origin))
            for power, factor in ((2, 1.0), (3, -2.0), (4, 1.0)):
                part = start[:, some].power(power).multiply(squared[:, None]).tocsr()
                found += factor * (part.T.tocsr() @ end.power(power)).toarray()[origin, destination]
            return found

        return between


@dataclass(frozen=True, eq=False)
class RowEntries:
    """Where the trips of which row are: nodes of both ends, by combination, and shares.

    The nodes of one combination follow those of another; after all of them come the zones inside a place. `shape` has
    the numbers of rows and of nodes of both axes.
    """

    origin: Ints
    destination: Ints
    row: Ints
    share: Floats
    part: Ints
    shape: tuple[int, int, int]
    _flows: dict[str, Any] = field(default_factory=dict, repr=False)

    def flow(self, name: str, mass: Floats) -> Any:
        """Return a measure of the rows between nodes as a sparse matrix, which is made once."""
        from scipy.sparse import csr_array

        if name not in self._flows:
            values = mass[self.row] * self.share
            self._flows[name] = csr_array((values, (self.origin, self.destination)), shape=self.shape[1:])
        return self._flows[name]

    def ending(self, name: str, mass: Floats, shares: Any) -> Any:
        """Return a measure of the rows between nodes and areas, of which the nodes have shares."""
        return self.flow(name, mass) @ shares

    def scaled(self, of_rows: Any) -> Any:
        """Return numbers of each row relative to the share of it that counts."""
        counted = np.round(np.bincount(self.row, self.share, self.shape[0]), DIGITS)
        scale = np.divide(1.0, counted, out=np.zeros(len(counted)), where=counted > 0)
        return of_rows.multiply(scale[:, None]).tocsr()

    @cached_property
    def of_rows(self) -> tuple[Any, Any]:
        """The share of each row that starts in each node, and that ends there."""
        from scipy.sparse import csr_array

        rows, starts, ends = self.shape
        return (
            csr_array((self.share, (self.row, self.origin)), shape=(rows, starts)),
            csr_array((self.share, (self.row, self.destination)), shape=(rows, ends)),
        )

    def times(self, weight: Floats) -> RowEntries:
        """Return a share of each entry."""
        kept = weight > 0
        share = self.share[kept] * weight[kept]
        return RowEntries(self.origin[kept], self.destination[kept], self.row[kept], share, self.part[kept], self.shape)

    def total(self, trips: Floats) -> float:
        """Return the estimated trips of all places."""
        return float((trips[self.row] * self.share).sum())


def _point_shares(points: SamplePoints, areas: Areas, owners: int) -> Any:
    """Return the share of the points of each owner that lie in each area, as a sparse matrix."""
    from scipy.sparse import csr_array

    number = areas.number(points.lat, points.lon)
    inside = number >= 0
    count = np.maximum(np.bincount(points.owner, minlength=owners), 1)
    return csr_array(
        (1 / count[points.owner[inside]], (points.owner[inside], number[inside])), shape=(owners, len(areas.ids))
    )


def can_estimate(saved: SavedRelease) -> bool:
    """Return whether a release has flows between two places, of which some are located on each axis."""
    if saved.subject.place is not None or not len(saved.table):
        return False
    return all(
        any(zone.get("geometry") is not None for zone in saved.axis_features(axis))
        or cell_nodes(sorted(set(saved.table.column(axis).to_pylist()))) is not None
        for axis in AXES
    )


def read_flows(saved: SavedRelease, where: Where = None) -> ReleaseReader:
    """Fit the model to a saved release.

    Parameters
    ----------
    saved : SavedRelease
        The release.
    where : str, optional
        Of a release by attributes, the filter that is going to be used; without it the fit is rougher, and
        values may be grouped.

    Raises
    ------
    InputError
        If the release has no rows, or the location of its zones is unknown.
    """
    if where is not None:
        return _fitted(saved, where)
    # The matrix and the page of a release are written one after the other from the same rows.
    known, features = _READERS.get(id(saved.table), (None, None))
    if known is None or features is not saved.features:
        known = _fitted(saved, None)
        _READERS[id(saved.table)] = known, saved.features
        finalize(saved.table, _READERS.pop, id(saved.table), None)
    return known


_READERS: dict[int, tuple[ReleaseReader, list[dict[str, Any]]]] = {}
"""The readers of tables of rows that are still in use."""


def _fitted(saved: SavedRelease, where: Where) -> ReleaseReader:
    if not len(saved.table):
        raise InputError(f"the release {saved.name} has no rows, so there is nothing to estimate")
    saved.require_flows("an estimate")
    settings = FitSettings() if not saved.axes else ROUGH if where is None else BY_ATTRIBUTES
    saved, groups, combinations = _in_order(saved, where)
    names, rows = [], []
    for axis in AXES:
        ids, number = np.unique(np.array(saved.table.column(axis).to_pylist(), dtype=np.str_), return_inverse=True)
        names.append([str(name) for name in ids])
        rows.append(number.astype(np.int64))
    outlines = [{zone["properties"]["id"]: zone.get("geometry") for zone in saved.axis_features(axis)} for axis in AXES]
    nodes = [cell_nodes(ids) for ids in names]
    shapes = [[known.get(name) for name in ids] for ids, known in zip(names, outlines, strict=True)]
    if nodes[0] is not None and nodes[1] is not None:
        tree, zones = place_cells([nodes[0], nodes[1]], FINEST if saved.axes else FINER)
    else:
        if any(all(shape is None for shape in axis) for axis in shapes):
            raise InputError(
                f"the zones of {saved.name} have no outlines, so nothing can be estimated; supply polygons when the "
                "release is made"
            )
        tree, zones = place_shapes((to_shapes(shapes[0]), to_shapes(shapes[1])), (rows[0], rows[1]))
        nodes = [None, None]
    finest = saved.manifest.get("resolution")
    footprints = tuple(
        ZoneFootprints(own, shape, 15 if finest is None else int(finest))
        for own, shape in zip(nodes, shapes, strict=True)
    )
    measures = {name: saved.measure(name) for name in saved.measures}
    unlisted = saved.manifest.get("unlisted", {}).get("at_most_trips")
    model = fit_flows(tree, (zones[0], zones[1]), (rows[0], rows[1]), measures["trips"], combinations, settings)
    noise = np.asarray(saved.table.column(STANDARD_ERROR).to_numpy()) if saved.is_noisy else None
    return ReleaseReader(model, (footprints[0], footprints[1]), measures, unlisted, saved, groups, noise)


def _most_unlisted(saved: SavedRelease) -> int:
    """Return the most trips of a group that a nested release does not list for being too small; 0 if unknown."""
    rule = saved.manifest.get("rule", {})
    thresholds = [int(rule[name]) for name in ("trips", "persons", "households") if name in rule]
    return max(thresholds) - 1 if thresholds and "weight" not in rule else 0


def _in_order(saved: SavedRelease, where: Where) -> tuple[SavedRelease, AttributeGroups, Combinations]:
    """Return a release with its rows in a fixed order: of those between the same zones, the finest first."""
    groups = AttributeGroups.of_release(saved, where)
    columns = {name: np.array(saved.table.column(name).to_pylist(), dtype=np.str_) for name in (*AXES, *groups.levels)}
    labels = {name: columns[name] for name in groups.levels}
    combinations = (
        groups.combinations(labels, _most_unlisted(saved)) if labels else Combinations.single(len(saved.table))
    )
    width = combinations.covers.sum(axis=1)
    order = np.lexsort([*reversed(labels.values()), width, columns["destination"], columns["origin"]])
    covers = combinations.covers[order]
    return replace(saved, table=saved.table.take(pa.array(order))), groups, replace(combinations, covers=covers)
