"""The cascade by its definition, where rows are judged by weight or persons, or show their weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from attacks.cascades import Counts, Node, Replay, World, every_input

People = npt.NDArray[np.int64]
PERSONS = 6


def trips_of(*persons: int) -> int:
    """Return trips of persons as one number, which has a byte for each person; such numbers can be added."""
    return sum(1 << 8 * person for person in persons)


def by_person(who: People) -> People:
    """Return how many trips each person has, a row for each."""
    return np.stack([who >> 8 * person & 255 for person in range(PERSONS)])


def leaving(own: People, above: Counts) -> People:
    """Return how many trips of each person leave: first one of those who have others, then others, then the last."""
    gone, left = np.zeros_like(own), above.astype(np.int64)
    for ready in (np.clip(own - 1, 0, 1), np.maximum(own - 2, 0), np.minimum(own, 1)):
        for person in range(PERSONS):
            going = np.minimum(ready[person], left)
            gone[person] += going
            left = left - going
    return gone


@dataclass
class Judged(Replay):
    """The method where rows are judged by weight or persons too, or show their weight.

    ``weight`` and ``people`` (see `trips_of`) are tables like ``counts``; ``least`` are the thresholds on both.
    """

    weight: Counts = field(default_factory=lambda: np.empty((0, 0), dtype=np.int16))
    people: People = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    least: tuple[int, int] = (0, 0)
    heavy: dict[Node, Counts] = field(default_factory=dict)
    who: dict[Node, People] = field(default_factory=dict)
    row_weight: dict[Node, Counts] = field(default_factory=dict)

    def accepted(self, node: Node, arrived: Counts, may: Counts) -> Counts:
        """Return what a node lists: as much as it may, if what stays certainly meets the rule."""
        row = super().accepted(node, arrived, may)
        children = self.world.children(node) if node[0] else []
        nothing = np.zeros_like(row)
        weight = sum((self.heavy[child] for child in children), nothing) if node[0] else self._cell(self.weight, node)
        who: People = (
            sum((self.who[child] for child in children), nothing.astype(np.int64))
            if node[0]
            else self._cell(self.people, node)
        )
        above = np.where(row > 0, arrived - row, 0)
        gone = np.where(row > 0, weight * above // np.maximum(arrived, 1), 0)
        own = by_person(who) if self.people.size else np.zeros((0, len(row)), dtype=np.int64)
        contributors = np.minimum((own > 0).sum(axis=0), row) if self.least[1] else row
        row = np.where((weight - gone >= self.least[0]) & (contributors >= self.least[1]), row, 0).astype(np.int16)
        taken = row > 0
        self.row_weight[node] = np.where(taken, weight - gone, 0).astype(np.int16)
        self.heavy[node] = np.where(taken, 0 if self.mode == "kept" else gone, weight).astype(np.int16)
        if self.people.size:
            on = sum(part << 8 * person for person, part in enumerate(leaving(own, above)))
            who = np.where(taken, on, who).astype(np.int64)
        self.who[node] = who
        return row

    def _cell(self, table: npt.NDArray[Any], node: Node) -> npt.NDArray[Any]:
        at = np.ravel_multi_index([start for start, _ in node[1]], self.world.shape)
        return table[:, at] if table.size else np.zeros(len(self.counts), dtype=np.int16)

    def told(self, *, shared: bool) -> npt.NDArray[np.uint64]:
        """Return a number for the trips and the weight that each input publishes; rows may share their weight."""
        weights = self._shared() if shared else self.row_weight
        mix = np.random.default_rng(1).integers(1, 2**63, len(weights), dtype=np.uint64) | np.uint64(1)
        total = self.signature()
        for column, factor in zip(weights.values(), mix, strict=True):
            total += column.astype(np.uint64) * factor
        return total

    def _shared(self) -> dict[Node, Counts]:
        """Return for each row the weight of all rows that it may have exchanged trips with, at the coarsest of them."""
        above = {node: np.zeros(len(self.counts), dtype=bool) for node in self.listed}
        for node in reversed(list(self.listed)):
            for child in self.world.children(node) if node[0] else []:
                above[child] = above[node] | (self.listed[node] > 0)
        carried: dict[Node, Counts] = {}
        told: dict[Node, Counts] = {}
        for node, listed in self.listed.items():
            total = self.row_weight[node] + sum(
                carried[child] for child in (self.world.children(node) if node[0] else [])
            )
            bound = self.bounds.get(node, np.full_like(listed, -1))
            on = (listed == 0) | ((listed == bound) & above[node])
            carried[node], told[node] = np.where(on, total, 0), np.where(on, 0, total)
        return told


def every_state(world: World, states: Sequence[tuple[int, ...]]) -> tuple[npt.NDArray[Any], ...]:
    """Return every way of putting one of some states into each leaf box, one table for each number of a state."""
    number = every_input(world, len(states) - 1)
    columns = [np.array(values) for values in zip(*states, strict=True)]
    return tuple(values.astype(np.int16 if values.max() < 2**15 else np.int64)[number] for values in columns)
