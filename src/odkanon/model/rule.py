"""What every published class must meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any, Protocol

import numpy as np

from odkanon.core.arrays import Bools, Ints
from odkanon.errors import InputError
from odkanon.model.measures import MEASURES, TARGETS

Threshold = int | float | Fraction


class Weighted(Protocol):
    """Anything with a mean weight of a trip: a matrix, or the summary of one."""

    @property
    def mean_weight(self) -> Fraction: ...  # noqa: D102


class Counted(Protocol):
    """Anything with masses to compare with a rule: flows, or the classes of a release."""

    @property
    def trips(self) -> Ints: ...  # noqa: D102
    @property
    def scale(self) -> int: ...  # noqa: D102


class Rule:
    """Thresholds that every published class must meet, all at once.

    Every threshold is monotone: merging classes never lowers any of them.

    Parameters
    ----------
    k : int, optional
        The k that the thresholds stand for, which metrics are normalised by. By default the threshold on trips; on
        weight over ``mean_weight``, where that is given; or on heads.
    mean_weight : Fraction, optional
        The mean weight of a trip in the whole data set. The rule remembers it: a segment or an area has another mean,
        and k people of the population are still as many.
    **thresholds
        ``trips``: at least this many trips, in [1, inf). ``weight``: at least this sum of weights, in (0, inf).
        ``persons``, ``households``: at least this many different ones, in [1, inf). Ten trips of one person meet
        ``trips=10`` but hide nobody.

    Attributes
    ----------
    thresholds : mapping of str to number
        By measure; each can also be read as an attribute (``rule.trips``), None where there is none.

    Examples
    --------
    >>> Rule(trips=10, persons=5)
    Rule(trips >= 10, persons >= 5)
    >>> Rule(trips=10, persons=5).k
    10
    """

    thresholds: Mapping[str, Threshold]

    def __init__(
        self, *, k: float | None = None, mean_weight: Fraction | None = None, **thresholds: Threshold | None
    ) -> None:
        unknown = [name for name in thresholds if name not in MEASURES]
        if unknown:
            raise InputError(f"a rule counts {', '.join(MEASURES)}; not {unknown[0]}")
        own = {name: value for name in MEASURES if (value := thresholds.get(name)) is not None}
        if not own:
            raise InputError(f"a rule needs at least one threshold: {', '.join(MEASURES)}")
        for measure, value in own.items():
            if not value > 0 or value == float("inf"):
                raise InputError(f"the threshold on {measure} must be a positive number, not {value}")
            if measure != "weight" and value != int(value):
                raise InputError(f"the threshold on {measure} must be a whole number, not {value}")
        self.thresholds = own
        self.mean_weight = mean_weight
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
        if k != int(k) or k < 1:
            raise InputError(f"k must be a whole number of at least 1, not {k}")
        unknown = [target for target in targets if target not in TARGETS]
        if unknown or not targets:
            raise InputError(f"choose what to protect among {', '.join(TARGETS)}, not {', '.join(unknown)!r}")
        mean = of.mean_weight if "population" in targets or getattr(of, "weight", None) else None
        names = [TARGETS[target].name for target in targets]
        return cls(k=k, mean_weight=mean, **{name: k * mean if name == "weight" and mean else k for name in names})

    def scaled(self, factor: float) -> Rule:
        """Return the rule with every threshold raised by a factor; k and the mean weight stay."""
        raised = {
            name: float(value) * factor if name == "weight" else ceil(value * factor)
            for name, value in self.thresholds.items()
        }
        return Rule(k=self.k, mean_weight=self.mean_weight, **raised)

    def __getattr__(self, name: str) -> Any:
        if name in MEASURES:
            return self.thresholds.get(name)
        raise AttributeError(f"'Rule' has no attribute {name!r}")

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that have a threshold."""
        return tuple(self.thresholds)

    @property
    def main_measure(self) -> str:
        """The measure whose mass orders merges and suppression: the first with a threshold."""
        return self.measures[0]

    @property
    def k(self) -> float:
        """The k that the rule stands for, in trips of mean weight; used to normalise metrics."""
        k = self.k_of("trips")
        return int(k) if k.denominator == 1 else float(k)

    def k_of(self, measure: str, mean_weight: Fraction | None = None) -> Fraction:
        """Return what k is in a measure: k itself, and k times the mean weight of a trip for weight.

        ``mean_weight`` is that of the input, for rules that remember none.
        """
        mean = self.mean_weight or mean_weight
        if self._k is not None:
            k = Fraction(self._k)
        elif "weight" in self.thresholds and "trips" not in self.thresholds and mean:
            k = Fraction(self.thresholds["weight"]) / mean
        else:
            k = next((Fraction(value) for name, value in self.thresholds.items() if name != "weight"), Fraction(1))
        return k * mean if measure == "weight" and mean else k

    @property
    def promised(self) -> dict[str, int | float]:
        """The thresholds as they may be told: whole numbers, and weight rounded down.

        A threshold on weight that was worked out from the data is the mean weight of a trip times k. With all its
        digits it would tell the exact total of the input; three digits, rounded down, promise next to as much.
        """
        told = {name: float(value) if name == "weight" else int(value) for name, value in self.thresholds.items()}
        if "weight" in told and self.mean_weight is not None and self._k is not None:
            digit = Fraction(10) ** (floor(log10(told["weight"])) - 2)
            told["weight"] = float(Fraction(self.thresholds["weight"]) // digit * digit)
        return told

    def units(self, measure: str, scale: int) -> int:
        """Return the smallest whole number that meets the threshold on a measure; weight counts in ``1 / scale``."""
        return ceil(Fraction(self.thresholds[measure]) * (scale if measure == "weight" else 1))

    def met(self, flows: Counted) -> Bools:
        """Tell for each flow or class whether it meets every threshold."""
        good = np.ones(len(flows.trips), dtype=bool)
        for measure in self.thresholds:
            good &= _required(getattr(flows, measure), measure) >= self.units(measure, flows.scale)
        return good

    def check_available(self, available: Collection[str]) -> None:
        """Raise if the input lacks something that the rule counts."""
        for measure in self.measures:
            if measure not in available:
                _required(None, measure)

    def __str__(self) -> str:
        asked = [f"at least {float(value):,.10g} {MEASURES[name].title}" for name, value in self.thresholds.items()]
        return f"the rule ({' and '.join(asked)} in every flow)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (*self.thresholds.items(), self._k, self.mean_weight)

    def __repr__(self) -> str:
        return f"Rule({', '.join(f'{name} >= {float(value):,.10g}' for name, value in self.thresholds.items())})"


def _required(values: Ints | None, measure: str) -> Ints:
    if values is None:
        column = MEASURES[measure].column
        raise InputError(
            f"this rule counts {measure}, but the input has no {column} column; say which column it is, or choose "
            "another rule"
        )
    return values
