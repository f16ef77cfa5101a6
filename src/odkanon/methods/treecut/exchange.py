"""Exchanges: change a cut in one or two places at a time, with exact accounting against the budget.

Prices on constraints only find cuts on the convex hull of (objective, suppressed); between two of them lies a gap
that the budget falls into. Pairs of moves, one that gains and one that pays for it, fill the gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.methods.treecut.dp import Floats, NodeTable
from odkanon.methods.treecut.objective import ROUNDING, Goal
from odkanon.zoning.hierarchy import Cut, cut_at

_CANDIDATES = 160
"""Moves that take part in pairs; all of them on small trees, the most efficient ones on large trees."""


@dataclass(frozen=True, eq=False)
class Moves:
    """Ways to change a cut in one place: merge all zones below a node, or split a zone into its children.

    Attributes
    ----------
    level, start, size : array of int
        The level that the leaves of the place get, its first leaf, and its number of leaves.
    change : array, shape (columns, moves)
        What the totals change by. Moves in disjoint places add up exactly.
    """

    level: Ints
    start: Ints
    size: Ints
    change: Floats

    def take(self, which: Ints) -> Moves:
        """Return some of the moves."""
        return Moves(self.level[which], self.start[which], self.size[which], self.change[:, which])

    def apply(self, cut: Cut, chosen: list[int]) -> Cut:
        """Return the cut after some moves in disjoint places."""
        level = cut.level[cut.zone_of_leaf]
        for move in chosen:
            level[self.start[move] : self.start[move] + self.size[move]] = self.level[move]
        return cut_at(cut.tree, level)


def all_moves(table: NodeTable, cut: Cut) -> Moves:
    """List all single moves from a cut."""
    tree = table.tree
    level_at = cut.level[cut.zone_of_leaf]
    levels, nodes, changes, targets = [], [], [], []
    for level in range(1, tree.top + 1):
        above = np.flatnonzero(level_at[tree.starts[level]] < level)
        zones = cut.node[cut.level == level].astype(np.int64)
        levels += [np.full(len(above) + len(zones), level)]
        targets += [np.full(len(above), level), np.full(len(zones), level - 1)]
        nodes += [above, zones]
        changes += [
            table.levels[level][:, above] - table.below(cut, level, above),
            table.children(level, zones) - table.levels[level][:, zones],
        ]
    level_of = np.concatenate(levels)
    node_of = np.concatenate(nodes)
    start, size = np.empty_like(node_of), np.empty_like(node_of)
    for level in range(1, tree.top + 1):
        here = level_of == level
        start[here], size[here] = tree.starts[level][node_of[here]], tree.sizes[level][node_of[here]]
    return Moves(np.concatenate(targets), start, size, np.concatenate(changes, axis=1))


def exchange(table: NodeTable, goal: Goal, cut: Cut, totals: Floats, price: float) -> tuple[Cut, Floats]:
    """Improve a feasible cut by single moves and by pairs of moves in disjoint places, as long as that helps.

    ``price`` is what a suppressed unit is worth; it decides which moves are tried in pairs where there are many.
    """
    while goal.value(totals) < inf and table.tree.top:
        moves = all_moves(table, cut)
        _, chosen = best_moves(moves, goal, totals, price, goal.value(totals) * (1 - ROUNDING))
        if not chosen:
            break
        cut = moves.apply(cut, chosen)
        totals = totals + moves.change[:, chosen].sum(axis=1)
    return cut, totals


def best_moves(
    moves: Moves, goal: Goal, totals: Floats, price: float, value: float, beyond: Floats | None = None
) -> tuple[float, list[int]]:
    """Return the one or two moves that lower the value most, and to what; no moves if nothing gets below ``value``.

    ``beyond`` is what pairs of moves change beyond the sum of what each does, where that is not nothing.
    """
    single = goal.values(totals[:, None] + moves.change)
    top = ranked(moves, goal, value, price)
    some = moves.take(top)
    both = totals[:, None, None] + some.change[:, :, None] + some.change[:, None, :]
    pairs = goal.values(both if beyond is None else both + beyond[:, top][:, :, top])
    end = some.start + some.size
    apart = (end[:, None] <= some.start[None, :]) | (end[None, :] <= some.start[:, None])
    pairs[~apart] = inf
    first, second = np.unravel_index(int(np.argmin(pairs)), pairs.shape)
    least = float(min(single.min(), pairs[first, second]))
    if not least < value:
        return value, []
    return least, [int(np.argmin(single))] if single.min() == least else [int(top[first]), int(top[second])]


def ranked(moves: Moves, goal: Goal, value: float, price: float) -> Ints:
    """Return the moves that take part in combinations, the most promising one at the given prices first."""
    worth = goal.weights(value, price) @ moves.change
    return np.argsort(worth, kind="stable")[:_CANDIDATES]
