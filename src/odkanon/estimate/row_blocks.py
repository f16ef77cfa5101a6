"""All pairs of places, as blocks between nodes of their tree, with the finest row that covers each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.estimate.place_tree import PlacedZones, PlaceTree


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Blocks that cover every pair of places once, and blocks of rows that are finer than places.

    Attributes
    ----------
    origin, destination : array of int
        Nodes of the tree, in one numbering. Sorted by origin, then destination.
    row : array of int, shape (combinations, blocks)
        The finest row that covers the block, for each combination of attributes; -1 for none.
    reverse : array of int
        For each block the number of the one that leads the other way.
    beside_origin, beside_destination, beside_row : array of int
        Pairs of nodes of rows that own no block: those with a zone inside a place, and those covered by finer rows.
    beside_block : array of int
        The block that each of them lies in; -1 where it is no pair of places.
    beside_part : array of int
        The combination of attributes of each.
    """

    origin: Ints
    destination: Ints
    row: Codes
    reverse: Ints
    beside_origin: Ints
    beside_destination: Ints
    beside_row: Ints
    beside_block: Ints
    beside_part: Ints


def divide_into_blocks(
    tree: PlaceTree, zones: tuple[PlacedZones, PlacedZones], rows: tuple[Ints, Ints], covers: Bools, nearness: float
) -> RowBlocks:
    """Divide the pairs of places into blocks, each covered by one finest row.

    From the root downward, a block is divided where finer rows lie inside it or inside the block that leads the other
    way, and where its ends are near, since the rate changes within it. The number of blocks is linear in that of rows
    and places, up to a logarithm.

    Parameters
    ----------
    tree : PlaceTree
        Places.
    zones : tuple of PlacedZones
        The zones of both axes.
    rows : tuple of array of int
        For each row the numbers of its zones.
    covers : array of bool, shape (rows, combinations)
        Which combinations of attributes each row counts; of rows between the same zones, the finest comes first.
    nearness : float
        Blocks are divided down to single places where their distance is less than this times the sum of their radii.
    """
    (from_zones, to_zones), (origin, destination) = zones, rows
    fine = from_zones.inside_place[origin] | to_zones.inside_place[destination]
    is_node = (from_zones.level[origin] >= 0) & (to_zones.level[destination] >= 0)
    search = _Search(tree, zones, rows, np.flatnonzero(~fine & is_node), covers, nearness)
    blocks = search.run(only_places=bool((~is_node).any()))
    order = np.argsort(blocks[0] * int(tree.offsets[-1]) + blocks[1])
    start, end, row = blocks[0][order], blocks[1][order], blocks[2].take(order, 1)
    key = start * int(tree.offsets[-1]) + end
    reverse = np.empty(len(key), dtype=np.int64)
    reverse[np.argsort(end * int(tree.offsets[-1]) + start)] = np.arange(len(key))
    # Rows whose places all have finer rows still have trips: they stand beside the blocks, as fine ones do.
    own = np.zeros(len(origin), dtype=bool)
    own[row[row >= 0]] = True
    whole = np.flatnonzero(~own & ~fine & is_node)
    pairs = np.flatnonzero(fine | ~is_node)
    one, other, owner = _pairs_of_places(zones, rows, pairs)
    one = np.concatenate(
        [one + tree.offsets[-2], tree.offsets[from_zones.level[origin[whole]]] + from_zones.node[origin[whole]]]
    )
    other = np.concatenate(
        [other + tree.offsets[-2], tree.offsets[to_zones.level[destination[whole]]] + to_zones.node[destination[whole]]]
    )
    beside = np.concatenate([owner, whole])
    pair, part = np.nonzero(covers[beside])
    one, other, beside = one[pair], other[pair], beside[pair]
    return RowBlocks(start, end, row, reverse, one, other, beside, _block_of(key, one, other, tree), part)


def _pairs_of_places(
    zones: tuple[PlacedZones, PlacedZones], rows: tuple[Ints, Ints], which: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return all pairs of places of some rows, and for each pair its row."""
    (one, ones), (other, others) = (end.places(side[which]) for end, side in zip(zones, rows, strict=True))
    count = ones * others
    owner = np.repeat(np.arange(len(which)), count)
    at = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    first = one[(np.cumsum(ones) - ones)[owner] + at // np.maximum(others, 1)[owner]]
    return first, other[(np.cumsum(others) - others)[owner] + at % np.maximum(others, 1)[owner]], which[owner]


def _block_of(key: Ints, origin: Ints, destination: Ints, tree: PlaceTree) -> Ints:
    """Return the block that contains each pair of places or parts; -1 for pairs of larger nodes."""
    nodes = int(tree.offsets[-1])
    if len(tree.parts.node):
        start, end = (tree.parts.node[side - nodes] for side in (origin, destination))
        return np.searchsorted(key, start * nodes + end)
    found = np.full(len(origin), -1)
    are_places = (origin >= tree.offsets[-2]) & (destination >= tree.offsets[-2])
    origin, destination = (np.where(are_places, side, tree.offsets[-2]) for side in (origin, destination))
    for level, offset in zip(tree.levels, tree.offsets[:-1], strict=True):
        wanted = (level[origin - tree.offsets[-2]] + offset) * nodes + level[destination - tree.offsets[-2]] + offset
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        found = np.where((key[at] == wanted) & are_places, at, found)
    return found


@dataclass(frozen=True, eq=False)
class _Search:
    """Rows between nodes of a tree, looked up by blocks."""

    tree: PlaceTree
    zones: tuple[PlacedZones, PlacedZones]
    rows: tuple[Ints, Ints]
    used: Ints
    covers: Bools
    nearness: float

    def run(self, *, only_places: bool) -> tuple[Ints, Ints, Codes]:
        """Return origin, destination and row of each block; with `only_places`, of all pairs of the finest nodes."""
        tree, (zones_o, zones_d), (rows_o, rows_d) = self.tree, self.zones, self.rows
        level_o, level_d = zones_o.level[rows_o[self.used]], zones_d.level[rows_d[self.used]]
        deepest = np.maximum(level_o, level_d)
        pairs = np.unique(np.stack([deepest, level_o + level_d, level_o, level_d], axis=1), axis=0).tolist()
        origin = destination = np.zeros(1, dtype=np.int64)
        row = np.full((self.covers.shape[1], 1), -1, dtype=np.int32)
        done: list[tuple[Ints, Ints, Codes]] = []
        for at in range(tree.block_level + 1):
            for _, _, one, other in (pair for pair in pairs if pair[0] == at):  # the finest comes last
                which = self.used[(level_o == one) & (level_d == other)]
                for part in range(len(row)):
                    some = which[self.covers[which, part]]
                    row[part] = self._assign(at, (one, other), some, (origin, destination), row[part])
            divided = np.full(len(origin), at < tree.block_level)
            if not only_places and at < tree.block_level:
                below = {(min(one, at), min(other, at)) for deep, _, one, other in pairs if deep > at}
                divided = np.zeros(len(origin), dtype=bool)
                for one, other in sorted(below):
                    which = self.used[
                        (deepest > at) & (np.minimum(level_o, at) == one) & (np.minimum(level_d, at) == other)
                    ]
                    found = self._assign(at, (one, other), which, (origin, destination), np.full(len(origin), -1))
                    divided |= found >= 0
                divided = self._also_reverse(at, origin, destination, divided) | self._is_near(at, origin, destination)
            offset = tree.offsets[at]
            done.append((origin[~divided] + offset, destination[~divided] + offset, row[:, ~divided]))
            if not divided.any():
                break
            origin, destination, parent = self._divide(at, origin[divided], destination[divided])
            row = row[:, divided][:, parent]
        one, other, rows = zip(*done, strict=True)
        return np.concatenate(one), np.concatenate(other), np.concatenate(rows, axis=1)

    def _assign(
        self, at: int, levels: tuple[int, int], which: Ints, blocks: tuple[Ints, Ints], row: Codes | Ints
    ) -> Codes:
        """Return for each block the first of some rows whose nodes at two levels contain it, else the row it has."""
        if not len(which):
            return row.astype(np.int32)
        keys: list[Ints] = []
        wanted: list[Ints] = []
        for level, zones, rows, nodes in zip(levels, self.zones, self.rows, blocks, strict=True):
            above = self.tree.levels[level]
            keys.append(above[zones.first[rows[which]]])
            wanted.append(above[self.tree.first[self.tree.offsets[at] + nodes]])
        width = int(self.tree.levels[levels[1]][-1]) + 1
        key = keys[0] * width + keys[1]
        order = np.argsort(key, kind="stable")
        sought = wanted[0] * width + wanted[1]
        found = order[np.minimum(np.searchsorted(key[order], sought), len(key) - 1)]
        return np.where(key[found] == sought, which[found], row).astype(np.int32)

    def _also_reverse(self, at: int, origin: Ints, destination: Ints, marked: Bools) -> Bools:
        """Return which blocks are marked, or lead the other way from a marked one."""
        width = int(self.tree.levels[at][-1]) + 1
        keys = (origin * width + destination)[marked]
        return marked | np.isin(destination * width + origin, keys)

    def _is_near(self, at: int, origin: Ints, destination: Ints) -> Bools:
        one, other = (nodes + self.tree.offsets[at] for nodes in (origin, destination))
        reach = self.nearness * (self.tree.radii[one] + self.tree.radii[other])
        found: Bools = self.tree.distance(one, other) < reach
        return found

    def _divide(self, at: int, origin: Ints, destination: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the blocks between the children of two nodes, and for each the number of its parent."""
        (first, end), (first_to, end_to) = self.tree.children(at, origin), self.tree.children(at, destination)
        wide = end_to - first_to
        count = (end - first) * wide
        parent = np.repeat(np.arange(len(origin)), count)
        number = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
        return first[parent] + number // wide[parent], first_to[parent] + number % wide[parent], parent
