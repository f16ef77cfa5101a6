"""The search of treecut: exact steps along one axis, alternating axes, perturbed restarts, joint moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from odkanon.core.progress import counted
from odkanon.methods.treecut.dp import ROUNDING, SPENT, Floats, Goal, NodeTable, Problem, node_table, totals_of
from odkanon.methods.treecut.exchange import (
    CutMoves,
    all_moves,
    best_moves,
    exchange,
    interactions,
    joint_exchange,
    ranked,
)
from odkanon.model.od import AXES
from odkanon.zoning.hierarchy import Cut, level_cut

Cuts = tuple[Cut, Cut]

_STARTS = 8
"""Starting points: ODkAnon's answer, then uniform levels from the best on."""
TURNS = 12
_KEPT = 4
"""Pairs of cuts from which joint moves start; the best one by itself is often in the wrong local optimum."""
_SEED = 2025


class TreeSearch:
    """A search that keeps the best few pairs of cuts."""

    def __init__(self, problem: Problem, goal: Goal, deadline: float = inf) -> None:
        self.problem, self.goal, self.deadline = problem, goal, deadline
        self._kept: dict[float, Cuts] = {}
        self._price = 1.0
        self._seen: set[tuple[object, ...]] = set()
        self._random = np.random.default_rng(_SEED)

    @property
    def value(self) -> float:
        """The best value so far."""
        return min(self._kept, default=inf)

    @property
    def best(self) -> Cuts | None:
        """The best pair of cuts so far; None if none was feasible."""
        return self._kept.get(self.value)

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.deadline

    def table(self, axis: int, cuts: Cuts) -> NodeTable:
        """Return the node values of an axis while the cut of the other one is fixed."""
        return node_table(self.problem, AXES[axis], cuts[1 - axis])

    def totals(self, cuts: Cuts) -> Floats:
        """Return the totals of a pair of cuts."""
        return totals_of(self.problem, cuts)

    def offer(self, cuts: Cuts, totals: Floats | None = None) -> float:
        """Keep a pair of cuts if it is one of the best so far; return its value."""
        value = self.goal.value(self.totals(cuts) if totals is None else totals)
        if value < inf:
            self._kept.setdefault(value, cuts)
        if len(self._kept) > _KEPT:
            del self._kept[max(self._kept)]
        return value

    def uniform(self) -> list[tuple[float, Cuts]]:
        """Return all feasible pairs of uniform levels with their values, best first."""
        origins, destinations = self.problem.od.origins, self.problem.od.destinations
        found: list[tuple[float, int, int]] = []
        for level in range(destinations.top + 1):
            table = node_table(self.problem, "origin", level_cut(destinations, level))
            values = [self.goal.value(columns.sum(axis=1)) for columns in table.levels]
            found += [(value, at, level) for at, value in enumerate(values) if value < inf]
        return [(value, (level_cut(origins, at), level_cut(destinations, level))) for value, at, level in sorted(found)]

    def run(self, starts: list[Cuts], iterations: int) -> None:
        """Search from the starting points, then from perturbed problems."""
        with counted(len(starts[:_STARTS]) + iterations) as counter:
            for cuts in starts[:_STARTS]:
                if self.late:
                    return
                self.offer(cuts)
                self.settle(cuts)
                counter.step()
            for _ in range(iterations):
                if self.late:
                    return
                self.settle(self.perturbed())
                counter.step()

    def improve_jointly(self) -> None:
        """Move both axes at once, from the best few pairs of cuts.

        This comes after the last restart, because restarts depend on the best cuts so far.
        """
        for _, cuts in sorted(self._kept.items(), key=lambda kept: kept[0]):
            self.move_jointly(cuts)

    def move_jointly(self, cuts: Cuts) -> None:
        """Change both axes at once and settle, until nothing improves."""
        for _ in range(TURNS):
            if self.late:
                return
            tables = self.table(0, cuts), self.table(1, cuts)
            found = joint_exchange(self.problem, self.goal, cuts, tables, self._price)
            if found is None:
                return
            self.offer(found)
            cuts = self.settle(found)

    def settle(self, cuts: Cuts) -> Cuts:
        """Alternate between the axes until nothing improves; return the last cuts."""
        value, still = inf, 0
        for turn in range(TURNS):
            if self.late or still == 2:
                break
            axis = turn % 2
            if self.was_here(axis, cuts):
                break
            cut, totals = self.best_cut(self.table(axis, cuts), cuts[axis])
            cuts = _with(cuts, axis, cut)
            new = self.offer(cuts, totals)
            still = 0 if new < value else still + 1
            value = new
        return cuts

    def was_here(self, axis: int, cuts: Cuts) -> bool:
        """Return whether the search met this state before, and record it.

        The next step depends on little else, and on small problems the search often returns to the same state.
        """
        place = (axis, *(part for cut in cuts for part in (cut.level.tobytes(), cut.starts.tobytes())))
        before = place in self._seen
        self._seen.add(place)
        return before

    def best_cut(self, table: NodeTable, current: Cut) -> tuple[Cut, Floats]:
        """Return the best feasible cut found for one axis: the current one or that of a multiplier, after exchanges."""
        totals, cut = table.total(current), current
        level = min(self.value, float(self.goal.raw(totals)))
        for ceiling_price in self.goal.ceiling_prices:
            for trial, sums in self._bisect(table, level, ceiling_price, table.total):
                if self.goal.value(sums) < self.goal.value(totals):
                    totals, cut = sums, trial
        return exchange(table, self.goal, cut, totals, self._price)

    def _bisect(
        self, table: NodeTable, level: float, ceiling_price: float, totals: Callable[[Cut], Floats]
    ) -> list[tuple[Cut, Floats]]:
        """Return the best cuts for the multipliers of a bisection to the smallest one that keeps the budget."""
        low, high = 1e-4, max(1e-4, 1e6 * level)
        found: list[tuple[Cut, Floats]] = []
        while high > low * 1.01:
            self._price = float(np.sqrt(low * high))
            cut = table.cheapest(self.goal.weights(level, self._price, ceiling_price))
            found.append((cut, totals(cut)))
            over = found[-1][1][SPENT] > self.goal.allowance
            low, high = (self._price, high) if over else (low, self._price)
        return found

    def perturbed(self) -> Cuts:
        """Return the best cuts after some turns with noisy node values, at about the right multiplier."""
        assert self.best is not None
        cuts, random = self.best, self._random
        price = self._price * float(np.exp(random.uniform(-1, 1)))
        sigma, first = random.random() ** 2, int(random.integers(2))
        for turn in range(int(random.integers(1, 5))):
            axis = (first + turn) % 2
            table = self.table(axis, cuts)
            noise = np.exp(sigma * random.standard_normal(table.columns.shape[1]))
            cuts = _with(cuts, axis, table.cheapest(self.goal.weights(self.value, price), noise))
        return cuts


def _with(cuts: Cuts, axis: int, cut: Cut) -> Cuts:
    return (cut, cuts[1]) if axis == 0 else (cuts[0], cut)


_EXCHANGES = 60


class SquareSearch(TreeSearch):
    """A search for one cut of the joint tree; every pair of cuts that it keeps is one cut twice."""

    def uniform(self) -> list[tuple[float, Cuts]]:
        """Return all feasible levels with their values, best first."""
        tree = self.problem.od.origins
        levels = [level_cut(tree, level) for level in range(tree.top + 1)]
        found = [(self.goal.value(self.totals((cut, cut))), at) for at, cut in enumerate(levels)]
        return [(value, (levels[at], levels[at])) for value, at in sorted(found) if value < inf]

    def settle(self, cuts: Cuts) -> Cuts:
        """Improve the cut until nothing improves; return the last one."""
        totals = self.totals(cuts)
        for _ in range(TURNS):
            if self.late or self.was_here(0, cuts):
                break
            table, level = self.both(cuts[0]), min(self.value, float(self.goal.raw(totals)))
            value = self.goal.value(totals)
            for price in self.goal.ceiling_prices:
                for trial, sums in self._bisect(table, level, price, lambda cut: self.totals((cut, cut))):
                    if self.offer((trial, trial), sums) < self.goal.value(totals):
                        cuts, totals = (trial, trial), sums
            if not self.goal.value(totals) < value:
                break
        return cuts

    def perturbed(self) -> Cuts:
        """Return the best cut for noisy node values around the best one so far, at about the right multiplier."""
        assert self.best is not None
        random, table = self._random, self.both(self.best[0])
        price = self._price * float(np.exp(random.uniform(-1, 1)))
        sigma = random.random() ** 2
        noise = np.exp(sigma * random.standard_normal(table.columns.shape[1]))
        cut = table.cheapest(self.goal.weights(self.value, price), noise)
        return cut, cut

    def move_jointly(self, cuts: Cuts) -> None:
        """Exchange merges and splits, one or two at a time, until nothing improves."""
        totals = self.totals(cuts)
        for _ in range(_EXCHANGES):
            value = self.goal.value(totals)
            if self.late or value == inf or not self.problem.od.origins.top:
                return
            moves, beyond = self._moves(cuts[0], value)
            _, chosen = best_moves(moves, self.goal, totals, self._price, value * (1 - ROUNDING), beyond)
            if not chosen:
                return
            cut = moves.apply(cuts[0], chosen)
            cuts, totals = (cut, cut), self.totals((cut, cut))
            self.offer(cuts, totals)

    def both(self, cut: Cut) -> NodeTable:
        """Return the contribution of each node as a zone of both axes, with ``cut`` as the partner of either."""
        first, second = (self.table(axis, (cut, cut)) for axis in (0, 1))
        return NodeTable(first.tree, first.columns + second.columns)

    def _moves(self, cut: Cut, value: float) -> tuple[CutMoves, Floats]:
        """Return the promising moves with their exact changes, and the interactions of pairs of them."""
        every = all_moves(self.both(cut), cut)
        moves = every.take(ranked(every, self.goal, value, self._price))
        crossing = interactions(self.problem, (cut, cut), (moves, moves))
        exact = replace(moves, change=moves.change + np.diagonal(crossing, axis1=1, axis2=2))
        return exact, crossing + crossing.transpose(0, 2, 1)
