"""How far pairs are from the even share of their row is the same wherever they are looked up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.test_duckdb import in_duckdb
from odkanon import Release, Rule, UnsafeReleaseError, read_hierarchy, read_matrix, utility
from odkanon.engine.sql import deviations
from odkanon.methods.method_registry import anonymize
from odkanon.model.published_flows import Deviation

PARTS = np.repeat(np.arange(14), [5, 1, 1, 1, 1, 6, 1, 1, 1, 4, 2, 1, 1, 1])
"""Of unequal size, so that a row with few trips for a pair can lie in one that has many for what is left of it."""
TREE = read_hierarchy(
    pa.table(
        {
            "zone": [f"z{number:02}" for number in range(27)],
            "part": [f"p{part:02}" for part in PARTS],
            "district": [f"d{number // 9}" for number in range(27)],
        }
    )
)


def world(seed: int, *, weights: bool) -> pa.Table:
    """Return flows, some of them many trips and most of them one or two."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(27 * 27, int(rng.integers(30, 250)), replace=False)
    columns: dict[str, Any] = {
        "origin": [f"z{pair // 27:02}" for pair in pairs],
        "destination": [f"z{pair % 27:02}" for pair in pairs],
        "trips": rng.choice([1, 1, 1, 2, 2, 3, 5, 20], len(pairs)),
    }
    if weights:
        columns["weight"] = rng.integers(1, 9, len(pairs)) / 2 + columns["trips"]
    return pa.table(columns)


def check_same(table: pa.Table, rule: Rule, **way: Any) -> Release:
    here = read_matrix(table, hierarchy=TREE, engine="memory")
    ours = anonymize(here, rule, method="cascade", **way)
    for fetchable in (0, len(here) // 4):  # pairs stay in the database, or are fetched at once
        there = in_duckdb(table, fetchable=fetchable, hierarchy=TREE)
        theirs = anonymize(there, rule, method="cascade", **way)
        assert there.pairs_fit == (fetchable > 0)
        assert not there.is_small
        assert utility(here, ours) == utility(there.summary, theirs)
        if here.summary.weight_units is not None:
            assert utility(here, ours, measure="weight") == utility(there.summary, theirs, measure="weight")
    return ours


@pytest.mark.parametrize(
    "way",
    [{}, {"allow_inference": True}, {"allow_inference": True, "budget": 0.3}],
    ids=["safe", "allowed", "budget"],
)
def test_worlds_in_which_rows_have_many_trips_or_few_for_a_pair(way: dict[str, Any]) -> None:
    rows = [check_same(world(seed, weights=seed % 3 == 0), Rule(trips=3 + seed % 4), **way) for seed in range(5)]
    assert sum(len(release.classes) for release in rows) > 100


def test_a_row_with_few_trips_for_a_pair_in_one_with_many() -> None:
    """From part 0 to zone 9 there are five pairs with four trips; around that, two pairs with four trips are left."""
    origins = ["z00", "z01", "z02", "z03", "z04", "z05", "z06"]
    destinations = ["z09", "z09", "z09", "z09", "z20", "z09", "z09"]
    table = pa.table({"origin": origins, "destination": destinations, "trips": [1, 1, 1, 1, 5, 2, 2]})
    release = check_same(table, Rule(trips=3), allow_inference=True)
    assert release.classes.finest_pairs is not None
    assert sorted(zip(release.classes.trips, release.classes.finest_pairs, strict=True)) == [(4, 2), (4, 5), (5, 1)]


def test_a_row_of_others_with_one_pair_of_its_own() -> None:
    """Four rows pass up more trips than they may list; the row above has one pair of its own, far below its share."""
    pairs = [(origin, destination, 9) for origin in range(5) for destination in range(9, 13)] + [(0, 13, 1)]
    columns = list(zip(*pairs, strict=True))
    table = pa.table(
        {
            "origin": [f"z{zone:02}" for zone in columns[0]],
            "destination": [f"z{zone:02}" for zone in columns[1]],
            "trips": columns[2],
        }
    )
    release = check_same(table, Rule(trips=10))
    assert release.classes.finest_pairs is not None
    assert (18, 5) in list(zip(release.classes.trips, release.classes.finest_pairs, strict=True))


def test_pairs_that_are_not_those_that_were_counted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    combined = deviations._combined

    def forge(measure: str, compared: Deviation, *residual: Any) -> Deviation:
        inside = compared.inside.copy()
        inside[residual[0]] += 1
        return combined(measure, replace(compared, inside=inside), *residual)

    table = world(1, weights=False)
    check_same(table, Rule(trips=3))
    monkeypatch.setattr(deviations, "_combined", forge)
    with pytest.raises(UnsafeReleaseError, match="not those that were counted"):
        check_same(table, Rule(trips=3))
