"""Caps of nodes: the most that their parts can pass up, given the rows below them, and so the most that they may list.

For a node v of the ladder's tree, cap(v, X) is the most trips that v can pass up in a world with the same rows in
which the box X has no trip outside its rows. X is nothing, or one of the largest proper boxes of v: one step down on
one axis. Only nodes with a listed row below them have values of their own; all others of the same kinds are alike.
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
    """Boxes with rows in them: steps of some nodes on one axis."""

    node: Ints
    part: Ints
    """The row of the node, and the number of its part on the axis."""
    place: Ints
    """The column of the part's kind among those of the node."""
    value: Ints
    """The most that the node can pass up, or its parts can hold, while the box is empty."""


@dataclass(frozen=True, eq=False)
class Caps:
    """Values of some nodes of one rung."""

    nothing: Ints
    """With no box empty."""
    most: Ints
    """The same, including spare parts, which may hold trips but must not be relied on."""
    untouched: list[Ints]
    """For each axis, node (row) and kind of its parts (column), with a box empty that has no row in it."""
    touched: list[Steps]
    """For each axis, with a box empty that has rows in it."""

    def without(self, which: Bools) -> Caps:
        """Return the values with those of some nodes set to zero, as nothing there can be relied on."""
        keep = (~which).astype(np.int64)
        return Caps(
            self.nothing * keep,
            self.most,
            [values * keep[:, np.newaxis] for values in self.untouched],
            [Steps(of.node, of.part, of.place, of.value * keep[of.node]) for of in self.touched],
        )


@dataclass(frozen=True, eq=False)
class Below:
    """Nodes with rows in them, one rung down: the row of their parent, their number on the axis that is coarsened."""

    parent: Ints
    code: Ints
    kind: Ints
    caps: Caps


def no_steps() -> Steps:
    """Return no boxes."""
    none = np.empty(0, dtype=np.int64)
    return Steps(none, none, none, none)


def leaf_caps(ladder: Ladder, nodes: int, value: int) -> Caps:
    """Return the values of leaves."""
    axes = len(ladder.sides)
    return Caps(
        np.full(nodes, value, dtype=np.int64),
        np.full(nodes, value, dtype=np.int64),
        [np.zeros((nodes, 0), dtype=np.int64) for _ in range(axes)],
        [no_steps() for _ in range(axes)],
    )


def nothing_below(ladder: Ladder) -> Below:
    """Return no nodes."""
    none = np.empty(0, dtype=np.int64)
    return Below(none, none, none, leaf_caps(ladder, 0, 0))


def cut(sums: Caps, bound: Ints, k: int, count: Ints, carries: bool) -> Caps:
    """Return the most that nodes can pass up, given the most that their parts can hold.

    * ``sums``: what the parts can hold.
    * ``bound``: the most that each node may list.
    * ``count``: what each node lists, 0 if it is not listed.
    * ``carries``: whether what a listed node has above its bound can be counted on further up.
    """
    gives = (count > 0) & (count == bound) & carries
    less = np.where(gives, bound, 0)
    most = np.where(count > 0, np.where(gives, _FREE, 0), np.where(bound < k, _FREE, k - 1))
    return Caps(
        np.minimum(sums.nothing - less, most),
        np.minimum(sums.most - less, most),
        [np.minimum(values - less[:, np.newaxis], most[:, np.newaxis]) for values in sums.untouched],
        [Steps(of.node, of.part, of.place, np.minimum(of.value - less[of.node], most[of.node])) for of in sums.touched],
    )


class Untouched:
    """The values of nodes without rows, by the subtree types of their axes; computed once for each combination."""

    def __init__(self, ladder: Ladder, k: int) -> None:
        self.ladder, self.k = ladder, k
        self.known: dict[int, tuple[list[Ints], Caps]] = {}

    def caps(self, rung: int, attributes: list[Ints]) -> Caps:
        """Return the values of nodes of a rung."""
        if rung == 0:
            return leaf_caps(self.ladder, len(attributes[0]), self.k - 1)
        radix = [len(self.ladder.level(rung, axis).child) for axis in range(len(attributes))]
        known, found = self.known.get(rung, ([kind[:0] for kind in attributes], None))
        old, keys = codes_to_keys(radix, known, attributes)
        distinct, first = np.unique(np.concatenate([old, keys]), return_index=True)
        if found is None or len(distinct) > len(old):
            known = [np.concatenate(both)[first] for both in zip(known, attributes, strict=True)]
            found = self._values(rung, known)
            self.known[rung] = known, found
        at = np.searchsorted(distinct, keys)
        return Caps(found.nothing[at], found.most[at], [values[at] for values in found.untouched], found.touched)

    def _values(self, rung: int, attributes: list[Ints]) -> Caps:
        sums, bound = hold(self.ladder, rung, attributes, nothing_below(self.ladder), self)
        return cut(sums, bound, self.k, np.zeros_like(bound), carries=True)


def hold(ladder: Ladder, rung: int, attributes: list[Ints], below: Below, plain: Untouched) -> tuple[Caps, Ints]:
    """Return the most that the parts of nodes can hold, and the most that each node may list.

    * ``rung``: the rung of the nodes, above the leaves.
    * ``attributes``: for each axis, the kinds of the nodes.
    * ``below``: those of their children that have rows in them.
    * ``plain``: the values of the others.
    """
    axis, nodes = ladder.axes[rung - 1], len(attributes[0])
    level = ladder.level(rung, axis)
    child, count = level.child[attributes[axis]], level.count[attributes[axis]]
    place = _place(child, count, below.parent, below.kind)
    left = count.copy()
    np.subtract.at(left, (below.parent, place), 1)
    width = child.shape[1]
    others = plain.caps(
        rung - 1, [child.reshape(-1) if at == axis else np.repeat(kind, width) for at, kind in enumerate(attributes)]
    )
    # A part that a reader may know to be empty carries nothing for the others; see docs/methods-own.md.
    under, joins = ladder.level(rung - 1, axis).spare, ~level.spare[attributes[axis]]
    most = (left * others.most.reshape(nodes, width)).sum(axis=1) + group_sum(below.parent, nodes, below.caps.most)
    others = others.without((under[child] & joins[:, np.newaxis]).reshape(-1))
    below = replace(below, caps=below.caps.without(under[below.kind] & joins[below.parent]))
    generic = others.nothing.reshape(nodes, width)
    total = (left * generic).sum(axis=1) + group_sum(below.parent, nodes, below.caps.nothing)
    untouched, touched = [], []
    for at in range(len(attributes)):
        values = others.untouched[at]
        spread = _sum_untouched(left, values.reshape(nodes, width, values.shape[1]), below, at)
        steps = _sum_touched(spread, below, at)
        if at == axis:
            spread, steps = _step_sums(level, attributes[axis], total, generic, spread, steps, below, place)
        untouched.append(spread)
        touched.append(steps)
    sums = Caps(total, most, untouched, touched)
    return sums, np.where(level.single[attributes[axis]], 0, least_with_empty_box(ladder, rung, attributes, sums))


def _place(child: Ints, count: Ints, parent: Ints, kind: Ints) -> Ints:
    """Return the column of each child's kind among those of its parent."""
    found: Ints = ((child[parent] == kind[:, np.newaxis]) & (count[parent] > 0)).argmax(axis=1)
    return found


def _sum_untouched(left: Ints, plain: Ints, below: Below, axis: int) -> Ints:
    """Sum, over all children, the most that they pass up while a part of an axis without rows is empty."""
    total: Ints = np.einsum("nw,nwx->nx", left, plain)
    if len(below.parent):
        np.add.at(total, below.parent, below.caps.untouched[axis])
    return total


def _sum_touched(spread: Ints, below: Below, axis: int) -> Steps:
    """Sum the same for a part with rows: as for one without rows, corrected for the children with rows in it."""
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
    level: Level, attributes: Ints, total: Ints, generic: Ints, spread: Ints, steps: Steps, below: Below, place: Ints
) -> tuple[Ints, Steps]:
    """Return the most that is held while one child is empty, or, of a single child, while a part of it is."""
    single = level.single[attributes]
    own = np.zeros((len(attributes), level.step.shape[1]), dtype=np.int64)
    own[:, : generic.shape[1]] = total[:, np.newaxis] - generic
    own[single] = 0
    own[single, : spread.shape[1]] = spread[single]
    opens, keep = ~single[below.parent], single[steps.node]
    parts = Steps(
        below.parent[opens],
        below.code[opens],
        place[opens],
        total[below.parent[opens]] - below.caps.nothing[opens],
    )
    return own, Steps(
        np.concatenate([parts.node, steps.node[keep]]),
        np.concatenate([parts.part, steps.part[keep]]),
        np.concatenate([parts.place, steps.place[keep]]),
        np.concatenate([parts.value, steps.value[keep]]),
    )


def least_with_empty_box(ladder: Ladder, rung: int, attributes: list[Ints], sums: Caps) -> Ints:
    """Return the minimum, over the largest proper boxes of each node, of what it can hold while that box is empty."""
    least = np.full(len(sums.nothing), _FREE)
    for axis, (values, steps) in enumerate(zip(sums.untouched, sums.touched, strict=True)):
        left = ladder.level(rung, axis).step_count[attributes[axis]].copy()
        np.subtract.at(left, (steps.node, steps.place), 1)
        if values.shape[1]:
            least = np.minimum(least, np.where(left > 0, values, _FREE).min(axis=1))
        np.minimum.at(least, steps.node, steps.value)
    return least
