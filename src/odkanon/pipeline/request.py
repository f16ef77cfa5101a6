"""The request for a release, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from odkanon.errors import InvalidValueError
from odkanon.methods.method_registry import CUBE_METHOD, DEFAULT_METHOD, NOISE_METHOD, ONE_LEVEL, ONE_ZONING
from odkanon.model.rule import NO_RULE, Rule
from odkanon.read.input_spec import InputSpec

if TYPE_CHECKING:
    from odkanon.engine.dispatch import EngineName
    from odkanon.model.od import Matrix

DEFAULT_SEGMENT_BUDGET = 0.10
ZONING_OPTIONS = frozenset({"budget", "budget_of", "suppress", "max_levels", "symmetric"})
"""Parameters that imply one zoning for all flows. A cascade takes a budget too, but only for comparisons."""

Target = Literal["participants", "population", "persons", "households"]


@dataclass(frozen=True)
class RuleRequest:
    """Thresholds that become a rule once the input is read: ``population`` needs its mean weight."""

    k: int = 10
    """How many must share every published flow."""
    protect: tuple[str, ...] = ()
    """Who is protected; if empty the participants, and the persons where the input names them."""
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    """Thresholds by measure (``trips``, ``weight``, ``persons``, ``households``), instead of ``k`` and ``protect``."""
    max_share: float | None = None
    min_destinations: int | None = None
    """Further constraints; see `odkanon.Rule`."""

    def rule_for(self, matrix: Matrix) -> Rule:
        """Return the rule for a matrix, with the mean weight of the whole input."""
        summary = matrix.summary
        default = ("participants", *(("persons",) if "persons" in summary.measures else ()))
        if self.thresholds:
            mean = summary.mean_weight if summary.weight_units is not None else None
            rule = Rule(mean_weight=mean, **self.thresholds)
        else:
            rule = Rule.protect(*(self.protect or default), k=self.k, of=summary)
        return rule.with_constraints(max_share=self.max_share, min_destinations=self.min_destinations)


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that determines a release."""

    input: InputSpec | Matrix
    """What to read and how, or a matrix that was read already."""
    rule: Rule | RuleRequest = field(default_factory=RuleRequest)
    """What every published flow must meet."""
    method: str = ""
    """One of `odkanon.METHODS`; if empty, what the other fields imply: the cascade, unless they need one zoning."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What the method takes, such as ``{"budget": 0.05}``."""
    by: tuple[str, ...] = ()
    """Attributes to publish by in one table, a cube."""
    segments: tuple[str, ...] = ()
    """Attributes to split the trips by, in tables that are safe side by side."""
    age_bands: tuple[int, ...] | None = None
    """Where bands of ages begin, with ``by`` or ``segments``."""
    segment_budget: float | None = None
    """Share of trips that the tables of a segment may suppress; the method's budget by default."""
    protect_intervals: bool = False
    """Suppress until no small flow is known to within less than the rule asks for, with ``segments``."""
    after: Path | None = None
    """Use only trips after the period of this earlier release of the same, growing input."""
    zones_of: Path | None = None
    """Use the zones of this earlier release, or the rows of a cascade."""
    matrix: Any = None
    """The places of the matrix in the folder: an H3 resolution or a file of polygons; see `odkanon.Release.save`."""
    matrix_code: str | None = None
    """The property with the codes of these polygons."""
    ledger: Path | None = None
    """With noise: the file that adds up what was spent on the same people; by default beside the input or above it."""
    epsilon_limit: float | None = None
    """With noise: the most epsilon that the ledger may come to."""
    engine: EngineName | None = None
    memory_limit: int | None = None
    spark_master: str | None = None
    """Where to compute; see `odkanon.read_matrix`."""

    def __post_init__(self) -> None:
        if not self.method:
            object.__setattr__(self, "method", self._implied_method())
        if self.by and self.method not in (CUBE_METHOD, NOISE_METHOD):
            raise InvalidValueError(
                f"attributes are published with {CUBE_METHOD} or {NOISE_METHOD}, not with {self.method}"
            )
        if self.method == NOISE_METHOD:
            self._check_noise()
        elif self.ledger is not None or self.epsilon_limit is not None:
            raise InvalidValueError(f"a ledger is of noise, which {self.method} does not add; leave it out")
        if self.place is not None:
            if self.method != CUBE_METHOD:
                raise InvalidValueError(f"a table by one place is published with {CUBE_METHOD}, not with {self.method}")
            if self.segments or self.zones_of or self.after:
                raise InvalidValueError("a table by one place has no segments, earlier zones or periods; use by")
        if self.by and (self.segments or self.zones_of):
            raise InvalidValueError(
                "one table by attributes has zones of its own; leave out segments and earlier zones"
            )

    def _implied_method(self) -> str:
        """Return the method that the options imply: ODkAnon if they need one zoning for all flows, else a cascade."""
        if "epsilon" in self.parameters:
            return NOISE_METHOD
        if self.by or self.place is not None:
            return CUBE_METHOD
        if "at_level" in self.parameters:
            return ONE_LEVEL
        constrained = self.rule.max_share is not None or self.rule.min_destinations is not None
        return ONE_ZONING if self.segments or constrained or ZONING_OPTIONS & {*self.parameters} else DEFAULT_METHOD

    def _check_noise(self) -> None:
        if self.segments or self.zones_of:
            raise InvalidValueError("noise has no segments and no earlier zones; publish one table by attributes (by)")
        if self.rule not in (RuleRequest(), NO_RULE):
            raise InvalidValueError(
                "noise keeps no threshold: it bounds what is learnt by epsilon; leave out k, protect and thresholds"
            )

    @cached_property
    def place(self) -> str | None:
        """The place axis of a table by one place; None for trips."""
        return place_of(self.input)

    @property
    def budget_of_segments(self) -> float:
        """Share of trips that the tables of a segment may suppress."""
        given = (self.segment_budget, self.parameters.get("budget"))
        return next((float(share) for share in given if share is not None), DEFAULT_SEGMENT_BUDGET)

    def rule_for(self, matrix: Matrix) -> Rule:
        """Return the rule for the matrix that was read."""
        if self.method == NOISE_METHOD:
            return NO_RULE
        return self.rule if isinstance(self.rule, Rule) else self.rule.rule_for(matrix)


def place_of(given: InputSpec | Matrix) -> str | None:
    """Return the place axis of an input by one place; None for trips."""
    return (given if isinstance(given, InputSpec) else given.summary.source).subject.place
