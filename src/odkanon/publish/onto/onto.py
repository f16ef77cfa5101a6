"""A saved release as a matrix on zones of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.publish.onto.shares import Shapes, Weights, zone_shares
from odkanon.publish.onto.spread import DECIMALS, Cells, spread_rows
from odkanon.publish.saved import SavedRelease, read_release, to_shapes
from odkanon.quality.usefulness.rows import around_rows, corrected, nodes_of
from odkanon.read.polygons import Polygons
from odkanon.zoning.cells import Floats

OUTSIDE = "outside"
_MEASURES = ("trips", "weight")


@dataclass(frozen=True, eq=False)
class OntoZones:
    """A release on given zones.

    Attributes
    ----------
    codes : list of str
        All zones, in the order of their file, and last what lies outside of them.
    numbers : array of int or None
        The codes as whole numbers, where they are; outside is 0, or -1 if a zone is called so.
    origin, destination : array of int
        For each flow, the places of its zones among the codes; sorted, and only flows above 0.
    values : dict of str to array of float
        ``trips``, ``trips_exact`` and, where the release has weights, ``weight``, ``weight_exact``: what flows, and how
        much of it was published inside. The rest was spread, and is an estimate. Millionths are exact: they add up to
        what is published, to the last one.
    """

    codes: list[str]
    numbers: Ints | None
    origin: Ints
    destination: Ints
    values: dict[str, Floats]

    def table(self) -> pa.Table:
        """Return the flows as a table."""
        names: Any = np.array(self.codes, dtype=object) if self.numbers is None else self.numbers
        ends = {"origin": names[self.origin], "destination": names[self.destination]}
        return pa.table({**ends, **self.values})

    def zones(self) -> pa.Table:
        """Return all zones in their order, with what begins and ends in each."""
        names: Any = self.codes if self.numbers is None else self.numbers
        columns: dict[str, Any] = {"zone": names}
        for measure in (name for name in _MEASURES if name in self.values):
            for end, column in ((self.origin, "from"), (self.destination, "to")):
                sums = np.bincount(end, weights=self.values[measure], minlength=len(self.codes))
                columns[f"{measure}_{column}"] = sums.round(DECIMALS)
        return pa.table(columns)


def release_onto(folder: str | Path, polygons: Polygons, *, weights: Weights | None = None) -> OntoZones:
    """Spread a saved release over zones of the user's own.

    A row goes to the pairs of zones that it meets, in proportion to the area of its own two zones that lies in each, or
    to the weight (residents, jobs) that does. A row that has finer rows inside it (a cascade) is spread over what these
    leave of it. Nothing but published numbers is used, so the result is as safe as they are.

    Parameters
    ----------
    folder : path
        A release.
    polygons : Polygons
        The zones; see `odkanon.read.polygons.read_polygons`.
    weights : Weights, optional
        What to spread by instead of area; see `odkanon.publish.onto.shares.read_weights`.
    """
    release = read_release(folder)
    if release.axes:
        raise InputError(
            f"{release.name} is a cube: a coarse row may hold trips of other kinds where a finer one lies, so that it "
            "cannot be spread over other zones; make a release of places for that"
        )
    flows = release.flows
    shapes, names = _zones(release)
    shares = zone_shares(shapes, polygons.shapes, weights)
    number = {name: position for position, name in enumerate(names)}
    origin, destination = (
        np.array([number[axis, zone] for zone in flows.column(axis).to_pylist()], dtype=np.int64)
        for axis in ("origin", "destination")
    )
    cells: dict[str, Cells] = {}
    for measure in (name for name in _MEASURES if name in flows.column_names):
        units = _units(flows.column(measure).to_numpy())
        size = None if weights is None else shares.size[origin] * shares.size[destination]
        spread = _corrected(units, [name for _, name in names], origin, destination, size)
        cells[measure] = spread_rows(origin, destination, units, spread, (shares, shares), len(polygons.codes) + 1)
    return _on(polygons, cells)


def _zones(release: SavedRelease) -> tuple[Shapes, list[tuple[str, str]]]:
    """Return the outlines of all zones, and axis and name of each."""
    names = [(feature["properties"]["axis"], feature["properties"]["id"]) for feature in release.zones]
    shapes = to_shapes([feature.get("geometry") for feature in release.zones])
    import shapely

    if shapely.is_missing(shapes).all():
        raise InputError(f"no zone of {release.name} has an outline, so that nothing can be spread over others")
    return shapes, names


def _units(values: Floats) -> Ints:
    units: Ints = np.rint(values.astype(np.float64) * 10**DECIMALS).astype(np.int64)
    return units


def _corrected(units: Ints, names: list[str], origin: Ints, destination: Ints, size: Floats | None) -> Ints:
    """Return what to spread where rows lie inside rows between H3 cells; otherwise the units themselves."""
    nodes = nodes_of(names)
    if nodes is None:
        return units
    ends = nodes.take(origin), nodes.take(destination)
    if (around_rows(*ends) < 0).all():
        return units
    exact = corrected(units[:, None].astype(np.float64), *ends, size)[:, 0]
    spread: Ints = np.rint(exact).astype(np.int64)
    spread[np.argmax(spread)] += int(units.sum()) - int(spread.sum())
    return spread


def _on(polygons: Polygons, cells: dict[str, Cells]) -> OntoZones:
    places = len(polygons.codes) + 1
    keys = np.unique(np.concatenate([part.origin * places + part.destination for part in cells.values()]))
    values: dict[str, Floats] = {}
    for measure, part in cells.items():
        at = np.searchsorted(keys, part.origin * places + part.destination)
        for name, units in ((measure, part.units), (f"{measure}_exact", part.exact)):
            whole = np.zeros(len(keys), dtype=np.int64)
            whole[at] = units
            values[name] = whole / 10**DECIMALS
    numbers = polygons.numbers
    if numbers is not None:
        numbers = np.append(numbers, -1 if 0 in numbers else 0)
    return OntoZones([*polygons.codes, OUTSIDE], numbers, keys // places, keys % places, values)
