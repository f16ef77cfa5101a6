"""Every class that could be published: the flows between any two nodes of the trees that meet the rule.

Zones of cuts are nodes, so a pair of cuts publishes some of these classes and suppresses all other trips. Classes that
meet the rule are few compared with all flows, which would have to be merged again for every pair of cuts. They are
computed once, for all pairs of levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Codes, Ints, spans
from odkanon.methods.treecut.dp import COLUMNS, LOSS, SPENT, Floats, Problem
from odkanon.model.flows import Flows
from odkanon.model.measures import exact_masses
from odkanon.model.od import AXES, Axis


@dataclass(frozen=True, eq=False)
class ClassesByNode:
    """The classes as seen from one axis."""

    node: Codes
    """For each class, the number of its node among those of all levels."""
    order: Ints
    first: Ints
    """The classes sorted by node, and the position of the first of each node."""
    suppressed: Floats
    """The contribution of a node without published classes, of shape (columns, nodes)."""

    def classes_at(self, nodes: Ints) -> Ints:
        """Return the classes at some nodes."""
        return self.order[spans(self.first[nodes], self.first[nodes + 1])]


@dataclass(frozen=True, eq=False)
class Good:
    """All classes between two nodes that meet the rule, at any levels."""

    columns: Floats
    """The change in `odkanon.methods.treecut.dp.COLUMNS` when a class is published instead of suppressed, of shape
    (columns, classes)."""
    sides: tuple[ClassesByNode, ClassesByNode]


def good_classes(problem: Problem) -> Good:
    """Return all classes between two nodes that meet the rule."""
    origins, destinations = problem.od.origins, problem.od.destinations
    pairs = problem.flows("origin")
    rows = _Classes.of(problem, pairs)
    found = []
    for level in range(origins.top + 1):
        if level:
            rows = rows.lift(origins.codes[level][origins.starts[level - 1]][rows.flows.origin])
        classes = rows
        for partner in range(destinations.top + 1):
            if partner:
                classes = classes.lift_destinations(destinations.codes[partner][destinations.starts[partner - 1]])
            found.append(classes.good(level, partner))
    columns = np.concatenate([each[2] for each in found], axis=1)
    sides = [_side(problem, axis, np.concatenate([each[at] for each in found])) for at, axis in enumerate(AXES)]
    return Good(columns, (sides[0], sides[1]))


def _side(problem: Problem, axis: Axis, node: Codes) -> ClassesByNode:
    count = np.bincount(node, minlength=problem.od.tree(axis).offsets[-1])
    first = np.concatenate([[0], np.cumsum(count)])
    return ClassesByNode(node, np.argsort(node, kind="stable"), first, _suppressed(problem, axis))


def _suppressed(problem: Problem, axis: Axis) -> Floats:
    """Return the contribution of each node of an axis if nothing of it is published."""
    tree, pairs = problem.od.tree(axis), problem.od.flows
    columns = np.zeros((len(COLUMNS), tree.offsets[-1]))
    added = {SPENT: problem.budget.cost(pairs)}
    if problem.with_loss:
        added[LOSS] = exact_masses(pairs, problem.measure)
    for column, values in added.items():
        leaves = np.bincount(getattr(pairs, axis), values, len(tree.leaves))
        columns[column] = np.concatenate([np.add.reduceat(leaves, starts) for starts in tree.starts])
    return columns


@dataclass(frozen=True, eq=False)
class _Classes:
    """Flows between the nodes of two levels."""

    problem: Problem
    pairs: Flows
    """The OD pairs that were merged."""
    flows: Flows
    """The classes."""
    class_of_pair: Codes | None
    """For each pair the number of its class, if E is computed."""

    @classmethod
    def of(cls, problem: Problem, pairs: Flows) -> _Classes:
        flows, number = pairs.merge(pairs.origin, pairs.destination)
        return cls(problem, pairs, flows, number if problem.with_loss else None)

    def lift(self, origin: Codes) -> _Classes:
        """Return the classes between coarser origins, given for each class."""
        return self._merged(*self.flows.merge(origin, self.flows.destination))

    def lift_destinations(self, parent: Codes) -> _Classes:
        """Return the classes between coarser destinations, given for each destination."""
        return self._merged(*self.flows.merge_destinations(parent))

    def _merged(self, flows: Flows, number: Codes) -> _Classes:
        follow = None if self.class_of_pair is None else number[self.class_of_pair]
        return replace(self, flows=flows, class_of_pair=follow)

    def good(self, level: int, partner: int) -> tuple[Codes, Codes, Floats]:
        """Return the nodes and columns of the classes that meet the rule; see `Good`."""
        problem = self.problem
        which = np.flatnonzero(problem.rule.satisfied(self.flows))
        origin, destination = self.flows.origin[which], self.flows.destination[which]
        size = problem.sizes("origin", level)[origin]
        partner_size = problem.sizes("destination", partner)[destination]
        mass = exact_masses(self.flows, problem.measure)[which].astype(np.float64)
        columns = np.stack(
            [
                mass * (size + partner_size),
                mass,
                -problem.budget.cost(self.flows)[which].astype(np.float64),
                np.ones(len(which)),
                self._losses(which, size * partner_size) - mass if problem.with_loss else np.zeros(len(which)),
            ]
        )
        offsets = problem.od.origins.offsets[level], problem.od.destinations.offsets[partner]
        return origin + np.int32(offsets[0]), destination + np.int32(offsets[1]), columns

    def _losses(self, which: Ints, leaf_pairs: Ints) -> Floats:
        """Return the contribution of some classes, when published, to the sum of E."""
        assert self.class_of_pair is not None
        value = exact_masses(self.pairs, self.problem.measure).astype(np.float64)
        spread = np.zeros(len(self.flows))
        spread[which] = exact_masses(self.flows, self.problem.measure)[which] / leaf_pairs
        off = np.abs(spread[self.class_of_pair] - value)
        total = np.bincount(self.class_of_pair, weights=off, minlength=len(self.flows))[which]
        return np.asarray(total + (leaf_pairs - self.flows.pairs[which]) * spread[which])
