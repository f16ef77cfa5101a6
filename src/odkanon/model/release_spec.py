"""What is asked of a release, and how its classes may lie to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from odkanon.model.budget import Budget
from odkanon.model.rule import Rule


class Structure(StrEnum):
    """How the classes of a release lie to each other.

    ``partition``: the zones of each axis are disjoint and the same for all partners. ``overlapping``: classes are
    disjoint, but the zones of one axis may overlap, because they depend on the other end. ``nested``: classes may lie
    in each other, and each counts the trips that no finer one counts. ``noisy``: as nested, but each class estimates
    trips from counts with noise.
    """

    PARTITION = "partition"
    OVERLAPPING = "overlapping"
    NESTED = "nested"
    NOISY = "noisy"


@dataclass(frozen=True)
class ReleaseSpec:
    """What is asked of a release."""

    rule: Rule
    """What every class must meet."""
    budget: Budget | None = None
    """The share that may be suppressed; None for no limit."""
    method: str = ""
    """The name of the method."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The options of the method, and what it reports about how it found the classes."""

    def with_parameters(self, **parameters: Any) -> ReleaseSpec:
        """Return the specification with further parameters."""
        return replace(self, parameters={**self.parameters, **parameters})
