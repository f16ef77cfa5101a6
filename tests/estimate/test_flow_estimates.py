"""Estimates of flows between areas: bounds hold whatever the truth is, nothing is lost, and digits do not change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("shapely")

import h3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import odkanon
from odkanon.estimate.flow_estimates import read_flows
from odkanon.estimate.flow_intervals import shortest_interval
from odkanon.estimate.flow_model import FlowModel, fit_flows
from odkanon.estimate.place_tree import place_cells
from odkanon.estimate.questions import estimate_between, sentence
from odkanon.estimate.target_areas import Areas, CellAreas, Everywhere, PolygonAreas
from odkanon.methods import anonymize
from odkanon.model.od import Axis, ODMatrix
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.publish.save import as_saved
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats, cell_to_latlng, cell_to_parent, cell_to_str, latlng_to_cell
from odkanon.zoning.zone_nodes import cell_nodes
from worlds.matrices import town, worlds
from worlds.polygons import square_town
from worlds.tries import tries

METHODS = ["odkanon", "oigh", "atg-soft", "mondrian", "freezones", "treecut", "cascade"]


def positions(od: ODMatrix, which: Axis) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude of the leaf of each OD pair."""
    tree = od.tree(which)
    number = getattr(od.flows, which)
    if tree.resolution is not None:
        lat, lon = cell_to_latlng(tree.leaves)
    else:
        centres = [
            shapely.centroid(shapely.from_geojson(json.dumps((tree.outlines or {})[str(leaf)]))) for leaf in tree.leaves
        ]
        lat, lon = np.array([each.y for each in centres]), np.array([each.x for each in centres])
    return lat[number], lon[number]


def true_flows(od: ODMatrix, areas: Areas) -> dict[tuple[str, str], int]:
    ends = [areas.number(*positions(od, which)) for which in ("origin", "destination")]
    found: dict[tuple[str, str], int] = {}
    for start, end, trips in zip(*(end.tolist() for end in ends), od.flows.trips.tolist(), strict=True):
        if start >= 0 and end >= 0:
            key = areas.ids[start], areas.ids[end]
            found[key] = found.get(key, 0) + trips
    return found


def boxes(od: ODMatrix, pieces: int) -> PolygonAreas:
    """A grid over all places."""
    lat, lon = (
        np.concatenate(side) for side in zip(positions(od, "origin"), positions(od, "destination"), strict=True)
    )
    x, y = (np.linspace(side.min() - 1e-3, side.max() + 1e-3, pieces + 1) for side in (lon, lat))
    cells = [(i, j) for i in range(pieces) for j in range(pieces)]
    shapes = [shapely.box(x[i], y[j], x[i + 1], y[j + 1]) for i, j in cells]
    return PolygonAreas([f"{i}-{j}" for i, j in cells], np.array(shapes, dtype=object))


def check(release: Release, areas: Areas) -> None:
    od = release.od
    flows = read_flows(as_saved(release)).between(areas, areas, least=0.0)
    rows = {(row["origin"], row["destination"]): row for row in flows.table.to_pylist()}
    for row in rows.values():
        assert row["low"] <= row["estimate"] + 1e-6
        assert row["low"] <= row["interval_low"] <= row["estimate"] + 1e-6 <= row["interval_high"] + 2e-6
        if row["high"] is not None:
            assert row["estimate"] <= row["high"] + 1e-6
            assert row["interval_high"] <= row["high"]
    for pair, trips in true_flows(od, areas).items():
        assert pair in rows, "every flow that may exist is listed where nothing is left out"
        assert rows[pair]["low"] <= trips
        assert rows[pair]["high"] is None or trips <= rows[pair]["high"], pair


@pytest.mark.parametrize("method", METHODS)
def test_bounds_hold_and_nothing_is_lost(method: str) -> None:
    polygons = (
        [] if method == "mondrian" else [square_town(2, trips=1500, all_outlined=True)]
    )  # it takes coordinates only
    for od in [town(1, trips=800), *polygons]:
        release = anonymize(od, Rule(trips=10), method=method)
        check(release, boxes(od, 4))
        saved = as_saved(release)
        every = estimate_between(saved, origin="anywhere", destination="anywhere").table.to_pylist()[0]
        assert every["estimate"] == every["low"] == release.classes.trips.sum()
        resolution = 7
        points = read_flows(saved).tree.points
        cells = CellAreas.around(points.lat, points.lon, resolution)
        flows = read_flows(saved).between(cells, cells, least=0.0)
        assert abs(sum(flows.table["estimate"].to_pylist()) - release.classes.trips.sum()) < 0.01


@given(worlds())
@tries(30)
def test_bounds_hold_in_small_worlds(od: ODMatrix) -> None:
    for method in ("cascade", "odkanon"):
        release = anonymize(od, Rule(trips=3), method=method)
        if release.refusal is None:
            check(release, boxes(od, 3))
            check(release, PolygonAreas(["all"], np.array([shapely.box(-180, -90, 180, 90)], dtype=object)))


@pytest.mark.slow
@given(worlds())
@settings(max_examples=2_000, deadline=None, database=None)
def test_no_bound_is_wrong_in_many_worlds(od: ODMatrix) -> None:
    """More of what is tried above."""
    release = anonymize(od, Rule(trips=3), method="cascade")
    if release.refusal is None:
        check(release, boxes(od, 3))


@pytest.mark.parametrize("method", ["cascade", "mondrian", "freezones"])
@pytest.mark.parametrize("at", [(-17.0, 180.0), (78.2, 15.6)])
def test_bounds_hold_at_the_antimeridian_and_far_north(method: Any, at: tuple[float, float]) -> None:
    random = np.random.default_rng(3)
    lat, lon = (centre + random.normal(0, 0.05, (2, 600)) for centre in at)
    ends = {"start_lat": lat[0], "start_lon": lon[0], "end_lat": lat[1], "end_lon": lon[1]}
    wrapped = {name: (side + 180) % 360 - 180 if "lon" in name else side for name, side in ends.items()}
    release = odkanon.anonymize(pa.table(wrapped), k=10, method=method, engine="memory")
    x, y = (np.linspace(side.min() - 0.01, side.max() + 0.01, 4) for side in (lon, lat))
    corners = [(i, j) for i in range(3) for j in range(3)]
    squares = [shapely.box(x[i], y[j], x[i + 1], y[j + 1]) for i, j in corners]
    areas = PolygonAreas([f"{i}-{j}" for i, j in corners], np.array(squares, dtype=object))
    found = {
        (row["origin"], row["destination"]): row
        for row in read_flows(as_saved(release)).between(areas, areas, least=0.0).table.to_pylist()
    }
    start, end = areas.number(lat[0], wrapped["start_lon"]), areas.number(lat[1], wrapped["end_lon"])
    assert (start >= 0).all(), "areas beyond 180 degrees contain the points beyond it"
    for one, other in set(zip(start.tolist(), end.tolist(), strict=True)):
        row, trips = found[areas.ids[one], areas.ids[other]], int(((start == one) & (end == other)).sum())
        assert row["low"] <= trips
        assert row["high"] is None or trips <= row["high"] + release.suppressed.trips


@given(worlds())
@tries(30)
def test_no_narrower_bounds_hold_for_single_rows(od: ODMatrix) -> None:
    """By brute force over the cells inside each zone: a row can have all of its trips in a pair of cells, or none."""
    release = anonymize(od, Rule(trips=3), method="cascade")
    if release.refusal is not None or od.origins.resolution is None:
        return
    saved, resolution = as_saved(release), od.origins.resolution
    areas = CellAreas(np.unique(cell_to_parent(od.origins.leaves, max(resolution - 1, 0)))[:3], max(resolution - 1, 0))

    def related(zone: str) -> list[tuple[bool, bool]]:
        """Whether a zone is certainly inside each area, and whether it may be."""
        cells = None if zone == "world" else h3.cell_to_children(zone, max(resolution, h3.get_resolution(zone)))
        own = [None] if cells is None else [h3.cell_to_parent(cell, areas.resolution) for cell in cells]
        return [(all(cell == area for cell in own), cells is None or area in own) for area in areas.ids]

    rows = saved.table.to_pylist()
    known = {zone: related(zone) for row in rows for zone in (row["origin"], row["destination"])}
    for row in read_flows(saved).between(areas, areas, least=0.0).table.to_pylist():
        one, other = areas.ids.index(row["origin"]), areas.ids.index(row["destination"])
        low, high = (
            sum(
                each["trips"]
                for each in rows
                if known[each["origin"]][one][at] and known[each["destination"]][other][at]
            )
            for at in (0, 1)
        )
        assert row["low"] == low
        assert row["high"] is None or row["high"] == high + saved.manifest["unlisted"]["at_most_trips"]


def test_boxes_are_estimated_no_worse_than_spread_evenly() -> None:
    found = odkanon.anonymize(odkanon.make_survey().slice(0, 12_000), k=10, method="mondrian").accuracy["trips"]
    for place in found.squares[1:]:
        assert place.estimated is not None
        assert place.estimated > place.cpc


def test_cells_of_the_release_are_known_exactly() -> None:
    od = town(1)
    release = anonymize(od, Rule(trips=10), method="cascade")
    saved = as_saved(release)
    finest = max(zone["properties"]["resolution"] or 0 for zone in saved.features)
    for row in saved.table.to_pylist()[-5:]:
        if (
            len(row["origin"]) == len(row["destination"]) == 15
            and f"{finest:x}" == row["origin"][1] == row["destination"][1]
        ):
            answer = estimate_between(saved, origin=row["origin"], destination=row["destination"]).table.to_pylist()[0]
            assert answer["low"] == row["trips"]


def test_sums_over_parts_equal_the_whole() -> None:
    release = anonymize(town(1), Rule(trips=10), method="cascade")
    reader = read_flows(as_saved(release))
    points = reader.tree.points
    fine, coarse = (CellAreas.around(points.lat, points.lon, at) for at in (8, 6))
    parts = reader.between(fine, fine, least=0.0).table.to_pylist()
    whole = {
        (row["origin"], row["destination"]): row["estimate"]
        for row in reader.between(coarse, coarse, least=0.0).table.to_pylist()
    }
    sums: dict[tuple[str, str], float] = {}
    for row in parts:
        cells = np.array([int(row["origin"], 16), int(row["destination"], 16)], dtype=np.uint64)
        origin, destination = (f"{int(cell):x}" for cell in cell_to_parent(cells, 6))
        sums[origin, destination] = sums.get((origin, destination), 0.0) + row["estimate"]
    for key, trips in sums.items():
        assert trips == pytest.approx(whole.get(key, 0.0), abs=0.01)


@pytest.mark.parametrize("method", ["cascade", "mondrian"])
def test_estimates_of_some_pairs_are_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr("odkanon.estimate.flow_estimates._NUMBERS_AT_ONCE", 2_000)
    reader = read_flows(as_saved(anonymize(town(1), Rule(trips=10), method=method)))
    points = reader.tree.points
    fine, coarse = (CellAreas.around(points.lat, points.lon, at) for at in (8, 7))
    random = np.random.default_rng(1)
    pairs = np.sort(random.integers(0, len(fine.ids), 300)), random.integers(0, len(coarse.ids), 300)
    expected = reader.expected(fine, coarse)
    for name, found in reader.expected_of(fine, coarse, pairs).items():
        assert found.sum() > 0
        np.testing.assert_allclose(found, np.asarray(expected[name].toarray())[pairs], rtol=1e-9, atol=1e-12)
    assert not any(map(len, reader.expected_of(fine, coarse, (pairs[0][:0], pairs[1][:0])).values()))


def test_a_saved_release_is_fitted_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fits: list[int] = []

    def fit(*given: Any) -> FlowModel:
        fits.append(len(given[3]))
        return fit_flows(*given)

    monkeypatch.setattr("odkanon.estimate.flow_estimates.fit_flows", fit)
    release = anonymize(town(1), Rule(trips=10), method="cascade")
    assert release.accuracy["trips"].squares[0].estimated is not None
    release.save(tmp_path / "release")
    assert fits == [len(release.classes)]


def test_row_order_does_not_matter() -> None:
    saved = as_saved(anonymize(town(1), Rule(trips=10), method="cascade"))
    shuffled = replace(saved, table=saved.table.take(pa.array(np.random.default_rng(1).permutation(len(saved.table)))))
    assert estimate_between(saved).table.equals(estimate_between(shuffled).table)


DIGEST = """
import hashlib, numpy as np, pyarrow as pa, odkanon
random = np.random.default_rng(1)
lat, lon = 48.8 + random.normal(0, 0.03, (2, 3000)), 2.3 + random.normal(0, 0.05, (2, 3000))
trips = pa.table({"start_lat": lat[0], "start_lon": lon[0], "end_lat": lat[1], "end_lon": lon[1]})
release = odkanon.anonymize(trips, k=10, method="cascade", engine="memory")
print(hashlib.sha256(str(release.estimate(onto=7).table.to_pylist()).encode()).hexdigest())
"""


def test_threads_do_not_change_a_digit() -> None:
    digests = set()
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        settings = os.environ | dict.fromkeys(names, threads)
        done = subprocess.run([sys.executable, "-c", DIGEST], env=settings, capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1


def test_a_flow_of_one_place_has_a_sentence() -> None:
    saved = as_saved(anonymize(town(1), Rule(trips=10), method="cascade"))
    row = saved.table.to_pylist()[0]
    flows = estimate_between(saved, origin=row["origin"], destination=row["destination"])
    assert sentence(flows).startswith(("about ", "exactly "))
    assert sentence(estimate_between(saved, origin="anywhere")).startswith(("about ", "exactly "))


@given(st.lists(st.tuples(st.floats(0.1, 500), st.floats(1.05, 20)), min_size=1, max_size=5))
@tries(40)
def test_intervals_contain_four_fifths(values: list[tuple[float, float]]) -> None:
    from scipy.stats import nbinom

    mean, ratio = (np.array(side) for side in zip(*values, strict=True))
    low, high = shortest_interval(mean, mean * ratio)
    size, chance = mean / (ratio - 1), 1 / ratio
    inside = nbinom.cdf(high, size, chance) - nbinom.cdf(low - 1, size, chance)
    assert (inside >= 0.8 - 1e-6).all()
    assert (high - low <= nbinom.ppf(0.9, size, chance) - nbinom.ppf(0.1, size, chance)).all()


def test_everywhere_is_one_area() -> None:
    assert Everywhere().ids == ["anywhere"]


def test_neighbours_that_only_touch_share_no_trips() -> None:
    od = square_town(3, width=6, all_outlined=True)
    release = anonymize(od, Rule(trips=1), method="cascade")
    saved = as_saved(release)
    shapes = {
        zone["properties"]["id"]: zone["geometry"] for zone in saved.features if zone["properties"].get("level") == 0
    }
    from odkanon.release_format.conversions import to_shapes

    areas = PolygonAreas(list(shapes), to_shapes(list(shapes.values())))
    flows = read_flows(saved).between(areas, areas, least=0.0).table.to_pylist()
    truth = true_flows(od, areas)
    exact = [row for row in flows if row["low"] == row["high"]]
    assert exact
    assert all(truth.get((row["origin"], row["destination"]), 0) == row["low"] for row in exact)


@pytest.fixture(scope="module")
def many_modes(tmp_path_factory: pytest.TempPathFactory) -> tuple[SavedRelease, pa.Table]:
    """A cube of more combinations than have rates of their own, so that its modes share them; and its trips."""
    survey = odkanon.make_survey().slice(0, 12_000)
    # The common mode of each kind is stated often, so that its share of all trips is more than that of what is open.
    kind = ["", "", "", "", "", " 1", " 1", " 2", " 3"]
    mode = [f"{name}{kind[number % len(kind)]}" for number, name in enumerate(survey.column("mode").to_pylist())]
    survey = survey.set_column(survey.column_names.index("mode"), "mode", pa.array(mode))
    by = ["mode", "hour:0-7,7-9,9-12,12-17,17-20,20-24"]
    folder = tmp_path_factory.mktemp("modes") / "release"
    odkanon.anonymize(survey, by=by, resolution=8).save(folder)
    return odkanon.open_release(folder), survey


def test_values_that_share_rates_add_up_and_keep_what_rows_state(many_modes: tuple[SavedRelease, pa.Table]) -> None:
    release, survey = many_modes
    columns = (release.table.column(name).to_pylist() for name in ("mode", "trips"))
    reader, rows = read_flows(release), list(zip(*columns, strict=True))
    stated = {mode: sum(trips for own, trips in rows if own == mode) for mode in sorted({own for own, _ in rows})}
    left_open, shares = stated.pop("any"), {mode: trips**0.5 for mode, trips in stated.items()}
    assert reader.groups.shape[0] < len(stated)
    for mode, certain in stated.items():
        found = reader.between(Everywhere(), Everywhere(), where={"mode": mode}).table.to_pylist()[0]
        true = pc.sum(pc.equal(survey.column("mode"), mode)).as_py() or 0
        assert certain <= found["low"] <= min(found["estimate"], true)
        expected = certain + left_open * shares[mode] / sum(shares.values())
        assert found["estimate"] == pytest.approx(expected, rel=0.01)
        # What rows leave open is no certainty: the interval is wider than what they state.
        assert found["interval_high"] > found["low"]


def test_rows_between_the_same_zones_are_divided_alike(many_modes: tuple[SavedRelease, pa.Table]) -> None:
    """Four of five intervals hold between small places, too, though rows by attributes repeat the same zones."""
    release, survey = many_modes
    start = ends_of(survey, "start")
    areas = CellAreas.around(start[0], start[1], 7)
    found = read_flows(release).between(areas, Everywhere()).table
    cells = cell_to_str(cell_to_parent(latlng_to_cell(start[0], start[1], 8), 7))
    true = dict(zip(*(each.tolist() for each in np.unique(cells, return_counts=True)), strict=True))
    rows = [row for row in found.to_pylist() if row["estimate"] >= 2]
    held = [row["interval_low"] <= true.get(row["origin"], 0) <= row["interval_high"] for row in rows]
    assert len(held) > 50
    assert np.mean(held) >= 0.7


def ends_of(survey: pa.Table, end: str) -> tuple[Floats, Floats]:
    lat, lon = (survey.column(f"{end}_{name}").to_numpy() for name in ("lat", "lon"))
    return lat, lon


@pytest.mark.parametrize("group", ["0462", "315", "62", "5"])
def test_a_group_of_children_has_all_of_their_places(group: str) -> None:
    """Children of a group are not next to each other in the order of H3 cells: most of its area was left out."""
    parent = "861fb4667ffffff"
    name = f"{parent}-{group}"
    both = cell_nodes([name, "881fb46625fffff"])
    assert both is not None
    tree, (zones, _) = place_cells([both, both])
    mine = np.isin(tree.points.owner, np.arange(zones.first[0], zones.end[0]))
    found = cell_to_parent(latlng_to_cell(tree.points.lat[mine], tree.points.lon[mine], 10), 7)
    children = {h3.cell_to_center_child(parent)} | set(h3.cell_to_children(parent))
    wanted = {child for child in children if str((int(child, 16) >> 24) & 7) in group}
    assert set(cell_to_str(np.unique(found)).tolist()) == wanted
    assert len(np.unique(tree.points.owner[mine])) == zones.end[0] - zones.first[0] == 7 * len(group)


def test_trips_are_smoothed_over_the_places_around() -> None:
    """A place between two busy ones has more trips than one far from them, and none are lost."""
    cells = h3.grid_path_cells("891fb466257ffff", h3.grid_ring("891fb466257ffff", 8)[0])
    nodes = cell_nodes(sorted(cells))
    assert nodes is not None
    tree, _ = place_cells([nodes, nodes], 9)
    around = tree.surroundings.toarray()
    assert np.allclose(around.sum(axis=0), 1)
    far = h3.grid_distance
    x, y, z = tree.centres[-len(tree) :].T
    place = cell_to_str(latlng_to_cell(np.degrees(np.arcsin(z)), np.degrees(np.arctan2(y, x)), 9)).tolist()
    assert all((around[i, j] > 0) == (far(place[i], place[j]) <= 1) for i in range(9) for j in range(9))
