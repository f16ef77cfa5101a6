"""Cubes from trips: what axes list, what a cube says, and that neither depends on the order of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from odkanon import InputError, Release, Rule, export_release, read_area, read_matrix, read_trips
from odkanon.attributes.hierarchies import WEEK
from odkanon.attributes.spec import parse_attributes
from odkanon.linked.fixed_zoning import zoning_of
from odkanon.methods.method_registry import anonymize
from odkanon.publish.manifests import public_manifest
from odkanon.quality.accuracy.accuracy import accuracy
from odkanon.quality.utility import attribute_coverage
from odkanon.read.attribute_values import source_columns
from odkanon.read.od_matrix import build_od
from worlds.surveys import survey

RULES = [Rule(trips=5), Rule(trips=5, persons=4)]


def cube(table: pa.Table, specs: list[str], rule: Rule = RULES[0], **more: Any) -> Release:
    trips = read_trips(table, attributes=source_columns(parse_attributes(specs)))
    return anonymize(build_od(trips, by=specs, resolution=8, **more), rule, method="cascade")


def levels(specs: list[str], table: pa.Table | None = None) -> list[list[list[str]]]:
    trips = read_trips(survey() if table is None else table, attributes=source_columns(parse_attributes(specs)))
    return [[ids.tolist() for ids in axis.public.ids] for axis in build_od(trips, by=specs, resolution=8).axes]


def test_axes_list_what_is_public() -> None:
    slots, hours, sex = levels(["hour:7-9,9-17"])[0], levels(["hour"])[0], levels(["sex"])[0]
    assert slots == [["07-09", "09-17", "missing", "other"], ["any"]]
    assert [len(ids) for ids in hours] == [25, 6, 1]
    assert sex == [["f", "m", "missing", "other"], ["any"]]
    assert len(levels(["weekday"])[0][0]) == 8
    assert levels(["mode:private=car,soft=walk+bike+ferry"])[0] == [["missing", "other", "private", "soft"], ["any"]]
    assert levels(["mode:all=car+walk+bike+bus,ferry=boat"])[0] == [["all", "ferry", "missing", "other"], ["any"]]


PERIOD = {"since": "2024-01-01", "until": "2024-03-01"}


def on_days(path: Path, lone: str | None, **how: Any) -> Release:
    """Return a cube by date of five trips on one day, and of another one elsewhere on a day of its own."""
    times = [*(f"2024-01-02T08:0{at}:00" for at in range(5)), *([] if lone is None else [f"{lone}T09:00:00"])]
    there = {"start_lat": 48.0, "start_lon": 2.0, "end_lat": 48.1, "end_lon": 2.0}
    ends = {name: [place] * 5 + [place + 5.0] * (len(times) - 5) for name, place in there.items()}
    pyarrow.parquet.write_table(pa.table({"start_time": times, **ends}), path)
    return anonymize(read_matrix(path, by=["date"], resolution=8, **how), RULES[0], method="cascade")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_on_which_day_a_lone_trip_is_cannot_be_told_within_a_period(engine: str, tmp_path: Path) -> None:
    days = [None, "2024-01-01", "2024-01-02", "2024-01-31", "2024-02-29"]
    told = [public_manifest(on_days(tmp_path / "t.parquet", day, engine=engine, **PERIOD)) for day in days]
    assert all(each == told[0] for each in told)
    assert told[0]["published"]["trips"] == 5
    for bounds in ({}, {"since": "2024-01-01"}, {"until": "2024-03-01"}):
        with pytest.raises(InputError, match=r"first day to be published \(since\), and the first day after the last"):
            on_days(tmp_path / "t.parquet", None, engine=engine, **bounds)


def test_the_days_of_a_period_are_public() -> None:
    table = survey(start_time=pa.array(["2024-01-30T08:00:00"] * 1500))
    with pytest.raises(InputError, match="first day to be published"):
        build_od(read_trips(table), by=["date"], resolution=8)
    trips = read_trips(table, attributes=[], since="2024-01-29", until="2024-02-02")
    ids = build_od(trips, by=["date"], resolution=8).axes[0].public.ids
    assert ids[0].tolist() == ["2024-01-29", "2024-01-30", "2024-01-31", "2024-02-01", "missing"]
    assert ids[1].tolist() == ["2024-01", "2024-02", "missing"]


def test_days_of_the_week_that_a_period_does_not_have_are_not_counted_on(tmp_path: Path) -> None:
    """Four trips on working days, fewer than three on each: of a Monday and a Tuesday, two on both."""
    times = [f"2024-01-0{day}T0{hour}:00:00" for day in (1, 2) for hour in (7, 8)]
    ends = {"start_lat": [48.0] * 4, "start_lon": [2.0] * 4, "end_lat": [48.1] * 4, "end_lon": [2.0] * 4}
    pyarrow.parquet.write_table(pa.table({"start_time": times, **ends}), tmp_path / "t.parquet")
    for until, trips in (("2024-01-03", 0), ("2024-01-04", 4), ("2024-02-01", 4)):
        od = read_matrix(tmp_path / "t.parquet", by=["weekday"], resolution=8, since="2024-01-01", until=until)
        release = anonymize(od, Rule(trips=3), method="cascade", drop_order="weekday,place")
        assert int(release.classes.trips.sum()) == trips
        assert release.refusal is not None or release.classes.attributes["weekday"].tolist() == ["working days"]
    assert {*od.axes[0].public.leaves.tolist()} == {*WEEK, "missing"}


def test_missing_is_a_value() -> None:
    table = survey(mode=pa.array([None if at % 7 == 0 else "car" for at in range(1500)], pa.string()))
    assert levels(["mode"], table)[0] == [["car", "missing", "other"], ["any"]]
    release = cube(table, ["mode"])
    assert set(release.classes.attributes["mode"].tolist()) <= {"car", "missing", "any"}
    assert int(release.classes.trips.sum()) + release.suppressed.trips == 1500


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        (["mode", "mode"], "once"),
        (["trips"], "cannot be called 'trips'"),
        (["place"], "cannot be called 'place'"),
        (["=1+1"], "cannot be called '=1\\+1'"),
        (["weekday:Monday"], "nothing after a colon"),
        (["date", "sex", "weekday"], "a date implies its weekday"),
        (["mode:car=1,bus=1"], "two groups"),
        (["mode:car"], "car"),
    ],
)
def test_what_cannot_be_an_axis_is_said(specs: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        build_od(read_trips(survey(50), attributes=["mode"]), by=specs)


def test_an_empty_list_of_attributes_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        parse_attributes([])


def test_a_value_called_any_is_refused() -> None:
    with pytest.raises(InputError, match="dropped detail"):
        cube(survey(mode=["any"] * 1500), ["mode"])


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rows_meet_the_rule_and_publish_no_persons(rule: Rule) -> None:
    release = cube(survey(), ["mode", "hour:0-7,7-9,9-17,17-20,20-24"], rule)
    table = release.to_arrow()
    assert table.column_names == ["origin", "destination", "mode", "hour", "trips", "weight", "at_cap"]
    assert min(table["trips"].to_pylist()) >= 5
    assert table.group_by(["origin", "destination", "mode", "hour"]).aggregate([]).num_rows == table.num_rows
    assert {"car", "any"} <= set(table["mode"].to_pylist())
    assert release.lower_bound is None
    assert {"trips", "weight"} == accuracy(release).keys()


@pytest.mark.parametrize("rule", [pytest.param(RULES[0], marks=pytest.mark.slow), RULES[1]], ids=str)
def test_the_order_of_rows_changes_nothing(rule: Rule, tmp_path: Path) -> None:
    table, specs = survey(), ["mode", "age", "hour"]
    shuffled = table.take(np.random.default_rng(5).permutation(len(table)))
    folders = []
    for name, each in (("one", table), ("again", table), ("other", shuffled)):
        (tmp_path / name).mkdir()
        folders.append(cube(each, specs, rule).save(tmp_path / name / "cube"))
    for file in ("classes.csv", "classes.parquet", "zones.geojson", "release.json", "report.html"):
        if (folders[0] / file).exists():
            assert len({(folder / file).read_bytes() for folder in folders}) == 1, file


def test_only_trips_within_an_area_count() -> None:
    trips = read_trips(survey(), attributes=["mode"])
    area = read_area("861fb4667ffffff")
    inside = build_od(trips, by=["mode"], resolution=8, within=area)
    assert 0 < inside.trips < len(trips)
    assert inside.origins.within is inside.destinations.within is area
    assert int(area.contains(inside.origins.leaves).sum()) == len(inside.origins.leaves)


def test_places_outside_an_area_carry_nothing() -> None:
    """Three trips on each pair of two cells: if there are no others, twelve would show that every cell has some."""
    cells = sorted(h3.cell_to_children("861fb4667ffffff", 7))[:2]
    pairs = [(h3.cell_to_latlng(one), h3.cell_to_latlng(other)) for one in cells for other in cells for _ in range(3)]
    table = pa.table(
        {
            "start_lat": [start[0] for start, _ in pairs],
            "start_lon": [start[1] for start, _ in pairs],
            "end_lat": [end[0] for _, end in pairs],
            "end_lon": [end[1] for _, end in pairs],
            "mode": ["car"] * len(pairs),
        }
    )
    trips = read_trips(table, attributes=["mode"])
    for within, published in ((None, 12), (read_area(",".join(cells)), 8)):
        od = build_od(trips, by=["mode:car=car,bus=bus,walk=walk"], resolution=7, within=within)
        release = anonymize(od, Rule(trips=5), method="cascade", drop_order="place:6,mode,place")
        assert int(release.classes.trips.sum()) == published


def test_what_is_known_adds_up() -> None:
    release = cube(survey(), ["mode", "hour"])
    mode, hour, both = attribute_coverage(release)
    attributes, trips = release.classes.attributes, release.classes.trips
    assert mode.full == mode.part == trips[attributes["mode"] != "any"].sum() / 1500
    assert hour.part == trips[attributes["hour"] != "any"].sum() / 1500
    assert hour.full == trips[np.char.str_len(attributes["hour"]) == 2].sum() / 1500
    assert both.full <= min(mode.full, hour.full)
    assert both.part <= min(mode.part, hour.part)


def test_zones_of_a_cube_are_not_for_other_data() -> None:
    with pytest.raises(InputError, match="kind of trip"):
        zoning_of(cube(survey(), ["mode"]))


def test_exports_keep_kinds_apart(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    release = cube(survey(), ["mode", "sex"])
    folder = release.save(tmp_path / "cube")
    export_release(folder, "omx", tmp_path / "cube.omx")
    with h5py.File(tmp_path / "cube.omx") as file:
        cores = {name: np.asarray(core) for name, core in file["data"].items()}
    parts = [core for name, core in cores.items() if name.startswith("trips ")]
    assert {"trips mode=car sex=f", "trips mode=any sex=any", "weight mode=car sex=f"} <= cores.keys()
    assert np.array_equal(sum(parts), cores["trips"])
    assert cores["trips"].sum() == release.classes.trips.sum()
    export_release(folder, "geojson", tmp_path / "gis")
    assert '"mode": "car"' in (tmp_path / "gis" / "flows.geojson").read_text()
    export_release(folder, "flowmap", tmp_path / "map")
    lines = (tmp_path / "map" / "flows.csv").read_text().splitlines()
    pairs = [line.rpartition(",")[0] for line in lines]
    assert len(set(pairs)) == len(pairs)
