"""The specification of a release: its rule, method, structure, and the share of the input that may be suppressed.

Complementary suppression of the residual: a reader who knows the number of all trips can subtract the published ones
and obtains the total of the suppressed ones. That group must be empty or meet the rule; otherwise the smallest class is
suppressed with it. One class suffices for thresholds, which it meets by itself; the dominance rule may need more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import floor
from typing import Any, Literal, Protocol

import numpy as np

from odkanon.core.arrays import Bools
from odkanon.core.parsing import check_choice, check_share
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

    * ``share``: in [0, 1), taken as the decimal number that it is written as, so that 29 % of 100 is 29.
    * ``of``: what it is a share of: OD pairs (as in the paper) or trips (what "10 % of the data" means to most people).
    """

    share: float
    of: BudgetOf

    def __post_init__(self) -> None:
        check_share("the budget", self.share)
        check_choice("budget_of", self.of, BudgetOf)

    def allowance(self, flows: Spendable) -> int:
        """Return the number of rows or trips of these flows that may be suppressed."""
        return floor(self.mass(flows) * Fraction(str(self.share)))

    def mass(self, flows: Spendable, which: Bools | None = None) -> int:
        """Return the number of rows or trips of these flows, or of some of them."""
        values = self.cost(flows)
        return int(np.sum(values if which is None else values[which]))

    @property
    def column(self) -> str:
        """The column of flows that the budget is spent in; rows of the input are OD pairs."""
        return cost_column(self.of)

    def cost(self, flows: Spendable) -> Any:
        """Return the cost of suppressing each of these flows, in the unit of the budget."""
        return getattr(flows, self.column)


def cost_column(of: BudgetOf) -> str:
    """Return the column of flows in which a budget of this share is spent."""
    return "pairs" if of == "rows" else "trips"


TOO_FEW_SUPPRESSED = (
    "the suppressed trips are below the rule, so that their total would disclose them, and suppressing the smallest "
    "flow with them would leave nothing; allow no suppression (a budget of 0), or bring more data"
)


def satisfied_jointly(flows: Flows, which: Bools, rule: Rule) -> bool:
    """Return whether flows are empty in total, or meet a rule as one group."""
    nowhere = np.zeros(int(np.count_nonzero(which)), dtype=np.int32)
    merged, _ = flows.only(rule.required_measures).take(which).merge(nowhere, nowhere)
    return bool(rule.satisfied(merged).all())


def smallest_class(classes: Counted, rule: Rule) -> int:
    """Return the number of the smallest class in the rule's main measure, the first of equal ones."""
    return int(np.argmin(exact_masses(classes, rule.main_measure)))


class Structure(StrEnum):
    """How the classes of a release are related to each other.

    ``partition``: the zones of each axis are disjoint and the same for all partners. ``overlapping``: classes are
    disjoint, but zones of one axis may overlap, because they depend on the other end. ``nested``: classes may lie
    inside others, and each counts the trips that no finer one counts. ``noisy``: as nested, but each class estimates
    trips from counts with noise.
    """

    PARTITION = "partition"
    OVERLAPPING = "overlapping"
    NESTED = "nested"
    NOISY = "noisy"


@dataclass(frozen=True)
class ReleaseSpec:
    """The request for a release."""

    rule: Rule
    """What every class must meet."""
    budget: Budget | None = None
    """The share that may be suppressed; None for no limit."""
    method: str = ""
    """The name of the method."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The options of the method, and what it reports."""

    def with_parameters(self, **parameters: Any) -> ReleaseSpec:
        """Return the specification with further parameters."""
        return replace(self, parameters={**self.parameters, **parameters})
