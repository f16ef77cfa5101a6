"""Tables of flows between numbered places, and the one way in which flows are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Codes, Groups, Ints, group_keys, group_sum, neighbours
from odkanon.model.measures import BY_CONTRIBUTOR, MeasureColumns


@dataclass(frozen=True, eq=False)
class Contributions:
    """Who takes part in which flow: distinct (flow, head) combinations; a head is a person or a household.

    Attributes
    ----------
    flow, head : array of int
        Row of the flow and number of the head, without repetition.
    people : int
        How many heads there are in all; their numbers are below it.
    masses : mapping of str to array of int
        By measure that adds up, how much of the flow is of that head; empty where that is not kept.
    """

    flow: Codes
    contributor: Codes
    people: int
    masses: Mapping[str, Ints] = field(default_factory=dict)

    def relabel(self, new_flow: Codes, flows: int) -> Contributions:
        """Return who takes part after flows have been merged; flow number -1 drops a flow."""
        target = new_flow[self.flow]
        stays = target >= 0
        keys = target[stays].astype(np.int64) * self.people + self.contributor[stays]
        groups = group_keys(keys, max(flows * self.people, 1))
        distinct = keys[groups.first()]
        return Contributions(
            (distinct // self.people).astype(np.int32),
            (distinct % self.people).astype(np.int32),
            self.people,
            {name: groups.sum(mass[stays]) for name, mass in self.masses.items()},
        )

    def counting(self, *measures: str) -> Contributions:
        """Return the same with some of the masses alone."""
        return replace(self, masses={name: self.masses[name] for name in measures})

    def joined(self, others: Contributions) -> Contributions:
        """Return these visits and those of the same heads to other flows."""
        return Contributions(
            np.concatenate([self.flow, others.flow]),
            np.concatenate([self.contributor, others.contributor]),
            self.people,
            {name: np.concatenate([mass, others.masses[name]]) for name, mass in self.masses.items()},
        )

    def largest(self, measure: str, totals: Ints) -> Ints:
        """Return the most of each flow that can be of one head; ``totals`` is what the flows have in all.

        Nobody knows whose the rest is that names no head: it may be of the head that has most.
        """
        mass = self.masses[measure]
        most = np.zeros(len(totals), dtype=np.int64)
        np.maximum.at(most, self.flow, mass)
        return most + totals - group_sum(self.flow, len(totals), mass)


def contributions_of_records(
    contributors: Mapping[str, Codes], masses: Mapping[str, Ints] | None = None
) -> dict[str, Contributions]:
    """Return who takes part in which record, given the head of each (-1 is nobody) and what each record has."""
    contributions = {}
    for name, contributor in contributors.items():
        known = np.flatnonzero(contributor >= 0).astype(np.int32)
        own = {measure: mass[known] for measure, mass in (masses or {}).items()}
        contributions[name] = Contributions(known, contributor[known], max(int(contributor.max(initial=0)) + 1, 1), own)
    return contributions


@dataclass(frozen=True)
class Totals:
    """What some flows add up to; weight in units of ``1 / scale``, None where there is none."""

    pairs: int = 0
    trips: int = 0
    weight: int | None = None

    def __add__(self, other: Totals) -> Totals:
        weight = None if self.weight is None or other.weight is None else self.weight + other.weight
        return Totals(self.pairs + other.pairs, self.trips + other.trips, weight)

    def __sub__(self, other: Totals) -> Totals:
        weight = None if self.weight is None or other.weight is None else self.weight - other.weight
        return Totals(self.pairs - other.pairs, self.trips - other.trips, weight)


@dataclass(frozen=True, eq=False)
class Flows(MeasureColumns):
    """Flows between numbered places, with all that is counted of them.

    Attributes
    ----------
    origin, destination : array of int
        Numbers of the places.
    pairs : array of int
        How many OD pairs of the input each flow stands for; empty where that is not counted.
    trips : array of int
        Number of trips.
    weight : array of int or None
        Sum of weights, in units of ``1 / scale``. Integers make sums exact and independent of row order.
    contributions : mapping of str to Visits
        Who takes part, for each measure that counts heads and that the input names.
    scale : int
        Units of weight in one.
    contributor_counts : mapping of str to array of int
        Number of distinct heads of each flow, where an engine has counted them and keeps who they are.
    attributes : tuple of array of int
        For each axis besides the two places, the numbers of the values; merged flows are of any kind.
    """

    origin: Codes
    destination: Codes
    pairs: Ints
    trips: Ints
    weight: Ints | None = None
    contributions: Mapping[str, Contributions] = field(default_factory=dict)
    scale: int = 1
    contributor_counts: Mapping[str, Ints] = field(default_factory=dict)
    attributes: tuple[Codes, ...] = ()

    def __len__(self) -> int:
        return len(self.trips)

    @cached_property
    def contributors(self) -> Mapping[str, Ints]:
        """Number of distinct heads of each flow, by measure."""
        counted = {
            name: np.bincount(contributions.flow, minlength=len(self)).astype(np.int64)
            for name, contributions in self.contributions.items()
        }
        return {**self.contributor_counts, **counted}

    def totals(self, which: Bools | None = None) -> Totals:
        """Return what (some of) the flows add up to."""
        keep = slice(None) if which is None else which
        weight = None if self.weight is None else int(self.weight[keep].sum())
        return Totals(int(self.pairs[keep].sum()), int(self.trips[keep].sum()), weight)

    def only(self, measures: frozenset[str]) -> Flows:
        """Return the same flows without what is not among ``measures`` (trips always stay)."""
        return replace(
            self,
            weight=self.weight if "weight" in measures else None,
            contributions={
                name: contributions if BY_CONTRIBUTOR in measures else replace(contributions, masses={})
                for name, contributions in self.contributions.items()
                if name in measures
            },
        )

    def take(self, keep: Bools) -> Flows:
        """Return some of the flows."""
        number = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        kept = int(np.count_nonzero(keep))
        return Flows(
            self.origin[keep],
            self.destination[keep],
            self.pairs[keep],
            self.trips[keep],
            None if self.weight is None else self.weight[keep],
            self._relabelled(number, kept),
            self.scale,
            attributes=tuple(kind[keep] for kind in self.attributes),
        )

    def merge(self, origin: Codes, destination: Codes) -> tuple[Flows, Codes]:
        """Merge all flows that get the same new (origin, destination).

        Parameters
        ----------
        origin, destination : array of int
            For each flow, the numbers of its new places.

        Returns
        -------
        merged : Flows
            Sorted by (origin, destination).
        number : array of int
            For each old flow, the row of the flow it went into.
        """
        width = int(destination.max(initial=0)) + 1
        height = int(origin.max(initial=0)) + 1
        groups = group_keys(origin.astype(np.int64) * width + destination, height * width)
        return self._merged(groups, origin, destination), groups.number

    def merge_attributes(self) -> Flows:
        """Merge all flows between the same places that are of the same kind."""
        number = np.zeros(len(self), dtype=np.int64)
        for code in (self.origin, self.destination, *self.attributes):
            number = group_keys(number * (int(code.max(initial=0)) + 1) + code, 2**62).number.astype(np.int64)
        groups = group_keys(number, len(self) + 1)
        merged = self._merged(groups, self.origin, self.destination)
        return replace(merged, attributes=tuple(kind[groups.first()] for kind in self.attributes))

    def merge_destinations(self, parent: Codes) -> tuple[Flows, Codes]:
        """Merge the destinations of sorted flows into parents, whose numbers rise with theirs; see `merge`."""
        destination = parent[self.destination]
        opens = np.ones(len(self), dtype=bool)
        opens[1:] = (self.origin[1:] != self.origin[:-1]) | (destination[1:] != destination[:-1])
        groups = neighbours(opens)
        return self._merged(groups, self.origin, destination), groups.number

    def _merged(self, groups: Groups, origin: Codes, destination: Codes) -> Flows:
        first = groups.first()
        return Flows(
            origin[first].astype(np.int32, copy=False),
            destination[first].astype(np.int32, copy=False),
            groups.sum(self.pairs),
            groups.sum(self.trips),
            None if self.weight is None else groups.sum(self.weight),
            self._relabelled(groups.number, groups.count),
            self.scale,
        )

    def _relabelled(self, number: Codes, count: int) -> dict[str, Contributions]:
        return {name: contributions.relabel(number, count) for name, contributions in self.contributions.items()}
