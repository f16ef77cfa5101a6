"""What a cascade leaves in a database against what it leaves in memory, step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.small import in_duckdb, table
from odkanon import read_matrix
from odkanon.engine.dispatch import open_workspace
from odkanon.engine.memory.residual import MemoryResidual
from odkanon.engine.node_flows import NodeFlows
from odkanon.engine.protocols import Residual
from odkanon.engine.sql.residual import SqlResidual
from odkanon.methods.cascade.ladder import side_of

DISTINCT = ("persons", "households")


def told(groups: NodeFlows) -> list[list[int]]:
    columns = [*groups.codes, groups.pairs, groups.trips, *(groups.contributors[name] for name in DISTINCT)]
    weight = [] if groups.weight_units is None else groups.weight_units.tolist()
    return [*(column.tolist() for column in columns), weight, [groups.scale]]


def split(groups: NodeFlows) -> tuple[NodeFlows, NodeFlows]:
    """Take every third group, and leave some trips of every other one of these."""
    taken = groups.take(np.arange(0, len(groups.trips), 3))
    some = np.arange(len(taken.trips)) % 2
    trips = some * (taken.trips // 3)
    weight = None if taken.weight_units is None else taken.weight_units * trips // taken.trips
    return taken, replace(taken, pairs=taken.pairs * 0, trips=trips, weight_units=weight, contributors={})


@pytest.mark.parametrize(("reassigned", "fetchable"), [(None, 0), ("persons", 0), ("households", 0), ("persons", 350)])
def test_the_same_groups_are_left_at_every_rung(reassigned: str | None, fetchable: int) -> None:
    trips = table(3, 200)
    if reassigned is None:
        trips = trips.drop_columns(["weight"])
    memory, stored = read_matrix(trips, engine="memory"), in_duckdb(trips, fetchable)
    sides = [side_of(tree) for tree in (memory.origins, memory.destinations)]
    rests: list[Residual] = [
        open_workspace(od).residual_trips([side.nodes(0) for side in sides], DISTINCT) for od in (memory, stored)
    ]
    stays = 0
    for axis, level in ((0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)):
        side = sides[axis]
        rests = [residual.lift(axis, side.parent(level), side.nodes(level)) for residual in rests]
        mine, theirs = rests
        assert isinstance(mine, MemoryResidual)
        assert isinstance(theirs, SqlResidual | MemoryResidual)
        stays += isinstance(theirs, SqlResidual)
        if isinstance(theirs, MemoryResidual):  # its pairs stay in the database
            assert (len(theirs.pair), len(theirs.group)) == (0, 0)
        assert theirs.nodes == mine.nodes
        for least in (0, 2):
            assert told(theirs.at_least(least)) == told(mine.at_least(least))
        taken, left = split(mine.at_least(3))
        rests = [residual.without(taken, np.arange(len(taken.trips)), left, reassigned) for residual in rests]
        assert rests[0].totals() == rests[1].totals()
    assert stays > 3 if fetchable == 0 else stays == 0
