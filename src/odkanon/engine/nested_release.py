"""Releases whose classes lie in each other: rows at several levels, each with the trips that no finer row lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Codes, Ints
from odkanon.engine.residual import Groups, MemoryResidual, Residual
from odkanon.errors import UnsafeReleaseError
from odkanon.model.assignment import Assignment
from odkanon.model.flows import Flows, Totals
from odkanon.model.od import ODMatrix
from odkanon.model.published_flows import Classes, published_classes
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec, Structure
from odkanon.zoning.attribute_axis import AttributeAxis
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import Zones, zones_of_nodes


@dataclass(frozen=True, eq=False)
class Nested:
    """Rows to publish.

    Attributes
    ----------
    trees : tuple of Hierarchy
        The trees whose nodes rows lie between.
    levels : tuple of array of int
        For each axis, the level of the node of each row.
    groups : Groups
        The rows, with what is published of them; contributors are those that a row certainly has.
    above : array of int
        For each row, the finest other row that it lies in; -1 for none.
    finest_pairs : array of int
        For how many leaf pairs each row is the finest.
    own : Groups
        The OD pairs whose finest row each row is, with all of their trips, wherever these are listed.
    outside : Totals
        The OD pairs in none of the rows to publish, with all of their trips.
    number : array of int
        For each row that was found, its number among those to publish; -1 for none.
    residual : Rest
        What no row lists, and where OD pairs went.
    suppressed : Totals
        What is in none of the rows to publish.
    unlisted : int or None
        The most trips that can be in none of them, as far as they tell.
    axes : tuple of AttributeAxis
        Which of the trees are those of axes besides the two places.
    """

    trees: tuple[Hierarchy, ...]
    levels: tuple[Ints, ...]
    groups: Groups
    above: Ints
    finest_pairs: Ints
    own: Groups
    outside: Totals
    number: Ints
    residual: Residual
    suppressed: Totals
    unlisted: int | None
    axes: tuple[AttributeAxis, ...] = ()

    def classes(self) -> tuple[Zones, Zones, Classes, Ints]:
        """Return the zones and classes, and for each class the row that it is."""
        zones, number = zip(*(self._zones(axis) for axis in (0, 1)), strict=True)
        groups = self.groups
        flows = Flows(number[0], number[1], groups.pairs, groups.trips, groups.weight, {}, groups.scale)
        origins, destinations, classes, rows = published_classes(flows, np.ones(len(flows), dtype=bool), *zones)
        sure = {name: count[rows] for name, count in groups.contributors.items()}
        attributes = {axis.name: self._labels(at, rows) for at, axis in enumerate(self.axes, 2)}
        return (
            origins,
            destinations,
            replace(classes, min_contributors=sure, finest_pairs=self.finest_pairs[rows], attributes=attributes),
            rows,
        )

    def _labels(self, axis: int, rows: Ints) -> npt.NDArray[np.str_]:
        """Return what rows say of an axis besides the places."""
        tree, level, code = self.trees[axis], self.levels[axis][rows], self.groups.codes[axis][rows]
        first = np.cumsum([0, *(len(ids) for ids in tree.ids)])
        return np.concatenate([ids.astype(np.str_) for ids in tree.ids])[first[level] + code]

    def _zones(self, axis: int) -> tuple[Zones, Codes]:
        return zones_of_nodes(self.trees[axis], self.levels[axis], self.groups.codes[axis])


def nested_release(od: ODMatrix, spec: ReleaseSpec, nested: Nested) -> Release:
    """Return the release of rows at several levels, with its pairs in memory."""
    assert isinstance(nested.residual, MemoryResidual)
    origins, destinations, classes, rows = nested.classes()
    class_of_row = np.full(len(rows) + 1, -1, dtype=np.int32)
    class_of_row[rows] = np.arange(len(rows))
    row = nested.residual.areas(len(od))
    # The last entry is for pairs in no row, -1 both before and after.
    area = class_of_row[np.append(nested.number, -1)[row]]
    return Release(
        od.summary,
        spec,
        origins,
        destinations,
        classes,
        nested.suppressed,
        Structure.NESTED,
        Assignment(od, area, area >= 0, _excess(nested.suppressed, od.flows.totals(area < 0))),
        unlisted=nested.unlisted,
    )


def _excess(suppressed: Totals, unpublished: Totals) -> Totals:
    """Return what is suppressed of pairs that lie in a row; a row may list fewer trips than lie in it, never more.

    Rows share their weight with each other, so that of suppressed rows may be above or below that of their pairs.
    """
    excess = suppressed - unpublished
    if excess.pairs or excess.trips < 0:
        raise UnsafeReleaseError("what is suppressed is less than the pairs in no row add up to")
    return excess
