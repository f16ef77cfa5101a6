"""Mondrian: boxes around trips in (start_lon, start_lat, end_lon, end_lat), halved as long as the rule allows.

Mondrian uses no hierarchy. An OD pair is a point, given by the squares of a public grid in which the centres of its two
leaf cells lie; a class is a box of such points. Each round cuts all boxes at once, and each of the four coordinates is
sorted only once, at the start.

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
from odkanon.methods.median_cuts import Grid, Segments, Sums, median_cuts, simplest_line
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
    `DIMENSIONS`), at the grid line that halves the rule's main measure best (trips for a rule on persons alone; ties
    towards the lower value). A cut is allowed iff both sides meet the whole rule. If the most balanced cut is not
    allowed, the nearest allowed one is taken; if a coordinate has none, the next widest is tried. A remaining box can
    therefore not be cut at any grid line of any coordinate. For rules on trips or weight alone, no cut is allowed
    unless the most balanced one is.

    The published boxes are bounded by the cutting lines and by a frame around all points. They fill the frame without
    overlap. The frame ends at lines of a coarser grid, so that a few remote trips move it in large steps only. All
    lines depend only on the squares of the points (see `Grid`); borders between observed values would identify the
    cells on both sides.

    * ``od``: the input; leaves must be H3 cells, which have coordinates. Longitudes do not wrap: data on both sides of
      the antimeridian get boxes as wide as the world.
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
        why = f"even with all {od.trips:,} trips in one class, {rule} cannot be met"
        return Release.empty(od, spec, f"{why}; lower the thresholds, or bring more data")
    grids = Grid.of_resolution(od.origins.resolution), Grid.of_resolution(od.destinations.resolution)
    points = _points(od, grids)
    sums = Sums.of(od.flows, rule, volume_measure(rule))
    low, high = np.array([sums.inner(values) for values in points]).T
    frame = np.hstack([grids[0].frame(points[:2], low[:2], high[:2]), grids[1].frame(points[2:], low[2:], high[2:])])
    bounds, number = _in_order(*cut_boxes(points, sums, frame))
    return assemble(
        od,
        spec.with_parameters(grid_degrees=[grid.step for grid in grids]),
        origins=_zones("o", grids[0].degrees(bounds[:, :, :2])),
        destinations=_zones("d", grids[1].degrees(bounds[:, :, 2:])),
        origin_zone=number,
        destination_zone=number,
        structure=Structure.OVERLAPPING,
    )


def cut_boxes(points: Ints, sums: Sums, frame: Ints) -> tuple[Ints, Codes]:
    """Return the boxes into which a frame is cut until none can be cut any more, and for each point its box.

    Boxes are the grid lines of their lower and upper corners, of shape (boxes, 2, dimensions).

    * ``points``: the grid squares of each point, of shape (dimensions, points).
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
    return np.concatenate(done), box_of_point


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


def _best_cuts(state: _Round, points: Ints, sums: Sums, spans: Ints) -> _Cuts:
    """Return the cut of each box along the widest coordinate that has an allowed one."""
    boxes, every = state.boxes, np.arange(len(points))[:, None]
    lowest = points[every, state.orders[:, boxes.starts]]
    highest = points[every, state.orders[:, boxes.starts + boxes.sizes - 1]]
    preference = np.argsort(-(highest - lowest) / spans[:, None], axis=0, kind="stable")
    count = len(boxes.starts)
    cuts = _Cuts(np.full(count, -1), np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64))
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
    """Return both halves of every box that is cut, in the same order and still sorted by each coordinate."""
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
    """Move the points on the left side of each box before those on its right side, keeping both sorted."""
    right = on_right[order]
    among_right, _ = boxes.running(right.astype(np.int64))
    offset = np.arange(len(order)) - np.repeat(boxes.starts, boxes.sizes)
    place = np.where(right, np.repeat(left, boxes.sizes) + among_right - 1, offset - among_right)
    result = np.empty_like(order)
    result[np.repeat(boxes.starts, boxes.sizes) + place] = order
    return result


def _points(od: ODMatrix, grids: tuple[Grid, Grid]) -> Ints:
    """Return the squares of the centres of both cells of each pair, longitude before latitude."""
    trees, leaves = (od.origins, od.destinations), (od.flows.origin, od.flows.destination)
    ends = zip(trees, leaves, grids, strict=True)
    return np.vstack([grid.squares(*tree.centres[::-1])[:, leaf] for tree, leaf, grid in ends])


def _in_order(bounds: Ints, box_of_point: Codes) -> tuple[Ints, Codes]:
    """Sort boxes by their lower corners, which are distinct."""
    order = np.lexsort(bounds[:, 0, ::-1].T)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    return bounds[order], number[box_of_point]


def _zones(prefix: str, bounds: Floats) -> Zones:
    """Return boxes as zones, with padded numbers so that names sort in numerical order."""
    width = len(str(len(bounds) - 1))
    ids = np.char.add(prefix, np.char.zfill(np.arange(len(bounds)).astype(np.str_), width))
    return Zones(ids, bounds=bounds.reshape(len(bounds), 4))
