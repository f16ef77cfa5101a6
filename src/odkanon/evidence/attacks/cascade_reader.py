"""What the nested rows of a cascade imply to a reader who knows the method and the public hierarchies.

For each node of the ladder, the reader bounds the trips that it can have passed up in any input with the same rows,
given that a box of places is empty. Where a row lists more than its parts can have passed up, the box cannot be empty:
a group is disclosed. The code follows the definition of the method literally and shares no arithmetic with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from odkanon.methods.cascade.ladder import Ladder

CascadeVariant = Literal["plain", "capped", "kept"]
"""Rows without caps; with caps, the excess passed up; or with caps, the excess suppressed."""


class LadderNode(NamedTuple):
    """A node of the ladder: its rung, and the number of its tree node on each axis."""

    rung: int
    codes: tuple[int, ...]


class AxisBox(NamedTuple):
    """A tree node of one axis, combined with all of the other axes.

    A code of None stands for any node of that subtree type without rows.
    """

    axis: int
    level: int
    code: int | None
    subtree_type: int


@dataclass(eq=False)
class CascadeReader:
    """A reader of nested rows."""

    ladder: Ladder  # the public hierarchies and the order in which they are coarsened
    rows: dict[LadderNode, int]  # the published trips by node
    k: int  # the minimum number of trips of a row
    variant: CascadeVariant  # the variant of the method
    below: dict[LadderNode, list[LadderNode]] = field(default_factory=dict)
    parts: dict[LadderNode, list[set[int]]] = field(default_factory=dict)
    _passes: dict[tuple[LadderNode, AxisBox | None], int] = field(default_factory=dict)
    _unlisted: dict[tuple[int, tuple[int, ...], AxisBox | None], int] = field(default_factory=dict)
    _bounds: dict[LadderNode, int] = field(default_factory=dict)
    _unlisted_bounds: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the nodes that contain rows, and on each axis their parts that contain rows."""
        here = set[LadderNode]()
        for rung in range(len(self.ladder)):
            here |= {node for node in self.rows if node.rung == rung}
            for node in sorted(here):
                self.below.setdefault(node, [])
                self.parts[node] = [self._touched(node, axis) for axis in range(len(node.codes))]
            if rung + 1 == len(self.ladder):
                break
            above = set[LadderNode]()
            for node in sorted(here):
                parent = self._parent(node)
                self.below.setdefault(parent, []).append(node)
                above.add(parent)
            here = above

    def nonempty(self, node: LadderNode) -> Iterator[tuple[AxisBox, int, int]]:
        """Yield the boxes inside a row that cannot be empty, with their number and minimum number of trips."""
        if node.rung == 0:
            return
        for box, count in self.boxes(node):
            least = self.rows[node] - self._received(node, box)
            if least > 0:
                yield box, count, least

    def bound(self, node: LadderNode) -> int:
        """Return the cap of a node: the most that its parts can pass up while any single box of them is empty."""
        if node not in self._bounds:
            axis = self.ladder.axes[node.rung - 1]
            level = self.ladder.level(node.rung, axis)
            single = bool(level.single[self._type(node, axis)])
            self._bounds[node] = 0 if single else min(self._received(node, box) for box, _ in self.boxes(node))
        return self._bounds[node]

    def boxes(self, node: LadderNode) -> Iterator[tuple[AxisBox, int]]:
        """Yield the largest proper boxes of a node with their number: each one with rows, then one per type without."""
        for axis in range(len(node.codes)):
            found = self._step(axis, self.ladder.levels[node.rung][axis], self._type(node, axis))
            if found is None:
                continue
            at, counts = found
            left = dict(counts)
            for code in sorted(self.parts[node][axis]):
                subtree = int(self.ladder.sides[axis].levels[at].types[code])
                left[subtree] -= 1
                yield AxisBox(axis, at, code, subtree), 1
            yield from ((AxisBox(axis, at, None, subtree), count) for subtree, count in left.items() if count > 0)

    def withstands(self) -> int:
        """Return the most unlisted trips with which a known total shows no box other than everything."""
        root = LadderNode(len(self.ladder) - 1, tuple(0 for _ in self.ladder.sides))
        return min(self._can_pass(root, box) for box, _ in self.boxes(root))

    def row_above(self, node: LadderNode) -> LadderNode | None:
        """Return the finest other row that a row lies in."""
        while node.rung + 1 < len(self.ladder):
            node = self._parent(node)
            if node in self.rows:
                return node
        return None

    def _parent(self, node: LadderNode) -> LadderNode:
        axis = self.ladder.axes[node.rung]
        parent = self.ladder.sides[axis].parent(self.ladder.levels[node.rung + 1][axis])
        codes = list(node.codes)
        codes[axis] = int(parent[codes[axis]])
        return LadderNode(node.rung + 1, tuple(codes))

    def _type(self, node: LadderNode, axis: int) -> int:
        return int(self.ladder.level(node.rung, axis).types[node.codes[axis]])

    def _step(self, axis: int, level: int, subtree: int) -> tuple[int, dict[int, int]] | None:
        """Return the level of the largest proper parts of a tree node, and how many there are of each subtree type."""
        levels = self.ladder.sides[axis].levels
        while level > 0:
            children = {
                int(child): int(count)
                for child, count in zip(levels[level].child[subtree], levels[level].count[subtree], strict=True)
                if count
            }
            if sum(children.values()) > 1:
                return level - 1, children
            level, subtree = level - 1, next(iter(children))
        return None

    def _touched(self, node: LadderNode, axis: int) -> set[int]:
        """Return the largest proper parts of a node on an axis that contain rows."""
        children = self.below[node]
        if not children:
            return set()
        own = self.ladder.axes[node.rung - 1] == axis
        if own and not self.ladder.level(node.rung, axis).single[self._type(node, axis)]:
            return {child.codes[axis] for child in children}
        return set[int]().union(*(self.parts[child][axis] for child in children))

    def _inside(self, node: LadderNode, box: AxisBox) -> bool:
        """Return whether a node lies in a box, given that it is no coarser on the axis of the box."""
        if box.code is None:
            return False
        side, code = self.ladder.sides[box.axis], node.codes[box.axis]
        for level in range(self.ladder.levels[node.rung][box.axis] + 1, box.level + 1):
            code = int(side.parent(level)[code])
        return code == box.code

    def _can_pass(self, node: LadderNode, box: AxisBox | None) -> int:
        """Return the most that a node can pass up while a box is empty."""
        if box is not None and self.ladder.levels[node.rung][box.axis] <= box.level:
            if self._inside(node, box):
                return 0
            box = None
        key = node, box
        if key not in self._passes:
            self._passes[key] = self._pass(node, box)
        return self._passes[key]

    def _pass(self, node: LadderNode, box: AxisBox | None) -> int:
        listed = self.rows.get(node, 0)
        if node.rung == 0 or (listed and self.variant != "capped"):
            return 0 if listed else self.k - 1
        received = self._received(node, box)
        if self.variant == "plain":
            return min(self.k - 1, received)
        bound = self.bound(node)
        if listed:
            return received - bound if listed == bound else 0
        return received if bound < self.k else min(self.k - 1, received)

    def _received(self, node: LadderNode, box: AxisBox | None) -> int:
        """Return the most that a node can receive from its parts while a box is empty."""
        axis, total = self.ladder.axes[node.rung - 1], 0
        types = tuple(self._type(node, at) for at in range(len(node.codes)))
        left = self._children(node.rung, types)
        opens = box is not None and box.axis == axis and self.ladder.levels[node.rung - 1][axis] == box.level
        missing = opens
        for child in self.below[node]:
            subtree = self._type(child, axis)
            left[subtree] -= 1
            missing = missing and not (box is not None and child.codes[axis] == box.code)
            total += 0 if self._is_spare(node.rung, types, subtree) else self._can_pass(child, box)
        return total + self._unlisted_sum(node.rung, types, left, None if opens else box, box if missing else None)

    def _is_spare(self, rung: int, types: tuple[int, ...], subtree: int) -> bool:
        """Return whether a child is a value that a reader may know to be empty, beside others that are not."""
        axis = self.ladder.axes[rung - 1]
        spare = self.ladder.level(rung - 1, axis).spare[subtree] & ~self.ladder.level(rung, axis).spare[types[axis]]
        return bool(spare)

    def _children(self, rung: int, types: tuple[int, ...]) -> dict[int, int]:
        axis = self.ladder.axes[rung - 1]
        level = self.ladder.level(rung, axis)
        listed = zip(level.child[types[axis]].tolist(), level.count[types[axis]].tolist(), strict=True)
        return {child: count for child, count in listed if count}

    def _unlisted_sum(
        self, rung: int, types: tuple[int, ...], left: dict[int, int], box: AxisBox | None, without: AxisBox | None
    ) -> int:
        """Return the most that children without rows can pass up in total; ``without`` is an empty one among them."""
        axis, total = self.ladder.axes[rung - 1], 0
        for subtree, count in left.items():
            own = tuple(subtree if at == axis else other for at, other in enumerate(types))
            count -= without is not None and without.subtree_type == subtree
            if count and not self._is_spare(rung, types, subtree):
                total += count * self._unlisted_pass(rung - 1, own, box)
        return total

    def _unlisted_pass(self, rung: int, types: tuple[int, ...], box: AxisBox | None) -> int:
        """Return the most that a node without rows can pass up while one of its boxes is empty."""
        if rung == 0:
            return self.k - 1
        if box is not None:
            box = box._replace(code=None)
        key = rung, types, box
        if key not in self._unlisted:
            received = self._unlisted_received(rung, types, box)
            free = self.variant != "plain" and self._unlisted_bound(rung, types) < self.k
            self._unlisted[key] = received if free else min(self.k - 1, received)
        return self._unlisted[key]

    def _unlisted_received(self, rung: int, types: tuple[int, ...], box: AxisBox | None) -> int:
        axis = self.ladder.axes[rung - 1]
        opens = box is not None and box.axis == axis and self.ladder.levels[rung - 1][axis] == box.level
        return self._unlisted_sum(
            rung, types, self._children(rung, types), None if opens else box, box if opens else None
        )

    def _unlisted_bound(self, rung: int, types: tuple[int, ...]) -> int:
        key = rung, types
        if key not in self._unlisted_bounds:
            axis = self.ladder.axes[rung - 1]
            boxes = [
                AxisBox(at, step[0], None, part)
                for at, subtree in enumerate(types)
                if (step := self._step(at, self.ladder.levels[rung][at], subtree)) is not None
                for part in step[1]
            ]
            single = bool(self.ladder.level(rung, axis).single[types[axis]])
            self._unlisted_bounds[key] = (
                0 if single else min(self._unlisted_received(rung, types, box) for box in boxes)
            )
        return self._unlisted_bounds[key]
