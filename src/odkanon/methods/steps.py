"""The tree that a method over hierarchies works on: plain H3, or with finer steps in between."""

from __future__ import annotations

from typing import Literal, get_args

from odkanon.engine.protocols import Matrix
from odkanon.errors import InputError
from odkanon.zoning.fine import fine_hierarchy

Steps = Literal["plain", "fine"]


def with_steps(od: Matrix, steps: Steps) -> Matrix:
    """Return the matrix over the tree with the steps that are asked for.

    Parameters
    ----------
    steps : {"plain", "fine"}
        ``plain``: a cell has seven children. ``fine``: two levels stand in between, unions of neighbouring children.
    """
    if steps not in get_args(Steps):
        raise InputError(f"the steps of a tree are plain or fine, not {steps!r}")
    if steps == "plain":
        return od
    if od.origins.resolution is None or od.destinations.resolution is None:
        raise InputError("finer steps lie between H3 cells; a lookup table can have levels of its own for that")
    (origins, first), (destinations, second) = fine_hierarchy(od.origins), fine_hierarchy(od.destinations)
    return od.on_trees((origins, first), (destinations, second))
