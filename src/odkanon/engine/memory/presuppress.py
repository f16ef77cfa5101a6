"""Algorithm 1 of the paper: suppress the OD pairs that a few levels of generalisation cannot save."""

from __future__ import annotations

import numpy as np

from odkanon.core.arrays import Bools
from odkanon.errors import InvalidValueError
from odkanon.model.budget import Budget
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import level_cut


def presuppressed_pairs(od: ODMatrix, rule: Rule, *, levels: int, budget: Budget) -> Bools:
    """Return which pairs are suppressed before generalisation.

    A pair is *problematic* if its group does not meet the rule with both ends lifted by 0, 1, ..., ``levels`` levels;
    since rules are monotone, the last of these decides. All problematic pairs are suppressed if the budget covers them,
    otherwise those of the lowest mass (ties by origin id, then by destination id) as far as it reaches.

    References
    ----------
    Armenante, Huang, Jha, Vassio: "Protecting participants or population?", Algorithm 1.
    """
    check_levels(levels)
    flows = od.flows
    origin_group = level_cut(od.origins, levels).zone_of_leaf[flows.origin]
    destination_group = level_cut(od.destinations, levels).zone_of_leaf[flows.destination]
    groups, group_of_pair = flows.merge(origin_group, destination_group)
    problematic = ~rule.satisfied(groups)[group_of_pair]
    allowance = budget.allowance(flows)
    if budget.mass(flows, problematic) <= allowance:
        return problematic
    candidates = np.flatnonzero(problematic)
    order = np.lexsort(
        (
            od.destinations.id_ranks[0][flows.destination[candidates]],
            od.origins.id_ranks[0][flows.origin[candidates]],
            getattr(flows, rule.main_measure)[candidates],
        )
    )
    cost = budget.cost(flows)[candidates[order]]
    suppressed = np.zeros(len(flows), dtype=bool)
    suppressed[candidates[order[np.cumsum(cost) <= allowance]]] = True
    return suppressed


def check_levels(levels: int) -> None:
    """Raise unless ``levels`` is a number of levels to lift pairs by."""
    if levels < 0:
        raise InvalidValueError.expected("levels", "0 or more", levels)
