"""Values that are too rare for a table of their own, joined into one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from odkanon.attributes.dimensions import Dimension
from odkanon.core.arrays import Bools, Ints, group_sum
from odkanon.linked.suppression_pattern import count_values, find_rare
from odkanon.linked.zoning_search import Attempt, Ground, search
from odkanon.model.residual_suppression import satisfied_jointly


def join_rare(ground: Ground) -> Ground:
    """Join the values of each dimension that are below the rule in all, where they meet it together."""
    for number in _free(ground):
        dimension = ground.dimensions[number]
        rare = find_rare(ground.od.flows, dimension, ground.rule)
        totals = count_values(ground.od.flows, dimension)
        if rare.any() and satisfied_jointly(totals, rare[totals.destination], ground.rule):
            ground = _with(ground, number, dimension.join(rare))
    return ground


def search_joining(ground: Ground, budget: float, method: str, options: dict[str, Any]) -> tuple[Ground, Attempt]:
    """Return the finest zoning on which every value has a table and every dimension stays within its budget.

    Where there is none, the smallest values of a dimension are joined, again and again; the best of all that was
    tried is returned in the end.
    """
    best: tuple[tuple[float, int], Ground, Attempt] | None = None
    while True:
        attempt = search(ground, budget, method, options)
        lacking = [_without_table(ground, attempt, number) for number in range(len(ground.dimensions))]
        over = max(0.0, *(share - budget for share in attempt.plan.shares))
        score = over, sum(int(np.count_nonzero(each)) for each in lacking)
        if best is None or score < best[0]:
            best = score, ground, attempt
        following = _joined_further(ground, attempt, lacking, budget)
        if following is None:
            return best[1], best[2]
        ground = following


def _free(ground: Ground) -> list[int]:
    """Return the dimensions that are tied to no other: joined values have to stay within one value above them."""
    return [number for number, parent in enumerate(ground.parents) if parent is None and number not in ground.parents]


def _with(ground: Ground, number: int, dimension: Dimension) -> Ground:
    dimensions = [dimension if at == number else each for at, each in enumerate(ground.dimensions)]
    return replace(ground, dimensions=dimensions)


def _without_table(ground: Ground, attempt: Attempt, number: int) -> Bools:
    """Return the values that occur, and of which nothing is published."""
    occurs = _sizes(ground, number) > 0
    return np.asarray(occurs & ~np.any(attempt.plan.cells[number], axis=0))


def _sizes(ground: Ground, number: int) -> Ints:
    """Return the trips of each value."""
    return group_sum(ground.dimensions[number].value, len(ground.dimensions[number]), ground.od.flows.trips)


def _joined_further(ground: Ground, attempt: Attempt, lacking: list[Bools], budget: float) -> Ground | None:
    """Join the values without a table, or else the two smallest, of the dimension that is worst off; None at last."""
    free = [number for number in _free(ground) if np.count_nonzero(_sizes(ground, number)) > 2]
    free = [number for number in free if lacking[number].any() or attempt.plan.shares[number] > budget]
    if not free:
        return None
    number = max(free, key=lambda each: (attempt.plan.shares[each], int(np.count_nonzero(lacking[each]))))
    dimension, which = ground.dimensions[number], lacking[number].copy()
    sizes = _sizes(ground, number)
    is_other = np.array([label == dimension.other for label in dimension.labels])
    if not np.any((sizes > 0) & ~which & ~is_other):  # nothing has a table, so that this does not tell whom to join
        which[:] = False
    for value in np.argsort(sizes, kind="stable").tolist():
        if np.count_nonzero(which | is_other) > 1:
            break
        which[value] |= bool(sizes[value]) and not is_other[value]
    return _with(ground, number, dimension.join(which))
