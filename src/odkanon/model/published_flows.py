"""Published classes, and how they are made of merged flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Bools, Codes, Frozen, Ints, make_read_only
from odkanon.core.weights import round_units, round_units_up
from odkanon.model.flows import Flows
from odkanon.model.measures import ADDITIVE, MeasureColumns
from odkanon.zoning.zones import Zones


@dataclass(frozen=True, eq=False)
class Classes(MeasureColumns, Frozen):
    """The published classes: flows between zones, sorted by the ids of their zones."""

    origin: Codes
    destination: Codes
    """Numbers of the zones."""
    trips: Ints
    """Number of trips."""
    weight: Ints | None
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
            *ADDITIVE,
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
        None if merged.weight is None else merged.weight[rows],
        {name: counts[rows] for name, counts in merged.contributors.items()},
        merged.scale,
    )
    return origins, destinations, classes, rows


def used_zones(zones: Zones, occurring: Codes | Ints) -> tuple[Zones, Codes]:
    """Keep the zones that occur, sorted by id; a zone without a published flow would disclose a suppressed one."""
    used: Ints = np.unique(occurring).astype(np.int64)
    used = used[np.argsort(zones.ids[used], kind="stable")]
    number = np.zeros(len(zones), dtype=np.int32)
    number[used] = np.arange(len(used))
    return zones.take(used), number[occurring]
