"""Noise: flows under differential privacy, the other promise.

Counts between public places get discrete Gaussian noise (`mechanism`), are joined to one estimate of all flows
(`joined_flows`), and published as nested rows: each estimates the trips from its origin to its destination that are
not between the zones of a finer row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from odkanon.attributes.spec import ANY
from odkanon.core.arrays import Ints, group_sum
from odkanon.errors import InputError
from odkanon.methods.noise.joined_flows import join_counts, value_shares
from odkanon.methods.noise.mechanism import (
    ATTRIBUTE_SHARE,
    SHARES,
    NoisePromise,
    PersonTrips,
    PrivacyUnit,
    Query,
    add_noise,
    count_queries,
    keep_trips,
)
from odkanon.methods.noise.noisy_rows import NoisyRows, first_level, list_rows
from odkanon.methods.noise.public_places import PublicPlaces, check_public_values, public_places, value_numbers
from odkanon.model.flows import Totals
from odkanon.model.od import Matrix, ODMatrix
from odkanon.model.published_flows import Classes, used_zones
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec, Structure
from odkanon.model.rule import NO_RULE, Rule
from odkanon.zoning.zones import zones_of_tree


def noise(
    od: Matrix,
    rule: Rule,
    *,
    epsilon: float | None = None,
    delta: float = 1e-6,
    unit: PrivacyUnit = "person",
    trips_per_person: int | None = None,
) -> Release:
    """Estimate flows under differential privacy.

    Parameters
    ----------
    od : ODMatrix
        The input, within a public area or between zones of the user's.
    rule : Rule
        ``Rule(trips=1)``: noise keeps no threshold.
    epsilon, delta : float
        What one person (or trip) changes; see `odkanon.methods.noise.mechanism.NoisePromise`.
    unit : {"person", "trip"}
        Who is protected: a person with all trips, or each trip by itself.
    trips_per_person : int, optional
        The most trips of a person that count; 4 by default.

    Returns
    -------
    Release
        Other numbers each time: the noise is drawn anew, and each draw adds to what was spent.
    """
    if rule != NO_RULE:
        raise InputError("noise keeps no threshold: it bounds what is learnt by epsilon; leave out k and thresholds")
    promise = make_promise(epsilon, delta, unit, trips_per_person)
    shares = query_shares(od, promise)
    domain = NoiseDomain.of(od.in_memory())
    keys, trips = domain.counted(promise)
    noisy = add_noise(promise, shares, count_queries(domain.queries(keys), trips))
    joined = join_counts(domain.places, noisy)
    combined = np.ones((domain.places.distances, 1))
    for axis in od.axes:
        own = value_shares(noisy[_of_attribute(axis.name)], domain.places.distances)
        combined = (combined[:, :, None] * own[:, None, :]).reshape(len(combined), -1)
    rows = list_rows(domain.places, joined, combined)
    account = {
        name: {"share": round(share / sum(shares.values()), 6), "standard_deviation": noisy[name].scale}
        for name, share in shares.items()
    }
    return domain.release(ReleaseSpec(rule, None, "noise", {**vars(promise), "noise": account}), rows)


def make_promise(
    epsilon: float | None = None,
    delta: float = 1e-6,
    unit: PrivacyUnit = "person",
    trips_per_person: int | None = None,
) -> NoisePromise:
    """Return the promise of the options of `noise`."""
    if epsilon is None:
        raise InputError("noise needs epsilon, the bound on what one person changes", option="epsilon 3")
    most = (1 if unit == "trip" else 4) if trips_per_person is None else trips_per_person
    return NoisePromise(epsilon, delta, unit, most)


def query_shares(od: Matrix, promise: NoisePromise) -> dict[str, int]:
    """Return the queries that a matrix is asked, with their parts of the budget.

    Raises
    ------
    InputError
        If its domain is not public, has too many values, or its persons are needed and unknown: whatever could be
        refused is refused here, before anything is drawn.
    """
    if promise.unit == "person" and "persons" not in od.summary.measures:
        raise InputError(
            "noise protects persons, and the input names none: give the column of persons, or protect single trips",
            option="unit trip",
        )
    check_public_values(od.axes)
    places = public_places(od)
    first_level(places, prod(len(axis.public.leaves) for axis in od.axes))
    left_out = ("coarse blocks",)[len(places.block_levels) - 1 :]
    shares = {name: share for name, share in SHARES.items() if name not in left_out}
    return shares | {_of_attribute(axis.name): ATTRIBUTE_SHARE for axis in od.axes}


def _of_attribute(name: str) -> str:
    return f"attribute {name}"


@dataclass(frozen=True, eq=False)
class NoiseDomain:
    """A matrix over its public places and values."""

    od: ODMatrix
    places: PublicPlaces
    sizes: tuple[int, ...]
    """The number of public values of each attribute."""

    @classmethod
    def of(cls, od: ODMatrix) -> NoiseDomain:
        """Return the domain of a matrix."""
        return cls(od, public_places(od), tuple(len(axis.public.leaves) for axis in od.axes))

    def counted(self, promise: NoisePromise) -> tuple[Ints, Ints]:
        """Return the keys of flows with trips that count, and how many do."""
        flows = self.od.flows
        ends = [
            self.places.number(tree)[code]
            for tree, code in ((self.od.origins, flows.origin), (self.od.destinations, flows.destination))
        ]
        key = ends[0] * len(self.places) + ends[1]
        for axis, size, code in zip(self.od.axes, self.sizes, flows.attributes, strict=True):
            key = key * size + value_numbers(axis, code)
        inside = (ends[0] >= 0) & (ends[1] >= 0)
        if promise.unit == "trip":
            keys, number = np.unique(key[inside], return_inverse=True)
            return keys, group_sum(number.astype(np.int32), len(keys), flows.trips[inside])
        persons = flows.contributions["persons"]
        here = inside[persons.flow]
        given = PersonTrips(persons.contributor[here], key[persons.flow[here]], persons.masses["trips"][here])
        return keep_trips(given, promise.trips_per_person)

    def queries(self, keys: Ints) -> list[Query]:
        """Return the queries, with the entry of each of some flows, given by their keys."""
        tree, n = self.places.tree, len(self.places)
        pair, values = self._split(keys)
        origin, destination = pair // n, pair % n
        distance = self.places.distance_class[origin, destination].astype(np.int64)
        found = [
            Query("origins", n, origin),
            Query("destinations", n, destination),
            Query("distances", self.places.distances, distance),
        ]
        for name, level in zip(("fine blocks", "coarse blocks"), self.places.block_levels, strict=False):
            code, wide = tree.codes[level].astype(np.int64), len(tree.ids[level])
            found.append(Query(name, wide * wide, code[origin] * wide + code[destination]))
        for axis, size, value in zip(self.od.axes, self.sizes, values, strict=True):
            found.append(Query(_of_attribute(axis.name), self.places.distances * size, distance * size + value))
        return found

    def _split(self, keys: Ints) -> tuple[Ints, list[Ints]]:
        values: list[Ints] = []
        for size in self.sizes[::-1]:
            values.insert(0, keys % size)
            keys = keys // size
        return keys, values

    def release(self, spec: ReleaseSpec, rows: NoisyRows) -> Release:
        """Return rows as a release."""
        tree = self.places.public or self.places.tree
        zones, first = zones_of_tree(tree)
        level = rows.level + self.places.leaf_level
        ends = [used_zones(zones, np.array(first)[level] + node) for node in (rows.origin, rows.destination)]
        _, codes = self._split(np.maximum(rows.values, 0))
        attributes = {
            axis.name: np.where(rows.values < 0, ANY, axis.public.leaves[code]).astype(np.str_)
            for axis, code in zip(self.od.axes, codes, strict=True)
        }
        order = np.lexsort((*attributes.values(), ends[1][1], ends[0][1]))
        classes = Classes(
            ends[0][1][order],
            ends[1][1][order],
            rows.trips[order],
            None,
            {},
            1,
            attributes={name: values[order] for name, values in attributes.items()},
            standard_error=rows.standard_error[order],
        )
        summary = self.od.summary
        return Release(
            summary, spec, ends[0][0], ends[1][0], classes, Totals(), structure=Structure.NOISY, stored=self.od
        )
