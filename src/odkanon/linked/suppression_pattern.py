"""The cells of the whole and of every dimension that may be published on a given zoning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odkanon.attributes.dimensions import Dimension
from odkanon.core.arrays import Bools, Codes, Ints, number_groups
from odkanon.linked.complementary_suppression import protect_partition, protect_whole
from odkanon.model.flows import Flows
from odkanon.model.rule import Rule


@dataclass(frozen=True, eq=False)
class Plan:
    """The cells that may be published on a zoning."""

    whole: Bools
    """For each class, whether the whole publishes it."""
    cells: tuple[Bools, ...]
    """For each dimension, whether it publishes a (class, value)."""
    shares: tuple[float, ...]
    """For each dimension, the share of trips that its tables suppress."""


def count(flows: Flows, origin: Codes | Ints, destination: Codes | Ints) -> Flows:
    """Return the flows merged by two numbers."""
    return flows.merge(origin.astype(np.int32), destination.astype(np.int32))[0]


def count_values(flows: Flows, dimension: Dimension) -> Flows:
    """Return the masses of each value of a dimension that occurs; the destination is the value."""
    return count(flows, np.zeros(len(flows), dtype=np.int32), dimension.value)


def groups_of(dimension: Dimension, parent: Dimension | None) -> Ints:
    """Return, for each value, the value of the parent dimension to which it belongs; all 0 without a parent."""
    group = np.zeros(len(dimension), dtype=np.int64)
    if parent is not None:
        group[dimension.value] = parent.value
    return group


def find_rare(flows: Flows, dimension: Dimension, rule: Rule) -> Bools:
    """Return which values are below the rule in total, so that they cannot have a table."""
    totals = count_values(flows, dimension)
    rare = np.zeros(len(dimension), dtype=bool)
    rare[totals.destination[~rule.satisfied(totals)]] = True
    return rare


def jointly_rare(flows: Flows, dimension: Dimension, parent: Dimension | None, rule: Rule) -> Bools:
    """Return which flows belong to rare values that are below the rule even jointly.

    Subtracting all tables from the whole would isolate them on any zoning, so the whole has to omit them, too.
    """
    rare, group = find_rare(flows, dimension, rule), groups_of(dimension, parent)
    theirs = rare[dimension.value]
    group_of_flow = group[dimension.value]
    residuals = count(flows.take(theirs), group_of_flow[theirs], np.zeros(int(theirs.sum()), dtype=np.int32))
    return theirs & np.isin(group_of_flow, residuals.origin[~rule.satisfied(residuals)])


def make_plan(
    flows: Flows,
    klass: Ints,
    classes: int,
    dimensions: Sequence[Dimension],
    parents: Sequence[int | None],
    rule: Rule,
    *,
    widths: Mapping[str, int] | None = None,
) -> Plan:
    """Return the cells that may be published.

    * ``flows``: trips, or groups of trips with the same value of each dimension.
    * ``klass``: for each flow, the number of its class; -1 outside every zone.
    * ``parents``: for each dimension, the coarser one that it refines.
    * ``widths``: see `odkanon.linked.complementary_suppression.protect_partition`.
    """
    outside = np.where(klass < 0, classes, klass)
    counted = count(flows, outside, np.zeros(len(flows), dtype=np.int32))
    suppressed = protect_whole(counted, counted.origin == classes, rule)
    whole = np.zeros(classes + 1, dtype=bool)
    whole[counted.origin[~suppressed]] = True
    cells: list[Bools] = [np.zeros((0, 0), dtype=bool)] * len(dimensions)
    shares = [0.0] * len(dimensions)
    for number in sorted(range(len(dimensions)), key=lambda each: _depth(each, parents)):
        parent = parents[number]
        above = None if parent is None else (dimensions[parent], cells[parent])
        cells[number] = _plan_dimension(flows, outside, whole, dimensions[number], above, rule, widths)
        listed = cells[number][outside, dimensions[number].value]
        shares[number] = 1 - int(flows.trips[listed].sum()) / int(flows.trips.sum())
    return Plan(whole[:-1], tuple(table[:-1] for table in cells), tuple(shares))


def _depth(number: int, parents: Sequence[int | None]) -> int:
    parent = parents[number]
    return 0 if parent is None else 1 + _depth(parent, parents)


def _plan_dimension(
    flows: Flows,
    klass: Ints,
    whole: Bools,
    dimension: Dimension,
    above: tuple[Dimension, Bools] | None,
    rule: Rule,
    widths: Mapping[str, int] | None,
) -> Bools:
    parent = None if above is None else above[0]
    row = _rows(klass, whole, above)
    rows, number = number_groups(row, int(row.max(initial=0)) + 1)
    class_of_row = np.zeros(len(rows), dtype=np.int64)
    class_of_row[number] = klass
    cells = count(flows, number, dimension.value)
    closed = ~whole[class_of_row[cells.origin]]
    withheld = find_rare(flows, dimension, rule)
    result = protect_partition(cells, closed, withheld, groups_of(dimension, parent), rule, widths=widths)
    published = np.zeros((len(whole), len(dimension)), dtype=bool)
    kept = ~result.suppressed
    published[class_of_row[cells.origin[kept]], cells.destination[kept]] = True
    return published


def _rows(klass: Ints, whole: Bools, above: tuple[Dimension, Bools] | None) -> Ints:
    """Return the row of each flow: the finest published group that counts it; one row for all flows in none."""
    if above is None:
        return np.where(whole[klass], klass + 1, 0)
    parent, published = above
    listed = published[klass, parent.value]
    own = 1 + klass * (len(parent) + 1) + np.where(listed, parent.value + 1, 0)
    return np.where(whole[klass], own, 0)
