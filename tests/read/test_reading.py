"""One description of an input: it means the same to every engine and every command, and nothing is read silently."""

from __future__ import annotations

import ast
import json
import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from odkanon import InputSpec, read_matrix, read_trips
from odkanon.engine.dispatch import load
from odkanon.errors import InputError
from odkanon.explore import read_explorer_data
from odkanon.read.od_matrix import build_od
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.tables.filters import FILTERED
from odkanon.zoning import cells, point_location
from worlds.files import HEADER, trips_table, trips_text, write

SOURCE = Path(__file__).parents[2] / "src" / "odkanon"
FLAG = re.compile(r"(?<![\w-])--[a-z]")
LEFT_TO_THE_COMMAND_LINE = {"cli", "publish", "__init__.py", "__main__.py"}


def both(reading: InputSpec) -> tuple[int, int]:
    """Trips that the engine in memory and DuckDB make of an input."""
    return spec_to_matrix(reading).trips, load(reading, engine="duckdb").summary.trips


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "trips.csv", trips_text())


# -- columns


def test_columns_map_ours_to_theirs_like_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", trips_text().replace("person,", "ID,", 1).replace("weight", "W", 1))
    trips = read_trips(path, columns={"person": "ID", "weight": "W"})
    assert trips.weight is not None
    assert "persons" in trips.contributors


def test_the_old_direction_still_works_and_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", trips_text().replace("weight", "W", 1))
    with pytest.warns(DeprecationWarning, match="ours: theirs"):
        old = read_trips(path, columns={"W": "weight"})
    assert old.weight is not None
    assert old.weight.tolist() == read_trips(path, columns={"weight": "W"}).weight.tolist()  # type: ignore[union-attr]


def test_a_misspelt_name_is_an_error_with_the_nearest(path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown column name 'weigth' \(did you mean 'weight'\?\)"):
        read_trips(path, columns={"weigth": "weight"})
    with pytest.raises(InputError, match=r"no column 'wieght' \(did you mean 'weight'\?\)"):
        read_trips(path, columns={"weight": "wieght"})


def test_names_that_only_a_filter_or_a_segment_uses_may_be_given(path: Path) -> None:
    named = read_trips(path, columns={"gender": "sex"}, where='gender == "Woman"')
    assert len(named) == 24
    kept = read_trips(path, columns={"gender": "sex"}, attributes=["gender"])
    assert set(kept.table.column("gender").to_pylist()) == {"Woman", "Man"}


# -- filters


def test_of_several_filters_all_must_hold(path: Path) -> None:
    assert both(InputSpec(path, where=['sex == "Woman"', "weight >= 11", "hour < 12"])) == (8, 8)
    assert both(InputSpec(path, where='sex == "Woman" and weight >= 11 and hour < 12')) == (8, 8)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ('start_time >= "07:00" and start_time < "09:00"', 4),
        ('start_time >= "7:00"', None),
        ('start_time > "07:30:00"', 32),
        ("hour in [7, 8]", 4),
        ("hour >= 22", 4),
        ('start_time >= "2024-07-02"', 24),
        ('start_time == "2024-07-01"', 24),
        ('start_time < "2024-07-01 02:00"', 2),
        ("start_time >= 7", None),
    ],
)
def test_times_compare_as_times(tmp_path: Path, where: str, count: int | None) -> None:
    """As text, "2024-..." is before "07:00", and every trip was."""
    path = write(tmp_path / "t.csv", trips_text(time="2024-07-{day:02} {hour:02}:30:00"))
    if count is None:
        with pytest.raises(InputError, match="start_time is a column of times"):
            spec_to_matrix(InputSpec(path, where=where))
    else:
        assert both(InputSpec(path, where=where)) == (count, count)


def test_a_column_called_hour_goes_before_the_clock() -> None:
    table = trips_table().append_column("hour", pa.array([3] * 48))
    assert len(read_trips(table, where="hour == 3")) == 48


def test_a_filter_that_keeps_everything_says_so_and_one_that_keeps_nothing_is_refused(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for engine in ("memory", "duckdb"):
        caplog.clear()
        load(InputSpec(path, where="weight > 0"), engine=engine)
        assert "the filter matches all 48 rows" in caplog.text
        with pytest.raises(InputError, match="the filter matches none of the 48 rows"):
            load(InputSpec(path, where="weight > 1000"), engine=engine)


def test_the_filter_stays_out_of_the_account_and_in_the_reading(path: Path) -> None:
    source = read_trips(path, where='person != "p7"').source
    assert set(source.rejected) == {FILTERED}
    assert source.reading["where"] == 'person != "p7"'
    assert json.loads(json.dumps(source.reading)) == source.reading


@pytest.mark.parametrize("where", ["(" * 3000 + "weight > 1" + ")" * 3000, "not " * 3000 + "weight > 1"])
def test_a_filter_nested_too_deep_is_a_clear_error(path: Path, where: str) -> None:
    with pytest.raises(InputError, match="nested too deep"):
        read_trips(path, where=where)


# -- clocks


@pytest.mark.parametrize("time", ["2024-07-01T{hour:02}:30:00Z", "2024-07-01 {hour:02}:30:00+00:00"])
def test_hours_are_on_the_clock_of_a_time_zone(tmp_path: Path, time: str) -> None:
    """Paris is two hours ahead of UTC in July: five UTC is seven there."""
    path = write(tmp_path / "t.csv", trips_text(24, time=time))
    assert both(InputSpec(path, where="hour == 7")) == (1, 1)
    kept = read_trips(path, where="hour == 7", timezone="Europe/Paris")
    assert kept.table.column("start_time").to_pylist()[0].hour == 7
    assert both(InputSpec(path, where=["hour == 7", 'person == "p5"'], timezone="Europe/Paris")) == (1, 1)


def test_times_of_parquet_with_a_zone_follow_it_too(tmp_path: Path) -> None:
    table = trips_table(24)
    times = pa.array([f"2024-07-01T{n:02}:30:00" for n in range(24)]).cast(pa.timestamp("us")).cast(pa.int64())
    zoned = times.cast(pa.timestamp("us", "UTC"))
    pyarrow.parquet.write_table(table.set_column(2, "start_time", zoned), tmp_path / "t.parquet")
    where = ["hour == 7", 'person == "p5"']
    assert both(InputSpec(tmp_path / "t.parquet", where=where, timezone="Europe/Paris")) == (1, 1)


def test_times_without_an_offset_stay_as_they_are(path: Path) -> None:
    assert both(InputSpec(path, where=["hour == 7", 'person == "p7"'], timezone="Europe/Paris")) == (1, 1)


def test_an_unknown_zone_is_an_error_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'Europe/Paris'"):
        InputSpec("t.csv", timezone="Europe/Pari")


# -- walks


def test_the_explorer_reads_its_input_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = read_explorer_data(InputSpec(path))
    path.unlink()
    assert data.matrix(10, "sex: Woman").trips == 24
    assert data.matrix(8).trips == 48


def test_parts_of_trips_keep_the_cells_of_the_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(lat: Any, lng: Any, resolution: int) -> Any:
        asked.append(resolution)
        return cells.latlng_to_cell(lat, lng, resolution)

    monkeypatch.setattr(point_location, "latlng_to_cell", counted)
    trips = read_trips(path)
    whole = build_od(trips, resolution=9)
    women = build_od(trips.select(trips.table.column("sex").to_numpy(zero_copy_only=False) == "Woman"), resolution=9)
    assert (whole.trips, women.trips) == (48, 24)
    assert asked == [9, 10], "both ends at once, and once for all parts; finer cells place trips on a map"


# -- words


def test_errors_of_the_library_do_not_talk_of_the_command_line() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in LEFT_TO_THE_COMMAND_LINE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and "Error" in ast.dump(node.func):
                texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
                found += [f"{path.name}:{node.lineno}" for text in texts if FLAG.search(str(text))]
    assert not found


def test_a_hierarchy_and_its_outlines_are_read_when_needed(tmp_path: Path) -> None:
    lookup = write(tmp_path / "zones.csv", "leaf,parent\na,x\nb,x\n")
    od = write(tmp_path / "od.csv", "origin,destination,trips\na,b,30\n")
    assert (
        spec_to_matrix(InputSpec(od, hierarchy=lookup)).trips
        == read_matrix(od, hierarchy=InputSpec(hierarchy=lookup).tree, engine="memory").trips
    )
    with pytest.raises(InputError, match="a resolution applies to H3 cells only"):
        spec_to_matrix(InputSpec(od, hierarchy=lookup, resolution=8))
    with pytest.raises(InputError, match="outlines need a hierarchy"):
        InputSpec(od, outlines="zones.geojson")


def test_trips_that_name_nobody_are_pointed_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    lines = trips_text(20).splitlines()
    few = [line if n != 3 else line[line.index(",") :] for n, line in enumerate(lines)]
    many = [line if not 3 <= n < 7 else line[line.index(",") :] for n, line in enumerate(lines)]
    assert lines[0] == HEADER
    assert both(InputSpec(write(tmp_path / "few.csv", "\n".join(few)))) == (20, 20)
    assert "name no person" not in caplog.text
    assert both(InputSpec(write(tmp_path / "many.csv", "\n".join(many)))) == (20, 20)
    assert caplog.text.count("4 of 20 trips (20 %) have no person id") == 2


def test_copies_are_no_trips_that_name_somebody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With copies counted, 4 of 36 trips would be no reason to say anything."""
    caplog.set_level(logging.WARNING)
    lines = trips_text(20).splitlines()
    rows = [line if not 3 <= n < 7 else line[line.index(",") :] for n, line in enumerate(lines)]
    copied = [*rows, *(line for line in rows[1:] if not line.startswith(","))]
    assert both(InputSpec(write(tmp_path / "copied.csv", "\n".join(copied)))) == (20, 20)
    assert caplog.text.count("4 of 20 trips (20 %) have no person id") == 2
