"""Exact best cuts of one axis while the cut of the other is fixed.

With the partner's cut fixed, all objectives and constraints are sums over the zones of this axis: the contribution of a
node as a zone does not depend on the other zones. A table of these contributions, computed bottom-up, answers any query
for cuts of this axis by dynamic programming over the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Ints
from odkanon.model.flows import Flows
from odkanon.model.od import AXES, Axis, ODMatrix
from odkanon.model.release_spec import Budget
from odkanon.model.rule import Rule
from odkanon.quality.utility import UtilityMeasure
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_through
from odkanon.zoning.zones import JointTree, join_trees

if TYPE_CHECKING:
    from odkanon.methods.treecut.feasibility import Good

Floats = npt.NDArray[np.float64]

COLUMNS = ("price", "published", "spent", "classes", "loss")
"""The contributions of a node as a zone: to the sum of G, to |D+|, to the budget, to the classes, to the sum of E."""
PRICE, PUBLISHED, SPENT, CLASSES, LOSS = range(len(COLUMNS))


@dataclass(frozen=True, eq=False)
class Problem:
    """The trees to cut, the rule and budget to keep, and the quantities to count."""

    od: ODMatrix
    rule: Rule
    budget: Budget
    measure: UtilityMeasure = "trips"
    """What the objective counts."""
    with_loss: bool = False
    """Whether to compute E, which takes a pass over all pairs for every level."""
    counts: tuple[Ints, Ints] | None = None
    """If both axes share one tree: for each axis, 1 for each of its own leaves, else 0."""

    @classmethod
    def square(
        cls, od: ODMatrix, rule: Rule, budget: Budget, measure: UtilityMeasure = "trips", with_loss: bool = False
    ) -> tuple[Problem, JointTree]:
        """Return the problem of one zoning for both ends, on their joint tree."""
        joint = join_trees(od.origins, od.destinations)
        origin, destination = joint.leaves[0][od.flows.origin], joint.leaves[1][od.flows.destination]
        flows = replace(od.flows, origin=origin.astype(np.int32), destination=destination.astype(np.int32))
        both = replace(od, origins=joint.tree, destinations=joint.tree, flows=flows)
        return cls(both, rule, budget, measure, with_loss, joint.counts), joint

    def sizes(self, axis: Axis, level: int) -> Ints:
        """Return the number of leaves of an axis below each node of a level."""
        tree = self.od.tree(axis)
        if self.counts is None:
            return tree.sizes[level]
        counted: Ints = np.add.reduceat(self.counts[AXES.index(axis)], tree.starts[level])
        return counted

    @cached_property
    def good(self) -> Good:
        """All classes between two nodes that meet the rule."""
        from odkanon.methods.treecut.feasibility import good_classes

        return good_classes(self)

    @property
    def allowance(self) -> int:
        """The number of rows or trips that may be suppressed."""
        return self.budget.allowance(self.od.flows)

    def flows(self, axis: Axis) -> Flows:
        """Return the flows with the given axis as the origin."""
        flows = self.od.flows.only(self.rule.required_measures | {self.measure})
        return flows if axis == "origin" else replace(flows, origin=flows.destination, destination=flows.origin)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The contribution of every node of an axis as a zone, given the partner's cut."""

    tree: Hierarchy
    columns: Floats
    """The nodes of all levels in turn, from the leaves on, of shape (columns, nodes)."""

    @cached_property
    def levels(self) -> tuple[Floats, ...]:
        """The columns of the nodes of each level."""
        return tuple(np.split(self.columns, self.tree.offsets[1:-1], axis=1))

    def cheapest(self, weights: Floats, noise: Floats | None = None) -> Cut:
        """Return the cut that minimises a weighted sum of the columns; a tie stays coarse.

        ``noise`` multiplies the value of each node: the best cuts of slightly different problems are good starting
        points.
        """
        value = np.zeros(self.columns.shape[1])
        for weight, column in zip(weights.tolist(), self.columns, strict=True):
            if weight:
                value += weight * column
        if noise is not None:
            value *= noise
        best, *above = np.split(value, self.tree.offsets[1:-1])
        whole = []
        for here, first in zip(above, self.tree.first_children[1:], strict=True):
            below = np.add.reduceat(best, first[:-1])
            whole.append(here <= below)
            best = np.minimum(here, below)
        return cut_through(self.tree, whole)

    def below(self, cut: Cut, level: int, nodes: Ints) -> Floats:
        """Return the contributions of the zones of a cut below some nodes of a level, all above their zones."""
        starts = self.tree.starts[level][nodes]
        ends = starts + self.tree.sizes[level][nodes]
        zones = np.concatenate([self.columns[:, cut.numbers], np.zeros((len(COLUMNS), 1))], axis=1)
        return _sums(zones, *np.searchsorted(cut.starts, [starts, ends]))

    def children(self, level: int, nodes: Ints) -> Floats:
        """Return the contributions of the children of some nodes of a level."""
        first = self.tree.offsets[level - 1] + self.tree.first_children[level]
        return _sums(self.columns, first[nodes], first[nodes + 1])

    def total(self, cut: Cut) -> Floats:
        """Return the totals of a cut."""
        return np.asarray(self.columns[:, cut.numbers].sum(axis=1))


def _sums(columns: Floats, first: Ints, end: Ints) -> Floats:
    """Return the sums of columns from each ``first`` up to before its ``end``, a larger valid column."""
    return np.add.reduceat(columns, np.stack([first, end], axis=1).ravel(), axis=1)[:, ::2]


def node_table(problem: Problem, axis: Axis, partner: Cut) -> NodeTable:
    """Compute the contribution of every node of an axis as a zone, given the cut of the other axis."""
    good, (own, other) = problem.good, problem.good.sides if axis == "origin" else problem.good.sides[::-1]
    which = other.classes_at(partner.numbers)
    node, columns = own.node[which], own.suppressed.copy()
    for row, values in zip(columns, good.columns, strict=True):
        row += np.bincount(node, values[which], len(row))
    return NodeTable(problem.od.tree(axis), columns)


def totals_of(problem: Problem, cuts: tuple[Cut, Cut]) -> Floats:
    """Return the totals of a pair of cuts."""
    return node_table(problem, "origin", cuts[1]).total(cuts[0])


Objective = Literal["g", "e", "c_avg"]

ROUNDING = 1e-12
"""Relative difference below which two values count as equal."""


@dataclass(frozen=True)
class Goal:
    """An objective over the totals of `odkanon.methods.treecut.dp.COLUMNS`, and its constraints.

    E and C_AVG by themselves have degenerate optima: a single origin zone with destinations so fine that all classes
    barely exceed the threshold. They are therefore minimised subject to a ceiling on G.
    """

    objective: Objective
    allowance: int
    """The largest suppressed mass."""
    ceiling: float = inf
    """The largest G."""

    def values(self, totals: Floats) -> Floats:
        """Return the objective of each column of totals; infinite if a constraint is violated."""
        published = totals[PUBLISHED]
        broken = (published <= 0) | (totals[SPENT] > self.allowance)
        if self.ceiling < inf:
            broken |= totals[PRICE] > self.ceiling * published * (1 + ROUNDING)
        return np.where(broken, inf, self.raw(totals))

    def value(self, totals: Floats) -> float:
        """Return the objective; infinite if a constraint is violated or nothing is published."""
        return float(self.values(totals))

    def raw(self, totals: Floats) -> Floats:
        """Return the objective without regard to the constraints."""
        if self.objective == "e":
            return np.asarray(totals[LOSS])
        above, below = (PRICE, PUBLISHED) if self.objective == "g" else (PUBLISHED, CLASSES)
        return np.asarray(totals[above] / np.maximum(totals[below], ROUNDING))

    def weights(self, level: float, budget_price: float, ceiling_price: float = 0.0) -> Floats:
        """Return the linearised objective around a value, with prices on the constraints.

        A ratio a / b is below ``level`` iff ``a - level * b`` is negative.
        """
        weights = np.zeros(5)
        if self.objective == "g":
            weights[[PRICE, PUBLISHED]] = 1.0, -level
        elif self.objective == "e":
            weights[LOSS] = 1.0
        else:
            weights[[PUBLISHED, CLASSES]] = 1.0, -level
        weights[SPENT] += budget_price
        if ceiling_price:
            weights[[PRICE, PUBLISHED]] += ceiling_price, -ceiling_price * self.ceiling
        return weights

    @property
    def ceiling_prices(self) -> tuple[float, ...]:
        """Prices of the ceiling to try, in units of mass per unit of G; only 0 without a ceiling."""
        if self.ceiling == inf:
            return (0.0,)
        return tuple(price / self.ceiling for price in (0.0, 0.1, 1.0))
