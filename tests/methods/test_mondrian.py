from __future__ import annotations

from fractions import Fraction
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.methods import anonymize
from odkanon.methods.median_cuts import Grid, Segments, Sums, median_cuts, simplest_line
from odkanon.model.od import ODMatrix, od_matrix
from odkanon.model.provenance import Source
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.utility import utility
from odkanon.zoning.cells import cell_radius, cell_to_latlng
from odkanon.zoning.lookup import lookup_hierarchy
from worlds.matrices import WORLD_CELLS, golden_od, od_of_cells, random_od
from worlds.tries import tries

RULES = [Rule(trips=3), Rule(weight=6), Rule(persons=3), Rule(trips=4, weight=5, persons=2)]
Points = npt.NDArray[np.float64]
STEP = 1 / 256
"""Degrees from one line of the grid to the next, for cells of resolution 10: a cell is 1/733 of a degree wide."""


def points_of(od: ODMatrix) -> Points:
    """One row of start_lon, start_lat, end_lon, end_lat for each pair, rounded down to the grid."""
    start_lat, start_lon = cell_to_latlng(od.origins.leaves[od.flows.origin])
    end_lat, end_lon = cell_to_latlng(od.destinations.leaves[od.flows.destination])
    return np.floor(np.stack([start_lon, start_lat, end_lon, end_lat], axis=1) / STEP) * STEP


def meets(od: ODMatrix, rule: Rule, pairs: list[int]) -> bool:
    flows = od.flows
    assert flows.weight_units is not None
    trips = int(flows.trips[pairs].sum())
    weight = Fraction(int(flows.weight_units[pairs].sum()), flows.scale)
    contributions = flows.contributions["persons"]
    persons = len(np.unique(contributions.contributor[np.isin(contributions.flow, pairs)]))
    return trips >= (rule.trips or 0) and weight >= (rule.weight or 0) and persons >= (rule.persons or 0)


def allowed_cuts(
    od: ODMatrix, rule: Rule, points: Points, pairs: list[int], axis: int
) -> list[tuple[list[int], list[int]]]:
    values = sorted({float(points[pair, axis]) for pair in pairs})
    cuts = [
        (
            [pair for pair in pairs if points[pair, axis] <= value],
            [pair for pair in pairs if points[pair, axis] > value],
        )
        for value in values[:-1]
    ]
    return [(left, right) for left, right in cuts if meets(od, rule, left) and meets(od, rule, right)]


def naive(od: ODMatrix, rule: Rule, points: Points, pairs: list[int]) -> list[list[int]]:
    """Mondrian as its definition says, one box at a time."""
    volume = od.flows.weight_units if rule.main_measure == "weight" else od.flows.trips
    assert volume is not None
    full = np.ptp(points, axis=0)
    spans = [np.ptp(points[pairs, axis]) / full[axis] if full[axis] else 0 for axis in range(4)]
    for axis in sorted(range(4), key=lambda axis: -spans[axis]):
        cuts = allowed_cuts(od, rule, points, pairs, axis)
        if cuts:
            left, right = min(cuts, key=lambda cut: abs(int(volume[cut[0]].sum()) - int(volume[cut[1]].sum())))
            return naive(od, rule, points, left) + naive(od, rule, points, right)
    return [pairs]


def classes_of(release: Release) -> list[list[int]]:
    return [np.flatnonzero(release.area_of_pair == number).tolist() for number in range(len(release.classes))]


@tries(150)
@given(random_od(max_records=45), st.sampled_from(RULES))
def test_equals_naive_recursion_and_no_class_can_be_cut_again(od: ODMatrix, rule: Rule) -> None:
    release = anonymize(od, rule, method="mondrian")
    everything = list(range(len(od)))
    if not meets(od, rule, everything):
        assert release.refusal is not None
        return
    points = points_of(od)
    assert sorted(classes_of(release)) == sorted(naive(od, rule, points, everything))
    assert release.published.all()
    for pairs in classes_of(release):
        assert not any(allowed_cuts(od, rule, points, pairs, axis) for axis in range(4))


def boxes_of(release: Release) -> tuple[Points, Points]:
    """Lower and upper corners of the classes, one row each."""
    origin, destination = release.origins.bounds, release.destinations.bounds
    assert origin is not None
    assert destination is not None
    origin, destination = origin[release.classes.origin], destination[release.classes.destination]
    return np.hstack([origin[:, :2], destination[:, :2]]), np.hstack([origin[:, 2:], destination[:, 2:]])


@pytest.mark.parametrize("name", ["tiny", "few-destinations", "turin-3k"])
def test_boxes_are_disjoint_and_cover_the_points(name: str) -> None:
    od = golden_od(name)
    release = anonymize(od, Rule(trips=5), method="mondrian")
    low, high = boxes_of(release)
    assert np.all(low < high)
    apart = np.any((high[:, None] <= low[None]) | (high[None] <= low[:, None]), axis=2)
    assert np.all(apart | np.eye(len(low), dtype=bool))
    points = points_of(od)
    within = np.all((low[None] <= points[:, None]) & (points[:, None] < high[None]), axis=2)
    assert np.array_equal(within.argmax(axis=1), release.area_of_pair)
    assert np.all(within.sum(axis=1) == 1)
    # They fill the frame: volumes add up.
    frame = np.prod(high.max(axis=0) - low.min(axis=0))
    assert np.prod(high - low, axis=1).sum() == pytest.approx(frame)


def test_borders_are_the_simplest_lines_of_the_grid() -> None:
    """Of all grid lines between two neighbouring values, the one with the fewest binary digits."""
    left, right = np.array([0, 4, 5, 6, 1023, 3]), np.array([1, 5, 7, 9, 1030, 100])
    expected = [
        max(range(a + 1, b + 1), key=lambda line: (line & -line, -line))
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert simplest_line(left, right).tolist() == expected == [1, 5, 6, 8, 1024, 64]


@pytest.mark.parametrize("resolution", range(16))
def test_a_step_of_the_grid_is_at_least_twice_as_wide_as_a_cell(resolution: int) -> None:
    step = Grid.of_resolution(resolution).step
    assert 4 * cell_radius(resolution) <= step < 8 * cell_radius(resolution)
    assert Fraction(step).denominator.bit_count() == Fraction(step).numerator.bit_count() == 1


def test_the_ends_of_the_world_are_inside_the_frame() -> None:
    for resolution in (0, 2, 10):
        grid = Grid.of_resolution(resolution)
        squares = grid.squares(np.array([-180.0, 179.9999]), np.array([-90.0, 89.9999]))
        assert grid.degrees(grid.frame(squares, squares.min(axis=1), squares.max(axis=1))).tolist() == [
            [-180.0, -90.0],
            [180.0, 90.0],
        ]


@tries(30)
@given(random_od(equal_weights=True), st.integers(1, 6))
def test_equal_weights_protect_population_and_participants_alike(od: ODMatrix, k: int) -> None:
    by_trips = anonymize(od, Rule.protect("participants", k=k, of=od), method="mondrian")
    by_weight = anonymize(od, Rule.protect("population", k=k, of=od), method="mondrian")
    assert np.array_equal(by_trips.area_of_pair, by_weight.area_of_pair)


def test_weights_take_no_more_work_than_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted in places at which a cut is thought of; weights as repeated rows would make 2,500 times more."""
    od = golden_od("paris-28k")
    work: list[int] = []

    def counting(sums: Sums, points: Ints, values: Ints, boxes: Segments) -> tuple[Ints, Ints]:
        assert len(np.unique(points)) == len(points)
        work.append(len(points))
        return median_cuts(sums, points, values, boxes)

    monkeypatch.setattr(import_module("odkanon.methods.mondrian"), "median_cuts", counting)
    totals = []
    for target in ("participants", "population"):
        work.clear()
        anonymize(od, Rule.protect(target, k=10, of=od), method="mondrian")
        totals.append(sum(work))
    assert totals[1] < 1.2 * totals[0]


def test_row_order_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    ends = rng.choice(WORLD_CELLS, (2, 300))
    shuffled = rng.permutation(300)
    one = anonymize(od_of_cells(*ends), Rule(trips=4), method="mondrian")
    other = anonymize(od_of_cells(*ends[:, shuffled]), Rule(trips=4), method="mondrian")
    assert np.array_equal(one.classes.trips, other.classes.trips)
    assert np.array_equal(boxes_of(one)[0], boxes_of(other)[0])


def test_one_pair_is_one_class() -> None:
    od = od_of_cells(WORLD_CELLS[:1], WORLD_CELLS[5:6], trips=np.array([7]))
    release = anonymize(od, Rule(trips=2), method="mondrian")
    assert release.origins.ids.tolist() == ["o0"]
    assert release.destinations.ids.tolist() == ["d0"]


def test_names_sort_like_numbers_and_g_is_not_defined() -> None:
    od = golden_od("turin-3k")
    release = anonymize(od, Rule(trips=10), method="mondrian")
    assert release.origins.ids[:2].tolist() == ["o000", "o001"]
    assert np.array_equal(release.classes.origin, np.arange(len(release.classes)))
    measured = utility(od, release)
    assert measured.g is None
    assert measured.e is None
    assert 1 <= (measured.c_avg or 0) < 2


def test_unreachable_rule_is_refused() -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=10**6), method="mondrian")
    assert release.refusal is not None
    assert "400 trips" in release.refusal


def test_lookup_zones_have_no_coordinates() -> None:
    tree = lookup_hierarchy(pa.table({"commune": ["a", "b"], "department": ["x", "x"]}))
    codes = np.array([0, 1], dtype=np.int32)
    od = od_matrix(tree, tree, codes, codes, source=Source(rows=2))
    with pytest.raises(InputError, match="coordinates"):
        anonymize(od, Rule(trips=1), method="mondrian")
