"""Where boxes may be cut, by hand and at the boundaries."""

from __future__ import annotations

import numpy as np
import pytest

from odkanon.core.arrays import Ints
from odkanon.methods.median_cuts import Grid, Segments, Sums, median_cuts
from odkanon.model.flows import Contributions

BOXES = Segments(np.array([0, 1, 4]), np.array([1, 3, 2]))
"""Three boxes: of one point, of three and of two."""
POINTS = np.arange(6)


def contributions_of(*contributors: list[int]) -> Contributions:
    """Return who is in which point, point by point."""
    flow = np.repeat(np.arange(len(contributors)), [len(each) for each in contributors]).astype(np.int32)
    contributor = np.array([who for each in contributors for who in each], dtype=np.int32)
    return Contributions(flow, contributor, 10)


def counts_distinct(contributions: Contributions, threshold: int) -> Sums:
    return Sums(np.ones(6, dtype=np.int64), (), ((contributions, threshold),))


def by_mass(mass: Ints, threshold: int) -> Sums:
    return Sums(mass, ((mass, threshold),), ())


def test_running_sums_begin_anew_in_each_box() -> None:
    sums, totals = BOXES.running(np.array([5, 1, 2, 3, 7, 8]))
    assert sums.tolist() == [5, 1, 3, 6, 7, 15]
    assert totals.tolist() == [5, 6, 15]


def test_only_boxes_with_points_and_mass_for_two_are_looked_at() -> None:
    mass = np.array([90, 5, 5, 10, 5, 14])
    assert by_mass(mass, 10).can_be_cut(POINTS, BOXES).tolist() == [False, True, False]
    assert by_mass(mass, 9).can_be_cut(POINTS, BOXES).tolist() == [False, True, True]
    two = Sums(mass, ((mass, 9), (mass[::-1].copy(), 9)), ())
    assert two.can_be_cut(POINTS, BOXES).tolist() == [False, True, True]
    two = Sums(mass, ((mass, 11), (mass[::-1].copy(), 9)), ())
    assert two.can_be_cut(POINTS, BOXES).tolist() == [False, False, False]


def test_both_sides_of_a_cut_have_exactly_enough() -> None:
    mass = np.array([90, 5, 5, 10, 5, 14])
    assert np.flatnonzero(by_mass(mass, 10).allowed(POINTS, BOXES)).tolist() == [2]
    assert np.flatnonzero(by_mass(mass, 5).allowed(POINTS, BOXES)).tolist() == [1, 2, 4]


@pytest.mark.parametrize("threshold", [1, 2, 3])
def test_contributors_are_counted_once_on_each_side(threshold: int) -> None:
    """By hand: in the box of three points, 1 and 2 are in the first, 2 and 3 in the next, 1 and 4 in the last."""
    contributions = contributions_of([9], [1, 2], [2, 3], [1, 4], [5], [])
    left, right = {1: [1, 2], 2: [1, 2, 3], 4: [5]}, {1: [1, 2, 3, 4], 2: [1, 4], 4: []}
    allowed = [at for at in left if min(len(left[at]), len(right[at])) >= threshold]
    assert np.flatnonzero(counts_distinct(contributions, threshold).allowed(POINTS, BOXES)).tolist() == allowed


def test_points_that_nobody_named_have_no_contributors() -> None:
    assert not counts_distinct(contributions_of(), 1).allowed(POINTS, BOXES).any()
    assert (
        counts_distinct(contributions_of([1], [2], [3]), 1).allowed(POINTS, BOXES).tolist()
        == [False, True] + [False] * 4
    )


def test_equal_values_are_not_parted_and_the_most_equal_cut_is_taken() -> None:
    values = np.array([0, 1, 1, 2, 3, 3])
    boxes, cuts = median_cuts(by_mass(np.array([9, 4, 4, 4, 9, 9]), 2), POINTS, values, BOXES)
    assert (boxes.tolist(), cuts.tolist()) == ([1], [2])
    boxes, cuts = median_cuts(by_mass(np.array([9, 4, 4, 4, 9, 9]), 2), POINTS, POINTS, BOXES)
    assert (boxes.tolist(), cuts.tolist()) == ([1, 2], [1, 4])


def test_the_frame_ends_at_the_next_of_every_sixteenth_lines() -> None:
    squares = np.array([[5, 37], [16, 31]])
    assert Grid(1.0).frame(squares, squares.min(axis=1), squares.max(axis=1)).tolist() == [[0, 16], [48, 32]]


def test_the_frame_goes_by_where_enough_trips_are() -> None:
    """Up to square 7 there are five trips, and from square 4 on; of fewer, only how far they are matters, roughly."""
    values = np.array([7, 4, 9, 2])
    assert by_mass(np.array([3, 2, 2, 1]), 5).inner(values) == (7, 7)
    assert by_mass(np.array([3, 1, 2, 1]), 7).inner(values) == (9, 2)
    assert counts_distinct(contributions_of([1], [2], [1], [3]), 2).inner(values) == (4, 4)
    near = np.array([100, 20])
    ends = {
        far: Grid(1.0).frame(np.array([[far, 100], [20, 20]]), near, near)[0, 0] for far in (96, 95, 64, 63, 32, 31)
    }
    assert ends == {96: 96, 95: 64, 64: 64, 63: 0, 32: 0, 31: 0}
    beyond = [Grid(1.0).frame(np.array([[100, far], [20, 20]]), near, near)[1, 0] for far in (111, 112, 159, 160)]
    assert beyond == [112, 160, 160, 192]
