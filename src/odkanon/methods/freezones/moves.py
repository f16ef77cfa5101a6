"""Moves of blocks between the zones of one axis: which there are, what they change, and which are made."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.methods.freezones.sheet import Known, Sheet

Floats = npt.NDArray[np.float64]


def candidates(sheet: Sheet) -> tuple[Ints, Ints, Ints]:
    """Return every (block, other zone that it borders on), and how many edges the block shares with that zone."""
    source, target = sheet.blocks.edges
    there = sheet.zone[target]
    border = np.flatnonzero(np.repeat(sheet.zone, sheet.blocks.degree) != there)
    keys, edges = np.unique(source[border] * len(sheet.size) + there[border], return_counts=True)
    return keys // len(sheet.size), keys % len(sheet.size), edges


def changes(sheet: Sheet, block: Ints, zone: Ints, multiplier: float) -> Floats:
    """Return by how much ``G_total + multiplier * suppressed`` changes with each move, all else unchanged.

    A move touches few classes: those that the block itself takes part in. All others of the two rows only change in
    size, by the same number of leaves, which is a product with the mass that the row publishes. What a block changes
    by leaving or entering a row stays the same until something else enters or leaves that row, and is remembered.
    """
    known = sheet.known = _still_known(sheet, multiplier)
    leaves, movers = sheet.blocks.leaves, block[np.diff(block, prepend=-1) != 0]
    movers = movers[np.isnan(known.leave[movers])]
    leave = _row_changes(sheet, movers, sheet.zone[movers], -1.0, multiplier)
    known.leave[movers] = leave - leaves[movers] * known.published[sheet.zone[movers]]
    keys = block * len(sheet.size) + zone
    enter = known.entering(keys)
    new = np.flatnonzero(np.isnan(enter))
    enter[new] = _row_changes(sheet, block[new], zone[new], 1.0, multiplier)
    enter[new] += leaves[block[new]] * known.published[zone[new]]
    known.keys, known.enter = keys, enter
    return enter + known.leave[block]


def _still_known(sheet: Sheet, multiplier: float) -> Known:
    """Return what is remembered of moves without what rows that have changed have to do with."""
    known = sheet.known
    if known is None or known.multiplier != multiplier:
        nothing = np.empty(0)
        fresh = np.full(len(sheet.zone), np.nan), nothing.astype(np.int64), nothing
        known = Known(multiplier, np.zeros(len(sheet.size)), *fresh, np.ones(len(sheet.size), dtype=bool))
    changed = known.changed
    rows = sheet.matrix[:, changed]
    known.published[changed] = np.where(sheet.counting.met(rows), rows[sheet.counting.mass], 0.0).sum(axis=1)
    known.leave[changed[sheet.zone]] = np.nan
    stays = ~changed[known.keys % len(sheet.size)]
    known.keys, known.enter = known.keys[stays], known.enter[stays]
    changed[:] = False
    return known


def _row_changes(sheet: Sheet, block: Ints, row: Ints, sign: float, multiplier: float) -> Floats:
    """Return what a row changes by in the classes of a block that enters or leaves it.

    What is left out, the change in size of every published class of the row, has been added for these too.
    """
    entry, count = sheet.entries(block)
    owner, column = np.repeat(np.arange(len(block)), count), sheet.column[entry]
    old = sheet.matrix.reshape(len(sheet.matrix), -1).take(row[owner] * len(sheet.width) + column, axis=1)
    size = (sheet.size[row] + sign * sheet.blocks.leaves[block])[owner] + sheet.width[column]
    price = sheet.counting.price
    change = price(old + sign * sheet.counts.take(entry, axis=1), size, multiplier) - price(old, size, multiplier)
    return np.bincount(owner, change, len(block)).astype(np.float64)


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
    inside = sheets[0].blocks.degree - np.bincount(block, edges, len(sheets[0].zone)).astype(np.int64)
    change += stiffness * (inside[block] - edges)
    luck = random.standard_exponential(len(change))
    accepted = np.flatnonzero(change < temperature * luck - 1e-9)
    order = random.permutation(accepted) if temperature > 0 else accepted[np.argsort(change[accepted], kind="stable")]
    made = _compatible(sheets[0], order, block, zone)
    for sheet in sheets:
        _make(sheet, block[made], zone[made])
    return len(made)


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
    if sheet.known is not None:
        sheet.known.changed[home] = sheet.known.changed[zone] = True
