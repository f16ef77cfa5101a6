"""Flows between nodes of trees at any levels: the groups of a rung, and nested rows to publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.model.flows import Contributions, Flows, Totals
from odkanon.model.measures import MeasureColumns
from odkanon.model.published_flows import Classes, published_classes
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import Zones, zones_of_nodes

if TYPE_CHECKING:
    from odkanon.engine.protocols import Residual

_KEY_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class NodeFlows(MeasureColumns):
    """Flows between nodes, one node per axis."""

    codes: tuple[Ints, ...]
    """For each axis, the node numbers."""
    pairs: Ints
    """Number of OD pairs of the input in each flow."""
    trips: Ints
    """Number of trips."""
    weight_units: Ints | None
    """Sum of weights, in units of ``1 / scale``."""
    contributors: Mapping[str, Ints]
    """Number of distinct contributors, by measure."""
    scale: int

    def take(self, which: Ints) -> NodeFlows:
        """Return some of the flows."""
        return self.with_masses(
            lambda name: getattr(self, name)[which],
            codes=tuple(code[which] for code in self.codes),
            contributors={name: count[which] for name, count in self.contributors.items()},
        )

    def with_masses(self, change: Callable[[str], Ints], **others: Any) -> NodeFlows:
        """Return the flows with each additive mass replaced, given the name of its field, and with other fields."""
        weight = None if self.weight_units is None else change("weight_units")
        return replace(self, pairs=change("pairs"), trips=change("trips"), weight_units=weight, **others)

    def totals(self) -> Totals:
        """Return the totals of all flows."""
        weight = None if self.weight_units is None else int(self.weight_units.sum())
        return Totals(int(self.pairs.sum()), int(self.trips.sum()), weight)

    def flows(self, contributions: Mapping[str, Contributions] | None = None, scale: int | None = None) -> Flows:
        """Return OD pairs between leaves as flows."""
        origin, destination, *attributes = (code.astype(np.int32) for code in self.codes)
        ones, scale = np.ones_like(self.trips), scale or self.scale
        return Flows(
            origin,
            destination,
            ones,
            self.trips,
            self.weight_units,
            contributions or {},
            scale,
            attributes=tuple(attributes),
        )


def codes_to_keys(nodes: Sequence[int], *parts: Sequence[Ints]) -> tuple[Ints, ...]:
    """Return one number for each combination of nodes, in the order of their codes.

    Equal combinations have the same number in all parts. If the numbers of all possible ones exceed 64 bits (as with
    seven attributes of 512 values), those that occur are renumbered along the way.

    * ``nodes``: for each axis, the number of nodes.
    * ``parts``: for each axis, the nodes of some combinations.
    """
    sizes = [len(codes[0]) for codes in parts]
    key, space = np.concatenate([codes[0] for codes in parts]), int(nodes[0])
    for axis, count in enumerate(nodes[1:], 1):
        if space * int(count) >= _KEY_LIMIT:
            distinct, key = np.unique(key, return_inverse=True)
            space = max(len(distinct), 1)
        key = key * count + np.concatenate([codes[axis] for codes in parts])
        space *= int(count)
    return tuple(np.split(key, np.cumsum(sizes)[:-1]))


def key_space(nodes: Sequence[int]) -> int:
    """Return an upper bound of the keys of combinations of nodes."""
    return min(prod(int(count) for count in nodes), _KEY_LIMIT)


@dataclass(frozen=True, eq=False)
class NestedRows:
    """Rows to publish at several levels, each with the trips that no finer row lists."""

    trees: tuple[Hierarchy, ...]
    """For each axis, the tree of its nodes."""
    levels: tuple[Ints, ...]
    """For each axis, the level of the node of each row."""
    groups: NodeFlows
    """The rows with their published masses; contributors are lower bounds."""
    at_cap: Bools
    """Whether a row lists as much as it may, so that there may be more trips of its group."""
    hides_weight: Bools
    """Whether the weight of a row would disclose something of the trips above the caps."""
    above: Ints
    """For each row, the finest other row that contains it; -1 for none."""
    finest_pairs: Ints
    """For each row, the number of leaf pairs whose finest row it is."""
    own: NodeFlows
    """For each row, the total of the OD pairs whose finest row it is, whichever rows list their trips."""
    outside: Totals
    """The total of the OD pairs in no published row."""
    number: Ints
    """For each row that was found, its number among the published ones; -1 if it is not published."""
    residual: Residual
    """The trips that no row lists, and the rows of the OD pairs."""
    suppressed: Totals
    """The trips in no published row."""
    unlisted: int | None
    """An upper bound of the suppressed trips that follows from the published rows."""
    axes: tuple[AttributeAxis, ...] = ()
    """The attributes of a cube."""

    def classes(self) -> tuple[Zones, Zones, Classes, Ints]:
        """Return the zones and classes, and for each class the number of its row."""
        groups = self.groups
        each = (zones_of_nodes(self.trees[axis], self.levels[axis], groups.codes[axis]) for axis in (0, 1))
        zones, number = zip(*each, strict=True)
        flows = Flows(number[0], number[1], groups.pairs, groups.trips, groups.weight_units, {}, groups.scale)
        origins, destinations, classes, rows = published_classes(flows, np.ones(len(flows), dtype=bool), *zones)
        nested = replace(
            classes,
            min_contributors={name: count[rows] for name, count in groups.contributors.items()},
            finest_pairs=self.finest_pairs[rows],
            at_cap=self.at_cap[rows],
            hides_weight=self.hides_weight[rows],
            attributes={axis.name: self._labels(at, rows) for at, axis in enumerate(self.axes, 2)},
        )
        return origins, destinations, nested, rows

    def area_of_pair(self, rows: Ints, row_of_pair: Codes) -> Codes:
        """Return the class in whose area each OD pair lies, given the rows of classes and of pairs; -1 for none."""
        class_of_row = np.full(len(rows) + 1, -1, dtype=np.int32)
        class_of_row[rows] = np.arange(len(rows))
        # The last entry is for pairs in no row, -1 both before and after.
        area: Codes = class_of_row[np.append(self.number, -1)[row_of_pair]]
        return area

    def _labels(self, axis: int, rows: Ints) -> npt.NDArray[np.str_]:
        """Return the values of rows on the axis of an attribute."""
        tree, level, code = self.trees[axis], self.levels[axis][rows], self.groups.codes[axis][rows]
        labels: npt.NDArray[np.str_] = np.concatenate([ids.astype(np.str_) for ids in tree.ids])[
            tree.offsets[level] + code
        ]
        return labels
