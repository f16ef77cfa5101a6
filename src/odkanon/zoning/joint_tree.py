"""One tree over origins and destinations, so that one cut is a zoning of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at, make_levels
from odkanon.zoning.zones import find_nodes


@dataclass(frozen=True, eq=False)
class JointTree:
    """The joint tree of two axes."""

    tree: Hierarchy
    """Over the leaves that occur at either end."""
    sides: tuple[Hierarchy, Hierarchy]
    """The trees of the origins and of the destinations, extended to the height of the joint tree."""
    leaves: tuple[Ints, Ints]
    """For each leaf of a side, its number in the joint tree; in the same order."""

    def cuts(self, cut: Cut) -> tuple[Cut, Cut]:
        """Return a cut of the joint tree as a cut of each side."""
        level = cut.level[cut.zone_of_leaf]
        first, second = (cut_at(side, level[leaves]) for side, leaves in zip(self.sides, self.leaves, strict=True))
        return first, second

    def masses(self, of_sides: tuple[tuple[Ints, ...], tuple[Ints, ...]]) -> tuple[Ints, ...]:
        """Return the mass of every node, by level: the sum of its masses as an origin and as a destination."""
        return tuple(np.sum([self._lifted(at, of_sides, level) for at in (0, 1)], axis=0) for level in self._levels)

    @property
    def counts(self) -> tuple[Ints, Ints]:
        """For each side and leaf of the joint tree, 1 if the side has the leaf, else 0."""
        first, second = (np.bincount(leaves, minlength=len(self.tree.leaves)) for leaves in self.leaves)
        return first, second

    @property
    def _levels(self) -> range:
        return range(self.tree.top + 1)

    def _lifted(self, at: int, of_sides: tuple[tuple[Ints, ...], tuple[Ints, ...]], level: int) -> Ints:
        # Masses may be those of a lower tree: above its root, one node holds everything.
        mass = of_sides[at][min(level, len(of_sides[at]) - 1)]
        node = self.tree.codes[level][self.leaves[at][self.sides[at].starts[level]]]
        return group_sum(node, len(self.tree.ids[level]), mass)


def join_trees(origins: Hierarchy, destinations: Hierarchy) -> JointTree:
    """Return the joint tree of two trees over the same zoning.

    Examples
    --------
    >>> import numpy as np
    >>> from odkanon.zoning.hierarchy import h3_hierarchy
    >>> first, second = (np.array([cell], dtype=np.uint64) for cell in (0x8A1FB4671017FFF, 0x8A1FB4671007FFF))
    >>> join_trees(h3_hierarchy(first), h3_hierarchy(second)).tree
    Hierarchy(H3 resolution 10; nodes by level: 2 < 1)
    """
    tall = origins.to_public_root(), destinations.to_public_root()
    height = min(tree.top for tree in tall) + 1
    above = [np.concatenate([tree.ids[at][tree.codes[at]] for tree in tall]) for at in range(height)]
    first = np.unique(above[0], return_index=True)[1]
    # In every tree, a level is sorted by id within the level above it.
    order = first[np.lexsort([ids[first] for ids in above])]
    plain = make_levels([ids[order] for ids in above], origins.resolution)
    known = replace(plain, outlines=origins.outlines, public=origins.public or destinations.public)
    tree = replace(known, steps=origins.steps, names=origins.names, within=origins.within)
    sides = origins.reaching(tree.top), destinations.reaching(tree.top)
    first_leaves, second_leaves = (find_nodes(tree, 0, side.leaves) for side in sides)
    return JointTree(tree, sides, (first_leaves, second_leaves))
