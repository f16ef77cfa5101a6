"""The trees that a method works on: with substeps, cut off at a level, or of the same height for both ends."""

from __future__ import annotations

from typing import Literal

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.errors import InputError, UnknownNameError
from odkanon.model.od import Matrix
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.substeps import fine_hierarchy
from odkanon.zoning.zones import join_trees


def with_substeps(od: Matrix) -> Matrix:
    """Return the matrix over trees with two levels of substeps between an H3 cell and its children."""
    if od.origins.resolution is None or od.destinations.resolution is None:
        raise InputError("substeps lie between H3 cells; a lookup table can have levels of its own for that")
    (origins, first), (destinations, second) = fine_hierarchy(od.origins), fine_hierarchy(od.destinations)
    return od.on_trees((origins, first), (destinations, second))


def of_one_height(od: Matrix) -> Matrix:
    """Return the matrix over trees that end at the same level, so that a place has one name at both ends."""
    return reaching(od, join_trees(od.origins, od.destinations).tree.top)


def reaching(od: Matrix, level: int) -> Matrix:
    """Return the matrix over trees extended to a level, or to the public root if that is lower."""
    if level <= min(od.origins.top, od.destinations.top):
        return od
    first, second = ((tree.reaching(level), np.arange(len(tree.leaves))) for tree in (od.origins, od.destinations))
    return od.on_trees(first, second)


def level_number(tree: Hierarchy, asked: str | int) -> int:
    """Return the number of a level: a column of a lookup table, or an H3 resolution.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import read_hierarchy
    >>> level_number(read_hierarchy(pa.table({"zone": ["a1", "b1"], "district": ["a", "b"]})), "district")
    1
    """
    if tree.resolution is None:
        if asked not in tree.names:
            raise UnknownNameError.among("level", asked, tree.names)
        return tree.names.index(str(asked))
    if not str(asked).isdigit() or not 0 <= int(asked) <= tree.resolution:
        raise InputError(
            f"a level of H3 cells is a resolution from 0 to {tree.resolution}, that of the finest cells; not {asked!r}"
        )
    return tree.level_of_resolution(int(asked))


Volume = Literal["trips", "weight"]


def volume_measure(rule: Rule) -> Volume:
    """Return the mass of each flow by which a method compares zonings: trips, or weight if that is the main measure.

    Contributors are no such mass: they do not add up, so their mean would depend on how flows are grouped.
    """
    return "weight" if rule.main_measure == "weight" else "trips"


def sized_total(sizes: Ints, volumes: Ints) -> int:
    """Return ``sum(size * volume)`` exactly, as a Python integer that cannot overflow.

    Few sizes are distinct, so volumes are first summed by size.
    """
    by_size = group_sum(sizes, int(sizes.max(initial=0)) + 1, volumes)
    occurring = np.flatnonzero(by_size)
    return sum(size * volume for size, volume in zip(occurring.tolist(), by_size[occurring].tolist(), strict=True))
