"""What the borders of boxes give away of the cells on both sides of them.

The attacker has the published borders and a map of all H3 cells, and knows how borders come about: half-way between two
neighbouring values. Whichever two cells have that middle are then the ones next to the border.
"""

from __future__ import annotations

from collections import defaultdict

import h3
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import Rule
from odkanon.methods.median_cuts import Grid
from odkanon.methods.method_registry import anonymize
from odkanon.model.flows import Flows
from odkanon.zoning.cells import cell_to_latlng, cell_to_parent
from worlds.matrices import golden_od, od_of_cells
from worlds.tries import tries

RULE = Rule(trips=4)
PLACES = np.array(
    sorted(h3.str_to_int(cell) for cell in h3.cell_to_children(h3.latlng_to_cell(45.07, 7.68, 7), 10)), dtype=np.uint64
)
LATITUDE = cell_to_latlng(PLACES)[0].round(9)
Floats = npt.NDArray[np.float64]


def squares(cells: npt.NDArray[np.uint64]) -> list[tuple[int, int]]:
    """The squares of the public grid in which cells lie: 256 lines a degree at this resolution."""
    lat, lon = cell_to_latlng(cells)
    return list(zip(np.floor(lat * 256).tolist(), np.floor(lon * 256).tolist(), strict=True))


def named_by(borders: Floats) -> list[tuple[float, float]]:
    """The two latitudes, of all that cells have, which a border lies half-way between; where only two do."""
    values = np.unique(LATITUDE)
    middle = (values[:, None] + values[None]) / 2
    found = []
    for border in borders.tolist():
        low, high = np.nonzero(np.abs(middle - border) < 1e-10)
        pairs = {(low, high) for low, high in zip(low.tolist(), high.tolist(), strict=True) if low < high}
        if len(pairs) == 1:
            (pair,) = pairs
            found.append((float(values[pair[0]]), float(values[pair[1]])))
    return found


def trips(seed: int = 5) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    rng = np.random.default_rng(seed)
    return rng.choice(PLACES, 400), rng.choice(PLACES[::7], 400)


def test_the_attacker_names_cells_next_to_borders_half_way_between_them() -> None:
    """The release as it would be with one cut: at the weighted median, half-way between neighbouring values."""
    observed = np.unique(cell_to_latlng(trips()[0])[0].round(9))
    at = len(observed) // 2
    assert (observed[at], observed[at + 1]) in named_by((observed[1:] + observed[:-1]) / 2)
    right = {pair for pair in named_by((observed[1:] + observed[:-1]) / 2) if set(pair) <= set(observed.tolist())}
    assert len(right) > len(observed) // 2


def test_the_attacker_names_no_cell_next_to_our_borders() -> None:
    release = anonymize(od_of_cells(*trips()), RULE, method="mondrian")
    assert release.origins.bounds is not None
    assert len(release.classes) > 20
    borders = np.unique(release.origins.bounds[:, [1, 3]])
    assert named_by(borders) == []
    assert np.all(borders * 256 == np.round(borders * 256))


SQUARE_OF = squares(PLACES)
TOGETHER = {
    square: [cell for cell, its in zip(PLACES.tolist(), SQUARE_OF, strict=True) if its == square]
    for square in set(SQUARE_OF)
}


@tries(40)
@given(st.integers(0, 2**32 - 1))
def test_borders_are_the_same_wherever_in_their_squares_the_cells_are(seed: int) -> None:
    """So that nothing finer than a square of the grid can follow from them, by this attack or by any other."""
    rng = np.random.default_rng(seed)
    ends = trips(seed)
    moved = [np.array([rng.choice(TOGETHER[square]) for square in squares(end)], dtype=np.uint64) for end in ends]
    one, other = (anonymize(od_of_cells(*each), RULE, method="mondrian") for each in (ends, moved))
    for axis in ("origins", "destinations"):
        assert np.array_equal(getattr(one, axis).bounds, getattr(other, axis).bounds)
    assert one.classes.trips.tolist() == other.classes.trips.tolist()


def test_squares_hide_which_cell_it_is() -> None:
    assert min(len(cells) for square, cells in TOGETHER.items() if _is_inside(square)) >= 2


def _is_inside(square: tuple[int, int]) -> bool:
    return all((square[0] + i, square[1] + j) in TOGETHER for i in (-1, 0, 1) for j in (-1, 0, 1))


@pytest.mark.parametrize("name", ["turin-3k", "paris-28k"])
def test_the_frame_ends_at_every_16th_line(name: str) -> None:
    release = anonymize(golden_od(name), Rule(trips=10), method="mondrian")
    for zones in (release.origins, release.destinations):
        assert zones.bounds is not None
        ends = np.concatenate([zones.bounds[:, :2].min(axis=0), zones.bounds[:, 2:].max(axis=0)]) * 16
        assert np.array_equal(ends, np.round(ends))


FAR = np.array(
    [h3.str_to_int(h3.latlng_to_cell(45.07, 7.68 - away, 10)) for away in np.arange(0.2, 20, 0.05)], np.uint64
)
"""Places ever farther to the west."""


@pytest.mark.parametrize("rule", [RULE, Rule(persons=4)], ids=str)
def test_the_frame_does_not_follow_a_lone_trip(rule: Rule) -> None:
    """It ended at the next of lines 1/16 of a degree apart, so that each of these places but a few had its own."""
    origins, destinations = trips()
    who = np.arange(len(origins) + 1, dtype=np.int32)
    frames = []
    for far in FAR[::6]:
        ends = np.append(origins, far), np.append(destinations, destinations[0])
        release = anonymize(od_of_cells(*ends, person=who), rule, method="mondrian")
        assert release.origins.bounds is not None
        frames.append(float(release.origins.bounds[:, 0].min()))
        assert frames[-1] <= cell_to_latlng(np.array([far], np.uint64))[1][0]
    assert len(set(frames)) <= 8


def test_a_narrow_strip_in_which_somebody_must_be_has_enough_trips() -> None:
    """All places of the first trip and of the one with which there are enough: what the end of the frame tells."""
    grid, seen = Grid(1.0), defaultdict(list)
    for enough in range(128, 256):
        for first in range(enough + 1):
            squares = np.array([[first, 300], [0, 0]])
            frame = grid.frame(squares, np.array([enough, 0]), np.array([300, 0]))
            assert frame[0, 0] <= first
            seen[int(frame[0, 0])].append((first, enough))
    for line, inputs in seen.items():
        certain = max(first for first, _ in inputs) + 1
        assert certain - line >= 48 or all(enough < certain for _, enough in inputs)


@pytest.mark.parametrize(
    ("rule", "how"), [(Rule(trips=10), {}), (Rule(weight=25_000), {}), (Rule(trips=10), {"symmetric": True})], ids=str
)
def test_free_zones_do_not_end_where_few_trips_do(rule: Rule, how: dict[str, bool]) -> None:
    """A zone has a cell of its own where there are trips in its parent; with few of them, it told of these."""
    od = golden_od("turin-3k")
    release = anonymize(od, rule, method="freezones", iterations=20, **how)
    ends = od.origins.leaves[od.flows.origin], od.destinations.leaves[od.flows.destination]
    for zones, own in zip((release.origins, release.destinations), ends, strict=True):
        assert zones.cells is not None
        parents = {h3.cell_to_parent(cell) for part in zones.cells for cell in part}
        assert len(parents) > 20
        for parent in parents:
            here = [cell_to_parent(end, h3.get_resolution(parent)) == h3.str_to_int(parent) for end in ends]
            sides = here if how else [here[0] if own is ends[0] else here[1]]
            assert any(rule.meets_thresholds(_all(od.flows, side)).all() for side in sides if side.any())


def _all(flows: Flows, which: npt.NDArray[np.bool_]) -> Flows:
    some = flows.take(which)
    return some.merge(np.zeros(len(some), np.int32), np.zeros(len(some), np.int32))[0]
