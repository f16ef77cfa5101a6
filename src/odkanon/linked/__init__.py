"""Linked tables: the whole and its segments on one zoning, such that subtraction isolates no group below the rule."""

from odkanon.attributes.dimensions import Dimension
from odkanon.linked.linked_release import LinkedReleases, Part, release_linked
from odkanon.read.od_matrix import make_dimensions

__all__ = ["Dimension", "LinkedReleases", "Part", "make_dimensions", "release_linked"]
