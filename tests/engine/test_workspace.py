"""Releases that are made in a database against those made in memory, on small worlds: number by number, E included."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from engine.small import in_duckdb, table
from odkanon import InputError, Release, Rule, read_matrix, utility
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import Matrix
from worlds.people import places

WAYS: list[dict[str, Any]] = [{"budget": 0.3}, {"budget": 0.4, "suppress": "before", "max_levels": 1}]
RULES = [
    Rule(trips=4),
    Rule(trips=3, weight=11),
    Rule(weight=9, persons=2),
    Rule(trips=2, persons=3, households=2),
    Rule(households=4),
]


def told(release: Release, od: Matrix) -> Any:
    """Return all numbers of a release; E and other measures of quality to a digit that engines may not agree on."""
    classes = release.classes
    quality = [
        {name: round(value, 9) for name, value in vars(utility(od.summary, release, measure=measure)).items() if value}
        for measure in ("trips", "weight")
        if release.refusal is None
    ]
    columns = [classes.trips, classes.weight_units, *(count for _, count in sorted(classes.contributors.items()))]
    zones = release.origins.ids[classes.origin], release.destinations.ids[classes.destination]
    rows = sorted(zip(*(column.tolist() for column in (*zones, *columns) if column is not None), strict=True))
    return release.refusal, rows, release.suppressed, release.companion, quality


def test_a_database_makes_the_same_releases() -> None:
    trips = table(0)
    memory, stored = read_matrix(trips, engine="memory"), in_duckdb(trips)
    assert set(memory.measures) == {"trips", "weight", "persons", "households"}
    found = []
    for rule, way in product(RULES, WAYS):
        mine, theirs = anonymize(memory, rule, **way), anonymize(stored, rule, **way)
        assert theirs.assignment is None
        assert told(theirs, stored) == told(mine, memory), (rule, way)
        found.append((len(mine.classes), mine.suppressed.trips))
    assert sum(classes > 1 and suppressed > 0 for classes, suppressed in found) > 5


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ([40, 13, 12, 4], Rule(trips=10)),
        ([12, 12, 12, 4], Rule(trips=10, weight=10)),
        ([60, 4], Rule(trips=10)),
        ([60, 13, 12], Rule(trips=3, persons=3)),
        ([40, 13, 12, 6], Rule(trips=7, weight=20)),
        ([40, 13, 12, 7], Rule(trips=7, weight=20)),
        ([40, 13, 12, 6], Rule(trips=7, weight=10)),
        ([40, 13, 12, 2, 2], Rule(persons=3, households=2)),
        ([40, 13, 12, 2, 2], Rule(persons=3, households=3)),
        ([40, 13, 12, 2, 2], Rule(persons=4, households=2)),
        ([40, 13, 12, 2, 2], Rule(persons=4, households=4)),
        ([40, 13, 12, 4, 3], Rule(trips=7)),
    ],
)
def test_what_is_too_few_takes_the_same_flow_along(counts: list[int], rule: Rule) -> None:
    """Whole flows far apart, of which the smallest are suppressed: nothing, enough, or more goes with them."""
    cells = [places()[at] for at in (0, 4, 7, 10, 8)]
    ends = [cell for cell, count in zip(cells, counts, strict=False) for _ in range(count)]
    trips = pa.table(
        {
            "origin": [places()[10]] * len(ends),
            "destination": ends,
            "weight": [2.0] * len(ends),
            "person": [f"p{at}" for at in range(len(ends))],
            "household": [f"h{at // 2}" for at in range(len(ends))],
        }
    )
    memory, stored = read_matrix(trips, engine="memory"), in_duckdb(trips)
    mine, theirs = (anonymize(od, rule, budget=0.12) for od in (memory, stored))
    assert told(theirs, stored) == told(mine, memory)


def test_contributors_of_several_suppressed_flows_count_once() -> None:
    """Two persons in each of two flows that are suppressed: the same two, who are fewer than three."""
    flows = [(4, [f"p{at}" for at in range(40)]), (7, [f"q{at}" for at in range(12)]), (10, "ab"), (8, "ab")]
    trips = pa.table(
        {
            "origin": [places()[10] for _, persons in flows for _ in persons],
            "destination": [places()[at] for at, persons in flows for _ in persons],
            "person": [person for _, persons in flows for person in persons],
        }
    )
    memory, stored = read_matrix(trips, engine="memory"), in_duckdb(trips)
    for persons, companion in ((2, False), (3, True)):
        mine, theirs = (anonymize(od, Rule(persons=persons), budget=0.12) for od in (memory, stored))
        assert (theirs.refusal or "", theirs.companion) == (mine.refusal or "", mine.companion)
        assert (mine.companion is not None) == companion


def test_pairs_that_were_never_in_memory_are_not_there() -> None:
    release = anonymize(in_duckdb(table(0)), Rule(trips=4))
    with pytest.raises(InputError, match="were never in memory"):
        _ = release.assignment_in_memory
