"""The specification of a release: its rule, method, structure, and the share of the input that may be suppressed.

Complementary suppression of the residual: whoever knows how many trips there are in all, and adds up what is published,
knows the total of what is not. That group is empty, or meets the rule like any other; if it does neither, the smallest
class goes with it. One is enough for thresholds, as it meets them by itself; what one person has most of may take more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import floor
from typing import Any, Literal, Protocol, get_args

import numpy as np

from odkanon.core.arrays import Bools
from odkanon.core.parsing import check_share
from odkanon.errors import InvalidValueError
from odkanon.model.flows import Flows
from odkanon.model.measures import exact_masses
from odkanon.model.rule import Counted, Rule

BudgetOf = Literal["rows", "trips"]


class Spendable(Protocol):
    """Anything that takes up budget: flows, or the totals of some."""

    @property
    def pairs(self) -> Any: ...  # noqa: D102
    @property
    def trips(self) -> Any: ...  # noqa: D102


@dataclass(frozen=True)
class Budget:
    """A share of the input that may be suppressed.

    * ``share``: in [0, 1). Read as the decimal number it is written as, so that 29 % of 100 is 29.
    * ``of``: share of OD pairs (as in the paper) or of trips (what "10 % of the data" means to most people).
    """

    share: float
    of: BudgetOf

    def __post_init__(self) -> None:
        check_share("the budget", self.share)
        if self.of not in get_args(BudgetOf):
            raise InvalidValueError.expected("budget_of", " or ".join(get_args(BudgetOf)), self.of)

    def allowance(self, flows: Spendable) -> int:
        """Return the number of rows or trips of these flows that may be suppressed."""
        return floor(self.mass(flows) * Fraction(str(self.share)))

    def mass(self, flows: Spendable, which: Bools | None = None) -> int:
        """Return the rows or trips of (some of) these flows."""
        values = self.cost(flows)
        return int(np.sum(values if which is None else values[which]))

    @property
    def column(self) -> str:
        """What is counted of a flow: rows of the input are OD pairs."""
        return cost_column(self.of)

    def cost(self, flows: Spendable) -> Any:
        """Return the cost of suppressing each of these flows, in the unit of the budget."""
        return getattr(flows, self.column)


def cost_column(of: BudgetOf) -> str:
    """Return what is counted of a flow where the budget is a share of this."""
    return "pairs" if of == "rows" else "trips"


TOO_FEW_SUPPRESSED = (
    "what is below the rule is too little to be left out unseen, and if the smallest flow went with it, nothing would "
    "be left; allow nothing to be suppressed (a budget of 0), or bring more data"
)


def satisfied_jointly(flows: Flows, which: Bools, rule: Rule) -> bool:
    """Return whether flows are empty in total, or meet a rule as one group."""
    nowhere = np.zeros(int(np.count_nonzero(which)), dtype=np.int32)
    merged, _ = flows.only(rule.required_measures).take(which).merge(nowhere, nowhere)
    return bool(rule.satisfied(merged).all())


def smallest_class(classes: Counted, rule: Rule) -> int:
    """Return the number of the smallest class in the main measure of the rule; of equal ones, the first."""
    return int(np.argmin(exact_masses(classes, rule.main_measure)))


class Structure(StrEnum):
    """How the classes of a release are related to each other.

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
