"""The input counted on places and by length, wherever its pairs are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints, group_sum, number_groups
from odkanon.core.weights import from_units
from odkanon.engine.dispatch import open_workspace
from odkanon.engine.protocols import Engine
from odkanon.engine.sql.backend import upload_columns
from odkanon.engine.sql.engine import int_column, join_maps
from odkanon.engine.sql.matrix import SqlMatrix
from odkanon.model.od import Matrix, ODMatrix
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Cut, Hierarchy

LENGTH_STEP = 10
"""Metres; lengths are rounded down to it, so that engines agree on every digit."""


@dataclass(frozen=True, eq=False)
class Ends:
    """The leaves of both axes on a map: whole metres, so that engines agree on every digit."""

    origin: tuple[Floats, Floats]
    destination: tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class Counted:
    """Flows between places that occur, sorted by origin and then by destination.

    Attributes
    ----------
    places : tuple of array of int
        Numbers of the places of both axes, sorted.
    origin, destination : array of int
        Which of these places the ends are in.
    mass : array of float, shape (pairs, measures)
        What goes from one to the other, in each measure.
    """

    places: tuple[Ints, Ints]
    origin: Codes
    destination: Codes
    mass: Floats

    @property
    def stays(self) -> Bools:
        """Which flows stay in their place."""
        found: Bools = self.places[0][self.origin] == self.places[1][self.destination]
        return found


def engine_of(matrix: Matrix, measures: tuple[str, ...]) -> Engine:
    """Return an engine over all pairs of a matrix."""
    return open_workspace(matrix).engine(frozenset(measures))


def on_places(
    engine: Engine, matrix: Matrix, places: tuple[Ints, Ints], measures: tuple[str, ...]
) -> tuple[Counted, Engine]:
    """Count the input on places.

    Parameters
    ----------
    engine : Engine
        Over the pairs, or over smaller places inside these.
    places : tuple of array of int
        For each leaf of both axes, the number of its place.

    Returns
    -------
    counted : Counted
    engine : Engine
        Over these places, to be asked for larger ones.
    """
    known = [np.unique(place) for place in places]
    cuts = [
        _cut(tree, np.searchsorted(numbers, place))
        for tree, numbers, place in zip((matrix.origins, matrix.destinations), known, places, strict=True)
    ]
    coarser = engine.coarsen(*cuts)
    flows = coarser.flows
    mass = np.stack([_mass(getattr(flows, measure), measure, flows.scale) for measure in measures], axis=1)
    return Counted((known[0], known[1]), flows.origin, flows.destination, mass), coarser


def _cut(tree: Hierarchy, number: Ints) -> Cut:
    """Return numbered places as if they were zones of a cut; an engine needs no more of them than these numbers."""
    _, first = np.unique(number, return_index=True)
    return Cut(tree, np.zeros(len(first), dtype=np.int8), first, number.astype(np.int32))


def _mass(units: Ints, measure: str, scale: int) -> Floats:
    return np.asarray(from_units(units, scale if measure == "weight" else 1), dtype=np.float64)


def by_length(matrix: Matrix, ends: Ends, measures: tuple[str, ...]) -> tuple[Ints, Floats]:
    """Return lengths that occur, in steps of `LENGTH_STEP`, and the mass of each in each measure."""
    scale = matrix.summary.scale
    if isinstance(matrix, SqlMatrix) and not matrix.is_small:
        steps, units = _stored_lengths(matrix, ends, measures)
    else:
        steps, units = _lengths(matrix.in_memory(), ends, measures)
    return steps, np.stack([_mass(units[name], name, scale) for name in measures], axis=1)


def length_steps(x: Floats, y: Floats) -> Ints:
    """Return lengths in steps, rounded down, from differences in metres."""
    return np.floor(np.sqrt(x * x + y * y) / LENGTH_STEP).astype(np.int64)


def _lengths(od: ODMatrix, ends: Ends, measures: tuple[str, ...]) -> tuple[Ints, dict[str, Ints]]:
    flows = od.flows
    apart = [b[flows.destination] - a[flows.origin] for a, b in zip(ends.origin, ends.destination, strict=True)]
    steps = length_steps(apart[0], apart[1])
    known, number = number_groups(steps, int(steps.max(initial=0)) + 1)
    return known, {measure: group_sum(number, len(known), getattr(flows, measure)) for measure in measures}


def _stored_lengths(matrix: SqlMatrix, ends: Ends, measures: tuple[str, ...]) -> tuple[Ints, dict[str, Ints]]:
    maps = [
        upload_columns(matrix.backend, place=keys, x=x, y=y)
        for keys, (x, y) in zip(matrix.keys, (ends.origin, ends.destination), strict=True)
    ]
    sums = ", ".join(f"CAST(SUM(f.{measure}) AS BIGINT) AS {measure}" for measure in measures)
    length = f"CAST(FLOOR(SQRT((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y)) / {LENGTH_STEP}) AS BIGINT)"
    found = matrix.backend.execute(
        f"SELECT {length} AS step, {sums} FROM {matrix.pairs} f {join_maps('f', *maps)} GROUP BY {length}"
    )
    order = np.argsort(int_column(found, "step"))
    return int_column(found, "step")[order], {measure: int_column(found, measure)[order] for measure in measures}
