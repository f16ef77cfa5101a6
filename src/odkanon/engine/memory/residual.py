"""The residual of a cascade in memory: what is left at each rung."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odkanon.core.arrays import Codes, Ints, group_keys, group_sum
from odkanon.engine.node_flows import NodeFlows, codes_to_keys, key_space
from odkanon.model.flows import Contributions, Flows, Totals


@dataclass(frozen=True, eq=False)
class MemoryResidual:
    """The residual, in memory."""

    nodes: tuple[int, ...]
    """For each axis, the number of nodes."""
    groups: NodeFlows
    """Sorted by their codes; without contributors."""
    contributions: Mapping[str, Contributions]
    """For each measure that counts contributors, their trips by group."""
    pair: Codes
    group: Codes
    """The OD pairs that lie in no row yet, and the group of each."""
    placed: tuple[tuple[Codes, Ints], ...] = ()
    """OD pairs and the rows that they lie in."""
    pairs: NodeFlows | None = None
    """All OD pairs, if they come from a database and were fetched one by one."""

    @classmethod
    def from_flows(
        cls, flows: Flows, nodes: Sequence[int], contributors: Collection[str], *, placing: bool = True
    ) -> MemoryResidual:
        """Return all of some flows between leaves; ``placing`` asks for the row of each OD pair."""
        codes = tuple(code.astype(np.int64) for code in (flows.origin, flows.destination, *flows.attributes))
        contributions = {
            name: each.counting("trips") for name, each in flows.contributions.items() if name in contributors
        }
        groups = NodeFlows(codes, flows.pairs, flows.trips, flows.weight_units, {}, flows.scale)
        every = np.arange(len(flows) if placing else 0, dtype=np.int32)
        return cls(tuple(nodes), groups, contributions, every, every)

    def lift(self, axis: int, parent: Ints, nodes: int) -> MemoryResidual:
        """Return the residual grouped by the parents on one axis."""
        old = self.groups
        codes = tuple(parent[code] if at == axis else code for at, code in enumerate(old.codes))
        radix = tuple(nodes if at == axis else count for at, count in enumerate(self.nodes))
        (keys,) = codes_to_keys(radix, codes)
        found = group_keys(keys, key_space(radix))
        first = found.first()
        contributions = {name: each.relabel(found.number, found.count) for name, each in self.contributions.items()}
        groups = old.with_masses(lambda name: found.sum(getattr(old, name)), codes=tuple(code[first] for code in codes))
        return replace(self, nodes=radix, groups=groups, contributions=contributions, group=found.number[self.group])

    def at_least(self, trips: int) -> NodeFlows:
        """Return the groups with at least this many trips."""
        contributors = {
            name: np.bincount(each.flow, minlength=len(self.groups.trips)) for name, each in self.contributions.items()
        }
        return replace(self.groups, contributors=contributors).take(np.flatnonzero(self.groups.trips >= trips))

    def without(self, taken: NodeFlows, rows: Ints, left: NodeFlows, reassigned: str | None) -> MemoryResidual:
        """Return the residual once some groups are listed."""
        groups = self.groups
        keys, wanted = codes_to_keys(self.nodes, groups.codes, taken.codes)
        at = np.searchsorted(keys, wanted)
        row = np.full(len(groups.trips), -1, dtype=np.int64)
        row[at] = rows
        stays = row < 0
        stays[at] = left.trips > 0
        number = np.where(stays, np.cumsum(stays) - 1, -1).astype(np.int32)
        row_of_pair = row[self.group]
        pending = row_of_pair < 0
        untouched = np.where(row < 0, number, -1).astype(np.int32)

        def without_listed(name: str) -> Ints:
            masses: Ints = getattr(groups, name).copy()
            masses[at] = getattr(left, name)
            return masses

        contributions = {name: each.relabel(untouched, int(stays.sum())) for name, each in self.contributions.items()}
        if reassigned is not None and left.trips.any():
            here = np.full(len(groups.trips), -1, dtype=np.int32)
            here[at] = np.arange(len(at))
            own = self.contributions[reassigned].relabel(here, len(at))
            trips = choose_leaving_trips(own, taken.trips, left.trips)
            leaves = trips > 0
            leaving = Contributions(
                number[at][own.flow][leaves], own.contributor[leaves], own.people, {"trips": trips[leaves]}
            )
            contributions[reassigned] = contributions[reassigned].joined(leaving)
        return MemoryResidual(
            self.nodes,
            groups.with_masses(without_listed).take(np.flatnonzero(stays)),
            contributions,
            self.pair[pending],
            number[self.group[pending]],
            (*self.placed, (self.pair[~pending], row_of_pair[~pending])),
            self.pairs,
        )

    def totals(self) -> Totals:
        """Return the total of the residual."""
        return self.groups.totals()

    def row_of_pair(self, pairs: int) -> Codes:
        """Return the row of each OD pair of the matrix; -1 for none."""
        row_of_pair = np.full(pairs, -1, dtype=np.int32)
        for pair, row in self.placed:
            row_of_pair[pair] = row
        return row_of_pair


def leave_out(flows: Flows, unit: str | None, share: float, random: np.random.Generator) -> tuple[Flows, Totals]:
    """Return flows without all trips of contributors drawn at random, and the total of these trips.

    * ``unit``: the measure that counts the contributors; trips without a contributor, or all trips if it is None, are
      drawn one by one.
    * ``share``: the probability that a contributor or trip is drawn.
    """
    trips, weight, contributions = np.zeros_like(flows.trips), np.zeros_like(flows.trips), dict(flows.contributions)
    nobody = flows.trips
    if unit is not None:
        own = flows.contributions[unit]
        leaves = (random.random(own.people) < share)[own.contributor]
        trips = group_sum(own.flow[leaves], len(flows), own.masses["trips"][leaves])
        nobody = flows.trips - group_sum(own.flow, len(flows), own.masses["trips"])
        if flows.weight_units is not None:
            weight = group_sum(own.flow[leaves], len(flows), own.masses["weight"][leaves])
        masses = {name: mass[~leaves] for name, mass in own.masses.items()}
        contributions[unit] = replace(own, flow=own.flow[~leaves], contributor=own.contributor[~leaves], masses=masses)
    drawn = random.binomial(nobody, share)
    trips = trips + drawn
    if flows.weight_units is None:
        return replace(flows, trips=flows.trips - trips, contributions=contributions), Totals(0, int(trips.sum()))
    # Trips drawn one by one have no weight of their own: they get the mean weight of their flow.
    weight = weight + (flows.weight_units - weight) // np.maximum(flows.trips - trips + drawn, 1) * drawn
    left = replace(
        flows, trips=flows.trips - trips, weight_units=flows.weight_units - weight, contributions=contributions
    )
    return left, Totals(0, int(trips.sum()), int(weight.sum()))


def choose_leaving_trips(contributions: Contributions, trips: Ints, leave: Ints) -> Ints:
    """Return how many trips of each contribution leave, such that as many contributors as possible are on both sides.

    Trips without a contributor leave first, then one trip of each contributor with several, then all others of these
    except one, and last the only remaining trip of a contributor. Contributors leave in ascending order.

    * ``contributions``: sorted by group and contributor, with trips.
    * ``trips``, ``leave``: for each group, its trips and the number of them that leave.
    """
    group, own = contributions.flow, contributions.masses["trips"]
    wanted = np.maximum(leave - (trips - group_sum(group, len(trips), own)), 0)
    first = np.searchsorted(group, group)
    gone = np.zeros_like(own)
    for ready in (np.minimum(own - 1, 1), np.maximum(own - 2, 0), np.ones_like(own)):
        before = np.cumsum(ready) - ready
        going = np.clip(wanted[group] - (before - before[first]), 0, ready)
        wanted = wanted - group_sum(group, len(trips), going)
        gone = gone + going
    return gone
