"""Exact best cuts of one axis while the other axis stands still.

With the partner's cut fixed, everything a release is judged by is a sum over the zones of this axis: what a node
would add as a zone does not depend on which other nodes are zones. One table of these contributions, worked out
bottom-up, then answers any question about cuts of this axis by dynamic programming over the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from odkanon.core.arrays import Codes, Ints
from odkanon.model.budget import Budget
from odkanon.model.flows import Flows
from odkanon.model.od import AXES, Axis, ODMatrix
from odkanon.model.rule import Rule
from odkanon.quality.utility import UtilityMeasure
from odkanon.zoning.hierarchy import Cut, Hierarchy, cut_at
from odkanon.zoning.joint import Joint, joint_of

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
    counts : tuple of array of int, or None
        Where both axes stand on one tree: for each axis, which of the leaves are its own (1, else 0).
    """

    od: ODMatrix
    rule: Rule
    budget: Budget
    measure: UtilityMeasure = "trips"
    with_loss: bool = False
    counts: tuple[Ints, Ints] | None = None

    @classmethod
    def square(
        cls, od: ODMatrix, rule: Rule, budget: Budget, measure: UtilityMeasure = "trips", with_loss: bool = False
    ) -> tuple[Problem, Joint]:
        """Return the problem of one zoning for both ends, on the tree that both then stand on."""
        joint = joint_of(od.origins, od.destinations)
        origin, destination = joint.leaves[0][od.flows.origin], joint.leaves[1][od.flows.destination]
        flows = replace(od.flows, origin=origin.astype(np.int32), destination=destination.astype(np.int32))
        both = replace(od, origins=joint.tree, destinations=joint.tree, flows=flows)
        return cls(both, rule, budget, measure, with_loss, joint.counts), joint

    def sizes(self, axis: Axis, level: int) -> Ints:
        """Return how many leaves of an axis lie below each node of a level."""
        tree = self.od.tree(axis)
        return tree.sizes[level] if self.counts is None else self._counted(axis, tree.starts[level])

    def zone_sizes(self, axis: Axis, cut: Cut) -> Ints:
        """Return how many leaves of an axis each zone of a cut has."""
        if self.counts is None:
            return np.diff(cut.starts, append=len(cut.zone_of_leaf))
        return self._counted(axis, cut.starts)

    def _counted(self, axis: Axis, starts: Ints) -> Ints:
        assert self.counts is not None
        counted: Ints = np.add.reduceat(self.counts[AXES.index(axis)], starts)
        return counted

    @property
    def allowance(self) -> int:
        """What may be suppressed, in rows or trips."""
        return self.budget.allowance(self.od.flows)

    def flows(self, axis: Axis) -> Flows:
        """Return the flows with the given axis in the place of the origin."""
        flows = self.od.flows.only(self.rule.counted | {self.measure})
        return flows if axis == "origin" else replace(flows, origin=flows.destination, destination=flows.origin)


@dataclass(frozen=True, eq=False)
class Classes:
    """Flows between zones, and what they add to `COLUMNS` if these zones are published.

    Attributes
    ----------
    problem : Problem
        What counts.
    pairs : Flows
        The OD pairs that were merged.
    flows : Flows
        The classes.
    class_of_pair : array of int or None
        For each pair the number of its class, where E is asked for.
    """

    problem: Problem
    pairs: Flows
    flows: Flows
    class_of_pair: Codes | None

    @classmethod
    def of(cls, problem: Problem, pairs: Flows, origin: Codes, destination: Codes) -> Classes:
        """Return the classes of the pairs between the given zones."""
        flows, number = pairs.merge(origin, destination)
        return cls(problem, pairs, flows, number if problem.with_loss else None)

    def lift(self, origin: Codes, destination: Codes) -> Classes:
        """Return the classes between coarser zones, given for each class."""
        flows, number = self.flows.merge(origin, destination)
        follow = None if self.class_of_pair is None else number[self.class_of_pair]
        return replace(self, flows=flows, class_of_pair=follow)

    def columns(self, origin_size: Ints, destination_size: Ints) -> Floats:
        """Return what each class adds, one row a column, for zones with the given numbers of leaves."""
        problem, flows = self.problem, self.flows
        size, partner_size = origin_size[flows.origin], destination_size[flows.destination]
        good = problem.rule.met(flows)
        mass = getattr(flows, problem.measure).astype(np.float64)
        cost = flows.pairs if problem.budget.of == "rows" else flows.trips
        published = np.where(good, mass, 0.0)
        return np.stack(
            [
                published * (size + partner_size),
                published,
                np.where(good, 0, cost).astype(np.float64),
                good.astype(np.float64),
                np.where(good, self._losses(size * partner_size), mass) if problem.with_loss else mass * 0.0,
            ]
        )

    def _losses(self, leaf_pairs: Ints) -> Floats:
        """Return what each class would add to the sum of E, were it published."""
        assert self.class_of_pair is not None
        value = getattr(self.pairs, self.problem.measure).astype(np.float64)
        spread = getattr(self.flows, self.problem.measure) / leaf_pairs
        off = np.abs(spread[self.class_of_pair] - value)
        total = np.bincount(self.class_of_pair, weights=off, minlength=len(self.flows))
        return np.asarray(total + (leaf_pairs - self.flows.pairs) * spread)


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
    partner_size = problem.zone_sizes("destination" if axis == "origin" else "origin", partner)
    pairs = problem.flows(axis)
    classes = Classes.of(problem, pairs, pairs.origin, partner.zone_of_leaf[pairs.destination])
    levels = []
    for level in range(tree.top + 1):
        if level:
            parent = tree.codes[level][tree.starts[level - 1]]
            classes = classes.lift(parent[classes.flows.origin], classes.flows.destination)
        columns = classes.columns(problem.sizes(axis, level), partner_size)
        nodes = len(tree.ids[level])
        levels.append(np.stack([np.bincount(classes.flows.origin, row, nodes).astype(np.float64) for row in columns]))
    return NodeTable(tree, tuple(levels))


def totals_of(problem: Problem, cuts: tuple[Cut, Cut]) -> Floats:
    """Return the totals of a pair of cuts."""
    pairs = problem.flows("origin")
    zones = cuts[0].zone_of_leaf[pairs.origin], cuts[1].zone_of_leaf[pairs.destination]
    sizes = problem.zone_sizes("origin", cuts[0]), problem.zone_sizes("destination", cuts[1])
    return np.asarray(Classes.of(problem, pairs, *zones).columns(*sizes).sum(axis=1))
