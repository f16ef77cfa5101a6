"""Published classes, their construction from merged flows, and the class of each OD pair of the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Frozen, Ints, group_sum, make_read_only
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
    """Number of distinct contributors, for each measure that counts them and that is published."""
    scale: int
    min_contributors: Mapping[str, Ints] = field(default_factory=dict)
    """Lower bounds of the numbers of contributors that must not be published. The rule is checked with them."""
    attributes: Mapping[str, npt.NDArray[np.str_]] = field(default_factory=dict)
    """Values on the axes of attributes, by the name of the axis; ``any`` where it was dropped."""
    finest_pairs: Ints | None = None
    """Where zones of one class lie in those of another: for how many leaf pairs it is the finest class."""
    at_cap: Bools | None = None
    """The same: whether a class lists as many trips as it may, so that it has *at least* so many."""
    hides_weight: Bools | None = None
    """The same: whether its weight would disclose how many of its trips are listed elsewhere, or their weight."""
    standard_error: npt.NDArray[np.float64] | None = None
    """Of the trips of each class, where noise was added; None for counts."""

    @property
    def sure(self) -> Classes:
        """What is certain of the classes, published or not."""
        return replace(self, contributors={**self.min_contributors, **self.contributors})

    def __post_init__(self) -> None:
        make_read_only(
            self,
            "origin",
            "destination",
            "trips",
            "weight_units",
            "contributors",
            "min_contributors",
            "attributes",
            "finest_pairs",
            "at_cap",
            "hides_weight",
            "standard_error",
        )

    def __len__(self) -> int:
        return len(self.trips)


WEIGHT_DIGITS, MEAN_DIGITS = 4, 3
"""Significant digits of the weight of a row, and of the mean weight of the trips of many rows.

Real weights have few digits, so the nine decimals of a sum would be a fingerprint of the trips in it.
"""


def disclosed_weights(trips: Ints, weight: Ints, hides: Bools | None = None, least: int = 0) -> Ints:
    """Return the weights of rows as they may be published, in their own units.

    * ``hides``: rows whose own weight must not be published (`Classes.hides_weight`). They have the mean weight of a
      trip of the others, which follows from these; 0 where there are no others.
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
    """Keep the zones that occur, sorted by id; a zone without a published flow would disclose a suppressed one."""
    used: Ints = np.unique(occurring).astype(np.int64)
    used = used[np.argsort(zones.ids[used], kind="stable")]
    number = np.zeros(len(zones.ids), dtype=np.int32)
    number[used] = np.arange(len(used))
    return zones.take(used), number[occurring]


@dataclass(frozen=True, eq=False)
class Assignment(Frozen):
    """The class of each pair of a matrix in memory."""

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
