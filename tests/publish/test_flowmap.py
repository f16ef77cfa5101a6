"""Flow maps of cubes: times that a map can show, and no trip lost, whether or not its time is known."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("shapely")

import numpy as np
import pandas as pd
import pyarrow as pa

from cli.runner import odkanon, output
from odkanon import InputError, Rule, export_release, read_trips
from odkanon.attributes.spec import parse_attributes
from odkanon.methods.method_registry import anonymize
from odkanon.publish.attribute_view import view_release
from odkanon.publish.export.flow_map import start_times, write_flowmap
from odkanon.read.attribute_values import source_columns
from odkanon.read.od_matrix import build_od
from odkanon.release_format.folder import SavedRelease, open_release
from worlds.surveys import survey

CUBES = {
    "hours": ["hour"],
    "slots": ["mode", "hour:7-9,9-17,19-6"],
    "week": ["weekday", "hour:0-12,12-24"],
    "days": ["date", "mode"],
    "modes": ["mode", "sex"],
}
FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m")
"""Some of those that flowmap.blue understands; it takes what it cannot read for no time."""
WEEK = [["Monday", "Saturday", "Sunday"], ["working days", "weekend", "weekend"], ["any"] * 3]
HOURS = [["07", "08", "19", "missing"], ["07-09", "07-09", "17-20", "missing"], ["any"] * 4]
DATES = [["2024-03-05", "2024-03-06"], ["2024-03", "2024-03"], ["any", "any"]]


@pytest.fixture(scope="module")
def cubes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("cubes")
    random = np.random.default_rng(1)
    begun = [datetime(2024, 2, 26) + timedelta(hours=int(hour)) for hour in random.integers(0, 10 * 24, 1500)]
    unknown = random.random(1500) < 0.05
    table = survey(start_time=[None if gone else at for gone, at in zip(unknown, begun, strict=True)])
    saved = {}
    for name, specs in CUBES.items():
        days: dict[str, Any] = {"since": "2024-02-26", "until": "2024-03-07"} if "date" in specs else {}
        attributes = parse_attributes(specs, period=(days.get("since"), days.get("until")))
        trips = read_trips(table, attributes=source_columns(attributes), **days)
        release = anonymize(build_od(trips, by=specs, resolution=8), Rule(trips=5), method="cascade")
        saved[name] = release.save(folder / name)
    return saved


def cube(rows: list[tuple[str, ...]], **axes: Any) -> SavedRelease:
    columns = dict(zip(axes, map(list, zip(*rows, strict=True)), strict=True))
    about = {"axes": [{"name": name, "levels": levels} for name, levels in axes.items()]}
    return SavedRelease("cube", about, [], pa.table(columns))


@pytest.mark.parametrize(
    ("axes", "rows", "fine", "coarse"),
    [
        (
            {"hour": HOURS},
            [("08",), ("07-09",), ("19",), ("missing",), ("any",)],
            ["2001-01-01 08:00", None, "2001-01-01 19:00", None, None],
            ["2001-01-01 07:00", "2001-01-01 07:00", "2001-01-01 17:00", None, None],
        ),
        (
            {"hour": [["07-09", "19-06", "other", "missing"], ["any"] * 4]},
            [("07-09",), ("19-06",), ("other",), ("any",)],
            ["2001-01-01 07:00", "2001-01-01 19:00", None, None],
            ["2001-01-01 07:00", "2001-01-01 19:00", None, None],
        ),
        (
            {"weekday": WEEK},
            [("Sunday",), ("weekend",), ("Monday",), ("any",)],
            ["2001-01-07", None, "2001-01-01", None],
            ["2001-01-06", "2001-01-06", "2001-01-01", None],
        ),
        (
            {"hour": HOURS, "weekday": WEEK},
            [("07", "Sunday"), ("07", "any"), ("any", "Sunday"), ("07-09", "weekend")],
            ["2001-01-07 07:00", None, None, None],
            ["2001-01-06 07:00", None, None, "2001-01-06 07:00"],
        ),
        (
            {"date": DATES, "weekday": WEEK},
            [("2024-03-06", "any"), ("2024-03", "Monday"), ("any", "Monday")],
            ["2024-03-06", None, None],
            ["2024-03", "2024-03", None],
        ),
        (
            {"date": DATES, "hour": HOURS},
            [("2024-03-06", "08"), ("2024-03", "08"), ("2024-03-06", "any")],
            ["2024-03-06 08:00", None, None],
            ["2024-03-01 07:00", "2024-03-01 07:00", None],
        ),
    ],
)
def test_a_time_is_where_it_begins(axes: Any, rows: Any, fine: list[str | None], coarse: list[str | None]) -> None:
    assert start_times(cube(rows, **axes)).to_pylist() == fine
    assert start_times(cube(rows, **axes), coarse=True).to_pylist() == coarse


def test_zones_are_called_the_same_in_all_files(tmp_path: Path) -> None:
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    zones = [{"properties": {"axis": axis, "id": "=1+1"}, "geometry": square} for axis in ("origin", "destination")]
    flows = pa.table({"origin": ["=1+1"] * 2, "destination": ["=1+1"] * 2, "hour": ["07", "any"], "trips": [5, 7]})
    release = SavedRelease("cube", {"axes": [{"name": "hour", "levels": HOURS}]}, zones, flows)
    write_flowmap(release, "trips", tmp_path)
    texts = {path.stem: path.read_text().splitlines()[1] for path in tmp_path.iterdir()}
    assert texts == {
        "locations": "'=1+1,'=1+1,0.5,0.5",
        "flows": "'=1+1,'=1+1,5,2001-01-01 07:00",
        "flows-without-time": "'=1+1,'=1+1,7,any",
    }


def exported(cube: Path, target: Path, **how: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    export_release(cube, "flowmap", target, **how)
    timed, timeless = (
        pd.read_csv(target / name, dtype={"time": str, "hour": str}) for name in ("flows.csv", "flows-without-time.csv")
    )
    places = set(pd.read_csv(target / "locations.csv")["id"])
    assert {*timed["origin"], *timed["dest"], *timeless["origin"], *timeless["dest"]} <= places
    return timed, timeless


@pytest.mark.parametrize("name", ["hours", "slots", "week", "days"])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("measure", ["trips", "weight"])
def test_nothing_is_lost(cubes: dict[str, Path], tmp_path: Path, name: str, coarse: bool, measure: str) -> None:
    timed, timeless = exported(cubes[name], tmp_path / "map", coarse_times=coarse, measure=measure)
    assert list(timed.columns) == ["origin", "dest", "count", "time"]
    flows = open_release(cubes[name]).table.to_pandas()
    assert timed["count"].sum() + timeless["count"].sum() == pytest.approx(flows[measure].sum(), rel=1e-12)
    assert len(timed) > 0
    assert len(timeless) > 0
    assert not timed.duplicated(["origin", "dest", "time"]).any()
    form = next(form for form in FORMATS if pd.to_datetime(timed["time"], format=form, errors="coerce").notna().all())
    assert (form == "%Y-%m") == (name == "days" and coarse)
    # Every pair of zones keeps its trips, too.
    both = pd.concat([timed, timeless]).groupby(["origin", "dest"])["count"].sum()
    expected = flows.groupby(["origin", "destination"])[measure].sum()
    assert both.to_dict() == pytest.approx(expected.to_dict(), rel=1e-12)


def test_flows_are_those_of_their_time(cubes: dict[str, Path], tmp_path: Path) -> None:
    timed, timeless = exported(cubes["slots"], tmp_path / "map")
    rows = open_release(cubes["slots"]).table.to_pylist()
    expected: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        expected[row["origin"], row["destination"], row["hour"]] += row["trips"]
    begins = {"2001-01-01 07:00": "07-09", "2001-01-01 09:00": "09-17", "2001-01-01 19:00": "19-06"}
    known = {(flow.origin, flow.dest, begins[flow.time]): flow.count for flow in timed.itertuples(name="Flow")}
    unknown = {(flow.origin, flow.dest, flow.hour): flow.count for flow in timeless.itertuples(name="Flow")}
    assert {*timeless["hour"]} <= {"any", "missing", "other"}
    assert len({flow[2] for flow in known}) == 3
    assert known | unknown == dict(expected)


def test_coarse_times_are_known_of_more_trips(cubes: dict[str, Path], tmp_path: Path) -> None:
    fine, coarse = (exported(cubes["hours"], tmp_path / str(how), coarse_times=how)[0] for how in (False, True))
    assert 0 < fine["count"].sum() < coarse["count"].sum()
    assert {*coarse["time"]} <= {f"2001-01-01 {hour:02}:00" for hour in (0, 7, 9, 17, 20)}


def test_the_terminal_says_how_many_have_no_time_or_may_be_such(cubes: dict[str, Path], tmp_path: Path) -> None:
    done = odkanon("export", cubes["slots"], "--to", "flowmap", "-o", tmp_path / "map")
    assert done.returncode == 0, done
    without = pd.read_csv(tmp_path / "map" / "flows-without-time.csv")["count"].sum()
    published = sum(open_release(cubes["slots"]).table.column("trips").to_pylist())
    assert f"{without:,} of {published:,} trips have no time" in output(done)
    where = 'mode == "car"'
    done = odkanon("export", cubes["slots"], "--to", "flowmap", "--where", where, "-o", tmp_path / "cars")
    view = view_release(cubes["slots"], where)
    files = [pd.read_csv(tmp_path / "cars" / name) for name in ("flows.csv", "flows-without-time.csv")]
    assert sum(file["count"].sum() for file in files) == view.total() > 0
    assert f"up to {view.total('trips_possible'):,.0f} more trips may match" in output(done)


def test_files_are_replaced_only_if_asked(cubes: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "flows-without-time.csv").write_text("mine")
    with pytest.raises(InputError, match="flows-without-time"):
        export_release(cubes["hours"], "flowmap", tmp_path / "map")
    assert [path.name for path in (tmp_path / "map").iterdir()] == ["flows-without-time.csv"]
    written = export_release(cubes["hours"], "flowmap", tmp_path / "map", force=True)
    before = [path.read_bytes() for path in written]
    export_release(cubes["hours"], "flowmap", tmp_path / "map", force=True)
    assert [path.read_bytes() for path in written] == before


def test_what_tells_of_no_time_is_as_before(cubes: dict[str, Path], tmp_path: Path) -> None:
    written = export_release(cubes["modes"], "flowmap", tmp_path / "map")
    assert [path.name for path in written] == ["locations.csv", "flows.csv"]
    flows = pd.read_csv(tmp_path / "map" / "flows.csv")
    assert list(flows.columns) == ["origin", "dest", "count"]
    assert flows["count"].sum() == open_release(cubes["modes"]).table.to_pandas()["trips"].sum()


@pytest.mark.parametrize(
    ("to", "how", "message"),
    [
        ("flowmap", {"coarse_times": True}, "no attribute of time"),
        ("skmob", {"coarse_times": True}, "only flow maps"),
        ("flowmap", {"where": "speed == 3"}, "of the cube 'speed'"),
    ],
)
def test_what_cannot_be_done_is_said(cubes: dict[str, Path], tmp_path: Path, to: str, how: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        export_release(cubes["modes"], to, tmp_path / "out", **how)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["flowmap", "skmob"])
def test_what_an_earlier_map_wrote_does_not_stay_beside_another(
    cubes: dict[str, Path], tmp_path: Path, to: str
) -> None:
    target = tmp_path / "map"
    export_release(cubes["hours"], "flowmap", target)
    (target / "mine.csv").write_text("origin,dest,count,hour\n")
    written = export_release(cubes["modes"], to, target, force=True)
    kept = {"mine.csv"} | ({"locations.csv"} if to == "skmob" else set())
    assert {path.name for path in target.iterdir()} == {path.name for path in written} | kept


@pytest.mark.parametrize("foreign", ["flows.csv", "flows-without-time.csv"])
def test_what_somebody_else_wrote_stays(cubes: dict[str, Path], tmp_path: Path, foreign: str) -> None:
    target = tmp_path / "map"
    export_release(cubes["hours"], "flowmap", target)
    (target / foreign).write_text("mine")
    rest = (target / "flows-without-time.csv").read_text()
    export_release(cubes["modes"], "flowmap", target, force=True)
    assert (target / "flows-without-time.csv").read_text() == rest
