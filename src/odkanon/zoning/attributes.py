"""Axes besides the two places: what kind of trip it is, in a hierarchy of its own."""

from __future__ import annotations

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
