"""Which cells of the whole and of every dimension may be published on a given zoning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints, number_groups
from odkanon.model.flows import Flows, visits_of_records
from odkanon.model.rule import Rule
from odkanon.read.trips import Trips
from odkanon.together.dimensions import Dimension
from odkanon.together.protect import protect_partition, protect_whole


@dataclass(frozen=True, eq=False)
class Plan:
    """What may be published on a zoning.

    Attributes
    ----------
    whole : array of bool
        For each class, whether the whole publishes it.
    cells : tuple of array of bool
        For each dimension, whether it publishes a (class, value).
    shares : tuple of float
        For each dimension, the share of trips that its tables suppress.
    """

    whole: Bools
    cells: tuple[Bools, ...]
    shares: tuple[float, ...]


def count_trips(trips: Trips, origin: Codes | Ints, destination: Codes | Ints) -> Flows:
    """Return the trips counted by two numbers each."""
    visits = visits_of_records(trips.heads)
    ones = np.ones(len(trips), dtype=np.int64)
    origin, destination = origin.astype(np.int32), destination.astype(np.int32)
    counted, _ = Flows(origin, destination, ones, ones, trips.weight, visits, trips.scale).merge(origin, destination)
    return counted


def groups_of(dimension: Dimension, parent: Dimension | None) -> Ints:
    """Return, for each value, the value of the parent dimension to which it belongs; all 0 without a parent."""
    group = np.zeros(len(dimension), dtype=np.int64)
    if parent is not None:
        group[dimension.value] = parent.value
    return group


def find_rare(trips: Trips, dimension: Dimension, rule: Rule) -> Bools:
    """Return which values have so few trips in all that they cannot have a table."""
    totals = count_trips(trips, np.zeros(len(trips), dtype=np.int32), dimension.value)
    rare = np.zeros(len(dimension), dtype=bool)
    rare[totals.destination[~rule.met(totals)]] = True
    return rare


def too_few(trips: Trips, dimension: Dimension, parent: Dimension | None, rule: Rule) -> Bools:
    """Return which trips belong to rare values that are below the rule even together.

    Subtracting all tables from the whole would isolate them, wherever they are: they have to go from the whole, too.
    """
    rare, group = find_rare(trips, dimension, rule), groups_of(dimension, parent)
    theirs = rare[dimension.value]
    group_of_trip = group[dimension.value]
    rests = count_trips(trips.select(theirs), group_of_trip[theirs], np.zeros(int(theirs.sum()), dtype=np.int32))
    return theirs & np.isin(group_of_trip, rests.origin[~rule.met(rests)])


def make_plan(
    trips: Trips,
    klass: Ints,
    classes: int,
    dimensions: Sequence[Dimension],
    parents: Sequence[int | None],
    rule: Rule,
    *,
    widths: Mapping[str, int] | None = None,
) -> Plan:
    """Return what may be published.

    Parameters
    ----------
    klass : array of int
        For each trip, the number of its class; -1 outside every zone.
    parents : sequence of int or None
        For each dimension, the coarser one that it refines.
    widths : mapping of str to int, optional
        To within how much no suppressed cell may be known; see `odkanon.together.protect.protect_partition`.
    """
    outside = np.where(klass < 0, classes, klass)
    counted = count_trips(trips, outside, np.zeros(len(trips), dtype=np.int32))
    suppressed = protect_whole(counted, counted.origin == classes, rule)
    whole = np.zeros(classes + 1, dtype=bool)
    whole[counted.origin[~suppressed]] = True
    cells: list[Bools] = [np.zeros((0, 0), dtype=bool)] * len(dimensions)
    shares = [0.0] * len(dimensions)
    for number in sorted(range(len(dimensions)), key=lambda each: _depth(each, parents)):
        parent = parents[number]
        above = None if parent is None else (dimensions[parent], cells[parent])
        cells[number] = _plan_dimension(trips, outside, whole, dimensions[number], above, rule, widths)
        shares[number] = 1 - float(cells[number][outside, dimensions[number].value].mean())
    return Plan(whole[:-1], tuple(table[:-1] for table in cells), tuple(shares))


def _depth(number: int, parents: Sequence[int | None]) -> int:
    parent = parents[number]
    return 0 if parent is None else 1 + _depth(parent, parents)


def _plan_dimension(
    trips: Trips,
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
    cells = count_trips(trips, number, dimension.value)
    closed = ~whole[class_of_row[cells.origin]]
    withheld = find_rare(trips, dimension, rule)
    result = protect_partition(cells, closed, withheld, groups_of(dimension, parent), rule, widths=widths)
    published = np.zeros((len(whole), len(dimension)), dtype=bool)
    shown = ~result.suppressed
    published[class_of_row[cells.origin[shown]], cells.destination[shown]] = True
    return published


def _rows(klass: Ints, whole: Bools, above: tuple[Dimension, Bools] | None) -> Ints:
    """Return, for each trip, the finest published group in which it is counted: one row for all that are in none."""
    if above is None:
        return np.where(whole[klass], klass + 1, 0)
    parent, published = above
    shown = published[klass, parent.value]
    own = 1 + klass * (len(parent) + 1) + np.where(shown, parent.value + 1, 0)
    return np.where(whole[klass], own, 0)
