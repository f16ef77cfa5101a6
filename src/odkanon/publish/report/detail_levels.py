"""What the page shows at each level of detail: places, flows between them and totals, each as estimate with bounds.

A level is a set of areas: H3 cells of one resolution, the districts of the steward, or the zones of a release that has
no H3 cells. Every number of the page is computed here; `web/src/levels.ts` only shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.publish.report.packing import ShapeTable, pack_numbers
from odkanon.publish.report.place_names import Districts, name_places
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import (
    MAX_RESOLUTION,
    WORLD,
    Cells,
    Floats,
    cell_to_latlng,
    cell_to_parent,
    cell_to_polygon,
    cell_to_resolution,
    cell_to_str,
    latlng_to_cell,
)
from odkanon.zoning.spherical_geometry import list_polygons, polygon_area_km2
from odkanon.zoning.zone_nodes import CellNodes, cell_nodes

NUMBERS = ("trips", "low", "high", "interval_low", "interval_high")
"""Estimate, the bounds that hold whatever the truth is, and the 80 % interval."""
UNBOUNDED = -1
"""The upper bound of flows of a release that does not bound what it leaves out."""
FEWEST_PLACES, MOST_PLACES = 3, 1_200
LEVELS = 4
"""A page has at most this many resolutions, the finest ones."""
KNOWN = 0.04
"""A resolution is offered if at least this share of the trips is known as finely at both ends."""
MAX_PAIRS = 40_000
MAX_PAIRS_BY_VALUE = 2_500
MAX_TABLES, MAX_PAIR_TABLES = 90, 40
"""Tables of one attribute value, and of two values, those with most trips."""
PAIR_PLACES = 160
"""Two values can be chosen together at the finest level with so few places."""
SAMPLES = 12
"""Points along each side of a zone that is no cell."""
MOST_SAMPLED = 250
OVERLAP = 1.2
WIDTH = 1.2816
"""Standard deviations on each side of an 80 % interval."""
NEGLIGIBLE = 0.5
"""Pairs with a smaller estimate are not packed."""


class Numbers(NamedTuple):
    """Estimates with their bounds and intervals, one entry for each pair or place.

    The weight of what is estimated has an interval, but no bounds: any trip could weigh anything.
    """

    trips: Floats
    low: Floats
    high: Floats
    interval_low: Floats
    interval_high: Floats
    weight: Floats | None = None
    weight_low: Floats | None = None
    weight_high: Floats | None = None

    def take(self, which: Any) -> Numbers:
        """Return some of the entries."""
        return self._replace(**{name: values[which] for name, values in self._asdict().items() if values is not None})

    def with_weight(self, weight: Floats, deviation: float, stated: float) -> Numbers:
        """Return the numbers with the weight of what they count.

        Parameters
        ----------
        weight : array of float
            The estimated weight.
        deviation : float
            Standard deviation of the weight of a trip, in parts of its mean. The mean weight of trips that no row
            states by themselves varies by it.
        stated : float
            The share of the trips that are in rows whose own weight is published; that of rows at their cap follows
            from the other rows.
        """
        trips = np.maximum(self.trips, 1e-9)
        unsure = np.maximum(self.trips - stated * self.low, 0)
        spread = WIDTH * deviation * np.sqrt(unsure) / trips
        below, above = ((self.trips - self.interval_low) / trips, (self.interval_high - self.trips) / trips)
        low, high = (np.hypot(side, spread) for side in (below, above))
        return self._replace(weight=weight, weight_low=weight * np.maximum(1 - low, 0), weight_high=weight * (1 + high))


@dataclass(frozen=True, eq=False)
class LevelFlows:
    """Estimated flows between the places of a level.

    Attributes
    ----------
    origin, destination : array of int
        The places of each pair.
    pairs, starts, ends, total : Numbers
        For each pair, for each place, and for everything.
    """

    origin: Ints
    destination: Ints
    pairs: Numbers
    starts: Numbers
    ends: Numbers
    total: Numbers


@dataclass(frozen=True, eq=False)
class AreaLevel:
    """The places of one level of detail.

    Attributes
    ----------
    name : str
        The H3 resolution, ``districts`` or ``zones``.
    ids : list of str
        One for each place.
    outlines : list of dict or None
        GeoJSON geometry of each.
    cells : array of uint64 or None
        The H3 cell of each.
    """

    name: str
    ids: list[str]
    outlines: list[dict[str, Any] | None]
    cells: Cells | None = None
    names: list[str] | None = field(default=None)


class Estimator(Protocol):
    """Estimates the flows of one release between the places of a level."""

    def flows(self, level: AreaLevel, where: Mapping[str, str]) -> LevelFlows:
        """Return the flows of the trips with some values of attributes."""
        ...


def build_levels(
    levels: Sequence[AreaLevel],
    releases: Sequence[SavedRelease],
    estimators: Sequence[Estimator],
    shapes: ShapeTable,
    districts: Districts | None = None,
    home: int | None = None,
) -> list[dict[str, Any]]:
    """Pack all levels of a page, the coarsest first, with one set of tables for each release."""
    packed = []
    # The finest of three or more levels has no values: there, next to nothing is known of each.
    valued = levels[:-1] if len(levels) > 2 else levels
    paired = max((number for number, level in enumerate(valued) if len(level.ids) <= PAIR_PLACES), default=0)
    for number, level in enumerate(levels):
        tables = [
            _pack_tables(release, estimator, level, _choices(release, number < len(valued), number == paired))
            for release, estimator in zip(releases, estimators, strict=True)
        ]
        weight = np.sum([weight for _, weight in tables], axis=0)
        packed.append(_pack_places(level, shapes, districts, weight, home) | {"tables": [table for table, _ in tables]})
    return packed


def choose_levels(releases: Sequence[SavedRelease], districts: Districts | None) -> list[AreaLevel]:
    """Return the levels of a page, the coarsest first."""
    nodes = [cell_nodes(release.zone_index.ids) for release in releases]
    known = [each for each in nodes if each is not None]
    located = len(known) == len(nodes) and any((each.cell != WORLD).any() for each in known)
    levels = _cell_levels(releases, known) if located else _other_levels(releases)
    if districts is None:
        return levels
    size = float(np.median([polygon_area_km2(outline) for outline in districts.outlines]))
    kept = [level for level in levels if level.cells is None or _area_km2(level) < size / 2]
    return [AreaLevel("districts", districts.ids, list(districts.outlines), names=districts.names), *kept]


def _area_km2(level: AreaLevel) -> float:
    known = [polygon_area_km2(outline) for outline in level.outlines[:9] if outline is not None]
    return float(np.median(known)) if known else 0.0


def _cell_levels(releases: Sequence[SavedRelease], nodes: Sequence[CellNodes]) -> list[AreaLevel]:
    """Return the resolutions that enough trips are known at; the coarsest useful one if there is none."""
    cells = np.unique(np.concatenate([each.cell for each in nodes]))
    cells = cells[cells != WORLD]
    resolutions = cell_to_resolution(cells)
    found: list[AreaLevel] = []
    for resolution in range(int(resolutions.max(initial=0)), -1, -1):
        own = np.unique(cell_to_parent(cells[resolutions >= resolution], resolution))
        share = max(_known_share(*each, resolution) for each in zip(releases, nodes, strict=True))
        enough = share >= KNOWN or resolution <= resolutions.min(initial=0)
        if enough and len(own) <= MOST_PLACES and (len(own) >= FEWEST_PLACES or not found):
            found.append(_cell_level(own, resolution))
        if len(found) == LEVELS:
            break
    return found[::-1]


def _cell_level(cells: Cells, resolution: int) -> AreaLevel:
    ids = cell_to_str(cells).tolist()
    return AreaLevel(str(resolution), ids, [cell_to_polygon(each) for each in ids], cells)


def _known_share(release: SavedRelease, nodes: CellNodes, resolution: int) -> float:
    fine = (nodes.cell != WORLD) & (cell_to_resolution(nodes.cell) >= resolution)
    index, trips = release.zone_index, release.measure("trips")
    return float(trips[fine[index.origin] & fine[index.destination]].sum() / max(trips.sum(), 1.0))


def _other_levels(releases: Sequence[SavedRelease]) -> list[AreaLevel]:
    """Return the zones themselves, or cells under zones that overlap or are too many."""
    outlines: dict[str, dict[str, Any] | None] = {}
    for release in releases:
        outlines |= dict(zip(release.zone_index.ids, release.zone_index.outlines, strict=True))
    ids = sorted(outlines)
    known = [outline for outline in outlines.values() if outline is not None]
    if not known or (len(ids) <= MOST_PLACES and not _overlap(known)):
        return [AreaLevel("zones", ids, [outlines[each] for each in ids], names=ids)]
    points = [sample_points(outline) for outline in known]
    lat, lon = (np.concatenate([each[side] for each in points]) for side in (0, 1))
    found: list[AreaLevel] = []
    for resolution in range(MAX_RESOLUTION, -1, -1):
        cells = np.unique(latlng_to_cell(lat, lon, resolution))
        if len(cells) <= MOST_SAMPLED and len(found) < 2:
            found.append(_cell_level(cells, resolution))
    return found[::-1]


def _overlap(outlines: Sequence[dict[str, Any]]) -> bool:
    """Return whether outlines cover more than the box around them."""
    corners = np.concatenate(
        [np.array(polygon[0])[:, :2] for outline in outlines for polygon in list_polygons(outline)]
    )
    (west, south), (east, north) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    around = polygon_area_km2({"type": "Polygon", "coordinates": [ring]})
    return sum(map(polygon_area_km2, outlines)) > OVERLAP * around


def sample_points(outline: dict[str, Any] | None) -> tuple[Floats, Floats]:
    """Return latitudes and longitudes of points inside an outline, on a regular grid; none where it is unknown."""
    points = np.zeros((0, 2))
    for polygon in list_polygons(outline):
        ring = np.array(polygon[0], dtype=np.float64)[:, :2]
        low, high = ring.min(axis=0), ring.max(axis=0)
        steps = (np.arange(SAMPLES) + 0.5) / SAMPLES
        grid = np.stack(np.meshgrid(*(low[axis] + steps * (high[axis] - low[axis]) for axis in (0, 1))), -1)
        flat = grid.reshape(-1, 2)
        points = np.concatenate([points, flat[_inside(flat, ring)]])
    return points[:, 1], (points[:, 0] + 180) % 360 - 180


def _inside(points: Floats, ring: Floats) -> Bools:
    x, y = points.T
    (ax, ay), (bx, by) = ring[:-1].T[:, :, None], ring[1:].T[:, :, None]
    crosses = (ay > y) != (by > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = x < (bx - ax) * (y - ay) / (by - ay) + ax
    odd: Bools = (crosses & left).sum(axis=0) % 2 == 1
    return odd


def _pack_places(
    level: AreaLevel, shapes: ShapeTable, districts: Districts | None, weight: Floats, home: int | None
) -> dict[str, Any]:
    packed: dict[str, Any] = {"level": level.name, "id": level.ids}
    packed["shape"] = [shapes.number(outline) for outline in level.outlines]
    if level.names is not None:
        return packed | {"name": level.names}
    assert level.cells is not None
    lat, lon = cell_to_latlng(level.cells)
    return packed | name_places(lat, lon, weight, _area_km2(level), districts, home)


def _pack_tables(
    release: SavedRelease, estimator: Estimator, level: AreaLevel, choices: Sequence[dict[str, str]]
) -> tuple[dict[str, Any], Floats]:
    """Pack the flows of all trips and of each value, or each two, of attributes; and the trips of each place."""
    tables, weight = {}, np.zeros(len(level.ids))
    for where in choices:
        flows = estimator.flows(level, where)
        weight = flows.starts.trips if not where else weight
        key = "&".join(f"{name}={value}" for name, value in sorted(where.items()))
        tables[key] = _pack_flows(flows, MAX_PAIRS_BY_VALUE if where else MAX_PAIRS)
    return tables, weight


def attribute_values(release: SavedRelease) -> dict[str, list[str]]:
    """Return the values of each attribute of a cube that a reader can choose."""
    return {axis["name"]: list(axis["levels"][0]) for axis in release.manifest.get("axes", [])}


def _choices(release: SavedRelease, valued: bool, paired: bool) -> list[dict[str, str]]:
    """Return what can be chosen at a level: all, each value, and two values together."""
    values = attribute_values(release)
    one = [{name: value} for name, own in values.items() for value in own]
    if len(one) > MAX_TABLES or not valued:
        return [{}]
    return [{}, *one, *(_common_pairs(release, values) if paired else [])]


def _common_pairs(release: SavedRelease, values: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return the pairs of values of two attributes that rows state most trips of."""
    trips, table, found = release.measure("trips"), release.table, []
    for first, second in combinations(sorted(values), 2):
        texts = [table.column(name).to_pylist() for name in (first, second)]
        total: dict[tuple[str, str], float] = {}
        for pair, mass in zip(zip(*texts, strict=True), trips.tolist(), strict=True):
            total[pair] = total.get(pair, 0.0) + mass
        found += [
            (-mass, {first: a, second: b})
            for (a, b), mass in total.items()
            if a in values[first] and b in values[second]
        ]
    found.sort(key=lambda one: (one[0], sorted(one[1].items())))
    return [pair for _, pair in found[:MAX_PAIR_TABLES]]


def _pack_flows(flows: LevelFlows, most: int) -> dict[str, Any]:
    estimate = flows.pairs.trips
    order = np.lexsort((flows.destination, flows.origin, -estimate))
    kept = order[estimate[order] >= NEGLIGIBLE]
    left = float(estimate[kept[most]]) if len(kept) > most else NEGLIGIBLE
    kept = kept[:most]
    kept = kept[np.lexsort((flows.destination[kept], flows.origin[kept]))]
    return {
        "total": {name: whole[0] for name, whole in _whole(flows.total).items()},
        "starts": _pack_numbers(flows.starts),
        "ends": _pack_numbers(flows.ends),
        "origin": pack_numbers(flows.origin[kept]),
        "destination": pack_numbers(flows.destination[kept]),
        "pairs": _pack_numbers(flows.pairs.take(kept)),
        "least": round(left, 1),
    }


def _whole(numbers: Numbers) -> dict[str, list[int]]:
    """Return whole numbers: lower ends rounded down, upper ends up, so that they still hold."""
    return {
        name: _turn(name)(np.round(np.where(np.isfinite(values), values, UNBOUNDED), 6)).astype(np.int64).tolist()
        for name, values in numbers._asdict().items()
        if values is not None
    }


def _turn(name: str) -> Callable[..., Any]:
    return np.floor if name.endswith("low") else np.ceil if name.endswith("high") else np.rint


def _pack_numbers(numbers: Numbers) -> dict[str, Any]:
    return {name: pack_numbers(np.array(values, dtype=np.int64)) for name, values in _whole(numbers).items()}
