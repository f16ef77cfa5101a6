"""Annealing of free zones: sweeps of block moves, with zones split and merged to fit the budget."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.core.progress import counted
from odkanon.methods.freezones.class_matrix import Floats, Sheet, ZonePlan
from odkanon.methods.freezones.moves import sweep

_SWEEPS = 10
"""Sweeps along one axis before the next turn."""
_FEWEST = 3
"""Sweeps of a turn with very many flows."""
_MANY = 100_000
"""Flows between blocks beyond which there are fewer sweeps, because a sheet then costs as much as several sweeps."""
_FREEZE = 0.6
"""Share of the run after which zones are no longer split or merged."""
_QUENCH = 0.92
"""Share of the run after which only improvements are accepted."""
_DEAR = 4.0
"""Price of a suppressed unit before the freeze, as a multiple of G."""
_SEED = 2025


@dataclass(frozen=True)
class Schedule:
    """The length and the scale of annealing."""

    iterations: int
    """Turns, each along one axis."""
    deadline: float
    """The latest time to stop, by the monotonic clock."""
    k: float
    """Mass of a class that just meets the rule; k times G is the scale of changes by moves."""
    allowance: int
    """The largest mass that may be suppressed."""
    compactness: float = 1.0
    """Price of an edge between two zones, as a multiple of k times G."""

    def progress(self, iteration: int, start: float) -> float:
        """Return the finished share of the run, by turns or by time, whichever is larger."""
        now = time.monotonic()
        by_time = (now - start) / max(self.deadline - start, 1e-9) if self.deadline < inf else 0.0
        return max(iteration / self.iterations, by_time)


def anneal(plan: ZonePlan, schedule: Schedule) -> tuple[tuple[Ints, Ints], float]:
    """Return the best zones found within the allowance, and their G.

    Until the freeze, the price of a suppressed unit is a fixed multiple of G, and the number of zones follows the
    budget: the two neighbouring zones with the cheapest union are merged while too much is suppressed, and the zone
    that contributes most to G by its size is split while there is room. Afterwards the number of zones is fixed and the
    price follows the budget, until the temperature reaches zero.
    """
    random = np.random.default_rng(_SEED)
    start = time.monotonic()
    best, least, multiplier, g = plan.zones, inf, 0.0, inf
    sweeps = min(_SWEEPS, max(_FEWEST, _SWEEPS * _MANY // max(len(plan.flows), 1)))
    with counted(1) as counter:
        for iteration in range(schedule.iterations + 1):
            axis, progress = iteration % 2, schedule.progress(iteration, start)
            counter.at(progress)
            sheets = plan.sheets(axis)
            price, published, spent = sheets[0].totals()
            if published > 0:
                g = price / published
                if spent <= schedule.allowance and g < least:
                    best, least = plan.zones, g
            if progress >= 1:
                break
            excess = (spent - schedule.allowance) / max(schedule.allowance, 1.0)
            if progress < _FREEZE:
                multiplier = _DEAR * g
            else:
                multiplier *= float(np.exp(np.clip(0.5 * excess, -0.05, 0.05)))
            heat = schedule.k * g * (1 - progress) ** 2 if progress < _QUENCH else 0.0
            for _ in range(sweeps):
                if not sweep(sheets, multiplier, heat, schedule.compactness * schedule.k * g, random) and heat == 0:
                    break
                if plan.symmetric:
                    # A move on one axis also happens on the other, but sheets hold their partner's zones fixed.
                    plan = plan.moved(axis, sheets[0].zone)
                    sheets = plan.sheets(axis)
            if progress < _FREEZE:
                _resize(sheets, excess, multiplier)
            plan = plan.moved(axis, sheets[0].zone)
    return best, least


def _resize(sheets: Sequence[Sheet], excess: float, multiplier: float) -> None:
    """Merge zones while too much is suppressed; split them while there is room."""
    if excess > 0 and len(sheets[0].size) > 1:
        _merge(sheets, multiplier)
    elif excess < -0.03:
        _split(sheets)


def _merge(sheets: Sequence[Sheet], multiplier: float) -> None:
    """Merge the two neighbouring zones whose union adds least to the cost."""
    sheet = sheets[0]
    source, target = (sheet.zone[side] for side in sheet.blocks.edges)
    keys = np.unique((source * len(sheet.size) + target)[source < target])
    if len(keys) == 0:
        return
    first, second = keys // len(sheet.size), keys % len(sheet.size)
    pick = int(np.argmin(np.sum([_union_costs(each, first, second, multiplier) for each in sheets], axis=0)))
    sheet.zone[sheet.zone == second[pick]] = first[pick]


def _union_costs(sheet: Sheet, first: Ints, second: Ints, multiplier: float) -> Floats:
    """Return the additional cost of the unions of pairs of rows."""
    price, size = sheet.counting.price, sheet.size
    separate = price(sheet.matrix, size[:, None] + sheet.width, multiplier).sum(axis=1)
    union = sheet.matrix[:, first] + sheet.matrix[:, second]
    joined = price(union, (size[first] + size[second])[:, None] + sheet.width, multiplier).sum(axis=1)
    return np.asarray(joined - separate[first] - separate[second])


def _split(sheets: Sequence[Sheet]) -> None:
    """Split the zone that contributes most to G by its size into two connected halves of similar size."""
    sheet = sheets[0]
    worth = np.sum([each.published * each.size for each in sheets], axis=0)
    for zone in np.argsort(-worth, kind="stable").tolist():
        members = np.flatnonzero(sheet.zone == zone)
        if len(members) > 1:
            sheet.zone[_half(sheet, members.tolist())] = len(sheet.size)
            return


def _half(sheet: Sheet, members: list[int]) -> list[int]:
    """Grow two regions from opposite ends of a zone, the smaller one first; return the second."""
    inside = set(members)
    ends = [_farthest(sheet, members[0], inside)]
    ends.append(_farthest(sheet, ends[0], inside))
    taken: list[list[int]] = [[], []]
    size, fronts = [0.0, 0.0], [deque([end]) for end in ends]
    while fronts[0] or fronts[1]:
        side = 0 if fronts[0] and (not fronts[1] or size[0] <= size[1]) else 1
        block = fronts[side].popleft()
        if block in inside:
            inside.discard(block)
            taken[side].append(block)
            size[side] += float(sheet.blocks.leaves[block])
            fronts[side].extend(other for other in sheet.blocks.neighbours[block] if other in inside)
    return taken[1]


def _farthest(sheet: Sheet, start: int, inside: set[int]) -> int:
    """Return the block of a zone with the longest shortest path from the start."""
    seen, queue, last = {start}, deque([start]), start
    while queue:
        last = queue.popleft()
        for other in sheet.blocks.neighbours[last]:
            if other in inside and other not in seen:
                seen.add(other)
                queue.append(other)
    return last
