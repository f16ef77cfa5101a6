"""ODkAnon step by step, as the spec words it: slow, naive, and sharing no code with the product."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any, NamedTuple

Node = tuple[int, Any]
Path = Callable[[Any], list[Node]]


class Trip(NamedTuple):
    origin: Any
    destination: Any
    weight: Fraction
    person: Hashable


class Mass(NamedTuple):
    trips: int
    weight: Fraction
    persons: frozenset[Hashable]

    def __add__(self, other: Mass) -> Mass:  # type: ignore[override]
        return Mass(self.trips + other.trips, self.weight + other.weight, self.persons | other.persons)


NOTHING = Mass(0, Fraction(0), frozenset())
Pairs = dict[tuple[Any, Any], Mass]


@dataclass
class Limits:
    trips: Fraction | None = None
    weight: Fraction | None = None
    persons: Fraction | None = None

    def met(self, mass: Mass) -> bool:
        return (
            (self.trips is None or mass.trips >= self.trips)
            and (self.weight is None or mass.weight >= self.weight)
            and (self.persons is None or len(mass.persons) >= self.persons)
        )

    def size(self, mass: Mass) -> Any:
        if self.trips is not None:
            return mass.trips
        return mass.weight if self.weight is not None else len(mass.persons)


@dataclass
class Outcome:
    origins: set[Node]
    destinations: set[Node]
    classes: dict[tuple[Node, Node], Mass]
    suppressed: set[tuple[Any, Any]]
    steps: int


def name(node: Node) -> str:
    """The id of a zone."""
    return "world" if node[1] in (0, "world") else f"{node[1]:x}" if isinstance(node[1], int) else str(node[1])


def pairs_of(trips: Iterable[Trip]) -> Pairs:
    pairs: Pairs = {}
    for trip in trips:
        mass = Mass(1, trip.weight, frozenset([trip.person]))
        pairs[trip.origin, trip.destination] = pairs.get((trip.origin, trip.destination), NOTHING) + mass
    return pairs


class Tree:
    """The nodes over some leaves, up to the finest one that covers them all."""

    def __init__(self, leaves: set[Any], path: Path) -> None:
        paths = {leaf: path(leaf) for leaf in leaves}
        height = next(h for h in range(100) if len({p[h] for p in paths.values()}) == 1)
        self.paths = {leaf: p[: height + 1] for leaf, p in paths.items()}
        self.children: dict[Node, set[Node]] = {}
        for p in self.paths.values():
            for child, parent in pairwise(p):
                self.children.setdefault(parent, set()).add(child)

    def zone(self, leaf: Any, cut: set[Node]) -> Node:
        (zone,) = [node for node in self.paths[leaf] if node in cut]
        return zone


def presuppress(pairs: Pairs, path: Path, limits: Limits, levels: int, budget: Fraction, of: str) -> set[Any]:
    """Algorithm 1, level by level."""
    tops = [Tree({pair[axis] for pair in pairs}, path).paths for axis in (0, 1)]
    valid: set[Any] = set()
    for level in range(levels + 1):
        groups: dict[Any, Mass] = {}
        for pair, mass in pairs.items():
            key = tuple(tops[axis][pair[axis]][min(level, len(tops[axis][pair[axis]]) - 1)] for axis in (0, 1))
            groups[key] = groups.get(key, NOTHING) + mass
        for pair in pairs:
            key = tuple(tops[axis][pair[axis]][min(level, len(tops[axis][pair[axis]]) - 1)] for axis in (0, 1))
            if limits.met(groups[key]):
                valid.add(pair)
    total = len(pairs) if of == "rows" else sum(mass.trips for mass in pairs.values())
    allowance = floor(total * budget)
    worst = sorted(set(pairs) - valid, key=lambda pair: (limits.size(pairs[pair]), pair))
    gone: set[Any] = set()
    spent = 0
    for pair in worst:
        spent += 1 if of == "rows" else pairs[pair].trips
        if spent > allowance:
            break
        gone.add(pair)
    return gone


def odkanon(
    pairs: Pairs,
    path: Path,
    limits: Limits,
    *,
    suppress: str,
    budget: Fraction,
    of: str,
    levels: int = 3,
    complementary: bool = True,
) -> Outcome | None:
    """Algorithm 3, one merge at a time; None where nothing can be published.

    The paper's own has no complementary suppression of the residual.
    """
    total = len(pairs) if of == "rows" else sum(mass.trips for mass in pairs.values())
    allowance = floor(total * budget) if suppress == "after" else 0
    early = presuppress(pairs, path, limits, levels, budget, of) if suppress == "before" else set()
    residual = {pair: mass for pair, mass in pairs.items() if pair not in early}
    if not residual:
        return None
    trees = [Tree({pair[axis] for pair in residual}, path) for axis in (0, 1)]
    cuts: list[set[Node]] = [{p[0] for p in tree.paths.values()} for tree in trees]
    ratio = len(cuts[0]) / len(cuts[1])
    step = 0
    while True:
        classes: dict[tuple[Node, Node], Mass] = {}
        members: dict[tuple[Node, Node], set[Any]] = {}
        for pair, mass in residual.items():
            key = (trees[0].zone(pair[0], cuts[0]), trees[1].zone(pair[1], cuts[1]))
            classes[key] = classes.get(key, NOTHING) + mass
            members.setdefault(key, set()).add(pair)
        failing = {key for key, mass in classes.items() if not limits.met(mass)}
        below = {pair for key in failing for pair in members[key]}
        lost = len(below) if of == "rows" else sum(residual[pair].trips for pair in below)
        if lost <= allowance:
            kept = {key: mass for key, mass in classes.items() if key not in failing}
            gone = early | below
            if complementary and gone and not limits.met(sum((pairs[pair] for pair in gone), NOTHING)):
                if len(kept) < 2:
                    return None
                companion = min(kept, key=lambda key: (limits.size(kept[key]), name(key[0]), name(key[1])))
                del kept[companion]
                gone |= members[companion]
            return Outcome(cuts[0], cuts[1], kept, gone, step)
        if not _merge(trees, cuts, residual, limits, ratio, step):
            return None
        step += 1


def _merge(trees: list[Tree], cuts: list[set[Node]], residual: Pairs, limits: Limits, ratio: float, step: int) -> bool:
    drift = (len(cuts[0]) / len(cuts[1]) - ratio) / ratio
    first = 0 if drift > 0.03 else 1 if drift < -0.03 else step % 2
    for axis in (first, 1 - first):
        ready = [parent for parent, children in trees[axis].children.items() if children <= cuts[axis]]
        if not ready:
            continue
        mass = dict.fromkeys(ready, NOTHING)
        for pair, pair_mass in residual.items():
            for node in trees[axis].paths[pair[axis]]:
                if node in mass:
                    mass[node] += pair_mass
        best = min(ready, key=lambda parent: (limits.size(mass[parent]), *parent))
        cuts[axis] -= trees[axis].children[best]
        cuts[axis].add(best)
        return True
    return False
