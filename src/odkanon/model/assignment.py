"""Where the OD pairs of the input went, and how far they are from the even spread of their class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Bools, Codes, Frozen, Ints, group_sum, make_read_only
from odkanon.model.flows import Totals
from odkanon.model.od import ODMatrix


@dataclass(frozen=True, eq=False)
class Assignment(Frozen):
    """Where each pair of a matrix in memory went."""

    od: ODMatrix
    """The input."""
    area_of_pair: Codes
    """For each OD pair of the input, the class in whose area it lies; -1 for none."""
    published: Bools
    """For each OD pair of the input, whether it is counted in that class."""
    excess: Totals | None = None
    """What published pairs have that no class lists, where a class lists only part of what lies in its area."""

    def __post_init__(self) -> None:
        make_read_only(self, "area_of_pair", "published")


@dataclass(frozen=True, eq=False)
class Deviation:
    """How the pairs in the area of each class compare with its even spread, in one measure.

    Whole numbers only, so that the reconstruction loss does not depend on who adds them up, or in which order.
    """

    above_pairs: Ints
    above: Ints
    """For each class, the number and the mass of the pairs in its area that have more than an even share of it."""
    inside: Ints
    """For each class, the mass of all pairs in its area, suppressed ones included."""
    outside: int
    """Mass of the pairs in no area."""


def even_share(masses: Ints, leaf_pairs: Ints) -> Ints:
    """Return the mass that each leaf pair of a class gets when the class is spread evenly, rounded down.

    Rounding changes nothing for whoever compares: a whole number exceeds the share exactly if it exceeds its floor.
    """
    return np.floor_divide(masses, np.maximum(leaf_pairs, 1))


def deviation(area: Codes, masses: Ints, share: Ints) -> Deviation:
    """Compare the masses of pairs with the even share of the class in whose area each lies; -1 for none."""
    count = len(share)
    inside = area >= 0
    area, values = area[inside], masses[inside]
    high = values > share[area]
    return Deviation(
        np.bincount(area[high], minlength=count).astype(np.int64),
        group_sum(area[high], count, values[high]),
        group_sum(area, count, values),
        int(masses[~inside].sum()),
    )
