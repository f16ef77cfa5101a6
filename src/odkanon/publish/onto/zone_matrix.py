"""A saved release as a matrix on zones of the user's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.estimate.row_combinations import certain_rows
from odkanon.estimate.zone_shares import Geometries, WeightedPoints, zone_shares
from odkanon.methods.method_registry import is_nested
from odkanon.model.axes import AXES
from odkanon.publish.onto.apportionment import DECIMALS, ApportionedRows, apportion
from odkanon.quality.accuracy.row_masses import masses_to_spread
from odkanon.read.tables.geo_files import ZonePolygons
from odkanon.release_format.folder import SavedRelease, open_release
from odkanon.zoning.cells import Floats
from odkanon.zoning.zone_nodes import TreeNodes, ZoneNodes, attribute_nodes, cell_nodes

OUTSIDE = "outside"
_MEASURES = ("trips", "weight")


@dataclass(frozen=True, eq=False)
class ValueBlock:
    """Flows from consecutive zones to all zones."""

    first: int
    """Position of the first origin."""
    units: dict[str, Ints]
    """By name, origin (first axis) and destination, the millionths of each cell."""

    @property
    def values(self) -> dict[str, Floats]:
        """The cells as floats. In millionths they add up exactly to the published totals."""
        return {name: units / 10**DECIMALS for name, units in self.units.items()}


@dataclass(frozen=True, eq=False)
class ZoneMatrix:
    """A release on given zones, computed block by block whenever it is needed: it may be larger than memory."""

    codes: list[str]
    """The zones, in the order of their file, and last the outside."""
    numbers: Ints | None
    """The codes as integers, if they are; the outside is 0, or -1 if a zone has the code 0."""
    measures: dict[str, ApportionedRows]
    """``trips`` and, where the release has weights, ``weight``."""
    noisy: bool = False
    """Whether the rows are estimates with noise, so that no part of a cell is exact."""

    @property
    def names(self) -> list[str]:
        """The values of each cell.

        ``trips``, ``trips_exact`` and, where there are weights, ``weight``, ``weight_exact``: the flow, and the part of
        it that was published between zones inside. The difference is an estimate. Of noise all is.
        """
        if self.noisy:
            return [*self.measures]
        return [name for measure in self.measures for name in (measure, f"{measure}_exact")]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the flows as a table."""
        zone, number = self.zone_names.type, pa.float64()
        return pa.schema({"origin": zone, "destination": zone, **dict.fromkeys(self.names, number)})

    def blocks(self) -> Iterator[ValueBlock]:
        """Yield the matrix, some origins at a time."""
        for blocks in zip(*(rows.blocks() for rows in self.measures.values()), strict=True):
            units = [values for block in blocks for values in (block.units, block.exact)[: 2 - self.noisy]]
            yield ValueBlock(blocks[0].first, dict(zip(self.names, units, strict=True)))

    def flows(self, block: ValueBlock) -> pa.Table:
        """Return the positive flows of a block as a sorted table."""
        origin, destination = np.nonzero(np.logical_or.reduce([units != 0 for units in block.units.values()]))
        ends = {"origin": origin + block.first, "destination": destination}
        named = {axis: self.zone_names.take(pa.array(zones)) for axis, zones in ends.items()}
        return pa.table({**named, **{name: values[origin, destination] for name, values in block.values.items()}})

    def table(self) -> pa.Table:
        """Return all positive flows as a sorted table."""
        return pa.concat_tables([self.flows(block) for block in self.blocks()])

    @cached_property
    def zone_names(self) -> pa.Array:
        """The names of zones in tables: integers where their codes are."""
        return pa.array(self.codes if self.numbers is None else self.numbers)


class MatrixMargins:
    """What starts and ends in each zone, summed block by block."""

    def __init__(self, matrix: ZoneMatrix) -> None:
        self._matrix = matrix
        names = [f"{measure}_{end}" for measure in matrix.measures for end in ("from", "to")]
        self._units = {name: np.zeros(len(matrix.codes), dtype=np.int64) for name in names}

    def add(self, block: ValueBlock) -> None:
        """Add the flows of a block."""
        for measure in self._matrix.measures:
            units = block.units[measure]
            self._units[f"{measure}_from"][block.first : block.first + len(units)] += units.sum(axis=1)
            self._units[f"{measure}_to"] += units.sum(axis=0)

    def table(self) -> pa.Table:
        """Return the sums of all zones, in their order."""
        sums = {name: units / 10**DECIMALS for name, units in self._units.items()}
        return pa.table({"zone": self._matrix.zone_names, **sums})


def release_onto(
    folder: str | Path, polygons: ZonePolygons, *, weights: WeightedPoints | None = None, where: str | None = None
) -> ZoneMatrix:
    """Apportion a saved release to zones of the user's own.

    A row goes to the pairs of target zones that it intersects, in proportion to the area of its own two zones in each,
    or to the weight (residents, jobs) there. A row with finer rows inside it (in a cascade) is spread over what these
    leave of it. Only published numbers are used, so the result is as safe as they are.

    Parameters
    ----------
    folder : path
        A release.
    polygons : ZonePolygons
        The target zones; see `odkanon.read.tables.geo_files.read_polygons`.
    weights : WeightedPoints, optional
        Weights to apportion by instead of area; see `odkanon.estimate.zone_shares.read_weights`.
    where : str, optional
        For a cube, a filter of rows; see `odkanon.publish.attribute_view.certain_rows`.
    """
    release = open_release(folder)
    release.require_flows("a matrix on other zones")
    selected = certain_rows(release, where)
    names, outlines, outline = _outlines(release)
    shares = zone_shares(outlines, polygons.shapes, weights)
    position = {name: number for number, name in enumerate(names)}
    origin, destination = (
        np.array([position[axis, zone] for zone in release.table.column(axis).to_pylist()], dtype=np.int64)
        for axis in AXES
    )
    nodes = _nodes(release, outlines[outline])
    attributes = attribute_levels(release)
    size = None
    if weights is not None:
        size = shares.size[outline[origin]] * shares.size[outline[destination]]
        size = size * np.prod([own.size[which] for own, which in attributes], axis=0)
    published = [name for name in _MEASURES if name in release.table.column_names]
    units = np.stack([_units(release.measure(name)) * selected for name in published], axis=1)
    to_spread = _corrected(units, [(nodes, origin), (nodes, destination), *attributes], size)
    ends, targets = (outline[origin], outline[destination]), len(polygons.codes) + 1
    measures = {
        name: apportion(*ends, units[:, at], to_spread[:, at], shares, targets) for at, name in enumerate(published)
    }
    numbers = polygons.numbers
    if numbers is not None:
        numbers = np.append(numbers, -1 if 0 in numbers else 0)
    return ZoneMatrix([*polygons.codes, OUTSIDE], numbers, measures, noisy=release.is_noisy)


def attribute_levels(release: SavedRelease) -> list[tuple[ZoneNodes, Ints]]:
    """Return for each attribute of a cube its distinct labels as nodes of a tree, and for each row its position."""
    return [
        attribute_nodes(np.array(release.table.column(axis["name"]).to_pylist(), dtype=np.str_), axis["levels"])
        for axis in release.manifest.get("axes", [])
    ]


def _outlines(release: SavedRelease) -> tuple[list[tuple[str, str]], Geometries, Ints]:
    """Return axis and id of all zones, their distinct outlines, and for each zone the position of its outline.

    Many are equal: those of cells on both axes, and of boxes that differ at the other end only.
    """
    import shapely

    names = [(zone["properties"]["axis"], zone["properties"]["id"]) for zone in release.features]
    texts = [json.dumps(zone.get("geometry")) for zone in release.features]
    position = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    outlines = np.asarray(shapely.from_geojson([None if text == "null" else text for text in position]))
    if shapely.is_missing(outlines).all():
        raise InputError(f"no zone of {release.name} has an outline, so nothing can be apportioned to other zones")
    return names, outlines, np.array([position[text] for text in texts], dtype=np.int64)


def _units(values: Floats) -> Ints:
    units: Ints = np.rint(values * 10**DECIMALS).astype(np.int64)
    return units


def _nodes(release: SavedRelease, outlines: Geometries) -> ZoneNodes | None:
    """Return all zones as nodes of a tree: of H3 cells, or of nested polygons; None where zones do not nest."""
    properties = [zone["properties"] for zone in release.features]
    cells = cell_nodes([own["id"] for own in properties])
    if cells is not None or not is_nested(str(release.manifest.get("method"))):
        return cells
    import shapely

    level = np.array([own["level"] for own in properties])
    area = np.array([own["area_km2"] or 0.0 for own in properties])
    origin = np.array([own["axis"] == "origin" for own in properties])
    known = np.flatnonzero(~shapely.is_missing(outlines))
    points = shapely.point_on_surface(outlines[known])
    inside, around = shapely.STRtree(outlines[known]).query(points, predicate="within")
    inside, around = known[inside], known[around]
    same = origin[inside] == origin[around]
    # A zone inside none of a coarser level is its own ancestor there, and so is one without an outline.
    chain = np.tile(np.arange(len(properties)), (int(level.max(initial=0)) + 1, 1))
    chain[level[around[same]], inside[same]] = around[same]
    return TreeNodes(chain[::-1], len(chain) - 1 - level, area)


def _corrected(units: Ints, axes: list[tuple[ZoneNodes | None, Ints]], size: Floats | None) -> Ints:
    """Return the units to apportion where rows nest; otherwise the units themselves."""
    exact = masses_to_spread(units.astype(np.float64), axes, size)
    to_spread: Ints = np.rint(exact).astype(np.int64)
    to_spread[to_spread.argmax(axis=0), np.arange(units.shape[1])] += units.sum(axis=0) - to_spread.sum(axis=0)
    return to_spread
