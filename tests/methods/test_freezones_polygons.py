"""Free zones of polygons: neighbours share a border, zones hang together, and are finer than any cut of the table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("shapely")

import numpy as np
import pyarrow as pa
import shapely

from odkanon.audit.auditor import audit_releases
from odkanon.errors import InputError
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.methods import METHODS, anonymize
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.utility import utility
from odkanon.read.input_spec import InputSpec
from odkanon.release_format.folder import open_release
from odkanon.zoning.polygon_neighbours import borders, bridged, islands
from worlds.polygons import name, square, square_town, square_tree


@pytest.fixture(scope="module")
def release() -> Release:
    return anonymize(square_town(1), Rule(trips=10), method="freezones", iterations=80)


def shapes(*places: tuple[float, float]) -> np.ndarray:
    return np.array(shapely.from_geojson([json.dumps(square(*place)) for place in places]), dtype=object)


def test_neighbours_share_more_than_a_corner() -> None:
    side, corner, apart = (1, 0), (1, 1), (5, 5)
    assert borders(shapes((0, 0), side, corner, apart)).T.tolist() == [[0, 1], [1, 2]]


def test_borders_equal_those_of_a_grid() -> None:
    places = [(column, row) for column in range(5) for row in range(4)]
    expected = {
        (one, other)
        for one, (x, y) in enumerate(places)
        for other, (u, v) in enumerate(places)
        if one < other and abs(x - u) + abs(y - v) == 1
    }
    assert set(map(tuple, borders(shapes(*places)).T.tolist())) == expected


def test_islands_are_joined_to_what_is_nearest() -> None:
    places = shapes((0, 0), (1, 0), (4, 0), (9, 0), (10, 0))
    edges = borders(places)
    assert len(np.unique(islands(5, edges))) == 3
    linked = bridged(places, edges)
    assert linked.T.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_every_zone_hangs_together_by_shared_borders(release: Release) -> None:
    assert release.method == "freezones"
    assert release.origins.places is not None
    tree = release.od.origins
    assert tree.outlines is not None
    for zones in (release.origins, release.destinations):
        assert zones.places is not None
        listed = [place for part in zones.places for place in part]
        assert len(listed) == len(set(listed))
        assert max(map(len, zones.places)) > 1
        for number, part in enumerate(zones.places):
            parts = shapely.from_geojson([json.dumps(tree.outlines[place]) for place in part])
            assert shapely.union_all(parts).geom_type == "Polygon"
            assert shapely.equals(shapely.from_geojson(json.dumps(zones.geometry(number))), shapely.union_all(parts))
            assert zones.kind(number) == "place"


def test_free_zones_are_finer_than_the_best_cuts(release: Release) -> None:
    od = release.od
    best = utility(od, anonymize(od, Rule(trips=10), method="treecut")).g
    assert utility(od, release).g < 0.7 * best  # type: ignore[operator]
    # A table without any districts is no worse: places know where they lie.
    flat = square_town(1, steps=())
    made = anonymize(flat, Rule(trips=10), method="freezones", iterations=80)
    assert utility(flat, made).g < 0.7 * best  # type: ignore[operator]


def test_polygons_without_trips_are_in_zones_too(release: Release) -> None:
    places = {place for part in release.origins.places or () for place in part}
    assert places - set(release.od.origins.leaves.tolist())


def test_one_zoning_for_both_ends() -> None:
    made = anonymize(square_town(1), Rule(trips=10), method="freezones", iterations=30, symmetric=True)
    first, second = (dict(zip(z.ids.tolist(), z.places or (), strict=True)) for z in (made.origins, made.destinations))
    assert all(second.get(zone, places) == places for zone, places in first.items())
    taken = {place: zone for zone, places in (first | second).items() for place in places}
    assert len(taken) == sum(map(len, (first | second).values()))


def test_they_can_be_saved_audited_and_used_again(release: Release, tmp_path: Path) -> None:
    folder = release.save(tmp_path / "release")
    features = json.loads((folder / "zones.geojson").read_text())["features"]
    assert all(feature["properties"]["places"] for feature in features)
    pairs = release.od.flows
    trips = pa.table(
        {
            "origin": np.repeat(release.od.origins.leaves[pairs.origin], pairs.trips),
            "destination": np.repeat(release.od.destinations.leaves[pairs.destination], pairs.trips),
        }
    )
    report = audit_releases([folder], trips=InputSpec(trips, hierarchy=square_tree(12)))
    assert report.clean, report.findings
    again = release_on_zones(square_town(1), Rule(trips=10), zoning_of(open_release(folder)), full=square_tree(12))
    assert again.classes.trips.tolist() == release.classes.trips.tolist()
    assert again.origins.describe(0) == release.origins.describe(0)


def test_without_outlines_it_says_what_is_missing() -> None:
    od = square_town(1, trips=200)
    bare = replace(od, origins=replace(od.origins, outlines=None), destinations=replace(od.destinations, outlines=None))
    with pytest.raises(InputError, match="144 of 144 zones have no outline"):
        anonymize(bare, Rule(trips=10), method="freezones")
    some = {code: shape for code, shape in (od.origins.outlines or {}).items() if code != name(0, 0)}
    with pytest.raises(InputError, match="1 of 144 zones have no outline"):
        anonymize(replace(od, origins=replace(od.origins, outlines=some)), Rule(trips=10), method="freezones")
    assert not METHODS["freezones"].suits(bare.origins)
    assert METHODS["freezones"].suits(od.origins)
    assert not METHODS["mondrian"].suits(od.origins)
