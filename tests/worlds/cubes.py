"""Small cubes: places and kinds of trips as public trees, and every trip a number in a box of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from attacks.cascades import Box, Node, World
from odkanon import Rule
from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.attributes.spec import ANY
from odkanon.engine.dispatch import open_workspace
from odkanon.methods.cascade.method import ladder_of
from odkanon.methods.cascade.roll_up import PublicationRule, RollUp, roll_up
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.model.provenance import Source
from odkanon.zoning.hierarchy import Hierarchy


@dataclass(frozen=True)
class Cube(World):
    """A world whose ladder coarsens its axes in an order of its own: origins, destinations, then attributes.

    The last ``spare`` leaves of the last attribute are values that a reader may know to be empty.
    """

    order: tuple[int, ...] = ()
    spare: int = 0

    def spares(self, child: Node, node: Node) -> bool:
        """Tell whether a child is a part of a node that a reader may know to be empty, beside others."""
        first = self.shape[-1] - self.spare
        return child[1][-1][0] >= first > node[1][-1][0]

    @cached_property
    def rungs(self) -> tuple[tuple[int, ...], ...]:
        """The level vectors of the ladder."""
        at = [0] * len(self.trees)
        found = [tuple(at)]
        for axis in self.order:
            at[axis] += 1
            found.append(tuple(at))
        assert found[-1] == tuple(len(levels) - 1 for levels in self.levels), "the ladder must reach the root"
        return tuple(found)

    @property
    def names(self) -> list[str]:
        """What the attributes are called."""
        return [f"a{axis}" for axis in range(2, len(self.trees))]

    def drop_order(self) -> str:
        """Return the order as it is asked for; it coarsens both places before it turns to something else."""
        at, words = [0] * len(self.trees), []
        for axis in self.order:
            at[axis] += 1
            if axis != 0:
                words.append(f"place:{at[axis]}" if axis == 1 else f"a{axis}:{at[axis]}")
        return ",".join(words)


def tree_of(levels: Sequence[Sequence[tuple[int, int]]], top: str | None = None) -> Hierarchy:
    """Return a level of intervals as a hierarchy; ids are level and first leaf, the root may have a name."""
    ids = [np.array([f"{at}:{start}" for start, _ in level], dtype=np.str_) for at, level in enumerate(levels)]
    if top is not None:
        ids[-1] = np.array([top])
    return Hierarchy(tuple(ids), tuple(np.array([start for start, _ in level]) for level in levels))


def attribute_axes(
    world: World, at: Sequence[np.ndarray]
) -> tuple[tuple[AttributeAxis, ...], tuple[npt.NDArray[np.int32], ...]]:
    """Return the attributes of records, given the leaves of each on all axes; their trees keep only what occurs."""
    axes, attributes = [], []
    for number, (levels, leaf) in enumerate(zip(world.levels[2:], at[2:], strict=True), 2):
        tree = tree_of(levels, ANY)
        if number == len(world.shape) - 1 and isinstance(world, Cube):
            tree = replace(tree, spare=frozenset(tree.leaves[len(tree.leaves) - world.spare :].tolist()))
        seen = np.unique(leaf)
        keep = np.zeros(len(tree.leaves), dtype=bool)
        keep[seen] = True
        axes.append(AttributeAxis(f"a{number}", tree.restrict(keep)))
        attributes.append(np.searchsorted(seen, leaf).astype(np.int32))
    return tuple(axes), tuple(attributes)


def cube_matrix(world: World, counts: np.ndarray, weight: np.ndarray | None = None) -> ODMatrix:
    """Return the matrix of one input of a world; its trees keep only the leaves that occur."""
    at = np.nonzero(counts.reshape(world.shape))
    trips = counts.reshape(world.shape)[at].astype(np.int64)
    axes, attributes = attribute_axes(world, at)
    return od_matrix(
        tree_of(world.levels[0]),
        tree_of(world.levels[1]),
        at[0].astype(np.int32),
        at[1].astype(np.int32),
        trips=trips,
        weight=None if weight is None else weight.reshape(world.shape)[at].astype(np.int64),
        contributors={"persons": np.arange(len(trips), dtype=np.int32)},
        axes=axes,
        attributes=attributes,
        source=Source(rows=int(trips.sum())),
    )


def random_counts(world: World, k: int, seed: int, busy: float = 0.5) -> np.ndarray:
    """Return one input with 0 to k + 1 trips in some of its leaf boxes."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, k + 2, int(np.prod(world.shape)))
    counts *= random.random(counts.shape) < busy
    counts[0] += 1
    return counts


def rolled_up(od: ODMatrix, rule: Rule, k: int) -> RollUp:
    """Let everything of a matrix fall, in turns."""
    ladder = ladder_of((od.origins, od.destinations), None)
    residual = open_workspace(od).residual_trips([side.nodes(0) for side in ladder.sides], rule.measures)
    return roll_up(ladder, residual, PublicationRule(rule, k))


def rows_by_box(world: World, found: RollUp) -> dict[tuple[int, Box], int]:
    """Return the rows of a fall as the replay names them."""
    rows = {}
    for rung, *codes, trips in zip(
        found.rows.rung.tolist(),
        *(code.tolist() for code in found.rows.groups.codes),
        found.rows.groups.trips.tolist(),
        strict=True,
    ):
        box = []
        for side, levels, level, code in zip(
            found.rows.ladder.sides, world.levels, world.rungs[rung], codes, strict=True
        ):
            start = int(str(side.tree.ids[level][code]).split(":")[1])
            box.append(next(part for part in levels[level] if part[0] == start))
        rows[rung, tuple(box)] = trips
    return rows
