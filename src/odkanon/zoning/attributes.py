"""Axes besides the two places: what kind of trip it is, in a hierarchy of its own."""

from __future__ import annotations

from dataclasses import dataclass

from odkanon.zoning.hierarchy import Hierarchy

ANY = "any"
"""What a row says of a detail that was given up."""


@dataclass(frozen=True, eq=False)
class AttributeAxis:
    """An axis of trips besides origin and destination.

    Attributes
    ----------
    name : str
        What its column is called.
    tree : Hierarchy
        From its values to ``any``.
    """

    name: str
    tree: Hierarchy

    @property
    def public(self) -> Hierarchy:
        """The tree as the world knows it, with values that do not occur."""
        return self.tree.public or self.tree
