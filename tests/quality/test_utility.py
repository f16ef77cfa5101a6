from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.engine.dispatch import read_matrix
from odkanon.methods import anonymize
from odkanon.model.measures import exact_masses
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.model.provenance import Source
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.utility import UtilityMeasure, utility
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.lookup import lookup_hierarchy
from odkanon.zoning.zones import Zones
from worlds.matrices import random_od
from worlds.tries import tries

GOLDEN = Path(__file__).parent.parent / "golden"
RULES = [Rule(trips=4), Rule(weight=8), Rule(persons=3)]


def drawn_od() -> ODMatrix:
    """The example that docs/methods.md draws.

    ===== === === === ===
    trips x1  x2  y1  y2
    ===== === === === ===
    a1     4   1
    a2     2   3       3
    b1     3       5   3
    ===== === === === ===
    """
    origins = lookup_hierarchy(pa.table({"leaf": ["a1", "a2", "b1"], "zone": ["A", "A", "B"]}))
    destinations = lookup_hierarchy(pa.table({"leaf": ["x1", "x2", "y1", "y2"], "zone": ["X", "X", "Y", "Y"]}))
    rows = [(0, 0, 4), (0, 1, 1), (1, 0, 2), (1, 1, 3), (1, 3, 3), (2, 0, 3), (2, 2, 5), (2, 3, 3)]
    origin, destination, trips = np.array(rows).T
    return od_matrix(
        origins,
        destinations,
        origin.astype(np.int32),
        destination.astype(np.int32),
        trips=trips,
        weight=trips * 10,
        source=Source(rows=len(rows)),
    )


def test_drawn_example_by_hand() -> None:
    od = drawn_od()
    release = anonymize(od, Rule(trips=6), method="oigh", budget=0.25)
    # A -> X has 10 trips between 2 and 2 leaves, B -> Y has 8 between 1 and 2; A -> Y and B -> X lose three trips each.
    assert release.origins.ids.tolist() == ["A", "B"]
    assert release.classes.trips.tolist() == [10, 8]
    measured = utility(od, release)
    assert measured.c_dm == 10**2 + 8**2 + 24 * 6
    assert measured.c_avg == pytest.approx((18 / 2) / 6)
    assert measured.g == pytest.approx((4 * 10 + 3 * 8) / 18)
    # A -> X: 2.5 for each of 4, 1, 2, 3; B -> Y: 4 for each of 5, 3; six trips are not there at all.
    assert measured.e == pytest.approx((1.5 + 1.5 + 0.5 + 0.5 + 1 + 1 + 6) / 24)


def test_weight_only_changes_the_unit_where_all_weights_are_equal() -> None:
    od = drawn_od()
    release = anonymize(od, Rule(trips=6), method="oigh", budget=0.25)
    by_trips, by_weight = utility(od, release), utility(od, release, measure="weight")
    assert by_weight.c_dm == 100 * by_trips.c_dm
    assert (by_weight.c_avg, by_weight.g, by_weight.e) == pytest.approx((by_trips.c_avg, by_trips.g, by_trips.e))


def leaf_interval(tree: Hierarchy, zones: Zones) -> list[range]:
    """For each zone, the leaves below it, found by name."""
    found = {}
    for level in range(tree.top + 1):
        for node, name in enumerate(tree.labels(level)):
            start = int(tree.starts[level][node])
            found[str(name)] = range(start, start + int(tree.sizes[level][node]))
    return [found[str(name)] for name in zones.ids]


def brute_force_e(od: ODMatrix, release: Release, measure: str) -> float:
    """Reconstruct every leaf pair from the published classes alone, and compare."""
    truth = np.zeros((len(od.origins.leaves), len(od.destinations.leaves)))
    truth[od.flows.origin, od.flows.destination] = exact_masses(od.flows, measure)
    rebuilt = np.zeros_like(truth)
    origins = leaf_interval(od.origins, release.origins)
    destinations = leaf_interval(od.destinations, release.destinations)
    classes = release.classes
    for origin, destination, mass in zip(
        classes.origin, classes.destination, exact_masses(classes, measure), strict=True
    ):
        for o in origins[origin]:
            for d in destinations[destination]:
                assert rebuilt[o, d] == 0
                rebuilt[o, d] = mass / (len(origins[origin]) * len(destinations[destination]))
    return float(np.abs(rebuilt - truth).sum() / truth.sum())


@tries(100)
@given(
    random_od(),
    st.sampled_from(RULES),
    st.sampled_from(["odkanon", "oigh", "atg-soft"]),
    st.sampled_from([0.0, 0.1, 0.4]),
    st.sampled_from(["trips", "weight"]),
)
def test_e_equals_brute_force_over_all_leaf_pairs(
    od: ODMatrix, rule: Rule, method: str, budget: float, measure: UtilityMeasure
) -> None:
    release = anonymize(od, rule, method=method, budget=budget)
    measured = utility(od, release, measure=measure).e
    assert measured == pytest.approx(brute_force_e(od, release, measure))
    assert 0 <= (measured or 0) <= 2


@tries(40)
@given(random_od(), st.sampled_from(RULES), st.sampled_from([0.05, 0.3]))
def test_e_of_a_release_that_suppresses_before_generalising(od: ODMatrix, rule: Rule, budget: float) -> None:
    release = anonymize(od, rule, method="odkanon", suppress="before", budget=budget)
    assert utility(od, release).e == pytest.approx(brute_force_e(od, release, "trips"))


def test_e_counts_a_published_trip_twice_and_a_suppressed_one_once() -> None:
    """docs/methods-own.md: why the cascade, which suppresses nothing, has the largest E."""
    od = read_matrix(GOLDEN / "paris-28k" / "od.csv", engine="memory")
    found = {}
    for method in ("odkanon", "oigh", "atg-soft", "cascade"):
        release = anonymize(od, Rule(trips=10), method=method)
        e = utility(od, release).e
        assert e is not None
        found[method] = e, e + 1 - int(release.classes.trips.sum()) / od.trips
    assert max(found, key=lambda method: found[method][0]) == "cascade"
    assert min(found, key=lambda method: found[method][1]) == "cascade"
    assert all(1.95 < both < 2 for _, both in found.values())
