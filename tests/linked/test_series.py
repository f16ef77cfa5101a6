"""The same zones again: an earlier release's zoning over other data."""

from __future__ import annotations

import json
from pathlib import Path

import h3
import pyarrow as pa
import pyarrow.csv
import pytest

from odkanon import InputError, Rule, anonymize, build_od, open_release, read_hierarchy, read_matrix, read_trips
from odkanon.audit import TripsSource, audit_releases
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.release_format.folder import SavedRelease
from worlds.people import Trip, crowd, findings, matrix, places, release, write

RULE = Rule(trips=10)


@pytest.fixture
def january(tmp_path: Path) -> Path:
    trips = [Trip(who, at % 4, 7 + at % 3) for at, who in enumerate(crowd(60))]
    release(write(trips, tmp_path / "january.parquet"), tmp_path / "january", RULE)
    return tmp_path / "january"


def test_the_same_data_on_its_own_zones_is_the_same_release(january: Path) -> None:
    first = anonymize(matrix(january.with_suffix(".parquet")), RULE, method="odkanon")
    again = release_on_zones(matrix(january.with_suffix(".parquet")), RULE, zoning_of(open_release(january)))
    assert again.classes.trips.tolist() == first.classes.trips.tolist()
    assert again.origins.ids.tolist() == first.origins.ids.tolist()
    assert again.origins.leaves is not None
    assert first.origins.leaves is not None
    assert again.origins.leaves.tolist() == first.origins.leaves.tolist()


def test_new_places_are_counted_and_flows_below_the_rule_suppressed(january: Path, tmp_path: Path) -> None:
    trips = [Trip(who, 0, 7) for who in crowd(20)] + [Trip(who, 10, 7) for who in crowd(13, prefix="x")]
    path = write(trips, tmp_path / "february.parquet")
    made = release_on_zones(matrix(path), RULE, zoning_of(open_release(january)))
    assert made.parameters["trips_outside"] == 13
    assert made.suppressed.trips == 13
    assert made.budget is None
    made.save(tmp_path / "february")
    report = audit_releases([tmp_path / "february"], trips=TripsSource(path))
    assert findings(report) == []


def test_nothing_on_the_zones_is_refused(january: Path, tmp_path: Path) -> None:
    trips = [Trip(who, 10, 10) for who in crowd(20)]
    made = release_on_zones(
        matrix(write(trips, tmp_path / "elsewhere.parquet")), RULE, zoning_of(open_release(january))
    )
    assert made.refusal is not None


def test_free_zones_are_read_by_their_cells(january: Path) -> None:
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    features = [
        {"properties": {"axis": axis, "id": f"{axis} zone", "resolution": None, "cells": cells}, "geometry": square}
        for axis, cells in (("origin", places()[:4]), ("destination", places()[7:10]))
    ]
    zoning = zoning_of(SavedRelease("january", {}, features, pa.table({})))
    made = release_on_zones(matrix(january.with_suffix(".parquet")), RULE, zoning)
    assert made.origins.ids.tolist() == ["origin zone"]
    assert made.origins.cells == (tuple(places()[:4]),)
    assert made.classes.trips.tolist() == [60]


def test_zones_finer_than_the_data_are_refused(january: Path) -> None:
    coarse = build_od(read_trips(january.with_suffix(".parquet")), resolution=5)
    with pytest.raises(InputError, match="use resolution"):
        release_on_zones(coarse, RULE, zoning_of(open_release(january)))


def test_boxes_and_overlapping_zones_are_refused(tmp_path: Path) -> None:
    trips = [Trip(who, at % 5, 5 + at % 6) for at, who in enumerate(crowd(200))]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "boxes", RULE, method="mondrian")
    with pytest.raises(InputError, match="boxes"):
        _ = zoning_of(open_release(tmp_path / "boxes"))
    leaf, parent = places()[0], h3.cell_to_parent(places()[0], 9)
    release(path, tmp_path / "release", RULE)
    content = json.loads((tmp_path / "release" / "zones.geojson").read_text())
    content["features"] += [
        {"properties": {"axis": axis, "id": zone, "resolution": h3.get_resolution(zone)}, "geometry": None}
        for axis in ("origin", "destination")
        for zone in (leaf, parent)
    ]
    (tmp_path / "release" / "zones.geojson").write_text(json.dumps(content))
    with pytest.raises(InputError, match="overlap"):
        release_on_zones(matrix(path), RULE, zoning_of(open_release(tmp_path / "release")))


def od_table(counts: dict[tuple[str, str], int]) -> pa.Table:
    flows = [flow for flow, count in counts.items() for _ in range(count)]
    return pa.table(
        {
            "origin": [flow[0] for flow in flows],
            "destination": [flow[1] for flow in flows],
            "person": [f"p{number}" for number in range(len(flows))],
        }
    )


def test_zones_of_a_lookup_table_also_above_the_root_of_new_data(tmp_path: Path) -> None:
    table = pa.table({"block": ["a", "b", "c", "d"], "town": ["T", "T", "U", "U"], "land": ["L"] * 4})
    tree = read_hierarchy(table)
    first = anonymize(
        read_matrix(od_table({("a", "c"): 8, ("b", "c"): 7, ("a", "d"): 6}), hierarchy=tree, engine="memory"),
        RULE,
        method="odkanon",
    )
    first.save(tmp_path / "first")
    zoning = zoning_of(open_release(tmp_path / "first"))
    assert zoning.origins.ids.tolist() == zoning_of(first).origins.ids.tolist()
    only_a = read_matrix(od_table({("a", "c"): 12}), hierarchy=tree, engine="memory")
    made = release_on_zones(only_a, RULE, zoning, full=tree)
    assert made.classes.trips.tolist() == [12]


def test_a_release_on_a_lookup_table_is_audited_with_it(tmp_path: Path) -> None:
    table = pa.table({"block": ["a", "b", "c", "d"], "town": ["T", "T", "c2", "c2"], "land": ["L"] * 4})
    tree = read_hierarchy(table)
    trips = od_table({("a", "c"): 8, ("b", "c"): 7, ("a", "d"): 12, ("d", "d"): 30})
    pa.csv.write_csv(trips, tmp_path / "od.csv")
    rule = Rule(trips=10, persons=10)
    anonymize(read_matrix(tmp_path / "od.csv", hierarchy=tree, engine="memory"), rule).save(tmp_path / "release")
    report = audit_releases([tmp_path / "release"], trips=TripsSource(tmp_path / "od.csv", hierarchy=tree))
    assert findings(report) == []
