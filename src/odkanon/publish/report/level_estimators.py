"""Flows between the places of a page: those that `odkanon.estimate` finds, or rows spread evenly.

The estimate is what every saved page shows. Even spreading is fast enough for the slider of the explorer, and needs no
outlines. The bounds of both hold whatever the truth is: rows inside both places, and all rows that meet both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Bools, Ints
from odkanon.estimate.flow_estimates import FlowEstimates, ReleaseReader, read_flows
from odkanon.estimate.target_areas import Areas, CellAreas, Everywhere, PolygonAreas
from odkanon.estimate.zone_shares import zone_shares
from odkanon.methods.method_registry import is_nested
from odkanon.model.axes import AXES
from odkanon.model.measures import AT_CAP
from odkanon.publish.report.detail_levels import (
    NEGLIGIBLE,
    NUMBERS,
    UNBOUNDED,
    WIDTH,
    AreaLevel,
    Estimator,
    LevelFlows,
    Numbers,
    sample_points,
)
from odkanon.release_format.conversions import to_shapes
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import WORLD, Cells, Floats, cell_to_parent, cell_to_resolution, latlng_to_cell
from odkanon.zoning.zone_nodes import cell_nodes


def choose_estimator(release: SavedRelease, levels: Sequence[AreaLevel], *, fast: bool = False) -> Estimator:
    """Return what estimates the flows of a release: the estimate, if its zones have outlines and time allows."""
    located = all(None not in level.outlines for level in levels)
    ends = (release.zone_index.outlines[each] for each in np.unique(release.zone_index.origin).tolist())
    return EvenFlows(release) if fast or not located or all(end is None for end in ends) else EstimatedFlows(release)


def weight_variation(release: SavedRelease) -> tuple[float, float] | None:
    """Return how much the weights of trips differ and the share of the trips whose weight is stated; see `Numbers`.

    None where the release has no weights, or more than one value of them cannot be seen.
    """
    if "weight" not in release.measures or release.is_noisy:
        return None
    trips, weight = release.measure("trips"), release.measure("weight")
    stated = np.ones(len(trips), dtype=bool)
    if AT_CAP in release.table.column_names:
        stated = ~release.table.column(AT_CAP).to_numpy(zero_copy_only=False).astype(bool)
    own, mass = trips[stated], weight[stated]
    if len(own) < 2 or mass.sum() <= 0:
        return None
    mean = mass.sum() / own.sum()
    variance = float((own * (mass / own - mean) ** 2).sum() / (len(own) - 1))
    return float(np.sqrt(variance) / mean), float(own.sum() / trips.sum())


def most_unlisted(release: SavedRelease) -> float:
    """Return how many trips a release can have left out, infinity if it does not bound them."""
    most = (release.manifest.get("unlisted") or {}).get("at_most_trips")
    return np.inf if most is None else float(most)


class EstimatedFlows:
    """Flows of one release as `odkanon.SavedRelease.estimate` finds them."""

    def __init__(self, release: SavedRelease) -> None:
        self.release = release
        self._areas: dict[str, Areas] = {}
        self._totals: dict[str, Numbers] = {}
        self._everywhere = Everywhere()

    @cached_property
    def _variation(self) -> tuple[float, float] | None:
        return weight_variation(self.release)

    def _numbers(self, found: FlowEstimates) -> Numbers:
        columns = [
            found.table.column(name).fill_null(UNBOUNDED).to_numpy().astype(np.float64)
            for name in ("estimate", *NUMBERS[1:])
        ]
        numbers = Numbers(*columns)
        if self._variation is None:
            return numbers
        return numbers.with_weight(found.table.column("weight").to_numpy(), *self._variation)

    @cached_property
    def _reader(self) -> ReleaseReader:
        return read_flows(self.release)

    def flows(self, level: AreaLevel, where: Mapping[str, str]) -> LevelFlows:
        """Return the flows of the trips with some values of attributes."""
        reader, chosen = self._reader, where or None
        areas, everywhere = self._areas_of(level), self._everywhere
        pairs = reader.between(areas, areas, where=chosen, least=NEGLIGIBLE)
        ends = (
            reader.between(areas, everywhere, where=chosen, least=0.0),
            reader.between(everywhere, areas, where=chosen, least=0.0),
        )
        number = {name: at for at, name in enumerate(level.ids)}
        origin, destination = (_positions(pairs.table, axis, number) for axis in AXES)
        starts, stops = (
            self._numbers(found).take(np.argsort(_positions(found.table, axis, number)))
            for found, axis in zip(ends, AXES, strict=True)
        )
        return LevelFlows(origin, destination, self._numbers(pairs), starts, stops, self._total_of(where))

    def _total_of(self, where: Mapping[str, str]) -> Numbers:
        key = str(sorted(where.items()))
        if key not in self._totals:
            every = self._everywhere
            asked = self._reader.between(every, every, where=where, least=0.0) if where else None
            self._totals[key] = self._total() if asked is None else self._numbers(asked)
        return self._totals[key]

    def _total(self) -> Numbers:
        trips = np.array([float(self.release.measure("trips").sum())])
        if self.release.is_noisy:
            return Numbers(trips, np.zeros(1), np.full(1, np.inf), trips, trips)
        total = Numbers(trips, trips, trips + most_unlisted(self.release), trips, trips)
        return _with_total_weight(total, self.release)

    def _areas_of(self, level: AreaLevel) -> Areas:
        """Return the places of a level; the same object each time, so that the reader may keep its answers."""
        if level.name not in self._areas:
            cells = None if level.cells is None else CellAreas(level.cells, int(level.name))
            self._areas[level.name] = cells or PolygonAreas(level.ids, to_shapes(level.outlines))
        return self._areas[level.name]


def _positions(table: pa.Table, axis: str, number: Mapping[str, int]) -> Ints:
    return np.array([number[name] for name in table.column(axis).to_pylist()], dtype=np.int64)


def _with_total_weight(total: Numbers, release: SavedRelease) -> Numbers:
    """Return the numbers of all trips with the published weight of all, which is no estimate."""
    if weight_variation(release) is None:
        return total
    weight = np.array([float(release.measure("weight").sum())])
    return total._replace(weight=weight, weight_low=weight, weight_high=weight)


class EvenFlows:
    """Flows of one release, spread evenly over the areas of its rows."""

    def __init__(self, release: SavedRelease) -> None:
        self.release = release
        self._shares: dict[str, tuple[Floats, Ints]] = {}
        self._attributes: dict[str, tuple[list[str], Ints]] = {}

    def flows(self, level: AreaLevel, where: Mapping[str, str]) -> LevelFlows:
        """Return the flows of the trips with some values of attributes."""
        share, group = self._shares_in(level)
        stated, likely, possible, weight = self._matrices(where, group, len(share))
        whole, meets = np.where(np.arange(len(share))[:, None] < len(level.ids), share, 0), (share > 0).astype(float)
        unlisted = most_unlisted(self.release)
        low = whole.T @ stated @ whole
        trips = np.maximum(share.T @ likely @ share, low)
        high = meets.T @ possible @ meets + unlisted
        if level.name == "zones" and not where and not is_nested(str(self.release.manifest.get("method"))):
            high = np.where(low > 0, low, high)  # a listed row has all trips between its zones
        origin, destination = np.nonzero(trips > 0)
        chosen = (origin, destination)
        pairs = self._weighed(
            _with_interval(trips[chosen], low[chosen], high[chosen]), (share.T @ weight @ share)[chosen]
        )
        starts, ends = (
            self._weighed(
                _with_interval(
                    share.T @ likely.sum(axis), whole.T @ stated.sum(axis), meets.T @ possible.sum(axis) + unlisted
                ),
                share.T @ weight.sum(axis),
            )
            for axis in (1, 0)
        )
        total = _with_interval(*(np.array([mass.sum()]) for mass in (likely, stated, possible)))
        total = total._replace(high=total.high + unlisted)
        total = self._weighed(total, np.array([weight.sum()])) if where else _with_total_weight(total, self.release)
        return LevelFlows(origin, destination, pairs, starts, ends, total)

    @cached_property
    def _variation(self) -> tuple[float, float] | None:
        return weight_variation(self.release)

    def _weighed(self, numbers: Numbers, weight: Floats) -> Numbers:
        return numbers if self._variation is None else numbers.with_weight(weight, *self._variation)

    @cached_property
    def _table(self) -> tuple[Ints, Ints, Floats]:
        index = self.release.zone_index
        return index.origin, index.destination, self.release.measure("trips")

    def _matrices(self, where: Mapping[str, str], group: Ints, size: int) -> list[Floats]:
        """Return the trips between groups of zones that certainly, probably and possibly have some values.

        The last matrix is the weight of those that probably do.
        """
        origin, destination, _ = self._table
        pair = group[origin] * size + group[destination]
        masses = self.masses(where)
        trips = self._table[2]
        mean = np.zeros(len(trips)) if self._variation is None else self.release.measure("weight") / trips
        masses.append(masses[1] * mean)
        return [
            np.bincount(pair, mass, minlength=size * size).astype(np.float64).reshape(size, size) for mass in masses
        ]

    def masses(self, where: Mapping[str, str]) -> list[Floats]:
        """Return how many trips of each row certainly, probably and possibly have some values."""
        trips = self._table[2]
        certain, likely, possible = (np.ones(len(trips)) for _ in range(3))
        for name, value in where.items():
            texts, number = self._texts(name)
            weight = self._value_shares(name, value, texts, np.bincount(number, trips).astype(np.float64))[number]
            certain, likely, possible = certain * (weight == 1), likely * weight, possible * (weight > 0)
        return [trips * part for part in (certain, likely, possible)]

    def _texts(self, name: str) -> tuple[list[str], Ints]:
        """Return the distinct texts of an attribute, and for each row the number of its own."""
        if name not in self._attributes:
            column = self.release.table.column(name).combine_chunks().dictionary_encode()
            self._attributes[name] = column.dictionary.to_pylist(), column.indices.to_numpy().astype(np.int64)
        return self._attributes[name]

    def _value_shares(self, name: str, value: str, texts: Sequence[str], trips: Floats) -> Floats:
        """Return for each text of an attribute the share of its trips that have a value."""
        axis = next(axis for axis in self.release.manifest["axes"] if axis["name"] == name)
        values = axis["levels"][0]
        # What is rare is stated less often than its share: few of its groups are large enough.
        stated = {text: float(np.sqrt(own)) for text, own in zip(texts, trips.tolist(), strict=True)}
        groups: dict[str, set[int]] = {}
        for level in axis["levels"]:
            for number, text in enumerate(level):
                groups.setdefault(text, set()).add(number)
        at, found = values.index(value), []
        for text in texts:
            members = groups.get(text, set())
            within = sum(stated.get(values[each], 0.0) for each in members)
            own = stated.get(value, 0.0) / within if within else 1 / max(len(members), 1)
            found.append(1.0 if text == value else own if at in members else 0.0)
        return np.array(found)

    def _shares_in(self, level: AreaLevel) -> tuple[Floats, Ints]:
        """Return the share of each group of zones (row) in each place (column), and the group of each zone.

        Zones inside one place are one group, the first ones; all others are groups of their own.
        """
        if level.name not in self._shares:
            shares, inside = self._cell_shares(level) if level.cells is not None else self._other(level)
            group = np.where(inside, shares.argmax(axis=1), len(level.ids) + np.cumsum(~inside) - 1)
            self._shares[level.name] = np.concatenate([np.eye(len(level.ids)), shares[~inside]]), group
        return self._shares[level.name]

    def _cell_shares(self, level: AreaLevel) -> tuple[Floats, Bools]:
        assert level.cells is not None
        index, resolution = self.release.zone_index, int(level.name)
        nodes = cell_nodes(index.ids)
        shares = np.zeros((len(index.ids), len(level.ids)))
        if nodes is None:
            for zone, outline in enumerate(index.outlines):
                cells = latlng_to_cell(*sample_points(outline), resolution)
                np.add.at(shares[zone], _among(level.cells, cells), 1.0)
            # Points inside do not prove that all of a zone is.
            return _as_shares(shares), np.zeros(len(shares), dtype=bool)
        order = np.argsort(level.cells)
        fine: Bools = np.asarray((nodes.cell != WORLD) & (cell_to_resolution(nodes.cell) >= resolution))
        parents = cell_to_parent(np.where(fine, nodes.cell, level.cells[0]), resolution)
        at = order[np.searchsorted(level.cells, parents, sorter=order)]
        shares[np.flatnonzero(fine), at[fine]] = 1.0
        for zone in np.flatnonzero(~fine).tolist():
            cell = nodes.cell[zone]
            own = np.ones(len(level.ids), dtype=bool)
            if cell != WORLD:
                own = cell_to_parent(level.cells, int(cell_to_resolution(nodes.cell[zone : zone + 1])[0])) == cell
            shares[zone, own] = 1.0
        return _as_shares(shares), fine

    def _other(self, level: AreaLevel) -> tuple[Floats, Bools]:
        index = self.release.zone_index
        if level.name == "zones":
            position = {each: number for number, each in enumerate(level.ids)}
            shares = np.zeros((len(index.ids), len(level.ids)))
            shares[np.arange(len(index.ids)), [position[each] for each in index.ids]] = 1.0
            return shares, np.ones(len(shares), dtype=bool)
        found = zone_shares(self.release.shapes, to_shapes(level.outlines))
        shares = np.zeros((len(index.ids), len(level.ids) + 1))
        shares[found.source, found.target] = found.share
        return shares[:, :-1], np.asarray(shares[:, :-1].max(axis=1) > 1 - 1e-9)


def _among(cells: Cells, wanted: Cells) -> Ints:
    order = np.argsort(cells)
    at = np.minimum(np.searchsorted(cells, wanted, sorter=order), len(cells) - 1)
    found = order[at]
    return np.asarray(found[cells[found] == wanted])


def _as_shares(counts: Floats) -> Floats:
    total = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return shares


def _with_interval(trips: Floats, low: Floats, high: Floats) -> Numbers:
    """Return estimates with bounds, and with intervals that grow with what is not sure."""
    high = np.maximum(high, trips)
    unsure = np.maximum(trips - low, 0)
    spread = WIDTH * np.sqrt(1.6 * unsure + 0.03 * unsure**2)
    return Numbers(trips, low, high, np.maximum(low, trips - spread), np.minimum(high, trips + spread))
