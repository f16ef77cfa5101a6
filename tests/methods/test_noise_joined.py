"""Noisy counts joined to flows: more epsilon makes them more accurate, at every size of places."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from odkanon import read_hierarchy, read_matrix
from odkanon.core.arrays import Ints
from odkanon.methods.method_registry import anonymize
from odkanon.methods.noise.joined_flows import block_sums, join_counts
from odkanon.methods.noise.mechanism import SHARES, NoisePromise, NoisyCounts, noise_scales
from odkanon.methods.noise.public_places import PublicPlaces
from odkanon.model.rule import NO_RULE
from odkanon.read.area import PARIS_CENTRE
from odkanon.zoning.cells import Floats, cell_to_children, str_to_cell
from odkanon.zoning.hierarchy import h3_hierarchy

EPSILONS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@pytest.fixture(scope="module")
def places() -> PublicPlaces:
    return PublicPlaces(h3_hierarchy(np.sort(cell_to_children(str_to_cell(pa.array(PARIS_CENTRE)), 8))))


def few_trips(places: PublicPlaces, seed: int) -> Ints:
    """Trips between places, most pairs of which have none."""
    random, n = np.random.default_rng(seed), len(places)
    pull = random.gamma(0.3, 1, n)
    rate = np.outer(pull, np.roll(pull, 3)) * np.exp(-places.distance_class / 4) * random.gamma(0.2, 1, (n, n))
    trips: Ints = random.poisson(rate * 6000 / rate.sum()).astype(np.int64)
    return trips


def exact_counts(places: PublicPlaces, trips: Ints) -> dict[str, Ints]:
    fine, coarse = (block_sums(places.tree, level, trips.astype(np.float64)) for level in places.block_levels)
    distances = np.bincount(places.distance_class.ravel(), trips.ravel(), places.distances)
    margins = {"origins": trips.sum(axis=1), "destinations": trips.sum(axis=0), "distances": distances}
    blocks = {"coarse blocks": coarse.ravel(), "fine blocks": fine.ravel()}
    return {name: each.astype(np.int64) for name, each in (margins | blocks).items()}


def cpc(one: Floats, other: Floats) -> float:
    return float(2 * np.minimum(one, other).sum() / (one.sum() + other.sum()))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_more_epsilon_is_more_accurate_at_every_size(places: PublicPlaces, seed: int) -> None:
    trips = few_trips(places, seed)
    exact, found = exact_counts(places, trips), np.zeros((len(EPSILONS), 3))
    for draw in range(10):
        normal = {
            name: np.random.default_rng([draw, at]).standard_normal(len(counts))
            for at, (name, counts) in enumerate(exact.items())
        }
        for at, epsilon in enumerate(EPSILONS):
            scale = noise_scales(NoisePromise(epsilon, 1e-6, "trip", 1), SHARES)
            noisy = {
                name: NoisyCounts(np.rint(counts + scale[name] * normal[name]).astype(np.int64), scale[name])
                for name, counts in exact.items()
            }
            flows = join_counts(places, noisy).flows
            assert (flows >= 0).all()
            sizes = [
                [block_sums(places.tree, level, each) for each in (trips.astype(np.float64), flows)]
                for level in range(3)
            ]
            found[at] += [cpc(*each) / 10 for each in sizes]
    assert (np.diff(found, axis=0) > 0).all()
    assert (found[-2] > (0.7, 0.96, 0.98)).all(), "with hardly any noise the coarse blocks are right"


@pytest.mark.parametrize("parents", [{}, {"district": [*"aaabbb"]}])
def test_zones_of_one_or_two_levels_are_estimated_from_their_blocks(parents: dict[str, list[str]]) -> None:
    names = [f"z{at}" for at in range(6)]
    tree = read_hierarchy(pa.table({"zone": names, **parents}))
    trips = np.random.default_rng(0).integers(0, 400, 36)
    flows = pa.table({"origin": np.repeat(names, 6).tolist(), "destination": names * 6, "trips": trips})
    release = anonymize(read_matrix(flows, hierarchy=tree), NO_RULE, method="noise", epsilon=50.0, unit="trip")
    rows = release.flows.to_arrow().to_pylist()
    listed = {(row["origin"], row["destination"]): row["trips"] for row in rows}
    found = [listed.get((one, other), 0) for one in names for other in names]
    assert np.abs(found - trips).sum() < 0.02 * trips.sum()
