"""Axes besides the two places: what kind of trip it is, in a hierarchy of its own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from odkanon.zoning.hierarchy import Hierarchy

ANY = "any"
"""What a row says of a detail that was given up."""
PLACE = "place"
"""What both places are called together, where the order is told in which detail is given up."""
UNLISTED = "(not listed)"
"""Stands for values that a public list of values leaves out; there may be such whether or not there are."""


@dataclass(frozen=True, eq=False)
class AttributeAxis:
    """An axis of trips besides origin and destination.

    Attributes
    ----------
    name : str
        What its column is called.
    tree : Hierarchy
        From its values to ``any``.
    named : frozenset of str
        Values that are public whatever the trips: all hours of a day, groups that were named. Others are told only
        where a published row has them, or the list itself would show that somebody does.
    asked : str
        As it was asked for, such as ``mode:car=1+2``.
    """

    name: str
    tree: Hierarchy
    named: frozenset[str] = frozenset()
    asked: str = ""

    @property
    def public(self) -> Hierarchy:
        """The tree as the world knows it, with values that do not occur."""
        return self.tree.public or self.tree

    def listed(self, told: Collection[str]) -> list[list[str]]:
        """Return the levels as readers of some rows know them: by columns, from the values up to ``any``.

        Values that are public whatever the trips are all there, others only where a row tells them: a list of what
        occurs would show that it does. What may be left out is a value of its own.

        Parameters
        ----------
        told : collection of str
            What rows say of the axis.
        """
        tree, said = self.public, set(told)
        chains = list(zip(*(ids[code].tolist() for ids, code in zip(tree.ids, tree.codes, strict=True)), strict=True))
        shown = [chain for chain in chains if chain[0] in self.named or chain[0] in said]
        groups = {node for chain in shown for node in chain[1:-1]} | said
        residual = {
            (UNLISTED,) * level + chain[level:]: None
            for level in range(1, tree.top)
            for chain in chains
            if not self.named and chain[level] in groups
        }
        return [list(column) for column in zip(*shown, *residual, (UNLISTED,) * tree.top + (ANY,), strict=True)]
