"""Provenance of a matrix: its source, the rejected rows, and the totals of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from odkanon.errors import InputError
from odkanon.model.axes import Subject
from odkanon.model.measures import MEASURES, MeasureColumns, exact_masses


@dataclass(frozen=True)
class Rejected:
    """The rows rejected for one reason, with their trips and weight (in units of ``1 / scale``, as far as readable)."""

    rows: int
    trips: int
    weight: int = 0


@dataclass(frozen=True)
class Source:
    """The source of a matrix."""

    rows: int
    """Number of input rows, valid or not."""
    sha256: str | None = None
    """Digest of the input file."""
    rejected: Mapping[str, Rejected] = field(default_factory=dict)
    """Rejected rows, by reason."""
    mean_weight: Fraction | None = None
    """Mean weight of a trip of the whole data set, before an area or a segment is selected."""
    lookalikes: int = 0
    """Number of rows that equal another, if nothing distinguishes duplicates from trips."""
    reading: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The reading options; private, as filters may name people."""
    subject: Subject = field(default_factory=Subject, compare=False)
    """What is counted, and by which places."""
    unused: tuple[str, ...] = field(default=(), compare=False)
    """Columns that nothing refers to."""
    example: str = field(default="", compare=False)
    """One of the rejected rows, where these are many; private."""

    def reject(self, reason: str, part: Rejected) -> Source:
        """Return the source with further rejected rows; unchanged if there are none."""
        return replace(self, rejected={**self.rejected, reason: part}) if part.rows else self


@dataclass(frozen=True)
class Summary(MeasureColumns):
    """The totals of a matrix and its provenance: all that a release keeps of its input."""

    pairs: int
    trips: int
    """Number of OD pairs and of trips."""
    weight_units: int | None
    """Sum of weights, in units of ``1 / scale``; None without weights."""
    contributors: Mapping[str, int]
    """Number of distinct contributors, for each measure whose contributors the input identifies."""
    scale: int
    """Units per unit of weight."""
    source: Source
    """The provenance."""

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The measures that the input has."""
        return tuple(measure for measure in MEASURES if exact_masses(self, measure) is not None)

    @property
    def mean_weight(self) -> Fraction:
        """Exact mean weight of a trip in the whole data set, of which this may be a part."""
        mean = self.own_mean_weight if self.source.mean_weight is None else self.source.mean_weight
        if mean is None:
            raise InputError("protecting the population needs a weight for each trip; name the column of weights")
        return mean

    @property
    def own_mean_weight(self) -> Fraction | None:
        """Exact mean weight of the trips of this matrix; None without trips or weights."""
        if self.weight_units is None or not self.trips:
            return None
        return Fraction(self.weight_units, self.trips * self.scale)
