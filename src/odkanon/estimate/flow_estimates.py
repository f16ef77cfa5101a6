"""Estimates with bounds of the flows between areas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints, spans
from odkanon.errors import InputError
from odkanon.estimate.flow_intervals import WITHIN, shortest_interval, variance
from odkanon.estimate.flow_model import FlowModel, fit_flows
from odkanon.estimate.place_tree import PlaceTree, SamplePoints, place_cells
from odkanon.estimate.placed_shapes import place_shapes
from odkanon.estimate.target_areas import Areas, ZoneFootprints
from odkanon.model.axes import AXES
from odkanon.model.measures import STANDARD_ERROR
from odkanon.release_format.conversions import FlowTable, to_shapes
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats
from odkanon.zoning.zone_nodes import cell_nodes

LEAST = 0.05
"""Estimates below this are left out unless some trips are sure."""
DIGITS = 6
"""Decimals of numbers before they are rounded for people: further ones may differ between machines."""
_PAIRS_AT_ONCE = 1 << 20


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

    @property
    def flows(self) -> FlowTable:
        """The flows, for conversion to other libraries."""
        return FlowTable(self.table)

    def to_pandas(self) -> Any:
        """Return the flows as a DataFrame."""
        return self.flows.to_pandas()


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
    certain, possible : array of float, optional
        How many of the trips of each row are sure to be of the kind asked for, and how many can be; by default all.
    doubt : float
        Variance, per squared estimate beyond what is sure, of how many of the others are of that kind.
    standard_error : array of float or None
        Of each row, where noise was added, so that rows bound nothing.
    """

    model: FlowModel
    footprints: tuple[ZoneFootprints, ZoneFootprints]
    measures: dict[str, Floats]
    unlisted: int | None
    certain: Floats | None = None
    possible: Floats | None = None
    doubt: float = 0.0
    standard_error: Floats | None = None

    @property
    def tree(self) -> PlaceTree:
        """Places."""
        return self.model.tree

    @cached_property
    def _blocks(self) -> dict[str, Any]:
        """For both ends the nodes of blocks, those beside them as numbers after all nodes; and the trips of each."""
        blocks, model, nodes = self.model.blocks, self.model, int(self.tree.offsets[-1])
        used = np.flatnonzero((blocks.row >= 0) & (model.share > 0))
        ends = []
        for zones, of_row, block, beside in (
            (model.zones[0], model.rows[0], blocks.origin, blocks.beside_origin),
            (model.zones[1], model.rows[1], blocks.destination, blocks.beside_destination),
        ):
            zone = of_row[blocks.beside_row]
            ends.append(np.concatenate([block[used], np.where(zones.inside_place[zone], nodes + zone, beside)]))
        row = np.concatenate([blocks.row[used], blocks.beside_row])
        return {"ends": ends, "row": row, "share": np.concatenate([model.share[used], model.beside_share])}

    def node_shares(self, areas: Areas, axis: int) -> Any:
        """Return the share of each node (then of each zone inside a place) in each area, as a sparse matrix."""
        from scipy.sparse import csr_array, vstack

        tree, zones = self.tree, self.model.zones[axis]
        attraction = (self.model.rates.origin, self.model.rates.destination)[axis]
        places = _point_shares(tree.points, areas, len(tree))
        count = tree.end - tree.first
        total = tree.sums(attraction)
        node, place = np.repeat(np.arange(len(count)), count), spans(tree.first, tree.end)
        even = total[node] <= 0
        part = np.where(even, 1 / count[node], attraction[place] / np.where(even, 1.0, total[node]))
        of_nodes = csr_array((part, (node, place)), shape=(len(count), len(tree))) @ places
        return vstack([of_nodes, _point_shares(zones.points, areas, len(zones.level))]).tocsr()

    def between(self, origins: Areas, destinations: Areas, *, least: float = LEAST) -> FlowEstimates:
        """Return the estimated flows between areas, with bounds and intervals.

        Parameters
        ----------
        origins, destinations : Areas
            Where flows start and end.
        least : float
            Smaller estimates are left out unless some trips are sure.
        """
        shares = self.node_shares(origins, 0), self.node_shares(destinations, 1)
        relations = [
            areas.relation(zones) for areas, zones in zip((origins, destinations), self.footprints, strict=True)
        ]
        matrices = {name: self._matrix(shares, mass) for name, mass in self.measures.items()}
        divided = self._divided(shares)
        noise = self._noise(shares)
        wide = shares[1].shape[1]
        step = max(_PAIRS_AT_ONCE // wide, 1)
        parts = []
        for first in range(0, shares[0].shape[1], step):
            some = slice(first, min(first + step, shares[0].shape[1]))
            found = {name: matrix[some].toarray() for name, matrix in matrices.items()}
            low, high = (
                self._between_zones(relations[0][at], relations[1][at], some, mass)
                for at, mass in enumerate((self.certain, self.possible))
            )
            if noise is not None:
                low, high = np.zeros_like(low), np.full_like(high, np.inf)
            estimate = np.clip(found["trips"], low, high + (self.unlisted or 0))
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
        return FlowEstimates(self._table(columns, origins, destinations), float(self.measures["trips"].sum()))

    def _table(self, columns: dict[str, Any], origins: Areas, destinations: Areas) -> pa.Table:
        trips, low, high = (np.round(columns[name], DIGITS) for name in ("trips", "low", "high"))
        names = np.array(origins.ids, dtype=object), np.array(destinations.ids, dtype=object)
        ends = names[0][columns["origin"]], names[1][columns["destination"]]
        spread = variance(
            trips - low, np.maximum(np.round(columns["divided"], DIGITS), 0), np.where(ends[0] == ends[1], WITHIN, 1.0)
        )
        if "noise" in columns:
            spread = spread + np.round(columns["noise"], DIGITS)
        below, above = shortest_interval(trips - low, spread + self.doubt * (trips - low) ** 2)
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

    def _row_shares(self, shares: tuple[Any, Any]) -> list[Any]:
        """Return the share of each row that starts, and that ends, in each area."""
        from scipy.sparse import csr_array

        blocks, rows = self._blocks, len(self.measures["trips"])
        ends = []
        for nodes, part in zip(blocks["ends"], shares, strict=True):
            of_row = csr_array((blocks["share"], (blocks["row"], nodes)), shape=(rows, part.shape[0])) @ part
            ends.append(of_row.tocsr())
        return ends

    def _noise(self, shares: tuple[Any, Any]) -> Any:
        """Return a function that sums the variances of rows, weighted by their shares in pairs of areas squared."""
        if self.standard_error is None:
            return None
        ends, variance = self._row_shares(shares), self.standard_error**2

        def between(some: slice, origin: Ints, destination: Ints) -> Floats:
            start = ends[0][:, some].power(2).multiply(variance[:, None]).tocsr()
            found: Floats = (start.T.tocsr() @ ends[1].power(2)).toarray()[origin, destination]
            return found

        return between

    def _matrix(self, shares: tuple[Any, Any], mass: Floats) -> Any:
        """Return what flows between areas, as a sparse matrix."""
        from scipy.sparse import csr_array

        blocks = self._blocks
        flow = csr_array(
            (mass[blocks["row"]] * blocks["share"], tuple(blocks["ends"])),
            shape=(shares[0].shape[0], shares[1].shape[0]),
        )
        return (shares[0].T.tocsr() @ (flow @ shares[1])).tocsr()

    def _between_zones(self, origin: Any, destination: Any, some: slice, mass: Floats | None) -> Floats:
        """Return the trips of rows whose zones are both related to the areas; of the kind asked for, if any."""
        from scipy.sparse import csr_array

        own = self.measures["trips"] if mass is None else mass
        trips = csr_array((own, self.model.rows), shape=(origin.shape[0], destination.shape[0]))
        found: Floats = (origin[:, some].T.tocsr() @ trips @ destination).toarray()
        return found

    def _divided(self, shares: tuple[Any, Any]) -> Any:
        """Return a function that sums, over rows, the squares of ``n p (1 - p)`` for pairs of areas.

        The share p of a row is taken as the product of its shares in the two areas.
        """
        ends, squared = self._row_shares(shares), self.measures["trips"] ** 2

        def between(some: slice, origin: Ints, destination: Ints) -> Floats:
            found = np.zeros(len(origin))
            for power, factor in ((2, 1.0), (3, -2.0), (4, 1.0)):
                start = ends[0][:, some].power(power).multiply(squared[:, None]).tocsr()
                found += factor * (start.T.tocsr() @ ends[1].power(power)).toarray()[origin, destination]
            return found

        return between


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


def read_flows(saved: SavedRelease) -> ReleaseReader:
    """Fit the model to a saved release.

    Raises
    ------
    InputError
        If the release has no rows, or the location of its zones is unknown.
    """
    saved = saved.without_attributes()
    order = np.lexsort([np.array(saved.table.column(axis).to_pylist(), dtype=np.str_) for axis in reversed(AXES)])
    saved = replace(saved, table=saved.table.take(pa.array(order)))
    if not len(saved.table):
        raise InputError(f"the release {saved.name} has no rows, so there is nothing to estimate")
    names, rows = [], []
    for axis in AXES:
        ids, number = np.unique(np.array(saved.table.column(axis).to_pylist(), dtype=np.str_), return_inverse=True)
        names.append([str(name) for name in ids])
        rows.append(number.astype(np.int64))
    outlines = [{zone["properties"]["id"]: zone.get("geometry") for zone in saved.axis_features(axis)} for axis in AXES]
    nodes = [cell_nodes(ids) for ids in names]
    shapes = [[known.get(name) for name in ids] for ids, known in zip(names, outlines, strict=True)]
    if nodes[0] is not None and nodes[1] is not None:
        tree, zones = place_cells([nodes[0], nodes[1]])
    else:
        if any(all(shape is None for shape in axis) for axis in shapes):
            raise InputError(
                f"the zones of {saved.name} have no outlines, so nothing can be estimated; supply polygons when the "
                "release is made"
            )
        tree, zones = place_shapes((to_shapes(shapes[0]), to_shapes(shapes[1])))
        nodes = [None, None]
    finest = saved.manifest.get("resolution")
    footprints = tuple(
        ZoneFootprints(own, shape, 15 if finest is None else int(finest))
        for own, shape in zip(nodes, shapes, strict=True)
    )
    measures = {name: saved.measure(name) for name in saved.measures}
    unlisted = saved.manifest.get("unlisted", {}).get("at_most_trips")
    model = fit_flows(tree, (zones[0], zones[1]), (rows[0], rows[1]), measures["trips"])
    noise = np.asarray(saved.table.column(STANDARD_ERROR).to_numpy()) if saved.is_noisy else None
    return ReleaseReader(model, (footprints[0], footprints[1]), measures, unlisted, standard_error=noise)
