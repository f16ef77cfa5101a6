"""Moves of blocks between the zones of one axis: listing, pricing and making them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Bools, Ints, spans
from odkanon.methods.freezones.class_matrix import Floats, Known, Sheet

_TRIES = 2
"""Moves per zone to price at first; most zones have moved after them, which rules out most other moves."""
_ENOUGH = 1500
"""The most moves to price in a sweep, unless it is a last one or there are more zones."""


@dataclass(frozen=True, eq=False)
class BlockMoves:
    """Moves of blocks to other zones that they border on."""

    block: Ints
    zone: Ints
    """The number of the block, and the zone that it moves to."""
    edges: Ints
    inside: Ints
    """Number of edges of the block to that zone, and to its own."""

    def take(self, which: Ints) -> BlockMoves:
        """Return some of the moves."""
        return BlockMoves(self.block[which], self.zone[which], self.edges[which], self.inside[which])


def candidates(sheet: Sheet) -> BlockMoves:
    """Return all moves, by block and zone."""
    source, target = sheet.blocks.edges
    there = sheet.zone[target]
    border = np.flatnonzero(np.repeat(sheet.zone, sheet.blocks.degree) != there)
    source, there = source[border], there[border]
    keys, edges = np.unique(source * len(sheet.size) + there, return_counts=True)
    block = keys // len(sheet.size)
    inside = sheet.blocks.degree - np.bincount(source, minlength=len(sheet.zone))
    return BlockMoves(block, keys - block * len(sheet.size), edges, inside[block])


def changes(sheet: Sheet, moves: BlockMoves, which: Ints, multiplier: float) -> Floats:
    """Return the change of ``G_total + multiplier * suppressed`` by each of some moves made by itself.

    A move changes the mass of few classes: those with flows of the block. All other classes of the two rows only change
    in size, by the same number of leaves, which is a product with the published mass of the row. The change by a block
    that leaves or enters a row is cached until the row changes.
    """
    known = sheet.known
    assert known is not None
    new = which[np.isnan(known.enter[which])]
    known.enter[new] = _row_changes(sheet, moves.block[new], moves.zone[new], 1.0, multiplier)
    block = moves.block[which]
    movers = np.unique(block[np.isnan(known.leave[block])])
    known.leave[movers] = _row_changes(sheet, movers, sheet.zone[movers], -1.0, multiplier)
    return known.enter[which] + known.leave[block]


def remember(sheet: Sheet, moves: BlockMoves, multiplier: float) -> None:
    """Keep the valid cached prices of the moves of a sheet, and make room for new ones."""
    if sheet.known is None or sheet.known.multiplier != multiplier:
        sheet.known = Known.nothing(sheet, multiplier)
    sheet.known.refresh(moves.block * len(sheet.size) + moves.zone, sheet.zone)


def _row_changes(sheet: Sheet, block: Ints, row: Ints, sign: float, multiplier: float) -> Floats:
    """Return the change of a row when a block enters or leaves it: in size, and in the classes of the block."""
    entry, count = sheet.entries(block)
    column, leaves = sheet.column[entry], sign * sheet.blocks.leaves[block]
    old, moved = sheet.flat.take(np.repeat(row * len(sheet.width), count) + column, axis=1), sheet.counts.take(entry, 1)
    new = old + moved if sign > 0 else old - moved
    size = np.repeat(sheet.size[row] + leaves, count) + sheet.width[column]
    change = sheet.counting.change(old, new, size, multiplier)
    owner = np.repeat(np.arange(len(block)), count)
    return np.bincount(owner, change, len(block)) + leaves * sheet.published[row]


def sweep(
    sheets: Sequence[Sheet], multiplier: float, temperature: float, stiffness: float, random: np.random.Generator
) -> int:
    """Try the moves of one axis in random order, make those that are accepted, and return their number.

    As in simulated annealing, a move is accepted if its change is below ``temperature`` times an exponential random
    number. Each zone takes part in one move of a sweep at most, so that all changes are exact. A move is not priced if
    one of its zones has moved or its old zone would fall apart. At temperature 0 the best moves come first.
    ``stiffness`` is the price of a border edge: it breaks ties and keeps zones compact.

    If both axes have the same zones, there is a sheet for each. A move is then made on both, and its change is the sum
    of both, which is exact but for the flows between its two zones.
    """
    sheet = sheets[0]
    moves = candidates(sheet)
    for each in sheets:
        remember(each, moves, multiplier)
    home, busy = sheet.zone[moves.block], np.zeros(len(sheet.size), dtype=bool)
    hot = temperature > 0
    remaining = random.permutation(len(home)) if hot else np.arange(len(home))
    some, made = _TRIES * len(busy) if hot else len(remaining), []
    left = max(_ENOUGH, some)
    while len(remaining) and left > 0:
        part, remaining = remaining[: min(some, left)], remaining[some:]
        left -= len(part)
        part = part[may_leave(sheet, moves.take(part))]
        change = np.sum([changes(each, moves, part, multiplier) for each in sheets], axis=0)
        change += stiffness * (moves.inside[part] - moves.edges[part])
        good = np.flatnonzero(change < temperature * random.standard_exponential(len(part)) - 1e-9)
        good = good if hot else good[np.argsort(change[good], kind="stable")]
        made += _compatible(sheet, moves, part[good], busy)
        remaining = remaining[~(busy[home[remaining]] | busy[moves.zone[remaining]])]
        some *= 2
    for each in sheets:
        _make(each, moves.block[made], moves.zone[made])
    return len(made)


def may_leave(sheet: Sheet, moves: BlockMoves) -> Bools:
    """Return whether the neighbours of a block might stay connected in its zone without it; `can_leave` decides.

    A connected graph without cycles has one link fewer than members; with cycles it has more.
    """
    stays: Bools = moves.inside > 0
    if sheet.blocks.around:
        return stays
    (first, pairs), block = sheet.blocks.rings, moves.block
    pair, count = spans(first[block], first[block + 1]), first[block + 1] - first[block]
    zone = np.repeat(sheet.zone[block], count)
    linked = (sheet.zone[pairs[0, pair]] == zone) & (sheet.zone[pairs[1, pair]] == zone)
    links = np.bincount(np.repeat(np.arange(len(block)), count)[linked], minlength=len(block))
    return stays & (moves.inside - links <= 1)


def _compatible(sheet: Sheet, moves: BlockMoves, order: Ints, busy: Bools) -> list[int]:
    """Accept moves in the given order, each zone at most once, and only if the old zone stays connected."""
    made = []
    block, target = moves.block[order], moves.zone[order]
    for move, mover, source, zone in zip(
        order.tolist(), block.tolist(), sheet.zone[block].tolist(), target.tolist(), strict=True
    ):
        if busy[source] or busy[zone] or not can_leave(sheet, mover, source):
            continue
        busy[source] = busy[zone] = True
        made.append(move)
    return made


def can_leave(sheet: Sheet, block: int, zone: int) -> bool:
    """Return whether the neighbours of a block in its zone are connected without it, hence the whole zone."""
    home = sheet.zone
    remaining = {other for other in sheet.blocks.neighbours[block] if home[other] == zone}
    if not remaining:
        return False
    near = sheet.blocks.neighbour_sets
    start = remaining.pop()
    front = [start]
    while front and remaining:
        reached = remaining & near[front.pop()]
        remaining -= reached
        front.extend(reached)
    return not remaining or _reaches(sheet, block, zone, start, remaining)


def _reaches(sheet: Sheet, block: int, zone: int, start: int, remaining: set[int]) -> bool:
    """Return whether a few steps inside the zone lead around a block from one neighbour to others.

    The neighbours of a cell touch each other; around a square, those at its corners lie between the others.
    """
    seen, queue, missing, home = {start, block}, deque([start]), set(remaining), sheet.zone
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
    column, moved, leaves = sheet.column[entry], sheet.counts[:, entry], sheet.blocks.leaves[block]
    owner = np.repeat(np.arange(len(block)), count)
    # Within a sweep every zone moves once, so no (row, column) repeats.
    for row, sign in ((home, -1.0), (zone, 1.0)):
        at = np.repeat(row * len(sheet.width), count) + column
        old = sheet.flat[:, at]
        sheet.flat[:, at] = new = old + sign * moved
        change = sheet.counting.published(new) - sheet.counting.published(old)
        sheet.published[row] += np.bincount(owner, change, len(block))
        sheet.size[row] += sign * leaves
    sheet.zone[block] = zone
    if sheet.known is not None:
        sheet.known.changed[home] = sheet.known.changed[zone] = True
