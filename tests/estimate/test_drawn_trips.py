"""Trips drawn from an estimate: counted back they are the published rows."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

pytest.importorskip("shapely")

import shapely

import odkanon
from odkanon.estimate.drawn_trips import _departures, draw_trips
from odkanon.methods import anonymize
from odkanon.model.rule import Rule
from odkanon.publish.export.formats import export_release
from odkanon.publish.save import as_saved
from odkanon.release_format.conversions import to_shapes
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import cell_to_parent, latlng_to_cell, str_to_cell
from worlds.matrices import town
from worlds.polygons import square_town


def counted(trips: pa.Table, saved: SavedRelease) -> list[int]:
    """Drawn trips of each row of a release."""
    return [int(each) for each in np.bincount(trips["row"].to_numpy() - 1, minlength=len(saved.table))]


@pytest.mark.parametrize("method", ["cascade", "odkanon", "atg-soft"])
def test_counted_back_they_are_the_published_rows(method: str) -> None:
    saved = as_saved(anonymize(town(1), Rule(trips=10), method=method))
    trips = draw_trips(saved)
    assert counted(trips, saved) == saved.measure("trips").tolist()
    assert trips.equals(draw_trips(saved))
    for axis, end in (("origin", "start"), ("destination", "end")):
        cells = latlng_to_cell(trips[f"{end}_lat"].to_numpy(), trips[f"{end}_lon"].to_numpy(), 13)
        for zone in set(trips[axis].to_pylist()) - {"world"}:
            here = np.array(trips[axis].to_pylist()) == zone
            cell = str_to_cell(pa.array([zone]))
            assert (cell_to_parent(cell_to_parent(cells[here], 10), int(zone[1], 16)) == cell).all()


def test_points_count_back_to_the_finest_row_that_covers_them() -> None:
    saved = as_saved(anonymize(town(1), Rule(trips=10), method="cascade"))
    trips, rows = draw_trips(saved), saved.table.to_pylist()
    ends = [latlng_to_cell(trips[f"{e}_lat"].to_numpy(), trips[f"{e}_lon"].to_numpy(), 10) for e in ("start", "end")]

    def contains(zone: str, cell: np.uint64) -> bool:
        return zone == "world" or f"{int(cell_to_parent(np.array([cell]), int(zone[1], 16))[0]):x}" == zone

    def fineness(zone: str) -> int:
        return -1 if zone == "world" else int(zone[1], 16)

    wrong = 0
    for line, start, end in zip(trips["row"].to_pylist(), *ends, strict=True):
        own = rows[line - 1]
        depth = fineness(own["origin"]) + fineness(own["destination"])
        wrong += any(
            fineness(row["origin"]) + fineness(row["destination"]) > depth
            and contains(row["origin"], start)
            and contains(row["destination"], end)
            for row in rows
        )
    assert wrong <= 0.02 * len(trips), "only where finer rows cover all pairs of points of a row"


@pytest.mark.parametrize("method", ["cascade", "mondrian"])
def test_points_lie_in_polygons(method: str) -> None:
    od = square_town(2, trips=1500, all_outlined=True) if method == "cascade" else town(1)
    saved = as_saved(anonymize(od, Rule(trips=10), method=method))
    trips = draw_trips(saved)
    assert counted(trips, saved) == saved.measure("trips").tolist()
    for axis, end in (("origin", "start"), ("destination", "end")):
        features = {zone["properties"]["id"]: zone["geometry"] for zone in saved.axis_features(axis)}
        shapes = to_shapes([features[name] for name in trips[axis].to_pylist()])
        points = shapely.points(trips[f"{end}_lon"].to_numpy(), trips[f"{end}_lat"].to_numpy())
        assert (shapely.is_missing(shapes) | (shapely.distance(shapes, points) < 1e-5)).all()


def test_a_cube_gives_values_and_times_of_day(tmp_path: Path) -> None:
    survey = odkanon.make_survey().slice(0, 8000)
    release = odkanon.anonymize(survey, k=10, by=["hour"], resolution=8)
    folder = release.save(tmp_path / "release")
    saved = odkanon.open_release(folder)
    written = export_release(folder, "trips", tmp_path / "drawn")
    assert [path.name for path in written] == ["trips.csv", "trips.parquet", "about.txt"]
    trips = pyarrow.parquet.read_table(written[1])
    assert pyarrow.csv.read_csv(written[0]).num_rows == trips.num_rows
    assert counted(trips, saved) == saved.measure("trips").tolist()
    assert "no more private" in written[2].read_text()
    listed = {value for level in saved.manifest["axes"][0]["levels"] for value in level}
    assert set(trips["hour"].to_pylist()) <= listed
    for stated, drawn in zip(saved.table["hour"].to_pylist(), _by_row(trips), strict=True):
        if stated in saved.manifest["axes"][0]["levels"][0]:
            assert drawn == {stated}
    times = trips.filter(pc.equal(trips["hour"], "17-20"))["departure"].to_pylist()
    assert all(time is None or "17:00" <= time < "20:00" for time in times)


def test_what_the_page_writes_for_matsim_and_activitysim_counts_back_to_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyproj")
    monkeypatch.chdir(tmp_path)
    survey = odkanon.make_survey().slice(0, 3000)
    release = odkanon.anonymize(survey, k=10, by=["mode", "hour"], resolution=7)
    export_release(release.save(tmp_path / "cube"), "trips", tmp_path / "drawn")
    page = Path(__file__).parents[2].joinpath("docs", "exports.md").read_text()
    blocks = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "trips" in block]
    scope: dict[str, object] = {}
    for block in blocks[-2:]:
        exec(block, scope)
    trips = pyarrow.parquet.read_table("drawn/trips.parquet")
    row_of = dict(zip(map(str, trips["trip"].to_pylist()), trips["row"].to_pylist(), strict=True))
    population = ElementTree.parse("population.xml").getroot()
    rows = [row_of[str(person.get("id"))] for person in population.iter("person")]
    listed = odkanon.open_release("cube").measure("trips").tolist()
    assert np.bincount(np.array(rows) - 1, minlength=len(listed)).tolist() == listed
    ends = [activity.get("end_time") for activity in population.iter("activity") if activity.get("type") == "start"]
    assert all(end is not None and re.fullmatch(r"[0-2]\d:[0-5]\d:00", end) for end in ends)
    table, zones = (pyarrow.csv.read_csv(name) for name in ("final_trips.csv", "zones.csv"))
    assert table["trip_id"].to_pylist() == trips["trip"].to_pylist()
    cell = np.append("", np.array(zones["cell"].to_pylist()))
    for axis, end in (("origin", "start"), ("destination", "end")):
        cells = latlng_to_cell(trips[f"{end}_lat"].to_numpy(), trips[f"{end}_lon"].to_numpy(), 8)
        assert [f"{each:x}" for each in cells.tolist()] == cell[table[axis].to_numpy()].tolist()


def _by_row(trips: pa.Table) -> list[set[str]]:
    found: dict[int, set[str]] = {}
    for row, hour in zip(trips["row"].to_pylist(), trips["hour"].to_pylist(), strict=True):
        found.setdefault(row, set()).add(hour)
    return [found[row] for row in sorted(found)]


def test_departures_are_inside_their_slots_over_midnight_too() -> None:
    hours = [*["19-06"] * 400, *["07-09"] * 200, *["7"] * 100, *["any"] * 3]
    found = _departures(pa.array(hours), np.random.default_rng(0)).to_pylist()
    by_slot = {
        slot: {int(at[:2]) for own, at in zip(hours, found, strict=True) if own == slot and at} for slot in hours
    }
    assert by_slot == {"19-06": {*range(19, 24), *range(6)}, "07-09": {7, 8}, "7": {7}, "any": set()}
