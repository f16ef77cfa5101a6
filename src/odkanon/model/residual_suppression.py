"""Complementary suppression of the residual: its total can be derived, so it must itself meet the rule.

Whoever knows how many trips there are in all, and adds up what is published, knows the total of what is not. That
group is empty, or meets the rule like any other; if it does neither, the smallest class goes with it. One is enough for
thresholds, as it meets them by itself; what one person has most of may take more.
"""

from __future__ import annotations

import numpy as np

from odkanon.core.arrays import Bools
from odkanon.model.flows import Flows
from odkanon.model.rule import Counted, Rule

TOO_FEW_SUPPRESSED = (
    "what is below the rule is too little to be left out unseen, and if the smallest flow went with it, nothing would "
    "be left; allow nothing to be suppressed (a budget of 0), or bring more data"
)


def satisfied_jointly(flows: Flows, which: Bools, rule: Rule) -> bool:
    """Return whether some flows are none at all, or meet a rule as one group."""
    nowhere = np.zeros(int(np.count_nonzero(which)), dtype=np.int32)
    merged, _ = flows.only(rule.required_measures).take(which).merge(nowhere, nowhere)
    return bool(rule.satisfied(merged).all())


def smallest_class(classes: Counted, rule: Rule) -> int:
    """Return the number of the class with least of what the rule counts first; of equal ones, the first."""
    return int(np.argmin(getattr(classes, rule.main_measure)))
