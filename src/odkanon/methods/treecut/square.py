"""The search for one zoning of both ends.

Where both axes share a cut, a node does not add the same whatever else is cut: its flows have their other end in the
same zones. The sum of what a node adds as a zone of origins and as one of destinations, while the partner stands
still, is a linear stand-in; its best cuts are then judged by what they really are. The last steps are exchanges, whose
changes are exact: a move on both axes is the same move on each, plus what the two change together (`interactions`).
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from odkanon.methods.treecut.dp import Floats, NodeTable
from odkanon.methods.treecut.exchange import Moves, all_moves, best_moves, ranked
from odkanon.methods.treecut.joint_moves import interactions
from odkanon.methods.treecut.objective import ROUNDING
from odkanon.methods.treecut.search import TURNS, Cuts, TreeSearch
from odkanon.zoning.hierarchy import Cut, level_cut

_EXCHANGES = 60


class SquareSearch(TreeSearch):
    """Looks for one cut of the tree that both axes stand on; every pair of cuts that it keeps is one cut twice."""

    def uniform(self) -> list[tuple[float, Cuts]]:
        """Return all feasible levels with their values, best first."""
        tree = self.problem.od.origins
        levels = [level_cut(tree, level) for level in range(tree.top + 1)]
        found = [(self.goal.value(self.totals((cut, cut))), at) for at, cut in enumerate(levels)]
        return [(value, (levels[at], levels[at])) for value, at in sorted(found) if value < inf]

    def settle(self, cuts: Cuts) -> Cuts:
        """Go from cut to cut as long as that improves; return where it ends."""
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

    def disturbed(self) -> Cuts:
        """Return the best cut of noisy node values around the best one so far, at about the right multiplier."""
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
        """Return what each node adds as a zone of origins and as one of destinations, while the partner is ``cut``."""
        first, second = (self.table(axis, (cut, cut)) for axis in (0, 1))
        return NodeTable(first.tree, first.columns + second.columns)

    def _moves(self, cut: Cut, value: float) -> tuple[Moves, Floats]:
        """Return the moves worth a try with what each changes exactly, and what pairs of them change beyond that."""
        every = all_moves(self.both(cut), cut)
        moves = every.take(ranked(every, self.goal, value, self._price))
        crossing = interactions(self.problem, (cut, cut), (moves, moves))
        exact = replace(moves, change=moves.change + np.diagonal(crossing, axis1=1, axis2=2))
        return exact, crossing + crossing.transpose(0, 2, 1)
