"""How far a cascade is from the best rows on its ladder, if rows may imply smaller groups.

python benchmarks/cascade_optimum.py [OD_FILE ...]

A group that has k trips lists all of them. It could also leave up to k - 1 of its excess to the group above, which then
reaches k sooner. The best choice for all groups at once, with the smallest sum of trips times ``|o| + |d|``, follows
from the leaves to the root: for each group the least cost of what lies below it, by how many trips it passes up.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from odkanon import read_matrix
from odkanon.core.arrays import Ints, group_keys
from odkanon.methods import anonymize
from odkanon.methods.cascade.method import ladder_of
from odkanon.model.od import ODMatrix
from odkanon.model.rule import Rule
from odkanon.quality.utility import utility
from odkanon.zoning.hierarchy import Hierarchy

K = 10
GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "paris-28k" / "od.csv"

Costs = npt.NDArray[np.float64]


def passed_up(arriving: Costs, size: Costs) -> Costs:
    """Return for groups (rows) the least cost by trips that are passed up, from that by trips that arrive."""
    found = np.full((len(arriving), K), np.inf)
    found[:, : arriving.shape[1]] = arriving[:, :K]
    for trips in range(K, arriving.shape[1]):
        for left in range(min(K, trips - K + 1)):
            np.minimum(found[:, left], arriving[:, trips] + (trips - left) * size, out=found[:, left])
    return found


def together(costs: Costs, first: Ints, count: Ints) -> Costs:
    """Return for groups the least cost by trips that arrive, from the costs of their parts, which stand in a row."""
    arriving = np.full((len(first), (K - 1) * int(count.max()) + 1), np.inf)
    arriving[:, 0] = 0
    for part in range(int(count.max())):
        has = np.flatnonzero(count > part)
        old, own = arriving[has], costs[first[has] + part]
        new = np.full_like(old, np.inf)
        for trips in range(K):
            np.minimum(new[:, trips:], old[:, : old.shape[1] - trips] + own[:, [trips]], out=new[:, trips:])
        arriving[has] = new
    return arriving


def optimum(od: ODMatrix) -> float:
    """Return the smallest G of all trips in rows of at least k on the ladder."""
    ladder = ladder_of((od.origins, od.destinations), None)
    trees: list[Hierarchy] = [side.tree for side in ladder.sides]
    codes: list[Ints] = [od.flows.origin.astype(np.int64), od.flows.destination.astype(np.int64)]
    trips, at = od.flows.trips, (0, 0)
    costs = np.full((len(trips), K), np.inf)
    costs[trips < K, trips[trips < K]] = 0
    for left in range(K):
        listed = trips - left >= K
        costs[listed, left] = 2.0 * (trips[listed] - left)  # two leaves a row
    for rung in ladder.levels[1:]:
        axis = 0 if rung[0] != at[0] else 1
        parent = trees[axis].codes[rung[axis]][trees[axis].starts[at[axis]]]
        codes[axis], at = parent[codes[axis]].astype(np.int64), (rung[0], rung[1])
        width = len(trees[1].ids[at[1]])
        keys = codes[0] * width + codes[1]
        order = np.argsort(keys, kind="stable")
        groups = group_keys(keys[order], len(trees[0].ids[at[0]]) * width)
        assert groups.starts is not None
        codes = [code[order][groups.starts] for code in codes]
        size = sum(tree.sizes[level][code] for tree, level, code in zip(trees, at, codes, strict=True))
        count = np.diff(groups.starts, append=len(keys))
        costs = passed_up(together(costs[order], groups.starts, count), np.asarray(size, dtype=np.float64))
    return float(costs[0, 0]) / od.trips


if __name__ == "__main__":
    for file in sys.argv[1:] or [str(GOLDEN)]:
        release = anonymize(read_matrix(file, engine="memory"), Rule(trips=K), method="cascade", allow_inference=True)
        print(f"{file}: G {utility(release.od, release).g:.1f}, at best {optimum(release.od):.1f}")
