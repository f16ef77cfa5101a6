"""Published classes, their construction from merged flows, and the class of each OD pair of the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Frozen, Ints, group_sum
from odkanon.core.weights import round_units, round_units_up
from odkanon.model.flows import Flows, Totals
from odkanon.model.measures import MeasureColumns
from odkanon.model.od import ODMatrix
from odkanon.zoning.zones import Zones


@dataclass(frozen=True, eq=False)
class Classes(MeasureColumns, Frozen):
    """The published classes: flows between zones, sorted by the ids of their zones."""

    origin: Codes
    destination: Codes
    """Numbers of the zones."""
    trips: Ints
    """Number of trips."""
    weight_units: Ints | None
    """Sum of weights, in units of ``1 / scale``."""
    contributors: Mapping[str, Ints]
    """Number of distinct contributors, for each published measure that counts them."""
    scale: int
    min_contributors: Mapping[str, Ints] = field(default_factory=dict)
    """Lower bounds of the numbers of contributors that must not be published. The rule is checked with them."""
    attributes: Mapping[str, npt.NDArray[np.str_]] = field(default_factory=dict)
    """Values on the attribute axes, by the name of the axis; ``any`` for dropped detail."""
    finest_pairs: Ints | None = None
    """For nested classes: the number of leaf pairs of which each is the finest class."""
    at_cap: Bools | None = None
    """For nested classes: whether a class lists as many trips as its cap allows, so that it has *at least* so many."""
    hides_weight: Bools | None = None
    """For nested classes: whether its weight would disclose the number or the weight of trips listed elsewhere."""
    standard_error: npt.NDArray[np.float64] | None = None
    """Standard error of the trips of each class if noise was added; None for counts."""

    @property
    def with_min_contributors(self) -> Classes:
        """The classes with the lower bounds of all numbers of contributors, published or not."""
        return replace(self, contributors={**self.min_contributors, **self.contributors})

    def __len__(self) -> int:
        return len(self.trips)


WEIGHT_DIGITS, MEAN_DIGITS = 4, 3
"""Significant digits of the weight of a row, and of the mean weight of the trips of many rows.

Real weights have few digits, so the nine decimals of a sum would be a fingerprint of the trips in it.
"""


def disclosed_weights(trips: Ints, weight: Ints, hides: Bools | None = None, least: int = 0) -> Ints:
    """Return the publishable weights of rows, in their own units.

    * ``hides``: rows whose own weight must not be published (`Classes.hides_weight`). They get the mean weight of a
      trip of the other rows, which follows from these; 0 if there are no others.
    * ``least``: the disclosed threshold; no row that meets it is rounded to less.
    """
    disclosed = round_units(weight, WEIGHT_DIGITS)
    if hides is not None and hides.any():
        listed = int(trips[~hides].sum())
        mean = round_units(np.array([int(disclosed[~hides].sum()) // max(listed, 1)]), MEAN_DIGITS)
        disclosed = np.where(hides, round_units(trips * mean, WEIGHT_DIGITS), disclosed)
    return np.maximum(disclosed, round_units_up(least, WEIGHT_DIGITS)) if least else disclosed


def published_classes(
    merged: Flows, good: Bools, origins: Zones, destinations: Zones
) -> tuple[Zones, Zones, Classes, Ints]:
    """Return the zones and classes to publish of merged flows, and for each class the row of its flow."""
    origins, new_origin = used_zones(origins, merged.origin[good])
    destinations, new_destination = used_zones(destinations, merged.destination[good])
    order = np.lexsort((new_destination, new_origin))
    rows = np.flatnonzero(good)[order]
    classes = Classes(
        new_origin[order],
        new_destination[order],
        merged.trips[rows],
        None if merged.weight_units is None else merged.weight_units[rows],
        {name: counts[rows] for name, counts in merged.contributors.items()},
        merged.scale,
    )
    return origins, destinations, classes, rows


def used_zones(zones: Zones, occurring: Codes | Ints) -> tuple[Zones, Codes]:
    """Return the zones that occur, sorted by id; a zone without a published flow would disclose a suppressed one."""
    used: Ints = np.unique(occurring).astype(np.int64)
    used = used[np.argsort(zones.ids[used], kind="stable")]
    number = np.zeros(len(zones.ids), dtype=np.int32)
    number[used] = np.arange(len(used))
    return zones.take(used), number[occurring]


@dataclass(frozen=True, eq=False)
class Assignment(Frozen):
    """The class of each pair of a matrix in memory."""

    od: ODMatrix
    area_of_pair: Codes
    """For each OD pair of the input, the class whose area contains it; -1 for none."""
    published: Bools
    """For each OD pair of the input, whether it is counted in that class."""
    excess: Totals | None = None
    """The trips of published pairs that no class lists, if classes may list only part of their trips."""


@dataclass(frozen=True, eq=False)
class Deviation:
    """How the pairs in the area of each class deviate from its even spread, in one measure.

    Integers make the reconstruction loss independent of the order and place of summation.
    """

    above_pairs: Ints
    above: Ints
    """For each class, the number and the mass of the pairs in its area with more than an even share."""
    inside: Ints
    """For each class, the mass of all pairs in its area, including suppressed ones."""
    outside: int
    """Mass of the pairs in no area."""


def even_share(masses: Ints, leaf_pairs: Ints) -> Ints:
    """Return the mass of each leaf pair of a class that is spread evenly, rounded down.

    Comparisons stay exact: an integer exceeds the share iff it exceeds the rounded share.
    """
    return np.floor_divide(masses, np.maximum(leaf_pairs, 1))


def deviation(area: Codes, masses: Ints, share: Ints) -> Deviation:
    """Return how the masses of pairs compare with the even share of the class of their area (-1 for none)."""
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
