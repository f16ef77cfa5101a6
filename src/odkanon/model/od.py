"""The OD matrix: pairs of leaves with their trips, weights and persons, over two hierarchies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints, group_sum, number_groups
from odkanon.errors import InputError
from odkanon.model.flows import Flows, Visits
from odkanon.model.rule import MEASURES, Measure, Rule
from odkanon.zoning.hierarchy import Hierarchy

if TYPE_CHECKING:
    from odkanon.engine.memory import MemoryWorkspace
    from odkanon.quality.limit.reach import Spread

Axis = Literal["origin", "destination"]
AXES: tuple[Axis, Axis] = ("origin", "destination")


@dataclass(frozen=True)
class Rejected:
    """What was turned away for one reason; weight in units of ``1 / scale``, as far as it could be read."""

    rows: int
    trips: int
    weight: int = 0


@dataclass(frozen=True)
class Source:
    """Where a matrix comes from.

    Attributes
    ----------
    rows : int
        Rows of the input, good and bad.
    sha256 : str or None
        Of the input file.
    rejected : mapping of str to Rejected
        What was turned away, by reason.
    """

    rows: int
    sha256: str | None = None
    rejected: Mapping[str, Rejected] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """What a release needs to know of its input, wherever the pairs are.

    Attributes
    ----------
    pairs, trips : int
        Number of OD pairs and of trips.
    weight : int or None
        Sum of weights, in units of ``1 / scale``; None where trips have none.
    persons : int or None
        Number of distinct persons; None where nobody is named.
    scale : int
        Units of weight in one.
    source : Source
        Where it comes from, and what was rejected on the way.
    """

    pairs: int
    trips: int
    weight: int | None
    persons: int | None
    scale: int
    source: Source

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the input lets us count."""
        return tuple(measure for measure in MEASURES if getattr(self, measure) is not None)

    @property
    def mean_weight(self) -> Fraction:
        """Exact mean weight of a trip."""
        if self.weight is None or self.trips == 0:
            raise InputError(
                "the population can only be protected where trips have a weight; name it with --column weight=NAME"
            )
        return Fraction(self.weight, self.trips * self.scale)


@dataclass(frozen=True, eq=False)
class ODMatrix:
    """Origin-destination pairs of leaves with all that is counted of them.

    Attributes
    ----------
    origins, destinations : Hierarchy
        The trees over the observed leaves of each axis.
    flows : Flows
        One row for each OD pair, sorted; places are numbers of leaves.
    source : Source
        Where it comes from, and what was rejected on the way.
    """

    origins: Hierarchy
    destinations: Hierarchy
    flows: Flows
    source: Source

    def __len__(self) -> int:
        return len(self.flows)

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy of an axis."""
        return self.origins if axis == "origin" else self.destinations

    @cached_property
    def trips(self) -> int:
        """Number of trips."""
        return int(self.flows.trips.sum())

    @cached_property
    def weight(self) -> int | None:
        """Sum of weights, in units of ``1 / flows.scale``."""
        return None if self.flows.weight is None else int(self.flows.weight.sum())

    @cached_property
    def persons(self) -> int | None:
        """Number of distinct persons."""
        visits = self.flows.visits
        return None if visits is None else len(np.unique(visits.person))

    @cached_property
    def summary(self) -> Summary:
        """The totals, and where they come from."""
        return Summary(len(self), self.trips, self.weight, self.persons, self.flows.scale, self.source)

    @property
    def mean_weight(self) -> Fraction:
        """Exact mean weight of a trip."""
        return self.summary.mean_weight

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the input lets us count."""
        return self.summary.measures

    def node_masses(self, axis: Axis, measure: Measure) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        tree, leaf = self.tree(axis), getattr(self.flows, axis)
        if measure == "persons":
            return tuple(
                self._persons_by_node(codes[leaf], len(ids)) for codes, ids in zip(tree.codes, tree.ids, strict=True)
            )
        leaf_mass = group_sum(leaf, len(tree.leaves), getattr(self.flows, measure))
        return tuple(np.add.reduceat(leaf_mass, starts) for starts in tree.starts)

    def _persons_by_node(self, node_of_pair: Codes, nodes: int) -> Ints:
        assert self.flows.visits is not None
        return np.bincount(self.flows.visits.relabel(node_of_pair, nodes).flow, minlength=nodes).astype(np.int64)

    def take(self, keep: Bools) -> ODMatrix:
        """Return the matrix of some of the pairs, over the leaves that still occur."""
        flows = self.flows.take(keep)
        origins, flow_origin = _observed(self.origins, flows.origin)
        destinations, flow_destination = _observed(self.destinations, flows.destination)
        kept = Flows(flow_origin, flow_destination, flows.pairs, flows.trips, flows.weight, flows.visits, flows.scale)
        return ODMatrix(origins, destinations, kept, self.source)

    def in_memory(self) -> ODMatrix:
        """Return the matrix itself: its pairs are in memory."""
        return self

    def workspace(self) -> MemoryWorkspace:
        """Return the place to work on the matrix."""
        from odkanon.engine.memory import MemoryWorkspace

        return MemoryWorkspace.of(self)

    def reach(self, rule: Rule) -> tuple[Spread, Spread]:
        """Return how the least prices of the pairs are spread, and the masses of their smallest classes."""
        from odkanon.quality.limit.reach import reach_of

        return reach_of(self, rule)

    def __repr__(self) -> str:
        parts = [f"{len(self):,} pairs", f"{self.trips:,} trips"]
        if self.weight is not None:
            parts.append(f"weight {self.weight / self.flows.scale:,.10g}")
        if self.persons is not None:
            parts.append(f"{self.persons:,} persons")
        leaves = f"{len(self.origins.leaves):,} origin x {len(self.destinations.leaves):,} destination leaves"
        return f"ODMatrix({', '.join(parts)}; {leaves})"

    def _repr_html_(self) -> str:
        from odkanon.publish.notebook import od_html

        return od_html(self)


def od_matrix(
    origins: Hierarchy,
    destinations: Hierarchy,
    origin: Codes,
    destination: Codes,
    *,
    trips: Ints | None = None,
    weight: Ints | None = None,
    scale: int = 1,
    person: Codes | None = None,
    source: Source,
) -> ODMatrix:
    """Return the matrix of numbered records; records of the same pair are added up.

    Parameters
    ----------
    origins, destinations : Hierarchy
        Trees over (at least) the leaves that occur; leaves that do not are dropped.
    origin, destination : array of int
        For each record, the numbers of its leaves.
    trips : array of int, optional
        Trips of each record; one each by default.
    weight : array of int, optional
        Weight of each record, in units of ``1 / scale``.
    person : array of int, optional
        Number of the person of each record; -1 where unknown, which counts as nobody.
    """
    count = len(origin)
    visits = None
    if person is not None:
        known = person >= 0
        visits = Visits(np.flatnonzero(known).astype(np.int32), person[known], max(int(person.max(initial=0)) + 1, 1))
    origins, origin = _observed(origins, origin)
    destinations, destination = _observed(destinations, destination)
    ones = np.ones(count, dtype=np.int64)
    records = Flows(origin, destination, ones, ones if trips is None else trips, weight, visits, scale)
    flows, _ = records.merge(origin, destination)
    flows = Flows(
        flows.origin,
        flows.destination,
        np.ones_like(flows.pairs),
        flows.trips,
        flows.weight,
        flows.visits,
        scale,
    )
    return ODMatrix(origins, destinations, flows, source)


def _observed(tree: Hierarchy, leaf: Codes) -> tuple[Hierarchy, Codes]:
    seen, number = number_groups(leaf.astype(np.int64), len(tree.leaves))
    if len(seen) == len(tree.leaves):
        return tree, leaf
    keep = np.zeros(len(tree.leaves), dtype=bool)
    keep[seen] = True
    return tree.restrict(keep), number
