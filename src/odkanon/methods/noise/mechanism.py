"""The mechanism of a noisy release, whole: which trips count, what is counted, and the noise that is added.

Nothing else in this package sees both the trips and what is published. The input is integers: for each person and each
pair of public places, a number of trips. The output is integers plus discrete Gaussian noise of OpenDP, and everything
downstream is computed from that output and from public parameters.

1. `keep_trips`: at most m trips of each person count, and which ones depends on that person's trips alone.
2. `count_queries`: some vectors of counts. One kept trip adds one to a single entry of each vector, so one person
   changes each vector by at most m in the Euclidean norm.
3. `add_noise`: each vector plus discrete Gaussian noise. Scales, composition (zCDP) and conversion to (epsilon, delta)
   are OpenDP's.

docs/noise.md has the proof; tests/methods/test_noise_mechanism.py enumerates all neighbours of small worlds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log
from typing import Any, Literal, get_args

import numpy as np

from odkanon.core.arrays import Codes, Ints, group_sum
from odkanon.core.parsing import is_number
from odkanon.core.registry import import_extra
from odkanon.errors import InvalidValueError

PrivacyUnit = Literal["person", "trip"]
SHARES = {"origins": 20, "destinations": 20, "distances": 2, "coarse blocks": 29, "fine blocks": 29}
"""Parts of the budget by query, relative to their sum; public, and the same for every input."""
ATTRIBUTE_SHARE = 10
"""The part of each attribute."""
_SEED = np.uint64(0x9E3779B97F4A7C15)
"""Public: which trips of a person count must not depend on anything but that person's trips."""


@dataclass(frozen=True)
class NoisePromise:
    """What a noisy release promises: (epsilon, delta)-differential privacy of a person or of a trip.

    Attributes
    ----------
    epsilon : float
        Whether a person (or a trip) is part of the data changes the probability of no outcome by more than a factor
        of exp(epsilon), in [0.001, 100], ...
    delta : float
        ... except with this probability, in [1e-30, 0.01].
    unit : {"person", "trip"}
        What is added or removed.
    trips_per_person : int
        m, the most trips of a person that count, in [1, inf); 1 for trips.
    """

    epsilon: float
    delta: float = 1e-6
    unit: PrivacyUnit = "person"
    trips_per_person: int = 4

    def __post_init__(self) -> None:
        if not is_number(self.epsilon) or not 1e-3 <= self.epsilon <= 100:
            raise InvalidValueError.expected("epsilon", "a number from 0.001 to 100, such as 1 or 3", self.epsilon)
        if not is_number(self.delta) or not 1e-30 <= self.delta <= 0.01:
            raise InvalidValueError.expected("delta", "a probability from 1e-30 to 0.01, such as 1e-6", self.delta)
        if self.unit not in get_args(PrivacyUnit):
            raise InvalidValueError.expected("the unit of privacy", "'person' or 'trip'", self.unit)
        m = self.trips_per_person
        if isinstance(m, bool) or not isinstance(m, int) or not 1 <= m < 2**31:
            raise InvalidValueError.expected("trips_per_person", "a whole number of at least 1", m)
        if self.unit == "trip" and m != 1:
            raise InvalidValueError.expected("trips_per_person of unit 'trip'", "1", m)


@dataclass(frozen=True, eq=False)
class PersonTrips:
    """Trips by person and flow; a flow is a pair of public places with the values of attributes."""

    person: Codes
    """Number of the person; any numbering will do."""
    flow: Ints
    """Number of the flow, from public parameters only."""
    trips: Ints
    """How many, at least 1."""


def keep_trips(given: PersonTrips, most: int) -> tuple[Ints, Ints]:
    """Return the flows of the trips that count, at most ``most`` of each person, and how many of each flow.

    The trips of a person are put in a pseudo-random order, which is a function of their flows alone.
    """
    trip = np.repeat(np.arange(len(given.trips)), given.trips)
    person, flow = given.person[trip], given.flow[trip].astype(np.uint64)
    order = np.lexsort((flow, person))
    person, flow = person[order], flow[order]
    opens, repeats = _opens(person), _opens(person) | _opens(flow)
    key = np.add.reduceat(_hashed(flow), np.flatnonzero(opens)) if len(flow) else flow
    own = key[np.cumsum(opens) - 1]
    rank = _hashed(_hashed(flow ^ own) + _position(repeats).astype(np.uint64))
    order = np.lexsort((rank, person))
    kept = order[_position(_opens(person[order])) < most]
    flows, number = np.unique(flow[kept].astype(np.int64), return_inverse=True)
    return flows, group_sum(number, len(flows), np.ones(len(kept), dtype=np.int64))


def _opens(values: Any) -> Any:
    """Return where a run of equal values begins."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _position(opens: Any) -> Ints:
    """Return the position of each entry in its run."""
    at = np.arange(len(opens))
    return at - np.maximum.accumulate(np.where(opens, at, 0))


def _hashed(values: Any) -> Any:
    """Return the finaliser of SplitMix64 (Steele, Lea & Flood 2014) of 64-bit integers."""
    mixed = values + _SEED
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Query:
    """A vector of counts: each flow is counted in one entry."""

    name: str
    size: int
    """Number of entries."""
    entry: Ints
    """For each of the flows that occur, the entry in which its trips count."""


def count_queries(queries: Sequence[Query], trips: Ints) -> dict[str, Ints]:
    """Return the exact counts of each query; ``trips`` has those of each flow that occurs."""
    return {query.name: group_sum(query.entry.astype(np.int32), query.size, trips) for query in queries}


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts with noise, which may be published."""

    values: Ints
    scale: float
    """Standard deviation of the noise."""


def add_noise(promise: NoisePromise, shares: Mapping[str, int], counts: Mapping[str, Ints]) -> dict[str, NoisyCounts]:
    """Return counts with discrete Gaussian noise, all of them together under the promise."""
    scales = noise_scales(promise, shares)
    return {
        name: NoisyCounts(np.asarray(_gaussian(scales[name])(exact), dtype=np.int64), scales[name])
        for name, exact in counts.items()
    }


def noise_scales(promise: NoisePromise, shares: Mapping[str, int]) -> dict[str, float]:
    """Return the scale of the noise of each query: the smallest that OpenDP finds to keep the promise.

    A query with a share s of the budget has noise of a variance in proportion to 1 / s.
    """
    return dict(zip(shares, _scales(promise, tuple(shares.values())), strict=True))


@lru_cache(maxsize=64)
def _scales(promise: NoisePromise, shares: tuple[int, ...]) -> tuple[float, ...]:
    dp, most = _opendp(), promise.trips_per_person
    factors = [float(Fraction(sum(shares), share)) ** 0.5 for share in shares]

    def composition(scale: float) -> Any:
        return dp.c.make_fix_delta(_to_approximate([scale * factor for factor in factors]), promise.delta)

    # Where to look: zCDP of rho = epsilon is too weak a promise, and that of epsilon^2 / (8 log(1 / delta) + ...) too
    # strong a one.
    epsilon, weak = promise.epsilon, 2 * promise.epsilon
    strong = epsilon**2 / (8 * (log(1 / promise.delta) + epsilon))
    bounds = most / weak**0.5, most / strong**0.5
    scale = dp.binary_search_param(composition, d_in=most, d_out=(epsilon, promise.delta), T=float, bounds=bounds)
    return tuple(scale * factor for factor in factors)


def composed_epsilon(scales: Sequence[float], delta: float) -> float:
    """Return the epsilon of noises together, with scales for vectors that one person changes by at most 1."""
    return float(_to_approximate(scales).map(1).epsilon(delta))


def _to_approximate(scales: Sequence[float]) -> Any:
    """Return the composition of Gaussian noises, with its zCDP converted to a curve of (epsilon, delta)."""
    dp = _opendp()
    return dp.c.make_zCDP_to_approxDP(dp.c.make_composition([_gaussian(scale) for scale in scales]))


def _gaussian(scale: float) -> Any:
    """Return OpenDP's discrete Gaussian noise for vectors of integers."""
    dp = _opendp()
    return dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64"), scale=scale)


def _opendp() -> Any:
    found = import_extra("opendp.prelude", purpose="noise", extra="noise", package="opendp")
    found.enable_features("contrib")
    return found
