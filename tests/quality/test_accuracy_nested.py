"""Rows that lie in others, on places and on kinds of trips, are spread over what the finer ones leave of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import h3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import Rule, make_survey, read_trips
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.quality.accuracy.accuracy import accuracy, map_leaves
from odkanon.quality.accuracy.row_masses import correct_masses, enclosing_rows, masses_to_spread
from odkanon.quality.accuracy.squares import Squares
from odkanon.read.od_matrix import build_od
from odkanon.zoning.zone_nodes import CellNodes, attribute_nodes, cell_nodes, place_nodes
from odkanon.zoning.zones import Zones
from worlds.matrices import cells_below, town
from worlds.polygons import square_town
from worlds.tries import tries

RESOLUTION = 7


def nodes(names: list[str]) -> CellNodes:
    found = cell_nodes(names)
    assert found is not None
    return found


LEVELS = [(10, 10), (9, 10), (9, 9), (8, 9), (8, 8)]


@tries(20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_rows_inside_rows_share_the_area_that_no_finer_row_covers(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    leaves = cells_below(("881fb46711fffff",))
    rows = {}
    for _ in range(count):
        row, column = LEVELS[random.integers(len(LEVELS))]
        names = [h3.int_to_str(int(random.choice(leaves[:14]))) for _ in range(2)]
        rows[h3.cell_to_parent(names[0], row), h3.cell_to_parent(names[1], column)] = int(random.integers(1, 50))
    keys = sorted(rows)
    origin, destination = (nodes([key[end] for key in keys]) for end in (0, 1))
    mass = np.array([[float(rows[key])] for key in keys])
    found = correct_masses(mass, [origin, destination])[:, 0]
    assert found.sum() == pytest.approx(mass.sum())
    boxes = [(set(h3.cell_to_children(a, 10)), set(h3.cell_to_children(b, 10))) for a, b in keys]
    expected, finest = np.zeros((49, 49)), np.full((49, 49), -1)
    names = [h3.int_to_str(int(leaf)) for leaf in leaves]
    for (i, a), (j, b) in product(enumerate(names), enumerate(names)):
        over = [n for n, (left, right) in enumerate(boxes) if a in left and b in right]
        finest[i, j] = min(over, key=lambda n: len(boxes[n][0]) * len(boxes[n][1]), default=-1)
    for n, (left, right) in enumerate(boxes):
        own = finest == n
        inside = np.array([[a in left and b in right for b in names] for a in names])
        area = own if own.any() else inside
        expected[area] += mass[n, 0] / area.sum()
    spread = np.zeros((49, 49))
    for value, (left, right) in zip(found, boxes, strict=True):
        inside = np.array([[a in left and b in right for b in names] for a in names])
        spread[inside] += value / inside.sum()
    assert spread == pytest.approx(expected, abs=1e-9)


def test_a_row_lies_in_the_finest_row_around_it() -> None:
    leaf, parent, above = "8a1fb4671017fff", "891fb467103ffff", "881fb46711fffff"
    assert h3.cell_to_parent(leaf, 9) == parent
    rows = [(leaf, leaf), (parent, parent), (above, above), (leaf, above)]
    origin, destination = (nodes([row[end] for row in rows]) for end in (0, 1))
    assert enclosing_rows([origin, destination])[:3].tolist() in ([1, 2, -1], [3, 2, -1])


@pytest.mark.parametrize("substeps", [False, True])
def test_a_cascade_is_spread_over_what_finer_rows_leave(substeps: bool) -> None:
    """Each public leaf pair gets what the finest row over it has for it."""
    od = town(5, trips=400, spread=0.004)
    release = anonymize(od, Rule(trips=10), method="cascade", substeps=substeps, coarsest=8)
    classes, zones = release.classes, (release.origins, release.destinations)
    leaves = [
        [{leaf for cell in (cells or [name]) for leaf in h3.cell_to_children(cell, 10)} for name, cells in named(side)]
        for side in zones
    ]
    universe = [sorted(set.union(*side)) for side in leaves]
    place = [{leaf: number for number, leaf in enumerate(side)} for side in universe]
    inside = [[np.array([place[end][leaf] for leaf in zone]) for zone in side] for end, side in enumerate(leaves)]
    ends = list(zip(classes.origin.tolist(), classes.destination.tolist(), strict=True))
    sizes = np.array([len(inside[0][o]) * len(inside[1][d]) for o, d in ends])
    finest = np.full([len(side) for side in universe], -1)
    for row in np.argsort(-sizes, kind="stable").tolist():
        finest[np.ix_(inside[0][ends[row][0]], inside[1][ends[row][1]])] = row
    own = np.bincount(finest[finest >= 0], minlength=len(ends))
    expected = np.where(finest >= 0, (classes.trips / np.maximum(own, 1))[finest], 0.0)
    for row in np.flatnonzero(own == 0).tolist():
        expected[np.ix_(inside[0][ends[row][0]], inside[1][ends[row][1]])] += classes.trips[row] / sizes[row]
    axes = [(nodes(side.ids.tolist()), which) for side, which in zip(zones, np.array(ends).T, strict=True)]
    masses = masses_to_spread(classes.trips[:, None].astype(np.float64), axes)
    spread = np.zeros_like(expected)
    for (o, d), mass, size in zip(ends, masses[:, 0], sizes, strict=True):
        spread[np.ix_(inside[0][o], inside[1][d])] += mass / size
    assert np.abs(spread - expected).max() < 1e-9
    assert (masses[:, 0] != classes.trips).any()


def named(zones: Zones) -> list[tuple[str, list[str]]]:
    cells = zones.cells or ((),) * len(zones)
    return [(str(name), list(part)) for name, part in zip(zones.ids, cells, strict=True)]


@dataclass
class Leaves:
    """The leaves of an axis that rows have, by what rows call them, and where each is on the map."""

    names: list[str]
    below: Mapping[str, list[str]]

    def numbers(self, label: str) -> np.ndarray:
        place = {name: number for number, name in enumerate(self.names)}
        return np.array([place[leaf] for leaf in self.below[label]])


def spread_out(rows: Sequence[tuple[str, ...]], trips: np.ndarray, axes: Sequence[Leaves]) -> np.ndarray:
    """Spread each row over the boxes of leaves of which it is the finest row, and add kinds up."""
    boxes = [np.ix_(*(axis.numbers(label) for axis, label in zip(axes, row, strict=True))) for row in rows]
    sizes = np.array([np.prod([side.size for side in box]) for box in boxes])
    finest = np.full([len(axis.names) for axis in axes], -1)
    for row in np.argsort(-sizes, kind="stable").tolist():
        finest[boxes[row]] = row
    own = np.bincount(finest[finest >= 0], minlength=len(rows))
    spread = np.where(finest >= 0, (trips / np.maximum(own, 1))[finest], 0.0)
    for row in np.flatnonzero(own == 0).tolist():
        spread[boxes[row]] += trips[row] / sizes[row]
    return np.asarray(spread.sum(axis=tuple(range(2, len(axes)))))


def kinds_below(labels: Sequence[str], levels: Sequence[Sequence[str]]) -> Leaves:
    chains = list(zip(*levels, strict=True))
    below = {label: [str(at) for at, chain in enumerate(chains) if label in chain] for label in set(labels)}
    return Leaves([str(at) for at in range(len(chains))], below)


def cells_of(names: Sequence[str]) -> Leaves:
    below = {name: h3.cell_to_children(name, RESOLUTION) for name in set(names)}
    return Leaves(sorted(set().union(*below.values())), below)


def told(release: Release) -> list[tuple[str, ...]]:
    table = release.to_arrow()
    names = ["origin", "destination", *release.classes.attributes]
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def expected_cpc(od: ODMatrix, spread: np.ndarray, leaves: Sequence[Leaves], km: float) -> float:
    """CPC by the definition, from a release on all pairs of leaf cells."""
    found = map_leaves(od)
    assert found is not None
    about, ends = found
    of_leaf = [Squares(km).locate(*end) for end in (ends.origin, ends.destination)]
    truth: dict[tuple[int, int], float] = {}
    for o, d, trips in zip(od.flows.origin, od.flows.destination, od.flows.trips.tolist(), strict=True):
        key = int(of_leaf[0][o]), int(of_leaf[1][d])
        truth[key] = truth.get(key, 0) + trips
    squares = []
    for axis in leaves:
        x, y = about.to_metres(*np.array([h3.cell_to_latlng(cell) for cell in axis.names]).T)
        squares.append(Squares(km).locate(np.rint(x), np.rint(y)))
    pairs, number = np.unique(
        np.stack(np.meshgrid(*squares, indexing="ij"), -1).reshape(-1, 2), axis=0, return_inverse=True
    )
    after = dict(zip(map(tuple, pairs.tolist()), np.bincount(number.ravel(), spread.ravel()), strict=True))
    common = sum(min(mass, after.get(key, 0.0)) for key, mass in truth.items())
    return float(2 * common) / float(sum(truth.values()) + spread.sum())


def some_cube(seed: int, count: int) -> ODMatrix:
    """Return trips of the sample that begin and end in its middle, by sex and by part of the day."""
    table = make_survey()
    lat, lon = (np.stack([table.column(f"{end}_{side}") for end in ("start", "end")]) for side in ("lat", "lon"))
    near = (np.abs(lat - 48.86) < 0.05).all(axis=0) & (np.abs(lon - 2.34) < 0.08).all(axis=0)
    some = np.random.default_rng(seed).permutation(np.flatnonzero(near))[:count]
    od = build_od(read_trips(table.take(np.sort(some))), by=["sex", "hour:0-9,9-17,17-24"], resolution=RESOLUTION)
    return replace(od, finer=None)  # compared at the centres of its leaves, which are all that the brute force knows


@tries(8)
@given(
    st.integers(0, 99),
    st.integers(40, 400),
    st.sampled_from(["place:6,hour,sex,place", "hour,place:6,sex,place", "place:5,sex,hour,place"]),
)
def test_usefulness_of_a_cube_equals_brute_force_over_places_and_kinds(seed: int, count: int, order: str) -> None:
    od = some_cube(seed, count)
    release = anonymize(od, Rule(trips=4), method="cascade", drop_order=order, coarsest=5)
    rows = told(release)
    assert rows
    ends = [cells_of([row[at] for row in rows]) for at in (0, 1)]
    attributes = [
        kinds_below([row[2 + at] for row in rows], axis.listed([row[2 + at] for row in rows]))
        for at, axis in enumerate(od.axes)
    ]
    spread = spread_out(rows, release.classes.trips, [*ends, *attributes])
    assert spread.sum() == pytest.approx(release.classes.trips.sum())
    found = accuracy(release, sizes=(5.0, 10.0))["trips"]
    for place in found.squares:
        assert place.km is not None
        assert place.cpc == pytest.approx(expected_cpc(od, spread, ends, place.km))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        # Of seven leaves and two kinds twelve are left, eight trips on each.
        (["a", "b", "any"], [10 - 8, 20 - 8, 14 * 8]),
        (["a", "any"], [10 - 96 / 13, 14 * 96 / 13]),
    ],
)
def test_a_coarse_row_of_a_cube_is_not_spread_where_finer_ones_of_its_kinds_lie(
    attributes: list[str], expected: list[float]
) -> None:
    leaf, to = "8a1fb4671017fff", "8a1fb4671047fff"
    above = h3.cell_to_parent(leaf, 9)
    inner = [0] * (len(attributes) - 1)
    ends = [
        (nodes([leaf, above]), np.array([*inner, 1])),
        (nodes([to]), np.zeros(len(attributes), dtype=np.int64)),
    ]
    mass = np.array([[10.0], [20.0], [96.0]])[[*range(len(inner)), 2]]
    found = masses_to_spread(mass, [*ends, attribute_nodes(np.array(attributes), [["a", "b"], ["any", "any"]])])[:, 0]
    assert found.sum() == pytest.approx(mass.sum())
    assert found == pytest.approx(expected)


def test_kinds_count_by_the_values_that_readers_know() -> None:
    levels = [["1", "2", "3", "(not listed)"], ["car", "car", "bus", "(not listed)"], ["any"] * 4]
    found, which = attribute_nodes(np.array(["any", "car", "2", "any", "bus"]), levels)
    assert found.take(which).depth.tolist() == [0, 1, 2, 0, 1]
    assert found.take(which).size.tolist() == [4, 2, 1, 4, 1]
    rows = found.take(which)
    assert rows.above(np.array([1, 2]), 1).tolist() == [rows.above(np.array([1]), 1)[0]] * 2
    assert rows.above(np.array([1]), 1) != rows.above(np.array([4]), 1)


def test_rows_of_a_lookup_table_stand_for_the_residual_of_their_polygons() -> None:
    od = square_town(3)
    release = anonymize(od, Rule(trips=10), method="cascade")
    tree = od.origins.public or od.origins
    chains = list(zip(*(ids[code].tolist() for ids, code in zip(tree.ids, tree.codes, strict=True)), strict=True))
    rows = told(release)
    ends = [
        Leaves([chain[0] for chain in chains], {row[at]: [c[0] for c in chains if row[at] in c] for row in rows})
        for at in (0, 1)
    ]
    expected = spread_out(rows, release.classes.trips, ends)
    numbers = release.classes.origin.astype(np.int64), release.classes.destination.astype(np.int64)
    axes = [
        (place_nodes(zones, od.origins), which)
        for zones, which in zip((release.origins, release.destinations), numbers, strict=True)
    ]
    published = release.classes.trips[:, None].astype(np.float64)
    for masses, right in ((masses_to_spread(published, axes), True), (published, False)):
        spread = np.zeros_like(expected)
        for row, mass in zip(rows, masses[:, 0].tolist(), strict=True):
            box = np.ix_(*(end.numbers(label) for end, label in zip(ends, row, strict=True)))
            spread[box] += mass / box[0].size / box[1].size
        # To the north squares of degrees are smaller, by half a per cent over the town.
        assert np.allclose(spread, expected, rtol=0.02, atol=0.02) == right
