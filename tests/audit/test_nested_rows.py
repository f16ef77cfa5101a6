"""Rows that list what no finer row lists: made by hand, as a cascade makes them, and spoilt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h3
import pyarrow as pa
import pyarrow.parquet

from odkanon import audit_releases
from worlds.people import Trip, crowd, findings, places, write

FINE, COARSE = 10, 8


def cell(place: int, resolution: int) -> str:
    return str(h3.cell_to_parent(places()[place], resolution))


def save(rows: list[tuple[str, str, int]], folder: Path, unlisted: int = 9) -> Path:
    """Write a public folder of nested rows."""
    folder.mkdir()
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("origin", "destination", "trips"))})
    pyarrow.parquet.write_table(table, folder / "classes.parquet")
    lines = ["origin,destination,trips", *(",".join(map(str, row)) for row in rows)]
    (folder / "classes.csv").write_text("\n".join(lines) + "\n")
    features: list[dict[str, Any]] = []
    for at, axis in enumerate(("origin", "destination")):
        for zone in sorted({str(row[at]) for row in rows}):
            ring = [[lng, lat] for lat, lng in h3.cell_to_boundary(zone)]
            about = {
                "axis": axis,
                "id": zone,
                "resolution": h3.get_resolution(zone),
                "trips": sum(row[2] for row in rows if row[at] == zone),
            }
            geometry = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
            features.append({"type": "Feature", "properties": about, "geometry": geometry})
    (folder / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    about = {
        "format": 1,
        "method": "cascade",
        "nested": True,
        "rule": {"k": 10, "trips": 10},
        "statement": "Every published flow is shared by at least 10 trips.",
        "published": {"classes": len(rows), "trips": sum(row[2] for row in rows)},
        "unlisted": {"at_most_trips": unlisted},
        "parameters": {},
    }
    (folder / "release.json").write_text(json.dumps(about))
    return folder


def world(tmp_path: Path) -> Path:
    """Write 15 trips of one pair of places, and 12 between others in the same two areas."""
    trips = [Trip(who, 0, 7) for who in crowd(15)]
    trips += [Trip(who, 1 + at % 3, 7 + at % 2) for at, who in enumerate(crowd(12, prefix="x"))]
    return write(trips, tmp_path / "trips.parquet")


INNER = (places()[0], places()[7])
OUTER = (cell(0, COARSE), cell(7, COARSE))


def text(folder: Path, trips: Path | None = None) -> str:
    return "\n".join(
        each.message for each in findings(audit_releases([folder], trips=trips)) if each.check != "persons"
    )


def test_each_trip_is_in_the_finest_row_above_it(tmp_path: Path) -> None:
    folder = save([(*INNER, 15), (*OUTER, 12)], tmp_path / "release")
    assert text(folder) == ""
    assert text(folder, world(tmp_path)) == ""


def test_a_capped_row_passes_trips_up(tmp_path: Path) -> None:
    folder = save([(*INNER, 11), (*OUTER, 16)], tmp_path / "release")
    assert text(folder, world(tmp_path)) == ""


def test_a_row_between_two_others_may_pass_up_what_it_was_given(tmp_path: Path) -> None:
    """It lists as many trips as are its own, and yet some of these may stand in the row above it."""
    trips = [Trip(crowd(1)[0], 0, 7) for _ in range(15)]
    trips += [Trip(who, 1 + at % 3, 7 + at % 2) for at, who in enumerate(crowd(12, prefix="x"))]
    trips += [Trip(who, 4 + at % 3, 7 + at % 2) for at, who in enumerate(crowd(8, prefix="y"))]
    rows = [(*INNER, 11), (cell(0, 9), cell(7, 9), 12), (*OUTER, 12)]
    folder = save(rows, tmp_path / "release", unlisted=0)
    report = audit_releases([folder], trips=write(trips, tmp_path / "trips.parquet"))
    (found,) = findings(report)
    assert "1 of 3 flows have fewer than 10 different persons" in found.message


def test_trips_that_are_in_two_rows(tmp_path: Path) -> None:
    folder = save([(*INNER, 15), (*OUTER, 27)], tmp_path / "release")
    found = text(folder, world(tmp_path))
    assert "lists 27 trips, but only 12 of the data are in it and in no finer row" in found


def test_a_row_with_more_than_its_trips(tmp_path: Path) -> None:
    folder = save([(*INNER, 16), (*OUTER, 11)], tmp_path / "release")
    assert "lists 16 trips, but only 15" in text(folder, world(tmp_path))


def test_more_is_missing_than_the_rows_say(tmp_path: Path) -> None:
    folder = save([(*INNER, 15)], tmp_path / "release", unlisted=9)
    assert "12 trips are in no row, but release.json states that at most 9" in text(folder, world(tmp_path))
    just = save([(*INNER, 15)], tmp_path / "just", unlisted=12)
    assert "in no row" not in text(just, world(tmp_path))


def test_a_row_below_the_rule(tmp_path: Path) -> None:
    assert "below the rule of 10 trips" in text(save([(*INNER, 15), (*OUTER, 4)], tmp_path / "release"))


def test_rows_that_cross_are_on_no_ladder(tmp_path: Path) -> None:
    crossing = [(INNER[0], OUTER[1], 15), (OUTER[0], INNER[1], 12)]
    assert "overlap without one lying in the other" in text(save(crossing, tmp_path / "release"))


def test_nested_rows_of_the_same_trips_are_not_called_clean(tmp_path: Path) -> None:
    first = save([(*INNER, 15), (*OUTER, 12)], tmp_path / "first")
    second = save([(*OUTER, 27)], tmp_path / "second")
    report = audit_releases([first, second], trips=world(tmp_path))
    (found,) = findings(report, "relation")
    assert "share trips, but on such zones they cannot be compared" in found.message
