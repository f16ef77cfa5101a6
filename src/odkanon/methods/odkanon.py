"""ODkAnon: greedy merging of siblings on both axes, as a sorted order plus a bisection.

A parent's mass is at least its child's, so the greedy order of an axis is its internal nodes sorted by (mass,
finest first, id), and the choice of the axis needs only numbers of zones. The whole sequence of merges is known
before the matrix is looked at, and since rules are monotone, the first good step is found by bisection.

References
----------
Armenante, Huang, Jha, Vassio: "Protecting participants or population? Comparison of k-anonymous
Origin-Destination matrices", Algorithm 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.engine.protocols import Engine, Matrix
from odkanon.errors import InputError
from odkanon.model.budget import Budget, BudgetOf
from odkanon.model.flows import Totals
from odkanon.model.od import AXES, ODMatrix
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at

Suppress = Literal["before", "after"]

_GALLOP = 4.0
"""How many times more classes the next probe may have while none has failed."""

BALANCE = 0.03
"""How far the ratio of origin to destination zones may drift before one axis is favoured."""


def odkanon(
    od: Matrix,
    rule: Rule,
    *,
    suppress: Suppress = "after",
    budget: float = 0.10,
    budget_of: BudgetOf | None = None,
    levels: int = 3,
) -> Release:
    """Anonymise with ODkAnon.

    Parameters
    ----------
    od : ODMatrix
        The input.
    rule : Rule
        What every published class must meet.
    suppress : {"after", "before"}
        ``before``: as published, problematic pairs go first (Algorithm 1) and every class left must meet the
        rule. ``after``: merge in the same order, but stop as soon as what is below the rule fits the budget, and
        suppress exactly that.
    budget : float
        Share that may be suppressed, in [0, 1).
    budget_of : {"rows", "trips"}, optional
        Share of what; by default rows for ``before`` (as published) and trips for ``after``.
    levels : int
        For ``before``: how many levels a pair may be lifted before it counts as problematic, in [0, inf).
    """
    if suppress not in get_args(Suppress):
        raise InputError(f"suppress before or after generalising, not {suppress!r}")
    whole = od.summary
    rule.check_available(whole.measures)
    allowed = Budget(budget, budget_of or ("rows" if suppress == "before" else "trips"))
    parameters: dict[str, Any] = {"suppress": suppress, "budget": budget, "budget_of": allowed.of}
    work, allowance = od.workspace(), allowed.allowance(whole)
    if suppress == "before":
        parameters["levels"] = levels
        work, allowance = work.presuppress(rule, levels=levels, budget=allowed), 0
    left = work.remaining
    guess = left.trips / float(rule.k_of("trips", whole.mean_weight if whole.weight is not None else None))
    path = MergePath.of(work.engine(frozenset(rule.measures)), rule)
    found = path.first_within(rule, allowed, allowance, guess) if left.pairs else None
    if found is None:
        return work.refuse(rule, "odkanon", parameters, refusal(left, rule))
    step, classes = found
    parameters["merges"] = step
    return work.release(rule, classes, path.cuts(step), budget=allowed, method="odkanon", parameters=parameters)


def refusal(left: Totals | ODMatrix, rule: Rule) -> str:
    """Say why nothing can be published of what is left."""
    return (
        f"even with all {left.trips:,} remaining trips in one class, {rule} cannot be met within the budget; "
        "lower the thresholds, raise the budget, or bring more data"
    )


@dataclass(frozen=True, eq=False)
class MergeOrder:
    """The order in which the internal nodes of one axis are merged.

    Attributes
    ----------
    ranks : array of int
        For each level above the leaves (row) and leaf (column), the place of the leaf's ancestor in the order.
    zones : array of int
        Number of zones after 0, 1, 2, ... merges.
    """

    tree: Hierarchy
    ranks: npt.NDArray[np.int32]
    zones: Ints

    @classmethod
    def of(cls, tree: Hierarchy, masses: tuple[Ints, ...]) -> MergeOrder:
        """Sort the internal nodes of a tree by (mass, finest first, id)."""
        levels = range(1, tree.top + 1)
        counts = [len(tree.ids[level]) for level in levels]
        if not counts:
            return cls(tree, np.empty((0, len(tree.leaves)), dtype=np.int32), np.array([len(tree.leaves)]))
        level = np.repeat(np.array(levels), counts)
        order = np.lexsort((np.concatenate(tree.id_ranks[1:]), level, np.concatenate(masses[1:])))
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order))
        gone = np.concatenate([tree.children(at) for at in levels])[order] - 1
        zones = len(tree.leaves) - np.concatenate([[0], np.cumsum(gone)])
        by_level = np.split(rank, np.cumsum(counts)[:-1])
        ranks = np.stack([ranks[codes] for ranks, codes in zip(by_level, tree.codes[1:], strict=True)])
        return cls(tree, ranks, zones)

    def cut(self, merges: int) -> Cut:
        """Return the cut after the first ``merges`` merges."""
        # Ranks grow along the path from a leaf to the root, so merged ancestors are the lowest ones.
        level = np.count_nonzero(self.ranks < merges, axis=0)
        return cut_at(self.tree, level.astype(np.int8))


@dataclass(frozen=True, eq=False)
class MergePath:
    """The whole sequence of merges on both axes.

    Attributes
    ----------
    origin, destination : MergeOrder
        The order on each axis.
    origin_merges : array of int
        How many of the first 0, 1, 2, ... steps merge origins.
    """

    engine: Engine
    origin: MergeOrder
    destination: MergeOrder
    origin_merges: npt.NDArray[np.int64]

    @classmethod
    def of(cls, engine: Engine, rule: Rule) -> MergePath:
        """Work out the sequence of merges from the marginal masses alone."""
        origin, destination = (
            MergeOrder.of(engine.tree(axis), engine.node_masses(axis, rule.main_measure)) for axis in AXES
        )
        return cls(engine, origin, destination, alternate(origin.zones, destination.zones))

    def cuts(self, step: int) -> tuple[Cut, Cut]:
        """Return the cuts of both axes after ``step`` steps."""
        merges = int(self.origin_merges[step])
        return self.origin.cut(merges), self.destination.cut(step - merges)

    def first_within(self, rule: Rule, budget: Budget, allowance: int, guess: float = 0.0) -> tuple[int, Engine] | None:
        """Return the first step that leaves no more than the allowance below the rule, with its classes.

        None if there is no such step. ``guess`` is how many classes there could be at that step, roughly, 0 for no
        idea; it decides how soon the answer is found, not which.
        """
        engine = best = self.engine

        def good(step: int) -> bool:
            nonlocal engine, best
            coarser = engine.coarsen(*self.cuts(step))
            if budget.mass(coarser.below(rule)) > allowance:
                # Only later steps will be asked about from here on, and those are coarser still.
                engine = coarser
                return False
            best = coarser
            return True

        last = len(self.origin_merges) - 1
        if not good(last):
            return None
        low, high = gallop(self.class_space, guess, good) if guess > 0 else (-1, last)
        return bisect_first(high, good, low), best

    @cached_property
    def class_space(self) -> Ints:
        """For each step, how many classes there can be: origin times destination zones. Never grows."""
        steps = np.arange(len(self.origin_merges))
        space: Ints = self.origin.zones[self.origin_merges] * self.destination.zones[steps - self.origin_merges]
        return space


def alternate(origin_zones: Ints, destination_zones: Ints) -> Ints:
    """Return how many of the first 0, 1, 2, ... steps merge origins.

    Origins are merged when the ratio of origin to destination zones has grown by more than 3 % over its initial
    value, destinations when it has shrunk by more than that; in between, origins on even steps and destinations
    on odd ones. When one axis is exhausted, the other goes on. The loop is over merges of zones, not over data.
    """
    origins, destinations = origin_zones.tolist(), destination_zones.tolist()
    last_origin, last_destination = len(origins) - 1, len(destinations) - 1
    initial = origins[0] / max(destinations[0], 1)
    merged, step = 0, 0
    path = [0]
    while merged < last_origin and step - merged < last_destination:
        drift = (origins[merged] / destinations[step - merged] - initial) / initial
        if drift > BALANCE or (drift >= -BALANCE and step % 2 == 0):
            merged += 1
        step += 1
        path.append(merged)
    rest = last_origin + last_destination - step
    tail = merged + np.arange(1, rest + 1) if merged < last_origin else np.full(rest, merged)
    return np.concatenate([np.array(path, dtype=np.int64), tail])


def gallop(space: Ints, guess: float, good: Callable[[int], bool]) -> tuple[int, int]:
    """Return a failing step (-1 for none) and a good one after it, found with few probes of fine steps.

    A probe of a fine step costs as much as all of the data, and most steps are fine: halfway along the path hardly
    any two pairs share a class. So the first probe is where the answer is likely, and finer ones follow until one
    fails; what that one leaves is small.
    """
    low, high = -1, len(space) - 1
    while low < 0 < high:
        step = min(int(np.searchsorted(-space, -guess)), high - 1)
        if good(step):
            high = step
        else:
            low = step
        guess *= _GALLOP
    return low, high


def bisect_first(last: int, good: Callable[[int], bool], low: int = -1) -> int:
    """Return the first good step in ``(low, last]`` of a monotone test of which the last step is known to be good."""
    high = last
    while high - low > 1:
        middle = (low + high) // 2
        if good(middle):
            high = middle
        else:
            low = middle
    return high
