from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import floor
from types import SimpleNamespace
from typing import Any

import h3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.engine.memory.workspace import MemoryEngine
from odkanon.methods import anonymize
from odkanon.methods.oigh import Levels, oigh
from odkanon.model.od import ODMatrix
from odkanon.model.release_spec import Budget
from odkanon.model.rule import Rule
from odkanon.quality.utility import utility
from odkanon.zoning.hierarchy import Cut
from worlds.matrices import golden_od, random_od
from worlds.tries import tries

RULES = [Rule(trips=4), Rule(weight=8), Rule(persons=3), Rule(trips=3, persons=2), Rule(trips=10_000)]


def parent(cell: str, level: int) -> str:
    return str(h3.cell_to_parent(cell, h3.get_resolution(cell) - level))


def height(cells: list[str]) -> int:
    """Levels up to the finest single cell that covers all."""
    return next(level for level in range(11) if len({parent(cell, level) for cell in cells}) == 1)


def brute_force(od: ODMatrix, rule: Rule, budget: str, budget_of: str) -> tuple[int, int] | None:
    """Try all pairs of levels, one record and one person at a time."""
    starts = [h3.int_to_str(int(od.origins.leaves[o])) for o in od.flows.origin]
    ends = [h3.int_to_str(int(od.destinations.leaves[d])) for d in od.flows.destination]
    weights, contributions, scale = od.flows.weight_units, od.flows.contributions["persons"], od.flows.scale
    assert weights is not None
    total = len(od) if budget_of == "rows" else od.trips
    allowance = floor(Fraction(budget) * total)
    candidates = []
    for up in range(height(starts) + 1):
        for across in range(height(ends) + 1):
            classes = defaultdict(list)
            for pair in range(len(od)):
                classes[parent(starts[pair], up), parent(ends[pair], across)].append(pair)
            inside, lost, spread, squares, published, whole = 0, 0, 0, 0, 0, 0
            for (o, d), pairs in classes.items():
                trips, weight = sum(int(od.flows.trips[p]) for p in pairs), sum(int(weights[p]) for p in pairs)
                persons = len(
                    {
                        int(who)
                        for at, who in zip(contributions.flow, contributions.contributor, strict=True)
                        if at in pairs
                    }
                )
                volume = weight if rule.trips is None and rule.weight is not None else trips
                whole += volume
                meets = (
                    trips >= (rule.trips or 0)
                    and Fraction(weight, scale) >= (rule.weight or 0)
                    and persons >= (rule.persons or 0)
                )
                if meets:
                    size = len({s for s in starts if parent(s, up) == o}) + len(
                        {e for e in ends if parent(e, across) == d}
                    )
                    inside, spread = inside + 1, spread + volume * size
                    published, squares = published + volume, squares + volume**2
                else:
                    lost += len(pairs) if budget_of == "rows" else trips
            if inside and lost <= allowance:
                c_dm = squares + whole * (whole - published)
                candidates.append((Fraction(spread, published), c_dm, up + across, up, across))
    return min(candidates)[3:] if candidates else None


@tries(150)
@given(
    random_od(max_records=35),
    st.sampled_from(RULES),
    st.sampled_from(["0", "0.1", "0.3"]),
    st.sampled_from(["rows", "trips"]),
)
def test_equals_brute_force_over_all_level_pairs(od: ODMatrix, rule: Rule, budget: str, budget_of: str) -> None:
    release = anonymize(od, rule, method="oigh", budget=float(budget), budget_of=budget_of)
    expected = brute_force(od, rule, budget, budget_of)
    if expected is None:
        assert release.refusal is not None
        assert not release.published.any()
    else:
        assert (release.parameters["origin_level"], release.parameters["destination_level"]) == expected


def test_budget_makes_finer_levels_feasible() -> None:
    od = golden_od("paris-28k")
    strict = anonymize(od, Rule(trips=10), method="oigh", budget=0.0)
    relaxed = anonymize(od, Rule(trips=10), method="oigh", budget=0.10)
    assert strict.published.all()
    assert (len(strict.origins), len(strict.destinations)) == (5, 5)
    assert (len(relaxed.origins), len(relaxed.destinations)) == (35, 35)
    assert utility(od, relaxed).g == pytest.approx(512.16, abs=0.01)
    assert utility(od, strict).g == pytest.approx(3201.06, abs=0.01)


def test_zones_of_an_axis_share_one_level() -> None:
    release = anonymize(golden_od("turin-3k"), Rule(trips=4), method="oigh")
    for zones in (release.origins, release.destinations):
        assert zones.level is not None
        assert len(np.unique(zones.level)) == 1


def test_k_of_1_changes_nothing() -> None:
    od = golden_od("tiny")
    release = anonymize(od, Rule(trips=1), method="oigh")
    assert len(release.classes) == len(od)
    assert utility(od, release).e == 0


def test_unreachable_rule_is_refused() -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=10**6), method="oigh")
    assert release.refusal is not None
    assert len(release.classes) == 0


def levels(origin: int, destination: int, g: int, trips: list[int], good: list[bool]) -> Levels:
    classes: Any = SimpleNamespace(flows=SimpleNamespace(trips=np.array(trips)))
    return Levels(origin, destination, Fraction(g), classes, np.array(good), "trips")


def test_c_dm_counts_what_is_suppressed_as_often_as_there_are_trips() -> None:
    assert levels(0, 0, 1, [3, 4, 5], [True, True, False]).c_dm == 9 + 16 + 12 * 5
    assert levels(0, 0, 1, [3, 4, 5], [True, True, True]).c_dm == 9 + 16 + 25


def test_ties_go_to_the_least_c_dm_then_to_finer_levels_then_to_finer_origins() -> None:
    """Each is better than all that come after it."""
    even, uneven = ([3, 3], [True, True]), ([5, 1], [True, True])
    ranked = [
        levels(3, 3, 1, *uneven),
        levels(4, 4, 2, *even),
        levels(0, 1, 2, *uneven),
        levels(1, 0, 2, *uneven),
        levels(1, 1, 2, *uneven),
        levels(2, 1, 2, *uneven),
        levels(0, 4, 2, *uneven),
    ]
    for at, one in enumerate(ranked):
        assert one.better(None)
        assert [one.better(other) for other in ranked] == [False] * (at + 1) + [True] * (len(ranked) - at - 1)


def test_a_tenth_may_be_suppressed_unless_something_else_is_asked() -> None:
    release = oigh(golden_od("tiny"), Rule(trips=5))
    assert release.budget == Budget(0.1, "trips")


def test_never_aggregates_what_the_staircase_rules_out(monkeypatch: pytest.MonkeyPatch) -> None:
    od = golden_od("paris-28k")
    asked: list[int] = []
    plain = MemoryEngine.coarsen

    def counting(self: MemoryEngine, origins: Cut, destinations: Cut) -> MemoryEngine:
        asked.append(len(self.flows))
        return plain(self, origins, destinations)

    monkeypatch.setattr(MemoryEngine, "coarsen", counting)
    anonymize(od, Rule(trips=10), method="oigh")
    # Some tables of all pairs on the way to coarse origins; all else is made from smaller ones.
    assert sum(flows == len(od) for flows in asked) <= 2
    assert sum(asked) < 15 * len(od)
