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
from odkanon.publish.attribute_view import certain_rows
from odkanon.publish.onto.apportionment import DECIMALS, SpreadRows, spread_rows
from odkanon.publish.onto.shares import Shapes, Weights, zone_shares
from odkanon.quality.accuracy.row_masses import masses_to_spread
from odkanon.read.tables.geo_files import ZonePolygons
from odkanon.release_format.folder import SavedRelease, read_release
from odkanon.zoning.cells import Floats
from odkanon.zoning.zone_nodes import TreeNodes, ZoneNodes, cell_nodes

OUTSIDE = "outside"
_MEASURES = ("trips", "weight")


@dataclass(frozen=True, eq=False)
class OntoBlock:
    """Flows from some zones in a row to all zones.

    Attributes
    ----------
    first : int
        The number of the first origin.
    units : dict of str to array of int
        By name, origin (first axis) and destination, the millionths of what each cell says.
    """

    first: int
    units: dict[str, Ints]

    @property
    def values(self) -> dict[str, Floats]:
        """The same as numbers. Millionths are exact: they add up to what is published, to the last one."""
        return {name: units / 10**DECIMALS for name, units in self.units.items()}


@dataclass(frozen=True, eq=False)
class OntoZones:
    """A release on given zones.

    A matrix may have as many cells as there are pairs of zones, so that it is worked out some origins at a time,
    whenever it is asked for.

    Attributes
    ----------
    codes : list of str
        All zones, in the order of their file, and last what lies outside of them.
    numbers : array of int or None
        The codes as whole numbers, where they are; outside is 0, or -1 if a zone is called so.
    measures : dict of str to SpreadRows
        ``trips`` and, where the release has weights, ``weight``.
    """

    codes: list[str]
    numbers: Ints | None
    measures: dict[str, SpreadRows]

    @property
    def names(self) -> list[str]:
        """What each cell says.

        ``trips``, ``trips_exact`` and, where there are weights, ``weight``, ``weight_exact``: what flows, and how much
        of it was published inside. The rest was spread, and is an estimate.
        """
        return [name for measure in self.measures for name in (measure, f"{measure}_exact")]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the flows as a table."""
        zone, number = self.zone_names.type, pa.float64()
        return pa.schema({"origin": zone, "destination": zone, **dict.fromkeys(self.names, number)})

    def blocks(self) -> Iterator[OntoBlock]:
        """Yield the matrix, some origins at a time."""
        for cells in zip(*(rows.blocks() for rows in self.measures.values()), strict=True):
            units = [values for part in cells for values in (part.units, part.exact)]
            yield OntoBlock(cells[0].first, dict(zip(self.names, units, strict=True)))

    def flows(self, block: OntoBlock) -> pa.Table:
        """Return the flows of a block that are above 0 as a table, sorted."""
        origin, destination = np.nonzero(np.logical_or.reduce([units != 0 for units in block.units.values()]))
        ends = {"origin": origin + block.first, "destination": destination}
        named = {axis: self.zone_names.take(pa.array(zones)) for axis, zones in ends.items()}
        return pa.table({**named, **{name: values[origin, destination] for name, values in block.values.items()}})

    def table(self) -> pa.Table:
        """Return all flows above 0 as a table, sorted."""
        return pa.concat_tables([self.flows(block) for block in self.blocks()])

    @cached_property
    def zone_names(self) -> pa.Array:
        """What the zones are called in tables: numbers where their codes are."""
        return pa.array(self.codes if self.numbers is None else self.numbers)


class Margins:
    """What begins and ends in each zone, added up block by block."""

    def __init__(self, found: OntoZones) -> None:
        self._found = found
        ways = [f"{measure}_{way}" for measure in found.measures for way in ("from", "to")]
        self._units = {way: np.zeros(len(found.codes), dtype=np.int64) for way in ways}

    def add(self, block: OntoBlock) -> None:
        """Add what flows in a block."""
        for measure in self._found.measures:
            units = block.units[measure]
            self._units[f"{measure}_from"][block.first : block.first + len(units)] += units.sum(axis=1)
            self._units[f"{measure}_to"] += units.sum(axis=0)

    def table(self) -> pa.Table:
        """Return all zones in their order."""
        sums = {name: units / 10**DECIMALS for name, units in self._units.items()}
        return pa.table({"zone": self._found.zone_names, **sums})


def release_onto(
    folder: str | Path, polygons: ZonePolygons, *, weights: Weights | None = None, where: str | None = None
) -> OntoZones:
    """Spread a saved release over zones of the user's own.

    A row goes to the pairs of zones that it meets, in proportion to the area of its own two zones that lies in each, or
    to the weight (residents, jobs) that does. A row that has finer rows inside it (a cascade) is spread over what these
    leave of it. Nothing but published numbers is used, so the result is as safe as they are.

    Parameters
    ----------
    folder : path
        A release.
    polygons : ZonePolygons
        The zones; see `odkanon.read.tables.geo_files.read_polygons`.
    weights : Weights, optional
        What to spread by instead of area; see `odkanon.publish.onto.shares.read_weights`.
    where : str, optional
        Of a cube, only rows all of whose trips are such; see `odkanon.publish.attribute_view.certain_rows`.
    """
    release = read_release(folder)
    asked = certain_rows(release, where)
    flows = release.flows
    names, shapes, shape = _zones(release)
    shares = zone_shares(shapes, polygons.shapes, weights)
    number = {name: position for position, name in enumerate(names)}
    origin, destination = (
        np.array([number[axis, zone] for zone in flows.column(axis).to_pylist()], dtype=np.int64)
        for axis in ("origin", "destination")
    )
    nodes = _nodes(release, shapes[shape])
    attributes = release.attributes
    size = None
    if weights is not None:
        size = shares.size[shape[origin]] * shares.size[shape[destination]]
        size = size * np.prod([kind.size[which] for kind, which in attributes], axis=0)
    published = [name for name in _MEASURES if name in flows.column_names]
    units = np.stack([_units(flows.column(name).to_numpy()) * asked for name in published], axis=1)
    spread = _corrected(units, [(nodes, origin), (nodes, destination), *attributes], size)
    ends, zones = (shape[origin], shape[destination]), len(polygons.codes) + 1
    measures = {
        name: spread_rows(*ends, units[:, at], spread[:, at], shares, zones) for at, name in enumerate(published)
    }
    numbers = polygons.numbers
    if numbers is not None:
        numbers = np.append(numbers, -1 if 0 in numbers else 0)
    return OntoZones([*polygons.codes, OUTSIDE], numbers, measures)


def _zones(release: SavedRelease) -> tuple[list[tuple[str, str]], Shapes, Ints]:
    """Return axis and name of all zones, their outlines, each once, and for each zone the number of its outline.

    Many are the same: those of cells on both axes, and of boxes that differ at the other end alone.
    """
    import shapely

    names = [(feature["properties"]["axis"], feature["properties"]["id"]) for feature in release.zones]
    texts = [json.dumps(feature.get("geometry")) for feature in release.zones]
    number = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    shapes = np.asarray(shapely.from_geojson([None if text == "null" else text for text in number]))

    if shapely.is_missing(shapes).all():
        raise InputError(f"no zone of {release.name} has an outline, so that nothing can be spread over others")
    return names, shapes, np.array([number[text] for text in texts], dtype=np.int64)


def _units(values: Floats) -> Ints:
    units: Ints = np.rint(values.astype(np.float64) * 10**DECIMALS).astype(np.int64)
    return units


def _nodes(release: SavedRelease, shapes: Shapes) -> ZoneNodes | None:
    """Return all zones as nodes of a tree: of H3 cells, or of polygons of which some lie in others."""
    about = [feature["properties"] for feature in release.zones]
    cells = cell_nodes([zone["id"] for zone in about])
    if cells is not None or not release.nested:
        return cells
    import shapely

    level, area = np.array([zone["level"] for zone in about]), np.array([zone["area_km2"] or 0.0 for zone in about])
    origin = np.array([zone["axis"] == "origin" for zone in about])
    known = np.flatnonzero(~shapely.is_missing(shapes))
    inside, around = shapely.STRtree(shapes[known]).query(shapely.point_on_surface(shapes[known]), predicate="within")
    inside, around = known[inside], known[around]
    same = origin[inside] == origin[around]
    # A zone that lies in none of a coarser level is alone there, and so is one without an outline.
    chain = np.tile(np.arange(len(about)), (int(level.max(initial=0)) + 1, 1))
    chain[level[around[same]], inside[same]] = around[same]
    return TreeNodes(chain[::-1], len(chain) - 1 - level, area)


def _corrected(units: Ints, axes: list[tuple[ZoneNodes | None, Ints]], size: Floats | None) -> Ints:
    """Return what to spread where rows lie inside rows; otherwise the units themselves."""
    exact = masses_to_spread(units.astype(np.float64), axes, size)
    spread: Ints = np.rint(exact).astype(np.int64)
    spread[spread.argmax(axis=0), np.arange(units.shape[1])] += units.sum(axis=0) - spread.sum(axis=0)
    return spread
