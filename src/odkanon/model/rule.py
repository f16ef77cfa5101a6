"""What every published class must meet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, Protocol, get_args

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.errors import InputError

Target = Literal["participants", "population", "persons"]
Measure = Literal["trips", "weight", "persons"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


class Weighted(Protocol):
    """Anything with a mean weight of a trip: a matrix, or the summary of one."""

    @property
    def mean_weight(self) -> Fraction: ...  # noqa: D102


class Counted(Protocol):
    """Anything with masses to compare with a rule: flows, or the classes of a release."""

    @property
    def trips(self) -> Ints: ...  # noqa: D102
    @property
    def weight(self) -> Ints | None: ...  # noqa: D102
    @property
    def persons(self) -> Ints | None: ...  # noqa: D102
    @property
    def scale(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Thresholds that every published class must meet, all at once.

    Every threshold is monotone: merging classes never lowers any of them.

    Parameters
    ----------
    trips : int, optional
        At least this many trips, in [1, inf).
    weight : float or Fraction, optional
        At least this sum of weights, in (0, inf).
    persons : int, optional
        At least this many distinct persons, in [1, inf). Ten trips of one person meet ``trips=10`` but hide nobody.

    Examples
    --------
    >>> Rule(trips=10, persons=5)
    Rule(trips >= 10, persons >= 5)
    """

    trips: int | None = None
    weight: Fraction | float | None = None
    persons: int | None = None

    def __post_init__(self) -> None:
        if not self.measures:
            raise InputError("a rule needs at least one threshold: trips, weight or persons")
        for measure in self.measures:
            value = getattr(self, measure)
            if not value > 0 or value == float("inf"):
                raise InputError(f"the threshold on {measure} must be a positive number, not {value}")
            if measure != "weight" and value != int(value):
                raise InputError(f"the threshold on {measure} must be a whole number, not {value}")

    @classmethod
    def protect(cls, *targets: Target, k: int, of: Weighted) -> Rule:
        """Return the rule that protects the given targets, all of them, with the same k.

        Parameters
        ----------
        *targets : {"participants", "population", "persons"}
            ``participants``: at least k trips. ``population``: at least k times the mean weight of a trip.
            ``persons``: at least k distinct persons.
        k : int
            In [1, inf).
        of : ODMatrix or Summary
            The whole input: its mean weight of a trip defines ``population``, also for segments of it.
        """
        if k != int(k) or k < 1:
            raise InputError(f"k must be a whole number of at least 1, not {k}")
        unknown = set(targets) - set(get_args(Target))
        if unknown or not targets:
            raise InputError(f"choose what to protect among {', '.join(get_args(Target))}, not {', '.join(unknown)!r}")
        return cls(
            trips=k if "participants" in targets else None,
            weight=k * of.mean_weight if "population" in targets else None,
            persons=k if "persons" in targets else None,
        )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that have a threshold."""
        return tuple(measure for measure in MEASURES if getattr(self, measure) is not None)

    @property
    def main_measure(self) -> Measure:
        """The measure whose mass orders merges and suppression: first of trips, weight, persons with a threshold."""
        return self.measures[0]

    def k(self, mean_weight: Fraction | None) -> float:
        """Return the k that the rule stands for, in trips of mean weight; used to normalise metrics."""
        if self.trips is not None:
            return self.trips
        if self.weight is not None and mean_weight is not None:
            return float(Fraction(self.weight) / mean_weight)
        return float(self.persons or 1)

    def weight_units(self, scale: int) -> int:
        """Return the smallest whole number of weight units (of ``1 / scale``) that meets the threshold."""
        return ceil(Fraction(self.weight or 0) * scale)

    def met(self, flows: Counted) -> Bools:
        """Tell for each flow or class whether it meets every threshold."""
        good = np.ones(len(flows.trips), dtype=bool)
        if self.trips is not None:
            good &= flows.trips >= self.trips
        if self.weight is not None:
            good &= _required(flows.weight, "weight") >= self.weight_units(flows.scale)
        if self.persons is not None:
            good &= _required(flows.persons, "persons") >= self.persons
        return good

    def check_available(self, available: Collection[str]) -> None:
        """Raise if the input lacks something that the rule counts."""
        for measure in self.measures:
            if measure not in available:
                _required(None, measure)

    def __str__(self) -> str:
        asked = [f"at least {float(getattr(self, m)):,.10g} {_WORDS[m]}" for m in self.measures]
        return f"the rule ({' and '.join(asked)} in every flow)"

    def __repr__(self) -> str:
        return f"Rule({', '.join(f'{m} >= {float(getattr(self, m)):,.10g}' for m in self.measures)})"


_WORDS = {"trips": "trips", "weight": "weighted trips", "persons": "different persons"}


def _required(values: Ints | None, measure: str) -> Ints:
    if values is None:
        column = {"weight": "a weight", "persons": "a person"}[measure]
        raise InputError(
            f"this rule counts {measure}, but the input has no {column.split()[-1]} column; name it with "
            f"--column {column.split()[-1]}=NAME, or choose another rule"
        )
    return values
