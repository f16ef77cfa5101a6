"""Exchanges: change a cut in one or two places at a time, with exact accounting against the budget.

Prices on constraints only find cuts on the convex hull of (objective, suppressed), and the budget lies in a gap between
two of them. Pairs of moves, of which one gains and the other pays for it, fill the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.methods.treecut.dp import COLUMNS, ROUNDING, Floats, Goal, NodeTable, Problem
from odkanon.methods.treecut.feasibility import Good
from odkanon.zoning.hierarchy import Cut, cut_at

_CANDIDATES = 160
"""Moves that are tried in pairs: all on small trees, the most promising on large ones."""


@dataclass(frozen=True, eq=False)
class CutMoves:
    """Moves that change a cut in one place: merge all zones below a node, or split a zone into its children."""

    level: Ints
    start: Ints
    size: Ints
    """The new level of the leaves of the place, its first leaf, and its number of leaves."""
    change: Floats
    """The change of the totals, of shape (columns, moves). Moves in disjoint places are additive."""

    def take(self, which: Ints) -> CutMoves:
        """Return some of the moves."""
        return CutMoves(self.level[which], self.start[which], self.size[which], self.change[:, which])

    def apply(self, cut: Cut, chosen: list[int]) -> Cut:
        """Return the cut after some moves in disjoint places."""
        level = cut.level[cut.zone_of_leaf]
        for move in chosen:
            level[self.start[move] : self.start[move] + self.size[move]] = self.level[move]
        return cut_at(cut.tree, level)


def all_moves(table: NodeTable, cut: Cut) -> CutMoves:
    """Return all single moves from a cut."""
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
    return CutMoves(np.concatenate(targets), start, size, np.concatenate(changes, axis=1))


def exchange(table: NodeTable, goal: Goal, cut: Cut, totals: Floats, price: float) -> tuple[Cut, Floats]:
    """Improve a feasible cut by single moves and by pairs of moves in disjoint places, until nothing improves.

    ``price`` is the price of a suppressed unit; it decides which moves are tried in pairs if there are many.
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
    moves: CutMoves, goal: Goal, totals: Floats, price: float, value: float, beyond: Floats | None = None
) -> tuple[float, list[int]]:
    """Return the lowest value below ``value`` and the one or two moves that reach it; no moves if none does.

    ``beyond`` is the change by pairs of moves beyond the sum of their own changes, if any.
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


def ranked(moves: CutMoves, goal: Goal, value: float, price: float) -> Ints:
    """Return the moves to combine, the most promising at the given prices first."""
    worth = goal.weights(value, price) @ moves.change
    return np.argsort(worth, kind="stable")[:_CANDIDATES]


_LEADERS = 32
"""Moves of each axis that the other axis may answer with two moves."""


def joint_exchange(
    problem: Problem, goal: Goal, cuts: tuple[Cut, Cut], tables: tuple[NodeTable, NodeTable], price: float
) -> tuple[Cut, Cut] | None:
    """Return a better pair of cuts by one move of an axis and one or two of the other, or None.

    All pairs of one move per axis are tried (of the first `ranked` ones), answers of two moves for the best leading
    moves. ``price`` is the price of a suppressed unit.
    """
    totals = tables[0].total(cuts[0])
    value = goal.value(totals)
    if not (np.isfinite(value) and all(table.tree.top for table in tables)):
        return None
    every = [all_moves(table, cut) for table, cut in zip(tables, cuts, strict=True)]
    moves = [some.take(ranked(some, goal, value, price)) for some in every]
    crossing = interactions(problem, cuts, (moves[0], moves[1]))
    least, chosen = value * (1 - ROUNDING), None
    for axis, beyond in ((0, crossing), (1, crossing.transpose(0, 2, 1))):
        mine, theirs = moves[axis], moves[1 - axis]
        led = totals[:, None] + mine.change
        for lead in _leaders(goal, led[:, :, None] + theirs.change[:, None, :] + beyond, value, price):
            answers = replace(theirs, change=theirs.change + beyond[:, lead])
            found, answer = best_moves(answers, goal, led[:, lead], price, least)
            if answer:
                least, chosen = found, ([lead], answer) if axis == 0 else (answer, [lead])
    if chosen is None:
        return None
    return moves[0].apply(cuts[0], chosen[0]), moves[1].apply(cuts[1], chosen[1])


def _leaders(goal: Goal, totals: Floats, value: float, price: float) -> list[int]:
    """Return the most promising leading moves, given the totals of all pairs (columns, leaders, followers)."""
    priced = np.tensordot(goal.weights(value, price), totals, 1).min(axis=1)
    best = int(np.argmin(goal.values(totals).min(axis=1)))
    return sorted({best, *np.argsort(priced, kind="stable")[:_LEADERS].tolist()})


def interactions(problem: Problem, cuts: tuple[Cut, Cut], moves: tuple[CutMoves, CutMoves]) -> Floats:
    """Return the change by pairs of moves beyond the sum of their own changes, of shape (columns, moves, moves).

    The total of all suppressed classes is the same under every cut, so only classes that meet the rule interact.
    """
    good, shape = problem.good, (len(moves[0].level), len(moves[1].level))
    sums = np.zeros((len(COLUMNS), shape[0] * shape[1]))
    origins, destinations = (_layers(cut, some) for cut, some in zip(cuts, moves, strict=True))
    for one, other in product(origins, destinations):
        which, zone, partner = _between(good, one, other)
        for (sign, move_of_zone), (partner_sign, partner_of_zone) in product(one.parts, other.parts):
            first, second = move_of_zone[zone], partner_of_zone[partner]
            both = np.flatnonzero((first >= 0) & (second >= 0))
            cell = first[both] * shape[1] + second[both]
            for column, values in zip(sums, good.columns, strict=True):
                column += sign * partner_sign * np.bincount(cell, values[which[both]], len(column))
    return sums.reshape(-1, *shape)


@dataclass(frozen=True, eq=False)
class _Layer:
    """A cut that some moves in disjoint places start from or lead to."""

    cut: Cut
    """The current cut, that cut with every zone split, or with all zones below some level merged."""
    parts: list[tuple[int, Ints]]
    """1 for moves that lead to the cut, -1 for moves from it, each with the move of every zone (-1 for none)."""

    @cached_property
    def zone_of_node(self) -> Ints:
        """For each node of the tree its zone; -1 for none."""
        zone = np.full(self.cut.tree.offsets[-1], -1)
        zone[self.cut.numbers] = np.arange(len(self.cut))
        return zone


def _layers(cut: Cut, moves: CutMoves) -> list[_Layer]:
    """Return the cuts that the moves of an axis involve, from the finest to the coarsest."""
    tree, at = cut.tree, cut.level[cut.zone_of_leaf]
    splits = moves.level < at[moves.start]
    now = _Layer(cut, [])
    finer: list[_Layer] = []
    coarser: list[_Layer] = []
    for level in range(tree.top + 1):
        which = np.flatnonzero(splits if level == 0 else ~splits & (moves.level == level))
        if not len(which):
            continue
        new = _Layer(cut_at(tree, np.maximum(at, level) if level else np.maximum(at - 1, 0)), [])
        fine, coarse = (now, new) if level else (new, now)
        move_of_zone = np.full(len(coarse.cut), -1)
        move_of_zone[coarse.cut.zone_of_leaf[moves.start[which]]] = which
        coarse.parts.append((1 if level else -1, move_of_zone))
        fine.parts.append((-1 if level else 1, move_of_zone[coarse.cut.zone_of_leaf[fine.cut.starts]]))
        (coarser if level else finer).append(new)
    return [*finer, now, *coarser]


def _between(good: Good, one: _Layer, other: _Layer) -> tuple[Ints, Ints, Ints]:
    """Return the classes between the zones of two cuts, and their zones."""
    which = good.sides[1].classes_at(other.cut.numbers)
    zone = one.zone_of_node[good.sides[0].node[which]]
    which, zone = which[zone >= 0], zone[zone >= 0]
    return which, zone, other.zone_of_node[good.sides[1].node[which]]
