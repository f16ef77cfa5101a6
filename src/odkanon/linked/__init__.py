"""Segments released together: one zoning, the whole and its parts on it, and nothing to be had by subtraction."""

from odkanon.attributes.dimensions import Dimension
from odkanon.linked.linked_release import LinkedReleases, Part, release_linked
from odkanon.read.od_matrix import make_dimensions

__all__ = ["Dimension", "LinkedReleases", "Part", "make_dimensions", "release_linked"]
