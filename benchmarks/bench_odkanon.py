"""ODkAnon against the naive step-by-step version, against plain group-bys, and against itself on more pairs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import h3
import numpy as np

from odkanon import ODMatrix, Rule, read_matrix
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import AXES, od_matrix
from odkanon.model.provenance import Source
from odkanon.zoning.hierarchy import h3_hierarchy

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))
import oracle  # noqa: E402

RULE = Rule(trips=10)
AUTHORS_SECONDS = 62.2
"""What the authors' scripts took on the same pairs, as recorded with the golden case."""


def fastest(work: Callable[[], Any], repeats: int = 15) -> float:
    """Return the least processor time of several runs, which other programs on the machine disturb least."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def group_by(od: ODMatrix) -> None:
    """One plain group-by of the pairs, by the parents of both ends: sort the keys, add up the trips."""
    origin, destination = od.origins.codes[1][od.flows.origin], od.destinations.codes[1][od.flows.destination]
    keys = origin.astype(np.int64) * len(od.destinations.ids[1]) + destination
    _, number = np.unique(keys, return_inverse=True)
    np.bincount(number, weights=od.flows.trips)


def fresh(od: ODMatrix) -> ODMatrix:
    """Return the same matrix without anything cached, so that each run pays for everything."""
    trees = [type(tree)(tree.ids, tree.starts, tree.resolution) for tree in (od.origins, od.destinations)]
    return ODMatrix(trees[0], trees[1], od.flows, od.source)


def published(od: ODMatrix) -> None:
    anonymize(fresh(od), RULE, method="odkanon", suppress="before", budget=0.10, budget_of="rows", max_levels=3)


def after(od: ODMatrix) -> None:
    anonymize(fresh(od), RULE, method="odkanon", suppress="after")


def naive_seconds(od: ODMatrix) -> float:
    names = [od.tree(axis).labels(0)[getattr(od.flows, axis)].tolist() for axis in AXES]
    pairs = {
        (o, d): oracle.Mass(trips, Fraction(0), frozenset())
        for o, d, trips in zip(*names, od.flows.trips.tolist(), strict=True)
    }

    def path(leaf: str) -> list[oracle.Node]:
        return [(10 - r, h3.str_to_int(h3.cell_to_parent(leaf, r))) for r in range(10, -1, -1)]

    start = time.process_time()
    outcome = oracle.odkanon(
        pairs, path, oracle.Limits(trips=Fraction(10)), suppress="before", budget=Fraction(1, 10), of="rows"
    )
    assert outcome is not None
    return time.process_time() - start


def generated(pairs: int) -> ODMatrix:
    """Pairs between random cells of a region, dense in the middle."""
    random = np.random.default_rng(1)
    lat, lon = (centre + 0.25 * random.standard_normal((2, pairs)) for centre in (48.85, 2.35))
    from odkanon.zoning.cells import latlng_to_cell

    cells = [latlng_to_cell(lat[end], lon[end], 10) for end in (0, 1)]
    trees = [h3_hierarchy(end) for end in cells]
    codes = [np.searchsorted(tree.leaves, end).astype(np.int32) for tree, end in zip(trees, cells, strict=True)]
    return od_matrix(trees[0], trees[1], codes[0], codes[1], source=Source(pairs))


def run() -> dict[str, Any]:
    od = read_matrix(TESTS / "golden/paris-28k/od.csv", engine="memory")
    ours, plain = fastest(lambda: published(od)), fastest(lambda: group_by(od))
    small = read_matrix(TESTS / "golden/turin-3k/od.csv", engine="memory")
    sizes = [250_000, 500_000, 1_000_000, 2_000_000, 4_000_000]
    times = []
    for size in sizes:
        many = generated(size)
        times.append(fastest(partial(after, many), 3))
    return {
        "pairs": len(od),
        "ours_in_plain_group_bys": round(ours / plain, 1),
        "authors_over_ours": round(AUTHORS_SECONDS / ours),
        "naive_over_ours_on_3k_pairs": round(naive_seconds(small) / fastest(lambda: published(small))),
        "time_ratios_when_pairs_double_up_to_4_million": [round(b / a, 2) for a, b in pairwise(times)],
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
