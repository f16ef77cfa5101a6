"""Caps of nodes: the most trips that their parts can pass up given the rows below, hence the most they may list.

For a node v of the ladder's tree, cap(v, X) is the most trips that v can pass up in a world with the same rows in
which the box X has no unlisted trip. X is empty, or a maximal proper box of v: one step down on one axis. Only nodes
that contain rows have values of their own; all others of the same subtree types share theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Bools, Ints, group_sum
from odkanon.engine.node_flows import codes_to_keys
from odkanon.methods.cascade.ladder import Ladder
from odkanon.methods.cascade.subtree_types import Level

_FREE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Steps:
    """Boxes that contain rows: parts of some nodes on one axis."""

    node: Ints
    part: Ints
    """The row of the node, and the number of its part on the axis."""
    place: Ints
    """The column of the part's type among those of the node."""
    value: Ints
    """The most that the node can pass up, or its parts can hold, while the box is empty."""


@dataclass(frozen=True, eq=False)
class Caps:
    """The most that some nodes of one rung can pass up, or their parts can hold."""

    nothing: Ints
    """With no box empty."""
    most: Ints
    """The same, including spare parts, which may hold trips but must not be relied on."""
    untouched: list[Ints]
    """For each axis, by node (row) and type of its parts (column), with an empty box that contains no row."""
    touched: list[Steps]
    """For each axis, with an empty box that contains rows."""

    def without(self, which: Bools) -> Caps:
        """Return the values with those of some nodes set to zero, because a reader cannot rely on them."""
        keep = (~which).astype(np.int64)
        return Caps(
            self.nothing * keep,
            self.most,
            [values * keep[:, np.newaxis] for values in self.untouched],
            [replace(of, value=of.value * keep[of.node]) for of in self.touched],
        )


@dataclass(frozen=True, eq=False)
class Below:
    """Nodes that contain rows, one rung down."""

    parent: Ints
    """The row of each node's parent."""
    code: Ints
    """Its number on the coarsened axis."""
    types: Ints
    """Its subtree type on that axis."""
    caps: Caps


def leaf_caps(ladder: Ladder, nodes: int, value: int) -> Caps:
    """Return the values of leaves."""
    axes, none = len(ladder.sides), np.empty(0, dtype=np.int64)
    return Caps(
        np.full(nodes, value, dtype=np.int64),
        np.full(nodes, value, dtype=np.int64),
        [np.zeros((nodes, 0), dtype=np.int64)] * axes,
        [Steps(none, none, none, none)] * axes,
    )


def cut(sums: Caps, bound: Ints, k: int, count: Ints, carries: bool) -> Caps:
    """Return the most that nodes can pass up, given the most that their parts can hold.

    * ``sums``: the most that the parts can hold.
    * ``bound``: the most that each node may list.
    * ``count``: what each node lists, 0 if it is not listed.
    * ``carries``: whether the excess of a listed node can make up a row further up.
    """
    gives = (count > 0) & (count == bound) & carries
    less = np.where(gives, bound, 0)
    most = np.where(count > 0, np.where(gives, _FREE, 0), np.where(bound < k, _FREE, k - 1))
    return Caps(
        np.minimum(sums.nothing - less, most),
        np.minimum(sums.most - less, most),
        [np.minimum(values - less[:, np.newaxis], most[:, np.newaxis]) for values in sums.untouched],
        [replace(of, value=np.minimum(of.value - less[of.node], most[of.node])) for of in sums.touched],
    )


class Untouched:
    """The values of nodes without rows, computed once for each combination of subtree types."""

    def __init__(self, ladder: Ladder, k: int) -> None:
        self.ladder, self.k = ladder, k
        self.known: dict[int, tuple[list[Ints], Caps]] = {}

    def caps(self, rung: int, types: list[Ints]) -> Caps:
        """Return the values of nodes of a rung, given their types on each axis."""
        if rung == 0:
            return leaf_caps(self.ladder, len(types[0]), self.k - 1)
        radix = [len(self.ladder.level(rung, axis).child) for axis in range(len(types))]
        known, found = self.known.get(rung, ([each[:0] for each in types], None))
        old, keys = codes_to_keys(radix, known, types)
        distinct, first = np.unique(np.concatenate([old, keys]), return_index=True)
        if found is None or len(distinct) > len(old):
            known = [np.concatenate(both)[first] for both in zip(known, types, strict=True)]
            none = np.empty(0, dtype=np.int64)
            sums, bound = hold(self.ladder, rung, known, Below(none, none, none, leaf_caps(self.ladder, 0, 0)), self)
            found = cut(sums, bound, self.k, np.zeros_like(bound), carries=True)
            self.known[rung] = known, found
        at = np.searchsorted(distinct, keys)
        return Caps(found.nothing[at], found.most[at], [values[at] for values in found.untouched], found.touched)


def hold(ladder: Ladder, rung: int, types: list[Ints], below: Below, plain: Untouched) -> tuple[Caps, Ints]:
    """Return the most that the parts of nodes can hold, and the most that each node may list.

    * ``rung``: the rung of the nodes, above the leaves.
    * ``types``: for each axis, the subtree types of the nodes.
    * ``below``: their children that contain rows.
    * ``plain``: the values of all other children.
    """
    axis, nodes = ladder.axes[rung - 1], len(types[0])
    level = ladder.level(rung, axis)
    child, count = level.child[types[axis]], level.count[types[axis]]
    # The column of each child's type among those of its parent.
    place = ((child[below.parent] == below.types[:, np.newaxis]) & (count[below.parent] > 0)).argmax(axis=1)
    left = count.copy()
    np.subtract.at(left, (below.parent, place), 1)
    width = child.shape[1]
    others = plain.caps(
        rung - 1, [child.reshape(-1) if at == axis else np.repeat(each, width) for at, each in enumerate(types)]
    )
    # A part that readers may know to be empty carries nothing for the others; see docs/methods-own.md.
    under, joins = ladder.level(rung - 1, axis).spare, ~level.spare[types[axis]]
    most = (left * others.most.reshape(nodes, width)).sum(axis=1) + group_sum(below.parent, nodes, below.caps.most)
    others = others.without((under[child] & joins[:, np.newaxis]).reshape(-1))
    below = replace(below, caps=below.caps.without(under[below.types] & joins[below.parent]))
    generic = others.nothing.reshape(nodes, width)
    total = (left * generic).sum(axis=1) + group_sum(below.parent, nodes, below.caps.nothing)
    untouched, touched = [], []
    for at in range(len(types)):
        values = others.untouched[at]
        spread = _sum_untouched(left, values.reshape(nodes, width, values.shape[1]), below, at)
        steps = _sum_touched(spread, below, at)
        if at == axis:
            spread, steps = _step_sums(level, types[axis], total, generic, spread, steps, below, place)
        untouched.append(spread)
        touched.append(steps)
    sums = Caps(total, most, untouched, touched)
    return sums, np.where(level.single[types[axis]], 0, least_with_empty_box(ladder, rung, types, sums))


def _sum_untouched(left: Ints, plain: Ints, below: Below, axis: int) -> Ints:
    """Return, over all children, the sum of what they can pass up while a box without rows is empty."""
    total: Ints = np.einsum("nw,nwx->nx", left, plain)
    if len(below.parent):
        np.add.at(total, below.parent, below.caps.untouched[axis])
    return total


def _sum_touched(spread: Ints, below: Below, axis: int) -> Steps:
    """Return the same sums for a box with rows: that of a box without, corrected for the children with rows in it."""
    steps = below.caps.touched[axis]
    if len(steps.node) == 0:
        return steps
    width = int(steps.part.max()) + 1
    keys, first, number = np.unique(
        below.parent[steps.node] * width + steps.part, return_index=True, return_inverse=True
    )
    differs = steps.value - below.caps.untouched[axis][steps.node, steps.place]
    node, place = keys // width, steps.place[first]
    return Steps(node, keys % width, place, spread[node, place] + group_sum(number, len(keys), differs))


def _step_sums(
    level: Level, types: Ints, total: Ints, generic: Ints, spread: Ints, steps: Steps, below: Below, place: Ints
) -> tuple[Ints, Steps]:
    """Return the most that nodes can hold while one child is empty or, of a single child, while a part of it is."""
    single = level.single[types]
    own = np.zeros((len(types), level.step.shape[1]), dtype=np.int64)
    own[:, : generic.shape[1]] = total[:, np.newaxis] - generic
    own[single] = 0
    own[single, : spread.shape[1]] = spread[single]
    opens, keep = ~single[below.parent], single[steps.node]
    opened = (
        below.parent[opens],
        below.code[opens],
        place[opens],
        total[below.parent[opens]] - below.caps.nothing[opens],
    )
    inner = (steps.node, steps.part, steps.place, steps.value)
    return own, Steps(*(np.concatenate([new, old[keep]]) for new, old in zip(opened, inner, strict=True)))


def least_with_empty_box(ladder: Ladder, rung: int, types: list[Ints], sums: Caps) -> Ints:
    """Return for each node the minimum, over its maximal proper boxes, of what it can hold while that box is empty."""
    least = np.full(len(sums.nothing), _FREE)
    for axis, (values, steps) in enumerate(zip(sums.untouched, sums.touched, strict=True)):
        left = ladder.level(rung, axis).step_count[types[axis]].copy()
        np.subtract.at(left, (steps.node, steps.place), 1)
        if values.shape[1]:
            least = np.minimum(least, np.where(left > 0, values, _FREE).min(axis=1))
        np.minimum.at(least, steps.node, steps.value)
    return least
