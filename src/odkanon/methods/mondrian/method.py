"""Mondrian: boxes around trips in (start_lon, start_lat, end_lon, end_lat), cut in two for as long as the rule allows.

No hierarchy is used: an OD pair is the point of the centres of its two leaf cells, known by its squares of a public
grid, and a class is a box of such points. All boxes of a round are cut at once; each of the four coordinates is sorted
only at the very beginning.

References
----------
LeFevre, DeWitt, Ramakrishnan: "Mondrian multidimensional k-anonymity", ICDE 2006.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.errors import InputError
from odkanon.methods.common import volume_measure
from odkanon.methods.mondrian.median_cuts import Grid, Segments, Sums, median_cuts, simplest_line
from odkanon.model.assemble import assemble
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec, Structure
from odkanon.model.rule import Rule
from odkanon.zoning.cells import Floats
from odkanon.zoning.zones import Zones


def mondrian(od: ODMatrix, rule: Rule) -> Release:
    """Anonymise with Mondrian; nothing is suppressed.

    A box is cut along its widest coordinate (its span over the span of all points; ties in the order of
    `DIMENSIONS`), at a line of the grid, where the halves are most equal in the rule's main measure (trips
    for a rule on persons alone; ties towards the lower value). A cut is allowed iff both sides meet the whole
    rule. Where the most equal cut is not, the allowed one nearest to it is taken; where a coordinate has none, the
    next widest is tried. A box that is not cut can therefore not be cut at any grid line across any coordinate.
    For rules on trips or on weight alone only the most equal cut matters: if it is not allowed, no other is.

    Published boxes are those of the cutting lines, inside one box around all points that ends at lines of a coarser
    grid, which few trips far away move by large steps only: they fill that box without overlap. Where they lie depends
    on the squares of the points alone (see `Grid`); borders between observed values would
    name the cells on both sides.

    * ``od``: the input; leaves must be H3 cells, for they have coordinates. Longitudes do not wrap: data on both sides
      of the antimeridian get boxes as wide as the world.
    """
    rule.check_available(od.measures)
    if od.origins.resolution is None or od.destinations.resolution is None:
        raise InputError(
            "Mondrian cuts boxes of coordinates, which zones of a lookup table do not have; "
            "use H3 cells or coordinates, or another method"
        )
    spec = ReleaseSpec(rule, None, "mondrian")
    everything, _ = od.flows.merge(np.zeros(len(od), dtype=np.int32), np.zeros(len(od), dtype=np.int32))
    if not rule.satisfied(everything).any():
        return Release.empty(od, spec, _refusal(od, rule))
    grids = Grid.of_resolution(od.origins.resolution), Grid.of_resolution(od.destinations.resolution)
    points = _points(od, grids)
    sums = Sums.of(od.flows, rule, volume_measure(rule))
    low, high = np.array([sums.inner(values) for values in points]).T
    frame = np.hstack([grids[0].frame(points[:2], low[:2], high[:2]), grids[1].frame(points[2:], low[2:], high[2:])])
    boxes = cut_boxes(points, sums, frame)
    bounds, number = _in_order(boxes.bounds, boxes.box_of_point)
    return assemble(
        od,
        spec.with_parameters(grid_degrees=[grid.step for grid in grids]),
        origins=_zones("o", grids[0].degrees(bounds[:, :, :2])),
        destinations=_zones("d", grids[1].degrees(bounds[:, :, 2:])),
        origin_zone=number,
        destination_zone=number,
        structure=Structure.OVERLAPPING,
    )


@dataclass(frozen=True, eq=False)
class Boxes:
    """A partition of points into boxes."""

    bounds: Ints
    """Grid lines of the lower and upper corner of each, of shape (boxes, 2, dimensions)."""
    box_of_point: Codes
    """For each point, the number of its box."""


def cut_boxes(points: Ints, sums: Sums, frame: Ints) -> Boxes:
    """Cut a frame around points until no box can be cut any more.

    * ``points``: numbers of the squares of the grid, of shape (dimensions, points).
    * ``sums``: what the rule counts of each point.
    * ``frame``: grid lines of the lower and upper corner of the box around all points, of shape (2, dimensions).
    """
    spans = np.maximum(np.ptp(points, axis=1), 1)
    state = _Round(
        np.argsort(points, axis=1, kind="stable"),
        Segments(np.zeros(1, dtype=np.int64), np.array([points.shape[1]])),
        frame[None],
    )
    box_of_point = np.zeros(points.shape[1], dtype=np.int32)
    done: list[Ints] = []
    while len(state.bounds):
        cuts = _best_cuts(state, points, sums, spans)
        whole = np.flatnonzero(cuts.dimension < 0)
        segments, rows = state.boxes.take(whole)
        numbers = sum(map(len, done)) + np.arange(len(whole))
        box_of_point[state.orders[0][rows]] = np.repeat(numbers, segments.sizes)
        done.append(state.bounds[whole])
        state = _halved(state, cuts, points.shape[1])
    return Boxes(np.concatenate(done), box_of_point)


@dataclass(frozen=True, eq=False)
class _Round:
    """The boxes that may still be cut; ``orders`` has their points sorted by each coordinate within each box."""

    orders: npt.NDArray[np.int64]
    boxes: Segments
    bounds: Ints


@dataclass(frozen=True, eq=False)
class _Cuts:
    """For each box the coordinate that is cut (-1 for none), the points on the left side, and the grid line."""

    dimension: Ints
    left: Ints
    line: Ints

    @classmethod
    def none(cls, boxes: int) -> _Cuts:
        return cls(np.full(boxes, -1), np.zeros(boxes, dtype=np.int64), np.zeros(boxes, dtype=np.int64))


def _best_cuts(state: _Round, points: Ints, sums: Sums, spans: Ints) -> _Cuts:
    """Cut each box along the widest coordinate that has an allowed cut."""
    boxes, every = state.boxes, np.arange(len(points))[:, None]
    lowest = points[every, state.orders[:, boxes.starts]]
    highest = points[every, state.orders[:, boxes.starts + boxes.sizes - 1]]
    preference = np.argsort(-(highest - lowest) / spans[:, None], axis=0, kind="stable")
    cuts = _Cuts.none(len(boxes.starts))
    pending = np.flatnonzero(sums.can_be_cut(state.orders[0], boxes))
    for dimension in preference:
        if len(pending) == 0:
            break
        tried, rows = boxes.take(pending)
        along = np.repeat(dimension[pending], tried.sizes)
        order = state.orders[along, rows]
        values = points[along, order]
        found, last = median_cuts(sums, order, values, tried)
        cut = pending[found]
        cuts.dimension[cut] = dimension[cut]
        cuts.left[cut] = last + 1 - tried.starts[found]
        cuts.line[cut] = simplest_line(values[last], values[last + 1])
        pending = np.delete(pending, found)
    return cuts


def _halved(state: _Round, cuts: _Cuts, count: int) -> _Round:
    """Return the two halves of every box that is cut, in the same order and still sorted by each coordinate."""
    which = np.flatnonzero(cuts.dimension >= 0)
    boxes, rows = state.boxes.take(which)
    dimension, left = cuts.dimension[which], cuts.left[which]
    on_right = np.zeros(count, dtype=bool)
    right_half, right_rows = Segments(state.boxes.starts[which] + left, boxes.sizes - left).take(np.arange(len(which)))
    on_right[state.orders[np.repeat(dimension, right_half.sizes), right_rows]] = True
    orders = np.stack([_partitioned(order[rows], on_right, boxes, left) for order in state.orders])
    sizes = np.stack([left, boxes.sizes - left], axis=1).ravel()
    bounds = np.repeat(state.bounds[which], 2, axis=0)
    bounds[np.arange(0, len(bounds), 2), 1, dimension] = cuts.line[which]
    bounds[np.arange(1, len(bounds), 2), 0, dimension] = cuts.line[which]
    return _Round(orders, Segments(np.cumsum(sizes) - sizes, sizes), bounds)


def _partitioned(order: Ints, on_right: Bools, boxes: Segments, left: Ints) -> Ints:
    """Move the points of each box's left side before those of its right side, without sorting again."""
    right = on_right[order]
    among_right, _ = boxes.running(right.astype(np.int64))
    offset = np.arange(len(order)) - np.repeat(boxes.starts, boxes.sizes)
    place = np.where(right, np.repeat(left, boxes.sizes) + among_right - 1, offset - among_right)
    result = np.empty_like(order)
    result[np.repeat(boxes.starts, boxes.sizes) + place] = order
    return result


def _points(od: ODMatrix, grids: tuple[Grid, Grid]) -> Ints:
    """Return the squares in which the centres of both cells of each pair lie, longitude before latitude."""
    ends = []
    for tree, leaf, grid in zip(
        (od.origins, od.destinations), (od.flows.origin, od.flows.destination), grids, strict=True
    ):
        lat, lon = tree.centres
        ends.append(grid.squares(lon, lat)[:, leaf])
    return np.vstack(ends)


def _in_order(bounds: Ints, box_of_point: Codes) -> tuple[Ints, Codes]:
    """Sort boxes by their lower corners, which no two boxes share."""
    order = np.lexsort(bounds[:, 0, ::-1].T)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    return bounds[order], number[box_of_point]


def _zones(prefix: str, bounds: Floats) -> Zones:
    """Return boxes as zones; numbers are padded so that names sort like them."""
    width = len(str(len(bounds) - 1))
    ids = np.char.add(prefix, np.char.zfill(np.arange(len(bounds)).astype(np.str_), width))
    return Zones(ids, bounds=bounds.reshape(len(bounds), 4))


def _refusal(od: ODMatrix, rule: Rule) -> str:
    return (
        f"even with all {od.trips:,} trips in one class, {rule} cannot be met; lower the thresholds, or bring more data"
    )
