"""What rows that lie in each other imply: a reader who knows the method, the public trees and the rows, nothing else.

The reader works out how many trips each node of the ladder can have passed up in worlds with the same rows, and with a
box of places empty. Where a row lists more than its parts can then have passed, the box cannot be empty: a group has
been shown to exist. This follows the definition of the method literally and shares none of its arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from odkanon.methods.cascade.ladder import Ladder

Mode = Literal["plain", "capped", "kept"]
"""Whether rows are capped, and whether what is above a cap goes on or stays."""


class Node(NamedTuple):
    """A node of the ladder: its rung, and on each axis the number of its tree node."""

    rung: int
    codes: tuple[int, ...]


class Box(NamedTuple):
    """A part of one axis with all of the others: on which axis, at which level, which node, and of what kind.

    A code of None stands for any part of that kind without rows.
    """

    axis: int
    level: int
    code: int | None
    kind: int


@dataclass(eq=False)
class Reader:
    """Whoever reads nested rows.

    Attributes
    ----------
    ladder : Ladder
        The public knowledge.
    rows : dict
        What is listed: trips by node.
    k : int
        The trips that every row has at least.
    mode : {"plain", "capped", "kept"}
        Which method made them.
    """

    ladder: Ladder
    rows: dict[Node, int]
    k: int
    mode: Mode
    below: dict[Node, list[Node]] = field(default_factory=dict)
    parts: dict[Node, list[set[int]]] = field(default_factory=dict)
    _passes: dict[tuple[Node, Box | None], int] = field(default_factory=dict)
    _plain: dict[tuple[int, tuple[int, ...], Box | None], int] = field(default_factory=dict)
    _bounds: dict[Node, int] = field(default_factory=dict)
    _plain_bounds: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the nodes with rows in them, and on each axis the parts that rows lie in."""
        here = set[Node]()
        for rung in range(len(self.ladder)):
            here |= {node for node in self.rows if node.rung == rung}
            for node in sorted(here):
                self.below.setdefault(node, [])
                self.parts[node] = [self._touched(node, axis) for axis in range(len(node.codes))]
            if rung + 1 == len(self.ladder):
                break
            above = set[Node]()
            for node in sorted(here):
                parent = self._parent(node)
                self.below.setdefault(parent, []).append(node)
                above.add(parent)
            here = above

    def shown(self, node: Node) -> Iterator[tuple[Box, int, int]]:
        """Yield the boxes inside a row that cannot be empty, how many there are of each, and the least trips there."""
        if node.rung == 0:
            return
        for box, times in self.boxes(node):
            least = self.rows[node] - self._held(node, box)
            if least > 0:
                yield box, times, least

    def bound(self, node: Node) -> int:
        """Return the most that a node lists: what its parts can pass while any one box of them is empty."""
        if node not in self._bounds:
            axis = self.ladder.axes[node.rung - 1]
            level = self.ladder.level(node.rung, axis)
            single = bool(level.single[self._kind(node, axis)])
            self._bounds[node] = 0 if single else min(self._held(node, box) for box, _ in self.boxes(node))
        return self._bounds[node]

    def boxes(self, node: Node) -> Iterator[tuple[Box, int]]:
        """Yield the largest proper boxes of a node and their number: each with rows, and one of each kind without."""
        for axis in range(len(node.codes)):
            found = self._step(axis, self.ladder.levels[node.rung][axis], self._kind(node, axis))
            if found is None:
                continue
            at, attributes = found
            left = dict(attributes)
            for code in sorted(self.parts[node][axis]):
                kind = int(self.ladder.sides[axis].levels[at].kind[code])
                left[kind] -= 1
                yield Box(axis, at, code, kind), 1
            yield from ((Box(axis, at, None, kind), count) for kind, count in left.items() if count > 0)

    def _parent(self, node: Node) -> Node:
        axis = self.ladder.axes[node.rung]
        parent = self.ladder.sides[axis].parent(self.ladder.levels[node.rung + 1][axis])
        codes = list(node.codes)
        codes[axis] = int(parent[codes[axis]])
        return Node(node.rung + 1, tuple(codes))

    def _kind(self, node: Node, axis: int) -> int:
        return int(self.ladder.level(node.rung, axis).kind[node.codes[axis]])

    def _step(self, axis: int, level: int, kind: int) -> tuple[int, dict[int, int]] | None:
        """Return the level of the largest proper parts of a tree node, and how many there are of each kind."""
        levels = self.ladder.sides[axis].levels
        while level > 0:
            children = {
                int(child): int(count)
                for child, count in zip(levels[level].child[kind], levels[level].count[kind], strict=True)
                if count
            }
            if sum(children.values()) > 1:
                return level - 1, children
            level, kind = level - 1, next(iter(children))
        return None

    def _touched(self, node: Node, axis: int) -> set[int]:
        """Return on an axis the largest proper parts of a node that rows lie in."""
        children = self.below[node]
        if not children:
            return set()
        own = self.ladder.axes[node.rung - 1] == axis
        if own and not self.ladder.level(node.rung, axis).single[self._kind(node, axis)]:
            return {child.codes[axis] for child in children}
        return set[int]().union(*(self.parts[child][axis] for child in children))

    def _inside(self, node: Node, box: Box) -> bool:
        """Tell whether a node lies in a box, if it is no larger on the box's axis."""
        if box.code is None:
            return False
        side, code = self.ladder.sides[box.axis], node.codes[box.axis]
        for level in range(self.ladder.levels[node.rung][box.axis] + 1, box.level + 1):
            code = int(side.parent(level)[code])
        return code == box.code

    def _can_pass(self, node: Node, box: Box | None) -> int:
        """Return the most that a node can pass up while a box is empty."""
        if box is not None and self.ladder.levels[node.rung][box.axis] <= box.level:
            if self._inside(node, box):
                return 0
            box = None
        key = node, box
        if key not in self._passes:
            self._passes[key] = self._pass(node, box)
        return self._passes[key]

    def _pass(self, node: Node, box: Box | None) -> int:
        listed = self.rows.get(node, 0)
        if node.rung == 0 or (listed and self.mode != "capped"):
            return 0 if listed else self.k - 1
        held = self._held(node, box)
        if self.mode == "plain":
            return min(self.k - 1, held)
        bound = self.bound(node)
        if listed:
            return held - bound if listed == bound else 0
        return held if bound < self.k else min(self.k - 1, held)

    def _held(self, node: Node, box: Box | None) -> int:
        """Return the most that the parts of a node can pass to it while a box is empty."""
        axis = self.ladder.axes[node.rung - 1]
        attributes = tuple(self._kind(node, at) for at in range(len(node.codes)))
        left = self._children(node.rung, attributes)
        total = 0
        opens = box is not None and box.axis == axis and self.ladder.levels[node.rung - 1][axis] == box.level
        missing = opens
        for child in self.below[node]:
            left[int(self.ladder.level(node.rung - 1, axis).kind[child.codes[axis]])] -= 1
            missing = missing and not (box is not None and child.codes[axis] == box.code)
            total += self._can_pass(child, box)
        return total + self._plain_sum(node.rung, attributes, left, None if opens else box, box if missing else None)

    def _children(self, rung: int, attributes: tuple[int, ...]) -> dict[int, int]:
        axis = self.ladder.axes[rung - 1]
        level = self.ladder.level(rung, axis)
        listed = zip(level.child[attributes[axis]].tolist(), level.count[attributes[axis]].tolist(), strict=True)
        return {child: count for child, count in listed if count}

    def _plain_sum(
        self, rung: int, attributes: tuple[int, ...], left: dict[int, int], box: Box | None, without: Box | None
    ) -> int:
        """Add up what children without rows can pass; ``without`` is one of them that is empty."""
        axis, total = self.ladder.axes[rung - 1], 0
        for kind, count in left.items():
            own = tuple(kind if at == axis else other for at, other in enumerate(attributes))
            count -= without is not None and without.kind == kind
            total += count * self._plain_pass(rung - 1, own, box) if count else 0
        return total

    def _plain_pass(self, rung: int, attributes: tuple[int, ...], box: Box | None) -> int:
        """Return the most that a node of some kinds without rows can pass up while a box of it is empty."""
        if rung == 0:
            return self.k - 1
        if box is not None:
            box = box._replace(code=None)
        key = rung, attributes, box
        if key not in self._plain:
            held = self._plain_held(rung, attributes, box)
            free = self.mode != "plain" and self._plain_bound(rung, attributes) < self.k
            self._plain[key] = held if free else min(self.k - 1, held)
        return self._plain[key]

    def _plain_held(self, rung: int, attributes: tuple[int, ...], box: Box | None) -> int:
        axis = self.ladder.axes[rung - 1]
        opens = box is not None and box.axis == axis and self.ladder.levels[rung - 1][axis] == box.level
        return self._plain_sum(
            rung, attributes, self._children(rung, attributes), None if opens else box, box if opens else None
        )

    def _plain_bound(self, rung: int, attributes: tuple[int, ...]) -> int:
        key = rung, attributes
        if key not in self._plain_bounds:
            axis = self.ladder.axes[rung - 1]
            boxes = [
                Box(at, step[0], None, part)
                for at, kind in enumerate(attributes)
                if (step := self._step(at, self.ladder.levels[rung][at], kind)) is not None
                for part in step[1]
            ]
            single = bool(self.ladder.level(rung, axis).single[attributes[axis]])
            self._plain_bounds[key] = 0 if single else min(self._plain_held(rung, attributes, box) for box in boxes)
        return self._plain_bounds[key]
