"""The order in which ODkAnon merges: the balance of the axes, and ties."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from odkanon import InputError, Rule, read_hierarchy, read_matrix
from odkanon.engine.memory.workspace import presuppressed_pairs
from odkanon.methods.merging import MergeOrder, alternate
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import Matrix
from odkanon.model.release_spec import Budget
from odkanon.zoning.zones import zones_of_cut


def naive_order(origins: list[int], destinations: list[int]) -> list[int] | None:
    """Section 6 in fractions; None where a ratio is just at the limit, which numbers with a point may miss."""
    start = Fraction(origins[0], destinations[0])
    merged = [0, 0]
    path = [0]
    for step in range(len(origins) + len(destinations) - 2):
        drift = Fraction(origins[merged[0]], destinations[merged[1]]) / start - 1
        if abs(drift) == Fraction(3, 100):
            return None
        axis = 0 if drift > Fraction(3, 100) else 1 if drift < -Fraction(3, 100) else step % 2
        if merged[axis] == len((origins, destinations)[axis]) - 1:
            axis = 1 - axis
        merged[axis] += 1
        path.append(merged[0])
    return path


def residual_trips(rng: np.random.Generator) -> list[int]:
    """Numbers of zones after each merge: some merges take seven zones into one, some none."""
    gone = rng.choice([0, 0, 1, 2, 6], rng.integers(5, 60))
    return [int(count) for count in 1 + gone.sum() + rng.integers(0, 400) - np.concatenate([[0], np.cumsum(gone)])]


def test_axes_take_turns_within_three_percent() -> None:
    rng = np.random.default_rng(11)
    checked = 0
    for _ in range(300):
        origins, destinations = residual_trips(rng), residual_trips(rng)
        expected = naive_order(origins, destinations)
        if expected is not None:
            checked += 1
            assert alternate(np.array(origins), np.array(destinations)).tolist() == expected
    assert checked > 200


@pytest.mark.parametrize("axis", [0, 1])
def test_the_limit_is_three_percent_on_both_sides(axis: int) -> None:
    """One merge takes 2.9 % or 3.1 % of an axis; then it is that axis' turn again, or not."""
    paths = []
    for left in (971, 969):
        zones = [[1000, left, left, left - 2, left - 4], [1000, 1000, 1000, 1000, 1000]]
        first, second = zones[:: -1 if axis else 1]
        paths.append(alternate(np.array(first), np.array(second)).tolist())
        assert paths[-1] == naive_order(first, second)
    assert paths[0] != paths[1]


TABLE = pa.table(
    {
        "block": ["1", "2", "3", "4", "5", "6"],
        "town": ["z", "z", "a", "a", "m", "m"],
        "region": ["X", "X", "Y", "Y", "Y", "Y"],
    }
)


def test_of_equal_masses_the_finest_and_then_the_smallest_id_is_merged_first() -> None:
    """The towns lie in the tree as z, a, m; their ids say a, m, z. A region of the same mass comes after them."""
    tree = read_hierarchy(TABLE)
    masses = [np.full(len(ids), 10) for ids in tree.ids]
    order = MergeOrder.of(tree, tuple(masses))
    cuts = [set(zones_of_cut(tree, order.cut(step))[0].ids.tolist()) for step in range(len(order.zones))]
    merged = [min(after - before) for before, after in pairwise(cuts)]
    assert merged[:5] == ["a", "m", "z", "X", "Y"]


@pytest.mark.parametrize(("share", "gone"), [(0.2, [("1", "2")]), (0.4, [("1", "2"), ("1", "5")])])
def test_of_equal_pairs_the_first_by_origin_and_destination_goes(share: float, gone: list[tuple[str, str]]) -> None:
    flows = [("5", "1"), ("3", "3"), ("1", "5"), ("1", "2"), ("2", "4")]
    table = pa.table({"origin": [o for o, _ in flows], "destination": [d for _, d in flows]})
    od = read_matrix(table, hierarchy=read_hierarchy(TABLE), engine="memory")
    early = presuppressed_pairs(od, Rule(trips=4), levels=0, budget=Budget(share, "rows"))
    names = [
        tree.labels(0)[leaf] for tree, leaf in ((od.origins, od.flows.origin), (od.destinations, od.flows.destination))
    ]
    assert sorted(zip(names[0][early].tolist(), names[1][early].tolist(), strict=True)) == gone


def test_suppression_is_before_or_after() -> None:
    od = read_matrix(
        pa.table({"origin": ["1"], "destination": ["2"]}), hierarchy=read_hierarchy(TABLE), engine="memory"
    )
    with pytest.raises(InputError, match="before or after"):
        anonymize(od, Rule(trips=1), suppress="during")


def test_exactly_three_percent_is_not_more() -> None:
    """At the fourth step 206 / 2 zones are 3 % over 400 / 4, to the last digit: it stays the destinations' turn."""
    path = alternate(np.array([400, 300, 206, 100, 1]), np.array([4, 2, 1]))
    assert path.tolist()[:5] == [0, 1, 1, 2, 2]


def test_the_budget_counts_rows_before_and_trips_after() -> None:
    od = read_matrix(
        pa.table({"origin": ["1"] * 4, "destination": ["2"] * 4}), hierarchy=read_hierarchy(TABLE), engine="memory"
    )
    for suppress, of in (("before", "rows"), ("after", "trips")):
        assert anonymize(od, Rule(trips=1), suppress=suppress).parameters["budget_of"] == of
        for asked in ("rows", "trips"):
            release = anonymize(od, Rule(trips=1), suppress=suppress, budget_of=asked)
            assert release.parameters["budget_of"] == asked


def blocks(*flows: tuple[str, str, int]) -> Matrix:
    """Trips between blocks of `TABLE`, none of which has a weight."""
    ends = [(origin, destination) for origin, destination, trips in flows for _ in range(trips)]
    table = pa.table({"origin": [o for o, _ in ends], "destination": [d for _, d in ends]})
    return read_matrix(table, hierarchy=read_hierarchy(TABLE), engine="memory")


def test_what_is_not_asked_for_is_told() -> None:
    od = blocks(("1", "2", 4), ("3", "4", 4))
    assert anonymize(od, Rule(trips=1)).parameters == {
        "suppress": "after",
        "budget": 0.1,
        "budget_of": "trips",
        "merges": 0,
    }
    assert anonymize(od, Rule(trips=1), suppress="before").parameters["max_levels"] == 3
    assert anonymize(od, Rule(trips=1), symmetric=True).parameters["symmetric"] is True


def test_the_first_step_that_keeps_all_of_a_rule_is_released() -> None:
    od = blocks(("1", "2", 4), ("1", "3", 4), ("5", "2", 4), ("5", "3", 4))
    release = anonymize(od, Rule(trips=4, min_destinations=2), budget=0.0)
    assert release.refusal is None
    assert release.parameters["merges"] == 0


@pytest.mark.parametrize(
    ("rule", "suppress", "said"),
    [
        (Rule(trips=20), "after", "even with all 16 remaining trips in one class"),
        (Rule(trips=20, min_destinations=2), "before", "remaining trips in one class"),
        (Rule(trips=20, min_destinations=2), "after", "suppresses 16 trips, and no more than 1 may be suppressed"),
        (Rule(trips=4, min_destinations=3), "after", "suppresses 16 trips, and no more than 1 may be suppressed"),
    ],
)
def test_why_nothing_is_published(rule: Rule, suppress: str, said: str) -> None:
    od = blocks(("1", "2", 4), ("1", "3", 4), ("5", "2", 4), ("5", "3", 4))
    release = anonymize(od, rule, suppress=suppress)
    assert said in str(release.refusal)
    assert len(release.classes) == 0
