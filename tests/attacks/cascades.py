"""A cascade as its definition reads, for all inputs of a small world at once, and whoever looks at what it publishes.

Nothing here knows the program. A node or box is one interval of leaves an axis; an input is a row of a table with
one column for each leaf box. Every number of the method is an array over all inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int16]
Box = tuple[tuple[int, int], ...]
Node = tuple[int, Box]
Mode = Literal["capped", "kept", "plain", "falling"]
Tree = Any
"""Nested tuples; 0 is a leaf. All leaves of a tree are equally deep."""
SINGLE, PAIR, THREE = (0,), (0, 0), (0, 0, 0)


@dataclass(frozen=True)
class World:
    """The public knowledge: a tree for each axis, and the ladder that takes their levels in turns."""

    trees: tuple[Tree, ...]

    @cached_property
    def levels(self) -> tuple[tuple[tuple[tuple[int, int], ...], ...], ...]:
        """For each axis and level, the intervals of leaves below its nodes."""
        return tuple(intervals(tree) for tree in self.trees)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of leaves of each axis."""
        return tuple(len(levels[0]) for levels in self.levels)

    @cached_property
    def rungs(self) -> tuple[tuple[int, ...], ...]:
        """The level vectors of the ladder."""
        at = [0] * len(self.trees)
        rungs = [tuple(at)]
        tops = [len(levels) - 1 for levels in self.levels]
        while at != tops:
            for axis, top in enumerate(tops):
                if at[axis] < top:
                    at[axis] += 1
                    rungs.append(tuple(at))
        return tuple(rungs)

    def nodes(self, rung: int) -> list[Node]:
        """Return the nodes of a rung."""
        parts = [levels[level] for levels, level in zip(self.levels, self.rungs[rung], strict=True)]
        return [(rung, box) for box in product(*parts)]

    def children(self, node: Node) -> list[Node]:
        """Return the nodes one rung down inside a node."""
        return [child for child in self.nodes(node[0] - 1) if within(child[1], node[1])]

    def steps(self, box: Box) -> list[Box]:
        """Return the largest proper boxes: on one axis a node that is smaller, and none in between."""
        found = []
        for axis, part in enumerate(box):
            smaller = {other for level in self.levels[axis] for other in level if other != part and inside(other, part)}
            largest = [one for one in smaller if not any(one != other and inside(one, other) for other in smaller)]
            found += [(*box[:axis], one, *box[axis + 1 :]) for one in largest]
        return found

    def spares(self, child: Node, node: Node) -> bool:
        """Tell whether a child is a part of a node that a reader may know to be empty, beside others."""
        return False

    @cached_property
    def boxes(self) -> list[Box]:
        """Every box: one node an axis, at any levels."""
        return list(product(*(sorted({part for level in levels for part in level}) for levels in self.levels)))


def intervals(tree: Tree) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return for each level of a tree, from the leaves up, the intervals of leaves of its nodes."""
    if tree == 0:
        return (((0, 1),),)
    start, levels = 0, []
    for child in tree:
        below = intervals(child)
        levels.append([[(a + start, b + start) for a, b in level] for level in below])
        start += len(below[0])
    assert len({len(child) for child in levels}) == 1, "leaves must be equally deep"
    joined = [tuple(part for child in levels for part in child[level]) for level in range(len(levels[0]))]
    return (*joined, ((0, start),))


def inside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether an interval lies in another."""
    return other[0] <= one[0] and one[1] <= other[1]


def within(one: Box, other: Box) -> bool:
    """Tell whether a box lies in another."""
    return all(inside(a, b) for a, b in zip(one, other, strict=True))


def common(one: Box, other: Box) -> Box | None:
    """Return where two boxes meet."""
    parts = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(one, other, strict=True))
    return parts if all(a < b for a, b in parts) else None


@dataclass
class Replay:
    """The method on every input at once.

    ``counts`` has a row an input; ``only`` names the nodes that may be listed, where these are given; ``trust`` is
    whether spare parts are counted on, which they should not.
    """

    world: World
    counts: Counts
    k: int
    mode: Mode = "capped"
    only: frozenset[Node] | None = None
    trust: Counts | Literal[0, 1] = 0
    listed: dict[Node, Counts] = field(default_factory=dict)
    passed: dict[Node, Counts] = field(default_factory=dict)
    bounds: dict[Node, Counts] = field(default_factory=dict)
    caps: dict[tuple[Node, Box | None], Counts] = field(default_factory=dict)

    def run(self) -> Replay:
        """Let everything fall."""
        for rung in range(len(self.world.rungs)):
            for node in self.world.nodes(rung):
                self._settle(node)
        return self

    def total(self, box: Box) -> Counts:
        """Return the trips in a box."""
        cells = np.arange(self.counts.shape[1]).reshape(self.world.shape)[tuple(slice(a, b) for a, b in box)]
        total: Counts = self.counts[:, cells.reshape(-1)].sum(axis=1, dtype=np.int16)
        return total

    def _settle(self, node: Node) -> None:
        children = self.world.children(node) if node[0] else []
        arrived = sum((self.passed[child] for child in children), np.zeros(len(self.counts), dtype=np.int16))
        arrived = arrived if node[0] else self.total(node[1])
        may = self._may(node, arrived, children)
        self.listed[node] = self.accepted(node, arrived, may)
        left = arrived - self.listed[node]
        self.passed[node] = np.where(self.listed[node] > 0, 0, left).astype(np.int16) if self.mode == "kept" else left

    def accepted(self, node: Node, arrived: Counts, may: Counts) -> Counts:
        """Return what a node lists: as much as it may, if that meets the rule."""
        return np.where((arrived >= self.k) & (may >= self.k), np.minimum(arrived, may), 0).astype(np.int16)

    def _may(self, node: Node, arrived: Counts, children: list[Node]) -> Counts:
        """Return the most that a node may list."""
        if self.only is not None and node not in self.only:
            return np.zeros_like(arrived)
        if node[0] == 0 or self.mode == "plain":
            return arrived
        if self.mode == "falling":
            unlisted = sum((self.listed[child] == 0).astype(np.int16) for child in children)
            return np.where(arrived <= (unlisted - 1) * (self.k - 1), arrived, 0).astype(np.int16)
        self.bounds[node] = self._bound(node, children)
        return self.bounds[node]

    def _bound(self, node: Node, children: list[Node]) -> Counts:
        if len(children) == 1:
            return np.zeros(len(self.counts), dtype=np.int16)
        sums = [self._held(node, children, step) for step in self.world.steps(node[1])]
        least: Counts = np.minimum.reduce([np.asarray(one, dtype=np.int16) for one in sums])
        return least

    def _held(self, node: Node, children: list[Node], box: Box | None) -> Counts:
        held = np.zeros(len(self.counts), dtype=np.int16)
        for child in children:
            held = held + self.cap(child, box) * (self.trust if self.world.spares(child, node) else 1)
        return held

    def cap(self, node: Node, box: Box | None) -> Counts:
        """Return the most that a node can pass up while a box is empty."""
        met = None if box is None else common(node[1], box)
        if (node, met) not in self.caps:
            self.caps[node, met] = self._cap(node, met)
        return self.caps[node, met]

    def _cap(self, node: Node, box: Box | None) -> Counts:
        listed, nothing = self.listed[node], np.zeros(len(self.counts), dtype=np.int16)
        if box == node[1]:
            return nothing
        if node[0] == 0:
            return np.where(listed > 0, 0, self.k - 1).astype(np.int16)
        held = self._held(node, self.world.children(node), box)
        bound = self.bounds[node]
        above = nothing if self.mode == "kept" else np.where(listed == bound, held - bound, 0)
        unlisted = np.where(bound < self.k, held, np.minimum(self.k - 1, held))
        return np.where(listed > 0, above, unlisted).astype(np.int16)

    def signature(self) -> npt.NDArray[np.uint64]:
        """Return a number for what each input publishes."""
        mix = np.random.default_rng(0).integers(1, 2**63, len(self.listed), dtype=np.uint64) | np.uint64(1)
        total = np.zeros(len(self.counts), dtype=np.uint64)
        for column, factor in zip(self.listed.values(), mix, strict=True):
            total += column.astype(np.uint64) * factor
        return total

    def residual(self, box: Box) -> Counts:
        """Return the trips in a box that are in no row inside it."""
        rows = [listed for (_, node), listed in self.listed.items() if within(node, box)]
        return self.total(box) - sum(rows, np.zeros(len(self.counts), dtype=np.int16))


def lasting(world: World, rows: Sequence[Node]) -> frozenset[Node]:
    """Return the rows that may be used for other trips: what is their own lies in no single one of their parts.

    A row's own leaf boxes are those in no finer row that may be used. From fine to coarse, for whether a finer row may
    be used decides what is a coarser one's own.
    """
    kept: list[Node] = []
    for rung, box in sorted(rows):
        leaves = [leaf for _, leaf in world.nodes(0) if within(leaf, box)]
        own = [leaf for leaf in leaves if not any(within(leaf, finer) for _, finer in kept)]
        if own and not any(all(within(leaf, step) for leaf in own) for step in world.steps(box)):
            kept.append((rung, box))
    return frozenset(kept)


def inputs_up_to(world: World, trips: int) -> Counts:
    """Return every way of putting at most so many trips into the leaf boxes, any number into each."""
    cells = int(np.prod(world.shape))
    bars = np.array(list(combinations(range(trips + cells), cells)), dtype=np.int16)
    return np.diff(bars, axis=1, prepend=-1).astype(np.int16) - 1


def every_input(world: World, most: int) -> Counts:
    """Return every way of putting 0 to ``most`` trips into each leaf box."""
    cells = int(np.prod(world.shape))
    number = np.arange((most + 1) ** cells)
    return np.stack([number // (most + 1) ** at % (most + 1) for at in range(cells)], axis=1).astype(np.int16)


def shown(replay: Replay, signature: npt.NDArray[np.uint64]) -> tuple[int, int]:
    """Return in how many (input, box) a reader knows that the box has trips outside its rows: on the ladder and off.

    A reader holds every input possible that publishes the same, and knows of trips that all of these have.
    """
    order = np.argsort(signature, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(signature[order]) != 0]))
    sizes = np.diff(starts, append=len(order))
    on_ladder = {node for rung in range(len(replay.world.rungs)) for _, node in replay.world.nodes(rung)}
    found = [0, 0]
    for box in replay.world.boxes:
        least = np.minimum.reduceat(replay.residual(box)[order], starts)
        found[box not in on_ladder] += int(sizes[least > 0].sum())
    return found[0], found[1]


def attack(worlds: Sequence[tuple[World, int]], mode: Mode) -> tuple[int, int, int]:
    """Return how many inputs of worlds were tried, and how many groups were shown on the ladder and off it."""
    tried, on, off = 0, 0, 0
    for world, k in worlds:
        replay = Replay(world, every_input(world, k), k, mode).run()
        found = shown(replay, replay.signature())
        tried, on, off = tried + len(replay.counts), on + found[0], off + found[1]
    return tried, on, off


def listed(world: World, counts: npt.NDArray[np.int64], k: int, mode: Mode = "capped") -> dict[Node, int]:
    """Return the rows of one input."""
    replay = Replay(world, counts.astype(np.int16).reshape(1, -1), k, mode).run()
    return {node: int(rows[0]) for node, rows in replay.listed.items() if rows[0]}


@dataclass(frozen=True, eq=False)
class Reader:
    """Who knows the rows of one release, and works out which residuals are possible, by sets of whole numbers.

    A set is a number whose bits are its members: adding sets is shifting and joining.
    """

    world: World
    rows: dict[Node, int]
    bounds: dict[Node, int]
    k: int
    plain: bool = False

    def may_be_empty(self, box: Box) -> bool:
        """Tell whether some input with the same rows has no trip in a box but those in rows inside it."""
        root = self.world.nodes(len(self.world.rungs) - 1)
        return all(self._passes(node, box) for node in root)

    def _passes(self, node: Node, box: Box | None) -> int:
        """Return the set of numbers that a node can pass up while a box is empty."""
        met = None if box is None else common(node[1], box)
        if met == node[1]:
            return self._passes(node, None) & 1
        if node[0] == 0:
            return 1 if node in self.rows else (1 << self.k) - 1
        arrived = 1
        for child in self.world.children(node):
            arrived = _sums(arrived, self._passes(child, met))
        return self._left(node, arrived)

    def _left(self, node: Node, arrived: int) -> int:
        """Return what goes on of the numbers that may have arrived, given what the node lists."""
        listed, bound = self.rows.get(node, 0), self.bounds.get(node, 0)
        if listed and (self.plain or listed < bound):
            return arrived >> listed & 1
        if listed:
            return arrived >> bound
        return arrived if bound < self.k and not self.plain else arrived & ((1 << self.k) - 1)


@cache
def _sums(one: int, other: int) -> int:
    total, at = 0, 0
    while other >> at:
        if other >> at & 1:
            total |= one << at
        at += 1
    return total
