"""What a release is asked to be, as frozen values that are handed on whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from odkanon.errors import InvalidValueError
from odkanon.methods.method_registry import CUBE_METHOD
from odkanon.model.rule import Rule

if TYPE_CHECKING:
    from odkanon.engine.dispatch import EngineName
    from odkanon.model.od import Matrix
    from odkanon.read.input_spec import InputSpec

DEFAULT_SEGMENT_BUDGET = 0.10

Target = Literal["participants", "population", "persons", "households"]


@dataclass(frozen=True)
class RuleRequest:
    """Thresholds that become a rule once the input is read: ``population`` needs its mean weight.

    Attributes
    ----------
    k : int
        How many must share every published flow.
    protect : tuple of str
        Who is protected; participants if empty.
    thresholds : mapping of str to number
        Thresholds by measure (``trips``, ``weight``, ``persons``, ``households``), instead of ``k`` and ``protect``.
    max_share, min_destinations
        Further constraints; see `odkanon.Rule`.
    """

    k: int = 10
    protect: tuple[str, ...] = ()
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    max_share: float | None = None
    min_destinations: int | None = None

    def rule_for(self, matrix: Matrix) -> Rule:
        """Return the rule for a matrix, with the mean weight of the whole input."""
        summary = matrix.summary
        if self.thresholds:
            mean = summary.mean_weight if summary.weight is not None else None
            rule = Rule(mean_weight=mean, **self.thresholds)
        else:
            rule = Rule.protect(*(self.protect or ("participants",)), k=self.k, of=summary)
        return rule.asking(max_share=self.max_share, min_destinations=self.min_destinations)


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that determines a release.

    Attributes
    ----------
    input : InputSpec or Matrix
        What to read and how, or a matrix that was read already.
    rule : Rule or RuleRequest
        What every published flow must meet.
    method : str
        One of `odkanon.METHODS`.
    parameters : mapping
        What the method takes, such as ``{"budget": 0.05}``.
    by : tuple of str
        Attributes to publish by in one table, a cube.
    segments : tuple of str
        Attributes to split the trips by, in tables that are safe side by side.
    age_bands : tuple of int, optional
        Where bands of ages begin, with ``by`` or ``segments``.
    segment_budget : float, optional
        Share of trips that the tables of a segment may suppress; the method's budget by default.
    protect_intervals : bool
        Suppress until no small flow is known to within less than the rule asks for, with ``segments``.
    after : path, optional
        Use only trips after the period of this earlier release of the same, growing input.
    zones_of : path, optional
        Use the zones of this earlier release, or the rows of a cascade.
    engine, memory_limit, spark_master
        Where to compute; see `odkanon.read_matrix`.
    """

    input: InputSpec | Matrix
    rule: Rule | RuleRequest = field(default_factory=RuleRequest)
    method: str = "odkanon"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    age_bands: tuple[int, ...] | None = None
    segment_budget: float | None = None
    protect_intervals: bool = False
    after: Path | None = None
    zones_of: Path | None = None
    engine: EngineName | None = None
    memory_limit: int | None = None
    spark_master: str | None = None

    def __post_init__(self) -> None:
        if self.by and self.method != CUBE_METHOD:
            raise InvalidValueError(f"attributes are published with {CUBE_METHOD}, not with {self.method}")
        if self.by and (self.segments or self.zones_of):
            raise InvalidValueError(
                "one table by attributes has zones of its own; leave out segments and earlier zones"
            )

    @property
    def budget_of_segments(self) -> float:
        """Share of trips that the tables of a segment may suppress."""
        given = (self.segment_budget, self.parameters.get("budget"))
        return next((float(share) for share in given if share is not None), DEFAULT_SEGMENT_BUDGET)

    def rule_for(self, matrix: Matrix) -> Rule:
        """Return the rule for the matrix that was read."""
        return self.rule if isinstance(self.rule, Rule) else self.rule.rule_for(matrix)
