"""The protection rule that every published class must meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any, Protocol

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints
from odkanon.core.parsing import check_positive, format_count, is_number
from odkanon.errors import InputError, InvalidValueError, UnknownNameError
from odkanon.model.flows import Flows, Totals
from odkanon.model.measures import ADDITIVE, BY_CONTRIBUTOR, DISTINCT, MEASURES, TARGETS, exact_masses

_MILLION = 10**6
"""Shares are rounded down to this fraction, so that they compare as whole numbers on any data."""

_LEAST_MEAN = Fraction(1, 10**4)
"""Weights are counted in units of 1e-9; the mean of smaller weights would be too imprecise."""

Threshold = int | float | Fraction

CONSTRAINTS = ("max_share", "min_destinations")
"""What a rule may require in addition to thresholds; not monotone."""


class Weighted(Protocol):
    """Anything with a mean weight of a trip, such as a matrix or its summary."""

    @property
    def mean_weight(self) -> Fraction: ...  # noqa: D102


class Counted(Protocol):
    """Anything with masses that a rule can check, such as flows or classes."""

    @property
    def trips(self) -> Ints: ...  # noqa: D102
    @property
    def scale(self) -> int: ...  # noqa: D102


class Rule:
    """Thresholds that every published class must meet, all at once.

    Thresholds are monotone: merging classes never lowers a mass. The constraints ``max_share`` and
    ``min_destinations`` are not: merging may leave one person dominant, and merged zones have fewer destinations. The
    union of two classes that keep the share keeps it too.

    Parameters
    ----------
    trips : int, optional
        At least this many trips, in [1, inf).
    weight : number, optional
        At least this sum of weights, in (0, inf).
    persons, households : int, optional
        At least this many distinct ones, in [1, inf). Ten trips of one person meet ``trips=10`` but hide nobody.
    max_share : float, optional
        Dominance rule: no person (and no household, if the input has them) has more than this share of the trips of a
        class, in (0, 1), nor of its weight if there is a threshold on weight. Trips without a person count towards
        the largest contributor.
    min_destinations : int, optional
        From each origin zone at least this many destination zones are published, or none, in [1, inf). If all
        published trips of a zone go to one place, everybody known to have left it is known to have gone there
        (l-diversity of destinations).
    k : int, optional
        The k for which the thresholds stand, and by which metrics are normalised. By default the threshold on trips;
        that on weight over ``mean_weight``, if given; or that on contributors.
    mean_weight : Fraction, optional
        The mean weight of a trip in the whole data set. The rule keeps it: a segment or an area has another mean, but
        k people of the population remain the same number.

    Attributes
    ----------
    thresholds : mapping of str to number
        By measure; also available as attributes (``rule.trips``), None without a threshold.

    Examples
    --------
    >>> Rule(trips=10, persons=5)
    Rule(trips >= 10, persons >= 5)
    >>> Rule(trips=10, persons=5).k
    10
    >>> Rule(trips=10, max_share=0.5, min_destinations=2)
    Rule(trips >= 10, max_share <= 0.5, min_destinations >= 2)
    """

    thresholds: Mapping[str, Threshold]

    def __init__(
        self,
        *,
        trips: int | None = None,
        weight: Threshold | None = None,
        persons: int | None = None,
        households: int | None = None,
        k: float | None = None,
        mean_weight: Fraction | None = None,
        max_share: float | None = None,
        min_destinations: int | None = None,
    ) -> None:
        given = dict(zip(MEASURES, (trips, weight, persons, households), strict=True))
        own = {name: value for name, value in given.items() if value is not None}
        if not own:
            raise InputError(f"a rule needs at least one threshold: {', '.join(MEASURES)}")
        for measure, value in own.items():
            check_positive(f"the threshold on {measure}", value, whole=measure != "weight")
        if k is not None:
            check_positive("k", k, whole=False)
        if max_share is not None and (not is_number(max_share) or not 0 < max_share < 1):
            raise InvalidValueError.expected("max_share", "a share between 0 and 1, such as 0.5", max_share)
        if min_destinations is not None:
            check_positive("min_destinations", min_destinations)
        self.thresholds = own
        self.mean_weight = mean_weight
        self.max_share = max_share
        self.min_destinations = min_destinations
        self._k = k

    @classmethod
    def protect(cls, *targets: str, k: int, of: Weighted) -> Rule:
        """Return the rule that protects the given targets, all of them, with the same k.

        Parameters
        ----------
        *targets : {"participants", "population", "persons", "households"}
            ``participants``: at least k trips. ``population``: at least k times the mean weight of a trip.
            ``persons``, ``households``: at least k different ones.
        k : int
            In [1, inf).
        of : ODMatrix or Summary
            The whole input: its mean weight of a trip defines ``population``, also for segments of it.
        """
        check_positive("k", k)
        unknown = [target for target in targets if target not in TARGETS]
        if unknown or not targets:
            raise UnknownNameError.among("target", ", ".join(unknown), TARGETS)
        mean = of.mean_weight if "population" in targets or getattr(of, "weight_units", None) else None
        if mean is not None and mean < _LEAST_MEAN and "population" in targets:
            raise InputError(
                f"weights of {float(mean):.2g} on average are too small to be counted; express them in smaller units"
            )
        names = [TARGETS[target].name for target in dict.fromkeys(targets)]
        least: dict[str, Any] = {name: k * mean if name == "weight" and mean else k for name in names}
        return cls(k=k, mean_weight=mean, **least)

    def _replaced(self, mean_weight: Fraction | None, **changes: Any) -> Rule:
        return Rule(k=self._k, mean_weight=mean_weight, **{**self.thresholds, **self.constraints, **changes})

    def with_constraints(self, *, max_share: float | None = None, min_destinations: int | None = None) -> Rule:
        """Return the rule with the same thresholds and only these constraints."""
        if (max_share, min_destinations) == (self.max_share, self.min_destinations):
            return self
        return self._replaced(self.mean_weight, max_share=max_share, min_destinations=min_destinations)

    def with_contributors(self, measure: str) -> Rule:
        """Return the rule with a further threshold: k contributors of a measure."""
        return self._replaced(self.mean_weight, **{measure: ceil(self.k_of("trips"))})

    def with_weight(self, least: Fraction, mean_weight: Fraction) -> Rule:
        """Return the rule with another threshold on weight, and the mean weight from which it derives."""
        return self._replaced(mean_weight, weight=least)

    def with_mean_weight(self, mean_weight: Fraction | None) -> Rule:
        """Return the rule with the same thresholds and another mean weight of a trip."""
        return self._replaced(mean_weight)

    @property
    def weight_from_data(self) -> bool:
        """Whether its threshold on weight is k times a mean weight, rather than one that was given."""
        return "weight" in self.thresholds and self.mean_weight is not None and self._k is not None

    def uses_mean_weight(self, mean_weight: Fraction | None) -> bool:
        """Whether its threshold on weight is k times this mean weight of a trip."""
        return self.weight_from_data and self.mean_weight == mean_weight

    @property
    def k_from_data(self) -> bool:
        """Whether its k was not given, but follows from a threshold on weight and a mean weight; see `k_of`."""
        return self._k is None and "weight" in self.thresholds and "trips" not in self.thresholds

    @property
    def constraints(self) -> dict[str, Any]:
        """What it requires in addition to thresholds, by name."""
        asked = {name: getattr(self, name) for name in CONSTRAINTS}
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def thresholds_only(self) -> bool:
        """Whether it consists of thresholds only: it is then monotone, and needs no pairs in memory."""
        return not self.constraints

    @property
    def required_measures(self) -> frozenset[str]:
        """The measures needed to check it, for `odkanon.model.flows.Flows.only`."""
        further = () if self.max_share is None else (*DISTINCT, BY_CONTRIBUTOR)
        return frozenset((*self.measures, *further))

    def scaled(self, factor: float) -> Rule:
        """Return the rule with every threshold multiplied by a factor, and with the same k and mean weight."""
        raised: dict[str, Any] = {
            name: float(value) * factor if name == "weight" else ceil(value * factor)
            for name, value in self.thresholds.items()
        }
        return Rule(k=self.k, mean_weight=self.mean_weight, **self.constraints, **raised)

    @property
    def trips(self) -> Threshold | None:
        """The threshold on trips."""
        return self.thresholds.get("trips")

    @property
    def weight(self) -> Threshold | None:
        """The threshold on the sum of weights."""
        return self.thresholds.get("weight")

    @property
    def persons(self) -> Threshold | None:
        """The threshold on distinct persons."""
        return self.thresholds.get("persons")

    @property
    def households(self) -> Threshold | None:
        """The threshold on distinct households."""
        return self.thresholds.get("households")

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that have a threshold."""
        return tuple(self.thresholds)

    @property
    def main_measure(self) -> str:
        """The measure that orders merges and suppression: the first with a threshold."""
        return self.measures[0]

    @property
    def k(self) -> float:
        """The k of the rule, in trips of mean weight; metrics are normalised by it."""
        k = self.k_of("trips")
        return int(k) if k.denominator == 1 else float(k)

    def k_of(self, measure: str, mean_weight: Fraction | None = None) -> Fraction:
        """Return k in a measure: k itself, or k times the mean weight of a trip for weight.

        ``mean_weight`` is that of the input, for rules that have none.
        """
        mean = self.mean_weight or mean_weight
        if self._k is not None:
            k = Fraction(self._k)
        elif self.k_from_data and mean:
            k = Fraction(self.thresholds["weight"]) / mean
        else:
            k = next((Fraction(value) for name, value in self.thresholds.items() if name != "weight"), Fraction(1))
        return k * mean if measure == "weight" and mean else k

    @property
    def disclosed_thresholds(self) -> dict[str, int | float]:
        """The thresholds in publishable precision: whole numbers, and weight rounded down.

        A threshold on weight that derives from the data is k times the mean weight of a trip. All its digits would
        disclose the exact total of the input; three digits, rounded down, promise almost as much.
        """
        disclosed = {name: float(value) if name == "weight" else int(value) for name, value in self.thresholds.items()}
        if self.weight_from_data:
            digit = Fraction(10) ** (floor(log10(disclosed["weight"])) - 2)
            disclosed["weight"] = float(Fraction(self.thresholds["weight"]) // digit * digit)
        return disclosed

    def units(self, measure: str, scale: int) -> int:
        """Return the smallest integer that meets the threshold on a measure; weight in units of ``1 / scale``."""
        return ceil(Fraction(self.thresholds[measure]) * (scale if measure == "weight" else 1))

    def meets_thresholds(self, flows: Counted) -> Bools:
        """Return whether each flow or class meets every threshold; constraints are not checked."""
        good = np.ones(len(flows.trips), dtype=bool)
        for measure in self.thresholds:
            good &= _required(exact_masses(flows, measure), measure) >= self.units(measure, flows.scale)
        return good

    def satisfied(self, flows: Counted) -> Bools:
        """Return whether each flow meets the thresholds and the share."""
        good = self.meets_thresholds(flows)
        if self.max_share is None:
            return good
        shared = [] if not isinstance(flows, Flows) else [who for who in flows.contributions.values() if who.masses]
        if not shared:
            raise InputError(
                "max_share needs trips in memory with persons or households; map the column, read the trips into "
                "memory, or leave max_share out"
            )
        share = int(Fraction(str(self.max_share)) * _MILLION)
        for measure in ADDITIVE:
            if measure == "trips" or measure in self.thresholds:
                totals = exact_masses(flows, measure)
                most = totals // _MILLION * share + totals % _MILLION * share // _MILLION
                for who in shared:
                    good &= who.largest(measure, totals) <= most
        return good

    def satisfied_jointly(self, flows: Flows) -> Bools:
        """Return which flows may be published: those that meet the rule and whose origin has enough destinations.

        ``flows`` are all flows between some zones, with zone numbers as origins.
        """
        good = self.satisfied(flows)
        return good & self.with_destinations(flows.origin, good)

    def totals_below(self, flows: Flows) -> Totals:
        """Return the total of the flows that may not be published."""
        return flows.totals(~self.satisfied_jointly(flows))

    def with_destinations(self, origin: Codes, good: Bools) -> Bools:
        """Return which flows have an origin with enough destinations if only the ``good`` ones are published."""
        if self.min_destinations is None:
            return np.ones(len(good), dtype=bool)
        return np.bincount(origin[good], minlength=int(origin.max(initial=0)) + 1)[origin] >= self.min_destinations

    def check_available(self, available: Collection[str]) -> None:
        """Raise if the input lacks a measure that the rule needs."""
        for measure in self.measures:
            if measure not in available:
                _required(None, measure)
        if self.max_share is not None and not any(name in available for name in DISTINCT):
            raise InputError(
                "max_share needs a column of persons or households, and the input has neither; map it, or leave "
                "max_share out"
            )

    def __str__(self) -> str:
        asked = [
            f"at least {format_count(float(value), MEASURES[name].title)}" for name, value in self.thresholds.items()
        ]
        constraints = [
            *([] if self.max_share is None else [f"; no more than {self.max_share:.10g} of it of one person"]),
            *([] if self.min_destinations is None else [f"; {self.min_destinations} destinations of every origin"]),
        ]
        return f"the rule ({' and '.join(asked)} in every flow{''.join(constraints)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (*self.thresholds.items(), self._k, self.mean_weight, *self.constraints.items())

    def __repr__(self) -> str:
        parts = [f"{name} >= {float(value):,.10g}" for name, value in self.thresholds.items()]
        parts += [] if self.max_share is None else [f"max_share <= {self.max_share:.10g}"]
        parts += [] if self.min_destinations is None else [f"min_destinations >= {self.min_destinations}"]
        return f"Rule({', '.join(parts)})"


def _required(values: Ints | None, measure: str) -> Ints:
    if values is None:
        column = MEASURES[measure].column
        raise InputError(
            f"this rule counts {measure}, but the input has no {column} column; map the column, or choose another rule"
        )
    return values


NO_RULE = Rule(trips=1)
"""The rule of a noisy release, whose promise is no threshold."""
