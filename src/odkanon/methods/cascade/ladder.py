"""The ladder of a cascade: level vectors from the leaves to the roots, each a step of one axis above the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.methods.cascade.subtree_types import Level, public_levels
from odkanon.zoning.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Side:
    """One axis of a ladder.

    Attributes
    ----------
    tree : Hierarchy
        The tree over the observed leaves, up to the public root.
    levels : tuple of Level
        What is public of each level.
    """

    tree: Hierarchy
    levels: tuple[Level, ...]

    @property
    def top(self) -> int:
        """The level of the public root."""
        return len(self.levels) - 1

    def parent(self, level: int) -> Ints:
        """Return for each observed node of the level below the number of its parent."""
        return self.tree.codes[level][self.tree.starts[level - 1]].astype(np.int64)

    def nodes(self, level: int) -> int:
        """Return how many nodes of a level are observed."""
        return len(self.tree.ids[level])

    def sizes(self, level: int) -> Ints:
        """Return the number of observed leaves below each node of a level."""
        return self.tree.sizes[level]


_sides: WeakKeyDictionary[Hierarchy, tuple[Hierarchy | None, tuple[Level, ...]]] = WeakKeyDictionary()


def side_of(tree: Hierarchy) -> Side:
    """Return the axis of a hierarchy; found out once, since it is the same for every rule."""
    if tree not in _sides:
        tall = tree.to_public_root()
        # What is kept must not hold on to its own key.
        _sides[tree] = None if tall is tree else tall, public_levels(tall)
    above, levels = _sides[tree]
    return Side(tree if above is None else above, levels)


@dataclass(frozen=True, eq=False)
class Ladder:
    """The rungs, and the axes that they coarsen.

    Attributes
    ----------
    sides : tuple of Side
        The axes.
    axes : tuple of int
        For each rung above the leaves, the axis that it coarsens by one level.
    """

    sides: tuple[Side, ...]
    axes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.axes) + 1

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """For each rung, the level of each axis."""
        at = [0] * len(self.sides)
        rungs = [tuple(at)]
        for axis in self.axes:
            at[axis] += 1
            rungs.append(tuple(at))
        return tuple(rungs)

    @property
    def reaches_root(self) -> bool:
        """Whether the last rung is one node, with everything in it."""
        return self.levels[-1] == tuple(side.top for side in self.sides)

    def level(self, rung: int, axis: int) -> Level:
        """Return what is public of an axis at a rung."""
        return self.sides[axis].levels[self.levels[rung][axis]]


def in_turns(tops: Sequence[int]) -> tuple[int, ...]:
    """Return the axes to coarsen, in turns; those that have reached their top are passed over.

    Examples
    --------
    >>> in_turns([2, 3])
    (0, 1, 0, 1, 1)
    """
    return tuple(axis for level in range(max(tops, default=0)) for axis, top in enumerate(tops) if level < top)
