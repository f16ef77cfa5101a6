"""The method itself on many inputs of a small world at once, with persons and households who make the trips.

An axis that no rung coarsens numbers the inputs, so that they share a fall and nothing else: no group, nobody, and no
part that could be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attacks.cascades import Counts, Node, Replay, every_input
from odkanon import Rule
from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.attributes.spec import ANY
from odkanon.engine.dispatch import open_workspace
from odkanon.methods.cascade.cascade_rows import Rows
from odkanon.methods.cascade.ladder import Ladder, side_of
from odkanon.methods.cascade.method import least_trips
from odkanon.methods.cascade.roll_up import PublicationRule, roll_up
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.model.provenance import Source
from worlds.cubes import Cube, attribute_axes, tree_of

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Crowd:
    """Trips of many inputs: the input, the leaf box, and who made it; -1 is nobody.

    Persons and households of different inputs have nothing to do with each other, whatever their numbers.
    """

    inputs: int
    of: Numbers
    box: Numbers
    person: Numbers
    household: Numbers

    def __add__(self, other: Crowd) -> Crowd:
        return Crowd(
            self.inputs + other.inputs,
            np.concatenate([self.of, other.of + self.inputs]),
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("box", "person", "household")),
        )

    def take(self, chosen: int) -> Crowd:
        """Return one of the inputs."""
        here = self.of == chosen
        return Crowd(1, self.of[here] * 0, self.box[here], self.person[here], self.household[here])

    def counts(self, world: Cube) -> Counts:
        """Return the trips of each input (row) in each leaf box (column)."""
        cells = int(np.prod(world.shape))
        counts = np.bincount(self.of * cells + self.box, minlength=self.inputs * cells)
        return counts.reshape(self.inputs, cells).astype(np.int16)


def strangers(counts: Counts) -> Crowd:
    """Return inputs in which each trip has a person and a household of its own."""
    of, box = np.nonzero(counts)
    of, box = (np.repeat(one, counts[of, box]) for one in (of, box))
    number = np.arange(len(of)) - np.searchsorted(of, of)
    return Crowd(len(counts), of, box, number, number)


def families(world: Cube, states: Sequence[tuple[int, ...]], household: Sequence[int]) -> Crowd:
    """Return every way of putting one of some states into each leaf box: the persons whose trips are there.

    ``household`` tells where each person lives.
    """
    width = max(len(state) for state in states)
    table = np.array([[*state, *[-1] * (width - len(state))] for state in states])
    who = table[every_input(world, len(states) - 1)]
    of, box, place = np.nonzero(who >= 0)
    person = who[of, box, place]
    return Crowd(len(who), of, box, person, np.array(household)[person])


def acquainted(counts: Counts, seed: int) -> Crowd:
    """Return inputs in which few persons, two to a household, make all trips, or nobody knows who made some of them."""
    alone, random = strangers(counts), np.random.default_rng(seed)
    people = random.choice([2, 3, 4, 6], len(counts))
    person = random.integers(0, people[alone.of])
    nobody = random.random(len(person)) < random.choice([0.0, 0.0, 0.2], len(counts))[alone.of]
    return Crowd(len(counts), alone.of, alone.box, np.where(nobody, -1, person), np.where(nobody, -1, person // 2))


def crowd_matrix(world: Cube, crowd: Crowd, *, numbered: bool) -> ODMatrix:
    """Return the matrix of inputs; with an axis for their numbers, or of a single one as it would be read."""
    at = np.unravel_index(crowd.box, world.shape)
    axes, attributes = attribute_axes(world, at)
    if numbered:
        leaves = [(one, one + 1) for one in range(crowd.inputs)]
        axes = (*axes, AttributeAxis("input", tree_of([leaves, [(0, crowd.inputs)]], ANY)))
        attributes = (*attributes, crowd.of.astype(np.int32))
    return od_matrix(
        tree_of(world.levels[0]),
        tree_of(world.levels[1]),
        at[0].astype(np.int32),
        at[1].astype(np.int32),
        contributors={"persons": _apart(crowd, crowd.person), "households": _apart(crowd, crowd.household)},
        axes=axes,
        attributes=attributes,
        source=Source(rows=len(crowd.of)),
    )


def _apart(crowd: Crowd, contributor: Numbers) -> npt.NDArray[np.int32]:
    width = int(contributor.max(initial=0)) + 1
    return np.where(contributor < 0, -1, crowd.of * width + contributor).astype(np.int32)


def published(
    world: Cube, crowd: Crowd, rule: Rule, terms: type[PublicationRule] = PublicationRule, *, capped: bool = True
) -> Replay:
    """Return what the method lists of every input, in the words of the replay."""
    od = crowd_matrix(world, crowd, numbered=True)
    k = least_trips(rule, safe=True)
    trees = (od.origins, od.destinations, *(axis.tree for axis in od.axes))
    ladder = Ladder(tuple(side_of(tree) for tree in trees), world.order)
    residual = open_workspace(od).residual_trips([side.nodes(0) for side in ladder.sides], rule.measures)
    found = roll_up(ladder, residual, terms(rule, k, capped)).rows
    return Replay(world, crowd.counts(world), k, listed=_by_node(world, found, crowd.inputs))


def _by_node(world: Cube, rows: Rows, inputs: int) -> dict[Node, Counts]:
    """Return for each node of the ladder what every input lists there, 0 for none."""
    *codes, of = rows.groups.codes
    found: dict[Node, Counts] = {}
    for rung, levels in enumerate(world.rungs):
        nodes, here = world.nodes(rung), rows.rung == rung
        shape = [len(axis[level]) for axis, level in zip(world.levels, levels, strict=True)]
        table = np.zeros((len(nodes), inputs), dtype=np.int16)
        table[np.ravel_multi_index([code[here] for code in codes], shape), of[here]] = rows.groups.trips[here]
        found |= dict(zip(nodes, table, strict=True))
    return found
