"""Every input of a small world whose trips have one of two weights, through the method itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
import numpy.typing as npt

from attacks.cascades import Counts, Node, Replay
from odkanon import Rule
from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.attributes.spec import ANY
from odkanon.core.arrays import group_sum
from odkanon.engine.dispatch import open_workspace
from odkanon.methods.cascade.cascade_rows import Rows
from odkanon.methods.cascade.ladder import Ladder, side_of
from odkanon.methods.cascade.roll_up import PublicationRule, roll_up
from odkanon.model.od import od_matrix
from odkanon.model.provenance import Source
from odkanon.model.published_flows import disclosed_weights
from worlds.cubes import Cube, attribute_axes, tree_of

SCALE = 10**9
Numbers = npt.NDArray[np.int64]
Told = Literal["published", "share", "pool"]
"""The weight of rows as published; the share of W that B of c trips have; that of all rows which exchanged trips."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """What the method lists of every input, and the input (column) and node of each row."""

    replay: Replay
    rows: Rows
    of: Numbers
    node: Numbers

    def signature(self, told: Told) -> npt.NDArray[np.uint64]:
        """Return a number for the rows of each input, with their trips and their weights."""
        mix = np.random.default_rng(2).integers(1, 2**63, int(self.node.max(initial=0)) + 1, dtype=np.uint64)
        total = self.replay.signature()
        np.add.at(total, self.of, self._weights(told).astype(np.uint64) * (mix[self.node] | np.uint64(1)))
        return total

    def _weights(self, told: Told) -> Numbers:
        trips, weight, hides = self.rows.groups.trips, self.rows.groups.weight_units, self.rows.hides_weight
        assert weight is not None
        if told == "share":
            return weight
        if told == "pool":
            above = self.rows.above
            pool = np.where(self.rows.at_cap & self.rows.passes & (above >= 0), above, np.arange(len(above)))
            while not np.array_equal(pool, pool[pool]):
                pool = pool[pool]
            return group_sum(pool, len(pool), weight)[pool] // group_sum(pool, len(pool), trips)[pool] * trips
        found, order = np.zeros_like(weight), np.argsort(self.of, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(self.of[order])) + 1):
            # Where all rows hide their weight, no weights are published.
            found[own] = 0 if hides[own].all() else disclosed_weights(trips[own], weight[own], hides[own])
        return found


def weigh(world: Cube, weights: Sequence[float], most: int, rule: Rule, k: int) -> Weighed:
    """Put up to so many trips of these weights into each leaf box, in every way, and let the method list them.

    Spare values are empty, as the reader knows.
    """
    states = [(len(one), int(sum(Fraction(each) for each in one) * SCALE)) for one in _multisets(weights, most)]
    counts, weight = _fill(world, states)
    of, box = np.nonzero(counts)
    at = np.unravel_index(box, world.shape)
    axes, attributes = attribute_axes(world, at)
    leaves = [(one, one + 1) for one in range(len(counts))]
    od = od_matrix(
        tree_of(world.levels[0]),
        tree_of(world.levels[1]),
        at[0].astype(np.int32),
        at[1].astype(np.int32),
        trips=counts[of, box].astype(np.int64),
        weight=weight[of, box].astype(np.int64),
        scale=SCALE,
        axes=(*axes, AttributeAxis("input", tree_of([leaves, [(0, len(counts))]], ANY))),
        attributes=(*attributes, of.astype(np.int32)),
        source=Source(rows=int(counts.sum())),
    )
    ladder = Ladder(
        tuple(side_of(tree) for tree in (od.origins, od.destinations, *(axis.tree for axis in od.axes))), world.order
    )
    residual = open_workspace(od).residual_trips([side.nodes(0) for side in ladder.sides], rule.measures)
    rows = roll_up(ladder, residual, PublicationRule(rule, k)).rows
    *codes, inputs = rows.groups.codes
    listed: dict[Node, Counts] = {}
    node = np.zeros(len(rows), dtype=np.int64)
    observed = [np.unique(each) for each in at]
    for rung, levels in enumerate(world.rungs):
        nodes, here = world.nodes(rung), rows.rung == rung
        shape = [len(axis[level]) for axis, level in zip(world.levels, levels, strict=True)]
        assert all(len(each) >= size - world.spare for each, size in zip(observed, world.shape, strict=True))
        number = np.ravel_multi_index([code[here] for code in codes], shape)
        node[here] = len(listed) + number
        table = np.zeros((len(nodes), len(counts)), dtype=np.int16)
        table[number, inputs[here]] = rows.groups.trips[here]
        listed |= dict(zip(nodes, table, strict=True))
    return Weighed(Replay(world, counts, k, listed=listed), rows, inputs, node)


def _fill(world: Cube, states: Sequence[tuple[int, int]]) -> tuple[Counts, Numbers]:
    """Return the trips and the weight in each leaf box (column), for every way of filling those that may hold any."""
    free = np.flatnonzero(np.arange(int(np.prod(world.shape))) % world.shape[-1] < world.shape[-1] - world.spare)
    number = np.arange(len(states) ** len(free))
    state = np.zeros((len(number), int(np.prod(world.shape))), dtype=np.int64)
    for at, box in enumerate(free.tolist()):
        state[:, box] = number // len(states) ** at % len(states)
    table = np.array(states, dtype=np.int64)
    return table[state, 0].astype(np.int16), table[state, 1]


def _multisets(weights: Sequence[float], most: int) -> list[tuple[float, ...]]:
    return [one for count in range(most + 1) for one in combinations_with_replacement(weights, count)]
