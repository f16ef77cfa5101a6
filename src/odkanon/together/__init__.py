"""Segments released together: one zoning, the whole and its parts on it, and nothing to be had by subtraction."""

from odkanon.together.dimensions import Dimension, make_dimensions
from odkanon.together.release import Part, Together, release_together

__all__ = ["Dimension", "Part", "Together", "make_dimensions", "release_together"]
