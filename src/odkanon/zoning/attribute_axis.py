"""Attributes of trips as further axes of a cube, each with its own hierarchy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from odkanon.zoning.hierarchy import Hierarchy

ANY = "any"
"""The label of a fully generalised attribute."""
PLACE = "place"
"""The name of origin and destination in a drop order."""
UNLISTED = "(not listed)"
"""Stands for the values that a public list may leave out, whether or not any exist."""


@dataclass(frozen=True, eq=False)
class AttributeAxis:
    """An attribute of trips as an axis, in addition to origin and destination.

    Attributes
    ----------
    name : str
        The name of its column.
    tree : Hierarchy
        From its values to ``any``.
    named : frozenset of str
        Values that are public regardless of the trips, such as all hours of a day and named groups. Other values are
        disclosed only by a published row, since listing a value would disclose that it occurs.
    asked : str
        Its specification, such as ``mode:car=1+2``.
    """

    name: str
    tree: Hierarchy
    named: frozenset[str] = frozenset()
    asked: str = ""

    @property
    def public(self) -> Hierarchy:
        """The public tree, including values that do not occur."""
        return self.tree.public or self.tree

    def listed(self, labels: Collection[str]) -> list[list[str]]:
        """Return the levels as readers of some rows can reconstruct them, by columns, from the values up to ``any``.

        Public values are complete; other values are listed only if a row has them, with a placeholder for those that
        may be missing.

        Parameters
        ----------
        labels : collection of str
            The labels of the rows on this axis.
        """
        tree, published = self.public, set(labels)
        chains = list(zip(*(ids[code].tolist() for ids, code in zip(tree.ids, tree.codes, strict=True)), strict=True))
        known = [chain for chain in chains if chain[0] in self.named or chain[0] in published]
        groups = {node for chain in known for node in chain[1:-1]} | published
        unlisted = {
            (UNLISTED,) * level + chain[level:]: None
            for level in range(1, tree.top)
            for chain in chains
            if not self.named and chain[level] in groups
        }
        return [list(column) for column in zip(*known, *unlisted, (UNLISTED,) * tree.top + (ANY,), strict=True)]
