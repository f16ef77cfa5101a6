"""Moves of blocks between the zones of one axis: which there are, what they change, and which are made."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.methods.freezones.sheet import Sheet

Floats = npt.NDArray[np.float64]


def candidates(sheet: Sheet) -> tuple[Ints, Ints, Ints]:
    """Return every (block, other zone that it borders on), and how many edges the block shares with that zone."""
    source, target = sheet.blocks.edges
    here, there = sheet.zone[source], sheet.zone[target]
    border = here != there
    keys, edges = np.unique(source[border] * len(sheet.size) + there[border], return_counts=True)
    return keys // len(sheet.size), keys % len(sheet.size), edges


def changes(sheet: Sheet, block: Ints, zone: Ints, multiplier: float) -> Floats:
    """Return by how much ``G_total + multiplier * suppressed`` changes with each move, all else unchanged.

    A move touches few classes: those that the block itself takes part in. All others of the two rows only change in
    size, by the same number of leaves, which is a product with the mass that the row publishes.
    """
    good = sheet.counting.met(sheet.matrix)
    published = np.where(good, sheet.matrix[sheet.counting.mass], 0.0).sum(axis=1)
    movers, number = np.unique(block, return_inverse=True)
    leave = _row_changes(sheet, movers, sheet.zone[movers], -1.0, multiplier)
    leave -= sheet.blocks.leaves[movers] * published[sheet.zone[movers]]
    enter = _row_changes(sheet, block, zone, 1.0, multiplier)
    enter += sheet.blocks.leaves[block] * published[zone]
    return enter + leave[number]


def _row_changes(sheet: Sheet, block: Ints, row: Ints, sign: float, multiplier: float) -> Floats:
    """Return what a row changes by in the classes of a block that enters or leaves it.

    What is left out, the change in size of every published class of the row, has been added for these too.
    """
    entry, count = sheet.entries(block)
    rows, column = np.repeat(row, count), sheet.column[entry]
    grown = np.repeat(sign * sheet.blocks.leaves[block], count)
    old = sheet.matrix[:, rows, column]
    size = sheet.size[rows] + sheet.width[column] + grown
    price = sheet.counting.price
    change = price(old + sign * sheet.counts[:, entry], size, multiplier) - price(old, size, multiplier)
    ends = np.cumsum(count)
    total = np.concatenate([[0.0], np.cumsum(change)])
    return np.asarray(total[ends] - total[ends - count])


def sweep(
    sheets: Sequence[Sheet], multiplier: float, temperature: float, stiffness: float, random: np.random.Generator
) -> int:
    """Try all moves of one axis at once and make those that are accepted; return how many were made.

    A move is accepted as in simulated annealing, if its change is below ``temperature`` times an exponential random
    number. No zone takes part in two moves of a sweep, so that the changes of all moves are exact.
    ``stiffness`` is the price of a border edge: it decides where nothing else does, and keeps zones compact.
    With a sheet for each axis, which then have the same zones, a move is made on both, and its change is the sum of
    what it changes on each: exact but for the flows between the two zones that it touches.
    """
    block, zone, edges = candidates(sheets[0])
    change = np.sum([changes(sheet, block, zone, multiplier) for sheet in sheets], axis=0)
    inside = _edges_inside(sheets[0])
    change += stiffness * (inside[block] - edges)
    luck = random.standard_exponential(len(change))
    accepted = np.flatnonzero(change < temperature * luck - 1e-9)
    order = random.permutation(accepted) if temperature > 0 else accepted[np.argsort(change[accepted], kind="stable")]
    made = _compatible(sheets[0], order, block, zone)
    for sheet in sheets:
        _make(sheet, block[made], zone[made])
    return len(made)


def _edges_inside(sheet: Sheet) -> Ints:
    source, target = sheet.blocks.edges
    return np.bincount(source, sheet.zone[source] == sheet.zone[target], len(sheet.zone)).astype(np.int64)


def _compatible(sheet: Sheet, order: Ints, block: Ints, zone: Ints) -> list[int]:
    """Take moves in the given order, each zone at most once, and only if the zone left behind stays connected."""
    home = sheet.zone.tolist()
    busy = [False] * len(sheet.size)
    made = []
    for move, mover, target in zip(order.tolist(), block[order].tolist(), zone[order].tolist(), strict=True):
        source = home[mover]
        if busy[source] or busy[target] or not _can_leave(sheet, mover, source, home):
            continue
        busy[source] = busy[target] = True
        made.append(move)
    return made


def _can_leave(sheet: Sheet, block: int, zone: int, home: list[int]) -> bool:
    """Whether the neighbours of a block in its zone hang together without it, so that the zone does too."""
    rest = {other for other in sheet.blocks.neighbours[block] if home[other] == zone}
    if not rest:
        return False
    near = sheet.blocks.neighbour_sets
    start = rest.pop()
    front = [start]
    while front and rest:
        reached = rest & near[front.pop()]
        rest -= reached
        front.extend(reached)
    return not rest or _reaches(sheet, block, zone, home, start, rest)


def _reaches(sheet: Sheet, block: int, zone: int, home: list[int], start: int, rest: set[int]) -> bool:
    """Whether a few steps inside the zone lead from one block to others, around the block that wants to leave.

    Cells around a cell border on each other; of squares around a square, those at the corners lie in between.
    """
    seen, queue, missing = {start, block}, deque([start]), set(rest)
    while queue and missing and len(seen) <= sheet.blocks.around:
        fresh = [
            other for other in sheet.blocks.neighbours[queue.popleft()] if home[other] == zone and other not in seen
        ]
        seen.update(fresh)
        missing.difference_update(fresh)
        queue.extend(fresh)
    return not missing


def _make(sheet: Sheet, block: Ints, zone: Ints) -> None:
    home = sheet.zone[block]
    entry, count = sheet.entries(block)
    column, moved = sheet.column[entry], sheet.counts[:, entry]
    # Within a sweep every zone moves once, so no (row, column) repeats.
    sheet.matrix[:, np.repeat(home, count), column] -= moved
    sheet.matrix[:, np.repeat(zone, count), column] += moved
    np.subtract.at(sheet.size, home, sheet.blocks.leaves[block])
    np.add.at(sheet.size, zone, sheet.blocks.leaves[block])
    sheet.members[home] -= 1
    sheet.members[zone] += 1
    sheet.zone[block] = zone
