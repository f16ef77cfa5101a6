"""Usefulness equals a brute force over all squares and all leaf pairs, for every method and on every engine."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from math import floor

import h3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odkanon import InputError, Rule, read_trips
from odkanon.attributes.spec import parse_attributes
from odkanon.engine.dispatch import load_table
from odkanon.engine.duckdb.backend import DuckDb, DuckInput
from odkanon.methods.method_registry import anonymize
from odkanon.model.measures import exact_masses
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.quality.accuracy.accuracy import accuracy, map_leaves
from odkanon.quality.accuracy.comparison import LARGE, NEAR, locate_leaves
from odkanon.quality.accuracy.squares import GivenZones, Squares, number_pairs
from odkanon.quality.accuracy.zone_samples import locate_zones
from odkanon.read.input_spec import InputSpec
from odkanon.read.od_matrix import build_od
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.open_table import open_table
from odkanon.sample.survey import make_survey
from odkanon.zoning.cells import cell_to_str, latlng_to_cell
from odkanon.zoning.spherical_geometry import Projection
from odkanon.zoning.zones import Zones
from worlds.matrices import od_of_cells, random_od, town
from worlds.tries import tries

AXES = ("origins", "destinations")

Square = tuple[int, int]


def square(about: Projection, cell: str, km: float) -> Square:
    lat, lon = h3.cell_to_latlng(cell)
    x, y = about.to_metres(np.array([lat]), np.array([lon]))
    return floor(round(x[0]) / (1000 * km)), floor(round(y[0]) / (1000 * km))


def about_of(release: Release) -> Projection:
    assert release.matrix is not None
    found = map_leaves(release.matrix)
    assert found is not None
    return found[0]


def all_cells(release: Release, axis: str) -> list[str]:
    zones = getattr(release, axis)
    return [cell for cells in zones.cells for cell in cells] if zones.cells is not None else zones.ids.tolist()


def members(release: Release, axis: str, zone: int) -> list[str]:
    """The public leaves of a zone."""
    zones = getattr(release, axis)
    cells = zones.cells[zone] if zones.cells is not None else [str(zones.ids[zone])]
    return [leaf for cell in cells for leaf in h3.cell_to_children(cell, 10)]


def brute_force(od: ODMatrix, release: Release, km: float, measure: str) -> tuple[float, float, float, float | None]:
    """CPC, shares inside and the share of large flows that are near, from every pair of public leaves."""
    about = about_of(release)
    unit = od.flows.scale if measure == "weight" else 1
    truth: dict[tuple[Square, Square], float] = {}
    trips: dict[tuple[Square, Square], int] = {}
    labels = od.origins.labels(0), od.destinations.labels(0)
    where = {cell: square(about, cell, km) for part in labels for cell in part.tolist()}
    for origin, destination, mass, count in zip(
        od.flows.origin, od.flows.destination, exact_masses(od.flows, measure), od.flows.trips, strict=True
    ):
        key = where[labels[0][origin]], where[labels[1][destination]]
        truth[key] = truth.get(key, 0) + mass / unit
        trips[key] = trips.get(key, 0) + int(count)
    spread: dict[tuple[Square, Square], float] = {}
    classes = release.classes
    for origin, destination, mass in zip(
        classes.origin, classes.destination, exact_masses(classes, measure), strict=True
    ):
        ends = members(release, "origins", origin), members(release, "destinations", destination)
        squares = [Counter(square(about, cell, km) for cell in end) for end in ends]
        for (a, left), (b, right) in product(*(counted.items() for counted in squares)):
            part = left * right / (len(ends[0]) * len(ends[1]))
            spread[a, b] = spread.get((a, b), 0) + mass / unit * part
    common = sum(min(truth.get(key, 0), mass) for key, mass in spread.items())
    large = {key: mass for key, mass in truth.items() if trips[key] >= LARGE}
    near = sum(mass for key, mass in large.items() if abs(spread.get(key, 0) - mass) < NEAR * mass)
    return (
        2 * common / (sum(truth.values()) + sum(spread.values())),
        sum(mass for (a, b), mass in truth.items() if a == b) / sum(truth.values()),
        sum(mass for (a, b), mass in spread.items() if a == b) / sum(spread.values()),
        near / sum(large.values()) if large else None,
    )


@tries(20)
@given(
    random_od(max_records=30),
    st.sampled_from([Rule(trips=4), Rule(weight=8), Rule(persons=3)]),
    st.sampled_from(["odkanon", "oigh", "atg-soft", "freezones"]),
    st.sampled_from(["trips", "weight"]),
    st.sampled_from([(0.4, 1.6), (0.4, 2.0)]),
)
def test_usefulness_equals_brute_force_over_all_squares(
    od: ODMatrix, rule: Rule, method: str, measure: str, sizes: tuple[float, ...]
) -> None:
    try:
        release = anonymize(od, rule, method=method, budget=0.1)
    except InputError:
        return
    if release.refusal is not None or len(release.classes) == 0:
        return
    if min(h3.get_resolution(cell) for axis in AXES for cell in all_cells(release, axis)) < 7:
        return  # more leaves take the brute force too long
    found = accuracy(release, sizes=sizes)[measure]
    for place, km in zip(found.squares, sizes, strict=True):
        told = (place.cpc, place.inside_before, place.inside_after, place.large_near)
        assert told == pytest.approx(brute_force(od, release, km, measure))


def test_nothing_changed_is_perfect_and_suppression_is_not() -> None:
    od = town(1, trips=300)
    whole = accuracy(anonymize(od, Rule(trips=1), budget=0.0))["trips"]
    assert [place.cpc for place in whole.squares] == pytest.approx([1.0] * 4)
    assert (whole.length_overlap, whole.length_after) == pytest.approx((1.0, whole.length_before))
    assert whole.good_from == 1.0
    assert re.fullmatch(
        r"Flows .* right to 100% \(totals .*: \d+%; half .*: \d+%\); good from 1 km upward.", whole.sentence()
    )
    empty = accuracy(anonymize(od, Rule(trips=1000)))
    assert empty["trips"].squares[0].cpc == 0
    assert empty["trips"].good_from is None


def test_boxes_are_spread_over_their_area() -> None:
    """Mondrian's boxes, by thousands of random points in each."""
    od = town(2, trips=400)
    release = anonymize(od, Rule(trips=20), method="mondrian")
    about = about_of(release)
    random = np.random.default_rng(0)
    count = 4000
    places = Squares(2.0)
    keys, masses = [], []
    for origin, destination, trips in zip(
        release.classes.origin, release.classes.destination, release.classes.trips, strict=True
    ):
        squares = []
        for zones, zone in ((release.origins, origin), (release.destinations, destination)):
            assert zones.bounds is not None
            west, south, east, north = zones.bounds[zone]
            low, high = np.sin(np.radians([south, north]))
            lat = np.degrees(np.arcsin(random.uniform(low, high, count)))
            squares.append(places.locate(*about.to_metres(lat, random.uniform(west, east, count))))
        keys.append(np.stack(squares, axis=1))
        masses.append(np.full(count, trips / count))
    pairs, number = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    spread = dict(zip(map(tuple, pairs.tolist()), np.bincount(number.ravel(), np.concatenate(masses)), strict=True))
    lat, lon = np.array([h3.cell_to_latlng(cell) for cell in od.origins.labels(0)]).T
    to_lat, to_lon = np.array([h3.cell_to_latlng(cell) for cell in od.destinations.labels(0)]).T
    ends = places.locate(*about.to_metres(lat, lon)), places.locate(*about.to_metres(to_lat, to_lon))
    truth: dict[tuple[int, int], int] = {}
    for o, d, trips in zip(od.flows.origin, od.flows.destination, od.flows.trips, strict=True):
        key = int(ends[0][o]), int(ends[1][d])
        truth[key] = truth.get(key, 0) + int(trips)
    expected = 2 * sum(min(mass, spread.get(key, 0)) for key, mass in truth.items()) / (2 * od.trips)
    found = accuracy(release)["trips"].squares[1]
    assert found.cpc == pytest.approx(expected, abs=0.005)
    assert 0.02 < found.cpc < 0.95


@pytest.mark.parametrize(("fetchable", "cube"), [(0, False), (None, False), (0, True)])
def test_the_same_numbers_where_the_pairs_are_in_a_database(fetchable: int | None, cube: bool) -> None:
    table, method = make_survey().slice(0, 3000), "cascade" if cube else "odkanon"
    trips, attributes = read_trips(table), parse_attributes(["sex"]) if cube else []
    reference = anonymize(build_od(trips, by=["sex"]) if cube else build_od(trips), Rule(trips=10), method=method)
    stored = load_table(DuckInput(open_table(table), DuckDb(fetchable=fetchable)), InputSpec(), attributes=attributes)
    release = anonymize(stored, Rule(trips=10), method=method)
    assert accuracy(release)["trips"].squares[0].cpc > 0
    found, known = ({name: told.as_dict() for name, told in accuracy(each).items()} for each in (release, reference))
    assert all(square["ceiling"] > 0 for squares in known.values() for square in squares["squares"])
    assert found == known


def test_accuracy_is_compared_with_totals_and_with_half_of_the_input() -> None:
    """Where destinations do not depend on origins, totals say all; halves of persons are drawn at random here."""
    random = np.random.default_rng(1)
    cells = latlng_to_cell(48.85 + random.normal(0, 0.05, 40), 2.35 + random.normal(0, 0.05, 40), 10)
    origin, destination = (cells[random.integers(0, 40, 6000)] for _ in range(2))
    person = random.integers(0, 900, 6000).astype(np.int32)
    od = od_of_cells(origin, destination, weight=np.ones(6000, dtype=np.int64), scale=1, person=person)
    place = accuracy(anonymize(od, Rule(trips=10)))["trips"].squares[1]
    _, leaves = map_leaves(od) or (None, None)
    assert leaves is not None
    ends = locate_leaves(Squares(2.0), leaves)
    trees = (od.origins, od.destinations)
    leaf = [np.searchsorted(tree.leaves, side) for tree, side in zip(trees, (origin, destination), strict=True)]
    start, end = (np.unique(place[side], return_inverse=True)[1] for place, side in zip(ends, leaf, strict=True))
    flows = np.zeros((start.max() + 1, end.max() + 1))
    np.add.at(flows, (start, end), 1)
    model = np.outer(flows.sum(axis=1), flows.sum(axis=0)) / 6000
    assert place.floor == pytest.approx(np.minimum(flows, model).sum() / 6000, abs=0.01)
    key = start * flows.shape[1] + end
    common = []
    for _ in range(20):
        half = random.random(900)[person] < 0.5
        one, other = np.bincount(key[half], minlength=key.max() + 1), np.bincount(key[~half], minlength=key.max() + 1)
        common.append(2 * np.minimum(one / one.sum(), other / other.sum()).sum() / 2)
    assert place.ceiling == pytest.approx(np.mean(common), abs=0.02)


def test_places_of_the_users_own_cover_all_there_is() -> None:
    release = anonymize(town(3), Rule(trips=10))
    one = GivenZones("all", lambda x, y: np.zeros(len(x), dtype=np.int64))
    found = accuracy(release, zones=one)["trips"].zones
    assert found is not None
    published = release.classes.trips.sum() / release.input.trips
    assert found.cpc == pytest.approx(2 * published / (1 + published))
    assert (found.inside_before, found.inside_after) == pytest.approx((1, 1))


def test_squares_have_equal_areas() -> None:
    for lat in (-53.0, 0.0, 48.8, 69.5):
        about = Projection(lat, 179.9)
        for x, y in ((0.0, 0.0), (30_000.0, -40_000.0)):
            corners = np.array([[x, y], [x + 1000, y], [x + 1000, y + 1000], [x, y + 1000]])
            (south, west), (north, east) = (
                [float(side[0]) for side in about.to_degrees(corners[[at], 0], corners[[at], 1])] for at in (0, 2)
            )
            area = 6_371_008.8**2 * np.radians(east - west) * (np.sin(np.radians(north)) - np.sin(np.radians(south)))
            assert area == pytest.approx(1e6)
            back = about.to_metres(np.array([north]), np.array([(east + 180) % 360 - 180]))
            assert [side[0] for side in back] == pytest.approx([x + 1000, y + 1000])


def test_a_box_that_spans_an_ocean_is_counted_in_points() -> None:
    ocean = [-3e6, -2e6, 3e6, 2e6]
    shares = Squares(1.0).box_shares(np.array([[0.0, 0.0, 1000.0, 500.0], ocean, [-500.0, 0.0, 1500.0, 2000.0]]))
    assert len(shares.zone) < 5000
    assert np.allclose(np.bincount(shares.zone, shares.share), 1)
    of_last = shares.share[shares.zone == 2].reshape(3, 2)
    assert np.allclose(of_last, [[0.125, 0.125], [0.25, 0.25], [0.125, 0.125]])


@pytest.mark.parametrize("apart", [1, 2**26, 2**51])
def test_zones_and_places_are_told_apart_however_far_they_are(apart: int) -> None:
    random = np.random.default_rng(4)
    zone, place = random.integers(0, 5000, 3000), random.integers(0, 3, 3000) * apart + 2**51
    often = random.integers(1, 4, 3000)
    (zones, places), many = number_pairs(zone, place, often)
    expected: Counter[tuple[int, int]] = Counter()
    for key, times in zip(zip(zone.tolist(), place.tolist(), strict=True), often.tolist(), strict=True):
        expected[key] += times
    assert list(zip(zones.tolist(), places.tolist(), strict=True)) == sorted(expected)
    assert many.tolist() == [expected[key] for key in sorted(expected)]


@pytest.mark.parametrize("cells", [False, True], ids=["one cell each", "several cells each"])
def test_zones_inside_each_other_share_points_and_larger_squares_are_made_of_smaller_ones(cells: bool) -> None:
    middle = h3.latlng_to_cell(-33.45, -70.66, 5)
    near = [h3.cell_to_center_child(middle, resolution) for resolution in (5, 6, 7, 9)]
    names = [*near, h3.grid_ring(near[1], 1)[2], h3.grid_ring(near[3], 1)[0], "world", near[1]]
    parts = [(name,) if name in ("world", middle) else (name, h3.grid_ring(name, 2)[3]) for name in names]
    zones = Zones(
        np.array(names),
        np.ones(len(names), dtype=np.int64),
        resolution=None if cells else np.array([-1 if name == "world" else h3.get_resolution(name) for name in names]),
        cells=tuple(parts) if cells else None,
    )
    about = Projection(-33.4, -70.7)
    spots = found = locate_zones((zones, zones), (9, 9), about)
    for km in (1.0, 2.0, 4.0):
        square = Squares(km)
        spots = spots[0].on(square), spots[1].on(square)
        for axis in (0, 1):
            shares = spots[axis].shares(square)
            direct = found[axis].shares(square)
            assert np.array_equal(shares.share, direct.share)
            assert np.array_equal(shares.place, direct.place)
            for number, name in enumerate(names):
                told = dict(zip(shares.place[shares.zone == number], shares.share[shares.zone == number], strict=True))
                assert told == pytest.approx(counted_shares(parts[number] if cells else (name,), square, about))


def counted_shares(cells: tuple[str, ...], square: Squares, about: Projection) -> dict[int, float]:
    """Return the shares of a zone by looking at each cell below its cells: two or four levels down."""
    real = [cell for cell in cells if cell != "world"]
    if not real:
        return {}
    finest = min(9, h3.get_resolution(real[0]) + 4)
    centres = [h3.cell_to_latlng(child) for cell in real for child in h3.cell_to_children(cell, finest)]
    x, y = about.to_metres(*np.array(centres).T)
    counts = Counter(square.locate(np.rint(x), np.rint(y)).tolist())
    return {place: count / len(centres) for place, count in counts.items()}


def true_accuracy(table: pa.Table, release: Release, km: float) -> float:
    """CPC from the coordinates of all trips, and the release on the cells four levels below its zones."""
    about = about_of(release)
    square = Squares(km)
    ends = [np.array(table.column(f"{end}_{side}")) for end in ("start", "end") for side in ("lat", "lon")]
    own = [square.locate(*about.to_metres(*end)) for end in (ends[:2], ends[2:])]
    found, shares = [], []
    for axis in AXES:
        cells = getattr(release, axis).ids.tolist()
        below = [np.array(h3.cell_to_children(cell, min(11, h3.get_resolution(cell) + 4))) for cell in cells]
        lat, lon = np.array([h3.cell_to_latlng(cell) for cell in np.concatenate(below)]).T
        place = square.locate(*about.to_metres(lat, lon))
        names, number = np.unique(np.concatenate([place, *own]), return_inverse=True)
        zone = np.repeat(np.arange(len(below)), [len(part) for part in below])
        share = np.zeros((len(below), len(names)))
        np.add.at(share, (zone, number[: len(zone)]), 1 / np.array([len(part) for part in below])[zone])
        found.append(names)
        shares.append(share)
    flows = np.zeros((len(shares[0]), len(shares[1])))
    flows[release.classes.origin, release.classes.destination] = release.classes.trips
    estimate = shares[0].T @ flows @ shares[1]
    truth = np.zeros_like(estimate)
    np.add.at(truth, tuple(np.searchsorted(names, place) for names, place in zip(found, own, strict=True)), 1)
    return float(2 * np.minimum(truth, estimate).sum() / (truth.sum() + estimate.sum()))


TRUE_ACCURACY = {5: (0.20, 0.37), 6: (0.38, 0.58), 7: (0.42, 0.60), 8: (0.42, 0.60), 9: (0.42, 0.60), 10: (0.42, 0.60)}
"""Of the sample, at each resolution of the leaves: the CPC of ODkAnon on squares of 2 and 4 km."""


@pytest.mark.parametrize("resolution", [5, 7, 10, *(pytest.param(each, marks=pytest.mark.slow) for each in (6, 8, 9))])
def test_coarse_leaves_are_not_taken_for_the_truth(resolution: int) -> None:
    table = make_survey()
    release = anonymize(build_od(read_trips(table), resolution=resolution), Rule(trips=10))
    found = accuracy(release)["trips"]
    assert [place.km for place in found.squares] == [1.0, 2.0, 4.0, 8.0]
    counted = [place.cpc for place in found.squares[1:3]]
    assert [round(cpc, 2) for cpc in counted] == list(TRUE_ACCURACY[resolution])
    assert counted == pytest.approx([true_accuracy(table, release, km) for km in (2.0, 4.0)], abs=0.01)


@pytest.mark.parametrize("within", [None, "861fb4667ffffff,861fb466fffffff"])
def test_coarse_leaves_in_a_database_are_compared_with_the_same_coordinates(within: str | None) -> None:
    table = make_survey().slice(0, 4000)
    table = pa.concat_tables([table, table.slice(0, 500)])  # duplicates
    options = InputSpec(table, resolution=6, within=within)
    stored = load_table(DuckInput(open_table(table), DuckDb(fetchable=0)), options)
    found, expected = (accuracy(anonymize(od, Rule(trips=10))) for od in (stored, spec_to_matrix(options)))
    assert len(found["trips"].squares) == 4
    assert {name: told.as_dict() for name, told in found.items()} == {
        name: told.as_dict() for name, told in expected.items()
    }


@pytest.mark.parametrize(("resolution", "sizes"), [(9, [1, 2, 4, 8]), (8, [2, 4, 8]), (7, [8]), (6, None)])
def test_squares_that_say_nothing_about_cells_are_left_out(resolution: int, sizes: list[float] | None) -> None:
    """Of an OD table nothing but the cells is known."""
    trips = read_trips(make_survey().slice(0, 3000))
    ends = [cell_to_str(end) for end in trips.cells(resolution)]
    release = anonymize(spec_to_matrix(InputSpec(pa.table(ends, ["origin", "destination"]))), Rule(trips=10))
    found = accuracy(release)
    assert (None if not found else [place.km for place in found["trips"].squares]) == sizes
