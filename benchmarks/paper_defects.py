"""What each correction of the comparators changes, measured on the golden case paris-28k.

Every defect is written out here in a few naive lines, away from the product, and run beside the correct method:
``python benchmarks/paper_defects.py``. The defects are those that the specification names; they are rebuilt from
their description, not copied from any script, so the numbers show the kind and size of an effect.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from odkanon.methods import anonymize
from odkanon.methods.atg import solve
from odkanon.model.assemble import release_of_cuts
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import Budget, ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.quality.utility import utility
from odkanon.zoning.hierarchy import Cut, level_cut
from worlds.matrices import golden_od

K, BUDGET, TARGET = 10, 0.10, 1000
Key = tuple[int, int]
Size = Callable[[int, int], float]
"""Size of a node of the destination tree, given its level and number."""


class NaiveTrees:
    """The destination trees of all origin zones as dictionaries, one node at a time."""

    def __init__(self, od: ODMatrix, origins: Cut, origin_size: list[float], size: Size) -> None:
        self.top = od.destinations.top
        self.origin_size, self.size = origin_size, size
        self.masses: list[dict[Key, int]] = []
        self.children: list[dict[Key, set[Key]]] = []
        zone = origins.zone_of_leaf[od.flows.origin]
        below: list[Key] = []
        for level in range(self.top + 1):
            keys = list(zip(zone.tolist(), od.destinations.codes[level][od.flows.destination].tolist(), strict=True))
            mass: dict[Key, int] = defaultdict(int)
            children: dict[Key, set[Key]] = defaultdict(set)
            for key, trips in zip(keys, od.flows.trips.tolist(), strict=True):
                mass[key] += trips
            for key, child in zip(keys, below, strict=False):
                children[key].add(child)
            self.masses.append(mass)
            self.children.append(children)
            below = keys

    def cut(self, delta: float) -> tuple[float, int, list[tuple[int, Key]]]:
        """Return cost without penalty, suppressed trips and published (level, node) of the cheapest cuts."""
        roots = [self._best(self.top, key, delta) for key in self.masses[self.top]]
        published = [node for root in roots for node in root[2]]
        return sum(root[0] for root in roots), sum(root[1] for root in roots), published

    def _best(self, level: int, key: Key, delta: float) -> tuple[float, int, list[tuple[int, Key]]]:
        mass = self.masses[level][key]
        if mass < K:
            return 0.0, mass, []
        own = mass * (self.origin_size[key[0]] + self.size(level, key[1]))
        if level == 0:
            return own, 0, [(level, key)]
        parts = [self._best(level - 1, child, delta) for child in self.children[level][key]]
        spread, lost = sum(part[0] for part in parts), sum(part[1] for part in parts)
        if spread + delta * lost < own:
            return spread, lost, [node for part in parts for node in part[2]]
        return own, 0, [(level, key)]

    def breakpoint(self, allowance: int) -> tuple[list[tuple[int, Key]], list[tuple[int, Key]], int]:
        """Return the best cuts within the allowance, those just beyond it, and what these suppress."""
        low, high, delta = self.cut(0.0), None, 1.0
        while high is None:
            found = self.cut(delta)
            low, high, delta = (low, found, delta) if found[1] <= allowance else (found, None, 4 * delta)
        while True:
            delta = (high[0] - low[0]) / (low[1] - high[1])
            found = self.cut(delta)
            if found[0] + delta * found[1] >= (high[0] + delta * high[1]) * (1 - 1e-12):
                return high[2], low[2], low[1]
            low, high = (low, found) if found[1] <= allowance else (found, high)


def true_g(od: ODMatrix, origins: Cut, trees: NaiveTrees, published: list[tuple[int, Key]]) -> float:
    """Return G of some published nodes, with zones measured in leaves."""
    sizes = np.diff(origins.starts, append=len(od.origins.leaves))
    masses = [trees.masses[level][key] for level, key in published]
    spread = sum(
        mass * int(sizes[key[0]] + od.destinations.sizes[level][key[1]])
        for mass, (level, key) in zip(masses, published, strict=True)
    )
    return spread / sum(masses)


def zone_size_rows(od: ODMatrix) -> Iterator[tuple[str, str, str]]:
    """ATG-Soft with the H3 resolution of a zone in the place of its number of leaves; and the wrong side."""
    budget = Budget(BUDGET, "trips")
    allowance = budget.allowance(od.flows)
    origins = solve(od, Rule(trips=K), budget, TARGET).origins
    in_leaves = np.diff(origins.starts, append=len(od.origins.leaves)).tolist()
    by_leaves = NaiveTrees(od, origins, in_leaves, lambda level, node: int(od.destinations.sizes[level][node]))
    resolution = od.origins.resolution or 0
    in_resolutions = [float(resolution - level) for level in origins.level.tolist()]
    by_resolution = NaiveTrees(od, origins, in_resolutions, lambda level, _: float(resolution - level))
    good, beyond, lost = by_leaves.breakpoint(allowance)
    yield "ATG-Soft, zones measured in leaves", f"{true_g(od, origins, by_leaves, good):,.1f}", f"{len(good):,} classes"
    wrong = (
        by_resolution.cut(0.0)[2] if by_resolution.cut(0.0)[1] <= allowance else by_resolution.breakpoint(allowance)[0]
    )
    yield (
        "ATG-Soft, zones measured by H3 resolution",
        f"{true_g(od, origins, by_resolution, wrong):,.1f}",
        f"{len(wrong):,} classes",
    )
    yield (
        "ATG-Soft, other side of the last breakpoint",
        f"{true_g(od, origins, by_leaves, beyond):,.1f}",
        f"{lost / od.trips:.2%} suppressed of 10 %",
    )


def naive_search_overrun(od: ODMatrix) -> Iterator[tuple[str, str, str]]:
    """ATG-Soft when the multiplier is only doubled or halved and the last try is returned."""
    budget = Budget(BUDGET, "trips")
    origins = solve(od, Rule(trips=K), budget, TARGET).origins
    in_leaves = np.diff(origins.starts, append=len(od.origins.leaves)).tolist()
    trees = NaiveTrees(od, origins, in_leaves, lambda level, node: int(od.destinations.sizes[level][node]))
    delta = 1.0
    while trees.cut(2 * delta)[1] > budget.allowance(od.flows):
        delta *= 2
    _, lost, published = trees.cut(delta)
    yield (
        "ATG-Soft, last multiplier before the budget is kept",
        f"{true_g(od, origins, trees, published):,.1f}",
        f"{lost / od.trips:.2%} suppressed of 10 %",
    )


def levels_release(od: ODMatrix, levels: tuple[int, int]) -> Release | None:
    """Return the release of a pair of levels without suppression; None where a class is below the rule."""
    cuts = level_cut(od.origins, levels[0]), level_cut(od.destinations, levels[1])
    classes, _ = od.flows.merge(cuts[0].zone_of_leaf[od.flows.origin], cuts[1].zone_of_leaf[od.flows.destination])
    if not Rule(trips=K).satisfied(classes).all():
        return None
    return release_of_cuts(od, ReleaseSpec(Rule(trips=K), Budget(0, "trips"), "levels"), *cuts)


def search_order_rows(od: ODMatrix) -> Iterator[tuple[str, str, str]]:
    """OIGH that lifts origins all the way before it touches destinations, and without a budget."""
    path = [(level, 0) for level in range(od.origins.top + 1)]
    path += [(od.origins.top, level) for level in range(1, od.destinations.top + 1)]
    first = next(release for release in (levels_release(od, levels) for levels in path) if release is not None)
    rows = {
        "OIGH, depth first, no budget": first,
        "OIGH, all pairs of levels, no budget": anonymize(od, Rule(trips=K), method="oigh", budget=0.0),
        "OIGH, all pairs of levels, 10 % of trips": anonymize(od, Rule(trips=K), method="oigh", budget=BUDGET),
    }
    for name, release in rows.items():
        zones = f"{len(release.origins):,} x {len(release.destinations):,} zones"
        yield name, f"{utility(od, release).g:,.1f}", f"{zones}, {len(release.classes):,} classes"


def metric_rows(od: ODMatrix) -> Iterator[tuple[str, str, str]]:
    """C_DM with two units in one sum, and E with the zone of a leaf looked up by axis."""
    release = anonymize(od, Rule(trips=K), method="atg-soft", budget=BUDGET, target=TARGET)
    right = utility(od, release, measure="weight")
    assert od.flows.weight is not None
    assert release.classes.weight is not None
    suppressed = int(od.flows.weight[~release.published].sum())
    mixed = float((release.classes.weight.astype(float) ** 2).sum()) + od.trips * suppressed
    yield "C_DM in weight, suppression priced in weight", f"{right.c_dm:.3e}", ""
    yield (
        "C_DM in weight, suppression priced in trips",
        f"{mixed:.3e}",
        "suppressing looks free",
    )
    yield "E, class of a pair by both ends", f"{utility(od, release).e:.3f}", "ATG-Soft, in trips"
    yield "E, zone of a leaf by its axis alone", f"{per_axis_e(od, release):.3f}", "ATG-Soft, in trips"


def per_axis_e(od: ODMatrix, release: Release) -> float:
    """E where each destination leaf is given one zone, the last that covers it, whatever the origin."""
    zone_of_leaf: list[list[int]] = []
    for tree, zones in ((od.origins, release.origins), (od.destinations, release.destinations)):
        number = {str(name): zone for zone, name in enumerate(zones.ids)}
        lookup = np.full(len(tree.leaves), -1)
        for level in range(tree.top + 1):
            for node, name in enumerate(tree.labels(level)):
                if str(name) in number:
                    start = int(tree.starts[level][node])
                    lookup[start : start + int(tree.sizes[level][node])] = number[str(name)]
        zone_of_leaf.append(lookup.tolist())
    volumes = {
        (int(o), int(d)): int(trips)
        for o, d, trips in zip(release.classes.origin, release.classes.destination, release.classes.trips, strict=True)
    }
    truth = np.zeros((len(od.origins.leaves), len(od.destinations.leaves)), dtype=np.float32)
    truth[od.flows.origin, od.flows.destination] = od.flows.trips
    spread = np.zeros((len(release.origins) + 1, len(release.destinations) + 1), dtype=np.float32)
    assert release.origins.leaves is not None
    assert release.destinations.leaves is not None
    for (o, d), volume in volumes.items():
        spread[o, d] = volume / (release.origins.leaves[o] * release.destinations.leaves[d])
    columns = np.array(zone_of_leaf[1])
    off = sum(float(np.abs(spread[zone][columns] - truth[leaf]).sum()) for leaf, zone in enumerate(zone_of_leaf[0]))
    return off / od.trips


def expansion_rows(od: ODMatrix) -> Iterator[tuple[str, str, str]]:
    """Mondrian on weights as masses, and the rows that expanding them would make."""
    release = anonymize(od, Rule.protect("population", k=K, of=od), method="mondrian")
    yield "Mondrian for the population, weights as masses", f"{len(od):,} rows", f"{len(release.classes):,} classes"
    yield "Mondrian for the population, a row a person", f"{od.weight:,} rows", f"{od.weight / len(od):,.0f} times"  # type: ignore[operator]


def main() -> None:
    od = golden_od("paris-28k")
    print("| what | G, or what is named | |\n|---|---|---|")
    for rows in (zone_size_rows, naive_search_overrun, search_order_rows, metric_rows, expansion_rows):
        for row in rows(od):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
