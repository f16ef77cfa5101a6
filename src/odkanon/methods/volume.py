"""The volume that the comparators weigh generalisation by, and exact sums of it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.model.rule import Rule

Volume = Literal["trips", "weight"]


def volume_measure(rule: Rule) -> Volume:
    """Return what a flow is weighed by when a method compares zonings.

    The rule's main measure where that adds up under merging (trips or weight), and trips for a rule on persons
    alone: persons of merged flows do not add up, so a mean over them would depend on how they are grouped.
    """
    return "weight" if rule.main_measure == "weight" else "trips"


def sized_total(sizes: Ints, volumes: Ints) -> int:
    """Return ``sum(size * volume)`` exactly, as a Python integer that cannot overflow.

    Volumes are first added up for each size; there are few distinct sizes.
    """
    by_size = group_sum(sizes, int(sizes.max(initial=0)) + 1, volumes)
    occurring = np.flatnonzero(by_size)
    return sum(size * volume for size, volume in zip(occurring.tolist(), by_size[occurring].tolist(), strict=True))
