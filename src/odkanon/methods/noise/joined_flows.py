"""Noisy counts joined to one estimate of all flows, which is never negative and adds up.

Everything here is computed from counts that have their noise already. A doubly constrained gravity model (Wilson 1971)
gets the noisy margins and distances; then blocks of places are moved from the model towards their own noisy counts,
the less the more noise these have. Sums of both directions are trusted more than differences, since people return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odkanon.methods.noise.mechanism import NoisyCounts
from odkanon.methods.noise.public_places import PublicPlaces
from odkanon.zoning.cells import Floats
from odkanon.zoning.hierarchy import Hierarchy

_ROUNDS = 15
"""Rounds of balancing the gravity model (Furness 1965)."""
_TRUST_MARGINS, _TRUST_DIFFERENCE = 1.0, 0.2
_TRUST_BLOCKS = 1.0
"""How far flows may lie from what is expected of them, as shares of it: margins from their parents, origins from
destinations, blocks from the model. Chosen on one survey; the claims are measured on others."""
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
    decay = np.maximum(noisy["distances"].values, 0).astype(np.float64)
    decay[np.bincount(places.distance_class.ravel(), minlength=len(decay)) == 0] = 0
    total = max(float(decay.sum()), 1.0)
    ends = [each * (total / each.sum()) for each in _margins(places.tree, noisy["origins"], noisy["destinations"])]
    flows = _gravity(places.distance_class, ends[0], ends[1], decay if decay.any() else decay + 1)
    variance = np.zeros((1, 1))
    for name, level in zip(("coarse blocks", "fine blocks"), places.block_levels[::-1][-2:], strict=False):
        if name not in noisy:
            continue
        flows, variance = _with_blocks(places.tree, level, flows, noisy[name])
    return JoinedFlows(flows * (total / flows.sum()), variance)


def _margins(tree: Hierarchy, origins: NoisyCounts, destinations: NoisyCounts) -> tuple[Floats, Floats]:
    """Return the expected trips from and to each place."""
    noise = float(np.hypot(origins.scale, destinations.scale)) / 2
    both = _down_the_tree(tree, (origins.values + destinations.values) / 2, noise)
    return _moved(both, origins, both * 0.5), _moved(both, destinations, both * 0.5)


def _moved(expected: Floats, noisy: NoisyCounts, chance: Floats) -> Floats:
    prior = (_TRUST_DIFFERENCE * expected) ** 2 + chance
    weight = prior / (prior + noisy.scale**2)
    return np.maximum(expected + weight * (noisy.values - expected), _LEAST * expected)


def _down_the_tree(tree: Hierarchy, noisy: Floats, scale: float) -> Floats:
    """Return the counts of places, divided from the root down as far as the noise lets differences be seen."""
    sizes = tree.sizes[tree.top]
    found = np.maximum(np.add.reduceat(noisy, tree.starts[tree.top]), 1.0)
    for level in range(tree.top - 1, -1, -1):
        parent = np.searchsorted(tree.starts[level + 1], tree.starts[level], side="right") - 1
        expected = found[parent] * tree.sizes[level] / sizes[parent]
        sizes = tree.sizes[level]
        prior = (_TRUST_MARGINS * expected) ** 2 + expected
        weight = prior / (prior + scale**2 * sizes)
        own = np.add.reduceat(noisy, tree.starts[level])
        parts = np.maximum(expected + weight * (own - expected), _LEAST * expected)
        found = parts * (found / np.bincount(parent, parts))[parent]
    return found


def _gravity(classes: npt.NDArray[np.uint8], start: Floats, end: Floats, decay: Floats) -> Floats:
    """Return the doubly constrained gravity model of margins and distances."""
    a, b, f = np.ones(len(start)), np.ones(len(end)), np.where(decay > 0, 1.0, 0.0)
    flat = classes.ravel()
    for _ in range(_ROUNDS):
        rate = f[classes]
        a = start / np.maximum(rate @ b, 1e-300)
        b = end / np.maximum(a @ rate, 1e-300)
        rate *= a[:, None]
        rate *= b
        f *= decay / np.maximum(np.bincount(flat, rate.ravel(), len(decay)), 1e-300)
    rate = f[classes]
    rate *= a[:, None]
    rate *= b
    return rate


def _with_blocks(tree: Hierarchy, level: int, flows: Floats, noisy: NoisyCounts) -> tuple[Floats, Floats]:
    """Return flows moved towards the noisy counts of blocks, and the variance that these are left with."""
    expected = block_sums(tree, level, flows)
    counted = noisy.values.reshape(expected.shape).astype(np.float64)
    noise = noisy.scale**2 / 2
    sums, differences = (expected + expected.T) / 2, (expected - expected.T) / 2
    weights = [
        prior / (prior + noise + sums / 2 + 1e-300)
        for prior in ((_TRUST_BLOCKS * sums) ** 2, (_TRUST_DIFFERENCE * sums) ** 2)
    ]
    moved = sums + weights[0] * ((counted + counted.T) / 2 - sums)
    moved += differences + weights[1] * ((counted - counted.T) / 2 - differences)
    moved = np.maximum(moved, _LEAST * expected)
    ratio = np.divide(moved, expected, out=np.ones_like(moved), where=expected > 0)
    of_place = tree.codes[level]
    flows *= ratio[np.ix_(of_place, of_place)]
    return flows, (weights[0] + weights[1]) * noise


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
    prior = (_TRUST_BLOCKS * expected) ** 2 + expected
    parts = np.maximum(expected + prior / (prior + noisy.scale**2) * (counts - expected), _LEAST * expected)
    shares: Floats = parts / parts.sum(axis=1, keepdims=True)
    return shares
