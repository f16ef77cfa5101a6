"""Tables of flows between numbered places, and how flows are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from odkanon.core.arrays import Bools, Codes, Ints, Merged, group_keys, group_runs, group_sum, merge_keys
from odkanon.model.measures import BY_CONTRIBUTOR, MeasureColumns


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contributors of each flow: distinct combinations of a flow and a contributor (a person or household)."""

    flow: Codes
    contributor: Codes
    """Row of the flow and number of the contributor; each combination occurs once."""
    people: int
    """An upper bound of the numbers of contributors."""
    masses: Mapping[str, Ints] = field(default_factory=dict)
    """For additive measures, the mass of each contributor in the flow; empty if not needed."""

    def relabel(self, new_flow: Codes, flows: int) -> Contributions:
        """Return the contributions after flows have been renumbered and merged; number -1 drops a flow."""
        target = new_flow[self.flow]
        stays = target >= 0
        keys = target[stays].astype(np.int64) * self.people + self.contributor[stays]
        merged = merge_keys(keys, max(flows * self.people, 1), *(mass[stays] for mass in self.masses.values()))
        distinct = keys[merged.first]
        return Contributions(
            (distinct // self.people).astype(np.int32),
            (distinct % self.people).astype(np.int32),
            self.people,
            dict(zip(self.masses, merged.sums, strict=True)),
        )

    def counting(self, *measures: str) -> Contributions:
        """Return the contributions with some of their masses."""
        return replace(self, masses={name: self.masses[name] for name in measures})

    def joined(self, others: Contributions) -> Contributions:
        """Return these contributions and those of the same contributors to other flows."""
        return Contributions(
            np.concatenate([self.flow, others.flow]),
            np.concatenate([self.contributor, others.contributor]),
            self.people,
            {name: np.concatenate([mass, others.masses[name]]) for name, mass in self.masses.items()},
        )

    def largest(self, measure: str, totals: Ints) -> Ints:
        """Return an upper bound of the largest contribution to each flow, given the ``totals`` of the flows.

        Mass without a known contributor may be that of the largest one.
        """
        mass = self.masses[measure]
        most = np.zeros(len(totals), dtype=np.int64)
        np.maximum.at(most, self.flow, mass)
        return most + totals - group_sum(self.flow, len(totals), mass)


def record_contributions(
    contributors: Mapping[str, Codes], masses: Mapping[str, Ints] | None = None
) -> dict[str, Contributions]:
    """Return the contributions to records, given the contributor of each (-1 for none) and the masses of records."""
    contributions = {}
    for name, contributor in contributors.items():
        known = np.flatnonzero(contributor >= 0).astype(np.int32)
        own = {measure: mass[known] for measure, mass in (masses or {}).items()}
        contributions[name] = Contributions(known, contributor[known], max(int(contributor.max(initial=0)) + 1, 1), own)
    return contributions


@dataclass(frozen=True)
class Totals:
    """Totals of some flows; ``weight_units`` in units of ``1 / scale``, None without weights."""

    pairs: int = 0
    trips: int = 0
    weight_units: int | None = None

    def __add__(self, other: Totals) -> Totals:
        own, others = self.weight_units, other.weight_units
        weight = None if own is None or others is None else own + others
        return Totals(self.pairs + other.pairs, self.trips + other.trips, weight)

    def __sub__(self, other: Totals) -> Totals:
        weight = None if other.weight_units is None else -other.weight_units
        return self + Totals(-other.pairs, -other.trips, weight)


@dataclass(frozen=True, eq=False)
class Flows(MeasureColumns):
    """Flows between numbered places, with their masses."""

    origin: Codes
    destination: Codes
    """Numbers of the places."""
    pairs: Ints
    """Number of OD pairs of the input in each flow; empty if not needed."""
    trips: Ints
    """Number of trips."""
    weight_units: Ints | None = None
    """Sum of weights, in units of ``1 / scale``. Integers make sums exact and independent of row order."""
    contributions: Mapping[str, Contributions] = field(default_factory=dict)
    """The contributors, for each measure whose contributors the input identifies."""
    scale: int = 1
    """Units per unit of weight."""
    contributor_counts: Mapping[str, Ints] = field(default_factory=dict)
    """Number of distinct contributors of each flow, if an engine has counted them elsewhere."""
    attributes: tuple[Codes, ...] = ()
    """For each attribute of a cube, the codes of the values; merged flows have none."""

    def __len__(self) -> int:
        return len(self.trips)

    @cached_property
    def contributors(self) -> Mapping[str, Ints]:
        """Number of distinct contributors of each flow, by measure."""
        counted = {
            name: np.bincount(contributions.flow, minlength=len(self)).astype(np.int64)
            for name, contributions in self.contributions.items()
        }
        return {**self.contributor_counts, **counted}

    def totals(self, which: Bools | None = None) -> Totals:
        """Return the totals of all or some of the flows."""
        keep = slice(None) if which is None else which
        weight = None if self.weight_units is None else int(self.weight_units[keep].sum())
        return Totals(int(self.pairs[keep].sum()), int(self.trips[keep].sum()), weight)

    def only(self, measures: frozenset[str]) -> Flows:
        """Return the flows with trips and the given ``measures``."""
        return replace(
            self,
            weight_units=self.weight_units if "weight" in measures else None,
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
            None if self.weight_units is None else self.weight_units[keep],
            self._relabelled(number, kept),
            self.scale,
            attributes=tuple(code[keep] for code in self.attributes),
        )

    def between(self, first: int, last: int) -> Flows:
        """Return some adjacent flows, without contributors."""
        part = slice(first, last)
        weight = None if self.weight_units is None else self.weight_units[part]
        return Flows(
            self.origin[part], self.destination[part], self.pairs[part], self.trips[part], weight, scale=self.scale
        )

    def merge(self, origin: Codes, destination: Codes) -> tuple[Flows, Codes]:
        """Return flows merged by their new places, sorted by origin and destination, and the new row of each old flow.

        * ``origin``, ``destination``: for each flow, the numbers of its new places.
        """
        width, height = int(destination.max(initial=0)) + 1, int(origin.max(initial=0)) + 1
        merged = merge_keys(origin.astype(np.int64) * width + destination, height * width, *self._additive)
        return self._merged(merged, origin, destination), merged.number

    def merge_attributes(self) -> Flows:
        """Return flows merged by places and attributes."""
        number = np.zeros(len(self), dtype=np.int64)
        for code in (self.origin, self.destination, *self.attributes):
            number = group_keys(number * (int(code.max(initial=0)) + 1) + code, 2**62).number.astype(np.int64)
        merged = merge_keys(number, len(self) + 1, *self._additive)
        flows = self._merged(merged, self.origin, self.destination)
        return replace(flows, attributes=tuple(code[merged.first] for code in self.attributes))

    def merge_destinations(self, parent: Codes) -> tuple[Flows, Codes]:
        """Return sorted flows with destinations merged into their parents, which have the same order; see `merge`."""
        destination = parent[self.destination]
        opens = np.ones(len(self), dtype=bool)
        opens[1:] = (self.origin[1:] != self.origin[:-1]) | (destination[1:] != destination[:-1])
        merged = group_runs(opens).merge(*self._additive)
        return self._merged(merged, self.origin, destination), merged.number

    @property
    def _additive(self) -> tuple[Ints, ...]:
        """The columns that add up when flows are merged."""
        masses = (self.pairs, self.trips)
        return masses if self.weight_units is None else (*masses, self.weight_units)

    def _merged(self, merged: Merged, origin: Codes, destination: Codes) -> Flows:
        pairs, trips, *weight = merged.sums
        return Flows(
            origin[merged.first].astype(np.int32, copy=False),
            destination[merged.first].astype(np.int32, copy=False),
            pairs,
            trips,
            weight[0] if weight else None,
            self._relabelled(merged.number, merged.count),
            self.scale,
        )

    def _relabelled(self, number: Codes, count: int) -> dict[str, Contributions]:
        return {name: contributions.relabel(number, count) for name, contributions in self.contributions.items()}
