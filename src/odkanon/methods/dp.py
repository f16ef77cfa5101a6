"""Exact best cuts of one axis while the other axis stands still.

With the partner's cut fixed, everything a release is judged by is a sum over the zones of this axis: what a node
would add as a zone does not depend on which other nodes are zones. One table of these contributions, worked out
bottom-up, then answers any question about cuts of this axis by dynamic programming over the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from odkanon.arrays import Codes, Ints
from odkanon.budget import Budget
from odkanon.flows import Flows
from odkanon.hierarchy import Cut, Hierarchy, cut_at
from odkanon.metrics import UtilityMeasure
from odkanon.od import Axis, ODMatrix
from odkanon.rule import Rule

Floats = npt.NDArray[np.float64]

COLUMNS = ("price", "published", "spent", "classes", "loss")
"""What a node adds as a zone: its part of G's sum, of |D+|, of the budget, of the classes, of E's sum."""
PRICE, PUBLISHED, SPENT, CLASSES, LOSS = range(len(COLUMNS))


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be cut, and what counts.

    Attributes
    ----------
    od, rule, budget
        The input, what classes must meet, and what may be suppressed.
    measure : {"trips", "weight"}
        What G and the other objectives count.
    with_loss : bool
        Whether E is asked for; it costs one look at every pair for every level.
    """

    od: ODMatrix
    rule: Rule
    budget: Budget
    measure: UtilityMeasure = "trips"
    with_loss: bool = False

    @property
    def allowance(self) -> int:
        """What may be suppressed, in rows or trips."""
        return self.budget.allowance(self.od.flows)

    def flows(self, axis: Axis) -> Flows:
        """Return the flows with the given axis in the place of the origin."""
        flows = self.od.flows.only(frozenset({*self.rule.measures, self.measure}))
        return flows if axis == "origin" else replace(flows, origin=flows.destination, destination=flows.origin)

    def contributions(self, classes: Flows, size: Ints, partner_size: Ints, loss: Floats | None) -> Floats:
        """Return what each class adds to `COLUMNS`, one row a column."""
        good = self.rule.met(classes)
        mass = getattr(classes, self.measure).astype(np.float64)
        cost = classes.pairs if self.budget.of == "rows" else classes.trips
        published = np.where(good, mass, 0.0)
        return np.stack(
            [
                published * (size + partner_size),
                published,
                np.where(good, 0, cost).astype(np.float64),
                good.astype(np.float64),
                mass * 0.0 if loss is None else np.where(good, loss, mass),
            ]
        )


@dataclass(frozen=True, eq=False)
class NodeTable:
    """What every node of an axis would add as a zone, given the partner's cut.

    Attributes
    ----------
    tree : Hierarchy
        The tree of the axis.
    levels : tuple of array, shape (columns, nodes)
        One array a level.
    """

    tree: Hierarchy
    levels: tuple[Floats, ...]

    def cheapest(self, weights: Floats, noise: tuple[Floats, ...] | None = None) -> Cut:
        """Return the cut that minimises a weighted sum of the columns; a tie stays coarse.

        ``noise`` multiplies the value of each node: the best cuts of slightly different problems are good places
        to search from.
        """
        best: Floats = np.empty(0)
        whole: list[npt.NDArray[np.bool_]] = []
        for level, columns in enumerate(self.levels):
            value = weights @ columns
            if noise is not None:
                value = value * noise[level]
            if level:
                below = np.add.reduceat(best, self.first_child(level))
                whole.append(value <= below)
                best = np.minimum(value, below)
            else:
                best = value
        level_of_leaf = np.zeros(len(self.tree.leaves), dtype=np.int8)
        for level, (chosen, codes) in enumerate(zip(whole, self.tree.codes[1:], strict=True), start=1):
            level_of_leaf[chosen[codes]] = level
        return cut_at(self.tree, level_of_leaf)

    def below(self, cut: Cut) -> tuple[Floats, ...]:
        """Return for every node what the zones of a cut at or below it add; for nodes inside a zone, nothing."""
        sums: list[Floats] = []
        for level, columns in enumerate(self.levels):
            here = np.zeros_like(columns)
            if level:
                here += np.add.reduceat(sums[-1], self.first_child(level), axis=1)
            zones = cut.node[cut.level == level]
            here[:, zones] += columns[:, zones]
            sums.append(here)
        return tuple(sums)

    def total(self, cut: Cut) -> Floats:
        """Return the columns of a whole cut."""
        parts = [columns[:, cut.node[cut.level == level]].sum(axis=1) for level, columns in enumerate(self.levels)]
        return np.asarray(np.sum(parts, axis=0))

    def first_child(self, level: int) -> Ints:
        """Return for each node of a level the number of its first child."""
        return np.searchsorted(self.tree.starts[level - 1], self.tree.starts[level])


def node_table(problem: Problem, axis: Axis, partner: Cut) -> NodeTable:
    """Work out what every node of an axis adds as a zone, when the other axis has the given cut."""
    tree = problem.od.tree(axis)
    partner_size = np.bincount(partner.zone_of_leaf, minlength=len(partner))
    pairs = problem.flows(axis)
    classes, class_of_pair = pairs.merge(pairs.origin, partner.zone_of_leaf[pairs.destination])
    levels = []
    for level in range(tree.top + 1):
        if level:
            parent = tree.codes[level][tree.starts[level - 1]]
            classes, number = classes.merge(parent[classes.origin], classes.destination)
            class_of_pair = number[class_of_pair] if problem.with_loss else class_of_pair
        size, other = tree.sizes[level][classes.origin], partner_size[classes.destination]
        loss = _losses(problem, pairs, classes, class_of_pair, size * other) if problem.with_loss else None
        columns = problem.contributions(classes, size, other, loss)
        nodes = len(tree.ids[level])
        levels.append(np.stack([np.bincount(classes.origin, row, nodes).astype(np.float64) for row in columns]))
    return NodeTable(tree, tuple(levels))


def _losses(problem: Problem, pairs: Flows, classes: Flows, class_of_pair: Codes, leaf_pairs: Ints) -> Floats:
    """Return what each class would add to the sum of E, were it published."""
    value = getattr(pairs, problem.measure).astype(np.float64)
    spread = getattr(classes, problem.measure) / leaf_pairs
    off = np.bincount(class_of_pair, weights=np.abs(spread[class_of_pair] - value), minlength=len(classes))
    return np.asarray(off + (leaf_pairs - classes.pairs) * spread)
