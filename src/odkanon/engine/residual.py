"""What a cascade asks of the data: the groups of a rung that are large enough, and what is left without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from odkanon.core.arrays import Codes, Ints, group_keys, group_sum
from odkanon.model.flows import Contributions, Flows, Totals
from odkanon.model.measures import MeasureColumns


@dataclass(frozen=True, eq=False)
class Groups(MeasureColumns):
    """Groups of trips between nodes, one node an axis.

    Attributes
    ----------
    codes : tuple of array of int
        For each axis, the numbers of the nodes.
    pairs : array of int
        How many OD pairs of the input are counted in each.
    trips : array of int
        Number of trips.
    weight : array of int or None
        Sum of weights, in units of ``1 / scale``.
    contributors : mapping of str to array of int
        Number of distinct contributors, for each measure that counts them.
    """

    codes: tuple[Ints, ...]
    pairs: Ints
    trips: Ints
    weight: Ints | None
    contributors: Mapping[str, Ints]
    scale: int

    def take(self, which: Ints) -> Groups:
        """Return some of the groups."""
        return replace(
            self,
            codes=tuple(code[which] for code in self.codes),
            pairs=self.pairs[which],
            trips=self.trips[which],
            weight=None if self.weight is None else self.weight[which],
            contributors={name: count[which] for name, count in self.contributors.items()},
        )


class Residual(Protocol):
    """What is left of a matrix on its way up a ladder, grouped by the nodes of a rung."""

    def lift(self, axis: int, parent: Ints, nodes: int) -> Residual:
        """Return the rest grouped by the parents on one axis; ``nodes`` is how many parents there are."""
        ...

    def at_least(self, trips: int) -> Groups:
        """Return the groups with at least so many trips, sorted by their codes."""
        ...

    def without(self, taken: Groups, rows: Ints, left: Groups, reassigned: str | None) -> Residual:
        """Return what is left when groups go.

        ``rows`` numbers them; ``left`` is what of each goes on, if anything: trips of the contributors of one
        measure, as `deal` chooses them, and of nobody in particular for the others.
        """
        ...

    def totals(self) -> Totals:
        """Return what is left in all."""
        ...


@dataclass(frozen=True, eq=False)
class MemoryResidual:
    """What is left, in memory.

    Attributes
    ----------
    nodes : tuple of int
        For each axis, how many nodes there are.
    groups : Groups
        Sorted by their codes; without contributors.
    contributions : mapping of str to Visits
        Who takes part in which group and with how many trips, for each measure that counts contributors.
    pair, group : array of int
        The OD pairs that lie in no row yet, and the group of each.
    placed : tuple of pairs of array
        OD pairs and the rows that they lie in.
    """

    nodes: tuple[int, ...]
    groups: Groups
    contributions: Mapping[str, Contributions]
    pair: Codes
    group: Codes
    placed: tuple[tuple[Codes, Ints], ...] = ()

    def lift(self, axis: int, parent: Ints, nodes: int) -> MemoryResidual:
        """Return the rest grouped by the parents on one axis."""
        old = self.groups
        codes = tuple(parent[code] if at == axis else code for at, code in enumerate(old.codes))
        radix = tuple(nodes if at == axis else count for at, count in enumerate(self.nodes))
        found = group_keys(keys_of(codes, radix), int(np.prod(radix, dtype=object)))
        first = found.first()
        contributions = {name: who.relabel(found.number, found.count) for name, who in self.contributions.items()}
        groups = Groups(
            tuple(code[first] for code in codes),
            found.sum(old.pairs),
            found.sum(old.trips),
            None if old.weight is None else found.sum(old.weight),
            {},
            old.scale,
        )
        return replace(self, nodes=radix, groups=groups, contributions=contributions, group=found.number[self.group])

    def at_least(self, trips: int) -> Groups:
        """Return the groups with at least so many trips."""
        contributors = {
            name: np.bincount(who.flow, minlength=len(self.groups.trips)) for name, who in self.contributions.items()
        }
        return replace(self.groups, contributors=contributors).take(np.flatnonzero(self.groups.trips >= trips))

    def without(self, taken: Groups, rows: Ints, left: Groups, reassigned: str | None) -> MemoryResidual:
        """Return what is left when groups go."""
        groups = self.groups
        at = np.searchsorted(keys_of(groups.codes, self.nodes), keys_of(taken.codes, self.nodes))
        row = np.full(len(groups.trips), -1, dtype=np.int64)
        row[at] = rows
        stays = row < 0
        stays[at] = left.trips > 0
        number = np.where(stays, np.cumsum(stays) - 1, -1).astype(np.int32)
        row_of_pair = row[self.group]
        pending = row_of_pair < 0
        who = np.where(row < 0, number, -1).astype(np.int32)
        weight = None if groups.weight is None or left.weight is None else _put(groups.weight, at, left.weight)
        residual = Groups(
            groups.codes,
            _put(groups.pairs, at, left.pairs),
            _put(groups.trips, at, left.trips),
            weight,
            {},
            groups.scale,
        )
        contributions = {name: each.relabel(who, int(stays.sum())) for name, each in self.contributions.items()}
        if reassigned is not None and left.trips.any():
            here = np.full(len(groups.trips), -1, dtype=np.int32)
            here[at] = np.arange(len(at))
            own = self.contributions[reassigned].relabel(here, len(at))
            gone = deal(own, taken.trips, left.trips)
            leaves = gone > 0
            leaving = Contributions(
                number[at][own.flow][leaves], own.contributor[leaves], own.people, {"trips": gone[leaves]}
            )
            contributions[reassigned] = contributions[reassigned].joined(leaving)
        return MemoryResidual(
            self.nodes,
            residual.take(np.flatnonzero(stays)),
            contributions,
            self.pair[pending],
            number[self.group[pending]],
            (*self.placed, (self.pair[~pending], row_of_pair[~pending])),
        )

    def totals(self) -> Totals:
        """Return what is left in all."""
        weight = None if self.groups.weight is None else int(self.groups.weight.sum())
        return Totals(int(self.groups.pairs.sum()), int(self.groups.trips.sum()), weight)

    def areas(self, pairs: int) -> Codes:
        """Return for each of all OD pairs the row that it lies in, -1 for none."""
        area = np.full(pairs, -1, dtype=np.int32)
        for pair, row in self.placed:
            area[pair] = row
        return area


def memory_residual(
    flows: Flows, nodes: Sequence[int], contributors: Collection[str], *, placing: bool = True
) -> MemoryResidual:
    """Return all of some flows between leaves, of which some contributors are counted.

    ``placing`` says whether to remember of each OD pair in which row it lies.
    """
    codes = tuple(code.astype(np.int64) for code in (flows.origin, flows.destination, *flows.attributes))
    contributions = {name: who.counting("trips") for name, who in flows.contributions.items() if name in contributors}
    groups = Groups(codes, flows.pairs, flows.trips, flows.weight, {}, flows.scale)
    every = np.arange(len(flows) if placing else 0, dtype=np.int32)
    return MemoryResidual(tuple(nodes), groups, contributions, every, every)


def deal(contributions: Contributions, trips: Ints, leave: Ints) -> Ints:
    """Choose whose trips leave their groups, so that as many contributors as possible both stay and leave.

    First go the trips of nobody, then one of each contributor that has others, then the others of them, and only then
    the last trip of a contributor; contributors go in their order.

    Parameters
    ----------
    contributions : Visits
        Who takes part in which group, in the order of groups and contributors, with how many trips.
    trips, leave : array of int
        How many trips each group has, and how many of them leave.

    Returns
    -------
    array of int
        How many trips of each visit leave.
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


def keys_of(codes: Sequence[Ints], nodes: Sequence[int]) -> Ints:
    """Return one number for each combination of nodes, in the order of their codes."""
    key = codes[0]
    for code, count in zip(codes[1:], nodes[1:], strict=True):
        key = key * count + code
    return key


def codes_of(keys: Ints, nodes: Sequence[int]) -> tuple[Ints, ...]:
    """Return the codes that numbers of combinations stand for; see `keys_of`."""
    codes = []
    for count in reversed(nodes[1:]):
        codes.append(keys % count)
        keys = keys // count
    return (keys, *reversed(codes))


def _put(values: Ints, at: Ints, new: Ints) -> Ints:
    changed = values.copy()
    changed[at] = new
    return changed
