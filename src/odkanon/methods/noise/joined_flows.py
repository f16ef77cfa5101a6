"""Noisy counts joined to one estimate of all flows, which is never negative and adds up.

Everything here is computed from counts that have their noise already. A doubly constrained gravity model (Wilson 1971)
gets the noisy margins and distances; then blocks of places are moved from the model towards their own noisy counts,
the less the more noise these have. Fine blocks keep the sums of coarse ones, whose noise is smaller than that of many
fine counts of which none may fall below zero. Sums of both directions are trusted more than differences, since people
return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.methods.noise.mechanism import NoisyCounts
from odkanon.methods.noise.public_places import PublicPlaces
from odkanon.quality.accuracy.comparison import gravity_flows
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Hierarchy

_TRUST = 2.0
"""Deviations are taken to be larger than their squares suggest, by this factor: few pairs deviate far more than others.
Chosen on one survey."""
_LEAST_TRUST, _MOST_TRUST = 0.05, 1.5
"""Limits of how far counts lie from what is expected of them, as a share of it, whatever the noisy counts suggest."""
_LEAST = 0.02
"""No part falls below this share of what is expected of it."""


@dataclass(frozen=True, eq=False)
class JoinedFlows:
    """The estimate.

    Attributes
    ----------
    flows : array of float, shape (places, places)
        Expected trips between any two places.
    variance : array of float, shape (blocks, blocks)
        Of the trips of each fine block.
    """

    flows: Floats
    variance: Floats


def join_counts(places: PublicPlaces, noisy: Mapping[str, NoisyCounts]) -> JoinedFlows:
    """Return the estimate that margins, distances and blocks lead to."""
    decay = noisy["distances"].values.astype(np.float64)
    decay[np.bincount(places.distance_class.ravel(), minlength=len(decay)) == 0] = 0
    total, decay = max(float(decay.sum()), 1.0), np.maximum(decay, 0.0)
    decay *= total / max(float(decay.sum()), 1.0)
    ends = [each * (total / each.sum()) for each in _margins(places.tree, noisy["origins"], noisy["destinations"])]
    flows = gravity_flows(places.distance_class, ends[0], ends[1], decay if decay.any() else decay + 1)
    variance = np.zeros((1, 1))
    for name, level in [*zip(("fine blocks", "coarse blocks"), places.block_levels, strict=False)][::-1]:
        if name in noisy:
            sums = block_sums(places.tree, places.block_levels[-1], flows)
            flows, variance = _with_blocks(places.tree, level, flows, noisy[name])
            if level != places.block_levels[-1]:
                flows = _scaled_to(places.tree, places.block_levels[-1], flows, sums)
    return JoinedFlows(flows * (total / flows.sum()), variance)


def _margins(tree: Hierarchy, origins: NoisyCounts, destinations: NoisyCounts) -> tuple[Floats, Floats]:
    """Return the expected trips from and to each place."""
    noise = float(np.hypot(origins.scale, destinations.scale)) / 2
    both = _down_the_tree(tree, (origins.values + destinations.values) / 2, noise)
    return _moved(both, origins.values, origins.scale**2), _moved(both, destinations.values, destinations.scale**2)


def _moved(expected: Floats, counted: Floats | Ints, noise: Floats | float) -> Floats:
    """Return expected counts moved towards noisy ones, never below a small share of themselves."""
    return np.maximum(expected + _weight(expected, counted - expected, noise) * (counted - expected), _LEAST * expected)


def _weight(expected: Floats, deviation: Floats, noise: Floats | float) -> Floats:
    """Return how much of a deviation from what is expected to believe, given the variance of the noise.

    The best linear predictor, if true counts differ by chance (half of what is expected, as these are means of two or
    parts of larger counts) and by a share of what is expected, which all deviations yield together (empirical Bayes).
    """
    known = noise + expected / 2
    precision = 1 / np.maximum(known, 1e-9) ** 2
    excess = float(np.sum(precision * expected**2 * (deviation**2 - known)))
    share = _TRUST**2 * excess / max(float(np.sum(precision * expected**4)), 1e-300)
    share = np.clip(share, _LEAST_TRUST**2, _MOST_TRUST**2)
    prior = share * expected**2
    weight: Floats = (prior + expected / 2) / (prior + known + 1e-300)
    return weight


def _down_the_tree(tree: Hierarchy, noisy: Floats, scale: float) -> Floats:
    """Return the counts of places, divided from the root down as far as the noise lets differences be seen."""
    sizes = tree.sizes[tree.top]
    found = np.maximum(np.add.reduceat(noisy, tree.starts[tree.top]), 1.0)
    for level in range(tree.top - 1, -1, -1):
        parent = np.searchsorted(tree.starts[level + 1], tree.starts[level], side="right") - 1
        expected = found[parent] * tree.sizes[level] / sizes[parent]
        sizes = tree.sizes[level]
        noise: Floats = scale**2 * sizes.astype(np.float64)
        parts = _moved(expected, np.add.reduceat(noisy, tree.starts[level]), noise)
        found = parts * (found / np.bincount(parent, parts))[parent]
    return found


def _with_blocks(tree: Hierarchy, level: int, flows: Floats, noisy: NoisyCounts) -> tuple[Floats, Floats]:
    """Return flows moved towards the noisy counts of blocks, and the variance that these are left with."""
    expected = block_sums(tree, level, flows)
    counted = noisy.values.reshape(expected.shape).astype(np.float64)
    noise = noisy.scale**2 / 2
    sums = (expected + expected.T) / 2
    deviations = (counted + counted.T) / 2 - sums, (counted - counted.T) / 2 - (expected - expected.T) / 2
    weights = [_weight(sums, deviation, noise) for deviation in deviations]
    moved = expected + weights[0] * deviations[0] + weights[1] * deviations[1]
    moved = np.maximum(moved, _LEAST * expected)
    return _scaled_to(tree, level, flows, moved), (weights[0] + weights[1]) * noise


def _scaled_to(tree: Hierarchy, level: int, flows: Floats, sums: Floats) -> Floats:
    """Return flows scaled to sums over the pairs of the nodes of a level, in place."""
    found, of_place = block_sums(tree, level, flows), tree.codes[level]
    flows *= np.divide(sums, found, out=np.ones_like(sums), where=found > 0)[np.ix_(of_place, of_place)]
    return flows


def block_sums(tree: Hierarchy, level: int, flows: Floats) -> Floats:
    """Return the sums over the pairs of the nodes of a level."""
    starts = tree.starts[level]
    found: Floats = np.add.reduceat(np.add.reduceat(flows, starts, axis=0), starts, axis=1)
    return found


def value_shares(noisy: NoisyCounts, classes: int) -> Floats:
    """Return the share of each value of an attribute (column) in each class of distance (row)."""
    counts = noisy.values.reshape(classes, -1).astype(np.float64)
    overall = np.maximum(counts.sum(axis=0), 0.0) + 1e-9
    overall /= overall.sum()
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    expected = total * overall
    parts = _moved(expected, counts, noisy.scale**2)
    shares: Floats = parts / parts.sum(axis=1, keepdims=True)
    return shares
