"""Where a matrix comes from, what was turned away on the way, and what the rest adds up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from odkanon.errors import InputError
from odkanon.model.measures import MEASURES, MeasureColumns


@dataclass(frozen=True)
class Rejected:
    """What was turned away for one reason; weight in units of ``1 / scale``, as far as it could be read."""

    rows: int
    trips: int
    weight: int = 0


@dataclass(frozen=True)
class Source:
    """Where a matrix comes from.

    Attributes
    ----------
    rows : int
        Rows of the input, good and bad.
    sha256 : str or None
        Of the input file.
    rejected : mapping of str to Rejected
        What was turned away, by reason.
    mean_weight : Fraction or None
        Mean weight of a trip of the whole data set, before an area or a segment is taken of it.
    lookalikes : int
        Rows that are the same as another in all that was read, where nothing tells copies from trips.
    reading : mapping
        What was read and how, as it was said: for the steward, never for the public, as filters may name people.
    """

    rows: int
    sha256: str | None = None
    rejected: Mapping[str, Rejected] = field(default_factory=dict)
    mean_weight: Fraction | None = None
    lookalikes: int = 0
    reading: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def reject(self, reason: str, part: Rejected) -> Source:
        """Return the account with some rows turned away for one more reason; unchanged where there are none."""
        return replace(self, rejected={**self.rejected, reason: part}) if part.rows else self


@dataclass(frozen=True)
class Summary(MeasureColumns):
    """What a release needs to know of its input, wherever the pairs are.

    Attributes
    ----------
    pairs, trips : int
        Number of OD pairs and of trips.
    weight : int or None
        Sum of weights, in units of ``1 / scale``; None where trips have none.
    contributors : mapping of str to int
        Number of distinct heads, for each measure that counts them and that the input names.
    scale : int
        Units of weight in one.
    source : Source
        Where it comes from, and what was rejected on the way.
    """

    pairs: int
    trips: int
    weight: int | None
    contributors: Mapping[str, int]
    scale: int
    source: Source

    @property
    def measures(self) -> tuple[str, ...]:
        """What the input lets us count."""
        return tuple(measure for measure in MEASURES if getattr(self, measure) is not None)

    @property
    def mean_weight(self) -> Fraction:
        """Exact mean weight of a trip in the whole data set, of which this may be a part."""
        if self.source.mean_weight is not None:
            return self.source.mean_weight
        if self.weight is None or self.trips == 0:
            raise InputError("the population can only be protected where trips have a weight; say which column it is")
        return Fraction(self.weight, self.trips * self.scale)

    @property
    def own_mean_weight(self) -> Fraction | None:
        """Exact mean weight of these very trips; None where there are none, or none with a weight."""
        return Fraction(self.weight, self.trips * self.scale) if self.weight is not None and self.trips else None
